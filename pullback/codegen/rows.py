"""`rows`: a body that runs once for each row of some arrays, its small values on the stack, rows shared among threads.

All of a turn's kernels are written into one function, so that what they hand to one another stays in the nearest cache
or in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback.codegen.control import copy_to
from pullback.codegen.kernel import CHUNK_NS, MAX_CHUNKS, SHARED_FROM_NS, chunk_pointers, estimated_ns, run_parallel
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.nest import plan_nest
from pullback.codegen.program import Frame
from pullback.codegen.spec import kernel_spec
from pullback.ir.graph import Op, Region, Value

_OTHER_OP_NS = 200.0
_TURN_NS = 4.0


def lower_rows(frame: Frame, op: Op, lower_ops: Callable[[Frame, Sequence[Op]], None]) -> None:
    """All turns: here, or in chunks of a fixed number of rows."""
    count = op.attrs["count"]
    length = _chunk_length(frame, op)
    if frame.serial or length >= count:
        _emit_turns(frame, op, lower_ops, const("i64", 0), const("i64", count), _addresses(frame, op))
        return
    name = frame.program.new_name("rows")
    b = frame.program.e.function(name, [("ptr", "context"), ("i64", "chunk")])
    values = _outer_values(op)
    pointers = dict(zip(values, chunk_pointers(b, len(values)), strict=True))
    inner = Frame(frame.program, b, (const("ptr", 0),) * len(frame.roots), local=True, serial=True)
    lo = b.mul(b.params[1], length)
    hi = b.intrinsic("smin", b.add(lo, length), count)
    _emit_turns(inner, op, lower_ops, lo, hi, pointers)
    b.ret()
    run_parallel(frame.program.e, frame.b, name, [frame.pointer(v) for v in values], -(-count // length))


def _outer_values(op: Op) -> list[Value]:
    return list(dict.fromkeys((*op.operands, *op.results)))


def _addresses(frame: Frame, op: Op) -> dict[Value, V]:
    return {value: frame.pointer(value) for value in _outer_values(op)}


def _emit_turns(
    frame: Frame,
    op: Op,
    lower_ops: Callable[[Frame, Sequence[Op]], None],
    lo: V,
    hi: V,
    addresses: dict[Value, V],
) -> None:
    (body,), mapped = op.regions, op.attrs["mapped"]
    for param, operand in zip(body.params[mapped:], op.operands[mapped:], strict=True):
        frame.place(param, addresses[operand])
    with frame.b.loop(lo, hi) as loop, frame.single_function():
        for param, operand in zip(body.params[:mapped], op.operands[:mapped], strict=True):
            frame.place(param, _row(frame.b, addresses[operand], param, loop.index))
        made = _made_in_place(frame, op, body)
        for row, whole in made.items():
            frame.place(row, _row(frame.b, addresses[whole], row, loop.index))
        lower_ops(frame, body.ops)
        for row, whole in zip(body.results, op.results, strict=True):
            if made.get(row) is not whole:
                copy_to(frame, _row(frame.b, addresses[whole], row, loop.index), row)


def _made_in_place(frame: Frame, op: Op, body: Region) -> dict[Value, Value]:
    """Results that the body makes in their rows: the plan gives them the slot of the whole."""
    made: dict[Value, Value] = {}
    for row, whole in zip(body.results, op.results, strict=True):
        if row.op is not None and row not in made and frame.shares_slot(row, whole):
            made[row] = whole
    return made


def _row(b: FunctionBuilder, whole: V, row: Value, turn: V) -> V:
    return b.gep("i8", whole, b.mul(turn, row.type.nbytes), flags="")


def _chunk_length(frame: Frame, op: Op) -> int:
    """Rows that a thread takes at a time; all of them where threads are not worth it."""
    count: int = op.attrs["count"]
    turn = _TURN_NS + sum(_estimate(frame, inner) for inner in op.regions[0].ops)
    if turn * count < SHARED_FROM_NS:
        return count
    chunks = min(MAX_CHUNKS, count, int(turn * count / CHUNK_NS))
    return -(-count // max(1, chunks))


def _estimate(frame: Frame, op: Op) -> float:
    if op.name != "kernel":
        return _OTHER_OP_NS if op.regions or op.operands else 0.0
    spec = kernel_spec(op)
    return estimated_ns(plan_nest(spec, frame.program.e.target)) if spec.points else 0.0

