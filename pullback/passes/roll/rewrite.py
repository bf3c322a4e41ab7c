"""A region with loops in the place of their turns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pullback.ir.emit import Expr
from pullback.ir.graph import Region, Value
from pullback.passes.roll.arrays import Written, written_outside
from pullback.passes.roll.body import LoopBody, Result
from pullback.passes.roll.loop import Match
from pullback.passes.roll.scope import Scope
from pullback.passes.roll.track import Operand, Track

PIECES = 4
"""Rows of a loop that are read one after the other, from which on they are read as one."""


class Rewrite:
    """Emits the row of ops of a track anew, with each match as a loop."""

    def __init__(self, track: Track, matches: Sequence[Match]) -> None:
        self.track = track
        self.scope = Scope(track)
        self.matches = {match.start: match for match in matches}
        self.within: dict[int, Match] = {}
        for match in matches:
            self.within.update(dict.fromkeys(range(match.start, match.stop), match))
        self.used: dict[int, dict[Result, set[int]]] = {match.start: {} for match in matches}
        self.rows: dict[tuple[int, Result], Value] = {}
        for value in self._read_outside():
            self._note_use(value)

    def region(self) -> Region:
        position = 0
        while position < len(self.track.ops):
            match = self.matches.get(position)
            if match is None:
                self._emit(position)
                position += 1
            else:
                self._emit_loop(match)
                position = match.stop
        self.scope.b.loc = None
        results = [self.value(v) for v in self.track.region.results]
        return Region(self.track.region.params, tuple(self.scope.b.ops), tuple(results))

    # -------------------------------------------------------------- what is read of a loop

    def _read_outside(self) -> Iterator[Value]:
        """Values that ops outside of loops, or loops as a whole, may read."""
        for position, operands in enumerate(self.track.operands):
            if position not in self.within:
                yield from [operand.base for operand in operands]
        for match in self.matches.values():
            for offset, slots in enumerate(match.slots):
                for k, slot in enumerate(slots):
                    if slot.kind == "same":
                        yield match.last(offset, k).base
                    for turn in range(slot.delay):
                        yield match.operand(turn, offset, k).base
        yield from [self.track.operand(v).base for v in self.track.region.results]

    def _note_use(self, value: Value) -> None:
        place = self._place(value)
        if place is not None:
            match, turn, result = place
            self.used[match.start].setdefault(result, set()).add(turn)

    def _place(self, value: Value) -> tuple[Match, int, Result] | None:
        """The loop that computes a value, the turn, and which result of the body it is."""
        place = self.track.places.get(value)
        match = self.within.get(place.position) if place is not None else None
        if match is None or place is None:
            return None
        turn, offset = divmod(place.position - match.start, match.period)
        return match, turn, (offset, place.number)

    # -------------------------------------------------------------- values

    def value(self, old: Value) -> Value:
        return self.operand(self.track.operand(old))

    def operand(self, operand: Operand) -> Value:
        return self.scope.views(self._base(operand.base), operand.views)

    def _base(self, old: Value) -> Value:
        env = self.scope.env
        if old in env:
            return env[old]
        if old in self.track.fixed:
            return self.scope.fixed(old)
        place = self._place(old)
        if place is None:
            return old  # a parameter
        match, turn, result = place
        f = self.scope.f
        row = self._turns(match, result, turn, turn + 1)
        env[old] = f.reshape_to(row, old.type.shape).value
        return env[old]

    def _turns(self, match: Match, result: Result, start: int, stop: int) -> Expr:
        """The rows of some turns of what a loop has stacked."""
        x = self.scope.f.wrap(self.rows[match.start, result])
        low, high, step = (start,) + (0,) * (x.ndim - 1), (stop, *x.shape[1:]), (1,) * x.ndim
        return x if high == x.shape and start == 0 else self.scope.f.op("slice", x, start=low, stop=high, step=step)

    # -------------------------------------------------------------- ops

    def _emit(self, position: int) -> None:
        op, operands = self.track.ops[position], self.track.operands[position]
        self.scope.b.loc = op.loc
        if op.opdef.name == "concatenate" and len(operands) >= PIECES:
            self.scope.env[op.results[0]] = self._side_by_side(operands, op.attrs["axis"]).value
        else:
            new = self.scope.b.copy(op, [self.operand(o) for o in operands])
            self.scope.env.update(zip(op.results, new.results, strict=True))

    def _emit_loop(self, match: Match) -> None:
        used = self.used[match.start]
        written = written_outside(match, used)
        body = LoopBody(match, self.scope, self._base, written)
        finals = {w.updates[-1] for w in written}
        wanted = {result: turns for result, turns in used.items() if result not in {(u, 0) for u in finals}}
        lasts = {result: self._from_carries(body, match, result, turns) for result, turns in wanted.items()}
        has_carries = bool(body.carries)
        for result, turns in wanted.items():
            if lasts[result] is None and turns == {match.turns - 1} and has_carries:
                lasts[result] = {match.turns - 1: body.add_last(body.values[result])}
        numbers = {r: body.stack(body.values[r]) for r in wanted if lasts[r] is None}
        # What each turn writes to another place is stacked; of what all write to the same, the last counts.
        writes = {u: body.stack(v) if u in match.writes else body.add_last(v) for u, v in body.news.items()}
        loc = match.op(0).loc
        ends, rows = body.finish(loc.with_note(f"rolled: {match.turns} turns") if loc is not None else None)
        for result, found in lasts.items():
            for turn, number in (found or {}).items():
                self.scope.env[match.result(turn, *result)] = ends[number]
        self.rows.update({(match.start, result): rows[number] for result, number in numbers.items()})
        given = {u: rows[number] if u in match.writes else ends[number] for u, number in writes.items()}
        self._write(match, written, given)

    def _from_carries(self, body: LoopBody, match: Match, result: Result, turns: set[int]) -> dict[int, int] | None:
        """For each wanted turn the carry that ends as its value, if all of them have one."""
        found = {}
        for turn in turns:
            number = body.last(result, match.turns - 1 - turn)
            if number is None:
                return None
            found[turn] = number
        return found

    def _write(self, match: Match, written: Sequence[Written], given: Mapping[int, Value]) -> None:
        """Write behind the loop what its turns would have written."""
        f = self.scope.f
        for array in written:
            x = f.wrap(self._base(array.first))
            for update in array.updates:
                op = match.op(update)
                self.scope.b.loc = op.loc
                new = f.wrap(given[update])
                move = match.writes.get(update)
                x = f.op("update", x, new, **op.attrs) if move is None else move.write_all(f, x, new)
            self.scope.env[match.result(match.turns - 1, array.updates[-1], 0)] = x.value

    # -------------------------------------------------------------- rows side by side

    def _side_by_side(self, operands: Sequence[Operand], axis: int) -> Expr:
        """A concatenation; rows that a loop has stacked are taken from there in one piece."""
        f, pieces, at = self.scope.f, list[Expr](), 0
        while at < len(operands):
            turns = self._turns_in_a_row(operands, at)
            if len(turns) >= PIECES:
                pieces.append(self._block(operands[at], turns, axis))
            else:
                pieces += [f.wrap(self.operand(o)) for o in operands[at : at + len(turns)]]
            at += len(turns)
        return pieces[0] if len(pieces) == 1 else f.op("concatenate", *pieces, axis=axis)

    def _turns_in_a_row(self, operands: Sequence[Operand], at: int) -> range:
        """The turns whose rows the operands from `at` on are, up or down, all through like views."""
        first = self._place(operands[at].base)
        if first is None or (first[0].start, first[2]) not in self.rows:
            return range(1)
        match, turn, result = first
        views = _views_key(operands[at])
        way, count = 1, 1
        for operand in operands[at + 1 :]:
            place = self._place(operand.base)
            if place is None or place[0] is not match or place[2] != result or _views_key(operand) != views:
                break
            if count == 1 and place[1] == turn - 1:
                way = -1
            if place[1] != turn + way * count:
                break
            count += 1
        return range(turn, turn + way * count, way)

    def _block(self, operand: Operand, turns: range, axis: int) -> Expr:
        """The rows of several turns, each through the views of `operand`, one after the other along `axis`."""
        place = self._place(operand.base)
        assert place is not None
        f = self.scope.f
        x = self._turns(place[0], place[2], min(turns), max(turns) + 1)
        if turns.step < 0:
            x = f.op("reverse", x, axes=(0,))
        for view in operand.views:
            (x,) = view.opdef.batch(f, view, [x], [True])
        x = f.permute(x, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
        return f.reshape_to(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def _views_key(operand: Operand) -> tuple[Any, ...]:
    return tuple([(view.opdef.name, view.attrs.key()) for view in operand.views])
