"""Ops that move elements without computing: broadcast reshape transpose slice reverse pad concatenate, and update."""

import math
from collections.abc import Sequence

import numpy as np

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.index import Access, Affine, Bound, flatten_index, reshape_index
from pullback.ir.opdef import PLAIN, Algebra, Array, Library, Linear, OpDef, RunRegion, Types, View
from pullback.ir.ops.common import all_batched, check_arity, check_axes, words
from pullback.ir.types import Shape, TensorType

Index = tuple[Affine, ...]
NO_REGIONS = tuple[Region, ...]


# ------------------------------------------------------------------ broadcast


def _broadcast_infer(types: Types, attrs: Attrs, regions: NO_REGIONS) -> tuple[TensorType, ...]:
    check_arity("broadcast", types, 1)
    (x,) = types
    dims, shape = attrs["dims"], attrs["shape"]
    check_axes("broadcast", dims, len(shape), types)
    if len(dims) != x.ndim or any(shape[d] != n for d, n in zip(dims, x.shape, strict=True)):
        raise ShapeError(f"broadcast of {x} to {list(shape)} with dims {list(dims)}: each axis must keep its length")
    return (x.with_shape(shape),)


def _broadcast_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    shape, dims = op.attrs["shape"], op.attrs["dims"]
    (x,) = args
    return (np.broadcast_to(x.reshape([n if k in dims else 1 for k, n in enumerate(shape)]), shape),)


def _broadcast_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr, ...]:
    axes = tuple(k for k in range(ct.ndim) if k not in op.attrs["dims"])
    return (f.sum(ct, axes=axes) if axes else ct,)


def _broadcast_batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    (x,) = args
    dims = (0, *(d + 1 for d in op.attrs["dims"]))
    return (f.op("broadcast", x, dims=dims, shape=(x.shape[0], *op.attrs["shape"])),)


BROADCAST = OpDef(
    name="broadcast",
    arity=1,
    attrs={"dims": "ints", "shape": "ints"},
    infer=_broadcast_infer,
    evaluate=_broadcast_evaluate,
    numpy=(),
    derivative=Linear(_broadcast_transpose),
    batch=_broadcast_batch,
    lower=View(lambda op, index: (Access(0, tuple(index[d] for d in op.attrs["dims"])),)),
    algebra=PLAIN,
    doc="Copies along new axes; axis k of the operand is axis `dims[k]` of the result. Its transpose is `sum` over the "
    "new axes.",
)


# ------------------------------------------------------------------ reshape, transpose, reverse


def _reshape_infer(types: Types, attrs: Attrs, regions: NO_REGIONS) -> tuple[TensorType, ...]:
    check_arity("reshape", types, 1)
    if math.prod(attrs["shape"]) != types[0].size:
        raise ShapeError(f"reshape of {types[0]} to {list(attrs['shape'])}: {types[0].size} elements do not fit")
    return (types[0].with_shape(attrs["shape"]),)


def _reshape_access(op: Op, index: Index) -> tuple[Access, ...]:
    shape, source = op.attrs["shape"], op.operands[0].type.shape
    mapped = reshape_index(index, shape, source)
    if mapped is not None:
        return (Access(0, mapped),)
    return (Access(0, (flatten_index(index, shape),), flat=True),)


RESHAPE = OpDef(
    name="reshape",
    arity=1,
    attrs={"shape": "ints"},
    infer=_reshape_infer,
    evaluate=lambda op, args, run: (args[0].reshape(op.attrs["shape"]),),
    numpy=(),
    derivative=Linear(lambda f, op, ct: (f.reshape_to(ct, op.operands[0].type.shape),)),
    batch=lambda f, op, args, batched: (f.reshape_to(args[0], (args[0].shape[0], *op.attrs["shape"])),),
    lower=View(_reshape_access),
    algebra=PLAIN,
    doc="The same elements in C order under another shape of the same size.",
)


