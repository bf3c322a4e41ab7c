"""Gaussian elimination of tiny real matrices with every row in a register: all steps written out, no call.

Rows are vectors of lanes, those of the right sides too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pullback.codegen import memory
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import Program
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import element, vector_loop
from pullback.ir.types import DType
from pullback.record import record

TINY = 6
"""Larger matrices take loops: the code of n written-out steps grows as n squared, and compile time with it."""


@record(frozen=True)
class System:
    """op(A) X = B with `columns` right sides, real.

    turned : is op(A) the transpose
    """

    dtype: DType
    n: int
    columns: int
    turned: bool


def width(n: int) -> int:
    """Lanes of the vector that holds n numbers."""
    return 1 << max(n - 1, 0).bit_length()


class Flags(NamedTuple):
    """What elimination learns beside the factors: i1 each.

    singular : was a pivot zero
    odd : was the number of exchanges odd
    """

    singular: V
    odd: V


NO_FLAGS = Flags(const("i1", False), const("i1", False))


class Row(NamedTuple):
    """A row under elimination: what it was, and the sum of what is to be taken away from it (None: nothing yet).

    OpenBLAS adds up these products before it subtracts, so a matrix of small integers that is singular there is found
    singular here.
    """

    given: Lane
    taken: Lane | None = None


class Step(NamedTuple):
    """One step of elimination: the pivot, its row of U and right side, the rows that are left, the flags so far."""

    pivot: Lane
    row: Lane
    side: Lane | None
    rows: list[Row]
    sides: list[Lane]
    flags: Flags


def entry(s: Scalars, row: Lane, lane: int) -> Lane:
    """One number of a row."""
    return row if row.lanes == 1 else Lane(row.dtype, s.b.extract(row.re, lane))


class Eliminator:
    """Emits steps of elimination with partial pivoting. Without right sides `sides` is empty."""

    def __init__(self, s: Scalars) -> None:
        self.s = s
        self.b: FunctionBuilder = s.b

    def step(self, rows: Sequence[Row], sides: Sequence[Lane], lane: int, flags: Flags) -> Step:
        """Bring the largest entry of a column to the first row and eliminate it from the others."""
        s, b = self.s, self.b
        column = [self._entry(row, lane) for row in rows]
        flags, hits = self._choose(column, flags)
        column, rows, sides = self._moved(column, hits), self._moved_rows(rows, hits), self._moved(sides, hits)
        pivot, first = column[0], rows[0]
        upper = first.given if first.taken is None else s.binary("sub", first.given, first.taken)
        flags = Flags(b.or_(flags.singular, b.fcmp("oeq", pivot.re, 0.0)), flags.odd)
        inverse = s.binary("div", s.constant(pivot, 1.0), pivot)
        factors = [s.binary("mul", number, inverse) for number in column[1:]]
        taken = [self._more(factor, upper, row.taken) for row, factor in zip(rows[1:], factors, strict=True)]
        left = [Row(row.given, sums) for row, sums in zip(rows[1:], taken, strict=True)]
        return Step(pivot, upper, sides[0] if sides else None, left, self._subtracted(sides, factors), flags)

    def _entry(self, row: Row, lane: int) -> Lane:
        given = entry(self.s, row.given, lane)
        return given if row.taken is None else self.s.binary("sub", given, entry(self.s, row.taken, lane))

    def _more(self, factor: Lane, upper: Lane, taken: Lane | None) -> Lane:
        """The sum of what is to be taken away, with one more product."""
        wide = memory.splat(self.b, factor, upper.lanes)
        return self.s.binary("mul", wide, upper) if taken is None else self.s.multiply_add(wide, upper, taken)

    def _choose(self, column: Sequence[Lane], flags: Flags) -> tuple[Flags, list[V]]:
        """Which row is to change places with the first one: an i1 for each of the others. Of equal entries the first
        is taken, as LAPACK does."""
        b = self.b
        players = [(b.intrinsic("fabs", entry.re), const("i32", i)) for i, entry in enumerate(column)]
        while len(players) > 1:
            winners = []
            for (x, i), (y, j) in zip(players[::2], players[1::2], strict=False):
                larger = b.fcmp("ogt", y, x)
                winners.append((b.select(larger, y, x), b.select(larger, j, i)))
            players = winners + players[len(winners) * 2 :]
        place = players[0][1]
        if len(column) == 1:
            return flags, []
        moved = b.icmp("ne", place, 0)
        return Flags(flags.singular, b.xor(flags.odd, moved)), [b.icmp("eq", place, i) for i in range(1, len(column))]

    def _moved(self, rows: Sequence[Lane], hits: Sequence[V]) -> list[Lane]:
        """The first row exchanged with the one that is hit, if any is."""
        if not rows:
            return []
        first = head = rows[0]
        rest = []
        for row, hit in zip(rows[1:], hits, strict=True):
            head = self._select(hit, row, head)
            rest.append(self._select(hit, first, row))
        return [head, *rest]

    def _moved_rows(self, rows: Sequence[Row], hits: Sequence[V]) -> list[Row]:
        """The same with both parts of rows."""
        given = self._moved([row.given for row in rows], hits)
        taken: Sequence[Lane | None] = self._moved([row.taken for row in rows if row.taken is not None], hits)
        return [Row(x, y) for x, y in zip(given, taken or [None] * len(given), strict=True)]

    def _select(self, hit: V, x: Lane, y: Lane) -> Lane:
        return Lane(x.dtype, self.b.select(hit, x.re, y.re))

    def _subtracted(self, sides: Sequence[Lane], factors: Sequence[Lane]) -> list[Lane]:
        """The right sides but the first, less their factors times that."""
        minus = [self.s.math("neg", factor) for factor in factors]
        return [
            self.s.multiply_add(memory.splat(self.b, factor, sides[0].lanes), sides[0], side)
            for side, factor in zip(sides[1:], minus, strict=False)
        ]


# ------------------------------------------------------------------ all steps


class Factors(NamedTuple):
    """A matrix after elimination: rows of U (lanes left of the diagonal hold nothing), pivots, right sides."""

    rows: list[Lane]
    pivots: list[Lane]
    sides: list[Lane]
    flags: Flags


def eliminate(s: Scalars, matrix: Sequence[Lane], sides: Sequence[Lane]) -> Factors:
    """All steps, one after the other."""
    eliminator, flags = Eliminator(s), NO_FLAGS
    done = Factors([], [], [], flags)
    rows = [Row(row) for row in matrix]
    for lane in range(len(matrix)):
        pivot, row, side, rows, sides, flags = eliminator.step(rows, sides, lane, flags)
        done.rows.append(row)
        done.pivots.append(pivot)
        if side is not None:
            done.sides.append(side)
    return done._replace(flags=flags)


def substitute(s: Scalars, factors: Factors) -> list[Lane]:
    """The solutions, from the last row up."""
    b, sides = s.b, list(factors.sides)
    for j in range(len(sides) - 1, -1, -1):
        lanes = sides[j].lanes
        sides[j] = s.binary("div", sides[j], memory.splat(b, factors.pivots[j], lanes))
        for i in range(j):
            factor = memory.splat(b, s.math("neg", entry(s, factors.rows[i], j)), lanes)
            sides[i] = s.multiply_add(factor, sides[j], sides[i])
    return sides


# ------------------------------------------------------------------ solve


def _rows(b: FunctionBuilder, dtype: DType, n: int, a: V, turned: bool) -> list[Lane]:
    """The rows of the matrix, or of its transpose."""
    lanes = width(n)
    mask = n if n < lanes else None
    step, stride = (1, n) if turned else (n, 1)
    return [memory.load(b, dtype, memory.offset(b, a, dtype, i * step), stride, lanes, mask) for i in range(n)]


def solve_tiny(program: Program, b: FunctionBuilder, shape: System, a: V, rhs: V, out: V) -> V:
    """X with op(A) X = B; i1: is A singular. More right sides than a vector holds repeat the elimination, which costs
    about as much as they do."""
    dtype, n, columns = shape.dtype, shape.n, shape.columns
    s = program.e.scalars(b)
    rows = _rows(b, dtype, n, a, shape.turned)
    failed: list[V] = []

    def strip(first: V, lanes: int, count: int | None) -> None:
        places = [b.add(first, i * columns) for i in range(n)]
        sides = [memory.load(b, dtype, element(b, rhs, dtype, at), 1, lanes, count) for at in places]
        factors = eliminate(s, rows, sides)
        failed.append(factors.flags.singular)
        for at, x in zip(places, substitute(s, factors), strict=True):
            memory.store(b, x, element(b, out, dtype, at), 1, count)

    vector_loop(b, columns, min(program.e.target.lanes(dtype.itemsize), width(columns)), strip)
    return failed[-1]


# ------------------------------------------------------------------ determinant


def slogdet_tiny(program: Program, b: FunctionBuilder, dtype: DType, n: int, a: V) -> tuple[Lane, Flags]:
    """The pivots as lanes, ones behind them, and the flags."""
    factors = eliminate(program.e.scalars(b), _rows(b, dtype, n, a, False), [])
    return _joined(b, factors.pivots, width(n)), factors.flags


def _joined(b: FunctionBuilder, numbers: Sequence[Lane], lanes: int) -> Lane:
    if lanes == 1:
        return numbers[0]
    vector = lane_constant(numbers[0].dtype, 1.0, lanes).re
    for k, number in enumerate(numbers):
        vector = b.insert(vector, number.re, k)
    return Lane(numbers[0].dtype, vector)
