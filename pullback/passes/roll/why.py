"""Why a long Python loop is still there turn by turn: a note on the first op of it."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from pullback.ir.graph import Op, Region
from pullback.ir.types import I64
from pullback.passes.base import Rebuild
from pullback.passes.roll.match import TURNS, Integers, Matcher
from pullback.passes.roll.runs import Run, runs
from pullback.passes.roll.track import Numbers, Signatures, Track, has_guard

MANY_OF_A_LINE = 100
"""Ops of one source line that must come from a loop."""


def with_notes(region: Region) -> Region:
    """The region with `not rolled: ...` at the source line of the first op of each loop that was not rolled."""
    track = Track(region)
    if len(track.ops) < TURNS:
        return region
    notes = {track.ops[run.start]: f"not rolled: {reason}" for run, reason in _reasons(track)}
    notes = notes or _uneven(track.ops)
    if not notes:
        return region
    new = Rebuild()
    for op in region.ops:
        current = new.current(op)
        if op in notes and op.loc is not None:
            types = tuple([r.type for r in op.results])
            loc = op.loc.with_note(notes[op])
            current = Op(current.opdef, current.operands, current.attrs, types, current.regions, loc)
        new.keep(op, current)
    return new.region(region)


def _uneven(ops: Sequence[Op]) -> dict[Op, str]:
    """A note on the line that most ops are of, where no stretch of lines repeats: loops in loops of other lengths."""
    lines = Counter([op.loc for op in ops if op.loc is not None])
    line, count = lines.most_common(1)[0] if lines else (None, 0)
    if line is None or count < MANY_OF_A_LINE:
        return {}
    first = next(op for op in ops if op.loc == line)
    reason = f"{count} ops of line {line.line}, but no stretch of lines repeats: the turns of a loop around it differ"
    return {first: f"not rolled: {reason} in how often a loop inside runs, or in their decisions"}


def _reasons(track: Track) -> Iterator[tuple[Run, str]]:
    """Repetitions of source lines, and what keeps each from being a loop."""
    number, signatures = Numbers(), Signatures()
    lines = np.fromiter([number((op.opdef.name, op.loc)) for op in track.ops], I64, len(track.ops))
    kinds = np.fromiter([signatures.op(op, k) for k, op in enumerate(track.ops)], I64, len(track.ops))
    matcher = Matcher(track, signatures)
    explained = np.zeros(len(track.ops), np.bool_)
    for run in runs(lines, TURNS):
        if not matcher.is_worth(run) or explained[run.start : run.stop].any():
            continue
        reason = _reason(track.ops, run, signatures) or _misfit(track.ops, run, kinds, matcher)
        if reason is not None:
            explained[run.start : run.stop] = True
            yield run, reason


def _misfit(ops: Sequence[Op], run: Run, kinds: Integers, matcher: Matcher) -> str | None:
    turns = kinds[run.start : run.stop].reshape(run.turns, run.period)
    if (turns != turns[0]).any():
        return "some turns do something else than others"
    found = matcher.misfit(run)
    return None if found is None else f"{found[1]}{_at(ops[run.start + found[0]])}"


def _reason(ops: Sequence[Op], run: Run, signatures: Signatures) -> str | None:
    """What differs between two turns in the middle of a repetition of source lines."""
    begin = run.start + (run.turns // 2) * run.period
    for op, before in zip(ops[begin : begin + run.period], ops[begin - run.period : begin], strict=True):
        if has_guard(op):
            return f"Python decides on a value in each turn{_at(op)}"
        for x, y in zip(before.operands, op.operands, strict=False):
            if x.type != y.type:
                return f"{op.opdef.name} takes {x.type} in one turn and {y.type} in the next{_at(op)}"
        if len(op.operands) != len(before.operands):
            return f"{op.opdef.name} takes more operands in one turn than in the next{_at(op)}"
        if op.opdef.name != "update" and signatures.op(op, 0) != signatures.op(before, 0):
            return f"{op.opdef.name} {_difference(before, op)}{_at(op)}"
    return None


def _difference(before: Op, op: Op) -> str:
    for key in op.attrs:
        if op.attrs[key] != before.attrs.get(key) and op.opdef.name != "constant":
            return f"has {key} {before.attrs.get(key)} in one turn and {op.attrs[key]} in the next"
    return "does something else from turn to turn"


def _at(op: Op) -> str:
    return f" (line {op.loc.line})" if op.loc is not None else ""
