"""How much memory the gradient of a program takes: what the plan lays out, what is given back, and what tapes hold."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pullback.api.settings import current_options
from pullback.driver import optimised, planned
from pullback.ir.graph import Function, Op, Region
from pullback.passes.reverse import reverse as differentiated
from pullback.record import record


@record(frozen=True)
class Needs:
    """Bytes that a gradient in all operands takes.

    fixed : whatever tapes hold
    given : of these the results, their cotangents and the gradients: what no schedule avoids
    taped : for each level of checkpoints what one turn of its loops adds to their tapes; tapes of loops inside of
        such a loop are not known
    """

    fixed: int
    given: int
    taped: Mapping[int, int]


def of_gradient(function: Function) -> Needs:
    """Plan the gradient of a traced function."""
    wrt = [k for k, p in enumerate(function.params) if p.type.is_inexact]
    made = differentiated(function, wrt)
    options = current_options()
    plan = planned(optimised(made, options), options)
    given = sum(p.type.nbytes for p in made.params[len(function.params) :]) + sum(t.nbytes for t in made.result_types)
    taped: dict[int, int] = {}
    for level, nbytes in _taped(plan.function.body):
        taped[level] = taped.get(level, 0) + nbytes
    return Needs(plan.arena_bytes + sum(plan.stack_bytes) + given, given, taped)


class _Place(NamedTuple):
    """A region, how many adjoints of checkpoints are around it, and whether a loop with tapes is, behind those."""

    region: Region
    level: int
    in_loop: bool


def _taped(body: Region) -> Iterator[tuple[int, int]]:
    """For each outermost loop of a level that keeps tapes, the level and the bytes of one turn."""
    places = [_Place(body, 0, False)]
    while places:
        at = places.pop()
        for op in at.region.ops:
            taped = _row_bytes(op)
            if taped and not at.in_loop:
                yield at.level, taped
            again = op.name == "checkpoint" and op.attrs["again"]
            inside = False if again else at.in_loop or bool(taped)
            places += [_Place(region, at.level + again, inside) for region in op.regions if op.name != "kernel"]


def _row_bytes(op: Op) -> int:
    """What a turn of a loop adds to its tapes."""
    if op.name not in ("scan", "while") or op.attrs.get("length", -1) >= 0:
        return 0
    return sum(r.type.nbytes for r in op.regions[-1].results[op.attrs["carries"] :])
