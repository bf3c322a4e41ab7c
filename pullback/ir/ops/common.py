"""What many op records share: type rules, evaluation and batching of elementwise ops, and short constructors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import (
    PLAIN,
    Algebra,
    Array,
    Derivative,
    Infer,
    NotDifferentiable,
    OpDef,
    Partial,
    Partials,
    RunRegion,
    Scalar,
    Types,
)
from pullback.ir.types import BOOL, TensorType, real_dtype

# dtype kinds: b bool, i signed, u unsigned, f floating, c complex
FLOAT = "f"
INEXACT = "fc"
NUMBER = "iufc"
ANY = "biufc"
KIND_WORDS = {"b": "bool", "i": "integer", "u": "unsigned", "f": "floating", "c": "complex"}

Result = Callable[[TensorType], TensorType]


def same(type: TensorType) -> TensorType:
    return type


def to_bool(type: TensorType) -> TensorType:
    return type.with_dtype(BOOL)


def to_real(type: TensorType) -> TensorType:
    return type.with_dtype(real_dtype(type.dtype))


def words(types: Types) -> str:
    return ", ".join(map(str, types))


def check_arity(name: str, types: Types, arity: int) -> None:
    if len(types) != arity:
        raise TypeRuleError(f"{name} takes {arity} operands, got {len(types)}: {words(types)}")


def elementwise_infer(name: str, arity: int, kinds: str, result: Result = same) -> Infer:
    """All operands of one type, of a dtype kind among `kinds`."""
    allowed = frozenset(kinds)

    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
        first = types[0] if types else None
        if first is None or len(types) != arity:
            check_arity(name, types, arity)
        assert first is not None
        for other in types:
            if other is not first and other != first:
                raise (ShapeError if other.shape != first.shape else TypeRuleError)(
                    f"{name} needs operands of one type, got {words(types)}"
                )
        if first.dtype.kind not in allowed:
            expected = ", ".join(KIND_WORDS[k] for k in kinds)
            raise TypeRuleError(f"{name} needs a {expected} operand, got {words(types)}")
        return (result(first),)

    return infer


def pointwise(function: Callable[..., Any]) -> Callable[[Op, Sequence[Array], RunRegion], tuple[Array, ...]]:
    """An evaluation rule from a NumPy function; the result gets the inferred dtype."""

    def evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
        return (np.asarray(function(*args), dtype=op.results[0].type.dtype),)

    return evaluate


def with_batch_axis(f: Emitter, x: Expr, batched: bool, size: int) -> Expr:
    """`x` with a leading batch axis: as it is, or copied along a new one."""
    return x if batched else f.broadcast_to(x, (size, *x.shape))


def batch_size(args: Sequence[Expr], batched: Sequence[bool]) -> int:
    return next(a.shape[0] for a, has in zip(args, batched, strict=True) if has)


def all_batched(f: Emitter, args: Sequence[Expr], batched: Sequence[bool]) -> list[Expr]:
    size = batch_size(args, batched)
    return [with_batch_axis(f, a, has, size) for a, has in zip(args, batched, strict=True)]


def batch_elementwise(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    return (f.op(op.name, *all_batched(f, args, batched), **op.attrs),)


def regular(*partials: Partial | None) -> Partials:
    """Partials that are finite wherever the operands are."""
    flags = (False,) * len(partials)
    return Partials(partials, lambda op: flags)


def singular(*partials: Partial | None) -> Partials:
    """Partials that may be infinite or NaN at a finite point, in every operand."""
    flags = (True,) * len(partials)
    return Partials(partials, lambda op: flags)


def masking(*partials: Partial | None) -> Partials:
    """Partials that are zero where an operand was not picked: what comes back there is zero even if it is infinite."""
    flags = (False,) * len(partials)
    return Partials(partials, lambda op: flags, masks=tuple(range(len(partials))))


def math_call(name: str) -> Scalar:
    return Scalar(lambda s, op, *xs: s.math(name, *xs))


def elementwise(
    name: str,
    arity: int,
    kinds: str,
    function: Callable[..., Any],
    derivative: Derivative,
    doc: str,
    *,
    numpy: tuple[str, ...] | None = None,
    result: Result = same,
    lower: Scalar | None = None,
    algebra: Algebra = PLAIN,
) -> OpDef:
    """The record of an elementwise op without attributes; by default NumPy's name and a call of the math function so
    named."""
    return OpDef(
        name=name,
        arity=arity,
        attrs={},
        infer=elementwise_infer(name, arity, kinds, result),
        evaluate=pointwise(function),
        numpy=(name,) if numpy is None else numpy,
        derivative=derivative,
        batch=batch_elementwise,
        lower=lower or math_call(name),
        algebra=algebra,
        doc=doc,
    )


STEP = NotDifferentiable("piecewise constant: the derivative is zero wherever it exists")
NOT_REAL = NotDifferentiable("integers and booleans carry no gradient")


def check_axes(name: str, axes: Sequence[int], ndim: int, types: Types) -> None:
    """Axes must be distinct, increasing and in range."""
    if any(not 0 <= a < ndim for a in axes) or list(axes) != sorted(set(axes)):
        raise ShapeError(
            f"{name}: axes {list(axes)} must be distinct, increasing and within {ndim} axes of {words(types)}"
        )


def without(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for k, n in enumerate(shape) if k not in axes)
