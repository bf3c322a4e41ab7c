"""dot_general: sums of products, by the cheapest of three ways.

- Products with a vector, outer products, and dtypes that BLAS does not know: a kernel, as any reduction.
- Small matrices: generated code with the result in registers (`gemm`).
- Large ones: BLAS, with transposes in the call.

An operand is copied first only where its axes do not fold into a matrix with one contiguous axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pullback.codegen.blas import BlasCall, emit_blas, is_blas_dtype
from pullback.codegen.gemm import Matrices, emit_small_gemm, is_small
from pullback.codegen.kernel import chunk_pointers, run_parallel
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.program import Frame, Program
from pullback.codegen.single import copy_piece
from pullback.codegen.spec import KernelSpec, make_spec
from pullback.ir.builder import Builder
from pullback.ir.graph import Op
from pullback.ir.index import Affine, axis_index, flatten_index, strides_of
from pullback.ir.kernel import Load, Store
from pullback.ir.ops import OPS
from pullback.ir.types import DType, Shape, TensorType, tensor_type

Axes = tuple[int, ...]

PARALLEL_FLOPS = 400_000
"""Batches of small products are shared among threads from so many multiplications on."""

OPENBLAS_THREADS_FROM = 262_144
"""Products with more multiplications than this OpenBLAS shares among threads itself."""


@dataclass(frozen=True)
class Operand:
    """An operand as a batch of matrices: strides, in elements, of batch, free and contracted index."""

    batch: int
    free: int
    contracted: int


@dataclass(frozen=True)
class Product:
    """out[b, m, n] = sum over k of x[b, m, k] * y[b, k, n]."""

    dtype: DType
    batch: int
    m: int
    n: int
    k: int
    x: Operand
    y: Operand


def lower_dot_general(frame: Frame, op: Op) -> None:
    """Any product of two arrays that sums over shared axes."""
    (x, y), (out,) = op.operands, op.results
    if out.type.size == 0:
        return
    if not _wants_matrices(op):
        frame.run_on(product_spec(op), (x, y), (out,))
        return
    sides = _sides(op)
    sources = [frame.pointer(x), frame.pointer(y)]
    copies = [side.copy() if side.folded() is None else None for side in sides]
    sizes = [0 if copy is None else copy.nbytes for copy in copies]
    with frame.scratch(sum(-(-size // 64) * 64 for size in sizes)) as scratch:
        place = 0
        for number, (side, size) in enumerate(zip(sides, sizes, strict=True)):
            if size:
                target = frame.b.gep("i8", scratch, place)
                _copy_side(frame, side, sources[number], target)
                sources[number] = target
                place += -(-size // 64) * 64
        _run(frame, _product(sides), sources, frame.pointer(out))


# ------------------------------------------------------------------ as a kernel


def product_spec(op: Op) -> KernelSpec:
    """The product as a loop nest over batch, free and contracted axes."""
    (x, y), (out,) = op.operands, op.results
    (xc, yc), (xb, yb) = op.attrs["contract"], op.attrs["batch"]
    xf, yf = _free(x.type.ndim, xc, xb), _free(y.type.ndim, yc, yb)
    space = (*out.type.shape, *(x.type.shape[a] for a in xc))
    place = {("x", a): k for k, a in enumerate((*xb, *xf))}
    place.update({("y", a): k for k, a in enumerate(yb)})
    place.update({("y", a): len(xb) + len(xf) + k for k, a in enumerate(yf)})
    for k, (a, b) in enumerate(zip(xc, yc, strict=True)):
        place["x", a] = place["y", b] = out.type.ndim + k
    reads = [_position(x.type, "x", place), _position(y.type, "y", place)]
    write = flatten_index([axis_index(k) for k in range(out.type.ndim)], out.type.shape)
    builder = Builder()
    scalar = tensor_type(out.type.dtype)
    value = builder.emit(OPS["mul"], builder.param(scalar), builder.param(scalar))
    loads = tuple(Load(k, read) for k, read in enumerate(reads))
    spec = make_spec(space, loads, (Store("sum", out.type, write),), (x.type, y.type), builder.region([value]))
    return replace(spec, contracts=True)


def _free(ndim: int, *used: Axes) -> Axes:
    return tuple(a for a in range(ndim) if all(a not in axes for axes in used))


def _position(type_: TensorType, name: str, place: dict[tuple[str, int], int]) -> Affine:
    return flatten_index([axis_index(place[name, a]) for a in range(type_.ndim)], type_.shape)


def _wants_matrices(op: Op) -> bool:
    """Is it a product of matrices proper, of a dtype that has one."""
    (x, y) = op.operands
    (xc, _), (xb, _) = op.attrs["contract"], op.attrs["batch"]
    contracted = math.prod(x.type.shape[a] for a in xc)
    batch = math.prod(x.type.shape[a] for a in xb)
    rows, columns = x.type.size // max(1, contracted * batch), y.type.size // max(1, contracted * batch)
    return is_blas_dtype(x.type.dtype) and min(rows, columns, contracted) > 1


# ------------------------------------------------------------------ axes folded into matrices


@dataclass(frozen=True)
class Side:
    """One operand and its axes in the order wanted: batch, free, contracted."""

    type: TensorType
    batch: Axes
    free: Axes
    contracted: Axes

    def folded(self) -> Operand | None:
        """The three strides; None where a group of axes is not one."""
        strides = strides_of(self.type.shape)
        groups = [_folded(self.type.shape, strides, axes) for axes in (self.batch, self.free, self.contracted)]
        if any(stride is None for stride in groups):
            return None
        batch, free, contracted = (stride or 0 for stride in groups)
        return Operand(batch, free, contracted) if 1 in (free, contracted) else None

    def size(self, axes: Axes) -> int:
        return math.prod(self.type.shape[a] for a in axes)

    def copy(self) -> TensorType:
        """The type of the operand put in order."""
        order = (*self.batch, *self.free, *self.contracted)
        return self.type.with_shape(tuple(self.type.shape[a] for a in order))

    def ordered(self) -> Side:
        """The copy's own axes."""
        ends = (len(self.batch), len(self.batch) + len(self.free), self.type.ndim)
        return Side(self.copy(), tuple(range(ends[0])), tuple(range(*ends[:2])), tuple(range(*ends[1:])))


