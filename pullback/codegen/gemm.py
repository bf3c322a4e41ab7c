"""Products of matrices in generated code: a tile of the result in registers, a row of y and a column of x a turn.

Small products have code of their own, and so have all where there are few. Others share one function for each dtype,
which is told the sizes: a tile is then of a fixed shape, and what is left at the edges is done by single rows and by
masked vectors. That costs a twentieth of the speed, and saves ten milliseconds of compiling for each product.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.codegen import memory
from pullback.codegen.kernel import Emission
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.memory import Mask
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import lanes_for
from pullback.ir.types import DType
from pullback.record import record

Size = V | int

NEAR_BYTES = 768 * 1024
"""The right operand is read once for each few rows of the left: it must stay in the second-level cache."""

OWN_CODE_UP_TO = 6000
"""Multiplications up to which a product has code of its own in any program."""

GENERAL_ROWS, GENERAL_VECTORS = 6, 4

_SHAPES = tuple((rows, vectors) for vectors in (4, 3, 2, 1) for rows in range(8, 1, -1) if rows * vectors <= 24)
_ENOUGH = 12
"""Sums that must run side by side to keep the multipliers busy."""


@record(frozen=True)
class Matrices:
    """out[m, n] = sum of x[m, k] * y[k, n].

    x, y : strides (row, column) in elements
    few : are there few products in the program
    """

    dtype: DType
    m: int
    n: int
    k: int
    x: tuple[int, int]
    y: tuple[int, int]
    few: bool = True

    @property
    def own_code(self) -> bool:
        return self.few or self.dtype.kind == "c" or self.m * self.n * self.k <= OWN_CODE_UP_TO or self.n <= 16


def is_near(shapes: Matrices) -> bool:
    """Is generated code as fast as BLAS: measured, it is, as long as the right operand is near."""
    return shapes.k * shapes.n * shapes.dtype.itemsize <= NEAR_BYTES


def row_step(shapes: Matrices, lanes: int) -> int:
    """Rows of a tile; shares of the work begin at multiples of it."""
    return _tile_shape(shapes, lanes)[0] if shapes.own_code else GENERAL_ROWS


def emit_gemm(
    e: Emission, b: FunctionBuilder, shapes: Matrices, pointers: Sequence[V], rows: tuple[V, V] | None = None
) -> None:
    """Matrices x, y, out: out = x @ y, of all rows or of a range that begins at a multiple of `row_step`.

    The rows of y are contiguous.
    """
    if shapes.own_code:
        _OwnTiles(e, b, shapes, pointers).emit(*(rows or (const("i64", 0), const("i64", shapes.m))))
        return
    x, y, out = pointers
    count: Size = shapes.m
    if rows is not None:
        item = shapes.dtype.itemsize
        x = b.gep("i8", x, b.mul(rows[0], shapes.x[0] * item), flags="")
        out = b.gep("i8", out, b.mul(rows[0], shapes.n * item), flags="")
        count = b.sub(rows[1], rows[0])
    sizes = (count, shapes.n, shapes.k, *shapes.x, shapes.y[0])
    name = _general_function(e, shapes.dtype)
    b.call("void", name, [x, y, out, *(size if isinstance(size, V) else const("i64", size) for size in sizes)])


# ------------------------------------------------------------------ one tile


@record(frozen=True)
class _Shape:
    """Rows and vectors of a tile, lanes of a vector, and which lanes of its vector take part."""

    rows: int
    vectors: int
    lanes: int
    mask: Mask = None


@record(frozen=True)
class _Sizes:
    """Products in a sum, strides of x (row, column), rows of y and of the result, in elements."""

    k: Size
    x_row: Size
    x_column: Size
    y_row: Size
    out_row: Size


def _emit_tile(s: Scalars, dtype: DType, shape: _Shape, sizes: _Sizes, x: V, y: V, out: V) -> None:
    """The tile at `out`, from the rows of `x` and the columns of `y`."""
    b = s.b
    zero = lane_constant(dtype, 0, shape.lanes)
    parts = len(zero.parts)
    count = shape.rows * shape.vectors
    x_rows = [_moved(b, x, dtype, sizes.x_row, i) for i in range(shape.rows)]
    with b.loop(0, sizes.k, carry=list(zero.parts) * count) as loop:
        totals = [Lane(dtype, *loop.carry[i : i + parts]) for i in range(0, count * parts, parts)]
        y_at = _moved(b, y, dtype, sizes.y_row, loop.index)
        right = [
            memory.load(b, dtype, memory.offset(b, y_at, dtype, j * shape.lanes), 1, shape.lanes, shape.mask)
            for j in range(shape.vectors)
        ]
        new: list[Lane] = []
        for i, row in enumerate(x_rows):
            number = memory.load(b, dtype, _moved(b, row, dtype, sizes.x_column, loop.index))
            left = memory.splat(b, number, shape.lanes)
            new += [s.multiply_add(left, right[j], totals[i * shape.vectors + j]) for j in range(shape.vectors)]
        loop.turn(*[part for total in new for part in total.parts])
    for i in range(shape.rows):
        row = _moved(b, out, dtype, sizes.out_row, i)
        for j in range(shape.vectors):
            at = (i * shape.vectors + j) * parts
            total = Lane(dtype, *loop.results[at : at + parts])
            memory.store(b, total, memory.offset(b, row, dtype, j * shape.lanes), 1, shape.mask)


def _moved(b: FunctionBuilder, pointer: V, dtype: DType, stride: Size, times: Size) -> V:
    """Address of the element `stride * times` further on."""
    if isinstance(stride, V):
        index = stride if times == 1 else b.mul(stride, times)
        return pointer if times == 0 else b.gep("i8", pointer, b.mul(index, dtype.itemsize), flags="")
    if isinstance(times, V):
        return b.gep("i8", pointer, b.mul(b.mul(times, stride), dtype.itemsize), flags="")
    return memory.offset(b, pointer, dtype, stride * times)


# ------------------------------------------------------------------ small products


def _tile_shape(shapes: Matrices, lanes: int) -> tuple[int, int]:
    """Rows and vectors of a tile: few kinds of tiles, to keep the code short, then few loads for each product."""
    rows, vectors = shapes.m, max(1, shapes.n // lanes)
    if rows * vectors <= _ENOUGH:
        return rows, vectors
    fitting = [(r, v) for r, v in _SHAPES if r <= rows and v <= vectors and r * v >= _ENOUGH]
    return min(fitting or [(min(rows, 8), 1)], key=lambda shape: _tile_cost(shapes, lanes, *shape))


def _tile_cost(shapes: Matrices, lanes: int, rows: int, vectors: int) -> float:
    kinds = 1 if shapes.m % rows == 0 else 2
    whole, rest = divmod(shapes.n, lanes)
    kinds *= 1 + (whole % vectors != 0) + (rest != 0)
    loads_per_product = (rows + vectors) / (rows * vectors)
    return kinds + 4 * loads_per_product


class _OwnTiles:
    """A product of known sizes."""

    def __init__(self, e: Emission, b: FunctionBuilder, shapes: Matrices, pointers: Sequence[V]) -> None:
        self.b = b
        self.s: Scalars = e.scalars(b)
        self.shapes = shapes
        self.x, self.y, self.out = pointers
        self.lanes = lanes_for(e.target, shapes.dtype, shapes.n)
        self.rows, self.vectors = _tile_shape(shapes, self.lanes)
        self.sizes = _Sizes(shapes.k, *shapes.x, shapes.y[0], shapes.n)

    def emit(self, lo: V, hi: V) -> None:
        """Whole tiles of rows, and the rows that are left at the end of the matrix."""
        b, m = self.b, self.shapes.m
        whole = m // self.rows * self.rows
        if whole == self.rows and not lo.name.startswith("%"):
            self._row_tile(lo, self.rows)
        else:
            with b.loop(lo, b.intrinsic("smin", hi, whole), self.rows) as loop:
                self._row_tile(loop.index, self.rows)
        if m > whole:
            with b.loop(b.intrinsic("smax", lo, whole), hi, m) as last:
                self._row_tile(last.index, m - whole)

    def _row_tile(self, row: V, rows: int) -> None:
        """Strips of columns: several vectors, single vectors, what is left."""
        n, at = self.shapes.n, 0
        for vectors in dict.fromkeys((self.vectors, 1)):
            width = vectors * self.lanes
            stop = at + (n - at) // width * width
            if stop - at == width:
                self._tile(row, at, _Shape(rows, vectors, self.lanes))
            elif stop > at:
                with self.b.loop(at, stop, width) as loop:
                    self._tile(row, loop.index, _Shape(rows, vectors, self.lanes))
            at = max(at, stop)
        if rest := n - at:
            lanes = self.lanes
            while lanes // 2 >= rest:
                lanes //= 2
            self._tile(row, at, _Shape(rows, 1, lanes, rest if rest < lanes else None))

    def _tile(self, row: V, column: Size, shape: _Shape) -> None:
        b, dtype = self.b, self.shapes.dtype
        x = _moved(b, self.x, dtype, self.shapes.x[0], row)
        y = _moved(b, self.y, dtype, 1, column)
        out = _moved(b, _moved(b, self.out, dtype, self.shapes.n, row), dtype, 1, column)
        _emit_tile(self.s, dtype, shape, self.sizes, x, y, out)


# ------------------------------------------------------------------ products of any size


def _general_function(e: Emission, dtype: DType) -> str:
    """`void gemm(x, y, out, m, n, k, x_row, x_column, y_row)`."""
    name = f"pb.gemm.{dtype.name}"
    if name in e.module.functions:
        return name
    numbers = [("i64", word) for word in ("m", "n", "k", "x_row", "x_column", "y_row")]
    b = e.function(name, [("ptr", "x"), ("ptr", "y"), ("ptr noalias", "out"), *numbers], attributes="noinline")
    x, y, out, m, n, k, x_row, x_column, y_row = b.params
    general = _GeneralTiles(e, b, dtype, _Sizes(k, x_row, x_column, y_row, n), n)
    whole = b.mul(b.sdiv(m, GENERAL_ROWS), GENERAL_ROWS)
    for start, stop, rows in ((const("i64", 0), whole, GENERAL_ROWS), (whole, m, 1)):
        with b.loop(start, stop, rows) as loop:
            general.row_tile(rows, _moved(b, x, dtype, x_row, loop.index), y, _moved(b, out, dtype, n, loop.index))
    b.ret()
    return name


class _GeneralTiles:
    """A row of tiles, of as many columns as there are."""

    def __init__(self, e: Emission, b: FunctionBuilder, dtype: DType, sizes: _Sizes, n: V) -> None:
        self.b = b
        self.s: Scalars = e.scalars(b)
        self.dtype = dtype
        self.sizes = sizes
        self.n = n
        self.lanes = lanes_for(e.target, dtype, 1 << 10)

    def row_tile(self, rows: int, x: V, y: V, out: V) -> None:
        b = self.b
        width = GENERAL_VECTORS * self.lanes
        whole = b.and_(self.n, -width)
        with b.loop(0, whole, width) as loop:
            self._tile(_Shape(rows, GENERAL_VECTORS, self.lanes), x, y, out, loop.index)
        with b.loop(whole, self.n, self.lanes) as loop:
            left = memory.splat_value(b, b.sub(self.n, loop.index), self.lanes)
            mask = b.icmp("sgt", left, memory.lane_numbers(self.lanes))
            self._tile(_Shape(rows, 1, self.lanes, mask), x, y, out, loop.index)

    def _tile(self, shape: _Shape, x: V, y: V, out: V, column: V) -> None:
        b, dtype = self.b, self.dtype
        _emit_tile(
            self.s, dtype, shape, self.sizes, x, _moved(b, y, dtype, 1, column), _moved(b, out, dtype, 1, column)
        )
