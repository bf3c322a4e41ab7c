"""dot_general: sums of products, by the cheapest of three ways.

- Products with a vector, outer products, and dtypes that BLAS does not know: a kernel, as any reduction.
- Matrices whose right operand stays in the cache: generated code with the result in registers (`gemm`).
- Larger ones: BLAS, with transposes in the call.

An operand is copied first only where its axes do not fold into a matrix that the chosen way can read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pullback.codegen.blas import BlasCall, emit_blas, is_blas_dtype, one_blas_thread
from pullback.codegen.gemm import Matrices, emit_gemm, is_near, row_step
from pullback.codegen.kernel import chunk_pointers, run_parallel
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.program import Frame, Program, aligned
from pullback.codegen.single import copy_piece
from pullback.codegen.spec import KernelSpec, make_spec
from pullback.codegen.strips import lanes_for
from pullback.ir.builder import Builder
from pullback.ir.graph import Op, walk
from pullback.ir.index import Affine, axis_index, flatten_index, strides_of
from pullback.ir.kernel import Load, Store
from pullback.ir.ops import OPS
from pullback.ir.types import Shape, TensorType, tensor_type
from pullback.record import record

Axes = tuple[int, ...]

SHARED_FROM = 400_000
"""Multiplications from which generated products are shared among threads; each chunk has a quarter of it."""

OPENBLAS_THREADS_FROM = 262_144
"""Products with more multiplications than this OpenBLAS shares among threads itself."""

LARGE_SHARED_FROM = 2_000_000
"""Multiplications from which products by BLAS are shared among threads."""

MOST_PARTS, PART_LENGTH = 8, 96
"""A product by BLAS is cut into at most so many parts, of at least so many rows or columns: each packs the other
side."""

FEW_PRODUCTS = 2
"""So many different products in a program have code of their own whatever their size."""

LARGEST_TURN = 256 * 256
"""A right operand of more elements is not copied to turn its rows for generated code; BLAS packs it anyway."""


def lower_dot_general(frame: Frame, op: Op) -> None:
    """Any product of two arrays that sums over shared axes."""
    (x, y), (out,) = op.operands, op.results
    if out.type.size == 0:
        return
    if not _wants_matrices(op):
        frame.run_on(product_spec(op), (x, y), (out,))
        return
    sides = _sides(op)
    way = _Way.of(sides, frame.program.blas_int)
    sources = [frame.pointer(x), frame.pointer(y)]
    sizes = [0 if way.fits(side) else aligned(side.type.nbytes) for side in sides]
    with frame.scratch(sum(sizes)) as scratch:
        strides = []
        for number, side in enumerate(sides):
            if not sizes[number]:
                strides.append(side.strides())
                continue
            target = frame.b.gep("i8", scratch, sum(sizes[:number]))
            _copy_side(frame, side, sources[number], target)
            sources[number] = target
            strides.append(side.ordered().strides())
        _run(frame, way, _product(sides, strides, _has_few_products(frame)), [*sources, frame.pointer(out)])


def _has_few_products(frame: Frame) -> bool:
    """Are so few different products in the program that each may have code of its own."""
    program = frame.program
    if program.products is None:
        ops = [op for op in walk(program.plan.function.body) if op.name == "dot_general"]
        program.products = len({(*(v.type for v in op.operands), op.attrs.key()) for op in ops})
    return program.products <= FEW_PRODUCTS


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
    x, y = op.operands
    (xc, _), (xb, _) = op.attrs["contract"], op.attrs["batch"]
    contracted = math.prod(x.type.shape[a] for a in xc)
    batch = math.prod(x.type.shape[a] for a in xb)
    rows, columns = x.type.size // max(1, contracted * batch), y.type.size // max(1, contracted * batch)
    return is_blas_dtype(x.type.dtype) and min(rows, columns, contracted) > 1


# ------------------------------------------------------------------ axes folded into matrices


@record(frozen=True)
class Strides:
    """An operand as a batch of matrices: distances, in elements, along batch axes, rows and columns."""

    batch: Axes
    row: int
    column: int


@record(frozen=True)
class Side:
    """One operand, and its axes in groups: of the batch, of the matrix's rows and of its columns."""

    type: TensorType
    batch: Axes
    rows: Axes
    columns: Axes

    def strides(self) -> Strides | None:
        """The distances; None where the axes of rows, or of columns, are not walked through as one."""
        steps = strides_of(self.type.shape)
        row, column = (_folded(self.type.shape, steps, axes) for axes in (self.rows, self.columns))
        if row is None or column is None:
            return None
        return Strides(tuple(steps[a] for a in self.batch), row, column)

    def size(self, axes: Axes) -> int:
        return math.prod(self.type.shape[a] for a in axes)

    @property
    def order(self) -> Axes:
        return (*self.batch, *self.rows, *self.columns)

    def ordered(self) -> Side:
        """The same matrices, copied so that rows are contiguous."""
        made = self.type.with_shape(tuple(self.type.shape[a] for a in self.order))
        first, second = len(self.batch), len(self.batch) + len(self.rows)
        return Side(made, tuple(range(first)), tuple(range(first, second)), tuple(range(second, made.ndim)))


