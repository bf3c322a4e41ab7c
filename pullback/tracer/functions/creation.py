"""Making arrays. NumPy has no protocol for most of these, so while a trace runs they are reached through `patching.py`.

What depends on no argument is made by NumPy itself and kept as a constant, in an array that takes traced values.
"""

import operator
from typing import Any

import numpy as np

from pullback.errors import ShapeError, UnsupportedError
from pullback.ir.graph import Value
from pullback.ir.types import DTYPE_NAMES
from pullback.tracer.array import TracedArray, TracedScalar, TracedValue, new_array
from pullback.tracer.cell import copy_order, has_order
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, available, constant_array, contents
from pullback.tracer.functions.ranges import arange, geomspace, linspace, logspace
from pullback.tracer.operands import as_array, broadcast, cast, content_of, holds_traced, plain_of
from pullback.tracer.trace import Content, Trace, active, dtype_of, shape_of

# ------------------------------------------------------------------ from what there is


def make_array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    """`np.array`: a new array, or with `copy=False` (or None) the given one where it fits."""
    if not _is_numeric(object, dtype):
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
    made = as_array(object)
    as_it_is = isinstance(made, TracedArray) and (dtype is None or np.dtype(dtype) == made.dtype)
    if copy is False and not (isinstance(object, np.ndarray) and as_it_is and has_order(made, order)):
        raise active().error(ValueError, "Unable to avoid copy while creating an array as requested; leave out copy=")
    fresh = _wants_copy(copy) or isinstance(made, TracedScalar)
    if dtype is not None and np.dtype(dtype) != made.dtype:
        made, fresh = made.astype(dtype), isinstance(made, TracedScalar)
    if fresh or not has_order(made, order):
        made = _copied(made, order)
    if 0 < ndmax < made.ndim:
        raise active().error(UnsupportedError, f"np.array: ndmax={ndmax} makes an array of objects of {made.ndim} axes")
    for _ in range(ndmin - made.ndim):
        made = made[None]
    return made


def _wants_copy(copy: Any) -> bool:
    """NumPy's enumeration has a third state, copy if needed, which may not be asked for its truth."""
    return copy is not None and copy is not np._CopyMode.IF_NEEDED and bool(copy)


def _is_numeric(x: Any, dtype: Any) -> bool:
    """Whether the result is an array of numbers; arrays of strings and objects are none of ours."""
    if dtype is not None and np.dtype(dtype) not in DTYPE_NAMES:
        return False
    if isinstance(x, TracedValue) or hasattr(x, "__traced_array__"):
        return True
    if isinstance(x, list | tuple) and holds_traced(x):
        return True
    probe = plain_of(x)
    return probe.dtype in DTYPE_NAMES or probe.dtype.newbyteorder("=") in DTYPE_NAMES


def _copied(x: Any, order: Any) -> TracedArray:
    trace, (content,) = contents(x)
    return new_array(trace, content, copy_order(x, order), lent=True)


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    """`np.asarray`: the same array where it is one of the right dtype."""
    if hasattr(a, "__traced_array__"):
        a = a.__traced_array__()
    if isinstance(a, TracedArray) and not _wants_copy(copy) and (dtype is None or np.dtype(dtype) == a.dtype):
        return a if has_order(a, order) else _copied(a, order)
    return make_array(a, dtype, copy=copy, order=order or "K")


def asanyarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    return asarray(a, dtype, order, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    made = _at_least_1d(asarray(a, dtype))
    return made if made.flags.c_contiguous else made.copy(order="C")


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    made = _at_least_1d(asarray(a, dtype))
    return made if made.flags.f_contiguous else _copied(made, "F")


def _at_least_1d(x: Any) -> Any:
    return x.reshape(1) if x.ndim == 0 else x


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    made = asarray(a, dtype, order)
    if made.dtype.kind in "fc":
        trace, (content,) = contents(made)
        trace.check(trace.apply("isfinite", content), "array must not contain infs or NaNs")
    return made


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return _copied(array(a), order)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return array(x).astype(dtype, copy=copy)


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """`np.require`: a copy where the array is not laid out, owned or writeable as asked."""
    listed = [requirements] if isinstance(requirements, str) else requirements or ()
    wanted = {name.upper()[:1] for name in listed}
    if {"C", "F"} <= wanted:
        raise active().error(ValueError, "Cannot specify both 'C' and 'F' order")
    order = "F" if "F" in wanted else "C" if "C" in wanted else "K"
    made = asarray(a, dtype, order)
    return made if all(made.flags[name] for name in wanted & {"O", "W"}) else made.copy(order)


# ------------------------------------------------------------------ filled


def _shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, tuple | list) or (isinstance(shape, TracedValue | np.ndarray) and np.ndim(shape)):
        return tuple([operator.index(n) for n in shape])
    return (operator.index(shape),)


