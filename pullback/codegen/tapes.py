"""Tapes: what a loop of unknown length keeps for its reverse, one record a turn, in memory that grows.

A tape's handle is the address of its header. All tapes of a call are chained, and freed when the call ends, however it
ends; those of a checkpoint's adjoint as soon as that is done. Handle 0 is a tape of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.ir.graph import Op, Value, walk
from pullback.ir.plan import Plan

if TYPE_CHECKING:
    from pullback.codegen.program import Frame, Program

FIRST_RECORDS = 64
"""Room of a tape that is begun without knowing its length."""

NULL = V("null", "ptr")
NEXT, DATA, COUNT, ROOM = 0, 8, 16, 24
HEADER_BYTES = 32

MEMORY_FUNCTIONS = ("malloc", "realloc", "free")


def uses_tapes(plan: Plan) -> bool:
    """Does any loop of the program keep a tape."""
    return any(_makes_tapes(op) for op in walk(plan.function.body))


def _makes_tapes(op: Op) -> bool:
    taped = len(op.results) > op.attrs["carries"] if op.name in ("scan", "while") else False
    return taped and (op.name == "while" or op.attrs["length"] < 0)


def drops_tapes(op: Op) -> bool:
    """Whether no tape made inside of a `checkpoint` is read behind it: what it computes again, it computes for itself.

    Handles are i64; without an integer among the results none can leave.
    """
    if not op.attrs["again"] or any(not r.type.is_inexact for r in op.results):
        return False
    return any(_makes_tapes(inner) for inner in walk(op.regions[0]))


class Tapes:
    """The routines of one program; written when first used."""

    def __init__(self, program: Program, chain_offset: int) -> None:
        self._program = program
        self._chain_offset = chain_offset

    def chain(self, frame: Frame) -> V:
        """Where the first tape of the call is kept."""
        return frame.behind_arena(self._chain_offset)

    def begin(self, frame: Frame, record: int, room: V) -> V:
        """A new tape with room for so many records; its address, or null where there is no memory."""
        name = self._routine("tape_new", "ptr", [("ptr", "chain"), ("i64", "record"), ("i64", "room")], _emit_new)
        return frame.b.call("ptr", name, [self.chain(frame), const("i64", max(record, 1)), room])

    def push(self, frame: Frame, tape: V, record: int) -> V:
        """The address of a new last record, or null where there is no memory."""
        name = self._routine("tape_push", "ptr", [("ptr", "tape"), ("i64", "record")], _emit_push)
        return frame.b.call("ptr", name, [tape, const("i64", max(record, 1))])

    def free(self, frame: Frame, until: V = NULL) -> None:
        """Free the tapes of the call that were begun after `until`: all, if that is null."""
        name = self._routine("tape_free", "void", [("ptr", "chain"), ("ptr", "until")], _emit_free)
        frame.b.call("void", name, [self.chain(frame), until])

    @contextmanager
    def released(self, frame: Frame) -> Iterator[None]:
        """Tapes begun inside are freed at the end."""
        latest = frame.b.load("ptr", self.chain(frame), 8)
        yield
        self.free(frame, latest)

    def _routine(
        self, name: str, result: str, params: list[tuple[str, str]], emit: Callable[[FunctionBuilder], None]
    ) -> str:
        module, full = self._program.e.module, f"{self._program.name}.{name}"
        if full not in module.functions:
            self._program.e.externals.update(MEMORY_FUNCTIONS)
            b = module.function(full, result, params, "internal", "noinline")
            emit(b)
        return full


def _field(b: FunctionBuilder, tape: V, offset: int) -> V:
    return b.gep("i8", tape, offset)


def _is_null(b: FunctionBuilder, pointer: V) -> V:
    return b.icmp("eq", pointer, NULL)


def _emit_new(b: FunctionBuilder) -> None:
    chain, record, room = b.params
    b.module.declare("malloc", "ptr", ["i64"])
    tape = b.call("ptr", "malloc", [const("i64", HEADER_BYTES)])
    data = b.call("ptr", "malloc", [b.mul(record, room)])
    failed, made = b.new_label("failed"), b.new_label("made")
    b.condbr(b.or_(_is_null(b, tape), _is_null(b, data)), failed, made)
    b.label(failed)
    b.module.declare("free", "void", ["ptr"])
    b.call("void", "free", [tape])
    b.call("void", "free", [data])
    b.ret(NULL)
    b.label(made)
    b.store(b.load("ptr", chain, 8), _field(b, tape, NEXT), 8)
    b.store(data, _field(b, tape, DATA), 8)
    b.store(const("i64", 0), _field(b, tape, COUNT), 8)
    b.store(room, _field(b, tape, ROOM), 8)
    b.store(tape, chain, 8)
    b.ret(tape)


def _emit_push(b: FunctionBuilder) -> None:
    tape, record = b.params
    count = b.load("i64", _field(b, tape, COUNT), 8)
    room = b.load("i64", _field(b, tape, ROOM), 8)
    grow, place, failed, grown = (b.new_label(hint) for hint in ("grow", "place", "failed", "grown"))
    b.condbr(b.icmp("eq", count, room), grow, place)
    b.label(grow)
    wider = b.shl(room, 1)
    b.module.declare("realloc", "ptr", ["ptr", "i64"])
    data = b.call("ptr", "realloc", [b.load("ptr", _field(b, tape, DATA), 8), b.mul(wider, record)])
    b.condbr(_is_null(b, data), failed, grown)
    b.label(failed)
    b.ret(NULL)
    b.label(grown)
    b.store(data, _field(b, tape, DATA), 8)
    b.store(wider, _field(b, tape, ROOM), 8)
    b.br(place)
    b.label(place)
    b.store(b.add(count, 1), _field(b, tape, COUNT), 8)
    b.ret(b.gep("i8", b.load("ptr", _field(b, tape, DATA), 8), b.mul(count, record), flags=""))


def _emit_free(b: FunctionBuilder) -> None:
    chain, until = b.params
    b.module.declare("free", "void", ["ptr"])
    first = b.load("ptr", chain, 8)
    begin, one, done = b.new_label("begin"), b.new_label("one"), b.new_label("done")
    before = b.current
    b.br(begin)
    b.label(begin)
    tape = b.phi("ptr", [(first, before)])
    b.condbr(b.icmp("eq", tape.value, until), done, one)
    b.label(one)
    following = b.load("ptr", _field(b, tape.value, NEXT), 8)
    b.call("void", "free", [b.load("ptr", _field(b, tape.value, DATA), 8)])
    b.call("void", "free", [tape.value])
    tape.add(following, b.current)
    b.br(begin)
    b.label(done)
    b.store(until, chain, 8)
    b.ret()


def read_address(frame: Frame, handle: Value, record: int, turn: V) -> V:
    """The address of record number `turn`; of zeros for the tape of zeros."""
    b = frame.b
    number = b.load("i64", frame.pointer(handle), 8)
    tape = b.cast("inttoptr", number, "ptr")
    zeros = b.module.constant(bytes(max(record, 1)))
    is_zeros, is_tape, join = b.new_label("zeros"), b.new_label("tape"), b.new_label("join")
    b.condbr(b.icmp("eq", number, 0), is_zeros, is_tape)
    b.label(is_zeros)
    b.br(join)
    b.label(is_tape)
    found = b.gep("i8", b.load("ptr", _field(b, tape, DATA), 8), b.mul(turn, max(record, 1)), flags="")
    b.br(join)
    b.label(join)
    return b.phi("ptr", [(zeros, is_zeros), (found, is_tape)]).value


def written_address(b: FunctionBuilder, tape: V, record: int, turn: V) -> V:
    """The address of record number `turn` of a tape that was begun with room for all."""
    return b.gep("i8", b.load("ptr", _field(b, tape, DATA), 8), b.mul(turn, max(record, 1)), flags="")
