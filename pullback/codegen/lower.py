"""From a planned function to LLVM: one exported function `i64 @NAME(ptr args, ptr results, ptr arena)`.

Long functions are cut: LLVM's time grows faster than a function's length. The pieces share the pointers of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pullback.codegen.control import CONTROL
from pullback.codegen.fill import copy
from pullback.codegen.kernel import Emission
from pullback.codegen.library import LIBRARY
from pullback.codegen.library.lapack_factors import shared_factors
from pullback.codegen.llvm import Module, const
from pullback.codegen.program import LIBC, ROOTS, Frame, Program, aligned
from pullback.codegen.rows import lower_rows
from pullback.codegen.single import Pieces, pieces_of
from pullback.codegen.spec import kernel_spec
from pullback.codegen.tapes import Tapes, uses_tapes
from pullback.codegen.target import Target
from pullback.codegen.unrolled import is_tiny
from pullback.errors import CodegenError
from pullback.ir.graph import Op, Region
from pullback.ir.opdef import Control, Library
from pullback.ir.plan import Plan
from pullback.record import record

LONGEST_FUNCTION = 600
"""Instructions after which a new piece begins."""

SHORT_PROGRAM = 64
"""Programs of so many ops (kernels count once) are one function, in which small buffers can become registers."""


STACK_ALIGNMENT = " alignstack(64)"
"""Vectors that are spilled then stay within cache lines: half the time of long bodies with calls."""


@record(frozen=True, eq=False)
class Lowered:
    """A module that computes a planned function.

    module : also takes the native entry, if there is to be one
    kernel : name of the exported function
    arena_bytes : scratch memory it wants
    symbols : externals to bind when it is loaded
    """

    module: Module
    kernel: str
    arena_bytes: int
    symbols: tuple[str, ...]

    @property
    def text(self) -> str:
        """LLVM assembly."""
        return str(self.module)


def lower(
    plan: Plan,
    target: Target,
    name: str = "kernel",
    module: Module | None = None,
    blas_int: int = 8,
    blas_threads: bool = False,
    contracts: bool = False,
) -> Lowered:
    """Emit a planned function.

    Parameters
    ----------
    plan : with a slot for every value that is not the inside of a kernel
    name : of the exported function
    module : where to put it; a new one by default
    blas_int : bytes of the integers of the BLAS that `cblas_` symbols will be bound to; 0: do without
    blas_threads : can that BLAS be told how many threads to use
    contracts : may products and the sums they go into be rounded once

    Raises
    ------
    CodegenError : an op that cannot be lowered, or a value without a place
    """
    module = module or target.module(name)
    module.function_attributes += STACK_ALIGNMENT
    program = Program(plan, Emission(module, target, contracts), name, blas_int, blas_threads)
    program.factors, size = shared_factors(plan.function, target, blas_int)
    program.want(size)
    program.top += size
    if uses_tapes(plan):
        _emit_with_tapes(program, name)
    else:
        _emit_function(program, name, "")
    program.e.library.finish()
    arena = aligned(plan.arena_bytes) + program.scratch
    return Lowered(module, name, arena, tuple(sorted({*program.e.externals, *LIBC})))


def _emit_with_tapes(program: Program, name: str) -> None:
    """The function proper, inside of one that frees its tapes, however it ends."""
    program.want(8)
    program.tapes = Tapes(program, program.top)
    program.top += aligned(8)
    b = program.e.module.function(name, "i64", [("ptr noalias", root) for root in ROOTS[:3]])
    frame = Frame(program, b, (*b.params, const("ptr", 0)), False)
    b.store(const("ptr", 0), program.tapes.chain(frame), 8)
    _emit_function(program, f"{name}.body", "internal")
    status = b.call("i64", f"{name}.body", b.params)
    program.tapes.free(frame)
    b.ret(status)


def _emit_function(program: Program, name: str, linkage: str) -> None:
    plan = program.plan
    b = program.e.module.function(name, "i64", [("ptr noalias", root) for root in ROOTS[:3]], linkage)
    ops = plan.function.ops
    local = _is_short(plan.function.body)
    stack = const("ptr", 0) if local or not program.stack_bytes else b.alloca(f"[{program.stack_bytes} x i8]")
    frame = Frame(program, b, (*b.params, stack), local)
    lower_ops(frame, ops)
    for number, value in plan.result_copies:
        pointer = b.load("ptr", b.gep("ptr", frame.roots[1], number), 8)
        copy(b, pointer, frame.pointer(value), value.type.nbytes, value.type.dtype.itemsize)
    b.ret(0)


def _is_short(body: Region) -> bool:
    """Is the program one function, with small buffers that can become registers."""
    ops = list(_ops_outside_kernels(body))
    return len(ops) <= SHORT_PROGRAM and sum(_instructions(op) for op in ops) <= LONGEST_FUNCTION


def _ops_outside_kernels(region: Region) -> Iterator[Op]:
    stack = [region]
    while stack:
        for op in stack.pop().ops:
            yield op
            if op.name != "kernel":
                stack.extend(op.regions)


def _instructions(op: Op) -> int:
    """A guess of the length of an op's code at its place."""
    if op.name != "kernel":
        return 4
    spec = kernel_spec(op)
    return spec.points * spec.weight if is_tiny(spec) else 4


