"""Functions that choose elements or write to some of them."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import ShapeError, UnsupportedError
from pullback.ir.graph import Value
from pullback.ir.types import BOOL, I64
from pullback.tracer.array import TracedArray, TracedValue, new_array
from pullback.tracer.cell import read, write
from pullback.tracer.convert import decide_array
from pullback.tracer.dispatch import Entry, Refused
from pullback.tracer.dtypes import default_dtype
from pullback.tracer.functions.common import (
    array,
    axis_number,
    const,
    contents,
    finish,
    op,
    static_array,
)
from pullback.tracer.index import wrapped_index
from pullback.tracer.operands import broadcast, broadcast_shape, cast, content_of
from pullback.tracer.subscript import fitted
from pullback.tracer.trace import Content, Trace, active, dtype_of, shape_of


def _integers(trace: Trace, indices: Any) -> Content:
    """An index argument as i64; a plain or constant one is fixed."""
    if isinstance(indices, np.ndarray) and not isinstance(indices, TracedValue):
        trace.rest_on(indices)
        fixed = np.asarray(indices)
    else:
        made = array(indices)
        content = content_of(trace, made)
        if isinstance(content, Value) and content not in trace.settled:
            if made.dtype.kind not in "biu":
                raise trace.error(
                    TypeError, f"Cannot cast array data from {made.dtype} to int64: indices must be integers"
                )
            return cast(trace, content, I64)
        fixed = np.asarray(decide_array(trace, content))
    if fixed.size and fixed.dtype.kind not in "biu":
        raise trace.error(TypeError, f"Cannot cast array data from {fixed.dtype} to int64: indices must be integers")
    return fixed.astype(np.int64)


def _by_mode(trace: Trace, index: Content, n: int, axis: int, mode: str) -> Content:
    """Indices within 0..n-1 by NumPy's `mode`."""
    if mode == "clip":
        return op(trace, "clip", index, 0, max(n - 1, 0))
    if mode == "wrap":
        return op(trace, "mod", index, max(n, 1))
    return wrapped_index(trace, index, n, axis)


# ------------------------------------------------------------------ choosing


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    x, trace = array(a), active()
    if axis is None:
        x, axis = np.ravel(x), 0
    elif x.ndim == 0:
        x = np.ravel(x)
    number = axis_number(trace, axis, x.ndim)
    index = _by_mode(trace, _integers(trace, indices), x.shape[number], number, mode)
    content = content_of(trace, x)
    if not isinstance(index, Value):
        key = (slice(None),) * number + (const(index) if index.ndim else int(index),)
        picked = x[key]
        return (
            picked.copy()
            if out is None and isinstance(picked, TracedArray)
            else finish(contents(picked)[1][0], out, "np.take")
        )
    return finish(trace.apply("gather", content, index, axis=number), out, "np.take")


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x, trace = array(arr), active()
    if axis is None:
        x, axis = np.ravel(x), 0
    _number, key = _along(trace, x, indices, axis)
    return x[key]


def _along(trace: Trace, x: Any, indices: Any, axis: Any) -> tuple[int, tuple[Any, ...]]:
    """A subscript that varies the index along one axis and keeps the others."""
    index = _integers(trace, indices)
    number = axis_number(trace, axis, x.ndim)
    shape = shape_of(index)
    if len(shape) != x.ndim:
        raise trace.error(
            ShapeError, f"`indices` and `arr` must have the same number of dimensions: {shape} and {x.shape}"
        )
    key: list[Any] = []
    for k, n in enumerate(x.shape):
        if k == number:
            key.append(new_array(trace, index, lent=True))
        else:
            key.append(const(np.arange(n).reshape([-1 if j == k else 1 for j in range(x.ndim)])))
    return number, tuple(key)


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    x, trace = array(a), active()
    if axis is None:
        x, axis = np.ravel(x), 0
    chosen = const(np.flatnonzero(static_array(trace, array(condition).astype(bool), "np.compress: the condition")))
    return take(x, chosen, axis, out)


def extract(condition: Any, arr: Any) -> Any:
    mask = array(condition)
    return np.ravel(array(arr))[np.ravel(mask.astype(bool))]


def nonzero(a: Any) -> Any:
    """Where the elements are not zero: a guarded decision, since it decides shapes."""
    trace = active()
    return tuple([new_array(trace, np.array(k)) for k in _decided(trace, a).nonzero()])


def _decided(trace: Trace, a: Any) -> Any:
    x = array(a)
    return decide_array(trace, content_of(trace, x if x.dtype == BOOL else np.not_equal(x, 0)))


