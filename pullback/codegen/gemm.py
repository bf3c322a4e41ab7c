"""Products of matrices in generated code: a tile of the result in registers, a row of y and a column of x a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pullback.codegen import memory
from pullback.codegen.kernel import Emission
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import element, lanes_for
from pullback.ir.types import DType

NEAR_BYTES = 768 * 1024
"""The right operand is read once for each few rows of the left: it must stay in the second-level cache."""

_SHAPES = tuple((rows, vectors) for vectors in (4, 3, 2, 1) for rows in range(8, 1, -1) if rows * vectors <= 24)
_ENOUGH = 12
"""Sums that must run side by side to keep the multipliers busy."""


@dataclass(frozen=True)
class Matrices:
    """out[m, n] = sum of x[m, k] * y[k, n]; `x` and `y` are the strides (row, column) in elements."""

    dtype: DType
    m: int
    n: int
    k: int
    x: tuple[int, int]
    y: tuple[int, int]


def is_near(shapes: Matrices) -> bool:
    """Is generated code as fast as BLAS: measured, it is, as long as the right operand is near."""
    return shapes.k * shapes.n * shapes.dtype.itemsize <= NEAR_BYTES


def tile_shape(shapes: Matrices, lanes: int) -> tuple[int, int]:
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


def emit_gemm(
    e: Emission, b: FunctionBuilder, shapes: Matrices, pointers: Sequence[V], rows: tuple[V, V] | None = None
) -> None:
    """Matrices x, y, out: out = x @ y, of all rows or of a range that begins at a multiple of a tile's rows.

    The rows of y are contiguous.
    """
    x, y, out = pointers
    _Tiles(e, b, shapes, x, y, out).emit(*(rows or (const("i64", 0), const("i64", shapes.m))))


class _Tiles:
    """The result in tiles of some rows and some vectors; the rows of x in a tile stay in the first-level cache."""

    def __init__(self, e: Emission, b: FunctionBuilder, shapes: Matrices, x: V, y: V, out: V) -> None:
        self.b = b
        self.s: Scalars = e.scalars(b)
        self.shapes = shapes
        self.x, self.y, self.out = x, y, out
        self.lanes = lanes_for(e.target, shapes.dtype, shapes.n)
        self.rows, self.vectors = tile_shape(shapes, self.lanes)

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
                self._tile(row, rows, const("i64", at), vectors, self.lanes, None)
            elif stop > at:
                with self.b.loop(at, stop, width) as loop:
                    self._tile(row, rows, loop.index, vectors, self.lanes, None)
            at = max(at, stop)
        if rest := n - at:
            lanes = self.lanes
            while lanes // 2 >= rest:
                lanes //= 2
            self._tile(row, rows, const("i64", at), 1, lanes, rest if rest < lanes else None)

    def _tile(self, row: V, rows: int, column: V, vectors: int, lanes: int, mask: int | None) -> None:
        b, shapes = self.b, self.shapes
        zero = lane_constant(shapes.dtype, 0, lanes)
        parts = len(zero.parts)
        start = [part for _ in range(rows * vectors) for part in zero.parts]
        x_tile = element(b, self.x, shapes.dtype, b.mul(row, shapes.x[0]))
        y_tile = element(b, self.y, shapes.dtype, column)
        with b.loop(0, shapes.k, carry=start) as loop:
            totals = [Lane(shapes.dtype, *loop.carry[i : i + parts]) for i in range(0, len(start), parts)]
            new = self._step(totals, loop.index, x_tile, y_tile, rows, vectors, lanes, mask)
            loop.turn(*[part for total in new for part in total.parts])
        for number in range(rows * vectors):
            total = Lane(shapes.dtype, *loop.results[number * parts : (number + 1) * parts])
            i, j = divmod(number, vectors)
            place = b.add(b.mul(b.add(row, i), shapes.n), b.add(column, j * lanes))
            memory.store(b, total, element(b, self.out, shapes.dtype, place), 1, mask)

    def _step(
        self, totals: list[Lane], k: V, x: V, y: V, rows: int, vectors: int, lanes: int, mask: int | None
    ) -> list[Lane]:
        """One column of x times one row of y, added to the tile."""
        b, dtype = self.b, self.shapes.dtype
        y_at = element(b, y, dtype, b.mul(k, self.shapes.y[0]))
        right = [
            memory.load(b, dtype, memory.offset(b, y_at, dtype, j * lanes), 1, lanes, mask) for j in range(vectors)
        ]
        x_at = element(b, x, dtype, b.mul(k, self.shapes.x[1]))
        new = []
        for i in range(rows):
            left = memory.splat(b, memory.load(b, dtype, memory.offset(b, x_at, dtype, i * self.shapes.x[0])), lanes)
            new += [self.s.multiply_add(left, right[j], totals[i * vectors + j]) for j in range(vectors)]
        return new
