"""Gather, scatter, scatter_add: indices that are values. All index one axis; several are folded into one beforehand."""

import math
from collections.abc import Sequence

import numpy as np

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Array, Library, Linear, OpDef, RunRegion, Types
from pullback.ir.ops.common import all_batched, check_arity, check_axes, words
from pullback.ir.types import I64, Shape, TensorType


def _picked(name: str, x: TensorType, idx: TensorType, axis: int) -> Shape:
    check_axes(name, (axis,), x.ndim, (x, idx))
    if idx.dtype != I64:
        raise TypeRuleError(f"{name} needs i64 indices, got {words((x, idx))}")
    if x.shape[axis] == 0 and idx.size:
        raise ShapeError(f"{name}: axis {axis} of {x} has no elements to index")
    return (*x.shape[:axis], *idx.shape, *x.shape[axis + 1 :])


def _gather_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("gather", types, 2)
    x, idx = types
    return (x.with_shape(_picked("gather", x, idx, attrs["axis"])),)


def _clamped(idx: Array, n: int) -> Array:
    return np.clip(idx, 0, max(n - 1, 0))


def _gather_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    (x, idx), axis = args, op.attrs["axis"]
    return (np.take(x, _clamped(idx, x.shape[axis]), axis=axis),)


def _gather_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr | None, ...]:
    base = f.full(op.operands[0].type, 0)
    return f.scatter_add(base, f.wrap(op.operands[1]), ct, axis=op.attrs["axis"]), None


def _with_batch_offset(f: Emitter, idx: Expr, n: int) -> Expr:
    """Batched indices into n elements become indices into the batch's elements, one batch after the other."""
    return idx + f.arange_like(idx.shape, 0) * n


def _merge_batch(f: Emitter, x: Expr, axis: int) -> tuple[Expr, tuple[int, ...]]:
    """[batch, ..., n, ...] -> [batch * n, ...], and the permutation that moved axis `axis` + 1 behind the batch."""
    perm = (0, axis + 1, *(k for k in range(1, x.ndim) if k != axis + 1))
    moved = f.permute(x, perm)
    return f.reshape_to(moved, (moved.shape[0] * moved.shape[1], *moved.shape[2:])), perm


def _gather_batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    (x, idx), axis = args, op.attrs["axis"]
    if not batched[1]:
        return (f.gather(x, idx, axis=axis + 1),)
    if not batched[0]:
        out = f.gather(x, idx, axis=axis)
        return (f.permute(out, (axis, *(k for k in range(out.ndim) if k != axis))),)
    n, k = x.shape[axis + 1], idx.ndim
    merged, _ = _merge_batch(f, x, axis)
    out = f.gather(merged, _with_batch_offset(f, idx, n), axis=0)
    # out: batch, idx axes, the axes before `axis`, the axes after it
    perm = (0, *range(k, k + axis), *range(1, k), *range(k + axis, out.ndim))
    return (f.permute(out, perm),)


GATHER = OpDef(
    name="gather",
    arity=2,
    attrs={"axis": "int"},
    infer=_gather_infer,
    evaluate=_gather_evaluate,
    numpy=(),
    derivative=Linear(_gather_transpose, operands=(0,)),
    batch=_gather_batch,
    lower=Library("gather"),
    algebra=PLAIN,
    doc="Elements of x at `idx` along `axis`: the axis is replaced by the axes of idx. Indices are in 0..n-1 (others "
    "are clamped; a `check` reports them). Its transpose is scatter_add: repeated indices accumulate.",
)


# ------------------------------------------------------------------ scatter


def _scatter_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("scatter", types, 3)
    base, idx, updates = types
    if updates.dtype != base.dtype:
        raise TypeRuleError(f"scatter needs base and updates of one dtype, got {words(types)}")
    if updates.shape != _picked("scatter", base, idx, attrs["axis"]):
        raise ShapeError(f"scatter along axis {attrs['axis']}: the updates do not fit, got {words(types)}")
    return (base,)