def flatnonzero(a: Any) -> Any:
    trace = active()
    return new_array(trace, np.flatnonzero(_decided(trace, a)))


def argwhere(a: Any) -> Any:
    trace = active()
    return new_array(trace, np.argwhere(_decided(trace, a)))


# ------------------------------------------------------------------ writing


def _target(name: str, a: Any) -> TracedArray:
    if not isinstance(a, TracedArray):
        raise active().error(
            UnsupportedError,
            f"{name} cannot write traced values into {_called(a)}; "
            "make the array inside the traced function (np.zeros, np.empty, np.copy)",
        )
    return a


def _called(a: Any) -> str:
    return "a plain NumPy array" if isinstance(a, np.ndarray) else repr(a)


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    x, trace = _target("np.put", a), active()
    index = _by_mode(trace, _integers(trace, ind), x.size, 0, mode)
    count = int(np.prod(shape_of(index), dtype=np.int64))
    values = np.ravel(array(v))
    if count == 0 or values.size == 0:
        return
    flat_index = trace.apply("reshape", index, shape=(count,)) if isinstance(index, Value) else index.reshape(-1)
    used = values if values.size == count else values[const(np.arange(count) % values.size)]
    x.flat[new_array(trace, flat_index, lent=True)] = used


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    x, trace = _target("np.put_along_axis", arr), active()
    if axis is None:
        put(x, indices, np.broadcast_to(array(values), np.shape(indices)))
        return
    _, key = _along(trace, x, indices, axis)
    x[key] = values


def place(arr: Any, mask: Any, vals: Any) -> None:
    """The n-th chosen element gets value n modulo their number, so which are chosen is a guarded decision."""
    x, trace = _target("np.place", arr), active()
    values = np.ravel(array(vals))
    if values.size == 1:
        copyto(x, values[0], "unsafe", np.reshape(array(mask), x.shape))
        return
    chosen = np.flatnonzero(_decided(trace, mask))
    if chosen.size:
        if values.size == 0:
            raise trace.error(ValueError, "Cannot insert from an empty array!")
        x.flat[const(chosen)] = values[const(np.arange(chosen.size) % values.size)]