def _folded(shape: Shape, strides: Shape, axes: Axes) -> int | None:
    """The stride of a group of axes; 0 for a group of length 1."""
    live = [a for a in axes if shape[a] != 1]
    if any(strides[outer] != strides[inner] * shape[inner] for outer, inner in pairwise(live)):
        return None
    return strides[live[-1]] if live else 0


def _sides(op: Op) -> tuple[Side, Side]:
    """Both operands, with the contracted axes in the order that folds best."""
    x, y = (v.type for v in op.operands)
    (xc, yc), (xb, yb) = op.attrs["contract"], op.attrs["batch"]
    xf, yf = _free(x.ndim, xc, xb), _free(y.ndim, yc, yb)
    pairs = []
    for axes in (xc, yc):
        order = sorted(range(len(axes)), key=axes.__getitem__)
        x_order, y_order = tuple(xc[k] for k in order), tuple(yc[k] for k in order)
        pairs.append((Side(x, xb, xf, x_order), Side(y, yb, y_order, yf)))
    return max(pairs, key=lambda pair: sum(side.strides() is not None for side in pair))


def _copy_side(frame: Frame, side: Side, source: V, target: V) -> None:
    made = side.ordered().type
    read = flatten_index([axis_index(side.order.index(a)) for a in range(side.type.ndim)], side.type.shape)
    write = flatten_index([axis_index(k) for k in range(made.ndim)], made.shape)
    piece = copy_piece(made.shape, side.type, read, made, write)
    frame.run(piece.spec, [source], [target], distinct=True)


# ------------------------------------------------------------------ which way


@record(frozen=True)
class _Way:
    """By generated tiles, or by a BLAS with integers of so many bytes."""

    blas_int: int
    right: Side

    @staticmethod
    def of(sides: tuple[Side, Side], blas_int: int) -> _Way:
        x, y = sides
        shapes = _shapes(sides)
        turned = not _has_rows(y)
        near = is_near(shapes) and not (turned and shapes.k * shapes.n > LARGEST_TURN)
        shared = shapes.m * shapes.n * shapes.k < SHARED_FROM or shapes.m >= 32 or x.size(x.batch) > 1
        return _Way(0 if near and shared else blas_int, y)

    def fits(self, side: Side) -> bool:
        """Can the operand be read where it is."""
        strides = side.strides()
        if strides is None:
            return False
        if self.blas_int:
            return 1 in (strides.row, strides.column)
        return side is not self.right or _has_rows(side)


def _has_rows(side: Side) -> bool:
    strides = side.strides()
    return strides is not None and (strides.column == 1 or side.size(side.columns) == 1)


