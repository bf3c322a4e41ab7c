"""Which pass, and which of its rewrites, first makes a function wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pullback.config import Options
from pullback.errors import VerifyError
from pullback.ir.graph import Function
from pullback.ir.verify import verify
from pullback.passes.base import Context, Pass, Tally, difference
from pullback.passes.numbers import check_numbers
from pullback.record import record


@record(frozen=True)
class Fault:
    """The first pass that fails on a function, breaks an invariant of it or changes its numbers.

    before : the function as that pass was given it
    problem : in words
    rewrite : number of the first wrong rewrite, counted over all passes from 1; None if the pass is wrong without any
    rule : the name that this rewrite is counted under; empty if there is none
    """

    step: str
    before: Function
    problem: str
    rewrite: int | None = None
    rule: str = ""


def first_fault(function: Function, steps: Sequence[Pass], options: Options) -> Fault | None:
    """Run the passes one after another, and interpret the function on sample data before and after each; then halve the
    number of rewrites until the wrong one is found.

    Returns
    -------
    None if every pass leaves the numbers as they are.
    """
    fault, tally = _attempt(function, steps, options, options.limit)
    if fault is None:
        return None
    good, bad, counts = -1, tally.total, tally.counts
    while bad - good > 1:
        middle = (good + bad) // 2
        found, tally = _attempt(function, steps, options, middle)
        if found is None:
            good = middle
        else:
            fault, bad, counts = found, middle, tally.counts
    if bad == 0:
        return fault
    _, without = _attempt(function, steps, options, bad - 1)
    return Fault(fault.step, fault.before, fault.problem, bad, _added(counts, without.counts))


def _added(counts: Mapping[str, int], without: Mapping[str, int]) -> str:
    """The rule that was used once more with a rewrite than without it."""
    return next(iter(difference(counts, without)), "")


def _attempt(
    function: Function, steps: Sequence[Pass], options: Options, limit: int | None
) -> tuple[Fault | None, Tally]:
    """The first fault with so many rewrites, and the count of those that were made until then."""
    tally = Tally(limit)
    ctx = Context(options, tally)
    settled: dict[str, Function] = {}
    for step in steps:
        if step.name in options.skip or settled.get(step.name) is function:
            continue
        before = function
        try:
            function = step.run(before, ctx)
            _check(before, function)
        except Exception as error:
            return Fault(step.name, before, f"{type(error).__name__}: {error}"), tally
        settled[step.name] = function
    return None, tally


def _check(before: Function, after: Function) -> None:
    if after is before:
        return
    verify(after)
    if before.param_types != after.param_types or before.result_types != after.result_types:
        raise VerifyError(f"{after.name}: the types of the parameters or results are not the same after the pass")
    check_numbers(before, after)
