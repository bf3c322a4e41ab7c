"""`pullback opt` and `pullback run`: textual IR through passes, and through interpreter or native code."""

import argparse
import sys
from typing import Any

import numpy as np

from pullback import driver
from pullback.api.compiling import jit
from pullback.api.gradients import grad
from pullback.cli.native import run_native
from pullback.cli.show import show
from pullback.cli.target import UsageError, load_function, parse_types, parse_values, sample_arrays
from pullback.config import Options
from pullback.errors import ParseError
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.parse import parse_function
from pullback.ir.text import print_function
from pullback.ir.verify import verify
from pullback.passes.base import Context
from pullback.passes.manager import report, run_passes
from pullback.passes.pipeline import passes_by_name


def read_ir(path: str) -> Function:
    """The function in a file of textual IR; `-` is standard input."""
    try:
        with sys.stdin if path == "-" else open(path, encoding="utf-8") as source:
            return parse_function(source.read())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ParseError as error:
        raise UsageError(f"{path}: {error}") from error


def opt(options: argparse.Namespace) -> int:
    """Run the named passes (default: all) on a file of textual IR and print what comes out."""
    function = read_ir(options.file)
    verify(function)
    settings = Options.from_env()
    known = passes_by_name()
    for name in options.passes or ():
        if name not in known:
            raise UsageError(f"no pass is named {name!r}; the passes are {', '.join(known)}")
    if options.passes:
        result, ran = run_passes(function, [known[name] for name in options.passes], Context.of(settings))
        if settings.time or settings.rules:
            sys.stderr.write(report(ran, settings.rules) + "\n")
    else:
        log = driver.Log()
        result = driver.optimised(function, settings, log)
        driver.trace_report(log, function.name, settings)
    show(print_function(result), options.color)
    return 0


def run(options: argparse.Namespace) -> int:
    """Run textual IR, or a Python function, and print its results."""
    if options.target.rpartition(":")[0].endswith(".py"):
        return _run_python(options)
    function = read_ir(options.target)
    values = _arguments(options, [p.type for p in function.params])
    arrays = [np.asarray(v, p.type.dtype).reshape(p.type.shape) for v, p in zip(values, function.params, strict=True)]
    results = interpret(function, arrays) if options.interpret else _run_native(function, arrays)
    for result in results:
        print(result)
    return 0


def _run_native(function: Function, arrays: list[Any]) -> list[Any]:
    status, results = run_native(function, arrays, Options.from_env())
    if status:
        raise UsageError(f"{function.name} gave status {status}: a guard or a check did not hold for these values")
    return results


def _run_python(options: argparse.Namespace) -> int:
    function = load_function(options.target)
    types = parse_types(options.args) if options.args else ()
    values = parse_values(options.values) if options.values else sample_arrays(types)
    transformed = grad(function) if options.grad else jit(function)
    print(transformed(*values))
    return 0


def _arguments(options: argparse.Namespace, types: list[Any]) -> Any:
    values = parse_values(options.values) if options.values else sample_arrays(tuple(types))
    if len(values) != len(types):
        raise UsageError(f"the function takes {len(types)} arguments ({', '.join(map(str, types))}), got {len(values)}")
    return values