def _shapes(sides: tuple[Side, Side]) -> Matrices:
    x, y = sides
    return Matrices(x.type.dtype, x.size(x.rows), y.size(y.columns), x.size(x.columns), (0, 0), (0, 0))


# ------------------------------------------------------------------ running


@record(frozen=True)
class Product:
    """out[b] = x[b] @ y[b], over all indices b of `shape`; `x` and `y` are the distances along its axes."""

    matrices: Matrices
    shape: Shape
    x: Axes
    y: Axes

    @property
    def batch(self) -> int:
        return math.prod(self.shape)

    @property
    def flops(self) -> int:
        return self.matrices.m * self.matrices.n * self.matrices.k


def _product(sides: tuple[Side, Side], strides: Sequence[Strides | None], few: bool) -> Product:
    x, y = strides
    assert x is not None
    assert y is not None
    shapes = replace(_shapes(sides), x=(x.row, x.column), y=(y.row, y.column), few=few)
    lengths = tuple(sides[0].type.shape[a] for a in sides[0].batch)
    return Product(shapes, *_merged_batch(lengths, x.batch, y.batch))


def _merged_batch(shape: Shape, x: Axes, y: Axes) -> tuple[Shape, Axes, Axes]:
    """Batch axes with those merged that both operands walk through as one."""
    axes: list[tuple[int, int, int]] = []
    for n, step_x, step_y in zip(shape, x, y, strict=True):
        if n == 1:
            continue
        if axes and axes[-1][1] == n * step_x and axes[-1][2] == n * step_y:
            n *= axes.pop()[0]
        axes.append((n, step_x, step_y))
    return tuple(a[0] for a in axes), tuple(a[1] for a in axes), tuple(a[2] for a in axes)


def _run(frame: Frame, way: _Way, product: Product, pointers: Sequence[V]) -> None:
    """All products of the batch, on several threads where that is worth it."""
    program = frame.program
    threads_inside = bool(way.blas_int) and product.flops > OPENBLAS_THREADS_FROM
    if threads_inside and program.blas_threads and not frame.serial:
        _run_large(frame, way, product, pointers)
        return
    if frame.serial or threads_inside or product.flops * product.batch < SHARED_FROM:
        name = program.routine(("dot", product, way.blas_int), "dot", 3, lambda p, b: _emit_batch(p, b, way, product))
        frame.b.call("void", name, pointers)
        return
    parts = 1 if way.blas_int else _parts(program, product)
    key = ("dot chunk", product, way.blas_int, parts)
    name = program.chunk(key, "dot.chunk", lambda b: _emit_chunk(program, b, way, product, parts))
    run_parallel(program.e, frame.b, name, pointers, product.batch * parts)


def _run_large(frame: Frame, way: _Way, product: Product, pointers: Sequence[V]) -> None:
    """By a BLAS that would use threads of its own, on ours instead."""
    program, b, e = frame.program, frame.b, frame.program.e
    cut = _Cut.of(product)
    with one_blas_thread(e, b):
        if product.batch * cut.parts == 1 or product.flops * product.batch < LARGE_SHARED_FROM:
            name = program.routine(
                ("dot", product, way.blas_int), "dot", 3, lambda p, f: _emit_batch(p, f, way, product)
            )
            b.call("void", name, pointers)
            return
        name = program.chunk(
            ("dot part", product, way.blas_int), "dot.part", lambda f: _emit_part(program, f, way, product, cut)
        )
        run_parallel(e, b, name, pointers, product.batch * cut.parts)


