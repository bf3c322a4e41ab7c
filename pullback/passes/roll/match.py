"""Which repetitions are loops: each operand of the body is had in the same way in every turn."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.ir.graph import Op, Value
from pullback.ir.types import I64
from pullback.passes.roll.loop import Match, Slot
from pullback.passes.roll.moving import Moving, moving
from pullback.passes.roll.runs import Run
from pullback.passes.roll.track import Numbers, Operand, Signatures, Start, Track, is_tape, starts_of, weight

Integers = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

TURNS = 16
"""Fewer turns stay as they are: straight code is faster."""
WORTH = 64
"""Ops that rolling must do away with."""
MOST_DELAY = 8
"""Turns that a value may wait until it is read."""
LARGEST_TABLE = 1 << 17
"""Elements of the constants of all turns together."""
LARGEST_STACK = 1 << 22
"""Elements of the arguments, one for each turn, that are stacked for a loop."""


class _MisfitError(Exception):
    """Why a stretch is no loop, and the turn from which on another may be."""

    def __init__(self, turn: int, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.turn = turn
        self.offset = offset
        self.reason = reason


class Matcher:
    """Answers for one row of ops, which it looks at once."""

    __slots__ = (
        "_chains", "_codes", "_first", "_fixed", "_outside", "_owners", "_sliced", "_starts", "_track", "_weights",
        "_width",
    )  # fmt: skip

    def __init__(self, track: Track, signatures: Signatures) -> None:
        self._track = track
        counts = [len(operands) for operands in track.operands]
        self._weights: Integers = np.concatenate(([0], np.cumsum([weight(op) for op in track.ops], dtype=I64)))
        self._first: Integers = np.concatenate(([0], np.cumsum(counts, dtype=I64)))
        self._width = 1 + max((len(op.results) for op in track.ops), default=0)
        self._outside: dict[Value, int] = {}
        flat = [operand for operands in track.operands for operand in operands]
        self._codes: Integers = np.fromiter([self._code(o.base) for o in flat], I64, len(flat))
        self._chains: Integers = np.fromiter([signatures.views(o) for o in flat], I64, len(flat))
        self._fixed: Flags = np.fromiter([o.base in track.fixed for o in flat], np.bool_, len(flat))
        self._owners: Integers = np.repeat(np.arange(len(counts)), counts)
        self._starts = [starts_of(o) for o in flat]
        self._sliced: Flags = np.fromiter([bool(s) for s in self._starts], np.bool_, len(flat))

    def _code(self, value: Value) -> int:
        """A number for each value: those of the row in order, those from outside below zero."""
        place = self._track.places.get(value)
        if place is None:
            return -1 - self._outside.setdefault(value, len(self._outside))
        return place.position * self._width + place.number

    def finer(self, row: Integers) -> list[Integers]:
        """Rows that tell more ops apart than `row` does: by the ways to their operands, by where they read and write,
        and by how far that is from where the op before of the same number does."""
        first = self._first.tolist()
        away = np.where(self._codes >= 0, self._owners - self._codes // self._width, 0)
        ways = list(zip(away.tolist(), self._chains.tolist(), strict=True))
        numbers = [Numbers(), Numbers(), Numbers()]
        found: list[list[int]] = [[], [], []]
        last: dict[int, tuple[int, ...]] = {}
        for op, kind, a, b in zip(self._track.ops, row.tolist(), first[:-1], first[1:], strict=True):
            starts = [n for slot in self._starts[a:b] for start in slot for n in start]
            where = (*starts, *(op.attrs["start"] if op.opdef.name == "update" else ()))
            before = last.get(kind, ())
            last[kind] = where
            moved = tuple([x - y for x, y in zip(where, before, strict=False)])
            for line, number, what in zip(found, numbers, (tuple(ways[a:b]), where, moved), strict=True):
                line.append(number((kind, what)))
        return [np.array(line, I64) for line in found]

    def is_worth(self, run: Run) -> bool:
        """Whether a repetition is long enough, and rolling it does away with enough ops."""
        if run.turns < TURNS:
            return False
        return int(self._weights[run.stop] - self._weights[run.start + run.period]) >= WORTH

    def matches(self, run: Run, even: bool) -> Iterator[Match]:
        """The loops in a repetition, as long as they can be; with `even` those whose slices move by equal steps."""
        table = _Table(self, self._aligned(run))
        turn = 0
        while table.worth(turn, table.run.turns):
            try:
                stop, slots = table.stretch(turn)
                if table.worth(turn, stop) and (table.even[turn] >= stop or not even):
                    yield table.match(turn, stop, slots)
                turn = stop
            except _MisfitError as misfit:
                turn = max(misfit.turn, turn + 1)

    def misfit(self, run: Run) -> tuple[int, str] | None:
        """Why the middle of a repetition is no loop, and at which op of its body."""
        table = _Table(self, self._aligned(run))
        turn = max(min(run.turns // 2, run.turns - TURNS), 0)
        try:
            stop, slots = table.stretch(turn)
            if table.worth(turn, stop):
                table.match(turn, stop, slots)
        except _MisfitError as misfit:
            return misfit.offset, misfit.reason
        return None

    def _aligned(self, run: Run) -> Run:
        """The run with turns that begin where fewest bytes are handed from one turn to the next."""
        first, period = run.start, run.period
        here = slice(self._first[first + period], self._first[first + 2 * period])
        before = slice(self._first[first], self._first[first + period])
        codes, owners, width = self._codes, self._owners, self._width
        distance = owners[here] - codes[here] // width
        steady = (codes[here] >= 0) & (codes[before] >= 0) & (distance == owners[before] - codes[before] // width)
        furthest: dict[tuple[int, int], int] = {}
        for code, owner in zip(codes[here][steady].tolist(), owners[here][steady].tolist(), strict=True):
            source = ((code // width - first) % period, code % width)
            furthest[source] = max(furthest.get(source, 0), owner - code // width)
        handed = np.zeros(2 * period + 1, I64)
        for (offset, number), reach in furthest.items():
            nbytes = self._track.ops[first + offset].results[number].type.nbytes + 1
            for turns_back in range(min(-(-reach // period), MOST_DELAY)):
                length = min(reach - turns_back * period, period)
                handed[offset + 1] += nbytes
                handed[offset + 1 + length] -= nbytes
        total = np.cumsum(handed)[:-1].reshape(2, period).sum(axis=0)
        shift = int(np.argmin(total))
        if shift == 0 or run.turns <= TURNS:
            return run
        return Run(first + shift, period, run.turns - 1)

    # -------------------------------------------------------------- what tables ask

    def columns(self, run: Run) -> tuple[Integers, Integers, Flags, Integers]:
        """Codes, view chains, constancy and ops of the operands of a run: a row for each turn."""
        part = slice(self._first[run.start], self._first[run.stop])
        shape = (run.turns, -1)
        codes, chains = self._codes[part].reshape(shape), self._chains[part].reshape(shape)
        return codes, chains, self._fixed[part].reshape(shape), self._owners[part].reshape(shape)

    def sliced(self, run: Run) -> Iterator[tuple[int, list[tuple[Start, ...]]]]:
        """The columns of operands read through slices, and where these begin in each turn."""
        begin, stop = int(self._first[run.start]), int(self._first[run.stop])
        flags = self._sliced[begin:stop].reshape(run.turns, -1)
        for column in np.flatnonzero(flags.any(axis=0)).tolist():
            yield column, self._starts[begin + column : stop : flags.shape[1]]

    @property
    def track(self) -> Track:
        return self._track

    @property
    def width(self) -> int:
        return self._width


class _Table:
    """The operands of a repetition, a row for each turn, and how far each goes on being had in one way."""

    def __init__(self, matcher: Matcher, run: Run) -> None:
        self.run, self.matcher, self.track, self.width = run, matcher, matcher.track, matcher.width
        self.codes, self.chains, fixed, owners = matcher.columns(run)
        self.back = np.where(self.codes >= 0, owners * self.width - self.codes, -1)
        alike = self.chains[1:] == self.chains[:-1]
        inside = (self.codes[1:] >= 0) & (self.codes[:-1] >= 0)
        self.same = _ends((self.codes[1:] == self.codes[:-1]) & alike)
        self.steady = _ends(inside & (self.back[1:] == self.back[:-1]) & alike)
        self.constant = _ends(fixed[1:] & fixed[:-1] & alike)
        self.slot_of = [(offset, k) for offset in range(run.period) for k in range(len(self._operands(0, offset)))]
        self._starts: dict[tuple[int, int], Integers] = {}
        self.even = self._evenness()

    def _operands(self, turn: int, offset: int) -> tuple[Operand, ...]:
        return self.track.operands[self.run.start + turn * self.run.period + offset]

    def worth(self, turn: int, stop: int) -> bool:
        start = self.run.start + turn * self.run.period
        return self.matcher.is_worth(Run(start, self.run.period, stop - turn))

    # -------------------------------------------------------------- how operands are had

    def stretch(self, turn: int) -> tuple[int, list[Slot]]:
        """The last turn, exclusive, up to which all operands go on as from `turn` on; and how they are had."""
        stop, slots = self.run.turns, []
        for column, (offset, k) in enumerate(self.slot_of):
            end, slot = self._slot(turn, column, offset)
            if slot is None:
                raise _MisfitError(end, offset, self._reason(turn, offset, k))
            stop = min(stop, end)
            slots.append(slot)
        even = int(self.even[turn])
        if even < stop and self.worth(turn, even):
            return even, slots
        if even < stop <= self.even[turn + 1] and self.worth(turn + 1, stop):
            raise _MisfitError(turn + 1, 0, "the first turn moves by another step")
        return stop, slots

    def _slot(self, turn: int, column: int, offset: int) -> tuple[int, Slot | None]:
        begin = (self.run.start + turn * self.run.period) * self.width
        best: tuple[int, Slot | None] = (turn + 1, None)
        if self.codes[turn, column] < begin:
            best = (int(self.same[turn, column]), Slot("same"))
        if int(self.constant[turn, column]) > best[0] and self._is_small(turn, column):
            best = (int(self.constant[turn, column]), Slot("table"))
        found = self._from_turns(turn, column, offset, begin)
        best = found if found[0] > best[0] else best
        return best if best[0] > turn + 1 else self._from_arguments(turn, column)

    def _from_turns(self, turn: int, column: int, offset: int, begin: int) -> tuple[int, Slot | None]:
        """An operand computed in the same turn, or in one before; the first turns of a carry read what came before."""
        later = min(turn + MOST_DELAY, self.run.turns - 1)
        back = int(self.back[later, column])
        if back < 0:
            return turn + 1, None
        position = (self.run.start + offset) * self.width - back
        ops_back = offset + self.run.start - position // self.width
        delay = max(-(-(ops_back - offset) // self.run.period), 0)
        if delay > MOST_DELAY or turn + delay >= self.run.turns:
            return turn + 1, None
        if not (self.codes[turn : turn + delay, column] < begin).all() or self.back[turn + delay, column] != back:
            return turn + 1, None
        where = offset - ops_back + delay * self.run.period
        number = position % self.width
        if delay == 0:
            return int(self.steady[turn, column]), Slot("inner", where, number)
        if is_tape(self.track.ops[self.run.start + where], number):
            return turn + 1, None
        viewed = bool((self.chains[turn : turn + delay, column] != self.chains[turn + delay, column]).any())
        return int(self.steady[turn + delay, column]), Slot("carry", where, number, delay, viewed)

    def _from_arguments(self, turn: int, column: int) -> tuple[int, Slot | None]:
        """An operand that is an argument of the function, such as the weights of layer number `turn`."""
        if self.codes[turn, column] >= 0:
            return turn + 1, None
        goes_on = (self.codes[turn:, column] < 0) & (self.chains[turn:, column] == self.chains[turn, column])
        stop = turn + (int(np.argmin(goes_on)) if not goes_on.all() else len(goes_on))
        offset, k = self.slot_of[column]
        size = self._operands(turn, offset)[k].base.type.size
        if stop <= turn + 1 or size * (stop - turn) > LARGEST_STACK:
            return turn + 1, None
        return stop, Slot("each")

    def _is_small(self, turn: int, column: int) -> bool:
        offset, k = self.slot_of[column]
        op, type = self._operands(turn, offset)[k].base.op, self._operands(turn, offset)[k].base.type
        repeated = op is not None and op.opdef.name == "broadcast"
        size = op.operands[0].type.size if op is not None and repeated else type.size
        return size * self.run.turns <= LARGEST_TABLE

    def _reason(self, turn: int, offset: int, slot: int) -> str:
        op = self.track.ops[self.run.start + offset]
        what = f"operand {slot + 1} of {op.opdef.name}"
        if self._operands(turn, offset)[slot].base in self.track.fixed:
            return f"{what} is another constant in each turn, and all of them together are large"
        return f"{what} is another value in each turn that no turn before has computed"

    # -------------------------------------------------------------- how slices move

    def _evenness(self) -> Integers:
        """For each turn, how long slices go on moving by the same steps."""
        run, turns = self.run, self.run.turns
        even = np.ones(turns, np.bool_)  # even[t]: turns t, t + 1 and t + 2 are evenly spaced
        for column, rows in self.matcher.sliced(run):
            self._note_starts(even[:-2], self.slot_of[column], rows, self.chains[:, column])
        for offset in range(run.period):
            if self.track.ops[run.start + offset].opdef.name == "update":
                ops = self.track.ops[run.start + offset : run.stop : run.period]
                self._note_starts(even[:-2], (offset, -1), [(op.attrs["start"],) for op in ops], np.zeros(turns, I64))
        ends: Integers = np.minimum.accumulate(np.where(even, turns, np.arange(turns) + 2)[::-1])[::-1]
        return ends

    def _note_starts(self, even: Flags, key: tuple[int, int], rows: list[tuple[Start, ...]], chains: Integers) -> None:
        width = max(sum(map(len, row)) for row in rows)
        flat = [[n for start in row for n in start] for row in rows]
        starts = np.array([row + [0] * (width - len(row)) for row in flat], I64)  # only like chains are compared
        if (starts == starts[0]).all():
            return
        self._starts[key] = starts
        alike = (chains[2:] == chains[1:-1]) & (chains[1:-1] == chains[:-2])
        even &= ~alike | (starts[2:] - starts[1:-1] == starts[1:-1] - starts[:-2]).all(axis=1)

    def match(self, turn: int, stop: int, slots: list[Slot]) -> Match:
        """The loop of a stretch.

        Raises
        ------
        _MisfitError : a slice moves in a way that no loop can follow.
        """
        reads: list[list[tuple[Moving | None, ...]]] = [[] for _ in range(self.run.period)]
        by_op: list[list[Slot]] = [[] for _ in range(self.run.period)]
        for (offset, k), slot in zip(self.slot_of, slots, strict=True):
            by_op[offset].append(slot)
            reads[offset].append(self._reads(turn, stop, offset, k, slot))
        writes = {}
        for offset in range(self.run.period):
            starts = self._starts.get((offset, -1))
            if starts is not None and (starts[turn:stop] != starts[turn]).any():
                op = self.track.ops[self.run.start + turn * self.run.period + offset]
                writes[offset] = self._moving(turn, stop, starts, op, op.operands[0], offset)
        return Match(
            self.track,
            self.run.start + turn * self.run.period,
            self.run.period,
            stop - turn,
            tuple([tuple(row) for row in by_op]),
            tuple([tuple(row) for row in reads]),
            writes,
        )

    def _reads(self, turn: int, stop: int, offset: int, k: int, slot: Slot) -> tuple[Moving | None, ...]:
        views = self._operands(stop - 1, offset)[k].views
        starts = self._starts.get((offset, k))
        moves: list[Moving | None] = []
        at = 0
        for view in views:
            found = None
            if view.opdef.name == "slice":
                rank = len(view.attrs["start"])
                if starts is not None and self._moves(starts[turn:stop, at : at + rank], slot):
                    if slot.viewed:
                        reason = "the first turns read an array that the others write to another way"
                        raise _MisfitError(turn + 1, offset, reason)
                    found = self._moving(turn, stop, starts[:, at : at + rank], view, view.operands[0], offset)
                at += rank
            moves.append(found)
        return tuple(moves)

    def _moves(self, starts: Integers, slot: Slot) -> bool:
        """Whether a slice begins elsewhere in some turn; of a carry behind its views the first turns do not count."""
        counted = starts[slot.delay :] if slot.viewed else starts
        return bool((counted != counted[0]).any())

    def _moving(self, turn: int, stop: int, starts: Integers, op: Op, array: Value, offset: int) -> Moving:
        found = moving(starts[turn:stop], op.attrs, array.type.shape)
        if found is None:
            reason = f"a {op.opdef.name} moves along several axes and is more than one element wide"
            raise _MisfitError(stop, offset, reason)
        return found


def _ends(goes_on: Flags) -> Integers:
    """For each turn and column, the first later turn that does not go on as the one before it."""
    turns = len(goes_on) + 1
    numbers = np.where(goes_on, turns, np.arange(1, turns)[:, None])
    ends = np.minimum.accumulate(numbers[::-1], axis=0)[::-1]
    return np.concatenate((ends, np.full((1, goes_on.shape[1]), turns, I64)))
