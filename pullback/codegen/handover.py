"""Carried values of loops that go on where they were made: names whose addresses change from turn to turn.

The addresses are kept in memory behind the arena, where every function of the program finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pullback.codegen.fill import copy
from pullback.codegen.llvm import V, const
from pullback.codegen.program import Frame, aligned
from pullback.ir.graph import Op, Value
from pullback.ir.plan import Handover, Slot


class Handovers:
    """Those of one loop.

    moves : as the plan has them
    """

    def __init__(self, frame: Frame, op: Op) -> None:
        self.frame = frame
        self.op = op
        self.moves: Sequence[Handover] = frame.program.plan.handovers.get(op, ())
        self._own: dict[int, Slot] = {move.carry: frame.slot(op.results[move.carry]) for move in self.moves}
        self._homes = {move.carry: frame.pointer(op.results[move.carry]) for move in self.moves}
        first = op.attrs["carries"]
        self._whole = {m.carry: frame.pointer(op.results[first + m.stacked]) for m in self.moves if m.kind == "next"}
        self._places = [move for move in self.moves if move.kind == "place"]

    def others(self, pairs: Sequence[tuple[Value, Value]]) -> list[tuple[Value, Value]]:
        """Of one pair for each carried value, those of values that stay in their place."""
        return [pair for k, pair in enumerate(pairs) if k not in self._own]

    def is_stacked(self, number: int) -> bool:
        """Whether a stacked result has its row because a carried value lives there."""
        return any(move.kind == "next" and move.stacked == number for move in self.moves)

    @contextmanager
    def running(self, starts: Sequence[Value]) -> Iterator[None]:
        """The loop: `starts` are copied to where the first turn reads them; inside, places change.

        Behind it all values are where the plan says again.
        """
        frame = self.frame
        for move in self.moves:
            if move.kind == "next":
                self._copy(move, self._address(move, self._first_turn()), frame.pointer(starts[move.carry]))
            else:
                frame.copy(self.op.results[move.carry], starts[move.carry])
        names = [*self._own.values(), *(move.given for move in self.moves if move.kind != "row")]
        homes = {slot: frame.place_of(slot) for slot in names}
        with frame.moving(homes):
            for slot, home in homes.items():
                frame.move(slot, home)
            yield
            self._bring_home()

    def _first_turn(self) -> V:
        return const("i64", self.op.attrs["length"] - 1 if self.op.attrs["reverse"] else 0)

    def _address(self, move: Handover, turn: V) -> V:
        b = self.frame.b
        return b.gep("i8", self._whole[move.carry], b.mul(turn, self.op.results[move.carry].type.nbytes), flags="")

    # ------------------------------------------------------------------ turns

    def enter_turn(self, turn: V) -> None:
        """Say where the rows of this turn and the next one are."""
        b = self.frame.b
        for move in self.moves:
            if move.kind == "next":
                reverse = self.op.attrs["reverse"]
                is_last = b.icmp("eq", turn, 0 if reverse else self.op.attrs["length"] - 1)
                following = self._address(move, b.add(turn, -1 if reverse else 1))
                self.frame.move(self._own[move.carry], self._address(move, turn))
                self.frame.move(move.given, b.select(is_last, self._homes[move.carry], following))

    def leave_turn(self, given: Sequence[Value]) -> None:
        """Let each carried value be where the next one was made, and what is made next in the places that are left."""
        frame = self.frame
        own, made = [self._own[move.carry] for move in self._places], [move.given for move in self._places]
        now = {slot: frame.place_of(slot) for slot in (*own, *made)}
        left, free = [slot for slot in own if slot not in made], [slot for slot in made if slot not in own]
        for slot, other in zip((*own, *free), (*made, *left), strict=True):
            frame.move(slot, now[other])
        for move in self.moves:
            if move.kind == "row":
                frame.move(self._own[move.carry], frame.pointer(given[move.carry]))

    # ------------------------------------------------------------------ behind the last

    def _bring_home(self) -> None:
        """Copy what is not at home: by way of other memory where values may lie in one another's homes."""
        own = set(self._own.values())
        crossing = any(move.given in own for move in self._places)
        groups = [[move] for move in self.moves if move.kind == "row" or (move.kind == "place" and not crossing)]
        for group in [*groups, self._places] if crossing else groups:
            with self._unless_home(group):
                if len(group) == 1:
                    self._copy(group[0], self._homes[group[0].carry], self._now(group[0]))
                else:
                    self._copy_around(group)

    def _now(self, move: Handover) -> V:
        return self.frame.place_of(self._own[move.carry])

    def _copy(self, move: Handover, target: V, source: V) -> None:
        type = self.op.results[move.carry].type
        copy(self.frame.b, target, source, type.nbytes, type.dtype.itemsize)

    def _copy_around(self, moves: Sequence[Handover]) -> None:
        offsets, total = {}, 0
        for move in moves:
            offsets[move.carry] = total
            total += aligned(self.op.results[move.carry].type.nbytes)
        with self.frame.scratch(total) as middle:
            parts = {k: self.frame.b.gep("i8", middle, offset) for k, offset in offsets.items()}
            for move in moves:
                self._copy(move, parts[move.carry], self._now(move))
            for move in moves:
                self._copy(move, self._homes[move.carry], parts[move.carry])

    @contextmanager
    def _unless_home(self, moves: Sequence[Handover]) -> Iterator[None]:
        b = self.frame.b
        away, done = b.new_label("away"), b.new_label("home")
        for move in moves:
            at_home, here = b.icmp("eq", self._now(move), self._homes[move.carry]), b.new_label("here")
            b.condbr(at_home, here, away)
            b.label(here)
        b.br(done)
        b.label(away)
        yield
        b.br(done)
        b.label(done)
