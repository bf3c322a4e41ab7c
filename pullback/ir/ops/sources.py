"""Ops without operands: constant and iota."""

from collections.abc import Sequence

import numpy as np

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Array, Library, NotDifferentiable, OpDef, RunRegion, Types
from pullback.ir.ops.common import check_arity, check_axes
from pullback.ir.types import TensorType, tensor_type


def _not_batched(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    raise AssertionError(f"{op.name} has no operands, so nothing of it is ever batched")


def _constant_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("constant", types, 0)
    array = attrs["value"].array
    return (tensor_type(array.dtype, array.shape),)


CONSTANT = OpDef(
    name="constant",
    arity=0,
    attrs={"value": "literal"},
    infer=_constant_infer,
    evaluate=lambda op, args, run: (op.attrs["value"].array,),
    numpy=(),
    derivative=NotDifferentiable("a constant"),
    batch=_not_batched,
    lower=Library("constant"),
    algebra=PLAIN,
    doc="A fixed array.",
)


def _iota_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("iota", types, 0)
    type: TensorType = attrs["type"]
    check_axes("iota", (attrs["axis"],), type.ndim, (type,))
    return (type,)


def _iota_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    type, axis = op.attrs["type"], op.attrs["axis"]
    line = np.arange(type.shape[axis]).astype(type.dtype)
    column = line.reshape([-1 if k == axis else 1 for k in range(type.ndim)])
    return (np.broadcast_to(column, type.shape),)


IOTA = OpDef(
    name="iota",
    arity=0,
    attrs={"type": "type", "axis": "int"},
    infer=_iota_infer,
    evaluate=_iota_evaluate,
    numpy=(),
    derivative=NotDifferentiable("a constant"),
    batch=_not_batched,
    lower=Library("iota"),
    algebra=PLAIN,
    doc="An array that holds, at each index, that index along `axis`.",
)

SOURCES = (CONSTANT, IOTA)