def _moved_updates(op: Op, args: Sequence[Array]) -> tuple[Array, Array, Array]:
    """A copy of the base with the axis first, flat indices, updates with the indices first."""
    base, idx, updates = args
    axis = op.attrs["axis"]
    rest = tuple(k for k in range(updates.ndim) if not axis <= k < axis + idx.ndim)
    first = updates.transpose((*range(axis, axis + idx.ndim), *rest))
    target = np.moveaxis(np.array(base), axis, 0)
    flat = _clamped(idx, base.shape[axis]).reshape(-1)
    return target, flat, first.reshape((idx.size, *target.shape[1:]))


def _scatter_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    target, flat, updates = _moved_updates(op, args)
    for k, place in enumerate(flat):  # in order: the last writer wins
        target[place] = updates[k]
    return (np.ascontiguousarray(np.moveaxis(target, 0, op.attrs["axis"])),)


def _scatter_add_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    target, flat, updates = _moved_updates(op, args)
    np.add.at(target, flat, updates)
    return (np.ascontiguousarray(np.moveaxis(target, 0, op.attrs["axis"])),)


def _is_last_writer(f: Emitter, op: Op, idx: Expr) -> Expr:
    """For each index whether no later one writes to the same place."""
    n, size = op.operands[0].type.shape[op.attrs["axis"]], math.prod(idx.shape)
    order = f.reshape_to(f.arange_like((size,), 0), idx.shape)
    owner = f.scatter(f.full(order.type.with_shape((n,)), 0), idx, order, axis=0)
    return f.gather(owner, idx, axis=0).eq(order)


def _scatter_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr | None, ...]:
    axis, idx = op.attrs["axis"], f.wrap(op.operands[1])
    hole = f.full(op.operands[2].type, 0)
    read = f.gather(ct, idx, axis=axis)
    if idx.type.size > 1:
        dims = tuple(range(axis, axis + idx.ndim))
        read = f.select(f.broadcast_to(_is_last_writer(f, op, idx), read.shape, dims), read, hole)
    return f.scatter(ct, idx, hole, axis=axis), None, read


def _scatter_batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    axis = op.attrs["axis"]
    if not batched[1]:
        wide = all_batched(f, (args[0], args[2]), (batched[0], batched[2])) if batched[0] or batched[2] else None
        assert wide is not None
        return (f.op(op.name, wide[0], args[1], wide[1], axis=axis + 1),)
    base, idx, updates = all_batched(f, args, batched)
    n, k = base.shape[axis + 1], idx.ndim
    merged, perm = _merge_batch(f, base, axis)
    # updates: batch, axes before, idx axes, axes after -> batch, idx axes, axes before, axes after
    order = (0, *range(axis + 1, axis + k), *range(1, axis + 1), *range(axis + k, updates.ndim))
    out = f.op(op.name, merged, _with_batch_offset(f, idx, n), f.permute(updates, order), axis=0)
    apart = f.reshape_to(out, tuple(base.shape[p] for p in perm))
    return (f.permute(apart, tuple(int(p) for p in np.argsort(perm))),)


SCATTER = OpDef(
    name="scatter",
    arity=3,
    attrs={"axis": "int"},
    infer=_scatter_infer,
    evaluate=_scatter_evaluate,
    numpy=(),
    derivative=Linear(_scatter_transpose, operands=(0, 2)),
    batch=_scatter_batch,
    lower=Library("scatter"),
    algebra=PLAIN,
    doc="base with the places `idx` along `axis` replaced by updates; of repeated indices the last wins, and gets the "
    "gradient.",
)


def _scatter_add_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr | None, ...]:
    return ct, None, f.gather(ct, f.wrap(op.operands[1]), axis=op.attrs["axis"])


SCATTER_ADD = OpDef(
    name="scatter_add",
    arity=3,
    attrs={"axis": "int"},
    infer=_scatter_infer,
    evaluate=_scatter_add_evaluate,
    numpy=(),
    derivative=Linear(_scatter_add_transpose, operands=(0, 2)),
    batch=_scatter_batch,
    lower=Library("scatter_add"),
    algebra=PLAIN,
    doc="base with updates added at the places `idx` along `axis`; repeated indices accumulate.",
)

INDEXING = (GATHER, SCATTER, SCATTER_ADD)
