"""Putting arrays together and taking them apart."""

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.types import DType
from pullback.tracer.array import TracedValue, new_array
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import (
    array,
    available,
    axis_number,
    axis_numbers,
    concat,
    const,
    finish,
    given,
    static_array,
)
from pullback.tracer.functions.ranges import arange, linspace
from pullback.tracer.operands import cast, content_of
from pullback.tracer.trace import Trace, active


def _parts(xs: Any) -> list[TracedValue]:
    """The arrays of a sequence argument (an array counts as the sequence of its rows)."""
    return [array(x) for x in xs]


def _joined_dtype(parts: Sequence[TracedValue], dtype: Any) -> DType:
    return np.result_type(*[p.dtype for p in parts]) if dtype is None else np.dtype(dtype)


def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    parts = _parts(arrays)
    trace = active()
    if not parts:
        raise trace.error(ValueError, "need at least one array to concatenate")
    if axis is None:
        parts, axis = [p.ravel() for p in parts], 0
    if any(p.ndim == 0 for p in parts):
        raise trace.error(ValueError, "zero-dimensional arrays cannot be concatenated")
    number = axis_number(trace, axis, parts[0].ndim)
    _check_joinable(trace, parts, number)
    wanted = _joined_dtype(parts, dtype)
    for part in parts:
        if not np.can_cast(part.dtype, wanted, casting):  # type: ignore[arg-type]
            raise trace.error(
                TypeError, f"Cannot cast array data from {part.dtype!r} to {wanted!r} according to the rule {casting!r}"
            )
    joined = [cast(trace, content_of(trace, p), wanted) for p in parts]
    if not given(out):
        return new_array(trace, concat(trace, joined, number), lent=True)
    return finish(concat(trace, joined, number), out, "np.concatenate", casting)


def _check_joinable(trace: Trace, parts: Sequence[TracedValue], axis: int) -> None:
    first = parts[0].shape
    for number, part in enumerate(parts):
        if part.ndim != len(first):
            raise trace.error(
                ShapeError,
                "all the input array dimensions except for the concatenation axis must match exactly: the array at "
                f"index 0 has shape {first} and the array at index {number} has shape {part.shape}",
            )
        for k, (n, m) in enumerate(zip(first, part.shape, strict=True)):
            if k != axis and n != m:
                raise trace.error(
                    ShapeError,
                    "all the input array dimensions except for the concatenation axis must match exactly, but along "
                    f"dimension {k}, the array at index 0 has size {n} and the array at index {number} has size {m} "
                    f"(shapes {first} and {part.shape})",
                )


def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    parts = _parts(arrays)
    trace = active()
    if not parts:
        raise trace.error(ValueError, "need at least one array to stack")
    if len({p.shape for p in parts}) != 1:
        raise trace.error(
            ShapeError, f"all input arrays must have the same shape, got {', '.join(str(p.shape) for p in parts)}"
        )
    number = axis_number(trace, axis, parts[0].ndim + 1)
    rows = [np.expand_dims(p, number) for p in parts]
    return concatenate(rows, axis=number, out=out, dtype=dtype, casting=casting)


def unstack(x: Any, /, *, axis: int = 0) -> Any:
    a = array(x)
    return tuple(np.moveaxis(a, axis, 0))


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return concatenate([np.atleast_2d(p) for p in _parts(tup)], 0, dtype=dtype, casting=casting)


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    parts = [np.atleast_1d(p) for p in _parts(tup)]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup: Any) -> Any:
    return concatenate([np.atleast_3d(p) for p in _parts(tup)], 2)


def column_stack(tup: Any) -> Any:
    return concatenate([p if p.ndim >= 2 else np.atleast_2d(p).T for p in _parts(tup)], 1)


def block(arrays: Any) -> Any:
    """Nested lists of blocks; the innermost are joined along the last axis, the next ones along the one before."""
    depth = _depth(arrays)
    ndim = max(depth, _largest_ndim(arrays))
    return _block(arrays, depth, ndim)


def _depth(x: Any) -> int:
    count = 0
    while isinstance(x, list):
        if not x:
            raise ValueError("List at arrays cannot be empty")
        x, count = x[0], count + 1
    return count


