"""Writes to one row of a history, made one: what a turn wrote is then one value, which the next turn reads.

`U[t] = a; U[t] += b` writes row t twice, and the first time is seen by nobody. `U[t, 1:-1] = a; U[t, 0] = b` writes it
in pieces: the pieces become a row of their own, which is written whole.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pullback.ir.graph import Attrs, Op, Region, Value
from pullback.ir.ops import OPS
from pullback.passes.base import Rebuild, has_effect, with_operands
from pullback.passes.roll.track import box_shape, part_of_written

MOST_PIECES = 8
"""Pieces of one row; more of them are elements, one for each turn of another loop."""


def without_overwritten(region: Region) -> Region:
    """The region where each update goes past the one before it if that wrote to the same place, what is read there is
    what was written, and ops that nothing reads are gone. The first write then keeps no array alive, and each place is
    written once a turn."""
    new = Rebuild()
    for op in region.ops:
        current = new.current(op)
        before = current.operands[0].op if op.name in ("update", "slice") else None
        if before is None or before.name != "update":
            new.keep(op, current)
        elif op.name == "slice":
            _keep_slice(new, op, current, before)
        elif before.attrs == current.attrs:
            new.keep(op, with_operands(current, (before.operands[0], current.operands[1]), ()))
        else:
            new.keep(op, current)
    if not new.changed:
        return region
    made = new.region(region)
    return Region(made.params, tuple(_read(made)), made.results)


def _keep_slice(new: Rebuild, op: Op, current: Op, update: Op) -> None:
    """What is read of an array just written is read of what was written, if all of it is there."""
    if update.attrs == current.attrs:
        new.replace(op, [update.operands[1]])
    else:
        new.keep(op, part_of_written(update, current) or current)


def _read(region: Region) -> list[Op]:
    wanted: set[Value] = set(region.results)
    kept = []
    for op in reversed(region.ops):
        if has_effect(op) or any(r in wanted for r in op.results):
            wanted.update(op.operands)
            kept.append(op)
    return kept[::-1]


# ------------------------------------------------------------------ rows written in pieces


class _Row(NamedTuple):
    """Updates, each of what the one before gave, that write pieces of the row number `at` of an array along `axis`."""

    axis: int
    at: int
    pieces: tuple[Op, ...]

    def key(self) -> Any:
        """Equal for rows written by the same lines in the same pieces."""
        return self.axis, tuple([(op.loc, *self.within(op.attrs).values()) for op in self.pieces])

    def within(self, attrs: Attrs) -> dict[str, Any]:
        """Where in the row a piece is."""
        return self._across(attrs, 0)

    def whole(self) -> dict[str, Any]:
        """The row in the array."""
        shape = self.pieces[0].results[0].type.shape
        full = Attrs(start=(0,) * len(shape), stop=shape, step=(1,) * len(shape))
        return self._across(full, self.at)

    def _across(self, attrs: Attrs, at: int) -> dict[str, Any]:
        along = {"start": at, "stop": at + 1, "step": 1}
        return {name: (*attrs[name][: self.axis], k, *attrs[name][self.axis + 1 :]) for name, k in along.items()}


def with_whole_rows(region: Region, least: int) -> Region:
    """The region where rows that are mostly written, in a few pieces, by the same lines at least `least` times, are
    made apart and written whole."""
    rows = list(_rows(region))
    often = Counter([row.key() for row in rows])
    chosen: dict[Op, _Row] = {}
    for row in rows:
        if often[row.key()] >= least and not any(op in chosen for op in row.pieces):
            chosen.update(dict.fromkeys(row.pieces, row))
    if not chosen:
        return region
    new = Rebuild()
    made: dict[Op, tuple[Value, Value]] = {}
    for op in region.ops:
        current = new.current(op)
        within = chosen.get(op)
        new.keep(op, current if within is None else _written_whole(new, current, op, within, made))
    result = new.region(region)
    return Region(result.params, tuple(_read(result)), result.results)


def _written_whole(new: Rebuild, current: Op, op: Op, row: _Row, made: dict[Op, tuple[Value, Value]]) -> Op:
    """The update of the whole row in place of a piece; `made` has the array before the row, and the row, by update."""
    place = row.pieces.index(op)
    whole = Attrs(row.whole())
    if place == 0:
        array = current.operands[0]
        kept = _add(new, op, "slice", (array,), whole, box_shape(whole))
    else:
        array, kept = made[row.pieces[place - 1]]
    piece = _add(new, op, "update", (kept, current.operands[1]), Attrs(row.within(op.attrs)), kept.type.shape)
    made[op] = (array, piece)
    return Op(OPS["update"], (array, piece), whole, (op.results[0].type,), (), op.loc)


def _add(new: Rebuild, like: Op, name: str, operands: tuple[Value, ...], attrs: Attrs, shape: tuple[int, ...]) -> Value:
    op = Op(OPS[name], operands, attrs, (like.results[0].type.with_shape(shape),), (), like.loc)
    new.ops.append(op)
    return op.results[0]


def _rows(region: Region) -> Iterator[_Row]:
    """Rows written in pieces that are most of it, along the first axis or the last."""
    follows: dict[Value, Op] = {}
    for op in region.ops:
        if op.name == "update":
            follows.setdefault(op.operands[0], op)
    for axis in (0, -1):
        seen: set[Op] = set()
        for op in region.ops:
            if op.name == "update" and op not in seen and len(op.attrs["start"]) > 1:
                pieces = list(_in_row(op, axis % len(op.attrs["start"]), follows))
                seen.update(pieces)
                if _are_most(pieces, axis):
                    yield _Row(axis % len(op.attrs["start"]), op.attrs["start"][axis], tuple(pieces))


def _in_row(op: Op, axis: int, follows: Mapping[Value, Op]) -> Iterator[Op]:
    """The update and those after it that write to the same row."""
    at = op.attrs["start"][axis]
    following: Op | None = op
    while following is not None and following.attrs["start"][axis] == at and following.attrs["stop"][axis] == at + 1:
        yield following
        following = follows.get(following.results[0])


def _are_most(pieces: Sequence[Op], axis: int) -> bool:
    """Whether a few pieces, none of which is the row itself, are at least half of a row."""
    if not 1 <= len(pieces) <= MOST_PIECES:
        return False
    shape = pieces[0].results[0].type.shape
    row = math.prod(shape) // shape[axis]
    sizes = [math.prod(box_shape(piece.attrs)) for piece in pieces]
    return max(sizes) < row <= 2 * sum(sizes)
