"""Tapes: which i64[] values are handles of one, and the sum of two, record by record.

The sum of two tapes is a loop over their records, so the number of records must be known where the sum is made; it is
found by asking how the tapes were made, through branches and loops.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pullback.errors import UnsupportedError
from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region, Value
from pullback.ir.ops import OPS
from pullback.ir.ops.loops import HANDLE
from pullback.ir.types import TensorType


class Count(NamedTuple):
    """A number of turns: `value`, or what it holds for each turn of the `depth` loops around."""

    value: Value
    depth: int = 0


class Tape(NamedTuple):
    """Records, how many (an int where that is static, an array of handles then), and what they are: values or tapes."""

    turns: Count | int
    record: "TensorType | Tape"


def add_tapes(f: Emitter, a: Expr, b: Expr) -> Expr:
    """The tape whose records are the sums of those of `a` and `b`."""
    tape = _described(a.value) or _described(b.value)
    if tape is None:
        raise UnsupportedError(
            "a derivative of this order through nested loops is not followed: two tapes would be added whose length is "
            "not known; use forward mode (jvp, jacfwd) for the outermost one"
        )
    return _added(f, tape, a, b)


def _added(f: Emitter, tape: Tape, a: Expr, b: Expr) -> Expr:
    counts = _counts(tape.record)
    rows = [count for count in counts if count.depth > 0]
    fixed = [count for count in counts if count.depth == 0]
    inner = Emitter(Builder(), OPS)
    static = isinstance(tape.turns, int)
    x, y = (inner.wrap(inner.b.param(v.type.with_shape(v.shape[1:]) if static else _record_type(tape))) for v in (a, b))
    inside = {c: Count(inner.b.param(_row_type(c, static)), c.depth - 1) for c in rows}
    inside.update((c, Count(inner.b.param(c.value.type))) for c in fixed)
    record = tape.record if isinstance(tape.record, TensorType) else _moved(tape.record, inside.get)
    assert record is not None
    total = _added(inner, record, x, y) if isinstance(record, Tape) else x + y
    length = tape.turns if isinstance(tape.turns, int) else -1
    attrs = Attrs(carries=0, scanned=2 + len(rows), length=length, reverse=False)
    turns = [tape.turns.value] if isinstance(tape.turns, Count) else []
    operands = [*turns, a.value, b.value, *(c.value for c in rows), *(c.value for c in fixed)]
    return f.wrap(f.b.add(OPS["scan"], operands, attrs, (inner.b.region([total.value]),)).results[0])


def _record_type(tape: Tape) -> TensorType:
    """The type of a record: of a tape, its handle, or an array of handles where its length is static."""
    record = tape.record
    if isinstance(record, TensorType):
        return record
    return HANDLE.with_shape((record.turns,)) if isinstance(record.turns, int) else HANDLE


def _row_type(count: Count, static: bool) -> TensorType:
    """What a row of a count is: of an array without its first axis, of a tape a number or a handle."""
    type = count.value.type
    return type.with_shape(type.shape[1:]) if static else HANDLE


def _counts(record: TensorType | Tape) -> list[Count]:
    """The different run-time counts inside a record."""
    found: dict[Count, None] = {}
    while isinstance(record, Tape):
        if isinstance(record.turns, Count):
            found[record.turns] = None
        record = record.record
    return list(found)


def _moved(tape: Tape, move: Callable[[Count], Count | None]) -> Tape | None:
    """`tape` with its counts said otherwise; None if one cannot be."""
    turns = tape.turns if isinstance(tape.turns, int) else move(tape.turns)
    record = tape.record if isinstance(tape.record, TensorType) else _moved(tape.record, move)
    return None if turns is None or record is None else Tape(turns, record)


def _described(value: Value) -> Tape | None:
    """How many records the tape has, and what they are, in terms of values of its region."""
    op = value.op
    if op is None:
        return None
    if op.name == "if":
        return _of_branch(op, value.index)
    if op.name != "scan" or value.index < op.attrs["carries"]:
        return None
    row = op.regions[0].results[value.index]
    turns = op.attrs["length"] if op.attrs["length"] >= 0 else Count(op.operands[0])
    if row.type.is_inexact:
        return Tape(turns, row.type)
    record = _described(row)
    outside = None if record is None else _moved(record, lambda count: _before_scan(op, count))
    return None if outside is None else Tape(turns, outside)


def _of_branch(op: Op, number: int) -> Tape | None:
    for region in op.regions:
        tape = _described(region.results[number])
        if tape is not None:
            return _moved(tape, lambda count: _before_branch(op, count))
    return None


def _before_branch(op: Op, count: Count) -> Count | None:
    return None if count.value.op is not None else Count(op.operands[1 + count.value.index], count.depth)


def _before_scan(op: Op, count: Count) -> Count | None:
    """What a count inside the body is outside: a scanned operand holds one for each turn."""
    if count.value.op is not None:
        return None
    first = 1 if op.attrs["length"] < 0 else 0
    number = count.value.index
    if number < op.attrs["carries"]:
        return None
    scanned = number < op.attrs["carries"] + op.attrs["scanned"]
    return Count(op.operands[first + number], count.depth + 1 if scanned else count.depth)


# ------------------------------------------------------------------ which integers are handles


def is_tape(value: Value) -> bool:
    """Whether an op gives `value` as the handle of a tape (or as an array of handles, one for each turn)."""
    op = value.op
    if op is None:
        return False
    if op.name in ("if", "checkpoint"):
        return any(is_tape(region.results[value.index]) for region in op.regions)
    if op.name == "while":
        return value.index > int(op.attrs["carries"])
    if op.name != "scan" or value.index < op.attrs["carries"]:
        return False
    return op.attrs["length"] < 0 or is_tape(op.regions[0].results[value.index])


def tape_params(region: Region) -> list[bool]:
    """Which parameters of a region are read as tapes in it."""
    read = {v for op in region.ops for v, on in zip(op.operands, _reads_tape(op), strict=True) if on}
    return [p in read for p in region.params]


def _reads_tape(op: Op) -> Sequence[bool]:
    none = [False] * len(op.operands)
    if not op.regions:
        return none
    inside = [tape_params(region) for region in op.regions]
    if op.name == "if":
        return [False, *(any(column) for column in zip(*inside, strict=True))]
    if op.attrs.get("length", 0) >= 0:
        return inside[-1]
    first = 1 + op.attrs["carries"]
    last = first + op.attrs["scanned"]
    return [first <= k < last or on for k, on in enumerate([False, *inside[-1]])]
