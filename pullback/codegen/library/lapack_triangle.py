"""Solves with triangular matrices, in generated code.

Right sides are taken in tiles of some rows, a vector each. What the rows solved before contribute to a tile is a
product of matrices with the tile in registers; within the tile the solve is written out. If the rows are not a whole
number of tiles, the first one is smaller: its code is the shortest.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.codegen import memory
from pullback.codegen.lane import Lane, element_type, lane_constant
from pullback.codegen.library.fft_lanes import Complexes, Pair
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import element, lanes_for
from pullback.codegen.target import Target
from pullback.ir.types import DType, real_dtype
from pullback.record import record

TILE_ROWS = 8
"""As many rows as additions must be under way to keep both units for them busy; half as many of complex numbers."""


@record(frozen=True)
class Triangle:
    """op(A) for a triangular A in C order.

    forward : is the first row solved first, as with a lower triangle
    strides : of row and column, in elements
    conjugate : are the entries conjugated
    """

    dtype: DType
    n: int
    forward: bool
    strides: tuple[int, int]
    conjugate: bool


def triangle(dtype: DType, n: int, lower: bool, trans: str) -> Triangle:
    """The triangle of a `triangular_solve`."""
    turned = trans != "N"
    return Triangle(dtype, n, lower != turned, (1, n) if turned else (n, 1), trans == "C" and dtype.kind == "c")


def zero_on_diagonal(s: Scalars, dtype: DType, n: int, a: V) -> V:
    """i1: is any entry of the diagonal zero."""
    b = s.b
    zero = lane_constant(dtype, 0.0, 1)
    with b.loop(0, n, carry=[const("i1", False)]) as loop:
        entry = memory.load(b, dtype, element(b, a, dtype, b.mul(loop.index, n + 1)))
        loop.turn(b.or_(loop.carry[0], s.compare("equal", entry, zero).re))
    return loop.results[0]


class TriangleSolver:
    """Emits a solve for `columns` right sides: `x` = op(A)**-1 `rhs`, in C order, in different buffers."""

    def __init__(self, s: Scalars, target: Target, shape: Triangle, columns: int, pointers: Sequence[V]) -> None:
        self.s = s
        self.b: FunctionBuilder = s.b
        self.shape = shape
        self.columns = columns
        self.a, self.rhs, self.x = pointers
        self.part = real_dtype(shape.dtype)
        self.lanes = lanes_for(target, self.part, columns)
        self.tile_rows = TILE_ROWS if shape.dtype.kind == "f" else TILE_ROWS // 2

    def run(self) -> None:
        """Strip by strip of columns."""
        if self.columns <= self.lanes:
            self._strip(const("i64", 0))
            return
        with self.b.loop(0, self.columns, self.lanes) as loop:
            self._strip(loop.index)

    def _strip(self, column: V) -> None:
        """All rows of a strip, tile by tile."""
        n, size = self.shape.n, self.tile_rows
        count = self.b.rsub(self.columns, column) if self.columns % self.lanes else None
        first = n % size or size
        self.tile(const("i64", 0), column, first, count).solve()
        if n > first:
            with self.b.loop(first, n, size) as loop:
                self.tile(loop.index, column, size, count).solve()

    def tile(self, start: V, column: V, rows: int, count: V | None = None) -> Tile:
        """The tile that begins with the row solved as number `start`; `count`: columns that are left, if they may be
        fewer than lanes."""
        shape = self.shape
        first = start if shape.forward else self.b.rsub(shape.n - 1, start)
        return Tile(self, start, first, column, rows, count)

    def address(self, pointer: V, row: V, column: V, strides: tuple[int, int]) -> V:
        """Of an element of a matrix."""
        b = self.b
        return element(b, pointer, self.shape.dtype, b.add(b.mul(row, strides[0]), b.mul(column, strides[1])))


@record(frozen=True)
class Tile:
    """Some rows, in the order they are solved, of one strip of right sides.

    start, first : number of the first row in that order, and which row it is
    """

    solver: TriangleSolver
    start: V
    first: V
    column: V
    rows: int
    count: V | None

    @property
    def b(self) -> FunctionBuilder:
        return self.solver.b

    @property
    def lanes(self) -> int:
        return self.solver.lanes

    def solve(self) -> None:
        """Solve for the tile, all rows before it being known."""
        solver = self.solver
        values = self.less_known(self.load(solver.rhs))
        corner = solver.address(solver.a, self.first, self.first, solver.shape.strides)
        for r in range(self.rows):
            values[r] = self._over(values[r], self._coefficient(corner, r, r))
            for later in range(r + 1, self.rows):
                values[later] = self.less(values[later], self._coefficient(corner, later, r), values[r])
        self.store(values)

    def less_known(self, values: Sequence[Lane]) -> list[Lane]:
        """What the rows before contribute, taken away."""
        solver, b = self.solver, self.b
        shape = solver.shape
        if self.start.name == "0":
            return list(values)
        parts = len(values[0].parts)
        with b.loop(0, self.start, carry=[part for value in values for part in value.parts]) as loop:
            row = loop.index if shape.forward else b.rsub(shape.n - 1, loop.index)
            corner = solver.address(solver.a, self.first, row, shape.strides)
            known = self._load_row(solver.address(solver.x, row, self.column, (solver.columns, 1)))
            now = _lanes(shape.dtype, loop.carry, parts)
            now = [self.less(value, self._coefficient(corner, r, 0), known) for r, value in enumerate(now)]
            loop.turn(*[part for value in now for part in value.parts])
        return _lanes(shape.dtype, loop.results, parts)

    def _coefficient(self, corner: V, row: int, column: int) -> Lane:
        """The entry of op(A) so many rows and columns behind a corner, in the order they are solved."""
        solver = self.solver
        shape = solver.shape
        distance = row * shape.strides[0] + column * shape.strides[1]
        at = memory.offset(self.b, corner, shape.dtype, distance if shape.forward else -distance)
        entry = memory.load(self.b, shape.dtype, at)
        return solver.s.math("conj", entry) if shape.conjugate else entry

    def less(self, value: Lane, coefficient: Lane, x: Lane) -> Lane:
        """value - coefficient * x."""
        b, c = self.b, memory.splat(self.b, coefficient, x.lanes)
        re = b.fma(b.fneg(c.re), x.re, value.re)
        if c.im is None or x.im is None or value.im is None:
            return Lane(x.dtype, re)
        minus = b.fneg(c.im)
        return Lane(x.dtype, b.fma(c.im, x.im, re), b.fma(minus, x.re, b.fma(b.fneg(c.re), x.im, value.im)))

    def _over(self, value: Lane, pivot: Lane) -> Lane:
        """value / pivot; where there are many rows, times its inverse, as BLAS does."""
        s = self.solver.s
        if self.solver.shape.n <= TILE_ROWS:
            return s.binary("div", value, memory.splat(s.b, pivot, value.lanes))
        inverse = s.binary("div", s.constant(pivot, 1.0), pivot)
        return s.binary("mul", value, memory.splat(s.b, inverse, value.lanes))

    # ---------------------------------------------------------------- rows in memory

    def load(self, pointer: V) -> list[Lane]:
        """The tile's rows of a matrix with a column for each right side."""
        return [self._load_row(at) for at in self._places(pointer)]

    def store(self, values: Sequence[Lane]) -> None:
        """Put the rows to their places in the solution."""
        for at, value in zip(self._places(self.solver.x), values, strict=True):
            if value.im is None or self.lanes == 1:
                memory.store(self.b, value, at, 1, self._mask)
            else:
                self._complexes.store(Pair(value.re, value.im), at, self.count)

    def _places(self, pointer: V) -> list[V]:
        solver = self.solver
        first = solver.address(pointer, self.first, self.column, (solver.columns, 1))
        step = solver.columns if solver.shape.forward else -solver.columns
        return [memory.offset(self.b, first, solver.shape.dtype, r * step) for r in range(self.rows)]

    def _load_row(self, at: V) -> Lane:
        dtype = self.solver.shape.dtype
        if dtype.kind == "c" and self.lanes > 1:
            return Lane(dtype, *self._complexes.load(at, self.count))
        return memory.load(self.b, dtype, at, 1, self.lanes, self._mask)

    @property
    def _complexes(self) -> Complexes:
        part = self.solver.part
        return Complexes(self.b, element_type(part), part.itemsize, self.lanes)

    @property
    def _mask(self) -> V | None:
        if self.count is None or self.lanes == 1:
            return None
        return self.b.icmp("slt", memory.lane_numbers(self.lanes), self.b.splat(self.count, self.lanes))


def _lanes(dtype: DType, values: Sequence[V], parts: int) -> list[Lane]:
    return [Lane(dtype, *values[i : i + parts]) for i in range(0, len(values), parts)]
