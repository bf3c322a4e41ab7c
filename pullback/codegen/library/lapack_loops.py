"""Factorisations in plain loops, of any size and dtype: what is done where there is no LAPACK."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.codegen import memory
from pullback.codegen.lane import Lane, element_type, lane_constant
from pullback.codegen.library.lapack_calls import Lapack
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import aligned
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import element, lanes_for, vector_loop
from pullback.ir.types import DType, real_dtype


class Rows:
    """A matrix in C order and what is done to its rows."""

    def __init__(self, lapack: Lapack, s: Scalars, pointer: V, columns: int) -> None:
        self.s = s
        self.b: FunctionBuilder = s.b
        self.dtype: DType = lapack.dtype
        self.pointer = pointer
        self.columns = columns
        self.lanes = lanes_for(lapack.program.e.target, lapack.dtype, columns)

    def entry(self, row: V, column: V) -> Lane:
        """One number."""
        return memory.load(self.b, self.dtype, self._address(row, column))

    def exchange(self, one: V, other: V) -> None:
        """Two rows change places; they may be the same one."""

        def strip(at: V, lanes: int, mask: int | None) -> None:
            x, y = self._address(one, at), self._address(other, at)
            first, second = self._load(x, lanes, mask), self._load(y, lanes, mask)
            memory.store(self.b, second, x, 1, mask)
            memory.store(self.b, first, y, 1, mask)

        vector_loop(self.b, self.columns, self.lanes, strip)

    def add(self, row: V, factor: Lane, other: V) -> None:
        """row += factor * other row."""

        def strip(at: V, lanes: int, mask: int | None) -> None:
            target = self._address(row, at)
            wide, x = memory.splat(self.b, factor, lanes), self._load(self._address(other, at), lanes, mask)
            memory.store(self.b, self.s.multiply_add(wide, x, self._load(target, lanes, mask)), target, 1, mask)

        vector_loop(self.b, self.columns, self.lanes, strip)

    def divide(self, row: V, divisor: Lane) -> None:
        """row /= divisor."""

        def strip(at: V, lanes: int, mask: int | None) -> None:
            place = self._address(row, at)
            quotient = self.s.binary("div", self._load(place, lanes, mask), memory.splat(self.b, divisor, lanes))
            memory.store(self.b, quotient, place, 1, mask)

        vector_loop(self.b, self.columns, self.lanes, strip)

    def _load(self, address: V, lanes: int, mask: int | None) -> Lane:
        return memory.load(self.b, self.dtype, address, 1, lanes, mask)

    def _address(self, row: V, column: V) -> V:
        return element(self.b, self.pointer, self.dtype, self.b.add(self.b.mul(row, self.columns), column))


def _pivot_row(rows: Rows, j: V, n: int) -> V:
    """The row from `j` on with the largest entry in column `j`; of complex numbers |re| + |im| counts."""
    b = rows.b
    smallest = const(element_type(real_dtype(rows.dtype)), -1.0)
    with b.loop(j, n, carry=[smallest, j]) as loop:
        parts = [b.intrinsic("fabs", part) for part in rows.entry(loop.index, j).parts]
        size = parts[0] if len(parts) == 1 else b.fadd(parts[0], parts[1])
        larger = b.fcmp("ogt", size, loop.carry[0])
        loop.turn(b.select(larger, size, loop.carry[0]), b.select(larger, loop.index, loop.carry[1]))
    return loop.results[1]


def eliminate(n: int, matrices: Sequence[Rows]) -> tuple[V, V]:
    """Elimination in the first matrix with partial pivoting, the others following; i1: singular, odd exchanges."""
    rows = matrices[0]
    b, s = rows.b, rows.s
    zero = lane_constant(rows.dtype, 0.0, 1)
    with b.loop(0, n, carry=[const("i1", False)] * 2) as steps:
        j = steps.index
        place = _pivot_row(rows, j, n)
        for matrix in matrices:
            matrix.exchange(j, place)
        pivot = rows.entry(j, j)
        with b.loop(b.add(j, 1), n) as below:
            factor = s.math("neg", s.binary("div", rows.entry(below.index, j), pivot))
            for matrix in matrices:
                matrix.add(below.index, factor, j)
        singular = b.or_(steps.carry[0], s.compare("equal", pivot, zero).re)
        steps.turn(singular, b.xor(steps.carry[1], b.icmp("ne", place, j)))
    return steps.results[0], steps.results[1]


def scratch_size(dtype: DType, n: int) -> int:
    """Bytes of scratch for `solve`: two matrices."""
    return 2 * aligned(n * n * dtype.itemsize)


def solve(lapack: Lapack, n: int, columns: int, trans: str, a: V, rhs: V, out: V, scratch: V) -> V:
    """X with op(A) X = B; i1: is A singular."""
    b = lapack.b
    s = lapack.program.e.scalars(b)
    if trans == "C":
        conjugate = b.gep("i8", scratch, scratch_size(lapack.dtype, n) // 2)
        lapack.copied(conjugate, a, n * n, conjugate=True)
        a = conjugate
    (lapack.copied(scratch, a, n * n) if trans == "N" else lapack.turned(scratch, a, n, n))
    lapack.copied(out, rhs, n * columns)
    matrix, sides = Rows(lapack, s, scratch, n), Rows(lapack, s, out, columns)
    singular, _ = eliminate(n, [matrix, sides])
    with b.loop(0, n) as loop:
        j = b.rsub(n - 1, loop.index)
        sides.divide(j, matrix.entry(j, j))
        with b.loop(0, j) as above:
            sides.add(above.index, s.math("neg", matrix.entry(above.index, j)), j)
    return singular


def cholesky(lapack: Lapack, n: int, a: V, out: V) -> V:
    """L row by row; i1: is a pivot not positive."""
    b = lapack.b
    s = lapack.program.e.scalars(b)
    matrix, factor = Rows(lapack, s, a, n), Rows(lapack, s, out, n)
    with b.loop(0, n, carry=[const("i1", False)]) as rows:
        i = rows.index
        with b.loop(0, i) as columns:
            j = columns.index
            entry = _less_products(s, matrix.entry(i, j), factor, i, j)
            memory.store(b, s.binary("div", entry, factor.entry(j, j)), _place(factor, i, j))
        pivot = _less_products(s, matrix.entry(i, i), factor, i, i)
        part = real_dtype(lapack.dtype)
        root = s.cast(s.math("sqrt", Lane(part, pivot.re)), lapack.dtype)
        memory.store(b, root, _place(factor, i, i))
        rows.turn(b.or_(rows.carry[0], b.fcmp("ole", pivot.re, 0.0)))
    lapack.clear_rows(out, n, above=True)
    return rows.results[0]


def _less_products(s: Scalars, entry: Lane, factor: Rows, i: V, j: V) -> Lane:
    """entry - sum over k < j of L[i, k] conj(L[j, k])."""
    with s.b.loop(0, j, carry=entry.parts) as loop:
        other = factor.entry(j, loop.index)
        if other.im is not None:
            other = s.math("conj", other)
        product = s.binary("mul", factor.entry(i, loop.index), other)
        loop.turn(*s.binary("sub", Lane(entry.dtype, *loop.carry), product).parts)
    return Lane(entry.dtype, *loop.results)


def _place(rows: Rows, row: V, column: V) -> V:
    return element(rows.b, rows.pointer, rows.dtype, rows.b.add(rows.b.mul(row, rows.columns), column))
