"""Reading a subscript: NumPy's index grammar, turned into a strided view and at most a set of index arrays."""

from typing import Any

import numpy as np

from pullback.errors import IndexRangeError, UnsupportedError
from pullback.ir.graph import Value
from pullback.ir.types import Shape
from pullback.record import record
from pullback.tracer.array import TracedScalar, TracedValue
from pullback.tracer.cell import content_in
from pullback.tracer.convert import decide_array
from pullback.tracer.evaluate import present
from pullback.tracer.operands import as_array, content_of, plain_of
from pullback.tracer.steps import Strided
from pullback.tracer.trace import Array, Content, Trace, dtype_of, shape_of


@record(frozen=True)
class Advanced:
    """An index array for one axis of the view that the basic part makes."""

    axis: int
    index: Content


@record(frozen=True)
class Parsed:
    """A whole subscript.

    view : the basic part (slices, integers, new axes) as a view of the indexed array
    advanced : index arrays, each for one axis of that view, in order of axes
    adjacent : whether the index arrays stand side by side, so that their result axes stay where they are
    scalar : whether every axis was given an integer, so that NumPy returns a scalar
    """

    view: Strided
    advanced: tuple[Advanced, ...]
    adjacent: bool
    scalar: bool


class _Place:
    """An item of a subscript that takes axes of the array: an index array, or a mask as several."""

    __slots__ = ("arrays",)

    def __init__(self, arrays: list[Content]) -> None:
        self.arrays = arrays


def parse(trace: Trace, view: Strided, key: Any) -> Parsed:
    """Take `key` apart for an array that is seen through `view`.

    Raises
    ------
    IndexRangeError : too many indices, or one out of range.
    """
    items = _expand(trace, _items(trace, key), len(view.axes))
    has_arrays = any(isinstance(i, _Place) for i in items)
    advanced: list[Advanced] = []
    positions: list[int] = []
    axis, scalar = 0, bool(items) or not view.axes
    for number, item in enumerate(items):
        if item is None:
            view, axis, scalar = view.inserted(axis), axis + 1, False
        elif item is _NOTHING:
            if has_arrays:
                raise trace.error(
                    UnsupportedError, "a single False beside index arrays is not followed; use a slice 0:0"
                )
            view, axis, scalar = view.inserted(axis).sliced(axis, 0, 1, 0), axis + 1, False
        elif isinstance(item, slice):
            view, axis, scalar = _sliced(trace, view, axis, item), axis + 1, False
        elif isinstance(item, int) and not has_arrays:
            view = view.fixed(axis, _in_range(trace, item, view, axis))
        else:
            arrays = item.arrays if isinstance(item, _Place) else [np.asarray(item)]
            if isinstance(item, _Mask):
                item.check(trace, view, axis)
            for index in arrays:
                advanced.append(Advanced(axis, index))
                axis += 1
            positions.append(number)
            scalar = scalar and all(shape_of(a) == () for a in arrays)
    adjacent = not positions or positions[-1] - positions[0] == len(positions) - 1
    return Parsed(view, tuple(advanced), adjacent, scalar and axis == len(view.axes))


def _items(trace: Trace, key: Any) -> list[Any]:
    """The items of a subscript: ints, slices, None, Ellipsis, `_Place`."""
    keys = key if type(key) is tuple else (key,)
    return [_item(trace, k) for k in keys]


def _item(trace: Trace, k: Any) -> Any:
    kind = type(k)
    if kind is int or kind is slice or k is None or k is Ellipsis:
        return k
    if isinstance(k, bool | np.bool_) and not isinstance(k, TracedValue):
        return _truth(bool(k))
    if isinstance(k, np.integer) and not isinstance(k, TracedValue):
        return int(k)
    if isinstance(k, TracedValue):
        return _traced_item(trace, k)
    if hasattr(k, "__traced_array__"):
        return _traced_item(trace, k.__traced_array__())
    if isinstance(k, np.ndarray):
        return _array_item(trace, _fixed_array(trace, k))
    if isinstance(k, list | tuple | range):
        array = as_array(list(k))
        if array.size == 0:
            return _Place([np.zeros(array.shape, np.int64)])
        return _traced_item(trace, array)
    if hasattr(k, "__index__"):
        return int(k.__index__())
    if hasattr(k, "__array__"):
        return _array_item(trace, _fixed_array(trace, plain_of(k)))
    raise trace.error(
        IndexRangeError,
        "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are valid indices, "
        f"got {type(k).__name__}",
    )


def _fixed_array(trace: Trace, array: Array) -> Array:
    """An index array from outside the function: its numbers shape the program, so they must not change."""
    trace.rest_on(array)
    return array


