"""The transform of lines whose length has small factors only.

A line alone is done in two steps, with the transposed matrix in between; short lines as many at a time as there are
lanes, in one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pullback.codegen.kernel import chunk_pointers, run_parallel
from pullback.codegen.library.fft_lanes import Complexes, Pair
from pullback.codegen.library.fft_passes import Passes
from pullback.codegen.library.fft_plan import Split, radices_of, unit_roots
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import Program, aligned
from pullback.ir.types import DType
from pullback.record import record

TABLE_LENGTH = 1 << 15
"""Up to this length the factors between the two steps are in a table by row and block; above, each is a product of two
from tables of the length of a root."""


@record(frozen=True)
class Line:
    """A transform of one line of complex numbers.

    lanes : columns that are done together
    inverse : with exp(+2 pi i ...)
    """

    dtype: DType
    n: int
    split: Split
    lanes: int
    inverse: bool

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks of columns in the first and in the second step."""
        return -(-self.split.columns // self.lanes), -(-self.split.rows // self.lanes)

    @property
    def pair_bytes(self) -> int:
        return self.lanes * self.dtype.itemsize

    @property
    def middle_bytes(self) -> int:
        """The transposed matrix between the steps."""
        first, second = self.blocks
        return aligned(first * self.lanes * second * self.pair_bytes)

    @property
    def buffer_bytes(self) -> int:
        """One of the two buffers in which a block of columns goes from pass to pass."""
        return aligned(max(self.blocks[1] * self.lanes, self.split.columns) * self.pair_bytes)

    @property
    def lines_bytes(self) -> int:
        """One of the buffers for several lines."""
        return aligned(-(-self.n // self.lanes) * self.lanes * self.pair_bytes)

    @property
    def lines_scratch(self) -> int:
        """What several lines at a time are done in."""
        return 2 * self.lines_bytes + self.odd_bytes + self.lanes * self.pair_bytes

    @property
    def odd_bytes(self) -> int:
        """What passes of large odd radices work in."""
        return 2 * max(radices_of(self.n) or (0,), default=0) * self.pair_bytes

class LineEmitter:
    """Emits transforms of lines into the module of a program; equal functions exist once."""

    def __init__(self, program: Program, line: Line) -> None:
        self.program = program
        self.line = line
        self.passes = Passes(program, line.dtype, line.lanes)

    # ---------------------------------------------------------------- the two steps

    def columns_function(self) -> str:
        """(line, middle, buffers, first block, end): columns of the line, with factors, transposed to the middle."""
        line = self.line
        n1, n2 = line.split.rows, line.split.columns

        def emit(b: FunctionBuilder) -> None:
            c = self.passes.complexes(b)
            source, middle, space, lo, hi = b.params
            buffers = self.passes.buffers(c, space, line.buffer_bytes)
            with b.loop(lo, hi) as blocks:
                self._gather(c, source, blocks.index, buffers[1])
                place, _ = self.passes.transform(b, n1, buffers[1], line.pair_bytes, buffers)
                if n1 > 1 and n2 > 1:
                    self._multiply(c, place, blocks.index)
                self._turn(c, place, middle, blocks.index)

        return self.passes.function(f"columns{self._suffix}", 2, 3, emit)

    def rows_function(self) -> str:
        """(middle, line, buffers, first block, end): columns of the middle to the line."""
        line = self.line
        n1, n2 = line.split.rows, line.split.columns

        def emit(b: FunctionBuilder) -> None:
            c = self.passes.complexes(b)
            middle, target, space, lo, hi = b.params
            buffers = self.passes.buffers(c, space, line.buffer_bytes)
            apart = line.blocks[1] * line.pair_bytes
            with b.loop(lo, hi) as blocks:
                here = c.at(middle, blocks.index, line.pair_bytes)
                place, gap = self.passes.transform(b, n2, here, apart, buffers)
                column = b.mul(blocks.index, line.lanes)
                count = b.rsub(n1, column) if n1 % line.lanes else None
                with b.loop(0, n2) as loop:
                    value = c.load_pair(c.at(place, loop.index, gap))
                    at = b.add(b.mul(loop.index, n1), column)
                    c.store(value.swapped if line.inverse else value, c.at(target, at, line.dtype.itemsize), count)

        return self.passes.function(f"rows{self._suffix}", 2, 3, emit)

    def line_scratch(self, shares: int) -> int:
        """Bytes that `emit_line` works in."""
        line = self.line
        return line.middle_bytes + shares * self._share_bytes

    @property
    def _share_bytes(self) -> int:
        return aligned(2 * self.line.buffer_bytes + self.line.odd_bytes)

    def emit_line(self, b: FunctionBuilder, source: V, target: V, scratch: V, shares: int) -> None:
        """Transform a line to another place: alone, or each step in shares for all threads."""
        middle, buffers = scratch, b.gep("i8", scratch, self.line.middle_bytes)
        steps = ((self.columns_function(), source, middle), (self.rows_function(), middle, target))
        for (name, given, made), blocks in zip(steps, self.line.blocks, strict=True):
            if shares == 1:
                b.call("void", name, [given, made, buffers, const("i64", 0), const("i64", blocks)])
            else:
                chunk = self._share_function(name, -(-blocks // shares), blocks)
                run_parallel(self.program.e, b, chunk, [given, made, buffers], shares)

    def _share_function(self, step: str, length: int, blocks: int) -> str:
        """(context, number): one share of a step's blocks, with buffers of its own."""

        def emit(b: FunctionBuilder) -> None:
            given, made, buffers = chunk_pointers(b, 3)
            own = b.gep("i8", buffers, b.mul(b.params[1], self._share_bytes))
            lo = b.mul(b.params[1], length)
            hi = b.intrinsic("smin", b.add(lo, length), blocks)
            b.call("void", step, [given, made, own, lo, hi])

        return self.program.chunk((step, length, blocks), "fft.share", emit)

    # ---------------------------------------------------------------- several lines

    def lines_function(self) -> str:
        """(lines, results, buffers): as many lines as lanes, one in each."""
        line = self.line

        def emit(b: FunctionBuilder) -> None:
            c = self.passes.complexes(b)
            source, target, space = b.params
            buffers = self.passes.buffers(c, space, line.lines_bytes)
            tile = c.at(space, 1, 2 * line.lines_bytes + line.odd_bytes)
            self._each_tile(c, lambda at, count: self._read_tile(c, source, tile, buffers.other, at, count))
            place, _ = self.passes.transform(b, line.n, buffers.other, line.pair_bytes, buffers)
            self._each_tile(c, lambda at, count: self._write_tile(c, place, tile, target, at, count))

        return self.passes.function(f"lines{line.n}{self._ending}", 0, 3, emit)

    def _each_tile(self, c: Complexes, emit: Callable[[V, V | None], None]) -> None:
        """As many elements as lanes at a time, and how many there are if they may be fewer."""
        n, lanes = self.line.n, self.line.lanes
        with c.b.loop(0, n, lanes) as loop:
            emit(loop.index, c.b.rsub(n, loop.index) if n % lanes else None)

    def _read_tile(self, c: Complexes, source: V, tile: V, target: V, at: V, count: V | None) -> None:
        """Some elements of each line, to pairs of the target by way of `tile`."""
        b, line = c.b, self.line
        with b.loop(0, line.lanes) as loop:
            value = c.load(self._element(c, source, loop.index, at), count)
            c.store_pair(value.swapped if line.inverse else value, c.at(tile, loop.index, line.pair_bytes))
        self.passes.turn(b, tile, line.pair_bytes, c.at(target, at, line.pair_bytes), line.pair_bytes)

    def _write_tile(self, c: Complexes, source: V, tile: V, target: V, at: V, count: V | None) -> None:
        b, line = c.b, self.line
        self.passes.turn(b, c.at(source, at, line.pair_bytes), line.pair_bytes, tile, line.pair_bytes)
        with b.loop(0, line.lanes) as loop:
            value = c.load_pair(c.at(tile, loop.index, line.pair_bytes))
            c.store(value.swapped if line.inverse else value, self._element(c, target, loop.index, at), count)

    def _element(self, c: Complexes, lines: V, line: V, at: V) -> V:
        """Address of an element of a line."""
        return c.at(lines, c.b.add(c.b.mul(line, self.line.n), at), self.line.dtype.itemsize)

    @property
    def _suffix(self) -> str:
        return f"{self.line.split.rows}x{self.line.split.columns}{self._ending}"

    @property
    def _ending(self) -> str:
        return f".{self.passes.element}{'.inverse' if self.line.inverse else ''}"

    def _gather(self, c: Complexes, source: V, block: V, target: V) -> None:
        """A block of columns of the line."""
        b, line = c.b, self.line
        n1, n2 = line.split.rows, line.split.columns
        column = b.mul(block, line.lanes)
        count = b.rsub(n2, column) if n2 % line.lanes else None
        with b.loop(0, n1) as loop:
            at = b.add(b.mul(loop.index, n2), column)
            value = c.load(c.at(source, at, line.dtype.itemsize), count)
            c.store_pair(value.swapped if line.inverse else value, c.at(target, loop.index, line.pair_bytes))

    def _multiply(self, c: Complexes, place: V, block: V) -> None:
        """Element (k, j) times exp(-2 pi i k j / n): j is the first column of the block and a lane."""
        b, line = c.b, self.line
        n1 = line.split.rows
        rows = np.arange(n1)
        lanes = self.passes.vectors(b, unit_roots(rows[:, None] * np.arange(line.lanes)[None, :], line.n))
        factor = self._block_factors(c, block)
        with b.loop(0, n1) as loop:
            here = c.at(place, loop.index, line.pair_bytes)
            wide = Pair(*[b.splat(part, line.lanes) for part in factor(loop.index)])
            turn = c.mul(c.load_pair(c.at(lanes, loop.index, line.pair_bytes)), wide)
            c.store_pair(c.mul(c.load_pair(here), turn), here)

    def _block_factors(self, c: Complexes, block: V) -> Callable[[V], Pair]:
        """A function from the row to exp(-2 pi i row column / n), for the first column of the block."""
        b, line = c.b, self.line
        n, size = line.n, line.dtype.itemsize
        if n <= TABLE_LENGTH:
            rows, columns = np.arange(line.split.rows), np.arange(line.blocks[0]) * line.lanes
            table = c.at(self.passes.table(b, unit_roots(columns[:, None] * rows[None, :], n)), block, len(rows) * size)
            return lambda row: c.load_scalar(c.at(table, row, size))
        bits = (n.bit_length() + 1) // 2
        low = self.passes.table(b, unit_roots(np.arange(1 << bits), n))
        high = self.passes.table(b, unit_roots(np.arange(-(-n >> bits) + 1) << bits, n))
        column = b.mul(block, line.lanes)

        def product(row: V) -> Pair:
            t = b.mul(row, column)
            x = c.load_scalar(c.at(high, b.lshr(t, bits), size))
            return c.mul(x, c.load_scalar(c.at(low, b.and_(t, (1 << bits) - 1), size)))

        return product

    def _turn(self, c: Complexes, place: V, middle: V, block: V) -> None:
        """A block of columns becomes as many rows of the middle."""
        b, line = c.b, self.line
        lanes, across = line.lanes, line.blocks[1]
        with b.loop(0, across) as loop:
            here = c.at(place, loop.index, lanes * line.pair_bytes)
            there = c.at(middle, b.add(b.mul(block, lanes * across), loop.index), line.pair_bytes)
            self.passes.turn(b, here, line.pair_bytes, there, across * line.pair_bytes)
