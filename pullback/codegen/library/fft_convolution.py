"""Transforms of lengths with large prime factors, as convolutions (Bluestein's method).

j k = (j**2 + k**2 - (k - j)**2) / 2, so with the chirp c[j] = exp(-pi i j**2 / n) the transform of x is
c[k] * sum over j of (x[j] c[j]) conj(c[k - j]): a convolution, done by transforms of a longer, convenient length.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pullback.codegen.library.fft_lanes import Complexes, Pair
from pullback.codegen.library.fft_plan import chirp, convolution_kernel, unit_roots
from pullback.codegen.library.fft_steps import LineEmitter
from pullback.codegen.llvm import FunctionBuilder, V, const, const_lanes
from pullback.codegen.program import Program, aligned
from pullback.record import record

TABLE_BYTES = 256 * 1024
"""Larger tables are not kept in the object but made at each call, which adds a third transform to the two."""


@record(frozen=True)
class Convolution:
    """Emits transforms of length `n` by those of `inner`, whose length is at least 2 n - 1."""

    n: int
    inner: LineEmitter
    inverse: bool

    @property
    def item(self) -> int:
        return self.inner.line.dtype.itemsize

    @property
    def length(self) -> int:
        return self.inner.line.n

    @property
    def table_sizes(self) -> tuple[int, int]:
        """Bytes of the chirp and of the transform of its conjugate."""
        return aligned(self.n * self.item), aligned(self.length * self.item)

    @property
    def has_tables(self) -> bool:
        """Are the tables constants."""
        return sum(self.table_sizes) <= TABLE_BYTES

    def constants(self, b: FunctionBuilder) -> tuple[V, V]:
        """The tables as constants."""
        return (
            self.inner.passes.table(b, chirp(self.n)),
            self.inner.passes.table(b, convolution_kernel(self.n, self.length)),
        )

    # ---------------------------------------------------------------- a line

    def scratch(self, shares: int) -> int:
        """Bytes that `emit_line` works in."""
        return 2 * self.table_sizes[1] + self.inner.line_scratch(shares)

    def emit_line(self, b: FunctionBuilder, source: V, target: V, tables: tuple[V, V], scratch: V, shares: int) -> None:
        """Transform a line to another place."""
        c = self.inner.passes.complexes(b)
        wave, kernel = tables
        size = self.table_sizes[1]
        one, other, space = scratch, b.gep("i8", scratch, size), b.gep("i8", scratch, 2 * size)

        def loaded(pointer: V, at: V, count: V | None) -> Pair:
            return c.load(c.at(pointer, at, self.item), count)

        def given(at: V, count: V | None) -> Pair:
            x = loaded(source, at, count)
            return c.mul(x.swapped if self.inverse else x, loaded(wave, at, count))

        def product(at: V, count: V | None) -> Pair:
            return c.conj(c.mul(loaded(other, at, count), loaded(kernel, at, count)))

        def result(at: V, count: V | None) -> Pair:
            y = c.mul(c.conj(loaded(one, at, count)), loaded(wave, at, count))
            return y.swapped if self.inverse else y

        self._each(c, self.n, one, given)
        rest = (self.length - self.n) * self.item
        b.memset(b.gep("i8", one, self.n * self.item), 0, rest, self.item)
        self.inner.emit_line(b, one, other, space, shares)
        self._each(c, self.length, other, product)
        self.inner.emit_line(b, other, one, space, shares)  # the inverse: of the conjugate, conjugated
        self._each(c, self.n, target, result)

    def _each(self, c: Complexes, count: int, target: V, value: Callable[[V, V | None], Pair]) -> None:
        """Put a value to every place of `target`, by vectors."""
        lanes = c.lanes
        whole = count // lanes * lanes
        if whole:
            with c.b.loop(0, whole, lanes) as loop:
                c.store(value(loop.index, None), c.at(target, loop.index, self.item))
        if count > whole:
            at, rest = const("i64", whole), const("i64", count - whole)
            c.store(value(at, rest), c.at(target, at, self.item), rest)

    # ---------------------------------------------------------------- tables made at a call

    def tables_scratch(self) -> int:
        """Bytes that `emit_tables` works in."""
        return self.table_sizes[1] + self.inner.line_scratch(1)

    def emit_tables(self, program: Program, b: FunctionBuilder) -> None:
        """(chirp, kernel, scratch): fill the tables."""
        c = self.inner.passes.complexes(b)
        wave, kernel, scratch = b.params
        self._emit_chirp(c, wave)
        around, space = scratch, b.gep("i8", scratch, self.table_sizes[1])
        b.memset(around, 0, self.length * self.item, self.item)
        scale = 1.0 / self.length
        with b.loop(0, self.n) as loop:
            x = c.load_scalar(c.at(wave, loop.index, self.item))
            x = Pair(b.fmul(x.re, scale), b.fmul(x.im, -scale))
            place = b.select(b.icmp("eq", loop.index, 0), loop.index, b.rsub(self.length, loop.index))
            for at in (loop.index, place):
                for k, part in enumerate(x):
                    b.store(part, c.at(c.at(around, at, self.item), k, c.item), c.item)
        self.inner.emit_line(b, around, kernel, space, 1)

    def _emit_chirp(self, c: Complexes, wave: V) -> None:
        """exp(-2 pi i t / 2n) for t = j**2 mod 2n, which goes from one vector of numbers to the next by additions."""
        b, lanes, turn = c.b, c.lanes, 2 * self.n
        numbers = [j * j % turn for j in range(lanes)]
        steps = [(2 * j * lanes + lanes * lanes) % turn for j in range(lanes)]
        bits = (turn.bit_length() + 1) // 2
        low = self.inner.passes.table(b, unit_roots(np.arange(1 << bits), turn))
        high = self.inner.passes.table(b, unit_roots(np.arange((turn >> bits) + 1) << bits, turn))
        start = [const_lanes("i64", numbers), const_lanes("i64", steps)]

        def wrapped(x: V, y: V | int) -> V:
            total = b.add(x, y)
            return b.select(b.icmp("sge", total, turn), b.sub(total, turn), total)

        with b.loop(0, self.n, lanes, carry=start) as loop:
            t, step = loop.carry
            root = c.mul(self._gather(c, high, b.lshr(t, bits)), self._gather(c, low, b.and_(t, (1 << bits) - 1)))
            count = b.rsub(self.n, loop.index) if self.n % lanes else None
            c.store(root, c.at(wave, loop.index, self.item), count)
            loop.turn(wrapped(t, step), wrapped(step, 2 * lanes * lanes % turn))

    def _gather(self, c: Complexes, table: V, numbers: V) -> Pair:
        """One entry for each lane."""
        b = c.b
        places = b.gep("i8", table, b.mul(numbers, self.item), flags="")
        return Pair(*[b.gather(c.vector, b.gep("i8", places, k * c.item, flags=""), c.item) for k in range(2)])
