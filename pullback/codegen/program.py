"""The state of lowering one planned function: where values live, which kernels exist, which function is being
written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pullback.codegen.fill import copy
from pullback.codegen.kernel import Emission, KernelCode, emit_inline, emit_kernel
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.spec import KernelSpec
from pullback.codegen.tapes import Tapes
from pullback.codegen.unrolled import emit_unrolled, is_tiny
from pullback.errors import CodegenError
from pullback.ir.graph import Op, Value
from pullback.ir.plan import Plan, Slot
from pullback.record import record

ALIGNMENT = 64

ROOTS = ("args", "results", "arena", "stack")
"""The pointers every function of a program gets: the three of the native call, and the block of small buffers."""

LIBC = ("memcpy", "memset", "memmove")
"""What LLVM itself may call."""


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Cell(NamedTuple):
    """Where the address of a value is kept, as bytes behind the plan's arena, and of which buffer it is a part."""

    offset: int
    whole: Value


@record(frozen=True)
class Factors:
    """Where the factors of a matrix and their pivots are, in bytes behind the plan's arena; `first` makes them."""

    place: int
    pivots: int
    first: bool


class Program:
    """One planned function and the module it is written to.

    blas_int : bytes of the integers of the BLAS; 0: there is none
    blas_threads : can it be told how many threads to use
    scratch : most bytes that were in use at once behind the plan's arena
    top : bytes of it in use where the present op is lowered
    aliases : values that are another value, whatever the plan says
    cells : values whose address changes, as rows of an array do
    moving : slots whose address changes: where it is kept, as bytes behind the plan's arena
    products : number of different matrix products, once it was counted
    factors : solves that share the factors of their matrix
    """

    def __init__(self, plan: Plan, emission: Emission, name: str, blas_int: int, blas_threads: bool = False) -> None:
        self.plan = plan
        self.e = emission
        self.name = name
        self.blas_int = blas_int
        self.blas_threads = blas_threads
        self.scratch = 0
        self.top = 0
        self.aliases: dict[Value, Value] = {}
        self.cells: dict[Value, Cell] = {}
        self.moving: dict[Slot, int] = {}
        self.tapes: Tapes | None = None
        self.products: int | None = None
        self.factors: Mapping[Op, Factors] = {}
        self._kernels: dict[Hashable, KernelCode] = {}
        self._routines: dict[Hashable, str] = {}
        self._count = 0
        offsets, at = [], 0
        for size in plan.stack_bytes:
            offsets.append(at)
            at += aligned(size)
        self.stack_offsets, self.stack_bytes = offsets, at

    def new_name(self, hint: str) -> str:
        """A function name not used before."""
        self._count += 1
        return f"{self.name}.{hint}{self._count}"

    def kernel(self, spec: KernelSpec, distinct: bool, serial: bool) -> KernelCode:
        """The function of a kernel; equal ones exist once."""
        key = (spec.key(), distinct, serial)
        if key not in self._kernels:
            code = emit_kernel(self.e, self.new_name("kernel"), spec, distinct, serial)
            self._kernels[key] = code
        return self._kernels[key]

    def routine(self, key: Hashable, hint: str, pointers: int, emit: Callable[[Program, FunctionBuilder], None]) -> str:
        """A function of some pointers, written by `emit`; equal keys share one."""
        if key not in self._routines:
            params = [("ptr", f"p{k}") for k in range(pointers)]
            b = self.e.function(self.new_name(hint), params, attributes="noinline")
            emit(self, b)
            b.ret()
            self._routines[key] = b.name
        return self._routines[key]

    def chunk(self, key: Hashable, hint: str, emit: Callable[[FunctionBuilder], None]) -> str:
        """A function `(context, number)` for `run_parallel`; equal keys share one."""
        if key not in self._routines:
            b = self.e.function(self.new_name(hint), [("ptr", "context"), ("i64", "chunk")])
            emit(b)
            b.ret()
            self._routines[key] = b.name
        return self._routines[key]

    def want(self, size: int) -> None:
        """Provide for so many bytes behind those in use."""
        self.scratch = max(self.scratch, self.top + aligned(size))


