"""Structured control flow and effects.

A region's parameters and results live where the memory plan says (`ir.plan` has the rules): a parameter in the slot of
its operand is the operand itself, a row of a scanned array is where the array has it, and a stacked result in the slot
of the whole is made in its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

from pullback.codegen import memory
from pullback.codegen.fill import copy
from pullback.codegen.handover import Handovers
from pullback.codegen.kernel import emit_inline
from pullback.codegen.llvm import V, const
from pullback.codegen.program import Frame
from pullback.codegen.spec import make_spec
from pullback.codegen.tapes import FIRST_RECORDS, drops_tapes, read_address, written_address
from pullback.ir.failures import OUT_OF_MEMORY
from pullback.ir.graph import Op, Region, Value
from pullback.ir.index import Affine
from pullback.ir.kernel import Load, Store
from pullback.ir.ops.loops import scan_parts
from pullback.ir.types import BOOL, tensor_type

LowerOps = Callable[[Frame, Sequence[Op]], None]


def _scalar(frame: Frame, value: Value) -> V:
    return memory.load(frame.b, value.type.dtype, frame.pointer(value)).re


def _leave_unless(frame: Frame, condition: V, status: int) -> None:
    """Return `status` where the condition does not hold."""
    b = frame.b
    leave, stay = b.new_label("leave"), b.new_label("stay")
    b.condbr(condition, stay, leave)
    b.label(leave)
    b.ret(status)
    b.label(stay)


# ------------------------------------------------------------------ effects


def lower_guard(frame: Frame, op: Op, lower_ops: LowerOps) -> None:
    """Return index + 1 where the scalar is not what it was when the function was traced."""
    found = _scalar(frame, op.operands[0])
    _leave_unless(frame, frame.b.icmp("eq", found, int(op.attrs["expected"])), op.attrs["index"] + 1)


def lower_check(frame: Frame, op: Op, lower_ops: LowerOps) -> None:
    """Return -code where not every element is true."""
    (operand,) = op.operands
    size = operand.type.size
    if size == 0:
        return
    if size == 1:
        _leave_unless(frame, _scalar(frame, operand), -op.attrs["code"])
        return
    flag = frame.b.alloca("i8", align=8)
    value = Value(tensor_type(BOOL))
    spec = make_spec(
        (size,),
        (Load(0, Affine(0, ((0, 1),))),),
        (Store("all", tensor_type(BOOL), Affine()),),
        (tensor_type(BOOL, (size,)),),
        Region((value,), (), (value,)),
    )
    emit_inline(frame.program.e, frame.b, spec, [frame.pointer(operand)], [flag])
    _leave_unless(frame, memory.load(frame.b, BOOL, flag).re, -op.attrs["code"])


# ------------------------------------------------------------------ if


def lower_if(frame: Frame, op: Op, lower_ops: LowerOps) -> None:
    """One of two regions."""
    b = frame.b
    then, other, join = b.new_label("then"), b.new_label("else"), b.new_label("join")
    b.condbr(_scalar(frame, op.operands[0]), then, other)
    for label, region in zip((then, other), op.regions, strict=True):
        b.label(label)
        bind(frame, region.params, op.operands[1:])
        lower_ops(frame, region.ops)
        frame.copy_all(list(zip(op.results, region.results, strict=True)))
        b.br(join)
    b.label(join)


def lower_checkpoint(frame: Frame, op: Op, lower_ops: LowerOps) -> None:
    """The region, at its place. What it taped to compute an adjoint is freed behind it."""
    (body,) = op.regions
    bind(frame, body.params, op.operands)
    with frame.tapes.released(frame) if drops_tapes(op) else nullcontext():
        lower_ops(frame, body.ops)
    frame.copy_all(list(zip(op.results, body.results, strict=True)))


def bind(frame: Frame, params: Sequence[Value], operands: Sequence[Value]) -> None:
    """Give a region its arguments: a parameter in its operand's slot is the operand, another gets a copy."""
    pairs = list(zip(params, operands, strict=True))
    apart = [(param, operand) for param, operand in pairs if not frame.shares_slot(param, operand)]
    for param, operand in pairs:
        if frame.shares_slot(param, operand):
            frame.alias(param, operand)
    frame.copy_all(apart)


def bind_carries(frame: Frame, params: Sequence[Value], results: Sequence[Value]) -> None:
    """A carried value lives in the loop's result all along, or under its name."""
    for param, result in zip(params, results, strict=True):
        frame.alias(param, result)


# ------------------------------------------------------------------ scan


class _Rows:
    """What a scan reads and stacks a row at a time: where the row of a turn is."""

    def __init__(self, frame: Frame, op: Op, count: V) -> None:
        _, starts, scanned, _ = scan_parts(op)
        (body,) = op.regions
        carries = len(starts)
        self.frame = frame
        self.on_tape = op.attrs["length"] < 0
        self.scanned = list(zip(body.params[carries : carries + len(scanned)], scanned, strict=True))
        self.stacked = list(zip(body.results[carries:], op.results[carries:], strict=True))
        self.tapes = [self._begin(row, handle, count) for row, handle in self.stacked] if self.on_tape else []

    def _begin(self, row: Value, handle: Value, count: V) -> V:
        frame, b = self.frame, self.frame.b
        tape = frame.tapes.begin(frame, row.type.nbytes, b.select(b.icmp("sgt", count, 1), count, 1))
        leave_without_memory(frame, tape)
        b.store(b.cast("ptrtoint", tape, "i64"), frame.pointer(handle), 8)
        return tape

    def made_in_place(self) -> dict[Value, Value]:
        """Stacked values that the body makes in their rows: the plan gives them the slot of the whole."""
        if self.on_tape:
            return {}
        direct: dict[Value, Value] = {}
        for row, whole in self.stacked:
            if row.op is not None and row not in direct and self.frame.shares_slot(row, whole):
                direct[row] = whole
        return direct

    def read_address(self, row: Value, whole: Value, turn: V) -> V:
        if self.on_tape:
            return read_address(self.frame, whole, row.type.nbytes, turn)
        return row_address(self.frame, whole, row, turn)

    def written_address(self, number: int, turn: V) -> V:
        row, whole = self.stacked[number]
        if self.on_tape:
            return written_address(self.frame.b, self.tapes[number], row.type.nbytes, turn)
        return row_address(self.frame, whole, row, turn)


