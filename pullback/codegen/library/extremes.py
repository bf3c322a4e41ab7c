"""argmax and argmin: the index of the first extremum, where the first NaN counts as extreme."""

from __future__ import annotations

from pullback.codegen import memory
from pullback.codegen.casts import cast_lane
from pullback.codegen.lane import F16, Lane
from pullback.codegen.llvm import FunctionBuilder, V, const, vector_type
from pullback.codegen.program import Frame, Program
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import Lines, element, lanes_for, lines_of, vector_loop
from pullback.ir.graph import Op
from pullback.ir.types import F32, I64, DType


def lower_arg_extreme(frame: Frame, op: Op) -> None:
    """`argmax` and `argmin` along an axis."""
    (x,), (out,) = op.operands, op.results
    lines = lines_of(x.type.shape, op.attrs["axis"])
    if out.type.size == 0:
        return
    predicate = "greater" if op.name == "argmax" else "less"

    def emit(program: Program, b: FunctionBuilder) -> None:
        finder = _Finder(program, b, lines, x.type.dtype, predicate)
        with b.loop(0, lines.outer) as loop:
            finder.contiguous(loop.index) if lines.inner == 1 else finder.rows(loop.index)

    frame.call((op.name, lines, x.type.dtype), op.name, [x], [out], emit)


class _Finder:
    """Best elements so far and their indices, in lanes."""

    def __init__(self, program: Program, b: FunctionBuilder, lines: Lines, dtype: DType, predicate: str) -> None:
        self.b = b
        self.s: Scalars = program.e.scalars(b)
        self.target = program.e.target
        self.lines = lines
        self.dtype = dtype
        self.predicate = predicate
        self.source, self.out = b.params

    def rows(self, outer: V) -> None:
        """Each lane follows a line of its own."""
        b, lines = self.b, self.lines
        start = b.mul(outer, lines.length * lines.inner)

        def strip(at: V, lanes: int, mask: int | None) -> None:
            place = b.add(start, at)
            best = self._load(place, lanes, mask)
            index = const(vector_type("i64", lanes), 0)
            with b.loop(1, lines.length, carry=(best.re, index)) as loop:
                new = self._load(b.add(place, b.mul(loop.index, lines.inner)), lanes, mask)
                here = memory.splat_value(b, loop.index, lanes)
                loop.turn(*self._better(Lane(best.dtype, loop.carry[0]), loop.carry[1], new, here))
            found = Lane(I64, loop.results[1])
            memory.store(b, found, element(b, self.out, I64, b.add(b.mul(outer, lines.inner), at)), 1, mask)

        vector_loop(b, lines.inner, lanes_for(self.target, self.dtype, lines.inner), strip)

    def contiguous(self, outer: V) -> None:
        """Lanes share one line, and are compared at the end."""
        b, length = self.b, self.lines.length
        lanes = lanes_for(self.target, self.dtype, length)
        lanes = lanes // 2 if lanes > length else lanes
        start = b.mul(outer, length)
        best, index = self._load(start, lanes, None), memory.lane_numbers(lanes)
        whole = length // lanes * lanes
        with b.loop(lanes, whole, lanes, carry=(best.re, index)) as loop:
            here = b.add(memory.splat_value(b, loop.index, lanes), memory.lane_numbers(lanes))
            new = self._load(b.add(start, loop.index), lanes, None)
            loop.turn(*self._better(Lane(best.dtype, loop.carry[0]), loop.carry[1], new, here))
        value, place = self._across(Lane(best.dtype, loop.results[0]), loop.results[1], lanes)
        with b.loop(whole, length, carry=(value.re, place)) as rest:
            new = self._load(b.add(start, rest.index), 1, None)
            rest.turn(*self._better(Lane(best.dtype, rest.carry[0]), rest.carry[1], new, rest.index))
        memory.store(b, Lane(I64, rest.results[1]), element(b, self.out, I64, outer))

    def _load(self, at: V, lanes: int, mask: int | None) -> Lane:
        lane = memory.load(self.b, self.dtype, element(self.b, self.source, self.dtype, at), 1, lanes, mask)
        return cast_lane(self.b, lane, F32) if self.dtype == F16 else lane

    def _is_better(self, best: Lane, new: Lane) -> V:
        better = self.s.compare(self.predicate, new, best).re
        if best.dtype.kind != "f":
            return better
        b = self.b
        first_nan = b.and_(b.fcmp("uno", new.re, new.re), b.fcmp("ord", best.re, best.re))
        return b.or_(better, first_nan)

    def _better(self, best: Lane, index: V, new: Lane, here: V) -> tuple[V, V]:
        wins = self._is_better(best, new)
        return self.b.select(wins, new.re, best.re), self.b.select(wins, here, index)

    def _across(self, best: Lane, index: V, lanes: int) -> tuple[Lane, V]:
        """The best of all lanes; of equal ones the first in the line."""
        b = self.b
        if lanes == 1:
            return best, index
        value, place = Lane(best.dtype, b.extract(best.re, 0)), b.extract(index, 0)
        for lane in range(1, lanes):
            new, here = Lane(best.dtype, b.extract(best.re, lane)), b.extract(index, lane)
            earlier = b.and_(self._not_worse(value, new), b.icmp("slt", here, place))
            wins = b.or_(self._is_better(value, new), earlier)
            value, place = Lane(best.dtype, b.select(wins, new.re, value.re)), b.select(wins, here, place)
        return value, place

    def _not_worse(self, best: Lane, new: Lane) -> V:
        """Equal, or both NaN."""
        return self.b.not_(self._is_better(new, best))
