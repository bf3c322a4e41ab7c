"""sort: a stable sort of lines, with other arrays carried along.

Long lines of real numbers are sorted by digits (`digits`). Others are merged: a line is copied to scratch memory as
keys and, where other arrays follow, their numbers; runs are sorted by insertion and merged upward, from one half of the
scratch memory to the other and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pullback.codegen import memory
from pullback.codegen.lane import Lane
from pullback.codegen.library.batches import Work, site_of
from pullback.codegen.library.digits import DigitSorter, sorts_by_digits
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import Frame, Program
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import Lines, element, lines_of
from pullback.ir.graph import Op
from pullback.ir.types import BOOL, I64, DType

RUN = 16
"""Lines are cut into runs of this length, each sorted by insertion."""

DIGIT_NS, MERGE_NS = 2.0, 50.0
"""About how long an element takes: by digits for each byte of its key, by merging."""


def lower_sort(frame: Frame, op: Op) -> None:
    """Every operand in the order of the first one, NaN last."""
    first, axis = op.operands[0], op.attrs["axis"]
    if first.type.size == 0:
        return
    lines = lines_of(first.type.shape, axis)
    dtypes = tuple(v.type.dtype for v in op.operands)
    by_digits = sorts_by_digits(dtypes[0], lines.length)
    if by_digits:
        scratch, ns = DigitSorter.scratch_bytes(dtypes[0], lines.length), DIGIT_NS * dtypes[0].itemsize
    else:
        scratch, ns = 4 * max(dtypes[0].itemsize, 8) * lines.length, MERGE_NS
    key = ("sort", lines, dtypes)
    sort = _sort_by_digits if by_digits else _sort_by_merging

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> None:
        count = len(dtypes)
        with b.loop(0, lines.inner) as inner:
            line = _Line(b, dtypes, lines, pointers[:count], pointers[count:], inner.index)
            sort(program.e.scalars(b), line, scratch)

    work = Work(key, scratch, ns * lines.length * lines.inner)
    site_of(frame, op).run(first.type.ndim - axis, work, member)


class _Line(NamedTuple):
    """One line of every operand and result: number `start` of those that lie side by side."""

    b: FunctionBuilder
    dtypes: tuple[DType, ...]
    lines: Lines
    sources: Sequence[V]
    targets: Sequence[V]
    start: V

    def source(self, which: int, at: V) -> Lane:
        return memory.load(self.b, self.dtypes[which], self._place(self.sources, which, at))

    def put(self, which: int, at: V, value: Lane) -> None:
        memory.store(self.b, value, self._place(self.targets, which, at))

    def _place(self, buffers: Sequence[V], which: int, at: V) -> V:
        index = self.b.add(self.start, self.b.mul(at, self.lines.inner))
        return element(self.b, buffers[which], self.dtypes[which], index)

    def take(self, which: int, number: Callable[[V], V]) -> None:
        """Result `which`: at each place the element that was at `number` of it."""
        with self.b.loop(0, self.lines.length) as loop:
            self.put(which, loop.index, self.source(which, number(loop.index)))


def _sort_by_digits(s: Scalars, line: _Line, scratch: V) -> None:
    b, numbered = line.b, len(line.dtypes) > 1
    sorter = DigitSorter(b, line.dtypes[0], line.lines.length, numbered, scratch)
    sorter.begin()
    with b.loop(0, line.lines.length) as loop:
        sorter.put(loop.index, line.source(0, loop.index))
    sorter.run()
    if numbered:
        for which in range(len(line.dtypes)):
            line.take(which, sorter.number)
        return
    with b.loop(0, line.lines.length) as loop:
        line.put(0, loop.index, sorter.key(loop.index))


def _sort_by_merging(s: Scalars, line: _Line, scratch: V) -> None:
    b = line.b
    sorter = _Sorter(s, line.dtypes[0], line.lines.length, len(line.dtypes) > 1, scratch)
    with b.loop(0, line.lines.length) as loop:
        sorter.put(0, loop.index, line.source(0, loop.index), loop.index)
    half = sorter.run()
    for which in range(1, len(line.dtypes)):
        line.take(which, lambda at: sorter.number(half, at))
    with b.loop(0, line.lines.length) as loop:
        line.put(0, loop.index, sorter.key(half, loop.index))


class _Sorter:
    """Sorts one line of keys in scratch memory; `numbers` go with them if anything else is to follow."""

    def __init__(self, s: Scalars, dtype: DType, length: int, numbered: bool, scratch: V) -> None:
        self.s = s
        self.b: FunctionBuilder = s.b
        self.dtype = dtype
        self.length = length
        self.numbered = numbered
        item = max(dtype.itemsize, 8)
        places = [self.b.gep("i8", scratch, k * item * length) for k in range(4)]
        self.keys, self.numbers = places[:2], places[2:]

    def key(self, half: int, at: V) -> Lane:
        return memory.load(self.b, self.dtype, element(self.b, self.keys[half], self.dtype, at))

    def put(self, half: int, at: V, key: Lane, number: V) -> None:
        memory.store(self.b, key, element(self.b, self.keys[half], self.dtype, at))
        if self.numbered:
            self.b.store(number, element(self.b, self.numbers[half], I64, at), 8)

    def number(self, half: int, at: V) -> V:
        if not self.numbered:
            return const("i64", 0)
        return self.b.load("i64", element(self.b, self.numbers[half], I64, at), 8)

    def less(self, x: Lane, y: Lane) -> V:
        """Strictly before: smaller, or a number before a NaN."""
        less = self.s.compare("less", x, y).re
        if self.dtype.kind not in "fc":
            return less
        x_nan, y_nan = self.s.math("isnan", x), self.s.math("isnan", y)
        last = self.s.math("bitwise_and", y_nan, self.s.math("invert", x_nan)).re
        if self.dtype.kind == "c":  # a NaN part makes every comparison of NumPy's order partial; keep to whole numbers
            less = self.b.and_(less, self.s.math("invert", self.s.math("bitwise_or", x_nan, y_nan)).re)
        return self.b.or_(less, last)

    def run(self) -> int:
        """Sort; gives the half in which the sorted line is."""
        self._insert_runs()
        half, width = 0, RUN
        while width < self.length:
            self._merge_runs(half, width)
            half, width = 1 - half, width * 2
        return half

    # ---------------------------------------------------------------- insertion

    def _insert_runs(self) -> None:
        b = self.b
        with b.loop(0, self.length, RUN) as runs:
            end = b.intrinsic("smin", b.add(runs.index, RUN), self.length)
            with b.loop(b.add(runs.index, 1), end) as loop:
                self._insert(runs.index, loop.index)

    def _insert(self, first: V, at: V) -> None:
        """Move the element at `at` down to its place in the sorted run before it."""
        b = self.b
        key, number = self.key(0, at), self.number(0, at)
        before = b.current
        look, shift, done = b.new_label("look"), b.new_label("shift"), b.new_label("done")
        inside = b.new_label("inside")
        b.br(look)
        b.label(look)
        place = b.phi("i64", [(at, before)])
        b.condbr(b.icmp("sgt", place.value, first), inside, done)
        b.label(inside)
        below = b.sub(place.value, 1)
        other = self.key(0, below)
        b.condbr(self.less(key, other), shift, done)
        b.label(shift)
        self.put(0, place.value, other, self.number(0, below))
        place.add(below, shift)
        b.br(look)
        b.label(done)
        self.put(0, place.value, key, number)

    # ---------------------------------------------------------------- merging

    def _merge_runs(self, half: int, width: int) -> None:
        """Merge pairs of runs of `width` from `half` to the other half."""
        b = self.b
        with b.loop(0, self.length, 2 * width) as loop:
            middle = b.intrinsic("smin", b.add(loop.index, width), self.length)
            end = b.intrinsic("smin", b.add(loop.index, 2 * width), self.length)
            self._merge(half, loop.index, middle, end)

    def _merge(self, half: int, first: V, middle: V, end: V) -> None:
        """One element a turn, without a branch on the keys; a run that is used up is read at its last element."""
        b = self.b
        with b.loop(first, end, carry=(first, middle)) as loop:
            left, right = loop.carry
            one = self.key(half, b.intrinsic("smin", left, b.sub(middle, 1)))
            other = self.key(half, b.intrinsic("smin", right, b.sub(end, 1)))
            has_left, has_right = b.icmp("slt", left, middle), b.icmp("slt", right, end)
            takes_right = b.and_(has_right, b.or_(b.not_(has_left), self.less(other, one)))
            key = self.s.select(Lane(BOOL, takes_right), other, one)
            self.put(1 - half, loop.index, key, self.number(half, b.select(takes_right, right, left)))
            step = b.cast("zext", takes_right, "i64")
            loop.turn(b.add(left, b.rsub(1, step)), b.add(right, step))