def _transpose_infer(types: Types, attrs: Attrs, regions: NO_REGIONS) -> tuple[TensorType, ...]:
    check_arity("transpose", types, 1)
    (x,) = types
    perm = attrs["perm"]
    if sorted(perm) != list(range(x.ndim)):
        raise ShapeError(f"transpose of {x}: {list(perm)} is not a permutation of its axes")
    return (x.with_shape(tuple(x.shape[p] for p in perm)),)


def inverse_permutation(perm: Sequence[int]) -> tuple[int, ...]:
    inverse = [0] * len(perm)
    for k, p in enumerate(perm):
        inverse[p] = k
    return tuple(inverse)


def _transpose_access(op: Op, index: Index) -> tuple[Access, ...]:
    return (Access(0, tuple(index[k] for k in inverse_permutation(op.attrs["perm"]))),)


TRANSPOSE = OpDef(
    name="transpose",
    arity=1,
    attrs={"perm": "ints"},
    infer=_transpose_infer,
    evaluate=lambda op, args, run: (args[0].transpose(op.attrs["perm"]),),
    numpy=(),
    derivative=Linear(lambda f, op, ct: (f.permute(ct, inverse_permutation(op.attrs["perm"])),)),
    batch=lambda f, op, args, batched: (f.permute(args[0], (0, *(p + 1 for p in op.attrs["perm"]))),),
    lower=View(_transpose_access),
    algebra=PLAIN,
    doc="Axes reordered: axis k of the result is axis `perm[k]` of the operand.",
)


def _reverse_infer(types: Types, attrs: Attrs, regions: NO_REGIONS) -> tuple[TensorType, ...]:
    check_arity("reverse", types, 1)
    check_axes("reverse", attrs["axes"], types[0].ndim, types)
    return (types[0],)


def _reverse_access(op: Op, index: Index) -> tuple[Access, ...]:
    shape, axes = op.operands[0].type.shape, op.attrs["axes"]
    return (Access(0, tuple(e.scale(-1).shift(shape[k] - 1) if k in axes else e for k, e in enumerate(index))),)


REVERSE = OpDef(
    name="reverse",
    arity=1,
    attrs={"axes": "ints"},
    infer=_reverse_infer,
    evaluate=lambda op, args, run: (np.flip(args[0], op.attrs["axes"]),),
    numpy=(),
    derivative=Linear(lambda f, op, ct: (f.reverse(ct, axes=op.attrs["axes"]),)),
    batch=lambda f, op, args, batched: (f.reverse(args[0], axes=tuple(a + 1 for a in op.attrs["axes"])),),
    lower=View(_reverse_access),
    algebra=Algebra(involutive=True),
    doc="The elements along `axes` in opposite order.",
)


# ------------------------------------------------------------------ slice, pad, update