def _made(made: Any, order: str) -> Any:
    return constant_array(np.asfortranarray(made) if order == "F" else made)


def zeros(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    return _made(np.zeros(_shape(shape), dtype), order)


def empty(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """Zeros: NumPy promises nothing about the content, and a compiled function must not depend on chance."""
    if np.dtype(dtype) not in DTYPE_NAMES:
        return np.empty(_shape(shape), dtype)
    return zeros(shape, dtype, order)


def ndarray(
    shape: Any, dtype: Any = float, buffer: Any = None, offset: Any = 0, strides: Any = None, order: Any = None
) -> Any:
    """`np.ndarray(shape)`: as `np.empty`. On memory that is given it is NumPy's own."""
    if buffer is None and strides is None:
        return empty(shape, dtype, order or "C")
    if isinstance(buffer, TracedValue):
        raise active().error(
            UnsupportedError, "np.ndarray with buffer= shows memory, which a traced array has not; slice or reshape it"
        )
    return np.ndarray(_shape(shape), dtype, buffer, offset, strides, order)


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    return _made(np.ones(_shape(shape), dtype), order)


def full_(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    trace, (content,) = contents(fill_value)
    wanted = dtype_of(content) if dtype is None else np.dtype(dtype)
    return _filled(trace, content, _shape(shape), wanted, order)


def _filled(trace: Trace, content: Content, shape: tuple[int, ...], dtype: Any, order: str = "C") -> Any:
    if dtype not in DTYPE_NAMES:
        return np.full(shape, np.asarray(content), dtype)
    new = cast(trace, content, dtype)
    if not isinstance(new, Value):
        return _made(np.full(shape, new), order)
    try:
        np.broadcast_shapes(shape_of(new), shape)
    except ValueError:
        raise trace.error(
            ShapeError, f"could not broadcast input array from shape {shape_of(new)} into shape {shape}"
        ) from None
    return new_array(trace, broadcast(trace, new, shape), tuple(reversed(range(len(shape)))) if order == "F" else None)


def _like(fill: Any) -> Any:
    def like(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Any:
        return full_like(a, fill, dtype, order, subok, shape)

    return like


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    trace = active()
    like_dtype, like_shape, layout = _described(a, order)
    wanted = like_dtype if dtype is None else np.dtype(dtype)
    made = _filled(trace, content_of(trace, fill_value), like_shape if shape is None else _shape(shape), wanted)
    if shape is None and isinstance(made, TracedArray):
        made._cell.order = layout
    return made


def _described(a: Any, order: str) -> tuple[Any, tuple[int, ...], Any]:
    """dtype, shape and memory order of a `*_like`, read without making a parameter of a plain array."""
    if hasattr(a, "__traced_array__"):
        a = a.__traced_array__()
    if isinstance(a, TracedValue):
        return a.dtype, a.shape, copy_order(a, order)
    if isinstance(a, list | tuple) and holds_traced(a):
        made = array(a)
        return made.dtype, made.shape, None
    plain = plain_of(a)
    layout = None
    if order in "KA" and plain.ndim > 1 and plain.flags.f_contiguous and not plain.flags.c_contiguous:
        layout = tuple(reversed(range(plain.ndim)))
    return plain.dtype, plain.shape, layout


zeros_like = _like(0)
ones_like = _like(1)
empty_like = _like(0)


# ------------------------------------------------------------------ with a structure


def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    return _made(np.eye(operator.index(N), None if M is None else operator.index(M), operator.index(k), dtype), order)


def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return constant_array(np.identity(operator.index(n), dtype))


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Any:
    return constant_array(np.tri(operator.index(N), None if M is None else operator.index(M), operator.index(k), dtype))


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    made: Any = np.indices(_shape(dimensions), dtype, sparse=sparse)  # type: ignore[call-overload]
    return tuple([constant_array(m) for m in made]) if sparse else constant_array(made)


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any) -> Any:
    return function(*[constant_array(np.array(g)) for g in np.indices(_shape(shape), dtype)], **kwargs)


def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    listed = list(iter) if count < 0 else [x for x, _ in zip(iter, range(count), strict=False)]
    return make_array(listed, dtype)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    ndim = len(xi)
    grids = [array(x).reshape((1,) * k + (-1,) + (1,) * (ndim - k - 1)) for k, x in enumerate(xi)]
    if indexing == "xy" and ndim > 1:
        grids[0] = grids[0].reshape((1, -1) + (1,) * (ndim - 2))
        grids[1] = grids[1].reshape((-1, 1) + (1,) * (ndim - 2))
    if not sparse:
        shape = np.broadcast_shapes(*[g.shape for g in grids]) if grids else ()
        grids = [np.broadcast_to(g, shape) for g in grids]
    return tuple([np.copy(g) if copy else g for g in grids])


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    v = array(x)
    if v.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = v.size if N is None else operator.index(N)
    wide = v.astype(np.promote_types(v.dtype, np.int64))
    columns = [wide**k for k in range(count)]
    if not columns:
        return zeros((v.size, 0), wide.dtype)
    return np.stack(columns if increasing else columns[::-1], axis=1)


FUNCTIONS: dict[Any, Entry] = {
    np.copy: Entry(copy, False),
    **available("astype", Entry(astype, False)),
    np.zeros_like: Entry(zeros_like, False),
    np.ones_like: Entry(ones_like, False),
    np.empty_like: Entry(empty_like, False),
    np.full_like: Entry(full_like, False),
    np.asarray_chkfinite: Entry(asarray_chkfinite, False),
    np.meshgrid: Entry(meshgrid, False),
    np.vander: Entry(vander),
}


def _constant_maker(name: str) -> Any:
    """Functions that make arrays of fixed numbers: index sets and windows."""
    original = getattr(np, name)

    def make(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        return tuple([constant_array(m) for m in made]) if isinstance(made, tuple) else constant_array(made)

    return make


def kaiser(M: Any, beta: Any) -> Any:
    """Followed in `beta`."""
    count = operator.index(M)
    if count == 1:
        return ones(1)
    half = (count - 1) / 2.0
    shape = np.sqrt(1 - ((np.arange(count) - half) / half) ** 2)
    b = array(beta) * 1.0
    return np.i0(b * constant_array(shape)) / np.i0(b)


CONSTANT_MAKERS = (
    "bartlett",
    "blackman",
    "hamming",
    "hanning",
    "diag_indices",
    "tril_indices",
    "triu_indices",
    "mask_indices",
)

# What is replaced in the numpy module (and under these names in the user's own) while a trace runs.
CREATORS: dict[str, Any] = {
    "array": make_array,
    "asarray": asarray,
    "asanyarray": asanyarray,
    "ascontiguousarray": ascontiguousarray,
    "asfortranarray": asfortranarray,
    "asarray_chkfinite": asarray_chkfinite,
    "require": require,
    "copy": copy,
    "zeros": zeros,
    "empty": empty,
    "ones": ones,
    "full": full_,
    "zeros_like": zeros_like,
    "ones_like": ones_like,
    "empty_like": empty_like,
    "full_like": full_like,
    "arange": arange,
    "linspace": linspace,
    "logspace": logspace,
    "geomspace": geomspace,
    "eye": eye,
    "identity": identity,
    "tri": tri,
    "indices": indices,
    "fromfunction": fromfunction,
    "fromiter": fromiter,
    "meshgrid": meshgrid,
    "kaiser": kaiser,
    **{name: _constant_maker(name) for name in CONSTANT_MAKERS},
}
