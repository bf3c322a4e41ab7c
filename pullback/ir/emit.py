"""`Emitter` and `Expr`: how rules write IR. `f.exp(x)` emits an op, `x * y + 1.0` emits three."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs, Literal, Value
from pullback.ir.types import DType, Shape, TensorType, tensor_type

if TYPE_CHECKING:
    from pullback.ir.opdef import OpDef

Number = bool | int | float | complex


class Expr:
    """A value together with the emitter it belongs to. Python numbers beside it take its dtype and shape."""

    __slots__ = ("f", "value")

    f: "Emitter"
    value: Value

    def __init__(self, f: "Emitter", value: Value) -> None:
        self.f = f
        self.value = value

    @property
    def type(self) -> TensorType:
        return self.value.type

    @property
    def dtype(self) -> DType:
        return self.value.type.dtype

    @property
    def shape(self) -> Shape:
        return self.value.type.shape

    @property
    def ndim(self) -> int:
        return len(self.value.type.shape)

    def _two(self, name: str, x: "Expr | Number", y: "Expr | Number") -> "Expr":
        f = self.f
        lhs = x if isinstance(x, Expr) else f.full_like(self, x)
        rhs = y if isinstance(y, Expr) else f.full_like(self, y)
        return f.op(name, lhs, rhs)

    def __add__(self, other: "Expr | Number") -> "Expr":
        return self._two("add", self, other)

    def __radd__(self, other: Number) -> "Expr":
        return self._two("add", other, self)

    def __sub__(self, other: "Expr | Number") -> "Expr":
        return self._two("sub", self, other)

    def __rsub__(self, other: Number) -> "Expr":
        return self._two("sub", other, self)

    def __mul__(self, other: "Expr | Number") -> "Expr":
        return self._two("mul", self, other)

    def __rmul__(self, other: Number) -> "Expr":
        return self._two("mul", other, self)

    def __truediv__(self, other: "Expr | Number") -> "Expr":
        return self._two("div", self, other)

    def __rtruediv__(self, other: Number) -> "Expr":
        return self._two("div", other, self)

    def __neg__(self) -> "Expr":
        return self.f.op("neg", self)

    def eq(self, other: "Expr | Number") -> "Expr":
        return self._two("equal", self, other)

    def ne(self, other: "Expr | Number") -> "Expr":
        return self._two("not_equal", self, other)

    def __lt__(self, other: "Expr | Number") -> "Expr":
        return self._two("less", self, other)

    def __le__(self, other: "Expr | Number") -> "Expr":
        return self._two("less_equal", self, other)

    def __gt__(self, other: "Expr | Number") -> "Expr":
        return self._two("greater", self, other)

    def __ge__(self, other: "Expr | Number") -> "Expr":
        return self._two("greater_equal", self, other)

    def __and__(self, other: "Expr") -> "Expr":
        return self.f.op("bitwise_and", self, other)

    def __or__(self, other: "Expr") -> "Expr":
        return self.f.op("bitwise_or", self, other)

    def __xor__(self, other: "Expr") -> "Expr":
        return self.f.op("bitwise_xor", self, other)

    def __invert__(self) -> "Expr":
        return self.f.op("invert", self)

    def __repr__(self) -> str:
        return f"Expr({self.value!r})"


class Emitter:
    """Emits ops by name through attribute access: `f.sum(x, axes=(0,))`. `ops` is the table of records."""

    __slots__ = ("b", "ops")

    b: Builder
    ops: "Mapping[str, OpDef]"

    def __init__(self, builder: Builder, ops: "Mapping[str, OpDef]") -> None:
        self.b = builder
        self.ops = ops

    def wrap(self, value: Value) -> Expr:
        return Expr(self, value)

    def op(self, name: str, *args: Expr, **attrs: Any) -> Expr:
        """Emit an op with one result."""
        return Expr(self, self.b.add(self.ops[name], [a.value for a in args], Attrs(attrs)).results[0])

    def ops_of(self, name: str, *args: Expr, **attrs: Any) -> list[Expr]:
        """Emit an op with any number of results."""
        op = self.b.add(self.ops[name], [a.value for a in args], Attrs(attrs))
        return [Expr(self, r) for r in op.results]

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        if name not in self.ops:
            raise AttributeError(f"no op is named {name!r}")

        def emit(*args: Expr, **attrs: Any) -> Expr:
            return self.op(name, *args, **attrs)

        return emit

    # -------------------------------------------------------------- constants

    def constant(self, array: object, dtype: DType | None = None) -> Expr:
        literal = Literal(np.asarray(array, dtype))
        return Expr(self, self.b.add(self.ops["constant"], (), Attrs(value=literal)).results[0])

    def full(self, type: TensorType, number: Number) -> Expr:
        """A tensor of one number: a scalar constant, broadcast."""
        scalar = self.constant(np.asarray(number).astype(type.dtype))
        return scalar if type.shape == () else self.broadcast_to(scalar, type.shape)

    def full_like(self, x: Expr, number: Number) -> Expr:
        return self.full(x.type, number)

    def zeros_like(self, x: Expr) -> Expr:
        return self.full(x.type, 0)

    # -------------------------------------------------------------- small compositions

    def broadcast_to(self, x: Expr, shape: Shape, dims: Sequence[int] | None = None) -> Expr:
        """`x` copied along new axes; `dims[k]` is the result axis of axis k of `x` (default: the last ones)."""
        if dims is None:
            dims = range(len(shape) - x.ndim, len(shape))
        if x.shape == tuple(shape):
            return x
        return self.op("broadcast", x, dims=tuple(dims), shape=tuple(shape))

    def reshape_to(self, x: Expr, shape: Shape) -> Expr:
        return x if x.shape == tuple(shape) else self.op("reshape", x, shape=tuple(shape))

    def expand(self, x: Expr, axes: Sequence[int], shape: Shape) -> Expr:
        """Undo a reduction's loss of `axes`: `x` broadcast back over them to `shape`."""
        dims = tuple(d for d in range(len(shape)) if d not in axes)
        return self.broadcast_to(x, shape, dims)

    def permute(self, x: Expr, perm: Sequence[int]) -> Expr:
        return x if tuple(perm) == tuple(range(x.ndim)) else self.op("transpose", x, perm=tuple(perm))

    def astype(self, x: Expr, dtype: DType) -> Expr:
        return x if x.dtype == dtype else self.op("cast", x, dtype=np.dtype(dtype))

    def arange_like(self, shape: Shape, axis: int, dtype: DType | type = np.int64) -> Expr:
        """An integer tensor that holds its own index along `axis`."""
        return self.op("iota", type=tensor_type(np.dtype(dtype), tuple(shape)), axis=axis)