def _check_slice(name: str, x: TensorType, attrs: Attrs) -> Shape:
    start, stop, step = attrs["start"], attrs["stop"], attrs["step"]
    if not len(start) == len(stop) == len(step) == x.ndim:
        raise ShapeError(f"{name} of {x}: start, stop and step need {x.ndim} entries")
    shape = []
    for a, b, s, n in zip(start, stop, step, x.shape, strict=True):
        if not 0 <= a <= b <= n or s < 1:
            raise ShapeError(f"{name} of {x}: {a}:{b}:{s} is not within an axis of length {n}")
        shape.append(b - a if s == 1 else -(-(b - a) // s))
    return tuple(shape)


def numpy_slices(op: Op) -> tuple[slice, ...]:
    return tuple(slice(a, b, s) for a, b, s in zip(op.attrs["start"], op.attrs["stop"], op.attrs["step"], strict=True))


def _slice_infer(types: Types, attrs: Attrs, regions: NO_REGIONS) -> tuple[TensorType, ...]:
    check_arity("slice", types, 1)
    return (types[0].with_shape(_check_slice("slice", types[0], attrs)),)


def _slice_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr, ...]:
    shape, start, step = op.operands[0].type.shape, op.attrs["start"], op.attrs["step"]
    low, high = [], []
    for n, a, s, m in zip(shape, start, step, ct.shape, strict=True):
        low.append(a if m else 0)
        high.append(n - (a + (m - 1) * s + 1) if m else n)
    return (f.pad(ct, low=tuple(low), high=tuple(high), interior=tuple(s - 1 for s in step)),)


def _slice_batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    (x,) = args
    a = op.attrs
    return (f.slice(x, start=(0, *a["start"]), stop=(x.shape[0], *a["stop"]), step=(1, *a["step"])),)


def _slice_access(op: Op, index: Index) -> tuple[Access, ...]:
    a = op.attrs
    return (Access(0, tuple(e.scale(s).shift(o) for e, s, o in zip(index, a["step"], a["start"], strict=True))),)


SLICE = OpDef(
    name="slice",
    arity=1,
    attrs={"start": "ints", "stop": "ints", "step": "ints"},
    infer=_slice_infer,
    evaluate=lambda op, args, run: (args[0][numpy_slices(op)],),
    numpy=(),
    derivative=Linear(_slice_transpose),
    batch=_slice_batch,
    lower=View(_slice_access),
    algebra=PLAIN,
    doc="Elements start, start+step, ... below stop along each axis; steps are positive. Its transpose is `pad`.",
)


def _padded(n: int, low: int, high: int, interior: int) -> int:
    return low + (n + (n - 1) * interior if n else 0) + high


def _pad_infer(types: Types, attrs: Attrs, regions: NO_REGIONS) -> tuple[TensorType, ...]:
    check_arity("pad", types, 1)
    (x,) = types
    widths = (attrs["low"], attrs["high"], attrs["interior"])
    if any(len(w) != x.ndim or min(w, default=0) < 0 for w in widths):
        raise ShapeError(f"pad of {x}: low, high and interior need {x.ndim} entries, none negative")
    return (x.with_shape(tuple(_padded(*row) for row in zip(x.shape, *widths, strict=True))),)


def _pad_slices(op: Op) -> tuple[slice, ...]:
    rows = zip(op.operands[0].type.shape, op.attrs["low"], op.attrs["interior"], strict=True)
    return tuple(slice(low, low + _padded(n, 0, 0, inner), inner + 1) for n, low, inner in rows)


def _pad_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    result = np.zeros(op.results[0].type.shape, args[0].dtype)
    result[_pad_slices(op)] = args[0]
    return (result,)


def _pad_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr, ...]:
    slices = _pad_slices(op)
    return (
        f.slice(
            ct,
            start=tuple(s.start for s in slices),
            stop=tuple(s.stop for s in slices),
            step=tuple(s.step for s in slices),
        ),
    )


def _pad_batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    a = op.attrs
    return (f.pad(args[0], low=(0, *a["low"]), high=(0, *a["high"]), interior=(0, *a["interior"])),)


def _pad_access(op: Op, index: Index) -> tuple[Access, ...]:
    """For pads without interior; the code generator writes interior pads as strided stores into zeros."""
    shape, low = op.operands[0].type.shape, op.attrs["low"]
    moved = tuple(e.shift(-a) for e, a in zip(index, low, strict=True))
    padded = op.results[0].type.shape
    bounds = tuple(Bound(e, 0, n) for e, n, m in zip(moved, shape, padded, strict=True) if n != m)
    return (Access(0, moved, bounds),)


PAD = OpDef(
    name="pad",
    arity=1,
    attrs={"low": "ints", "high": "ints", "interior": "ints"},
    infer=_pad_infer,
    evaluate=_pad_evaluate,
    numpy=(),
    derivative=Linear(_pad_transpose),
    batch=_pad_batch,
    lower=View(_pad_access),
    algebra=PLAIN,
    doc="Zeros before, after and between (`interior`) the elements of each axis. Its transpose is `slice`.",
)