# ------------------------------------------------------------------ ops in order


def lower_ops(frame: Frame, ops: Sequence[Op]) -> None:
    """Emit ops one after the other, in pieces if they are many."""
    if frame.local or len(ops) <= SHORT_PROGRAM:
        for op in ops:
            lower_op(frame, op)
        return
    rest = iter(ops)
    while _lower_piece(frame, rest):
        pass


def _lower_piece(frame: Frame, ops: Iterator[Op]) -> bool:
    """The next ops, as a function of their own; False where none are left."""
    first = next(ops, None)
    if first is None:
        return False
    program = frame.program
    b = program.e.function(program.new_name("part"), [("ptr noalias", root) for root in ROOTS], "i64", "noinline")
    piece = Frame(program, b, b.params, False, frame.serial)
    lower_op(piece, first)
    while b.instructions < LONGEST_FUNCTION:
        op = next(ops, None)
        if op is None:
            break
        lower_op(piece, op)
    b.ret(0)
    call_piece(frame, b.name)
    return True


def call_piece(frame: Frame, name: str) -> None:
    """Call a piece, and return at once if it gives a status."""
    b = frame.b
    status = b.call("i64", name, frame.roots)
    leave, stay = b.new_label("leave"), b.new_label("stay")
    b.condbr(b.icmp("eq", status, 0), stay, leave)
    b.label(leave)
    b.ret(status)
    b.label(stay)


def lower_op(frame: Frame, op: Op) -> None:
    """Emit one op."""
    if op.name == "kernel":
        frame.run_on(kernel_spec(op), op.operands, op.results)
        return
    if op.name == "reshape":
        frame.copy(op.results[0], op.operands[0])
        return
    pieces = pieces_of(op)
    if pieces is not None:
        _run_pieces(frame, op, pieces)
        return
    match op.opdef.lower:
        case Library(name) if name in LIBRARY:
            LIBRARY[name](frame, op)
        case Control("rows"):
            lower_rows(frame, op, lower_ops)
        case Control(name) if name in CONTROL:
            CONTROL[name](frame, op, lower_ops)
        case _:
            raise CodegenError(f"no lowering for {op.name} at {op.loc}")


def _run_pieces(frame: Frame, op: Op, pieces: Pieces) -> None:
    (result,) = op.results
    if pieces.base == -1:
        frame.b.memset(frame.pointer(result), 0, result.type.nbytes, result.type.dtype.itemsize)
    elif pieces.base is not None:
        frame.copy(result, op.operands[pieces.base])
    for piece in pieces.kernels:
        if piece.spec.points or piece.spec.stores[0].kind != "store":
            frame.run_on(piece.spec, [op.operands[k] for k in piece.operands], [result])
