"""Gaussian elimination of small real matrices, a column in a vector: one short loop for all sizes, no call.

Rows stay where they are: a mask says which of them have not been pivots, and a list in which order they were. A step
takes the largest entry of its column among those rows, and from every later column (right sides are columns behind the
matrix) the entry in the pivot's row times the factors.
"""

from __future__ import annotations

from pullback.codegen import memory
from pullback.codegen.lane import Lane
from pullback.codegen.library.lapack_calls import Lapack, Parts, total
from pullback.codegen.library.lapack_tiny import Flags, System, width
from pullback.codegen.llvm import FunctionBuilder, V, const, const_lanes
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import element
from pullback.codegen.target import Target
from pullback.ir.types import I64, DType
from pullback.record import record


def is_small(target: Target, dtype: DType, n: int) -> bool:
    """Is generated code faster than a call: measured so up to 16 rows, where a column takes two registers."""
    return dtype.kind == "f" and n <= min(16, 2 * target.lanes(dtype.itemsize))


def column_sizes(shape: System) -> list[int]:
    """Scratch: the columns, the rows that were pivots, the pivots."""
    item, lanes = shape.dtype.itemsize, width(shape.n)
    return [(shape.n + shape.columns) * lanes * item, shape.n * 8, lanes * item]


@record
class ColumnElimination:
    """Emits the elimination of one matrix in scratch memory."""

    lapack: Lapack
    s: Scalars
    shape: System
    scratch: V

    def __post_init__(self) -> None:
        self.b: FunctionBuilder = self.lapack.b
        self.dtype = self.shape.dtype
        self.n, self.lanes = self.shape.n, width(self.shape.n)
        self.columns, self.order, self.pivots = Parts(self.b, self.scratch, column_sizes(self.shape)).places

    # ---------------------------------------------------------------- columns

    def fill(self, a: V, rhs: V | None) -> None:
        """Copy the matrix and its right sides."""
        n, shape, lanes = self.n, self.shape, self.lanes
        if shape.turned:
            self._copy_columns(a)
        else:
            self.lapack.turned(self.columns, a, n, n, apart=lanes)
        if rhs is None:
            return
        target = self._column(const("i64", n))
        if shape.columns == 1:
            self.lapack.copied(target, rhs, n)
        else:
            self.lapack.turned(target, rhs, n, shape.columns, apart=lanes)

    def _copy_columns(self, a: V) -> None:
        """Rows of the matrix as columns."""
        b, n = self.b, self.n
        mask = n if n < self.lanes else None
        with b.loop(0, n) as loop:
            row = memory.load(b, self.dtype, element(b, a, self.dtype, b.mul(loop.index, n)), 1, self.lanes, mask)
            memory.store(b, row, self._column(loop.index))

    def _column(self, number: V) -> V:
        return element(self.b, self.columns, self.dtype, self.b.mul(number, self.lanes))

    def _load(self, column: V) -> Lane:
        return memory.load(self.b, self.dtype, column, 1, self.lanes)

    def _entry(self, column: V, row: V) -> Lane:
        return memory.load(self.b, self.dtype, element(self.b, column, self.dtype, row))

    def _splat(self, value: Lane) -> Lane:
        return memory.splat(self.b, value, self.lanes)

    # ---------------------------------------------------------------- elimination

    def eliminate(self) -> Flags:
        """All steps."""
        b, s, n, lanes = self.b, self.s, self.n, self.lanes
        active = const_lanes("i1", [lane < n for lane in range(lanes)])
        with b.loop(0, n, carry=[active, const("i1", False), const("i1", False)]) as loop:
            j, (active, singular, odd) = loop.index, loop.carry
            column = self._load(self._column(j))
            row, before = self._largest(column, active)
            pivot = self._entry(self._column(j), row)
            b.store(row, element(b, self.order, I64, j), 8)
            memory.store(b, pivot, element(b, self.pivots, self.dtype, j))
            left = b.and_(active, b.icmp("ne", memory.lane_numbers(lanes), b.splat(row, lanes)))
            factors = s.math("neg", s.binary("div", column, self._splat(pivot)))
            factors = Lane(self.dtype, b.select(left, factors.re, 0.0))
            with b.loop(b.add(j, 1), n + self.shape.columns) as later:
                place = self._column(later.index)
                entry = self._splat(self._entry(place, row))
                memory.store(b, s.multiply_add(factors, entry, self._load(place)), place)
            loop.turn(left, b.or_(singular, b.fcmp("oeq", pivot.re, 0.0)), b.xor(odd, before))
        return Flags(*loop.results[1:])

    def _largest(self, column: Lane, active: V) -> tuple[V, V]:
        """The row of the largest entry among the active ones, the first of equals; i1: is it behind an odd number of
        active rows. As integers, sizes compare as they do as numbers, and NaN is the largest."""
        b, lanes = self.b, self.lanes
        kind = f"i{8 * self.dtype.itemsize}"
        sizes = b.bitcast(b.intrinsic("fabs", column.re), kind if lanes == 1 else f"<{lanes} x {kind}>")
        sizes = b.select(active, sizes, -1)
        hits = b.icmp("eq", sizes, b.splat(b.reduce("smax", sizes), lanes))
        bits = self._bits(hits)
        row = b.intrinsic("cttz", bits, const("i1", False))
        below = b.and_(self._bits(active), b.sub(b.shl(const("i64", 1), row), 1))
        return row, b.cast("trunc", b.intrinsic("ctpop", below), "i1")

    def _bits(self, mask: V) -> V:
        if self.lanes == 1:
            return self.b.cast("zext", mask, "i64")
        return self.b.cast("zext", self.b.bitcast(mask, f"i{self.lanes}"), "i64")

    # ---------------------------------------------------------------- substitution

    def substitute(self, out: V) -> None:
        """The solutions, from the last pivot back."""
        b, s, n, columns = self.b, self.s, self.n, self.shape.columns
        with b.loop(0, n) as loop:
            j = b.rsub(n - 1, loop.index)
            row = b.load("i64", element(b, self.order, I64, j), 8)
            pivot = memory.load(b, self.dtype, element(b, self.pivots, self.dtype, j))
            column = s.math("neg", self._load(self._column(j)))
            with b.loop(0, columns) as sides:
                place = self._column(b.add(sides.index, n))
                x = s.binary("div", self._entry(place, row), pivot)
                memory.store(b, x, element(b, out, self.dtype, b.add(b.mul(j, columns), sides.index)))
                memory.store(b, s.multiply_add(column, self._splat(x), self._load(place)), place)


def solve_columns(lapack: Lapack, shape: System, a: V, rhs: V, out: V, scratch: V) -> V:
    """X with op(A) X = B; i1: is A singular."""
    elimination = ColumnElimination(lapack, lapack.program.e.scalars(lapack.b), shape, scratch)
    elimination.fill(a, rhs)
    flags = elimination.eliminate()
    elimination.substitute(out)
    return flags.singular


def slogdet_columns(lapack: Lapack, shape: System, a: V, scratch: V) -> tuple[Lane, Flags]:
    """The pivots as lanes and the flags; the lanes behind the pivots hold nothing."""
    elimination = ColumnElimination(lapack, lapack.program.e.scalars(lapack.b), shape, scratch)
    elimination.fill(a, None)
    flags = elimination.eliminate()
    mask = shape.n if shape.n < elimination.lanes else None
    return memory.load(lapack.b, shape.dtype, elimination.pivots, 1, elimination.lanes, mask), flags


def scratch_size(shape: System) -> int:
    """Bytes of scratch memory."""
    return total(column_sizes(shape))
