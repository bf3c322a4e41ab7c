"""Structured control flow and effects.

A region's parameters and results live where the memory plan says. Where it says nothing, a parameter is the operand
itself, a row of a scanned array, or a result is written straight to its row; so no plan is needed to avoid a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pullback.codegen import memory
from pullback.codegen.fill import copy
from pullback.codegen.kernel import emit_inline
from pullback.codegen.llvm import V
from pullback.codegen.program import Frame
from pullback.codegen.spec import make_spec
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


def bind(frame: Frame, params: Sequence[Value], operands: Sequence[Value]) -> None:
    """Give a region its arguments: by copy into planned places, else by reference."""
    pairs = list(zip(params, operands, strict=True))
    frame.copy_all([(param, operand) for param, operand in pairs if frame.has_slot(param)])
    for param, operand in pairs:
        if not frame.has_slot(param):
            frame.alias(param, operand)


def bind_carries(frame: Frame, params: Sequence[Value], starts: Sequence[Value], results: Sequence[Value]) -> None:
    """Give a loop its first carries; one without a planned place is carried in the loop's result."""
    for param, result in zip(params, results, strict=True):
        if not frame.has_slot(param):
            frame.alias(param, result)
    frame.copy_all(list(zip(params, starts, strict=True)))


# ------------------------------------------------------------------ scan


def lower_scan(frame: Frame, op: Op, lower_ops: LowerOps) -> None:
    """A known number of turns."""
    _, starts, scanned, constants = scan_parts(op)
    (body,) = op.regions
    length, carries = op.attrs["length"], len(starts)
    carried, rows, fixed = _split(body.params, carries, len(scanned))
    bind_carries(frame, carried, starts, op.results[:carries])
    bind(frame, fixed, constants)
    if length:
        stacked = dict(zip(body.results[carries:], op.results[carries:], strict=True))
        parts = {row: whole for row, whole in zip(rows, scanned, strict=True) if not frame.has_slot(row)}
        direct = {row: whole for row, whole in stacked.items() if _may_be_direct(frame, row)}
        with frame.cells({**parts, **direct}):
            loop = frame.b.loop(0, length)
            with loop:
                turn = frame.b.rsub(length - 1, loop.index) if op.attrs["reverse"] else loop.index
                for row, whole in zip(rows, scanned, strict=True):
                    _point_or_copy(frame, row, whole, turn)
                for row, whole in direct.items():
                    frame.point(row, row_address(frame, whole, row, turn))
                lower_ops(frame, body.ops)
                for row, whole in zip(body.results[carries:], op.results[carries:], strict=True):
                    if direct.get(row) is not whole:
                        _copy_row(frame, row, whole, turn)
                frame.copy_all(list(zip(carried, body.results[:carries], strict=True)))
    frame.copy_all(list(zip(op.results[:carries], carried, strict=True)))


def _split(values: Sequence[Value], first: int, second: int) -> tuple[Sequence[Value], Sequence[Value], Sequence[Value]]:
    return values[:first], values[first : first + second], values[first + second :]


def _may_be_direct(frame: Frame, row: Value) -> bool:
    """Can a stacked value be written to its row: the plan has no place for it, and the body makes it."""
    return not frame.has_slot(row) and row.op is not None


def row_address(frame: Frame, whole: Value, row: Value, turn: V) -> V:
    """The address of row number `turn`."""
    b = frame.b
    return b.gep("i8", frame.pointer(whole), b.mul(turn, row.type.nbytes), flags="")


def _point_or_copy(frame: Frame, row: Value, whole: Value, turn: V) -> None:
    address = row_address(frame, whole, row, turn)
    if frame.has_slot(row):
        copy(frame.b, frame.pointer(row), address, row.type.nbytes, row.type.dtype.itemsize)
    else:
        frame.point(row, address)


def _copy_row(frame: Frame, row: Value, whole: Value, turn: V) -> None:
    address = row_address(frame, whole, row, turn)
    copy(frame.b, address, frame.pointer(row), row.type.nbytes, row.type.dtype.itemsize)


# ------------------------------------------------------------------ while


def lower_while(frame: Frame, op: Op, lower_ops: LowerOps) -> None:
    """The body as long as the condition holds."""
    b = frame.b
    condition, body = op.regions
    carries = op.attrs["carries"]
    bind_carries(frame, body.params[:carries], op.operands[:carries], op.results[:carries])
    bind(frame, body.params[carries:], op.operands[carries:])
    begin, turn, done = b.new_label("while"), b.new_label("turn"), b.new_label("done")
    b.br(begin)
    b.label(begin)
    bind(frame, condition.params, body.params)
    lower_ops(frame, condition.ops)
    b.condbr(_scalar(frame, condition.results[0]), turn, done)
    b.label(turn)
    lower_ops(frame, body.ops)
    frame.copy_all(list(zip(body.params[:carries], body.results[:carries], strict=True)))
    b.br(begin)
    b.label(done)
    frame.copy_all(list(zip(op.results[:carries], body.params[:carries], strict=True)))


CONTROL: Mapping[str, Callable[[Frame, Op, LowerOps], None]] = {
    "guard": lower_guard,
    "check": lower_check,
    "if": lower_if,
    "scan": lower_scan,
    "while": lower_while,
}