def lower_scan(frame: Frame, op: Op, lower_ops: LowerOps) -> None:
    """A number of turns that is known when the loop begins."""
    count, starts, scanned, constants = scan_parts(op)
    (body,) = op.regions
    carries = len(starts)
    carried, given = op.results[:carries], body.results[:carries]
    turns = const("i64", op.attrs["length"]) if count is None else _scalar(frame, count)
    bind_carries(frame, body.params[:carries], carried)
    bind(frame, body.params[carries + len(scanned) :], constants)
    rows = _Rows(frame, op, turns)
    handed = Handovers(frame, op)
    frame.copy_all(handed.others(list(zip(carried, starts, strict=True))))
    direct = rows.made_in_place()
    length = turns if count is not None else op.attrs["length"]
    with frame.cells({**dict(rows.scanned), **direct}), handed.running(starts), frame.b.loop(0, length) as loop:
        turn = frame.b.sub(frame.b.sub(turns, 1), loop.index) if op.attrs["reverse"] else loop.index
        for row, whole in rows.scanned:
            frame.point(row, rows.read_address(row, whole, turn))
        for row, whole in direct.items():
            frame.point(row, row_address(frame, whole, row, turn))
        handed.enter_turn(turn)
        lower_ops(frame, body.ops)
        for number, (row, whole) in enumerate(rows.stacked):
            if direct.get(row) is not whole and not handed.is_stacked(number):
                copy_to(frame, rows.written_address(number, turn), row)
        frame.copy_all(handed.others(list(zip(carried, given, strict=True))))
        handed.leave_turn(given)


def row_address(frame: Frame, whole: Value, row: Value, turn: V) -> V:
    """The address of row number `turn`."""
    b = frame.b
    return b.gep("i8", frame.pointer(whole), b.mul(turn, row.type.nbytes), flags="")


def copy_to(frame: Frame, address: V, value: Value) -> None:
    copy(frame.b, address, frame.pointer(value), value.type.nbytes, value.type.dtype.itemsize)


def leave_without_memory(frame: Frame, pointer: V) -> None:
    """Return the status of exhausted memory where an allocation gave nothing."""
    _leave_unless(frame, frame.b.icmp("ne", pointer, V("null", "ptr")), -OUT_OF_MEMORY)


# ------------------------------------------------------------------ while


def lower_while(frame: Frame, op: Op, lower_ops: LowerOps) -> None:
    """The body as long as the condition holds; what it gives behind the carries is taped, and the turns are counted."""
    b = frame.b
    condition, body = op.regions
    carries = op.attrs["carries"]
    carried, counter, handles = op.results[:carries], op.results[carries : carries + 1], op.results[carries + 1 :]
    given, starts = body.results[:carries], op.operands[:carries]
    for region in (body, condition):
        bind_carries(frame, region.params[:carries], carried)
        bind(frame, region.params[carries:], op.operands[carries:])
    handed = Handovers(frame, op)
    frame.copy_all(handed.others(list(zip(carried, starts, strict=True))))
    taped = list(zip(body.results[carries:], handles, strict=True))
    room = op.attrs["most"] or FIRST_RECORDS
    tapes = [_begin_tape(frame, value, handle, room) for value, handle in taped]
    for value in counter:
        b.store(const("i64", 0), frame.pointer(value), 8)
    begin, turn, done = b.new_label("while"), b.new_label("turn"), b.new_label("done")
    with handed.running(starts):
        b.br(begin)
        b.label(begin)
        lower_ops(frame, condition.ops)
        b.condbr(_scalar(frame, condition.results[0]), turn, done)
        b.label(turn)
        lower_ops(frame, body.ops)
        for tape, (value, _) in zip(tapes, taped, strict=True):
            address = frame.tapes.push(frame, tape, value.type.nbytes)
            leave_without_memory(frame, address)
            copy_to(frame, address, value)
        for value in counter:
            b.store(b.add(b.load("i64", frame.pointer(value), 8), 1), frame.pointer(value), 8)
        frame.copy_all(handed.others(list(zip(carried, given, strict=True))))
        handed.leave_turn(given)
        b.br(begin)
        b.label(done)


def _begin_tape(frame: Frame, value: Value, handle: Value, room: int) -> V:
    tape = frame.tapes.begin(frame, value.type.nbytes, const("i64", room))
    leave_without_memory(frame, tape)
    frame.b.store(frame.b.cast("ptrtoint", tape, "i64"), frame.pointer(handle), 8)
    return tape


CONTROL: Mapping[str, Callable[[Frame, Op, LowerOps], None]] = {
    "guard": lower_guard,
    "check": lower_check,
    "if": lower_if,
    "checkpoint": lower_checkpoint,
    "scan": lower_scan,
    "while": lower_while,
}