def _traced_item(trace: Trace, k: TracedValue) -> Any:
    content = content_in(trace, k)
    if k._dtype.kind not in "biu":
        raise trace.error(
            IndexRangeError, f"arrays used as indices must be of integer (or boolean) type, got {k._dtype}"
        )
    if isinstance(content, Value) and content in trace.settled:
        content = _fixed_array(trace, np.asarray(present(trace, content)))
    if not isinstance(content, Value):
        if k._dtype.kind != "b" and content.shape == ():
            return int(content)
        return _array_item(trace, content)
    if k._dtype.kind == "b":
        if isinstance(k, TracedScalar):
            return _truth(bool(k))
        return _array_item(trace, decide_array(trace, content))
    return _Place([content])


def _array_item(trace: Trace, array: Array) -> Any:
    if array.dtype.kind == "b":
        return _Mask(array) if array.ndim else _truth(bool(array))
    if array.dtype.kind not in "iu":
        if array.size:
            raise trace.error(
                IndexRangeError, f"arrays used as indices must be of integer (or boolean) type, got {array.dtype}"
            )
        array = array.astype(np.int64)
    return int(array) if array.shape == () else _Place([array])


class _Mask(_Place):
    """A constant mask: the places where it holds, one index array for each of its axes."""

    __slots__ = ("shape",)

    def __init__(self, mask: Array) -> None:
        super().__init__(list(mask.nonzero()))
        self.shape: Shape = mask.shape

    def check(self, trace: Trace, view: Strided, axis: int) -> None:
        for k, n in enumerate(self.shape):
            size = view.axes[axis + k].length
            if n != size:
                raise trace.error(
                    IndexRangeError,
                    f"boolean index did not match indexed array along axis {axis + k}; size of axis is {size} but size "
                    f"of corresponding boolean axis is {n}",
                )


_NOTHING = object()
"""A single False as an index: a new axis of no elements."""


def _truth(value: bool) -> Any:
    """A single True as an index is a new axis."""
    return None if value else _NOTHING


def _expand(trace: Trace, items: list[Any], ndim: int) -> list[Any]:
    """Replace the ellipsis by full slices; add those that are left out at the end."""
    taken, ellipses = 0, 0
    for item in items:
        if item is Ellipsis:
            ellipses += 1
        elif item is not None and item is not _NOTHING:
            taken += len(item.arrays) if isinstance(item, _Place) else 1
    if taken > ndim:
        raise trace.error(
            IndexRangeError, f"too many indices for array: array is {ndim}-dimensional, but {taken} were indexed"
        )
    if ellipses > 1:
        raise trace.error(IndexRangeError, "an index can only have a single ellipsis ('...')")
    full = [slice(None)] * (ndim - taken)
    if not ellipses:
        return items + full
    at = next(k for k, i in enumerate(items) if i is Ellipsis)
    return items[:at] + full + items[at + 1 :]


def _sliced(trace: Trace, view: Strided, axis: int, item: slice) -> Strided:
    if item.start is None and item.stop is None and item.step is None:
        return view
    try:
        start, stop, step = item.indices(view.axes[axis].length)
    except TypeError as error:
        raise trace.error(IndexRangeError, f"slice indices must be integers or None: {error}") from None
    length = len(range(start, stop, step))
    return view.sliced(axis, start, step, length)


def _in_range(trace: Trace, index: int, view: Strided, axis: int) -> int:
    n = view.axes[axis].length
    if not -n <= index < n:
        raise trace.error(IndexRangeError, f"index {index} is out of bounds for axis {axis} with size {n}")
    return index + n if index < 0 else index


def wrapped_index(trace: Trace, index: Content, n: int, axis: int) -> Content:
    """An index array as i64 within 0..n-1; out of range is an error at once, or in the call for a traced index."""
    dtype = dtype_of(index)
    if not isinstance(index, Value):
        fixed = index.astype(np.int64, copy=False)
        if fixed.size and not (fixed.min() >= -n and fixed.max() < n):
            bad = fixed[(fixed < -n) | (fixed >= n)][0] if fixed.shape else fixed
            raise trace.error(IndexRangeError, f"index {bad} is out of bounds for axis {axis} with size {n}")
        return np.where(fixed < 0, fixed + n, fixed)
    wide = index if dtype == np.int64 else trace.apply("cast", index, dtype=np.dtype(np.int64))
    shape = shape_of(wide)
    size = trace.full(np.dtype(np.int64), shape, n)
    negative = trace.apply("less", wide, trace.full(np.dtype(np.int64), shape, 0))
    wrapped = trace.apply("select", negative, trace.apply("add", wide, size), wide)
    low = trace.apply("greater_equal", wrapped, trace.full(np.dtype(np.int64), shape, 0))
    inside = trace.apply("bitwise_and", low, trace.apply("less", wrapped, size))
    trace.check(inside, f"index is out of bounds for axis {axis} with size {n}")
    return wrapped


def mask_of(trace: Trace, key: Any) -> TracedValue | None:
    """The boolean mask that `key` is, alone, when it depends on the arguments."""
    if type(key) is tuple and len(key) == 1:
        key = key[0]
    if not isinstance(key, TracedValue) or key._dtype.kind != "b" or isinstance(key, TracedScalar):
        return None
    content = content_of(trace, key)
    return key if isinstance(content, Value) and content not in trace.settled else None
