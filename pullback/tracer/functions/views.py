"""Views that are more than a reshape: broadcasts, diagonals, windows, the parts of complex numbers."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError, UnsupportedError
from pullback.ir.graph import Literal
from pullback.ir.types import Shape, real_dtype
from pullback.tracer.array import TracedScalar, TracedValue, new_array, new_scalar
from pullback.tracer.cell import element_strides
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, axis_number, const, contents
from pullback.tracer.functions.shapes import as_tuple, permuted, ravel, strided, view, written
from pullback.tracer.operands import as_array
from pullback.tracer.steps import Gathered, Locked, Part, Reshaped, Strided
from pullback.tracer.trace import Content, active


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """A read-only view."""
    x: Any = as_array(array)
    target = tuple([operator.index(n) for n in shape]) if isinstance(shape, tuple | list) else (operator.index(shape),)
    fits = len(x.shape) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(x.shape), reversed(target), strict=False)
    )
    if not fits:
        raise active().error(
            ShapeError,
            "operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{written(x.shape)} and requested shape {written(target)}",
        )
    if isinstance(x, TracedScalar):
        x = view(x, Strided.whole(()))
    return locked(strided(x, lambda tail: tail.stretched(target)))


def locked(x: Any) -> Any:
    """The same view, read-only."""
    return view(x, Locked(x.shape))


def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    made = [array(a) for a in args]
    shape = _common_shape([x.shape for x in made])
    return tuple([x if x.shape == shape else broadcast_to(x, shape) for x in made])


def _common_shape(shapes: Sequence[Shape]) -> Shape:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise active().error(ShapeError, str(error)) from None


def diagonal(a: Any, offset: int = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """A read-only view of a diagonal."""
    return locked(open_diagonal(a, offset, axis1, axis2))


def open_diagonal(a: Any, offset: int = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """A view of a diagonal that may be written to: a strided run through the two axes merged."""
    x = array(a)
    trace = active()
    if x.ndim < 2:
        raise trace.error(ValueError, "diag requires an array of at least two dimensions")
    i, j = axis_number(trace, axis1, x.ndim), axis_number(trace, axis2, x.ndim)
    if i == j:
        raise trace.error(ValueError, "axis1 and axis2 cannot be the same")
    perm = [*[k for k in range(x.ndim) if k not in (i, j)], i, j]
    turned = permuted(x, perm)
    rows, columns = turned.shape[-2:]
    offset = operator.index(offset)
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = offset if offset >= 0 else -offset * columns
    merged = view(turned, Reshaped(turned.shape, (*turned.shape[:-2], rows * columns)))
    last = turned.ndim - 2
    return strided(merged, lambda tail: tail.sliced(last, start if length else 0, columns + 1, length))


def diag(v: Any, k: int = 0) -> Any:
    x = array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    offset = operator.index(k)
    n = x.size + abs(offset)
    made = np.zeros((n, n), x.dtype)
    trace = active()
    target = new_array(trace, made)
    rows = const(np.arange(x.size) + max(-offset, 0))
    target[rows, rows + offset] = x
    return target


def diagflat(v: Any, k: int = 0) -> Any:
    return diag(ravel(v), k)


def as_strided(
    x: Any,
    shape: Any = None,
    strides: Any = None,
    subok: bool = False,
    writeable: bool = True,
    *,
    check_bounds: Any = None,
) -> Any:
    """Any view by strides in bytes, as a gather of fixed places, which must all be those of elements."""
    a = array(x)
    target = a.shape if shape is None else tuple([operator.index(n) for n in shape])
    steps = a.strides if strides is None else tuple([operator.index(s) for s in strides])
    if any(s % a.itemsize for s in steps):
        raise active().error(
            UnsupportedError, "np.lib.stride_tricks.as_strided: a stride is not a multiple of the item size"
        )
    return _windowed(a, target, tuple([s // a.itemsize for s in steps]), writeable)


def _windowed(a: TracedValue, shape: Shape, strides: tuple[int, ...], writeable: bool) -> Any:
    """Places given by strides in memory, found among the elements of `a`."""
    memory = _memory_places(a).reshape(-1)
    first = int(memory[0]) if memory.size else 0
    wanted = np.full(shape, first, np.int64)
    for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
        wanted = wanted + (np.arange(n) * s).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    sorted_places = np.argsort(memory, kind="stable")
    found = np.searchsorted(memory[sorted_places], wanted)
    places = sorted_places[np.minimum(found, max(memory.size - 1, 0))] if memory.size else wanted
    if wanted.size and not (memory.size and bool((memory[places] == wanted).all())):
        raise active().error(
            UnsupportedError, "np.lib.stride_tricks.as_strided: it reaches outside the elements of the array"
        )
    distinct = len(np.unique(places)) == places.size
    return view(a, Gathered(Literal(places), strides, writeable and distinct))


def _memory_places(a: TracedValue) -> Any:
    """Where in memory, in elements from the start, each element of `a` lies."""
    places = np.zeros(a.shape, np.int64)
    for axis, (n, s) in enumerate(zip(a.shape, element_strides(a), strict=True)):
        places = places + (np.arange(n) * s).reshape([-1 if k == axis else 1 for k in range(a.ndim)])
    return places


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    a = array(x)
    trace = active()
    window = tuple([operator.index(n) for n in as_tuple(window_shape)])
    axes = tuple(range(a.ndim)) if axis is None else tuple([axis_number(trace, k, a.ndim) for k in as_tuple(axis)])
    if len(window) != len(axes):
        raise trace.error(
            ValueError, f"Must provide matching length window_shape and axis; got {len(window)} and {len(axes)}"
        )
    shape, strides = list(a.shape), list(element_strides(a))
    for n, k in zip(window, axes, strict=True):
        if shape[k] < n:
            raise trace.error(ValueError, "window shape cannot be larger than input array shape")
        shape[k] -= n - 1
    inner = [element_strides(a)[k] for k in axes]
    return _windowed(a, (*shape, *window), (*strides, *inner), writeable)


# ------------------------------------------------------------------ parts of complex numbers


def real(val: Any) -> Any:
    return _part(val, "real")


def imag(val: Any) -> Any:
    return _part(val, "imag")


def _part(val: Any, name: str) -> Any:
    x = array(val)
    trace, (content,) = contents(x)
    if x.dtype.kind != "c":
        if name == "real":
            return x
        zeros = trace.full(x.dtype, x.shape, 0) if _depends(content) else np.zeros(x.shape, x.dtype)
        return new_scalar(trace, zeros, x.python) if isinstance(x, TracedScalar) else locked(new_array(trace, zeros))
    if isinstance(x, TracedScalar):
        return new_scalar(trace, trace.apply(name, content), float if x.python is complex else None)
    return view(x, Part(x.shape, name))


def _depends(content: Content) -> bool:
    return not isinstance(content, np.ndarray)


def real_if_close(a: Any, tol: float = 100) -> Any:
    """The decision whether the imaginary parts are negligible is a guarded one."""
    x = array(a)
    if x.dtype.kind != "c":
        return x
    bound = tol if tol <= 1 else tol * np.finfo(real_dtype(x.dtype)).eps
    return x.real if bool(np.all(np.absolute(x.imag) < bound)) else x


FUNCTIONS: dict[Any, Entry] = {
    function: Entry(implementation, False)
    for function, implementation in {
        np.broadcast_to: broadcast_to,
        np.broadcast_arrays: broadcast_arrays,
        np.diagonal: diagonal,
        np.linalg.diagonal: lambda x, /, *, offset=0: diagonal(x, offset, -2, -1),
        np.diag: diag,
        np.diagflat: diagflat,
        np.lib.stride_tricks.as_strided: as_strided,
        np.lib.stride_tricks.sliding_window_view: sliding_window_view,
        np.real: real,
        np.imag: imag,
        np.real_if_close: real_if_close,
    }.items()
}
