"""The memory plan: a buffer for each value of a planned function, in place where the last use allows.

`places` walks the function and gives values buffers (`buffers`: lifetimes, `inplace`: what an op may overwrite);
`carries` prepares loops, `handover` says how large carried values go on; `arena` lays out what is neither an argument,
a result nor small.
"""

from typing import Literal

from pullback.config import Options
from pullback.ir.graph import Function, Value
from pullback.ir.plan import Plan, Slot
from pullback.passes.memory.arena import Interval, arrange
from pullback.passes.memory.buffers import Buffer
from pullback.passes.memory.carries import separate_carries
from pullback.passes.memory.places import Places

SMALL = 512
"""Bytes up to which a buffer is a local variable, which LLVM can keep in registers."""

MANY = 128
"""Functions with more small buffers keep the rest in the arena, where they share memory."""


def plan(function: Function, options: Options | None = None) -> Plan:
    """Say where each value of a planned function lives. Near-linear in the number of ops.

    Arguments are never written; results are written where the caller wants them.
    """
    function = separate_carries(function, SMALL)
    places = Places(function, SMALL)
    small = [b for b in places.created if b.nbytes <= SMALL][:MANY]
    for number, buffer in enumerate(small):
        buffer.slot = Slot("stack", number)
    arena = _lay_out([b for b in places.created if b.slot is None], "arena", 0)
    stack = [b.nbytes for b in small]
    for buffers in places.turns:
        if buffers:
            stack.append(_lay_out(buffers, "stack", len(stack)))
    return Plan(
        function=function,
        slots={value: _slot(buffer) for value, buffer in places.buffers.items()},
        arena_bytes=arena,
        stack_bytes=tuple(stack),
        result_copies=_result_copies(function, places),
        copies=tuple(places.copies),
        handovers={op: tuple([move.handover(_slot) for move in moves]) for op, moves in places.moves.items()},
    )


def _lay_out(buffers: list[Buffer], space: Literal["arena", "stack"], number: int) -> int:
    """Give the buffers places in one block; its size."""
    offsets, size = arrange([Interval(b.birth, b.death, b.nbytes) for b in buffers])
    for buffer, offset in zip(buffers, offsets, strict=True):
        buffer.slot = Slot(space, number, offset)
    return size


def _slot(buffer: Buffer) -> Slot:
    while buffer.owner is not None:
        buffer = buffer.owner
    assert buffer.slot is not None
    return buffer.slot


def _result_copies(function: Function, places: Places) -> tuple[tuple[int, Value], ...]:
    numbered = list(enumerate(function.results))
    return tuple([(k, v) for k, v in numbered if places.buffers[v].slot != Slot("result", k)])
