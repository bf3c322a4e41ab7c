"""The loops of a nest, as LLVM code: ranges, segments, vector turns and tails, accumulators carried round.

The body itself is `body.BodyEmitter`; this module decides how often and at which indices it is emitted.

States of accumulators travel as `States`: store number -> one long state for each copy of the vector turn (one copy
outside of the vector loop). In the innermost loop short states take their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback.codegen.body import BodyEmitter, Index
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.reduce import SHORT_RUN, Long, State
from pullback.record import record

States = dict[int, list[Long | None]]
Shorts = dict[int, list[State]]

LONG_RUN = 24
"""More turns than this are cut into short runs, where something is summed."""

RARE = 16
"""Pieces of a level that are a fraction of it below one in so many get short code: one vector a turn."""


@record(frozen=True)
class Turns:
    """Indices `lo, lo + step, ...` below `hi`.

    single : the index, where it is known and the only one
    lanes, copies : width of a vector turn
    end : where lanes cease to take part, if that is within a vector
    """

    lo: Index
    hi: Index
    step: int
    single: int | None
    lanes: int = 1
    copies: int = 1
    end: Index | None = None

    @property
    def count(self) -> int | None:
        """How many, where it is known."""
        if isinstance(self.lo, int) and isinstance(self.hi, int):
            return -(-(self.hi - self.lo) // self.step)
        return None


class LoopEmitter:
    """Emits the loops of one nest. Use: `run()`, once.

    part : a level and the range that it is restricted to, for a share of the work
    """

    def __init__(self, body: BodyEmitter, part: tuple[int, V, V] | None = None) -> None:
        self.body = body
        self.part = part
        self.b = body.b
        self.nest = body.nest
        self.last = self.nest.depth - 1
        self._rarely = False

    def run(self) -> None:
        """Emit everything."""
        body = self.body
        with body.scope():
            body.define(0)
            states = self._open(0)
            if self.nest.depth == 0:
                self._leaf({})
            else:
                states = self._level(0, states)
            self._close(0, states)

    # ---------------------------------------------------------------- levels

    def _level(self, level: int, states: States) -> States:
        """All of a level, segment by segment."""
        body = self.body
        lo: Index = 0
        hi: Index = self.nest.sizes[level]
        if self.part is not None and self.part[0] == level:
            _, lo, hi = self.part
        rarely = self._rarely
        for start, stop in body.segments(level):
            first, end = _clip(self.b, lo, hi, start, stop, self.nest.sizes[level])
            self._rarely = rarely or (stop - start) * RARE < self.nest.sizes[level]
            body.ranges[level] = (start, stop)
            if level == self.last:
                states = self._innermost(first, end, states)
            elif level == self.nest.vector:
                states = self._vector_level(level, first, end, states)
            else:
                states = self._plain_level(level, first, end, states)
        body.ranges[level] = (0, self.nest.sizes[level])
        self._rarely = rarely
        return states

    def _plain_level(self, level: int, lo: Index, hi: Index, states: States) -> States:
        if isinstance(lo, int) and isinstance(hi, int) and hi - lo <= 1:
            return self._turn(level, lo, states) if hi > lo else states
        with self.b.loop(lo, hi, carry=self._carried(states)) as loop:
            inner = self._turn(level, loop.index, self._uncarried(loop.carry, states))
            loop.turn(*self._carried(inner))
        return self._uncarried(loop.results, states)

    def _turn(self, level: int, index: Index, states: States) -> States:
        """One index of a level that is not the innermost."""
        body = self.body
        with body.scope():
            body.enter(level, index)
            opened = self._open(level + 1)
            inner = self._level(level + 1, {**states, **opened})
            self._close(level + 1, {k: inner[k] for k in opened})
        return {k: inner[k] for k in states}

    def _vector_level(self, level: int, lo: Index, hi: Index, states: States) -> States:
        """A vector level around further loops."""
        for turns in self._vector_turns(lo, hi, self._needs_full_width(level)):
            self._enter_turns(turns)
            outer = {k: self._spread(long) for k, long in states.items()}
            outer = self._over(turns, outer, lambda index, inner: self._turn(level, index, inner))
            states = {k: [self._merged_long(k, copies)] for k, copies in outer.items()}
            self._leave_turns()
        return states

    def _over(self, turns: Turns, states: States, turn: Callable[[Index, States], States]) -> States:
        if turns.single is not None:
            return turn(turns.single, states)
        with self.b.loop(turns.lo, turns.hi, turns.step, carry=self._carried(states)) as loop:
            inner = turn(loop.index, self._uncarried(loop.carry, states))
            loop.turn(*self._carried(inner))
        return self._uncarried(loop.results, states)

    # ---------------------------------------------------------------- the innermost level

    def _innermost(self, lo: Index, hi: Index, states: States) -> States:
        level = self.last
        if level != self.nest.vector:
            return self._scalar_innermost(lo, hi, states)
        for turns in self._vector_turns(lo, hi, self._needs_full_width(level)):
            self._enter_turns(turns)
            states = self._runs(turns, states, self.body.copies)
            self._leave_turns()
        return states

    def _scalar_innermost(self, lo: Index, hi: Index, states: States) -> States:
        level = self.last
        if level in self.nest.unrolled and isinstance(lo, int) and isinstance(hi, int):
            shorts = self._fresh_shorts(states, self.body.copies)
            for index in range(lo, hi):
                shorts = self._body_turn(index, shorts)
            return self._absorbed(states, shorts)
        single = lo if isinstance(lo, int) and isinstance(hi, int) and hi - lo == 1 else None
        return self._runs(Turns(lo, hi, 1, single), states, self.body.copies)

    def _runs(self, turns: Turns, states: States, copies: int) -> States:
        """Turns of the innermost loop: in one run, or in several short ones."""
        short = turns.count is not None and turns.count <= LONG_RUN
        if short or not self._compensates(states):
            return self._absorbed(states, self._run(turns, self._fresh_shorts(states, copies)))
        block = turns.step * SHORT_RUN
        with self.b.loop(turns.lo, turns.hi, block, carry=self._carried(states)) as loop:
            outer = self._uncarried(loop.carry, states)
            end = _smaller(self.b, self.b.add(_value(loop.index), block), turns.hi)
            shorts = self._run(Turns(loop.index, end, turns.step, None), self._fresh_shorts(states, copies))
            loop.turn(*self._carried(self._absorbed(outer, shorts)))
        return self._uncarried(loop.results, states)

    def _run(self, turns: Turns, shorts: Shorts) -> Shorts:
        if turns.single is not None:
            return self._body_turn(turns.single, shorts)
        flat = [part for k in shorts for state in shorts[k] for part in state]
        with self.b.loop(turns.lo, turns.hi, turns.step, carry=flat) as loop:
            inner = self._body_turn(loop.index, _unflattened(loop.carry, shorts))
            loop.turn(*[part for k in inner for state in inner[k] for part in state])
        return _unflattened(loop.results, shorts)

    def _body_turn(self, index: Index, shorts: Shorts) -> Shorts:
        with self.body.scope():
            self.body.enter(self.last, index)
            return self._leaf(shorts)

    def _leaf(self, shorts: Shorts) -> Shorts:
        return self.body.leaf(shorts)

    # ---------------------------------------------------------------- vector turns

    def _needs_full_width(self, level: int) -> bool:
        """Are lanes summed across turns, so that a narrow tail would not fit."""
        return any(self.nest.register_level(store) <= level for store in self.nest.stores)

    def _vector_turns(self, lo: Index, hi: Index, full_width: bool) -> list[Turns]:
        """The turns that cover a range: several vectors at once, single vectors, a part of a vector."""
        lanes, copies = self.nest.lanes, 1 if self._rarely else self.nest.copies
        if isinstance(lo, int) and isinstance(hi, int):
            return _static_turns(lo, hi, lanes, copies, full_width)
        return self._dynamic_turns(_value(lo), _value(hi), lanes, copies)

    def _dynamic_turns(self, lo: V, hi: V, lanes: int, copies: int) -> list[Turns]:
        b = self.b
        step = lanes * copies
        main = b.add(lo, b.and_(b.sub(hi, lo), -step))
        turns = [Turns(lo, main, step, None, lanes, copies)]
        if self.body.ragged:
            turns.append(Turns(main, hi, lanes, None, lanes, 1, hi))
        return turns

    def _enter_turns(self, turns: Turns) -> None:
        self.body.begin_vectors(turns.lanes, turns.copies, turns.end)

    def _leave_turns(self) -> None:
        self.body.end_vectors()

    # ---------------------------------------------------------------- states

    def _open(self, level: int) -> States:
        """Empty states of the stores whose reduced loops begin at `level`."""
        return {
            k: [None] * self.body.copies
            for k, store in enumerate(self.nest.stores)
            if self.nest.register_level(store) == level and level < self.nest.depth
        }

    def _close(self, level: int, states: States) -> None:
        for k, copies in states.items():
            across = self.nest.vector >= level
            for copy, long in enumerate(copies):
                lanes = self.body.state_lanes(k)
                value = self.body.reducers[k].close(self.body.s, long, lanes, across)
                self.body.write(k, value, copy)

    def _compensates(self, states: States) -> bool:
        return any(self.body.reducers[k].compensates for k in states)

    def _fresh_shorts(self, states: States, copies: int) -> Shorts:
        return {k: [self.body.reducers[k].identity(self.body.state_lanes(k))] * copies for k in states}

    def _absorbed(self, states: States, shorts: Shorts) -> States:
        """The long states with the short ones added; copies of a vector loop that is done with are merged first."""
        result: States = {}
        for k, longs in states.items():
            reducer, copies = self.body.reducers[k], shorts[k]
            if len(longs) == 1 and len(copies) > 1:
                copies = [reducer.merge_all(self.body.s, copies)]
            result[k] = [reducer.add_long(self.body.s, x, y) for x, y in zip(longs, copies, strict=True)]
        return result

    def _spread(self, long: Sequence[Long | None]) -> list[Long | None]:
        return [*long, *[None] * (self.body.copies - len(long))]

    def _merged_long(self, k: int, copies: Sequence[Long | None]) -> Long | None:
        total = copies[0]
        for other in copies[1:]:
            total = self.body.reducers[k].merge_long(self.body.s, total, other)
        return total

    def _carried(self, states: States) -> list[V]:
        return [
            part
            for k, longs in states.items()
            for long in longs
            for part in self.body.reducers[k].carried(long, self.body.state_lanes(k))
        ]

    def _uncarried(self, parts: Sequence[V], like: States) -> States:
        result: States = {}
        at = 0
        for k, longs in like.items():
            reducer = self.body.reducers[k]
            width = reducer.carried_width()
            ends = range(at, at + width * len(longs), width)
            result[k] = [reducer.uncarried(tuple(parts[i : i + width])) for i in ends]
            at += width * len(longs)
        return result


def _static_turns(lo: int, hi: int, lanes: int, copies: int, full_width: bool) -> list[Turns]:
    turns = []
    step = lanes * copies
    at = lo + (hi - lo) // step * step
    if at > lo:
        turns.append(Turns(lo, at, step, lo if at - lo == step else None, lanes, copies))
    rest = hi - at
    if rest > lanes:
        turns.append(Turns(at, hi, lanes, None, lanes, 1, None if rest % lanes == 0 else hi))
    elif rest:
        while not full_width and lanes // 2 >= rest:
            lanes //= 2
        turns.append(Turns(at, hi, lanes, at, lanes, 1, hi if rest < lanes else None))
    return turns


def _unflattened(parts: Sequence[V], like: Shorts) -> Shorts:
    rest = iter(parts)
    return {k: [tuple([next(rest) for _ in state]) for state in states] for k, states in like.items()}


def _value(index: Index) -> V:
    return index if isinstance(index, V) else const("i64", index)


def _smaller(b: FunctionBuilder, x: V, y: Index) -> V:
    return b.intrinsic("smin", x, y)


def _clip(b: FunctionBuilder, lo: Index, hi: Index, start: int, stop: int, size: int) -> tuple[Index, Index]:
    """The part of `lo`..`hi` in the segment; the end is never before the beginning."""
    if isinstance(lo, int) and isinstance(hi, int):
        return max(lo, start), max(lo, start, min(hi, stop))
    if start == 0 and stop == size:
        return lo, hi
    first = b.intrinsic("smax", _value(lo), start)
    return first, b.intrinsic("smax", b.intrinsic("smin", _value(hi), stop), first)