def _largest_ndim(x: Any) -> int:
    pending, largest = [x], 0
    while pending:
        top = pending.pop()
        if isinstance(top, list):
            pending.extend(top)
        else:
            largest = max(largest, np.ndim(top))
    return largest


def _block(x: Any, depth: int, ndim: int) -> Any:
    if not isinstance(x, list):
        made = array(x)
        return np.reshape(made, (1,) * (ndim - made.ndim) + made.shape).copy()
    return concatenate([_block(part, depth - 1, ndim) for part in x], axis=-depth)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        return concatenate([np.ravel(array(arr)), np.ravel(array(values))])
    return concatenate([array(arr), array(values)], axis=axis)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """At constant places."""
    x, trace = array(arr), active()
    if axis is None:
        x, axis = np.ravel(x), 0
    number = axis_number(trace, axis, x.ndim)
    n = x.shape[number]
    new = array(values).astype(x.dtype)
    places, single = _insert_places(trace, obj, n, new, number, x)
    # NumPy's own function says where every element goes when it inserts numbers into numbers
    source = np.insert(np.arange(n), places, n + np.arange(len(places)))
    shape = (*x.shape[:number], len(places), *x.shape[number + 1 :])
    if single and new.ndim:
        new = np.moveaxis(new, 0, number) if new.ndim == x.ndim else new
    wide = np.broadcast_to(new, shape)
    return np.take(np.concatenate([x, wide], axis=number), const(source), axis=number)


def _insert_places(trace: Trace, obj: Any, n: int, new: Any, axis: int, x: Any) -> tuple[Any, bool]:
    """The places, one for each inserted slice, and whether one integer was given."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n)), False
    places = static_array(trace, obj, "np.insert: the index")
    if places.dtype == bool:
        places = np.flatnonzero(places)
    if places.ndim == 0:
        index = int(places)
        if not -n <= index <= n:
            raise trace.error(IndexError, f"index {index} is out of bounds for axis {axis} with size {n}")
        index += n if index < 0 else 0
        count = new.shape[0] if new.ndim == x.ndim else 1
        return np.full(count, index), True
    if places.size == 1 and new.ndim == x.ndim:
        return np.full(new.shape[axis], int(places.reshape(-1)[0])), False
    return places.astype(int), False


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    x, trace = array(arr), active()
    if axis is None:
        x, axis = np.ravel(x), 0
    number = axis_number(trace, axis, x.ndim)
    gone = obj if isinstance(obj, slice) else static_array(trace, obj, "np.delete: the index")
    if not isinstance(gone, slice) and gone.size == 0:
        gone = gone.astype(np.int64)  # the dtype of an empty list is floating
    kept = np.delete(np.arange(x.shape[number]), gone)
    return np.take(x, const(kept), axis=number)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Which ends are zero is a guarded decision, line by line from each end; of several axes each is trimmed."""
    x = array(filt)
    bounds = [slice(None)] * x.ndim
    for number in axis_numbers(active(), axis, x.ndim):
        others = tuple([k for k in range(x.ndim) if k != number])
        filled = np.any(x != 0, axis=others) if others else x != 0
        first, last = 0, x.shape[number]
        while "f" in trim.lower() and first < last and not bool(filled[first]):
            first += 1
        while "b" in trim.lower() and last > first and not bool(filled[last - 1]):
            last -= 1
        bounds[number] = slice(first, last)
    return x[tuple(bounds)] if bounds else x


# ------------------------------------------------------------------ splitting: views


def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    x, trace = array(ary), active()
    number = axis_number(trace, axis, x.ndim)
    bounds = _split_bounds(trace, indices_or_sections, x.shape[number])
    lead = (slice(None),) * number
    return [x[(*lead, slice(a, b))] for a, b in bounds]


