"""The native entry of a compiled signature: Python objects in, Python objects out, as LLVM text.

`ptr entry(ptr args, i64 count, ptr names)` gets the arguments as CPython's vectorcall passes them: `count` positional
ones, then those whose names are in the tuple `names` (null: none). It returns

- a new reference: the result;
- null: an exception is set (memory ran out);
- an odd number `status << 1 | 1`: nothing was done that counts. Status 0: the arguments do not fit; k > 0: guard k was
  not as traced; negative: an error of the kernel.

Entries are compiled without optimisation: that takes a fifth of the time and runs as fast, for there is nothing in
them but loads, comparisons and calls. Objects are read through offsets that the runtime has checked (`Layout`), made
and counted through the C API only.
Nothing is allocated before all arguments were found to fit. Code that can run Python (allocation may start the garbage
collector) comes after the last use of a borrowed reference; where it cannot, or the kernel runs without the
interpreter's lock, what was borrowed from lists and dicts is held meanwhile.
"""

from __future__ import annotations

from pullback.codegen.entry_arguments import ArgumentReader
from pullback.codegen.entry_copies import Copies
from pullback.codegen.entry_results import LARGE_RESULT_BYTES, ResultMaker
from pullback.codegen.llvm import Module, V, const
from pullback.codegen.object import Kind, Layout, Signature
from pullback.codegen.pyobject import NULL, UNOPTIMISED, ObjectCode

STACK_ARENA_BYTES = 16 * 1024
"""Scratch below this lies on the stack; above, in a block kept between calls."""


def emit_entry(
    module: Module,
    name: str,
    kernel: str,
    signature: Signature,
    arena_bytes: int,
    layout: Layout,
    releases_gil: bool = False,
) -> tuple[str, ...]:
    """Add the entry `name`, which calls `kernel`, to the module that defines the kernel.

    Parameters
    ----------
    arena_bytes : scratch the kernel wants
    releases_gil : let other Python threads run while the kernel does; worth its 50 ns from some microseconds on

    Returns
    -------
    The external symbols the entry needs, by the names the runtime knows.

    Raises
    ------
    CodegenError : a Python number cannot stand for the dtype that its `ArgSpec` or `ResultSpec` names
    """
    emitter = _Entry(module, name, signature, layout)
    emitter.emit(kernel, arena_bytes, releases_gil)
    return tuple(emitter.code.symbols)


class _Entry:
    """Emits one entry; the blocks follow one another in the order of the work."""

    def __init__(self, module: Module, name: str, signature: Signature, layout: Layout) -> None:
        params = [("ptr", "args"), ("i64", "count"), ("ptr", "names")]
        self.b = module.function(name, "ptr", params, attributes=UNOPTIMISED)
        self.code = ObjectCode(module, self.b, layout)
        self.signature = signature
        self.results = signature.result_leaves()

    def emit(self, kernel: str, arena_bytes: int, releases_gil: bool) -> None:
        b, code = self.b, self.code
        args, count, names = b.params
        reader = ArgumentReader(code, self.signature.key_slots())
        if self.signature.watched:
            reader.require_unchanged()
        code.require(b.icmp("eq", count, len(self.signature.args) - len(self.signature.keywords)))
        reader.require_names(names, self.signature.keywords)
        data: list[V] = []
        for position, node in enumerate(self.signature.args):
            data += reader.unpack(node, code.field(args, 8 * position), in_mutable=False)
        data += [reader.captured(c.type, code.slot_object(c.slot)) for c in self.signature.captured]
        pointers = code.pointers(data)
        copies = Copies(code, reader, pointers) if reader.tagged else None
        held = self.hold(reader.mutable) if releases_gil or self.makes_large_arrays() else None
        maker = ResultMaker(code, self.signature)
        targets = maker.targets()
        arena = self.take_arena(arena_bytes)
        status = self.run(kernel, [pointers, code.pointers(targets), arena], releases_gil)
        if arena_bytes >= STACK_ARENA_BYTES:
            code.api("void", "pb_give", [arena])
        if copies:
            copies.drop_any()
        if held:
            self.drop(*held)
            code.clear(*held)
        code.leave_unless(b.icmp("eq", status, 0), "refused")
        b.ret(maker.root(targets))
        self.endings(status, maker, held, copies)

    def makes_large_arrays(self) -> bool:
        """Allocating those changes a context variable, for which Python allocates objects of its own."""
        return any(spec.kind == Kind.ARRAY and spec.type.nbytes >= LARGE_RESULT_BYTES for spec in self.results)

    def hold(self, borrowed: list[V]) -> tuple[V, int] | None:
        """Own what lists and dicts hold until the kernel is done."""
        for item in borrowed:
            self.code.api("void", "Py_IncRef", [item])
        return (self.code.pointers(borrowed), len(borrowed)) if borrowed else None

    def drop(self, array: V, count: int) -> None:
        self.code.api("void", "pb_drop", [array, const("i64", count)])

    def take_arena(self, size: int) -> V:
        if size == 0:
            return NULL
        if size < STACK_ARENA_BYTES:
            return self.b.alloca("i8", size, align=64)
        b = self.b
        arena = self.code.api("ptr", "pb_take", [const("i64", size)])
        there, gone = b.new_label("arena"), b.new_label("gone")
        b.condbr(b.icmp("ne", arena, NULL), there, gone)
        b.label(gone)
        self.code.api("ptr", "PyErr_NoMemory", [])
        b.br("failed")
        b.label(there)
        return arena

    def run(self, kernel: str, args: list[V], releases_gil: bool) -> V:
        if not releases_gil:
            return self.b.call("i64", kernel, args)
        state = self.code.api("ptr", "PyEval_SaveThread", [])
        status = self.b.call("i64", kernel, args)
        self.code.api("void", "PyEval_RestoreThread", [state])
        return status

    def endings(self, status: V, maker: ResultMaker, held: tuple[V, int] | None, copies: Copies | None) -> None:
        b = self.b
        b.label("refused")
        self.drop(maker.owned, maker.count)
        b.ret(b.cast("inttoptr", b.or_(b.shl(status, 1), 1), "ptr"))
        b.label("failed")
        self.drop(maker.owned, maker.count)
        if copies:
            copies.drop()
        if held:
            self.drop(*held)
        b.ret(NULL)
        b.label("misfit")
        b.ret(const("ptr", 1))
