"""sort: several arrays put in the order of the first."""

import math
from collections.abc import Sequence

import numpy as np

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Array, Custom, Library, OpDef, RunRegion, Types
from pullback.ir.ops.common import all_batched, check_axes, words
from pullback.ir.types import TensorType

MaybeExprs = Sequence[Expr | None]


def _infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    if not types:
        raise TypeRuleError("sort needs at least one operand")
    check_axes("sort", (attrs["axis"],), types[0].ndim, types)
    if any(t.shape != types[0].shape for t in types):
        raise ShapeError(f"sort needs operands of one shape, got {words(types)}")
    return tuple(types)


def _evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    axis = op.attrs["axis"]
    order = np.argsort(args[0], axis=axis, kind="stable")
    return tuple(np.take_along_axis(a, order, axis) for a in args)


def _flat_order(f: Emitter, op: Op, args: Sequence[Expr]) -> Expr:
    """For each sorted position the flat number of the element that came there."""
    x, axis = args[0], op.attrs["axis"]
    place = f.ops_of("sort", x, f.arange_like(x.shape, axis), axis=axis)[1]
    strides = [math.prod(x.shape[k + 1 :]) for k in range(x.ndim)]
    flat = place * strides[axis]
    for k in range(x.ndim):
        if k != axis:
            flat = flat + f.arange_like(x.shape, k) * strides[k]
    return f.reshape_to(flat, (x.type.size,))


def _vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    if all(ct is None for ct in cts) or args[0].type.size == 0:
        return [None] * len(args)
    order = _flat_order(f, op, args)
    return [None if ct is None else _unsort(f, ct, order) for ct in cts]


def _unsort(f: Emitter, ct: Expr, order: Expr) -> Expr:
    flat = f.reshape_to(ct, (ct.type.size,))
    return f.reshape_to(f.scatter(f.zeros_like(flat), order, flat, axis=0), ct.shape)


def _jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    if all(tan is None for tan in tans) or args[0].type.size == 0:
        return [None] * len(args)
    order = _flat_order(f, op, args)
    size = (args[0].type.size,)
    return [None if t is None else f.reshape_to(f.gather(f.reshape_to(t, size), order, axis=0), t.shape) for t in tans]


def _batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    return tuple(f.ops_of("sort", *all_batched(f, args, batched), axis=op.attrs["axis"] + 1))


SORT = OpDef(
    name="sort",
    arity=None,
    attrs={"axis": "int"},
    infer=_infer,
    evaluate=_evaluate,
    numpy=(),
    derivative=Custom(_vjp, _jvp),
    batch=_batch,
    lower=Library("sort"),
    algebra=PLAIN,
    doc="All operands reordered along `axis` so that the first is increasing; stable, NaN last. With an iota as second "
    "operand, its second result is argsort. Ties keep their order, and each input its own derivative.",
)

SORTING = (SORT,)
