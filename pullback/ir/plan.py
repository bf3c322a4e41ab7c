"""Where each value of a planned function lives: the memory plan, made by `passes.memory`, read by `codegen`."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal as OneOf

from pullback.ir.graph import Function, Op, Value
from pullback.record import record


@record(frozen=True)
class Slot:
    """One buffer.

    space : `arg` and `result` (number `number` of the native function), `arena` (bytes from its start), `stack` (number
        of a small local array that LLVM may keep in registers), `constant` (number of a constant array in the object).
    offset : bytes from the start of that buffer.
    """

    space: OneOf["arg", "result", "arena", "stack", "constant"]
    number: int = 0
    offset: int = 0


@record(frozen=True)
class Handover:
    """A carried value of a loop that goes on to the next turn where it was made: its place changes, nothing is copied.

    carry : its number
    given : the slot in which the body makes the next value
    kind : `place`: another buffer; `row`: the row of this turn of stacked result number `stacked`, which is the next
        value; `next`: the row of the next turn, where the stacked result is the old value, and after the last turn the
        slot of the op's result
    """

    carry: int
    given: Slot
    kind: OneOf["place", "row", "next"]
    stacked: int = -1


@record(frozen=True)
class Copy:
    """A copy the plan could not avoid: the op that wanted to write in place, and why it may not."""

    op: str
    reason: str


@record(frozen=True)
class Plan:
    """A planned function and its memory.

    slots : for every value of the function and of its regions that has a buffer. Two values in one slot share it; an op
        whose result has the slot of an operand works in place (a `kernel` then reads each element only where it writes
        it).
    result_copies : (result number, value): results that are an argument, a constant or another result, copied at the
        end.
    handovers : of loops whose carried values change places.
    copies : what the code generator has to copy because a value could not be written in place.

    Regions. A parameter lives where the operand does that it stands for. What a region gives is in place if it has the
    slot of the op's result; otherwise the code generator copies it there when the region ends.

    - `if`, `checkpoint`: the parameters have the operands' slots.
    - `scan`, `while`: a carried value has the slot of the op's result all along, parameters of both regions of a
      `while` included. An operand in another slot is copied there before the first turn. At the end of each turn what
      is stacked or taped is copied first, then, as if at once, the carried values that the body gives in other slots.
      Constants have the operands' slots.
    - With a handover the slot of the carried value, and the one in which the next is made, are names while the loop
      runs: for the buffers that lie there before the first turn, and at the end of a turn the slot of the carried value
      stands for the buffer that the other one stood for (the others take what is left). Values that have other places
      than their slots behind the last turn are copied there.
    - A scanned parameter has the slot of the whole operand, and stands for the row of the turn. A stacked result of the
      body that has the slot of the op's result is made in the row of the turn; another one is copied there. With tapes,
      the slot of the scanned parameter is the handle's, and what is taped has a slot of its own. Nothing else is found
      elsewhere than at its slot, but for parameters of regions further in to which a row is handed.
    - `rows` is as a scan without carried values: its mapped operands are scanned, its results stacked. Turns may run at
      once: what else the body makes is on the stack, once for each thread.
    """

    function: Function
    slots: Mapping[Value, Slot]
    arena_bytes: int
    stack_bytes: tuple[int, ...]
    result_copies: tuple[tuple[int, Value], ...]
    copies: tuple[Copy, ...] = ()
    handovers: Mapping[Op, tuple[Handover, ...]] = field(default_factory=dict)
