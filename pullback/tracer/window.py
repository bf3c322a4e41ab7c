"""Slices whose bounds have no number yet: `x[i : i + 3]` and `A[i, :j]` inside the body of a compiled loop.

Where the two bounds are a constant apart, the slice is a window of known length, a view like any other. Where they are
not, the slice grows with the loop, and its length is no shape: it becomes a `Selection` by a mask over positions.
"""

from typing import Any

import numpy as np

from pullback.errors import ConcretizationError, UnsupportedError
from pullback.ir.graph import Value
from pullback.ir.types import I64
from pullback.tracer.advanced import Picked, fold
from pullback.tracer.array import TracedArray, TracedScalar, TracedValue, new_array
from pullback.tracer.cell import INNER_WRITE
from pullback.tracer.evaluate import present
from pullback.tracer.index import Advanced, Parsed
from pullback.tracer.operands import broadcast, cast, content_of
from pullback.tracer.selection import Selection, assign, select_where
from pullback.tracer.steps import Strided
from pullback.tracer.trace import Content, Trace


def has_open_slice(trace: Trace, key: Any) -> bool:
    """Whether a slice in `key` has a bound that is traced without a value."""
    items = key if type(key) is tuple else (key,)
    return any(type(item) is slice and (_is_open(trace, item.start) or _is_open(trace, item.stop)) for item in items)


def _is_open(trace: Trace, bound: Any) -> bool:
    if not isinstance(bound, TracedScalar):
        return False
    content = content_of(trace, bound)
    if not isinstance(content, Value):
        return False
    try:
        present(trace, content)
    except ConcretizationError:
        return True
    return False


def get_window(trace: Trace, x: TracedValue, key: Any) -> TracedArray | Selection:
    """`x[key]`: a view where every length is known, else the elements chosen by a mask."""
    view, mask = _window(trace, x, key)
    return view if mask is None else select_where(trace, view, mask)


def set_window(trace: Trace, x: TracedArray, key: Any, value: Any) -> None:
    """`x[key] = value`."""
    if x._cell.trace is not trace:
        raise trace.error(UnsupportedError, INNER_WRITE)
    view, mask = _window(trace, x, key)
    if mask is None:
        view[...] = value
    elif not assign(trace, view, mask, value):
        raise trace.error(
            UnsupportedError,
            "x[:j] = values with a bound j that has no number yet takes one number, or values over the same bounds "
            "(x[:j] = y[:j] + 1)",
        )


def _window(trace: Trace, x: TracedValue, key: Any) -> tuple[TracedArray, TracedArray | None]:
    """The view with the closed part of the subscript and the windows of known length; a mask for a growing slice."""
    items = list(key) if type(key) is tuple else [key]
    if not all(_is_simple(item) for item in items) or Ellipsis in items[:-1]:
        raise trace.error(
            UnsupportedError, "a slice with a bound that has no number yet goes with integers and other slices only"
        )
    open_slices = []
    for number, item in enumerate(items):
        if type(item) is slice and (_is_open(trace, item.start) or _is_open(trace, item.stop)):
            axis = sum(type(other) is slice for other in items[:number])
            open_slices.append((axis, item))
            items[number] = slice(None)
    view: Any = trace.dispatch.getitem(x, tuple(items))
    if view._cell.trace is not trace:  # an array of the trace around this one: its values come in as a copy
        view = new_array(trace, content_of(trace, view))
    mask: TracedArray | None = None
    for axis, item in open_slices:
        n = view.shape[axis]
        if item.step not in (None, 1):
            raise trace.error(UnsupportedError, "a slice with a bound that has no number yet has step 1")
        length = _constant_length(trace, item, n)
        if length is not None:
            view = _slide(trace, view, axis, item.start, length)
        elif axis or mask is not None:
            raise trace.error(
                UnsupportedError,
                "a slice whose length changes in a compiled loop is followed along the first axis of what the other "
                "indices leave; use np.where with a mask over positions for others",
            )
        else:
            mask = new_array(trace, _position_mask(trace, item, n))
    return view, mask


def _is_simple(item: Any) -> bool:
    return type(item) in (int, slice) or item is Ellipsis or isinstance(item, TracedScalar | np.integer)


def _constant_length(trace: Trace, item: slice, n: int) -> int | None:
    """How far the bounds are apart, where that does not depend on anything."""
    if item.start is None or item.stop is None:
        return None
    (first, low), (last, high) = _affine(trace, item.start), _affine(trace, item.stop)
    return max(high - low, 0) if first is last and 0 <= high - low <= n else None


def _affine(trace: Trace, bound: Any) -> tuple[Value | None, int]:
    """A bound as a value plus a constant, by looking through additions and subtractions of constants."""
    content: Any = content_of(trace, bound)
    offset = 0
    while isinstance(content, Value):
        op = content.op
        number = None if op is None or op.name not in ("add", "sub", "cast") else _literal(op.operands[-1])
        if op is not None and op.name == "cast" and op.operands[0].type.dtype.kind in "iu":
            content = op.operands[0]
        elif op is not None and number is not None and op.name in ("add", "sub"):
            offset += number if op.name == "add" else -number
            content = op.operands[0]
        elif op is not None and op.name == "add" and _literal(op.operands[0]) is not None:
            offset += _literal(op.operands[0]) or 0
            content = op.operands[1]
        else:
            return content, offset
    return None, offset + int(content)


def _literal(value: Value) -> int | None:
    if value.op is None or value.op.name != "constant":
        return None
    return int(value.op.attrs["value"].array)


def _slide(trace: Trace, view: TracedArray, axis: int, start: Any, length: int) -> TracedArray:
    """The view of `length` elements of `axis` from `start` on, which must lie within it."""
    low = cast(trace, content_of(trace, start), I64)
    index = trace.apply("add", broadcast(trace, low, (length,)), np.arange(length))
    whole = Strided.whole(view._shape)
    plan = fold(trace, view._shape, Parsed(whole, (Advanced(axis, index),), True, False))
    return TracedArray(view._cell, (*view._steps, _Window(view._shape, plan, ())))


class _Window(Picked):
    """A sliding view: as `Picked`, but the axis stays."""

    def strides(self, base: tuple[int, ...]) -> tuple[int, ...]:
        return base


def _position_mask(trace: Trace, item: slice, n: int) -> Content:
    """Which of n positions lie between the bounds; a negative bound counts from the end."""
    places, tests = np.arange(n), []
    if item.start is not None and not (type(item.start) is int and item.start == 0):
        tests.append(trace.apply("greater_equal", places, broadcast(trace, _from_start(trace, item.start, n), (n,))))
    if item.stop is not None:
        tests.append(trace.apply("less", places, broadcast(trace, _from_start(trace, item.stop, n), (n,))))
    return tests[0] if len(tests) == 1 else trace.apply("bitwise_and", *tests)


def _from_start(trace: Trace, bound: Any, n: int) -> Content:
    content = cast(trace, content_of(trace, bound), I64)
    if not isinstance(content, Value):
        return np.asarray(int(content) + n if content < 0 else int(content))
    key = (content, "from start", n)  # the same bound gives the same value, so that equal slices have the same mask
    known: Content | None = trace.memo.get(key)
    if known is None:
        negative = trace.apply("less", content, np.zeros((), I64))
        moved = trace.apply("add", content, np.asarray(n))
        known = trace.memo[key] = trace.apply("select", negative, moved, content)
    return known
