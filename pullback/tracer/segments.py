"""Parts of a trace that are checkpoints: their ops become the region of a `checkpoint` op when the trace ends.

Only then is it known which of their values are read behind them: beside what the checkpointed function returned, what
it wrote to arrays from outside, and what was remembered. Decisions and conditions stay outside of the region.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs, Function, Op, Value
from pullback.ir.ops import OPS


class Segment(NamedTuple):
    """Ops number `start` to `stop` (without it) of a trace. Segments lie within one another, or apart."""

    start: int
    stop: int


def with_checkpoints(function: Function, segments: Sequence[Segment]) -> tuple[Function, Mapping[Value, Value]]:
    """The function with the segments as checkpoints, and what its values have become outside of them."""
    ops, results = function.ops, function.results
    last = {v: k for k, op in enumerate(ops) for v in op.operands}
    last.update(dict.fromkeys(results, len(ops)))
    level = _Level(ops, last)
    for param in function.params:
        level.env[param] = level.b.param(param.type, param.hint)
    inner = sorted((s for s in segments if s.start < s.stop), key=lambda s: (s.start, -s.stop))
    level.emit(Segment(0, len(ops)), inner)
    made = level.b.function(function.name, [level.value(r) for r in results], function.stage, function.source)
    return made, level.env


def _is_plain(op: Op) -> bool:
    """Made from nothing: written out again wherever it is read."""
    return op.name in ("constant", "iota")


class _Level:
    """The ops outside of all segments, or those of one.

    last : for each value of the trace, the number of the last op that reads it
    """

    def __init__(self, ops: Sequence[Op], last: Mapping[Value, int]) -> None:
        self.ops = ops
        self.last = last
        self.b = Builder()
        self.env: dict[Value, Value] = {}

    def value(self, old: Value) -> Value:
        if old not in self.env and old.op is not None:
            self.env[old] = self.b.copy(old.op, ()).results[0]
        return self.env[old]

    def emit(self, part: Segment, inner: Sequence[Segment], effects: bool = True) -> None:
        """The ops of `part`, those of the segments within it as checkpoints."""
        at, rest = part.start, list(inner)
        while at < part.stop:
            if rest and rest[0].start == at:
                first = rest.pop(0)
                within = [s for s in rest if s.stop <= first.stop]
                rest = rest[len(within) :]
                self._checkpoint(first, within, effects)
                at = first.stop
                continue
            op = self.ops[at]
            at += 1
            if not _is_plain(op) and (effects or not op.opdef.effect):
                new = self.b.copy(op, [self.value(v) for v in op.operands])
                self.env.update(zip(op.results, new.results, strict=True))

    def _checkpoint(self, part: Segment, inner: Sequence[Segment], effects: bool) -> None:
        own = self.ops[part.start : part.stop]
        made = {r for op in own for r in op.results}
        read = [v for v in dict.fromkeys(v for op in own for v in op.operands) if v not in made and not _made_plain(v)]
        asked = {v for op in own if op.opdef.effect for v in op.operands}
        given = [
            r
            for op in own
            for r in op.results
            if not _is_plain(op) and (r in asked or self.last.get(r, -1) >= part.stop)
        ]
        level = _Level(self.ops, self.last)
        level.env = {v: level.b.param(v.type, v.hint) for v in read}
        level.emit(part, inner, effects=False)
        region = level.b.region([level.value(v) for v in given])
        op = self.b.add(OPS["checkpoint"], [self.value(v) for v in read], Attrs(again=False), (region,), own[0].loc)
        self.env.update(zip(given, op.results, strict=True))
        for effect in own if effects else ():
            if effect.opdef.effect:
                self.b.copy(effect, [self.value(v) for v in effect.operands])


def _made_plain(value: Value) -> bool:
    return value.op is not None and _is_plain(value.op)
