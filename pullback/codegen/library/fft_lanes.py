"""Vectors of complex numbers: real and imaginary parts in two registers, in memory interleaved or apart."""

from __future__ import annotations

from typing import NamedTuple

from pullback.codegen.interleave import deinterleave, interleave
from pullback.codegen.llvm import FunctionBuilder, V, vector_type
from pullback.codegen.memory import lane_numbers


class Pair(NamedTuple):
    """Complex numbers in lanes."""

    re: V
    im: V

    @property
    def swapped(self) -> Pair:
        """Real and imaginary parts exchanged: i times the conjugate, which turns a transform into its inverse."""
        return Pair(self.im, self.re)


class Complexes:
    """Emits arithmetic and memory access for complex numbers of one kind.

    Parameters
    ----------
    element : `double` or `float`
    item : bytes of it
    lanes : numbers in a vector
    """

    def __init__(self, b: FunctionBuilder, element: str, item: int, lanes: int) -> None:
        self.b = b
        self.element = element
        self.item = item
        self.lanes = lanes
        self.vector = vector_type(element, lanes)

    # ---------------------------------------------------------------- arithmetic

    def add(self, x: Pair, y: Pair) -> Pair:
        return Pair(self.b.fadd(x.re, y.re), self.b.fadd(x.im, y.im))

    def sub(self, x: Pair, y: Pair) -> Pair:
        return Pair(self.b.fsub(x.re, y.re), self.b.fsub(x.im, y.im))

    def mul(self, x: Pair, y: Pair) -> Pair:
        """The product, each part rounded twice."""
        b = self.b
        re = b.fma(x.re, y.re, b.fneg(b.fmul(x.im, y.im)))
        return Pair(re, b.fma(x.re, y.im, b.fmul(x.im, y.re)))

    def turned(self, x: Pair) -> Pair:
        """-i x."""
        return Pair(x.im, self.b.fneg(x.re))

    def conj(self, x: Pair) -> Pair:
        return Pair(x.re, self.b.fneg(x.im))

    # ---------------------------------------------------------------- addresses

    def at(self, pointer: V, number: V | int, size: int) -> V:
        """Address of number `number` of things of so many bytes."""
        offset = number * size if isinstance(number, int) else self.b.mul(number, size)
        return self.b.gep("i8", pointer, offset, flags="") if offset != 0 else pointer

    @property
    def pair_bytes(self) -> int:
        """Bytes of a vector of real parts and one of imaginary parts."""
        return 2 * self.lanes * self.item

    # ---------------------------------------------------------------- parts apart

    def load_pair(self, pointer: V) -> Pair:
        """A vector of real parts and the vector of imaginary parts behind it."""
        align = self.item
        second = self.at(pointer, 1, self.lanes * self.item)
        return Pair(self.b.load(self.vector, pointer, align), self.b.load(self.vector, second, align))

    def store_pair(self, x: Pair, pointer: V) -> None:
        self.b.store(x.re, pointer, self.item)
        self.b.store(x.im, self.at(pointer, 1, self.lanes * self.item), self.item)

    def load_splat(self, pointer: V) -> Pair:
        """One complex number in every lane."""
        b = self.b
        parts = [b.load(self.element, self.at(pointer, k, self.item), self.item) for k in range(2)]
        return Pair(*[b.splat(part, self.lanes) for part in parts])

    def load_scalar(self, pointer: V) -> Pair:
        """One complex number."""
        return Pair(*[self.b.load(self.element, self.at(pointer, k, self.item), self.item) for k in range(2)])

    # ---------------------------------------------------------------- parts interleaved

    def load(self, pointer: V, count: V | None = None) -> Pair:
        """Complex numbers one behind the other; only the first `count`, zeros behind them."""
        halves = []
        for k in range(2):
            place = self.at(pointer, k, self.lanes * self.item)
            if count is None:
                halves.append(self.b.load(self.vector, place, self.item))
            else:
                halves.append(self.b.masked_load(self.vector, place, self.item, self._mask(count, k)))
        if self.lanes == 1:
            return Pair(*halves)
        return Pair(*[deinterleave(self.b, halves, self.lanes, which) for which in range(2)])

    def store(self, x: Pair, pointer: V, count: V | None = None) -> None:
        """The reverse of `load`."""
        halves = list(x) if self.lanes == 1 else interleave(self.b, list(x), self.lanes)
        for k, half in enumerate(halves):
            place = self.at(pointer, k, self.lanes * self.item)
            if count is None:
                self.b.store(half, place, self.item)
            else:
                self.b.masked_store(half, place, self.item, self._mask(count, k))

    def _mask(self, count: V, half: int) -> V:
        """Which lanes of a half belong to the first `count` numbers."""
        b, lanes = self.b, self.lanes
        left = b.sub(b.shl(count, 1), half * lanes)
        return b.icmp("slt", lane_numbers(lanes), b.splat(left, lanes))