def _folded(shape: Shape, strides: Shape, axes: Axes) -> int | None:
    """The stride of a group of axes that are walked through as one; 0 for a group of length 1."""
    live = [a for a in axes if shape[a] != 1]
    for outer, inner in zip(live, live[1:], strict=False):
        if strides[outer] != strides[inner] * shape[inner]:
            return None
    return strides[live[-1]] if live else 0


def _sides(op: Op) -> tuple[Side, Side]:
    """Both operands, with the contracted axes in the order that folds best."""
    x, y = (v.type for v in op.operands)
    (xc, yc), (xb, yb) = op.attrs["contract"], op.attrs["batch"]
    xf, yf = _free(x.ndim, xc, xb), _free(y.ndim, yc, yb)
    best: tuple[Side, Side] | None = None
    for key in (xc, yc):
        order = sorted(range(len(xc)), key=lambda k, key=key: key[k])  # type: ignore[misc]
        pair = (
            Side(x, xb, xf, tuple(xc[k] for k in order)),
            Side(y, yb, yf, tuple(yc[k] for k in order)),
        )
        if best is None or _fitting(pair) > _fitting(best):
            best = pair
    assert best is not None
    return best


def _fitting(pair: tuple[Side, Side]) -> int:
    return sum(side.folded() is not None for side in pair)


def _copy_side(frame: Frame, side: Side, source: V, target: V) -> None:
    made = side.copy()
    order = (*side.batch, *side.free, *side.contracted)
    read = flatten_index([axis_index(order.index(a)) for a in range(side.type.ndim)], side.type.shape)
    write = flatten_index([axis_index(k) for k in range(made.ndim)], made.shape)
    piece = copy_piece(made.shape, side.type, read, made, write)
    frame.run(piece.spec, [source], [target], distinct=True)


def _product(sides: tuple[Side, Side]) -> Product:
    x, y = sides
    fixed = [(side if side.folded() is not None else side.ordered()).folded() for side in sides]
    assert fixed[0] is not None
    assert fixed[1] is not None
    batch, k = x.size(x.batch), x.size(x.contracted)
    return Product(x.type.dtype, batch, x.size(x.free), y.size(y.free), k, fixed[0], fixed[1])


# ------------------------------------------------------------------ running


def _run(frame: Frame, product: Product, sources: Sequence[V], out: V) -> None:
    """Call the routine of this product: for one matrix, or for each of the batch."""
    program = frame.program
    pointers = [*sources, out]

    def whole(program: Program, b: FunctionBuilder) -> None:
        _emit_matrices(program, b, product, b.params)

    if product.batch == 1:
        frame.b.call("void", program.routine(("dot", product), "dot", 3, whole), pointers)
        return
    flops = product.m * product.n * product.k
    if not frame.serial and flops <= OPENBLAS_THREADS_FROM and flops * product.batch >= PARALLEL_FLOPS:
        name = _chunk(program, product)
        run_parallel(program.e, frame.b, name, pointers, product.batch)
        return

    def each(program: Program, b: FunctionBuilder) -> None:
        with b.loop(0, product.batch) as loop:
            _emit_matrices(program, b, product, _matrices(b, product, b.params, loop.index))

    frame.b.call("void", program.routine(("dots", product), "dots", 3, each), pointers)


def _chunk(program: Program, product: Product) -> str:
    """The function of one matrix of a batch, for `run_parallel`."""
    key = ("dot chunk", product)

    def emit(b: FunctionBuilder) -> None:
        _emit_matrices(program, b, product, _matrices(b, product, chunk_pointers(b, 3), b.params[1]))

    return program.chunk(key, "dot.chunk", emit)


def _matrices(b: FunctionBuilder, product: Product, pointers: Sequence[V], number: V) -> list[V]:
    strides = (product.x.batch, product.y.batch, product.m * product.n)
    item = product.dtype.itemsize
    return [
        b.gep("i8", p, b.mul(number, stride * item), flags="") for p, stride in zip(pointers, strides, strict=True)
    ]


def _emit_matrices(program: Program, b: FunctionBuilder, product: Product, pointers: Sequence[V]) -> None:
    p = product
    matrices = Matrices(p.dtype, p.m, p.n, p.k, (p.x.free, p.x.contracted), (p.y.contracted, p.y.free))
    if is_small(matrices) or not program.blas_int:
        emit_small_gemm(program.e, b, matrices, *pointers)
    else:
        emit_blas(program.e, b, BlasCall(matrices, program.blas_int), *pointers)


