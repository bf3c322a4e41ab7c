"""Ops that arrive unfused, as kernels: any op that is elementwise, a view, a reduction or an index map.

Some take several kernels, one for each piece of the result; then a kernel writes a part of its result only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pullback.codegen.spec import KernelSpec, make_spec
from pullback.codegen.strips import lines_of
from pullback.ir.builder import Builder
from pullback.ir.graph import Literal, Op, Region, Value
from pullback.ir.index import Access, Affine, axis_index, flatten_index, identity_index, strides_of
from pullback.ir.kernel import STORE_KINDS, Load, Store
from pullback.ir.opdef import Reduce, Scalar, View
from pullback.ir.ops import OPS
from pullback.ir.types import I64, Shape, TensorType, tensor_type

ROW = 8
"""Rows of so many elements are gathered whole, by a routine of their own."""


class Piece(NamedTuple):
    """A kernel over some of an op's operands."""

    spec: KernelSpec
    operands: tuple[int, ...]


class Pieces(NamedTuple):
    """The kernels that make up an op.

    base : what the result holds before them: nothing (None), zeros (-1), or a copy of an operand
    """

    kernels: tuple[Piece, ...]
    base: int | None = None


def pieces_of(op: Op) -> Pieces | None:
    """The op as kernels; None where it needs a function of its own."""
    if op.name in _NAMED:
        return _NAMED[op.name](op)
    match op.opdef.lower:
        case Scalar():
            return _elementwise(op)
        case View():
            return _view(op)
        case Reduce(kind):
            return _reduction(op, kind)
    return None


def copy_piece(
    space: Shape, source: TensorType, read: Affine, target: TensorType, write: Affine, operand: int = 0
) -> Piece:
    """Elements moved from one affine place to another."""
    value = Value(tensor_type(source.dtype))
    body = Region((value,), (), (value,))
    return Piece(make_spec(space, (Load(0, read),), (Store("store", target, write),), (source,), body), (operand,))


def _contiguous(shape: Shape) -> Affine:
    return flatten_index(identity_index(len(shape)), shape)


def _stored(type_: TensorType) -> tuple[Store, ...]:
    return (Store("store", type_, _contiguous(type_.shape)),)


def _whole(op: Op, loads: Sequence[Load], builder: Builder, result: Value) -> Pieces:
    """One kernel over the result's elements."""
    out = op.results[0].type
    spec = make_spec(
        out.shape, tuple(loads), _stored(out), tuple(v.type for v in op.operands), builder.region([result])
    )
    return Pieces((Piece(spec, tuple(range(len(op.operands)))),))


# ------------------------------------------------------------------ elementwise, reductions


def _elementwise(op: Op) -> Pieces:
    builder = Builder()
    params = [builder.param(tensor_type(v.type.dtype)) for v in op.operands]
    at = _contiguous(op.results[0].type.shape)
    result = builder.add(op.opdef, params, op.attrs).results[0]
    return _whole(op, [Load(k, at) for k in range(len(params))], builder, result)


def _reduction(op: Op, kind: str) -> Pieces | None:
    if kind not in STORE_KINDS:
        return None
    source, out = op.operands[0].type, op.results[0].type
    kept = [axis for axis in range(source.ndim) if axis not in op.attrs["axes"]]
    value = Value(tensor_type(source.dtype))
    store = Store(kind, out, flatten_index([axis_index(axis) for axis in kept], out.shape))
    spec = make_spec(
        source.shape, (Load(0, _contiguous(source.shape)),), (store,), (source,), Region((value,), (), (value,))
    )
    return Pieces((Piece(spec, (0,)),))


# ------------------------------------------------------------------ views


def _flat(access: Access, source: TensorType) -> Affine:
    return access.index[0] if access.flat else flatten_index(access.index, source.shape)


def _view(op: Op) -> Pieces:
    lower = op.opdef.lower
    assert isinstance(lower, View)
    (access,) = lower.access(op, identity_index(op.results[0].type.ndim))
    builder = Builder()
    source = op.operands[access.operand].type
    value = builder.param(tensor_type(source.dtype))
    return _whole(op, [Load(access.operand, _flat(access, source), access.bounds)], builder, value)


def _concatenate(op: Op) -> Pieces:
    out, axis = op.results[0].type, op.attrs["axis"]
    pieces, at = [], 0
    for number, operand in enumerate(op.operands):
        shape = operand.type.shape
        index = [axis_index(k).shift(at) if k == axis else axis_index(k) for k in range(len(shape))]
        write = flatten_index(index, out.shape)
        pieces.append(copy_piece(shape, operand.type, _contiguous(shape), out, write, number))
        at += shape[axis]
    return Pieces(tuple(pieces))


def _pad(op: Op) -> Pieces:
    if not any(op.attrs["interior"]):
        return _view(op)
    source, out = op.operands[0].type, op.results[0].type
    steps = [inner + 1 for inner in op.attrs["interior"]]
    write = _strided(out.shape, op.attrs["low"], steps)
    return Pieces((copy_piece(source.shape, source, _contiguous(source.shape), out, write),), base=-1)


def _update(op: Op) -> Pieces:
    out, value = op.results[0].type, op.operands[1].type
    write = _strided(out.shape, op.attrs["start"], op.attrs["step"])
    return Pieces((copy_piece(value.shape, value, _contiguous(value.shape), out, write, 1),), base=0)


def _strided(shape: Shape, start: Sequence[int], step: Sequence[int]) -> Affine:
    index = [axis_index(k).scale(s).shift(a) for k, (a, s) in enumerate(zip(start, step, strict=True))]
    return flatten_index(index, shape)


# ------------------------------------------------------------------ sources, gather


def _iota(op: Op) -> Pieces:
    builder = Builder()
    result = builder.emit(OPS["index"], axis=op.attrs["axis"])
    dtype = op.results[0].type.dtype
    return _whole(op, (), builder, result if dtype == I64 else builder.emit(OPS["cast"], result, dtype=dtype))


def _gather(op: Op) -> Pieces | None:
    """Element (before, idx[k], after) of the operand, by its flat position; rows are copied by a routine."""
    source, idx = op.operands[0].type, op.operands[1].type
    axis, out = op.attrs["axis"], op.results[0].type
    if lines_of(source.shape, axis).inner >= ROW:
        return None
    places = range(axis, axis + idx.ndim)
    read = flatten_index([axis_index(k) for k in places], idx.shape)
    builder = Builder()
    place = builder.param(tensor_type(I64))

    def number(n: int) -> Value:
        return builder.emit(OPS["constant"], value=Literal(np.int64(n)))

    strides = strides_of(source.shape)
    flat = builder.emit(OPS["clip"], place, number(0), number(max(source.shape[axis] - 1, 0)))
    flat = builder.emit(OPS["mul"], flat, number(strides[axis]))
    kept = [k for k in range(out.ndim) if k not in places]
    for k, stride in zip(kept, (*strides[:axis], *strides[axis + 1 :]), strict=True):
        step = builder.emit(OPS["mul"], builder.emit(OPS["index"], axis=k), number(stride))
        flat = builder.emit(OPS["add"], flat, step)
    result = builder.emit(OPS["load_at"], flat, operand=0, dtype=source.dtype)
    return _whole(op, [Load(1, read)], builder, result)


_NAMED: Mapping[str, Callable[[Op], Pieces | None]] = {
    "concatenate": _concatenate,
    "pad": _pad,
    "update": _update,
    "iota": _iota,
    "gather": _gather,
}
