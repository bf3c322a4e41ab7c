"""Arrays that a loop only writes to, or of which it reads only what it has not written: they need not be carried.

`for i in range(1, n): y[i] = f(y[i - 1], x[i])` hands y from turn to turn, but what it reads of y is the value of the
turn before, which `track` has found. So the turns give rows, and y is written once, behind the loop.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pullback.ir.graph import Attrs, Value
from pullback.ir.types import Shape
from pullback.passes.roll.loop import Match
from pullback.passes.roll.moving import Moving, box_slices
from pullback.passes.roll.track import box_shape
from pullback.record import record

Integers = np.ndarray[Any, np.dtype[np.int64]]
Reader = tuple[int, int]

MOST_ELEMENTS = 1 << 22
"""Elements, over all turns, up to which it is looked at what a loop writes and reads."""


@record(frozen=True)
class Written:
    """An array that is written behind the loop.

    first : the array as the loop finds it
    updates : the ops of the body that write to it, in order; what does not move is written once, by the last turn
    readers : operands (op, number) that read it; they may read `first` in its stead
    """

    first: Value
    updates: tuple[int, ...]
    readers: frozenset[Reader]


def written_outside(match: Match, used_after: Mapping[tuple[int, int], set[int]]) -> list[Written]:
    """The arrays of a loop that can be written behind it.

    Parameters
    ----------
    used_after : for each op of the body and number of a result, the turns whose value is read outside of the loop
    """
    found = []
    for last in range(match.period):
        updates = _chain(match, last)
        if updates and all(u not in match.writes or match.writes[u].may_write_all for u in updates):
            first = match.operand(0, updates[0], 0).base
            written = Written(first, updates, frozenset(_readers(match, updates)))
            if _is_seen_at_the_end_only(match, written, used_after) and _is_safe(match, written):
                found.append(written)
    return found


def _chain(match: Match, last: int) -> tuple[int, ...]:
    """The updates of one turn, the last of them `last`, if they write to an array that they hand on to the next."""
    chain: list[int] = []
    at = last
    while match.op(at).opdef.name == "update" and not match.last(at, 0).views:
        chain.append(at)
        slot = match.slots[at][0]
        if slot.kind == "carry":
            handed_on = slot.offset == last and slot.delay == 1 and not slot.viewed
            return tuple(reversed(chain)) if handed_on else ()
        if slot.kind != "inner":
            return ()
        at = slot.offset
    return ()


def _readers(match: Match, updates: tuple[int, ...]) -> Iterator[Reader]:
    """Operands that read the array other than to write the next update into it."""
    for offset, slots in enumerate(match.slots):
        for k, slot in enumerate(slots):
            if offset in updates and k == 0:
                continue
            if slot.kind in ("inner", "carry") and slot.offset in updates:
                yield offset, k


def _is_seen_at_the_end_only(
    match: Match, written: Written, used_after: Mapping[tuple[int, int], set[int]]
) -> bool:
    *inner, last = written.updates
    end = {match.turns - 1}
    return not any(used_after.get((u, 0)) for u in inner) and used_after.get((last, 0), end) <= end


def _is_safe(match: Match, written: Written) -> bool:
    """Whether no element is read after it was written, and none is written by two of several updates."""
    size = match.op(written.updates[0]).results[0].type.size
    boxes = [(match.writes.get(u), match.op(u).attrs) for u in written.updates]
    if max(size, *(match.turns * math.prod(box_shape(attrs)) for _, attrs in boxes)) > MOST_ELEMENTS:
        return False
    shape = match.op(written.updates[0]).results[0].type.shape
    writes = [_elements(move, attrs, shape) for move, attrs in boxes]
    if len(writes) > 1 and sum(map(len, map(np.unique, writes))) > len(np.unique(np.concatenate(writes, axis=None))):
        return False
    # The first moment each element is written: a turn has a moment for each update, after one for what comes before.
    moments = len(writes) + 1
    begins = np.full(size, np.iinfo(np.int64).max)
    for k, elements in enumerate(writes):
        moment = np.arange(len(elements)) * moments + k + 1
        np.minimum.at(begins, elements, np.broadcast_to(moment[:, None], elements.shape))
    return all(_reads_early(match, written, reader, begins, moments) for reader in written.readers)


def _elements(move: Moving | None, attrs: Attrs, shape: Shape) -> Integers:
    """The numbers of the elements of a slice: a row for each turn, or one where it does not move."""
    if move is not None:
        return move.elements()
    elements: Integers = np.arange(math.prod(shape)).reshape(shape)[box_slices(attrs)].reshape(1, -1)
    return elements


def _reads_early(match: Match, written: Written, reader: Reader, begins: Integers, moments: int) -> bool:
    """Whether what an operand reads has not been written yet, in any turn."""
    offset, k = reader
    slot, views = match.slots[offset][k], match.last(offset, k).views
    if slot.kind == "carry":
        first_turns = match.operand(0, offset, k).base is written.first
        if slot.viewed or slot.delay != 1 or slot.offset != written.updates[-1] or not first_turns:
            return False
    if not views or views[0].opdef.name != "slice":
        return False
    if math.prod(box_shape(views[0].attrs)) * match.turns > MOST_ELEMENTS:
        return False
    elements = _elements(match.reads[offset][k][0], views[0].attrs, views[0].operands[0].type.shape)
    seen = written.updates.index(slot.offset) + 1 if slot.kind == "inner" else 0
    moment = np.arange(match.turns) * moments + seen
    return bool((begins[elements] > moment[:, None]).all())