def _split_bounds(trace: Trace, sections: Any, n: int) -> list[tuple[int, int]]:
    if np.ndim(sections) == 0:
        count = operator.index(sections)
        if count <= 0:
            raise trace.error(ValueError, "number sections must be larger than 0.")
        each, more = divmod(n, count)
        sizes = [each + 1] * more + [each] * (count - more)
        ends = np.cumsum([0, *sizes]).tolist()
        return list(itertools.pairwise(ends))
    marks = static_array(trace, sections, "np.split: the indices").tolist()
    ends = [0, *marks, n]
    return [(slice(a, b).indices(n)[0], max(slice(a, b).indices(n)[:2])) for a, b in itertools.pairwise(ends)]


def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    x, trace = array(ary), active()
    if np.ndim(indices_or_sections) == 0:
        n = x.shape[axis_number(trace, axis, x.ndim)]
        if n % operator.index(indices_or_sections):
            raise trace.error(
                ValueError, f"array split does not result in an equal division: {n} into {indices_or_sections}"
            )
    return array_split(x, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    x = array(ary)
    if x.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    x = array(ary)
    if x.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(x, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    x = array(ary)
    if x.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(x, indices_or_sections, 2)


# ------------------------------------------------------------------ r_ and c_


class Concatenator:
    """`np.r_` and `np.c_` inside a trace: slices become ranges, the rest is joined along `axis`."""

    __slots__ = ("_axis", "_ndmin", "_trans1d")

    def __init__(self, axis: int, ndmin: int, trans1d: int) -> None:
        self._axis = axis
        self._ndmin = ndmin
        self._trans1d = trans1d

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self._axis, self._ndmin, self._trans1d
        if items and isinstance(items[0], str):
            if items[0] in ("r", "c"):
                raise ValueError("np.r_ with 'r' or 'c' gives a matrix, which is not followed; use np.block")
            numbers = [int(n) for n in items.pop(0).split(",")]
            axis, ndmin, trans1d = (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])
        parts = [self._part(item, ndmin, trans1d) for item in items]
        dtype = _list_dtype(items, parts)
        return concatenate([p.astype(dtype, copy=False) for p in parts], axis=axis)

    def _part(self, item: Any, ndmin: int, trans1d: int) -> Any:
        made = _range(item) if isinstance(item, slice) else array(item)
        own = made.ndim
        if own >= ndmin:
            return made
        made = np.reshape(made, (1,) * (ndmin - max(own, 1)) + (made.shape or (1,)))
        if trans1d != -1 and max(own, 1) < ndmin:
            k = trans1d + ndmin - max(own, 1) + 1 if trans1d < 0 else trans1d
            made = np.transpose(made, _placed(ndmin - max(own, 1), max(own, 1), k))
        return made


def _placed(lead: int, own: int, first: int) -> list[int]:
    """The axes of an array with `lead` axes added in front, its own axes moved to start at `first`."""
    added, kept = list(range(lead)), list(range(lead, lead + own))
    return added[:first] + kept + added[first:]


def _range(item: slice) -> Any:
    start, stop, step = item.start or 0, item.stop, 1 if item.step is None else item.step
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


def _list_dtype(items: list[Any], parts: list[Any]) -> DType:
    """Bare Python numbers take the dtype of the arrays beside them."""
    keys = [item if type(item) in (int, float, complex) else p.dtype for item, p in zip(items, parts, strict=True)]
    return np.result_type(*keys)


R_ = Concatenator(0, 1, -1)
C_ = Concatenator(-1, 2, 0)

FUNCTIONS: dict[Any, Entry] = {
    function: Entry(implementation, not views)
    for function, implementation, views in [
        (np.concatenate, concatenate, False),
        (np.stack, stack, False),
        (np.vstack, vstack, False),
        (np.hstack, hstack, False),
        (np.dstack, dstack, False),
        (np.column_stack, column_stack, False),
        (np.block, block, False),
        (np.append, append, False),
        (np.insert, insert, False),
        (np.delete, delete, False),
        (np.trim_zeros, trim_zeros, True),
        (np.array_split, array_split, True),
        (np.split, split, True),
        (np.hsplit, hsplit, True),
        (np.vsplit, vsplit, True),
        (np.dsplit, dsplit, True),
    ]
}
FUNCTIONS |= available("unstack", Entry(unstack, False))
