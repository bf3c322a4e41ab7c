"""`pullback bisect` and `pullback reduce`: where a function goes wrong, and a smaller one that goes wrong there too."""

import argparse
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pullback.cli.dump import stage_of
from pullback.cli.native import run_native
from pullback.cli.running import read_ir
from pullback.cli.target import UsageError
from pullback.config import Options
from pullback.errors import PullbackError
from pullback.ir.graph import Function, walk
from pullback.ir.interpret import interpret
from pullback.ir.ops.control import GuardFailedError
from pullback.ir.text import print_function
from pullback.ir.verify import verify
from pullback.passes.base import Context, Pass
from pullback.passes.bisect import Fault, first_fault
from pullback.passes.manager import command
from pullback.passes.numbers import sample_arguments
from pullback.passes.pipeline import OPTIMISE
from pullback.passes.shrink import shrink
from pullback.passes.tolerance import disagreement, evaluate_with_tolerance

NATIVE = "native code"
STEPS: tuple[Pass, ...] = tuple(step.run for step in OPTIMISE)


def bisect(options: argparse.Namespace, steps: Sequence[Pass] = STEPS) -> int:
    """Print the first pass and rewrite that make a function wrong; exit status 1 if there is one."""
    settings = Options.from_env()
    function = function_of(options)
    fault = find_fault(function, steps, settings)
    if fault is None:
        print(f"{function.name}: every pass, and native code, gives the numbers of the interpreter on sample data")
        return 0
    print("\n".join(described(fault, settings)))
    return 1


def function_of(options: argparse.Namespace) -> Function:
    """The function in a file of textual IR, or the one of a Python file."""
    if options.target.rpartition(":")[0].endswith(".py"):
        return stage_of(options)[0].function
    function = read_ir(options.target)
    verify(function)
    return function


def find_fault(function: Function, steps: Sequence[Pass], settings: Options) -> Fault | None:
    """The first fault of the passes; if they are right, that of native code."""
    fault = first_fault(function, steps, settings)
    if fault is not None:
        return fault
    try:
        problem = _native_problem(function, settings)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return Fault(NATIVE, function, problem) if problem else None


def _native_problem(function: Function, settings: Options) -> str:
    """How native code differs from the interpreter on sample data; empty if it does not."""
    for arguments in sample_arguments(function):
        try:
            expected = evaluate_with_tolerance(function, arguments)
            interpret(function, arguments)
        except (GuardFailedError, PullbackError):
            continue  # sample data that the function does not take
        status, results = run_native(function, arguments, settings)
        problem = f"it gives the status {status}" if status else disagreement(expected, results)
        if problem:
            return problem
    return ""


def described(fault: Fault, settings: Options) -> list[str]:
    """What was found, and what to do next."""
    name = fault.before.name
    lines = [f"{fault.step} is the first to be wrong on {name}: {fault.problem}"]
    if fault.rewrite is not None:
        lines.append(f"the first wrong rewrite is number {fault.rewrite}, {fault.rule}")
        lines.append(f"right with PULLBACK=limit={fault.rewrite - 1}, or without the rule: PULLBACK=skip={fault.rule}")
    path = Path(tempfile.mkdtemp(prefix="pullback-")) / f"{name.replace('/', '_')}.txt"
    path.write_text(print_function(fault.before), encoding="utf-8")
    if fault.step == NATIVE:
        lines.append(f"repeat it with: pullback run {path}, and compare with pullback run --interpret {path}")
    else:
        ctx = Context.of(settings.override(verify="each", check="numbers"))
        lines.append(f"repeat it with: {command(fault.step, str(path), ctx)}")
    return [*lines, f"make it smaller with: pullback reduce {path}"]


# ------------------------------------------------------------------ reduce


def reduce(options: argparse.Namespace, steps: Sequence[Pass] = STEPS) -> int:
    """Write a smaller function that fails in the same way."""
    function = function_of(options)
    if options.failing:
        fails = _failing_command(function, options.failing)
    else:
        fails = _failing_step(function, steps, Options.from_env())
    smaller = shrink(function, fails)
    text = print_function(smaller)
    sys.stderr.write(f"{function.name}: {_count(function)} ops before, {_count(smaller)} after\n")
    if options.out:
        Path(options.out).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


def _count(function: Function) -> int:
    return sum(1 for _ in walk(function.body))


def _failing_step(function: Function, steps: Sequence[Pass], settings: Options) -> Callable[[Function], bool]:
    """Whether a function goes wrong in the same pass as this one."""
    fault = find_fault(function, steps, settings)
    if fault is None:
        raise UsageError(f"{function.name} does not fail: every pass and native code agree with the interpreter")

    def fails(candidate: Function) -> bool:
        found = find_fault(candidate, steps, settings)
        return found is not None and found.step == fault.step

    return fails


def _failing_command(function: Function, text: str) -> Callable[[Function], bool]:
    """Whether a shell command on a function's file has the same exit status as on this one's."""
    if "{}" not in text:
        raise UsageError(f"--command {text!r} has no {{}}, in whose place the file's name is put")
    wanted = _status(function, text)
    if wanted == 0:
        raise UsageError(f"--command {text!r} has exit status 0 for the whole function: nothing fails")
    return lambda candidate: _status(candidate, text) == wanted


def _status(function: Function, text: str) -> int:
    with tempfile.TemporaryDirectory(prefix="pullback-") as folder:
        path = Path(folder) / "function.txt"
        path.write_text(print_function(function), encoding="utf-8")
        done = subprocess.run(text.replace("{}", shlex.quote(str(path))), shell=True, capture_output=True, check=False)
    return done.returncode
