"""sort: a stable merge sort of lines, with other arrays carried along.

A line is copied to scratch memory as keys and, where other arrays follow, their numbers; runs are sorted by insertion
and merged upward, from one half of the scratch memory to the other and back.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.codegen import memory
from pullback.codegen.lane import Lane
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import Frame, Program
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import Lines, element, lines_of
from pullback.ir.graph import Op
from pullback.ir.types import BOOL, I64, DType

RUN = 16
"""Lines are cut into runs of this length, each sorted by insertion."""


def lower_sort(frame: Frame, op: Op) -> None:
    """Every operand in the order of the first one, NaN last."""
    first = op.operands[0]
    lines = lines_of(first.type.shape, op.attrs["axis"])
    if first.type.size == 0:
        return
    dtypes = tuple(v.type.dtype for v in op.operands)
    item = max(dtypes[0].itemsize, 8)
    with frame.scratch(4 * item * lines.length + 64) as scratch:

        def emit(program: Program, b: FunctionBuilder) -> None:
            count = len(dtypes)
            sorter = _Sorter(program.e.scalars(b), dtypes[0], lines.length, len(dtypes) > 1, b.params[-1])
            with b.loop(0, lines.outer) as outer, b.loop(0, lines.inner) as inner:
                start = b.add(b.mul(outer.index, lines.length * lines.inner), inner.index)
                _sort_line(sorter, b.params[:count], b.params[count:-1], dtypes, start, lines)

        frame.call(("sort", lines, dtypes), "sort", op.operands, op.results, emit, [scratch])


def _sort_line(
    sorter: _Sorter, sources: Sequence[V], targets: Sequence[V], dtypes: Sequence[DType], start: V, lines: Lines
) -> None:
    b = sorter.b
    with b.loop(0, lines.length) as loop:
        at = b.add(start, b.mul(loop.index, lines.inner))
        sorter.put(0, loop.index, memory.load(b, dtypes[0], element(b, sources[0], dtypes[0], at)), loop.index)
    half = sorter.run()
    for source, target, dtype in zip(sources[1:], targets[1:], dtypes[1:], strict=True):
        with b.loop(0, lines.length) as loop:
            number = b.load("i64", element(b, sorter.numbers[half], I64, loop.index), 8)
            value = memory.load(b, dtype, element(b, source, dtype, b.add(start, b.mul(number, lines.inner))))
            memory.store(b, value, element(b, target, dtype, b.add(start, b.mul(loop.index, lines.inner))))
    with b.loop(0, lines.length) as loop:
        key = sorter.key(half, loop.index)
        memory.store(b, key, element(b, targets[0], dtypes[0], b.add(start, b.mul(loop.index, lines.inner))))


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