@record
class Frame:
    """One function being written.

    roots : the pointers named in `ROOTS`
    local : are small buffers variables of this function, that LLVM may keep in registers
    serial : does the function run inside of a thread's chunk
    inline : are kernels written into this function
    """

    program: Program
    b: FunctionBuilder
    roots: Sequence[V]
    local: bool
    serial: bool = False
    inline: bool = False

    def __post_init__(self) -> None:
        self._stack: dict[int, V] = {}
        self._placed: dict[Value, V] = {}

    # ---------------------------------------------------------------- addresses

    def slot(self, value: Value) -> Slot:
        """Where the value lives.

        Raises
        ------
        CodegenError : the plan says nothing of it
        """
        value = self._named(value)
        slot = self.program.plan.slots.get(value)
        if slot is None:
            raise CodegenError(f"the memory plan has no place for {value!r}")
        return slot

    def _named(self, value: Value) -> Value:
        while value in self.program.aliases:
            value = self.program.aliases[value]
        return value

    def shares_slot(self, value: Value, other: Value) -> bool:
        """Does the memory plan give both values the same place; a value without a place takes the other's."""
        slots = self.program.plan.slots
        return value not in slots or slots[value] == slots.get(other)

    def alias(self, value: Value, other: Value) -> None:
        """From now on `value` is `other`."""
        self.program.aliases[value] = other

    @property
    def tapes(self) -> Tapes:
        """What loops keep for their reverse."""
        if self.program.tapes is None:
            raise CodegenError("the program was not prepared for tapes")
        return self.program.tapes

    def pointer(self, value: Value) -> V:
        """The address of a value's buffer."""
        value = self._named(value)
        if value in self._placed:
            return self._placed[value]
        cell = self.program.cells.get(value)
        if cell is not None:
            return self.b.load("ptr", self.behind_arena(cell.offset), 8)
        slot = self.slot(value)
        return self._constant(value) if slot.space == "constant" else self.place_of(slot)

    def place_of(self, slot: Slot) -> V:
        """The address of a slot that is no constant."""
        kept = self.program.moving.get(slot)
        if kept is not None:
            return self.b.load("ptr", self.behind_arena(kept), 8)
        if slot.space == "arena":
            return self._offset(self.roots[2], slot.offset)
        if slot.space == "stack":
            return self._offset(self._small(slot.number), slot.offset)
        return self._offset(self._listed(0 if slot.space == "arg" else 1, slot.number), slot.offset)

    def move(self, slot: Slot, pointer: V) -> None:
        """Let what lives in the slot, one of those that are moving, be at `pointer` from now on."""
        self.b.store(pointer, self.behind_arena(self.program.moving[slot]), 8)

    @contextmanager
    def moving(self, slots: Collection[Slot]) -> Iterator[None]:
        """Inside, the slots have the addresses that `move` gives them."""
        before = self.program.moving
        with self._reserved(8 * len(slots)) as offset:
            self.program.moving = {**before, **{slot: offset + 8 * k for k, slot in enumerate(slots)}}
            yield
            self.program.moving = before

    def place(self, value: Value, pointer: V) -> None:
        """From now on, in this function, the value is at `pointer`."""
        self._placed[value] = pointer

    def point(self, value: Value, pointer: V) -> None:
        """Let the value, which has a cell, live at `pointer` for now."""
        self.b.store(pointer, self.behind_arena(self.program.cells[value].offset), 8)

    @contextmanager
    def cells(self, values: Mapping[Value, Value]) -> Iterator[None]:
        """Cells for values that are parts of others; inside, `point` says which part."""
        with self._reserved(8 * len(values)) as offset:
            for number, (value, whole) in enumerate(values.items()):
                self.program.cells[value] = Cell(offset + 8 * number, whole)
            yield

    def behind_arena(self, distance: int) -> V:
        """An address behind the memory that the plan laid out."""
        return self._offset(self.roots[2], aligned(self.program.plan.arena_bytes) + distance)

    def _offset(self, pointer: V, distance: int) -> V:
        return pointer if distance == 0 else self.b.gep("i8", pointer, distance, flags="")

    def _listed(self, root: int, number: int) -> V:
        """A pointer from the lists of arguments or results; read anew each time, which LLVM merges."""
        node = self.b.module.metadata("!{}")
        return self.b.load("ptr", self.b.gep("ptr", self.roots[root], number), 8, f", !invariant.load {node}")

    def _small(self, number: int) -> V:
        if not self.local:
            return self._offset(self.roots[3], self.program.stack_offsets[number])
        if number not in self._stack:
            size = max(1, self.program.plan.stack_bytes[number])
            self._stack[number] = self.b.alloca(f"[{size} x i8]")
        return self._stack[number]

    def _constant(self, value: Value) -> V:
        if value.op is None or value.op.name != "constant":
            raise CodegenError(f"{value!r} is planned as a constant but is none")
        return self.b.module.constant(value.op.attrs["value"].array.tobytes())

    def is_constant(self, value: Value) -> bool:
        """Does the value lie in the object itself."""
        return self.slot(value).space == "constant"

    @contextmanager
    def scratch(self, size: int) -> Iterator[V]:
        """Memory for use inside: the address of `size` bytes, aligned to 64."""
        if self.serial:  # threads must not share it
            yield self.b.alloca(f"[{max(1, size)} x i8]")
            return
        with self._reserved(size) as offset:
            yield self.behind_arena(offset)

    @contextmanager
    def single_function(self) -> Iterator[None]:
        """What is lowered inside is all written into this function."""
        before = self.local, self.inline
        self.local = self.inline = True
        yield
        self.local, self.inline = before

    @contextmanager
    def _reserved(self, size: int) -> Iterator[int]:
        program = self.program
        program.want(size)
        program.top += aligned(size)
        yield program.top - aligned(size)
        program.top -= aligned(size)

    # ---------------------------------------------------------------- kernels

    def run(self, spec: KernelSpec, operands: Sequence[V], results: Sequence[V], distinct: bool) -> None:
        """Emit a kernel here, or a call of it."""
        if is_tiny(spec):
            emit_unrolled(self.program.e.scalars(self.b, spec), spec, operands, results)
            return
        if self.inline:
            emit_inline(self.program.e, self.b, spec, operands, results)
            return
        code = self.program.kernel(spec, distinct, self.serial)
        self.program.want(code.scratch)
        self.b.call("void", code.name, [*operands, *results, self.behind_arena(self.program.top)])

    def run_on(self, spec: KernelSpec, operands: Sequence[Value], results: Sequence[Value]) -> None:
        """Run a kernel on the buffers of values."""
        distinct = not {self._home(v) for v in operands} & {self._home(v) for v in results}
        self.run(spec, [self.pointer(v) for v in operands], [self.pointer(v) for v in results], distinct)

    def _home(self, value: Value) -> Slot:
        while value in self.program.aliases or value in self.program.cells:
            cell = self.program.cells.get(value)
            value = self.program.aliases[value] if cell is None else cell.whole
        return self.slot(value)

    def same_place(self, one: Value, other: Value) -> bool:
        """Do both values live in one buffer."""
        one, other = self._named(one), self._named(other)
        if one is other:
            return True
        if any(value in self.program.cells or value in self._placed for value in (one, other)):
            return False
        return self.slot(one) == self.slot(other)

    def call(
        self,
        key: Hashable,
        hint: str,
        operands: Sequence[Value],
        results: Sequence[Value],
        emit: Callable[[Program, FunctionBuilder], None],
        more: Sequence[V] = (),
    ) -> None:
        """Call a routine on the buffers of values and `more` pointers; it is written by `emit` where it is new."""
        pointers = [*(self.pointer(v) for v in operands), *(self.pointer(v) for v in results), *more]
        name = self.program.routine(key, hint, len(pointers), emit)
        self.b.call("void", name, pointers)

    def copy(self, target: Value, source: Value) -> None:
        """Copy a value's buffer, unless it is the same one."""
        if not self.same_place(target, source):
            copy(self.b, self.pointer(target), self.pointer(source), source.type.nbytes, source.type.dtype.itemsize)

    def copy_all(self, pairs: Sequence[tuple[Value, Value]]) -> None:
        """Copy values (target, source) as if at once: a target may be another pair's source."""
        rest = [(target, source) for target, source in pairs if not self.same_place(target, source)]
        while rest:
            free = [pair for pair in rest if not self._is_read(pair[0], rest)]
            if not free:
                self._copy_around(rest)
                return
            for pair in free:
                self.copy(*pair)
            rest = [pair for pair in rest if pair not in free]

    def _is_read(self, target: Value, pairs: Sequence[tuple[Value, Value]]) -> bool:
        return any(self.same_place(target, source) for _, source in pairs)

    def _copy_around(self, pairs: Sequence[tuple[Value, Value]]) -> None:
        """Values that change places, by way of scratch memory."""
        sizes = [aligned(source.type.nbytes) for _, source in pairs]
        with self.scratch(sum(sizes)) as middle:
            at = 0
            places = []
            for (_, source), size in zip(pairs, sizes, strict=True):
                places.append(self._offset(middle, at))
                copy(self.b, places[-1], self.pointer(source), source.type.nbytes, source.type.dtype.itemsize)
                at += size
            for (target, _), place in zip(pairs, places, strict=True):
                copy(self.b, self.pointer(target), place, target.type.nbytes, target.type.dtype.itemsize)
