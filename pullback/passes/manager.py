"""Runs passes one after another: timed, counted, checked, dumped, and with a reproducer file when one fails."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import TracebackType

from pullback.errors import PassError, PullbackError, VerifyError
from pullback.ir.graph import Function, Op
from pullback.ir.text import print_function
from pullback.ir.verify import verify
from pullback.lazy import LazyModule
from pullback.passes.base import Context, Pass, count_ops, difference
from pullback.passes.numbers import NumbersError, check_numbers
from pullback.record import record

tempfile = LazyModule("tempfile")  # which loads five compression libraries

Watch = Callable[[str, Function, Function], None]
"""Told of each pass that ran: its name, the function before, the function after."""


@record(frozen=True)
class Ran:
    """One pass that ran. `rewrites` counts by rule or kind; `ops` are those before and after."""

    name: str
    seconds: float
    rewrites: Mapping[str, int]
    ops: tuple[int, int]

    @property
    def changed(self) -> bool:
        return bool(self.rewrites) or self.ops[0] != self.ops[1]


def run_passes(
    function: Function, passes: Sequence[Pass], ctx: Context, watch: Watch | None = None
) -> tuple[Function, tuple[Ran, ...]]:
    """Run `passes` in order, as the options of `ctx` say.

    A pass is left out where the options skip it, and where it has nothing left to do: it ran before, and no pass
    since has changed the function.

    Raises
    ------
    PassError : a pass failed, or broke an invariant, or (with ``check=numbers``) changed a result. The message has the
        pass, the op, the user's line and the command that repeats it from the reproducer file.
    """
    options = ctx.options
    if options.verify == "ends":
        verify(function)
    ran: list[Ran] = []
    settled: dict[str, Function] = {}
    count = count_ops(function)
    for step in passes:
        if step.name in options.skip or settled.get(step.name) is function:
            continue
        before = function
        function, record = _run_one(step, before, count, ctx)
        count = record.ops[1]
        ran.append(record)
        settled[step.name] = function
        if watch is not None:
            watch(step.name, before, function)
        if options.dump and not options.dump_dir and _is_wanted(step.name, options.dump):
            sys.stderr.write(f"// after {step.name}\n{print_function(function)}\n")
        elif options.dump and _is_wanted(step.name, options.dump):
            _write(options.dump_dir, f"{function.name}.{len(ran):02}.{step.name}.txt", print_function(function))
    if options.verify == "ends":
        verify(function)
    return function, tuple(ran)


def _is_wanted(name: str, dump: tuple[str, ...]) -> bool:
    return name in dump or "all" in dump


def _run_one(step: Pass, before: Function, count: int, ctx: Context) -> tuple[Function, Ran]:
    counted = dict(ctx.tally.counts)
    begin = perf_counter()
    try:
        after = step.run(before, ctx)
        seconds = perf_counter() - begin
        if after is not before:
            _check(before, after, ctx)
    except Exception as error:
        raise _failure(step, before, ctx, error) from error
    ops = (count, count if after is before else count_ops(after))
    return after, Ran(step.name, seconds, difference(ctx.tally.counts, counted), ops)


def _check(before: Function, after: Function, ctx: Context) -> None:
    if ctx.options.verify == "each":
        verify(after)
    if before.param_types != after.param_types or before.result_types != after.result_types:
        raise VerifyError(f"{after.name}: a pass changed the types of the parameters or results")
    if ctx.options.check == "numbers":
        check_numbers(before, after)


# ------------------------------------------------------------------ failures


def _failure(step: Pass, function: Function, ctx: Context, error: Exception) -> PassError:
    """The error of a failed pass; writes the reproducer file."""
    op = _op_at_work(error.__traceback__)
    at = f"at {op.opdef.name}, {op.loc or 'no source line'}" if op is not None else "outside any op"
    path = reproducer(step.name, function, ctx, error)
    kind = "" if isinstance(error, PullbackError | NumbersError) else f"{type(error).__name__}: "
    return PassError(
        f"pass {step.name} failed on {function.name} {at}: {kind}{error}\n"
        f"repeat it with: {command(step.name, path, ctx)}"
    )


def _op_at_work(traceback: TracebackType | None) -> Op | None:
    """The op that the innermost frame with one was looking at: passes call it `op`."""
    found = None
    while traceback is not None:
        candidate = traceback.tb_frame.f_locals.get("op")
        if isinstance(candidate, Op):
            found = candidate
        traceback = traceback.tb_next
    return found


def command(name: str, path: str, ctx: Context) -> str:
    """The shell command that runs one pass on a file of textual IR, under the options that matter to passes."""
    kept = ctx.options.override(dump=(), dump_dir="", html="", time=False, rules=False)
    setting = f"PULLBACK={kept} " if str(kept) else ""
    return f"{setting}pullback opt --pass {name} {path}"


def reproducer(name: str, function: Function, ctx: Context, error: Exception) -> str:
    """Write the function as it was before the pass, with the command on top; the path of the file."""
    folder = ctx.options.dump_dir or tempfile.mkdtemp(prefix="pullback-")
    file = f"{function.name}.{name}.txt"
    head = [f"// {command(name, os.path.join(folder, file), ctx)}", *(f"// {line}" for line in str(error).splitlines())]
    return _write(folder, file, "\n".join(head) + "\n" + print_function(function))


def _write(folder: str, file: str, text: str) -> str:
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, file.replace("/", "_"))
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def report(ran: Sequence[Ran], rules: bool = False) -> str:
    """A table of what ran: time, ops before and after, rewrites; with `rules` a line for each rule."""
    lines = [f"{'pass':<12}{'ms':>9}{'ops':>16}{'rewrites':>10}"]
    for r in ran:
        ops = f"{r.ops[0]} -> {r.ops[1]}" if r.ops[0] != r.ops[1] else f"{r.ops[0]}"
        lines.append(f"{r.name:<12}{r.seconds * 1e3:>9.2f}{ops:>16}{sum(r.rewrites.values()):>10}")
        if rules:
            lines.extend(f"  {name:<35}{n:>10}" for name, n in sorted(r.rewrites.items(), key=lambda item: -item[1]))
    return "\n".join(lines)
