"""Where each value of a planned function lives: the memory plan, made by `passes.memory`, read by `codegen`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from pullback.ir.graph import Function, Value


@dataclass(frozen=True)
class Slot:
    """One buffer.

    space : `arg` and `result` (number `number` of the native function), `arena` (bytes from its start), `stack` (number of
        a small local array that LLVM may keep in registers), `constant` (number of a constant array in the object).
    offset : bytes from the start of that buffer.
    """

    space: OneOf["arg", "result", "arena", "stack", "constant"]
    number: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Copy:
    """A copy the plan could not avoid: the op that wanted to write in place, and why it may not."""

    op: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """A planned function and its memory.

    slots : for every value of the function and of its regions that has a buffer.
    result_copies : (result number, value): results that are an argument, a constant or another result, copied at the end.
    """

    function: Function
    slots: Mapping[Value, Slot]
    arena_bytes: int
    stack_bytes: tuple[int, ...]
    result_copies: tuple[tuple[int, Value], ...]
    copies: tuple[Copy, ...] = ()
