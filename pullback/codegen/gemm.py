"""Products of small matrices: the result in registers, a row of the right operand and a column of the left a turn.

The right operand is read along its rows. Where its columns are contiguous instead it is copied to the stack first.
"""

from __future__ import annotations

from dataclasses import dataclass

from pullback.codegen import memory
from pullback.codegen.kernel import Emission, emit_inline
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.scalars import Scalars
from pullback.codegen.single import copy_piece
from pullback.codegen.strips import element, lanes_for
from pullback.ir.index import Affine
from pullback.ir.types import DType, tensor_type

SMALL_MULTIPLICATIONS = 32**3
SMALL_BYTES = 32 * 1024
"""Products up to so many multiplications, with a right operand of so many bytes, are generated."""

_REGISTERS = 24
_ROWS = 8
_VECTORS = 4


@dataclass(frozen=True)
class Matrices:
    """out[m, n] = sum of x[m, k] * y[k, n]; `x` and `y` are the strides (row, column) in elements."""

    dtype: DType
    m: int
    n: int
    k: int
    x: tuple[int, int]
    y: tuple[int, int]


def is_small(shapes: Matrices) -> bool:
    """Is generated code faster than a call of BLAS."""
    right = shapes.k * shapes.n * shapes.dtype.itemsize
    return shapes.m * shapes.n * shapes.k <= SMALL_MULTIPLICATIONS and right <= SMALL_BYTES


def emit_small_gemm(e: Emission, b: FunctionBuilder, shapes: Matrices, x: V, y: V, out: V) -> None:
    """out = x @ y."""
    row, column = shapes.y
    if column != 1 and shapes.n > 1:
        y = _rows_of(e, b, shapes, y)
        row = shapes.n
    _Tiles(e, b, shapes, row, x, y, out).emit()


def _rows_of(e: Emission, b: FunctionBuilder, shapes: Matrices, y: V) -> V:
    """The right operand, copied to the stack row by row."""
    made = tensor_type(shapes.dtype, (shapes.k, shapes.n))
    target = b.alloca(f"[{made.nbytes} x i8]")
    row, column = shapes.y
    read = Affine(0, tuple((axis, c) for axis, c in ((0, row), (1, column)) if c))
    piece = copy_piece(made.shape, made, read, made, Affine(0, ((0, shapes.n), (1, 1))))
    emit_inline(e, b, piece.spec, [y], [target])
    return target


class _Tiles:
    """The result in tiles of some rows and some vectors."""

    def __init__(self, e: Emission, b: FunctionBuilder, shapes: Matrices, y_row: int, x: V, y: V, out: V) -> None:
        self.b = b
        self.s: Scalars = e.scalars(b)
        self.shapes = shapes
        self.y_row = y_row
        self.x, self.y, self.out = x, y, out
        self.lanes = lanes_for(e.target, shapes.dtype, shapes.n)
        whole = max(1, shapes.n // self.lanes)
        self.vectors = min(_VECTORS, whole)
        self.rows = max(1, min(_ROWS, _REGISTERS // self.vectors, shapes.m))

    def emit(self) -> None:
        """Strips of columns: several vectors, single vectors, what is left."""
        n, at = self.shapes.n, 0
        for vectors in dict.fromkeys((self.vectors, 1)):
            width = vectors * self.lanes
            stop = at + (n - at) // width * width
            if stop - at == width:
                self._strip(self._index(at), vectors, self.lanes, None)
            elif stop > at:
                with self.b.loop(at, stop, width) as loop:
                    self._strip(loop.index, vectors, self.lanes, None)
            at = max(at, stop)
        if rest := n - at:
            lanes = self.lanes
            while lanes // 2 >= rest:
                lanes //= 2
            self._strip(self._index(at), 1, lanes, rest if rest < lanes else None)

    @staticmethod
    def _index(at: int) -> V:
        return V(str(at), "i64")

    def _strip(self, column: V, vectors: int, lanes: int, mask: int | None) -> None:
        m, rows = self.shapes.m, self.rows
        whole = m // rows * rows
        if whole == rows:
            self._tile(self._index(0), rows, column, vectors, lanes, mask)
        else:
            with self.b.loop(0, whole, rows) as loop:
                self._tile(loop.index, rows, column, vectors, lanes, mask)
        if m > whole:
            self._tile(self._index(whole), m - whole, column, vectors, lanes, mask)

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
        y_at = element(b, y, dtype, b.mul(k, self.y_row))
        right = [
            memory.load(b, dtype, memory.offset(b, y_at, dtype, j * lanes), 1, lanes, mask) for j in range(vectors)
        ]
        x_at = element(b, x, dtype, b.mul(k, self.shapes.x[1]))
        new = []
        for i in range(rows):
            left = memory.splat(b, memory.load(b, dtype, memory.offset(b, x_at, dtype, i * self.shapes.x[0])), lanes)
            new += [self.s.multiply_add(left, right[j], totals[i * vectors + j]) for j in range(vectors)]
        return new
