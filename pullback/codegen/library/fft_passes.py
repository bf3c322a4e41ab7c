"""Transforms of columns in lanes, pass by pass, as functions that all transforms of a program share.

An element of a column is a pair: the real parts of as many columns as there are lanes, then their imaginary parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pullback.codegen.interleave import transpose
from pullback.codegen.lane import element_type
from pullback.codegen.library.fft_lanes import Complexes, Pair
from pullback.codegen.library.fft_plan import WRITTEN_OUT, Array, pass_factors, passes_of, unit_roots
from pullback.codegen.library.fft_radix import butterfly, odd_butterfly
from pullback.codegen.llvm import FunctionBuilder, V, const, vector_type
from pullback.codegen.program import Program
from pullback.ir.types import DType, real_dtype
from pullback.record import record


class Buffers(NamedTuple):
    """Where a block of columns goes from pass to pass, and what a pass of a large odd radix works in."""

    one: V
    other: V
    odd: V


def _step(b: FunctionBuilder, pointer: V, distance: V, times: V | int) -> V:
    """An address some distances further on."""
    return b.gep("i8", pointer, b.mul(distance, times), flags="") if times != 0 else pointer


@record(frozen=True, eq=False)
class Passes:
    """Emits passes over columns of one dtype into the module of a program; equal functions exist once."""

    program: Program
    dtype: DType
    lanes: int

    @property
    def element(self) -> str:
        """LLVM's type of a part."""
        return element_type(real_dtype(self.dtype))

    def complexes(self, b: FunctionBuilder) -> Complexes:
        return Complexes(b, self.element, real_dtype(self.dtype).itemsize, self.lanes)

    def function(self, name: str, integers: int, pointers: int, emit: Callable[[FunctionBuilder], None]) -> str:
        """A function of some pointers and integers."""
        full = f"{self.program.name}.fft.{name}"
        if full not in self.program.e.module.functions:
            params = [("ptr", f"p{k}") for k in range(pointers)] + [("i64", f"n{k}") for k in range(integers)]
            b = self.program.e.function(full, params, attributes="noinline")
            emit(b)
            b.ret()
        return full

    def table(self, b: FunctionBuilder, numbers: Array) -> V:
        """Complex constants, as pairs of numbers."""
        return b.module.constant(np.ascontiguousarray(numbers.astype(self.dtype)).tobytes())

    def vectors(self, b: FunctionBuilder, numbers: Array) -> V:
        """Rows of complex constants, each as real parts and then imaginary parts."""
        parts = np.stack([numbers.real, numbers.imag], axis=-2).astype(real_dtype(self.dtype))
        return b.module.constant(np.ascontiguousarray(parts).tobytes())

    def buffers(self, c: Complexes, space: V, size: int) -> Buffers:
        """Two buffers of so many bytes, and the third behind them."""
        return Buffers(space, c.at(space, 1, size), c.at(space, 2, size))

    # ---------------------------------------------------------------- passes

    def pass_function(self, radix: int, plain: bool) -> str:
        """A pass with a butterfly written out: (source, target, factors, bytes between elements of the source, count,
        stride). A plain one is the last: its factors are 1."""

        def emit(b: FunctionBuilder) -> None:
            c = self.complexes(b)
            source, target, factors, apart, count, stride = b.params
            across, out = b.mul(b.mul(stride, count), apart), b.mul(stride, c.pair_bytes)
            with b.loop(0, const("i64", 1) if plain else count) as groups:
                turns = [] if plain else self._turns(c, c.at(factors, groups.index, (radix - 1) * 2 * c.item), radix)
                first = b.mul(groups.index, stride)
                with b.loop(0, stride) as loop:
                    here = b.gep("i8", source, b.mul(b.add(first, loop.index), apart), flags="")
                    there = c.at(target, b.add(b.mul(first, radix), loop.index), c.pair_bytes)
                    y = butterfly(c, [c.load_pair(_step(b, here, across, k)) for k in range(radix)])
                    for k, value in enumerate(y):
                        turned = c.mul(value, turns[k - 1]) if k and not plain else value
                        c.store_pair(turned, _step(b, there, out, k))

        return self.function(f"{'last' if plain else 'pass'}{radix}.{self.element}{self.lanes}", 3, 3, emit)

    def _turns(self, c: Complexes, factors: V, radix: int) -> list[Pair]:
        return [c.load_splat(c.at(factors, k, 2 * c.item)) for k in range(radix - 1)]

    def odd_pass_function(self) -> str:
        """A pass of any odd radix: as above, and (roots, space) behind the factors, the radix behind the stride. All
        outputs have a factor."""

        def emit(b: FunctionBuilder) -> None:
            c = self.complexes(b)
            source, target, factors, roots, space, apart, count, stride, radix = b.params
            across, out = b.mul(b.mul(stride, count), apart), b.mul(stride, c.pair_bytes)
            with b.loop(0, count) as groups, b.loop(0, stride) as loop:
                turns = c.at(factors, b.mul(groups.index, radix), 2 * c.item)
                first = b.mul(groups.index, stride)
                here = b.gep("i8", source, b.mul(b.add(first, loop.index), apart), flags="")
                there = c.at(target, b.add(b.mul(first, radix), loop.index), c.pair_bytes)

                def load(k: V) -> Pair:
                    return c.load_pair(_step(b, here, across, k))

                def store(k: V, value: Pair) -> None:
                    turned = c.mul(value, c.load_splat(c.at(turns, k, 2 * c.item)))
                    c.store_pair(turned, _step(b, there, out, k))

                odd_butterfly(c, radix, load, store, roots, space)

        return self.function(f"odd.{self.element}{self.lanes}", 4, 5, emit)

    def transform(self, b: FunctionBuilder, n: int, source: V, apart: int, buffers: Buffers) -> tuple[V, int]:
        """Columns of length `n`, elements `apart` bytes apart in `source`; gives where they are then and how far
        apart."""
        free = 0
        for step in passes_of(n):
            target = buffers[free]
            numbers = [const("i64", k) for k in (apart, step.count, step.stride)]
            if step.radix in WRITTEN_OUT:
                plain = step.count == 1
                factors = const("ptr", 0) if plain else self.table(b, pass_factors(step)[:, 1:])
                b.call("void", self.pass_function(step.radix, plain), [source, target, factors, *numbers])
            else:
                roots = unit_roots(np.arange(step.radix), step.radix)
                tables = [self.table(b, pass_factors(step)), self.table(b, roots)]
                numbers.append(const("i64", step.radix))
                b.call("void", self.odd_pass_function(), [source, target, *tables, buffers.odd, *numbers])
            source, apart, free = target, self.lanes * self.dtype.itemsize, 1 - free
        return source, apart

    # ---------------------------------------------------------------- transposition

    def turn_function(self) -> str:
        """(source, target, bytes between pairs of the source, of the target): as many pairs as lanes, transposed.

        Square parts of up to eight lanes, one after the other: the code of wider ones would be long."""
        item, side = real_dtype(self.dtype).itemsize, min(self.lanes, 8)
        parts = self.lanes // side

        def emit(b: FunctionBuilder) -> None:
            source, target, apart, gap = b.params
            with b.loop(0, 2) as planes, b.loop(0, parts) as rows, b.loop(0, parts) as columns:
                plane = b.mul(planes.index, self.lanes * item)

                def corner(pointer: V, step: V, row: V, column: V) -> V:
                    offset = b.add(plane, b.mul(column, side * item))
                    return b.gep("i8", pointer, b.add(offset, b.mul(row, b.mul(step, side))), flags="")

                here = corner(source, apart, rows.index, columns.index)
                there = corner(target, gap, columns.index, rows.index)
                vector = vector_type(self.element, side)
                values = [b.load(vector, _step(b, here, apart, k), item) for k in range(side)]
                for k, value in enumerate(transpose(b, values)):
                    b.store(value, _step(b, there, gap, k), item)

        return self.function(f"turn.{self.element}{self.lanes}", 2, 2, emit)

    def turn(self, b: FunctionBuilder, source: V, apart: int, target: V, gap: int) -> None:
        """Transpose as many pairs as lanes, so many bytes apart."""
        args = [source, target, const("i64", apart), const("i64", gap)]
        b.call("void", self.turn_function(), args)
