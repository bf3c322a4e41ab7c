"""`pullback dump`: the program of a function at any stage, each op with the user's line."""

import argparse
import os
from typing import Any

from pullback import driver
from pullback.api.call import Call, as_argnums, make_call
from pullback.api.gradients import stage_gradient
from pullback.api.signature import shape_of_call
from pullback.api.staged import Staged, stage_plain
from pullback.cli.show import difference, show, with_sources
from pullback.cli.target import UsageError, load_function, parse_argnums, parse_types, parse_values, sample_arrays
from pullback.config import Options
from pullback.ir.graph import Function
from pullback.ir.page import Column, page, row
from pullback.ir.text import print_function
from pullback.passes.base import Context
from pullback.passes.pipeline import optimise as run_pipeline
from pullback.passes.pipeline import passes_by_name
from pullback.passes.views import to_dot


def dump(options: argparse.Namespace) -> int:
    """Print one stage, or the differences between passes."""
    settings = Options.from_env()
    staged, call = stage_of(options)
    if options.after:
        _check_pass(options.after)
    if options.html:
        with open(options.html, "w", encoding="utf-8") as out:
            out.write(page_of(staged.function, settings))
        return 0
    if options.diff:
        show("".join(differences(staged.function, settings)), options.color)
        return 0
    text = text_of(staged, call, options, settings)
    if options.dot:
        with open(options.dot, "w", encoding="utf-8") as out:
            out.write(to_dot(_function_at(staged.function, options, settings)))
        return 0
    if options.stage not in ("llvm", "asm"):
        text = short_paths(with_sources(text), options.target)
    show(text, options.color)
    return 0


def short_paths(text: str, target: str) -> str:
    """Source locations without the folder of the file that was named."""
    path = os.path.abspath(target.rpartition(":")[0])
    return text.replace(path + ":", os.path.basename(path) + ":").replace(
        target.rpartition(":")[0] + ":", os.path.basename(path) + ":"
    )


def stage_of(options: argparse.Namespace) -> tuple[Staged, Call]:
    """Trace the function that the command line names."""
    function = load_function(options.target)
    if options.values:
        arguments: list[Any] = list(parse_values(options.values))
    elif options.args is not None:
        arguments = list(sample_arrays(parse_types(options.args)))
    else:
        arguments = list(_example(function, options.target))
    call = make_call(tuple(arguments), {})
    wants_gradient = options.grad or options.stage == "adjoint"
    if not wants_gradient:
        return stage_plain(function, call), call
    argnums = parse_argnums(options.argnums)
    wanted = as_argnums(argnums)
    return stage_gradient(function, call, wanted, isinstance(argnums, tuple), False, False, True), call


def _example(function: Any, target: str) -> tuple[Any, ...]:
    found = getattr(function, "example", None)
    if found is None:
        raise UsageError(f"{target} needs the types of its arguments: --args 'f64[100,3], f64[3]' (or --values)")
    return tuple(found() if callable(found) else found)


def _check_pass(name: str) -> None:
    known = passes_by_name()
    if name not in known:
        raise UsageError(f"no pass is named {name!r}; the passes are {', '.join(known)}")


def _function_at(function: Function, options: argparse.Namespace, settings: Options) -> Function:
    if options.after:
        found = dict(after_each(function, settings))
        return found.get(options.after, function)
    if options.stage in ("traced", "adjoint"):
        return function
    small = driver.optimised(function, settings)
    return small if options.stage == "optimised" else driver.planned(small, settings).function


def text_of(staged: Staged, call: Call, options: argparse.Namespace, settings: Options) -> str:
    if options.after:
        return print_function(_function_at(staged.function, options, settings))
    shape = shape_of_call(call, staged)
    return driver.stage_text(shape.function, options.stage, settings, shape.signature)


def after_each(function: Function, settings: Options) -> list[tuple[str, Function]]:
    """The function after each pass that ran; a pass that ran twice is there twice."""
    found: list[tuple[str, Function]] = []
    run_pipeline(function, Context.of(settings), lambda name, before, after: found.append((name, after)))
    return found


def differences(function: Function, settings: Options) -> list[str]:
    """A unified difference for each pass that changed something."""
    parts, before = [], function
    for name, after in after_each(function, settings):
        if after is not before:
            parts.append(f"==== {name}\n" + difference(print_function(before), print_function(after), ("before", name)))
        before = after
    return parts


def page_of(function: Function, settings: Options) -> str:
    """A self-contained page: a column for each pass, unchanged ones folded."""
    columns, before = [Column("traced", print_function(function))], function
    for name, after in after_each(function, settings):
        columns.append(Column(name, print_function(after), after is not before))
        before = after
    planned = driver.planned(driver.optimised(function, settings), settings)
    columns.append(Column("kernels", print_function(planned.function) + driver.plan_text(planned)))
    return page([row(function.name, columns)], function.name)
