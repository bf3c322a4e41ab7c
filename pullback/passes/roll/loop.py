"""A loop that was found in a row of ops: how often, how long, and how its body has each of its operands."""

from typing import Literal as OneOf
from typing import NamedTuple

from pullback.ir.graph import Op, Value
from pullback.passes.roll.moving import Moving
from pullback.passes.roll.track import Operand, Track
from pullback.record import record


class Slot(NamedTuple):
    """How the body has one of its operands.

    kind : `inner`: from the same turn; `carry`: from `delay` turns before; `same`: from outside, the same in each turn;
        `table`: a constant, another in each turn; `each`: an argument of the function, another in each turn
    offset, number : which op of the body computes it, and which of its results it is
    viewed : what is carried is the value behind its views, as the first turns read it through others
    """

    kind: OneOf["inner", "carry", "same", "table", "each"]
    offset: int = 0
    number: int = 0
    delay: int = 0
    viewed: bool = False


@record(frozen=True)
class Match:
    """A loop: `turns` times `period` ops of the row from `start` on.

    slots : for each op of the body, how it has its operands
    reads : for each op and operand, how each slice among its views moves; None for one that does not
    writes : for each update that moves, how
    """

    track: Track
    start: int
    period: int
    turns: int
    slots: tuple[tuple[Slot, ...], ...]
    reads: tuple[tuple[tuple[Moving | None, ...], ...], ...]
    writes: dict[int, Moving]

    @property
    def stop(self) -> int:
        return self.start + self.period * self.turns

    def op(self, offset: int) -> Op:
        """An op of the body, as in the last turn."""
        return self.track.ops[self.stop - self.period + offset]

    def operand(self, turn: int, offset: int, slot: int) -> Operand:
        return self.track.operands[self.start + turn * self.period + offset][slot]

    def last(self, offset: int, slot: int) -> Operand:
        return self.operand(self.turns - 1, offset, slot)

    def result(self, turn: int, offset: int, number: int) -> Value:
        return self.track.ops[self.start + turn * self.period + offset].results[number]
