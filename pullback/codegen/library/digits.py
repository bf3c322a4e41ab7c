"""Sorting by digits: a line of numbers in the order of the bytes of its keys, from the lowest to the highest.

A key is a number's pattern turned so that it orders as an unsigned integer. One walk over the line makes the keys and
counts each byte's values; then every byte that differs somewhere moves the keys once, each to the next free place of
its value. That keeps the order of equal keys, takes the same time whatever the numbers are, and has no branch on them.
"""

from __future__ import annotations

from pullback.codegen.lane import Lane, element_type
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import aligned
from pullback.ir.types import BOOL, DType

FROM_LENGTH = 64
"""Shorter lines are done sooner by merging: the counts of 256 values must be added up for each byte."""

VALUES = 256
_COUNT_BYTES = 4


def sorts_by_digits(dtype: DType, length: int) -> bool:
    """Is a line of this length and dtype better sorted by digits."""
    return dtype.kind in "fiub" and FROM_LENGTH <= length < 1 << 31


class DigitSorter:
    """Sorts one line in scratch memory.

    numbered : number k goes with key k. Zeros of both signs are then equal; else -0.0 comes before 0.0
    """

    def __init__(self, b: FunctionBuilder, dtype: DType, length: int, numbered: bool, scratch: V) -> None:
        self.b = b
        self.dtype = dtype
        self.length = length
        self.numbered = numbered
        self._size = dtype.itemsize
        self._type = f"i{8 * self._size}"
        places, at = [], 0
        for size in self._sizes(dtype, length):
            places.append(b.gep("i8", scratch, at))
            at += aligned(size)
        self._keys, self._numbers, self._counts = places[:2], places[2:4], places[4]
        self._sorted: tuple[V, V] = (self._keys[0], self._numbers[0])

    @staticmethod
    def _sizes(dtype: DType, length: int) -> list[int]:
        keys, numbers = length * dtype.itemsize, length * _COUNT_BYTES
        return [keys, keys, numbers, numbers, dtype.itemsize * VALUES * _COUNT_BYTES]

    @staticmethod
    def scratch_bytes(dtype: DType, length: int) -> int:
        """Memory that sorting a line takes."""
        return sum(aligned(size) for size in DigitSorter._sizes(dtype, length))

    # ---------------------------------------------------------------- filling

    def begin(self) -> None:
        """Nothing is counted yet."""
        self.b.memset(self._counts, 0, self._size * VALUES * _COUNT_BYTES, 64)

    def put(self, at: V, x: Lane) -> None:
        """Element `at` of the line."""
        b = self.b
        key = self._ordered(x)
        b.store(key, self._place(self._keys[0], at), self._size)
        if self.numbered:
            b.store(b.cast("trunc", at, "i32"), b.gep("i32", self._numbers[0], at), _COUNT_BYTES)
        for digit in range(self._size):
            place = self._counter(self._counts_of(const("i64", digit)), self._digit(key, const("i64", digit)))
            b.store(b.add(b.load("i32", place, _COUNT_BYTES), 1), place, _COUNT_BYTES)

    def _ordered(self, x: Lane) -> V:
        b, bits = self.b, 8 * self._size
        if x.dtype == BOOL:
            return b.cast("zext", x.re, "i8")
        if x.dtype.kind != "f":
            return b.xor(x.re, 1 << (bits - 1)) if x.dtype.kind == "i" else x.re
        pattern = b.bitcast(x.re, self._type)
        sign = -(1 << (bits - 1))
        if self.numbered:
            pattern = b.select(b.icmp("eq", pattern, sign), 0, pattern)
        nan = b.icmp("ugt", b.and_(pattern, ~sign), _infinity(self._size))
        turned = b.xor(pattern, b.or_(b.ashr(pattern, bits - 1), sign))
        return b.select(nan, -1, turned)

    # ---------------------------------------------------------------- sorting

    def run(self) -> None:
        """Sort what was put."""
        b = self.b
        with b.loop(0, self._size, carry=(*self._keys, *self._numbers)) as loop:
            keys, to, numbers, numbers_to = loop.carry
            counts = self._counts_of(loop.index)
            first = self._digit(b.load(self._type, keys, self._size), loop.index)
            alike = b.icmp("eq", b.load("i32", self._counter(counts, first), _COUNT_BYTES), self.length)
            before, move, done = b.current, b.new_label("move"), b.new_label("moved")
            b.condbr(alike, done, move)
            b.label(move)
            self._add_up(counts)
            self._move(loop.index, counts, (keys, to), (numbers, numbers_to))
            after = b.current
            b.br(done)
            b.label(done)
            pairs = ((keys, to), (to, keys), (numbers, numbers_to), (numbers_to, numbers))
            loop.turn(*[b.phi("ptr", [(same, before), (other, after)]).value for same, other in pairs])
        self._sorted = loop.results[0], loop.results[2]

    def _add_up(self, counts: V) -> None:
        """Counts become the places where the keys of each value begin."""
        b = self.b
        with b.loop(0, VALUES, carry=(const("i32", 0),)) as loop:
            place = b.gep("i32", counts, loop.index)
            count = b.load("i32", place, _COUNT_BYTES)
            b.store(loop.carry[0], place, _COUNT_BYTES)
            loop.turn(b.add(loop.carry[0], count))

    def _move(self, digit: V, counts: V, keys: tuple[V, V], numbers: tuple[V, V]) -> None:
        b = self.b
        with b.loop(0, self.length) as loop:
            key = b.load(self._type, self._place(keys[0], loop.index), self._size)
            place = self._counter(counts, self._digit(key, digit))
            to = b.load("i32", place, _COUNT_BYTES)
            b.store(b.add(to, 1), place, _COUNT_BYTES)
            target = b.cast("zext", to, "i64")
            b.store(key, self._place(keys[1], target), self._size)
            if self.numbered:
                number = b.load("i32", b.gep("i32", numbers[0], loop.index), _COUNT_BYTES)
                b.store(number, b.gep("i32", numbers[1], target), _COUNT_BYTES)

    # ---------------------------------------------------------------- results

    def key(self, at: V) -> Lane:
        """The number at a place of the sorted line; a NaN is the default one."""
        b, bits = self.b, 8 * self._size
        key = b.load(self._type, self._place(self._sorted[0], at), self._size)
        if self.dtype == BOOL:
            return Lane(BOOL, b.icmp("ne", key, 0))
        if self.dtype.kind != "f":
            return Lane(self.dtype, b.xor(key, 1 << (bits - 1)) if self.dtype.kind == "i" else key)
        sign = -(1 << (bits - 1))
        pattern = b.xor(key, b.or_(b.ashr(b.not_(key), bits - 1), sign))
        return Lane(self.dtype, b.bitcast(pattern, element_type(self.dtype)))

    def number(self, at: V) -> V:
        """Where the element at a place of the sorted line was before."""
        b = self.b
        return b.cast("zext", b.load("i32", b.gep("i32", self._sorted[1], at), _COUNT_BYTES), "i64")

    # ---------------------------------------------------------------- places

    def _place(self, keys: V, at: V) -> V:
        return self.b.gep(self._type, keys, at)

    def _counts_of(self, digit: V) -> V:
        return self.b.gep("i32", self._counts, self.b.mul(digit, VALUES))

    def _counter(self, counts: V, value: V) -> V:
        return self.b.gep("i32", counts, value)

    def _digit(self, key: V, digit: V) -> V:
        """Byte number `digit` of the key, as i64."""
        b = self.b
        wide = key if self._size == 8 else b.cast("zext", key, "i64")
        return b.and_(b.lshr(wide, b.mul(digit, 8)), VALUES - 1)


def _infinity(size: int) -> int:
    """The pattern of infinity in a float of so many bytes."""
    exponent = {2: 5, 4: 8, 8: 11}[size]
    return ((1 << exponent) - 1) << (8 * size - 1 - exponent)
