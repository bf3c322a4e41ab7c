"""Large carried values that go on where they were made, so that no turn of a loop ends with a copy."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from pullback.ir.graph import Op, Region, Value
from pullback.ir.plan import Handover, Slot
from pullback.passes.memory.buffers import Buffer


class Move(NamedTuple):
    """A `Handover` before buffers have slots."""

    carry: int
    given: Buffer
    kind: Literal["place", "row", "next"]
    stacked: int = -1

    def handover(self, slot: Callable[[Buffer], Slot]) -> Handover:
        return Handover(self.carry, slot(self.given), self.kind, self.stacked)


class Loop(NamedTuple):
    """A loop whose body has its buffers.

    carried, stacked : the buffers of its results
    large : the carried values, by number, that are worth it
    rows : for some of them the stacked result that is the next value too, and may be made in its row
    """

    op: Op
    carried: Sequence[Buffer]
    stacked: Sequence[Buffer]
    large: Sequence[int]
    rows: Mapping[int, int]

    @property
    def body(self) -> Region:
        return self.op.regions[-1]


def has_rows(op: Op) -> bool:
    """Whether what a loop stacks has a row for each turn, and there is one."""
    return op.name == "scan" and op.attrs["length"] >= 1


def stacked_next(op: Op, large: Sequence[int], may_be_row: Callable[[Value], bool]) -> dict[int, int]:
    """For carried values, the stacked result that is the next value too."""
    if not has_rows(op):
        return {}
    carries, results = op.attrs["carries"], op.regions[-1].results
    places: dict[Value, int] = {}
    for j, value in enumerate(results[carries:]):
        if may_be_row(value):
            places.setdefault(value, j)
    found: dict[int, int] = {}
    for k in large:
        if results[k] in places:
            found[k] = places.pop(results[k])
    return found


def moves_of(loop: Loop, buffers: Mapping[Value, Buffer], made: Collection[Buffer]) -> dict[int, Move]:
    """How carried values go on: those that the body makes in a buffer of its own (one of `made`), or of another."""
    old = _stacked_old(loop)
    homes = {loop.carried[k]: k for k in loop.large}
    found: dict[int, Move] = {}
    taken: set[Buffer] = set()
    for k in loop.large:
        given = buffers[loop.body.results[k]]
        if k in loop.rows:
            if given.owner is loop.stacked[loop.rows[k]]:
                found[k] = Move(k, given, "row", loop.rows[k])
        elif given is loop.carried[k] or given in taken or given.nbytes != loop.carried[k].nbytes:
            continue
        elif given in made and not given.is_row and not given.frozen:
            found[k] = Move(k, given, "next", old[k]) if k in old else Move(k, given, "place")
            taken.add(given)
        elif given in homes:
            found[k] = Move(k, given, "place")
            taken.add(given)
    return _closed(found, homes)


def _stacked_old(loop: Loop) -> dict[int, int]:
    """For carried values, the stacked result that is the old value."""
    if not has_rows(loop.op):
        return {}
    number = {param: k for k, param in enumerate(loop.body.params[: len(loop.carried)])}
    found: dict[int, int] = {}
    for j, value in enumerate(loop.body.results[len(loop.carried) :]):
        if value in number:
            found.setdefault(number[value], j)
    return found


def _closed(found: dict[int, Move], homes: Mapping[Buffer, int]) -> dict[int, Move]:
    """Without the values that take the buffer of one that does not give it up."""
    while True:
        kept = {k: move for k, move in found.items() if _is_given_up(move, found, homes)}
        if len(kept) == len(found):
            return kept
        found = kept


def _is_given_up(move: Move, found: Mapping[int, Move], homes: Mapping[Buffer, int]) -> bool:
    owner = homes.get(move.given)
    return owner is None or (owner in found and found[owner].kind == "place")