@record(frozen=True)
class _Cut:
    """Ranges of rows, or of columns, that one large product is cut into, whatever the number of threads."""

    of_rows: bool
    length: int
    parts: int

    @staticmethod
    def of(product: Product) -> _Cut:
        shapes = product.matrices
        of_rows = shapes.m >= shapes.n
        size = max(shapes.m, shapes.n)
        wanted = min(MOST_PARTS, max(1, size // PART_LENGTH), max(1, product.flops // LARGE_SHARED_FROM))
        length = -(-size // wanted)
        return _Cut(of_rows, length, -(-size // length))


def _emit_part(program: Program, b: FunctionBuilder, way: _Way, product: Product, cut: _Cut) -> None:
    number, shapes = b.params[1], product.matrices
    matrix = b.sdiv(number, cut.parts) if product.batch > 1 else V("0", "i64")
    x, y, out = _matrices(b, product, chunk_pointers(b, 3), matrix)
    size = shapes.m if cut.of_rows else shapes.n
    lo = b.mul(b.sub(number, b.mul(matrix, cut.parts)), cut.length)
    count = b.sub(b.intrinsic("smin", b.add(lo, cut.length), size), lo)
    item = shapes.dtype.itemsize
    call = BlasCall(shapes, way.blas_int)
    if cut.of_rows:
        x = b.gep("i8", x, b.mul(lo, shapes.x[0] * item), flags="")
        out = b.gep("i8", out, b.mul(lo, shapes.n * item), flags="")
        emit_blas(program.e, b, call, x, y, out, rows=count)
    else:
        y = b.gep("i8", y, b.mul(lo, shapes.y[1] * item), flags="")
        out = b.gep("i8", out, b.mul(lo, item), flags="")
        emit_blas(program.e, b, call, x, y, out, columns=count)


def _emit_batch(program: Program, b: FunctionBuilder, way: _Way, product: Product) -> None:
    with b.loop(0, product.batch) as loop:
        pointers = _matrices(b, product, b.params, loop.index) if product.batch > 1 else b.params
        _emit_one(program, b, way, product, pointers)


def _rows_of_part(program: Program, product: Product, parts: int) -> int:
    shapes = product.matrices
    tile = row_step(shapes, lanes_for(program.e.target, shapes.dtype, shapes.n))
    return -(-shapes.m // (parts * tile)) * tile


def _parts(program: Program, product: Product) -> int:
    """Ranges of rows that one product is cut into."""
    wanted = min(64, max(1, 4 * product.flops // SHARED_FROM))
    return -(-product.matrices.m // _rows_of_part(program, product, wanted))


def _emit_chunk(program: Program, b: FunctionBuilder, way: _Way, product: Product, parts: int) -> None:
    number = b.params[1]
    matrix = b.sdiv(number, parts) if product.batch > 1 else V("0", "i64")
    pointers = _matrices(b, product, chunk_pointers(b, 3), matrix)
    if parts == 1:
        _emit_one(program, b, way, product, pointers)
        return
    length = _rows_of_part(program, product, parts)
    lo = b.mul(b.sub(number, b.mul(matrix, parts)), length)
    hi = b.intrinsic("smin", b.add(lo, length), product.matrices.m)
    emit_gemm(program.e, b, product.matrices, pointers, (lo, hi))


def _emit_one(program: Program, b: FunctionBuilder, way: _Way, product: Product, pointers: Sequence[V]) -> None:
    if way.blas_int:
        emit_blas(program.e, b, BlasCall(product.matrices, way.blas_int), *pointers)
    else:
        emit_gemm(program.e, b, product.matrices, pointers)


def _matrices(b: FunctionBuilder, product: Product, pointers: Sequence[V], number: V) -> list[V]:
    """The matrices of one number in the batch, which counts its axes in C order."""
    shapes = product.matrices
    item = shapes.dtype.itemsize
    at = [b.mul(number, 0), b.mul(number, 0), b.mul(number, shapes.m * shapes.n)]
    rest = number
    for n, step_x, step_y in reversed(list(zip(product.shape, product.x, product.y, strict=True))):
        index = b.srem(rest, n) if n != product.batch else rest
        rest = b.sdiv(rest, n)
        at[0], at[1] = b.add(at[0], b.mul(index, step_x)), b.add(at[1], b.mul(index, step_y))
    return [b.gep("i8", p, b.mul(offset, item), flags="") for p, offset in zip(pointers, at, strict=True)]
