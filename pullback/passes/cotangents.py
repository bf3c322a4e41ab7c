"""The cotangents collected so far in a reverse walk, summed per value.

Most contributions are simply added. What comes through `slice` and `gather` covers a part of the value only, so it is
kept aside until the value's turn comes, and then put together in the cheapest way: slices that tile the value are
concatenated, wide ones are padded and added, narrow ones are added in place, so that reading n elements one by one
costs n and not n squared.
"""

from collections.abc import Sequence

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Value
from pullback.ir.opdef import Linear
from pullback.passes.strong_zeros import CHOICE, KINK, Marked, plus

Part = tuple[Op, Marked]

MOST_PIECES = 16  # a concatenation of more pieces costs more than adding them in place
NARROW = 8  # a slice is narrow when the value is at least this many times larger ...
SMALL = 64  # ... and has at least this many elements


class Cotangents:
    """Cotangents by value. `take` gives the sum and forgets it."""

    def __init__(self, f: Emitter) -> None:
        self._f = f
        self._whole: dict[Value, Marked] = {}
        self._parts: dict[Value, list[Part]] = {}

    def add(self, value: Value, ct: Marked) -> None:
        self._whole[value] = plus(self._whole.get(value), ct)

    def add_part(self, value: Value, op: Op, ct: Marked) -> None:
        """The cotangent `ct` of the result of a `slice` or `gather` of `value`."""
        self._parts.setdefault(value, []).append((op, ct))

    def take(self, value: Value) -> Marked | None:
        whole = self._whole.pop(value, None)
        parts = self._parts.pop(value, None)
        if parts is None:
            return whole
        slices = _merge_equal([part for part in parts if part[0].name == "slice"])
        gathers = [part for part in parts if part[0].name == "gather"]
        total = _tiled(self._f, slices, value) if whole is None and not gathers else None
        if total is not None:
            return total
        narrow = [part for part in slices if _is_narrow(part[0])]
        for op, ct in slices:
            if not _is_narrow(op):
                total = plus(total, _padded(self._f, op, ct))
        if whole is not None:
            total = plus(total, whole)
        for op, ct in narrow:
            total = _added_in_place(self._f, op, total, ct)
        for op, ct in gathers:
            total = _scattered(self._f, op, total, ct)
        return total


def is_part(op: Op) -> bool:
    return op.name in ("slice", "gather")


def _is_narrow(op: Op) -> bool:
    whole, part = op.operands[0].type.size, op.results[0].type.size
    return whole >= SMALL and part * NARROW <= whole


def _merge_equal(parts: Sequence[Part]) -> list[Part]:
    """One part for each different slice."""
    merged: dict[object, Part] = {}
    for op, ct in parts:
        key = op.attrs.key()
        merged[key] = (op, plus(merged[key][1], ct)) if key in merged else (op, ct)
    return list(merged.values())


def _padded(f: Emitter, op: Op, ct: Marked) -> Marked:
    assert isinstance(op.opdef.derivative, Linear)
    (total,) = op.opdef.derivative.transpose(f, op, ct.expr)
    assert total is not None
    return Marked(total, max(KINK, ct.zeros) if total is not ct.expr else ct.zeros)


def _added_in_place(f: Emitter, op: Op, total: Marked | None, ct: Marked) -> Marked:
    if total is None:
        return Marked(f.op("update", f.full(op.operands[0].type, 0), ct.expr, **op.attrs), max(KINK, ct.zeros))
    there = f.op("slice", total.expr, **op.attrs)
    return Marked(f.op("update", total.expr, there + ct.expr, **op.attrs), total.zeros)


def _scattered(f: Emitter, op: Op, total: Marked | None, ct: Marked) -> Marked:
    base = f.full(op.operands[0].type, 0) if total is None else total.expr
    idx = f.wrap(op.operands[1])
    return Marked(f.op("scatter_add", base, idx, ct.expr, **op.attrs), CHOICE if total is None else total.zeros)


def _tiled(f: Emitter, parts: Sequence[Part], value: Value) -> Marked | None:
    axis = tiled_axis([op for op, _ in parts], value)
    if axis is None:
        return None
    ordered = sorted(parts, key=lambda part: int(part[0].attrs["start"][axis]))
    pieces: list[Expr] = [ct.expr for _, ct in ordered]
    return Marked(f.op("concatenate", *pieces, axis=axis), max(ct.zeros for _, ct in ordered))


def tiled_axis(slices: Sequence[Op], value: Value) -> int | None:
    """The axis along which the slices cover the value without gap or overlap, in pieces few enough to concatenate."""
    if not 2 <= len(slices) <= MOST_PIECES:
        return None
    axis = _cut_axis(slices[0].attrs, value.type.shape)
    if axis is None or any(_cut_axis(op.attrs, value.type.shape) != axis for op in slices):
        return None
    ranges = sorted((op.attrs["start"][axis], op.attrs["stop"][axis]) for op in slices)
    edges = [0, *(stop for _, stop in ranges)]
    covered = edges[:-1] == [start for start, _ in ranges] and edges[-1] == value.type.shape[axis]
    return axis if covered else None


def _cut_axis(attrs: Attrs, shape: Sequence[int]) -> int | None:
    """The only axis that a slice shortens, by a range without steps; None where there is no such axis."""
    rows = list(zip(attrs["start"], attrs["stop"], attrs["step"], shape, strict=True))
    cut = [k for k, (start, stop, _, n) in enumerate(rows) if (start, stop) != (0, n)]
    if len(cut) != 1 or any(step != 1 for _, _, step, _ in rows):
        return None
    return cut[0]
