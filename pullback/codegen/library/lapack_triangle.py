"""Solves with triangular matrices, and small factors of Cholesky's method, in generated code.

Right sides are taken in tiles of some rows and some vectors. What the rows solved before contribute to a tile is a
product of matrices with the tile in registers; within the tile the solve is written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pullback.codegen import memory
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import element, lanes_for
from pullback.codegen.target import Target
from pullback.ir.types import DType

TILE_ROWS = 8
"""With one or two vectors a row, the tile and one row of right sides fit in the registers."""

_VECTORS = 2


@dataclass(frozen=True)
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
        self.lanes = lanes_for(target, shape.dtype, columns)

    def run(self) -> None:
        """Strip by strip of columns: as many vectors as a tile takes, then one, then what is left."""
        at = 0
        for vectors in dict.fromkeys((min(_VECTORS, max(1, self.columns // self.lanes)), 1)):
            width = vectors * self.lanes
            stop = at + (self.columns - at) // width * width
            if stop - at == width:
                self._strip(const("i64", at), vectors, self.lanes, None)
            elif stop > at:
                with self.b.loop(at, stop, width) as loop:
                    self._strip(loop.index, vectors, self.lanes, None)
            at = stop
        if rest := self.columns - at:
            lanes = self.lanes
            while lanes // 2 >= rest:
                lanes //= 2
            self._strip(const("i64", at), 1, lanes, rest if rest < lanes else None)

    def _strip(self, column: V, vectors: int, lanes: int, mask: int | None) -> None:
        """All rows of a strip: whole tiles, then the rows that are left at the end of the order."""
        n, b = self.shape.n, self.b
        tile = _Tile(self, column, vectors, lanes, mask)
        whole = n // TILE_ROWS * TILE_ROWS
        if whole == TILE_ROWS:
            tile.emit(const("i64", 0), TILE_ROWS)
        elif whole:
            with b.loop(0, whole, TILE_ROWS) as loop:
                tile.emit(loop.index, TILE_ROWS)
        if n > whole:
            tile.emit(const("i64", whole), n - whole)

    def row(self, number: V) -> V:
        """The row that is solved as that number."""
        return number if self.shape.forward else self.b.rsub(self.shape.n - 1, number)

    def coefficient(self, row: V, column: V) -> Lane:
        """An entry of op(A)."""
        b, shape = self.b, self.shape
        at = b.add(b.mul(row, shape.strides[0]), b.mul(column, shape.strides[1]))
        entry = memory.load(b, shape.dtype, element(b, self.a, shape.dtype, at))
        return self.s.math("conj", entry) if shape.conjugate else entry


@dataclass(frozen=True)
class _Tile:
    """Some rows, in the order they are solved, of one strip of right sides."""

    solver: TriangleSolver
    column: V
    vectors: int
    lanes: int
    mask: int | None

    def emit(self, start: V, count: int) -> None:
        solver = self.solver
        b = solver.b
        rows = [solver.row(b.add(start, r)) for r in range(count)]
        values = [self._load(solver.rhs, row) for row in rows]
        if start.name != "0":
            values = self._less_solved(values, rows, start)
        for r, row in enumerate(rows):
            values[r] = self._over(values[r], solver.coefficient(row, row))
            for later in range(r + 1, count):
                values[later] = self._less(values[later], solver.coefficient(rows[later], row), values[r])
        for row, value in zip(rows, values, strict=True):
            for k, part in enumerate(value):
                memory.store(b, part, self._address(solver.x, row, k), 1, self.mask)

    def _less_solved(self, values: Sequence[list[Lane]], rows: Sequence[V], start: V) -> list[list[Lane]]:
        """What the rows before contribute, taken away."""
        solver = self.solver
        dtype, parts = solver.shape.dtype, len(values[0][0].parts)
        flat = [part for value in values for lane in value for part in lane.parts]
        with solver.b.loop(0, start, carry=flat) as loop:
            done = solver.row(loop.index)
            known = self._load(solver.x, done)
            now = _unflattened(dtype, loop.carry, self.vectors, parts)
            now = [
                self._less(value, solver.coefficient(row, done), known) for value, row in zip(now, rows, strict=True)
            ]
            loop.turn(*[part for value in now for lane in value for part in lane.parts])
        return _unflattened(dtype, loop.results, self.vectors, parts)

    def _less(self, value: Sequence[Lane], coefficient: Lane, x: Sequence[Lane]) -> list[Lane]:
        s = self.solver.s
        wide = memory.splat(s.b, s.math("neg", coefficient), self.lanes)
        return [s.multiply_add(wide, known, old) for known, old in zip(x, value, strict=True)]

    def _over(self, value: Sequence[Lane], pivot: Lane) -> list[Lane]:
        s = self.solver.s
        wide = memory.splat(s.b, pivot, self.lanes)
        return [s.binary("div", part, wide) for part in value]

    def _load(self, pointer: V, row: V) -> list[Lane]:
        solver = self.solver
        addresses = [self._address(pointer, row, k) for k in range(self.vectors)]
        return [memory.load(solver.b, solver.shape.dtype, at, 1, self.lanes, self.mask) for at in addresses]

    def _address(self, pointer: V, row: V, vector: int) -> V:
        solver = self.solver
        b = solver.b
        at = b.add(b.mul(row, solver.columns), self.column)
        return element(b, pointer, solver.shape.dtype, b.add(at, vector * self.lanes))


def _unflattened(dtype: DType, values: Sequence[V], vectors: int, parts: int) -> list[list[Lane]]:
    lanes = [Lane(dtype, *values[i : i + parts]) for i in range(0, len(values), parts)]
    return [lanes[i : i + vectors] for i in range(0, len(lanes), vectors)]


# ------------------------------------------------------------------ Cholesky, written out


def cholesky_small(s: Scalars, dtype: DType, n: int, a: V, out: V) -> V:
    """L of the lower triangle of a real `a`, entry by entry; i1: is a pivot not positive (NaN goes through)."""
    b = s.b
    factor: dict[tuple[int, int], Lane] = {}
    failed = const("i1", False)
    for j in range(n):
        for i in range(j, n):
            entry = memory.load(b, dtype, memory.offset(b, a, dtype, i * n + j))
            for k in range(j):
                entry = s.multiply_add(s.math("neg", factor[i, k]), factor[j, k], entry)
            factor[i, j] = entry
        pivot = factor[j, j]
        failed = b.or_(failed, b.fcmp("ole", pivot.re, 0.0))
        factor[j, j] = root = s.math("sqrt", pivot)
        for i in range(j + 1, n):
            factor[i, j] = s.binary("div", factor[i, j], root)
    zero = lane_constant(dtype, 0.0, 1)
    for i in range(n):
        for j in range(n):
            memory.store(b, factor.get((i, j), zero), memory.offset(b, out, dtype, i * n + j))
    return failed