def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Element k of a gets value k modulo their number."""
    x, trace = _target("np.putmask", a), active()
    new = np.ravel(array(values))
    if new.size == 0:
        return
    wide = new[const(np.arange(x.size) % new.size)] if new.size != x.size else new
    parts = contents(np.reshape(array(mask), x.shape), np.reshape(wide, x.shape))[1]
    _select_into(trace, x, parts[0], parts[1])


WEAK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
"""Python numbers fit every dtype of their kind or a wider one."""


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    x, trace = _target("np.copyto", dst), active()
    new = content_of(trace, src)
    python = type(src) if type(src) in (bool, int, float, complex) else getattr(src, "python", None)
    source = default_dtype(python) if python is not None else dtype_of(new)
    weak = python is not None and casting in ("same_kind", "safe") and WEAK[source.kind] <= WEAK[x.dtype.kind]
    if not weak and not np.can_cast(source, x.dtype, casting):  # type: ignore[arg-type]
        raise trace.error(
            TypeError, f"Cannot cast array data from {source!r} to {x.dtype!r} according to the rule '{casting}'"
        )
    new = fitted(trace, cast(trace, new, x.dtype), x.shape)
    if where is True:
        write(x, new if isinstance(new, Value) else np.array(new))
    else:
        _select_into(trace, x, content_of(trace, where), new)


def _select_into(trace: Trace, x: TracedArray, mask: Content, new: Content) -> None:
    shape = broadcast_shape(trace, "where", [shape_of(mask), x.shape])
    if shape != x.shape:
        raise trace.error(ShapeError, f"a mask of shape {shape_of(mask)} does not fit an array of shape {x.shape}")
    parts = (cast(trace, mask, BOOL), cast(trace, new, x.dtype), read(x))
    if not any(isinstance(p, Value) for p in parts):
        write(x, np.where(*[np.asarray(p) for p in parts]))
        return
    write(x, trace.apply("select", *[broadcast(trace, p, shape) for p in parts]))


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    x = _target("np.fill_diagonal", a)
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim == 2:
        step = x.shape[1] + 1
        end = x.size if wrap else min(x.size, x.shape[1] * x.shape[1])
    else:
        if len(set(x.shape)) != 1:
            raise ValueError("All dimensions of input must be of equal length")
        step = 1 + sum(x.shape[0] ** k for k in range(1, x.ndim))
        end = x.size
    x.flat[:end:step] = val


# ------------------------------------------------------------------ triangles, rolls


def _triangle(keep_lower: bool) -> Callable[..., Any]:
    def triangle(m: Any, k: int = 0) -> Any:
        x = array(m)
        if x.ndim < 1:
            raise ValueError("np.tril and np.triu need at least one dimension")
        columns = x.shape[-1]
        rows = x.shape[-2] if x.ndim > 1 else columns
        lower = np.tri(rows, columns, k if keep_lower else k - 1, dtype=bool)
        zero = np.zeros((), x.dtype)
        trace = active()
        mask = new_array(trace, lower if keep_lower else ~lower)
        return np.where(mask, x, new_array(trace, zero))

    return triangle


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    x, trace = array(a), active()
    if axis is None:
        return np.reshape(roll(np.ravel(x), shift, 0), x.shape)
    shifts, axes = np.broadcast_arrays(static_array(trace, shift, "np.roll: the shift"), np.asarray(axis))
    for amount, one in zip(shifts.reshape(-1).tolist(), axes.reshape(-1).tolist(), strict=True):
        number = axis_number(trace, one, x.ndim)
        n = x.shape[number]
        by = operator.index(amount) % n if n else 0
        if by:
            lead = (slice(None),) * number
            x = np.concatenate([x[(*lead, slice(n - by, n))], x[(*lead, slice(0, n - by))]], axis=number)
    return x.copy() if isinstance(x, TracedArray) else x


def resize(a: Any, new_shape: Any) -> Any:
    """Repeated copies of a, as many as are needed."""
    x = np.ravel(array(a))
    listed = (new_shape,) if isinstance(new_shape, int | np.integer) else tuple(new_shape)
    shape = tuple([operator.index(n) for n in listed])
    size = int(np.prod(shape, dtype=np.int64))
    if x.size == 0 or size == 0:
        return np.zeros_like(x, shape=shape)
    return np.reshape(x[const(np.arange(size) % x.size)], shape)


# ------------------------------------------------------------------ index sets of a shape


def _from_shape(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions that look at the shape of an array only."""

    def from_shape(arr: Any, *args: Any, **kwargs: Any) -> Any:
        trace = active()
        plain = np.broadcast_to(np.zeros((), bool), array(arr).shape)
        return tuple([new_array(trace, np.array(k)) for k in function(plain, *args, **kwargs)])

    return from_shape


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    x = array(indices)
    sizes = [operator.index(n) for n in (shape if isinstance(shape, tuple | list) else (shape,))]
    total = int(np.prod(sizes, dtype=np.int64))
    trace, (content,) = contents(x)
    flat: Any = finish(wrapped_index(trace, content, total, 0))
    parts = []
    for n in reversed(sizes) if order == "C" else sizes:
        parts.append(flat % n)
        flat = flat // n
    return tuple(reversed(parts)) if order == "C" else tuple(parts)


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    sizes = [operator.index(n) for n in (dims if isinstance(dims, tuple | list) else (dims,))]
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    trace = active()
    total: Any = None
    pairs = list(zip(multi_index, sizes, modes, strict=True))
    for k, (index, n, how) in enumerate(pairs if order == "C" else pairs[::-1]):
        part: Any = finish(_by_mode(trace, _integers(trace, index), n, k, how))
        total = part if total is None else total * n + part
    return total


FUNCTIONS: dict[Any, Entry | Refused] = {
    np.take: Entry(take),
    np.take_along_axis: Entry(take_along_axis),
    np.compress: Entry(compress),
    np.extract: Entry(extract),
    np.nonzero: Entry(nonzero),
    np.flatnonzero: Entry(flatnonzero),
    np.argwhere: Entry(argwhere),
    np.put: Entry(put, False),
    np.put_along_axis: Entry(put_along_axis, False),
    np.place: Entry(place, False),
    np.putmask: Entry(putmask, False),
    np.copyto: Entry(copyto, False),
    np.fill_diagonal: Entry(fill_diagonal, False),
    np.tril: Entry(_triangle(True)),
    np.triu: Entry(_triangle(False)),
    np.roll: Entry(roll),
    np.resize: Entry(resize),
    np.diag_indices_from: Entry(_from_shape(np.diag_indices_from)),
    np.tril_indices_from: Entry(_from_shape(np.tril_indices_from)),
    np.triu_indices_from: Entry(_from_shape(np.triu_indices_from)),
    np.unravel_index: Entry(unravel_index),
    np.ravel_multi_index: Entry(ravel_multi_index),
}
