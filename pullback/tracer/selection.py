"""`x[mask]` with a mask that depends on the arguments: how many elements it holds is not known, so it stays masked.

A `Selection` keeps the dense array and the mask. Elementwise functions apply to the dense array, reductions take the
mask as their `where=`, and an assignment through the same mask becomes a select: no shape depends on data. Any other
use needs the elements side by side: which they are is then guarded, and the selection is an array like others from
there on.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.graph import Value
from pullback.ir.types import DType
from pullback.tracer.array import TracedArray, TracedValue, new_array, new_scalar
from pullback.tracer.cell import content, write
from pullback.tracer.convert import decide_array
from pullback.tracer.methods import Methods
from pullback.tracer.operands import broadcast, cast, content_of
from pullback.tracer.operators import InplaceOperators, Operators
from pullback.tracer.trace import Content, Trace, active, shape_of


class Selection(Operators, InplaceOperators, Methods):
    """The elements of `dense` where `mask` (over its leading axes) holds, as NumPy's `dense[mask]` in one axis."""

    __slots__ = ("_mask", "_mask_value", "_packed", "dense")

    __array_priority__ = 200.0
    __hash__ = None  # type: ignore[assignment]  # as ndarray

    def __init__(self, dense: TracedArray, mask: TracedArray, mask_value: Content) -> None:
        self.dense = dense
        self._mask = mask
        self._mask_value = mask_value
        self._packed: TracedArray | None = None

    # ------------------------------------------------------------------ type

    @property
    def dtype(self) -> DType:
        return self.dense.dtype

    @property
    def ndim(self) -> int:
        return 1 + self.dense.ndim - self._mask.ndim

    @property
    def size(self) -> Any:
        """The number of elements, which depends on the arguments."""
        per_item = self.dense.size // max(self._mask.size, 1)
        return _count(self._mask) * per_item

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self.dense.shape[self._mask.ndim :])

    @shape.setter
    def shape(self, value: Any) -> None:
        self.packed().shape = value

    @property
    def flat(self) -> Any:
        return self.packed().flat

    @flat.setter
    def flat(self, value: Any) -> None:
        self.packed().flat = value

    @property
    def real(self) -> Any:
        return self._call(np.real)

    @real.setter
    def real(self, value: Any) -> None:
        self.packed().real = value

    @property
    def imag(self) -> Any:
        return self._call(np.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.packed().imag = value

    def __len__(self) -> int:
        return int(_count(self._mask))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.packed(), name)

    def __getitem__(self, key: Any) -> Any:
        return self if key is Ellipsis else self.packed()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._packed is None and (key is Ellipsis or (isinstance(key, slice) and key == slice(None))):
            filled = self._map(lambda x, y: np.zeros_like(x) + y, (self, value))
            if isinstance(filled, Selection):
                self.dense = filled.dense.astype(self.dtype)
                return
        self.packed()[key] = value

    def __iter__(self) -> Any:
        return iter(self.packed())

    def packed(self) -> TracedArray:
        """The elements in an array of their own: which they are becomes a guarded decision, so that other masks are
        traced anew. It is the same array each time, since views of it may be written to."""
        if self._packed is not None:
            return self._packed
        trace = active()
        places = decide_array(trace, self._mask_value).nonzero()
        made: TracedArray = self.dense[tuple([new_array(trace, np.array(p)) for p in places])]
        if self.dense._cell.trace is trace:
            self._packed = made
        else:
            made._cell.readonly = True  # a copy for an inner trace
        return made

    __traced_array__ = packed

    def __bool__(self) -> bool:
        raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")

    def __repr__(self) -> str:
        return f"<Selection of {self.dense!r} by {self._mask!r}>"

    # ------------------------------------------------------------------ elementwise

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "reduce" and inputs[0] is self:
            return self._reduce_ufunc(ufunc, kwargs)
        if ufunc in (np.matmul, np.vecdot) and method == "__call__" and len(inputs) == 2 and not kwargs:
            return self._dot(*inputs)
        if method != "__call__" or ufunc.signature is not None or not kwargs.keys() <= {"dtype", "casting"}:
            return getattr(ufunc, method)(*_all_packed(inputs), **_packed_options(kwargs))
        return self._map(lambda *xs: ufunc(*xs, **kwargs), inputs)

    def _map(self, function: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
        """Apply an elementwise function to the dense arrays; where they do not fit one another, to packed ones."""
        dense = [self._dense_of(x) for x in inputs]
        if any(d is None for d in dense):
            return function(*_all_packed(inputs))
        results = function(*dense)
        parts = results if isinstance(results, tuple) else (results,)
        if any(part.ndim != self.dense.ndim or part.shape[: self._mask.ndim] != self._mask.shape for part in parts):
            return function(*_all_packed(inputs))
        wrapped = tuple([Selection(p, self._mask, self._mask_value) for p in parts])
        return wrapped if isinstance(results, tuple) else wrapped[0]

    def _dense_of(self, x: Any) -> Any:
        if isinstance(x, Selection):
            return x.dense if self._matches(x) and x._packed is None else None
        return None if np.ndim(x) > self.dense.ndim - self._mask.ndim else x

    def _matches(self, other: "Selection") -> bool:
        """Whether the other holds elements of the same places."""
        return other._mask_value is self._mask_value and other.dense.shape == self.dense.shape

    def _dot(self, x: Any, y: Any) -> Any:
        product = self._map(np.multiply, (x, y)) if self.ndim == 1 and np.ndim(x) == np.ndim(y) == 1 else None
        if isinstance(product, Selection):
            return product.sum()
        return np.matmul(*_all_packed((x, y)))

    def _binary(self, ufunc: Any, other: Any) -> Any:
        return ufunc(self, other)

    def _reflected(self, ufunc: Any, other: Any) -> Any:
        return ufunc(other, self)

    def _unary(self, ufunc: Any) -> Any:
        return ufunc(self)

    def _inplace(self, ufunc: Any, other: Any) -> Any:
        result = ufunc(self, other).astype(self.dtype, casting="same_kind")
        if isinstance(result, Selection):
            self.dense = result.dense
        else:
            self.packed()[...] = result
        return self

    def astype(self, dtype: Any, **options: Any) -> Any:
        if self._packed is not None:
            return self._packed.astype(dtype, **options)
        return Selection(self.dense.astype(dtype, **options), self._mask, self._mask_value)

    def copy(self, order: str = "C") -> Any:
        if self._packed is not None:
            return self._packed.copy(order)
        return Selection(self.dense.copy(), self._mask, self._mask_value)

    # ------------------------------------------------------------------ reductions

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        masked = args and args[0] is self and self._packed is None
        if func in REDUCTIONS and masked:
            reduced = self._reduce(func, args, kwargs)
            if reduced is not None:
                return reduced
        if func in ELEMENTWISE and not _holds_selection(kwargs.values()) and kwargs.get("copy", True):
            return self._map(lambda *xs: func(*xs, **kwargs), args)
        if func in (np.dot, np.inner, np.vdot) and len(args) == 2 and not kwargs:
            return self._dot(*args)
        if func is np.linalg.norm and masked and len(args) == 1 and not kwargs:
            return np.linalg.norm(np.where(self._where(), self.dense, 0))
        if func in PROPERTIES and len(args) == 1 and not kwargs:
            return PROPERTIES[func](self)
        return func(*_all_packed(args), **_packed_options(kwargs))

    def _call(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        return self.__array_function__(func, (), (self, *args), kwargs)

    def _where(self) -> Any:
        rest = (1,) * (self.dense.ndim - self._mask.ndim)
        return np.broadcast_to(self._mask.reshape(self._mask.shape + rest), self.dense.shape)

    def _reduce(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """With the mask as `where=`; None where that cannot say it."""
        options = dict(kwargs)
        options.update(zip(("axis",), args[1:], strict=False))
        axes = self._axes(options.get("axis"))
        if axes == () or len(args) > 2 or options.get("out") is not None or "where" in options:
            return None
        if self._mask.ndim > 1 and options.get("keepdims"):
            return None
        options["axis"] = axes
        if func in (np.max, np.min) and "initial" not in options:
            active().check(content(self._mask.any()), "zero-size array to reduction operation which has no identity")
            options["initial"] = _extreme(self.dtype, func is np.max)
        return func(self.dense, where=self._where(), **options)

    def _axes(self, axis: Any) -> Any:
        leading = tuple(range(self._mask.ndim))
        if axis is None:
            return None
        wanted = {a % self.ndim for a in (axis if isinstance(axis, tuple) else (axis,))}
        if 0 not in wanted:
            return ()
        return leading + tuple([a - 1 + self._mask.ndim for a in sorted(wanted) if a])

    def _reduce_ufunc(self, ufunc: Any, kwargs: dict[str, Any]) -> Any:
        known = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}
        known |= {np.logical_and: np.all, np.logical_or: np.any}
        options = {k: v for k, v in kwargs.items() if k in ("axis", "dtype")}
        usual = ufunc in known and self._packed is None and kwargs.keys() <= {"axis", "dtype"}
        reduced = self._reduce(known[ufunc], (self,), {"axis": 0, **options}) if usual else None
        return ufunc.reduce(self.packed(), **_packed_options(kwargs)) if reduced is None else reduced


REDUCTIONS = frozenset({np.sum, np.prod, np.mean, np.std, np.var, np.max, np.min, np.any, np.all})
ELEMENTWISE = frozenset(
    {
        np.where,
        np.clip,
        np.nan_to_num,
        np.sinc,
        np.round,
        np.real,
        np.imag,
        np.angle,
        np.zeros_like,
        np.ones_like,
        np.copy,
    }
)


# Functions that look at the shape alone.
PROPERTIES: Mapping[Any, Callable[[Selection], Any]] = {
    np.size: lambda x: x.size,
    np.ndim: lambda x: x.ndim,
    np.shape: lambda x: x.shape,
}


def _holds_selection(xs: Iterable[Any]) -> bool:
    return any(type(x) is Selection for x in xs)


def _packed_options(kwargs: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(kwargs, _all_packed(kwargs.values()), strict=True))


def _all_packed(args: Any) -> list[Any]:
    """Arguments with every selection packed, in sequences too."""
    packed: list[Any] = []
    for a in args:
        if isinstance(a, Selection):
            packed.append(a.packed())
        elif type(a) in (list, tuple):
            packed.append(type(a)(_all_packed(a)))
        else:
            packed.append(a)
    return packed


def _extreme(dtype: DType, lowest: bool) -> Any:
    if dtype.kind == "f":
        return -np.inf if lowest else np.inf
    if dtype.kind == "b":
        return not lowest
    info = np.iinfo(dtype)
    return info.min if lowest else info.max


def _count(mask: TracedArray) -> Any:
    """How many elements a mask holds, as a traced Python integer."""
    trace = active()
    total: Any = mask.sum()
    return new_scalar(trace, content(total), int)


# ------------------------------------------------------------------ making and assigning


def select_where(trace: Trace, x: TracedValue, mask: TracedValue) -> Selection:
    """`x[mask]`, a copy as in NumPy."""
    _check_mask(trace, x, mask)
    mask_value = content_of(trace, mask)
    dense = new_array(trace, content_of(trace, x), lent=True)
    return Selection(dense, new_array(trace, mask_value), mask_value)


def assign(trace: Trace, x: TracedArray, mask: TracedValue, value: Any) -> bool:
    """`x[mask] = value`; False where there is a value for each chosen element, so that the mask must be decided."""
    _check_mask(trace, x, mask)
    pred = content_of(trace, mask)
    new = _dense_value(trace, x, pred, value, mask.ndim)
    if new is None:
        return False
    rest = (1,) * (x.ndim - mask.ndim)
    wide = trace.apply("reshape", pred, shape=mask._shape + rest) if rest else pred
    parts = [broadcast(trace, p, x._shape) for p in (wide, cast(trace, new, x._dtype))]
    write(x, trace.apply("select", *parts, content_of(trace, x)))
    return True


def _dense_value(trace: Trace, x: TracedArray, pred: Content, value: Any, mask_ndim: int) -> Content | None:
    """The assigned values laid out as `x` is, where that can be done without knowing which elements are chosen."""
    if isinstance(value, Selection):
        same = value._mask_value is pred and value.dense.shape == x._shape and value._packed is None
        return content_of(trace, value.dense) if same else None
    new = content_of(trace, value)
    shape = shape_of(new)
    if len(shape) == x.ndim - mask_ndim + 1 and shape[0] == 1:
        shape = shape[1:]
        new = trace.apply("reshape", new, shape=shape) if isinstance(new, Value) else new.reshape(shape)
    return None if len(shape) > x.ndim - mask_ndim else new


def _check_mask(trace: Trace, x: TracedValue, mask: TracedValue) -> None:
    if x._shape[: mask.ndim] != mask._shape:
        raise trace.error(
            ShapeError,
            f"boolean index did not match indexed array: the array has shape {x._shape}, the mask {mask._shape}",
        )
