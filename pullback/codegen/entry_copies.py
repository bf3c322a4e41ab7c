"""Copying arguments in a native entry, where their memory is laid out otherwise than the kernel reads it."""

from __future__ import annotations

from pullback.codegen.entry_arguments import ArgumentReader
from pullback.codegen.llvm import V, const
from pullback.codegen.pyobject import NULL, ObjectCode


class Copies:
    """Copies of the arguments that are laid out otherwise than the kernel reads them, made where it is emitted.

    Parameters
    ----------
    pointers : the addresses of all leaves; those of copied ones are replaced
    """

    def __init__(self, code: ObjectCode, reader: ArgumentReader, pointers: V) -> None:
        self.code = code
        b = code.b
        self.list = code.null_pointers(1)
        bits = b.cast("ptrtoint", reader.tagged[0], "i64")
        for pointer in reader.tagged[1:]:
            bits = b.or_(bits, b.cast("ptrtoint", pointer, "i64"))
        some, none, made = b.new_label("strided"), b.new_label("gone"), b.new_label("gathered")
        ready = b.new_label("ready")
        b.condbr(b.icmp("slt", bits, 0), some, ready)
        b.label(some)
        table = code.module.words([word for row in reader.units for word in row])
        copies = code.api("ptr", "pb_gather", [pointers, const("i64", len(reader.units)), table])
        b.store(copies, self.list, 8)
        b.condbr(b.icmp("ne", copies, NULL), made, none)
        b.label(none)
        code.api("ptr", "PyErr_NoMemory", [])
        b.ret(NULL)
        b.label(made)
        b.br(ready)
        b.label(ready)

    def drop(self) -> None:
        self.code.api("void", "pb_scatter", [self.code.field(self.list, 0)])

    def drop_any(self) -> None:
        """Drop them, and forget that they were there."""
        b = self.code.b
        some, done = b.new_label("copies"), b.new_label("go")
        b.condbr(b.icmp("ne", self.code.field(self.list, 0), NULL), some, done)
        b.label(some)
        self.drop()
        self.code.clear(self.list, 1)
        b.br(done)
        b.label(done)