def _update_infer(types: Types, attrs: Attrs, regions: NO_REGIONS) -> tuple[TensorType, ...]:
    check_arity("update", types, 2)
    x, v = types
    if v.dtype != x.dtype:
        raise TypeRuleError(f"update needs operands of one dtype, got {words(types)}")
    if v.shape != _check_slice("update", x, attrs):
        raise ShapeError(
            f"update of {x}: the slice has shape {list(_check_slice('update', x, attrs))}, the new value is {v}"
        )
    return (x,)


def _update_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    result = np.array(args[0])
    result[numpy_slices(op)] = args[1]
    return (result,)


def _update_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr, ...]:
    a = op.attrs
    hole = f.full(op.operands[1].type, 0)
    return f.update(ct, hole, **a), f.slice(ct, **a)


def _update_batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    x, v = all_batched(f, args, batched)
    a = op.attrs
    return (f.update(x, v, start=(0, *a["start"]), stop=(x.shape[0], *a["stop"]), step=(1, *a["step"])),)


UPDATE = OpDef(
    name="update",
    arity=2,
    attrs={"start": "ints", "stop": "ints", "step": "ints"},
    infer=_update_infer,
    evaluate=_update_evaluate,
    numpy=(),
    derivative=Linear(_update_transpose),
    batch=_update_batch,
    lower=Library("update"),
    algebra=PLAIN,
    doc="x with a slice replaced by v. The cotangent of x is zero in the slice; of v it is the slice.",
)


# ------------------------------------------------------------------ concatenate


def _concatenate_infer(types: Types, attrs: Attrs, regions: NO_REGIONS) -> tuple[TensorType, ...]:
    axis = attrs["axis"]
    if not types:
        raise TypeRuleError("concatenate needs at least one operand")
    first = types[0]
    check_axes("concatenate", (axis,), first.ndim, types)
    for t in types:
        if t.dtype != first.dtype or t.ndim != first.ndim:
            raise TypeRuleError(f"concatenate needs operands of one dtype and number of axes, got {words(types)}")
        if any(n != m for k, (n, m) in enumerate(zip(t.shape, first.shape, strict=True)) if k != axis):
            raise ShapeError(f"concatenate along axis {axis}: the other axes differ in {words(types)}")
    total = sum(t.shape[axis] for t in types)
    return (first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :])),)


def _concatenate_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr, ...]:
    axis, at, parts = op.attrs["axis"], 0, []
    for v in op.operands:
        n = v.type.shape[axis]
        start = tuple(at if k == axis else 0 for k in range(ct.ndim))
        stop = tuple(at + n if k == axis else m for k, m in enumerate(ct.shape))
        parts.append(f.slice(ct, start=start, stop=stop, step=(1,) * ct.ndim))
        at += n
    return tuple(parts)


def _concatenate_access(op: Op, index: Index) -> tuple[Access, ...]:
    axis, at, pieces = op.attrs["axis"], 0, []
    for number, v in enumerate(op.operands):
        n = v.type.shape[axis]
        moved = tuple(e.shift(-at) if k == axis else e for k, e in enumerate(index))
        pieces.append(Access(number, moved, (Bound(moved[axis], 0, n),)))
        at += n
    return tuple(pieces)


CONCATENATE = OpDef(
    name="concatenate",
    arity=None,
    attrs={"axis": "int"},
    infer=_concatenate_infer,
    evaluate=lambda op, args, run: (np.concatenate(args, op.attrs["axis"]),),
    numpy=(),
    derivative=Linear(_concatenate_transpose),
    batch=lambda f, op, args, batched: (f.concatenate(*all_batched(f, args, batched), axis=op.attrs["axis"] + 1),),
    lower=View(_concatenate_access),
    algebra=PLAIN,
    doc="Arrays one after the other along `axis`.",
)

VIEWS = (BROADCAST, RESHAPE, TRANSPOSE, REVERSE, SLICE, PAD, UPDATE, CONCATENATE)
