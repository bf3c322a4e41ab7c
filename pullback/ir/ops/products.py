"""dot_general: every product of two arrays that sums over shared axes."""

import math
from collections.abc import Sequence

import numpy as np

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Array, Bilinear, Library, OpDef, RunRegion, Types
from pullback.ir.ops.common import check_arity, words
from pullback.ir.types import TensorType

Axes = tuple[int, ...]


def free_axes(ndim: int, *used: Axes) -> Axes:
    taken = {a for axes in used for a in axes}
    return tuple(k for k in range(ndim) if k not in taken)


def _infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("dot_general", types, 2)
    x, y = types
    (xc, yc), (xb, yb) = attrs["contract"], attrs["batch"]
    if x.dtype != y.dtype or x.dtype.kind == "b":
        raise TypeRuleError(f"dot_general needs two operands of one number dtype, got {words(types)}")
    for axes, t in ((xc + xb, x), (yc + yb, y)):
        if len(set(axes)) != len(axes) or any(not 0 <= a < t.ndim for a in axes):
            raise ShapeError(f"dot_general: axes {list(axes)} are not distinct axes of {t}")
    pairs = list(zip(xc + xb, yc + yb, strict=True)) if len(xc) == len(yc) and len(xb) == len(yb) else None
    if pairs is None or any(x.shape[a] != y.shape[b] for a, b in pairs):
        raise ShapeError(
            f"dot_general: axes {list(xc)}, {list(yc)} (and batch {list(xb)}, {list(yb)}) of {words(types)} do not fit"
        )
    shape = [x.shape[a] for a in xb]
    shape += [x.shape[a] for a in free_axes(x.ndim, xc, xb)]
    shape += [y.shape[a] for a in free_axes(y.ndim, yc, yb)]
    return (x.with_shape(tuple(shape)),)


def _evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    x, y = args
    (xc, yc), (xb, yb) = op.attrs["contract"], op.attrs["batch"]
    xf, yf = free_axes(x.ndim, xc, xb), free_axes(y.ndim, yc, yb)
    k = math.prod(x.shape[a] for a in xc)
    batch = tuple(x.shape[a] for a in xb)
    lhs = x.transpose(xb + xf + xc).reshape((*batch, math.prod(x.shape[a] for a in xf), k))
    rhs = y.transpose(yb + yc + yf).reshape((*batch, k, math.prod(y.shape[a] for a in yf)))
    wide = np.float32 if x.dtype == np.float16 else x.dtype  # float16 sums in float32 and rounds once
    product = np.matmul(lhs.astype(wide), rhs.astype(wide))
    return (product.astype(x.dtype).reshape(op.results[0].type.shape),)


def _transpose_lhs(f: Emitter, op: Op, ct: Expr, y: Expr) -> Expr:
    """Contract ct with y over y's free axes, then put x's axes back in their order."""
    (xc, yc), (xb, yb) = op.attrs["contract"], op.attrs["batch"]
    x = op.operands[0].type
    xf, yf = free_axes(x.ndim, xc, xb), free_axes(y.ndim, yc, yb)
    nb = len(xb)
    ct_batch, ct_x, ct_y = tuple(range(nb)), len(xf), len(yf)
    ct_free_y = tuple(range(nb + ct_x, nb + ct_x + ct_y))
    out = f.dot_general(ct, y, contract=(ct_free_y, yf), batch=(ct_batch, yb))
    # out axes: batch (xb), x free (xf), y's contracted axes in increasing order
    order = sorted(range(len(yc)), key=lambda k: yc[k])
    holds = (*xb, *xf, *(xc[k] for k in order))
    return f.permute(out, tuple(holds.index(a) for a in range(x.ndim)))


def _transpose_rhs(f: Emitter, op: Op, ct: Expr, x: Expr) -> Expr:
    (xc, yc), (xb, yb) = op.attrs["contract"], op.attrs["batch"]
    y = op.operands[1].type
    xf, yf = free_axes(x.ndim, xc, xb), free_axes(y.ndim, yc, yb)
    nb = len(xb)
    ct_free_x = tuple(range(nb, nb + len(xf)))
    out = f.dot_general(x, ct, contract=(xf, ct_free_x), batch=(xb, tuple(range(nb))))
    # out axes: batch (yb), x's contracted axes in increasing order, y free (yf)
    order = sorted(range(len(xc)), key=lambda k: xc[k])
    holds = (*yb, *(yc[k] for k in order), *yf)
    return f.permute(out, tuple(holds.index(a) for a in range(y.ndim)))


def _batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    x, y = args
    (xc, yc), (xb, yb) = op.attrs["contract"], op.attrs["batch"]
    moved_x = tuple(a + 1 for a in xc), tuple(a + 1 for a in xb)
    moved_y = tuple(a + 1 for a in yc), tuple(a + 1 for a in yb)
    if all(batched):
        batch = ((0, *moved_x[1]), (0, *moved_y[1]))
        return (f.dot_general(x, y, contract=(moved_x[0], moved_y[0]), batch=batch),)
    if batched[0]:  # the batch axis is a free axis of x: first among them, behind the op's own batch axes
        out = f.dot_general(x, y, contract=(moved_x[0], yc), batch=(moved_x[1], yb))
        at = len(xb)
    else:
        out = f.dot_general(x, y, contract=(xc, moved_y[0]), batch=(xb, moved_y[1]))
        at = x.ndim - len(xc)
    return (f.permute(out, (at, *(k for k in range(out.ndim) if k != at))),)


DOT_GENERAL = OpDef(
    name="dot_general",
    arity=2,
    attrs={"contract": "pairs", "batch": "pairs"},
    infer=_infer,
    evaluate=_evaluate,
    numpy=(),
    derivative=Bilinear(_transpose_lhs, _transpose_rhs),
    batch=_batch,
    lower=Library("dot_general"),
    algebra=PLAIN,
    doc="Sum of products over the axis pairs `contract`; `batch` pairs run along. Result axes: batch, free of x, free "
    "of y. float16 is summed in float32.",
)

PRODUCTS = (DOT_GENERAL,)
