"""The state of lowering one planned function: where values live, which kernels exist, which function is being written."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pullback.codegen.fill import copy
from pullback.codegen.kernel import Emission, KernelCode, emit_kernel
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.spec import KernelSpec
from pullback.codegen.unrolled import emit_unrolled, is_tiny
from pullback.errors import CodegenError
from pullback.ir.graph import Value
from pullback.ir.plan import Plan, Slot

ALIGNMENT = 64

ROOTS = ("args", "results", "arena", "stack")
"""The pointers every function of a program gets: the three of the native call, and the block of small buffers."""

LIBC = ("memcpy", "memset", "memmove", "fmod", "fmodf")
"""What LLVM itself may call."""


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Program:
    """One planned function and the module it is written to.

    scratch : bytes that kernels want beside the plan's arena, at its end
    """

    def __init__(self, plan: Plan, emission: Emission, name: str) -> None:
        self.plan = plan
        self.e = emission
        self.name = name
        self.scratch = 0
        self._kernels: dict[Hashable, KernelCode] = {}
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
            self.scratch = max(self.scratch, aligned(code.scratch))
        return self._kernels[key]


@dataclass
class Frame:
    """One function being written.

    roots : the pointers named in `ROOTS`
    local : are small buffers variables of this function, that LLVM may keep in registers
    serial : does the function run inside of a thread's chunk
    """

    program: Program
    b: FunctionBuilder
    roots: Sequence[V]
    local: bool
    serial: bool = False

    def __post_init__(self) -> None:
        self._stack: dict[int, V] = {}
        self._fixed: dict[tuple[str, int], V] = {}
        self._overrides: dict[Value, V] = {}

    # ---------------------------------------------------------------- addresses

    def slot(self, value: Value) -> Slot:
        """Where the value lives.

        Raises
        ------
        CodegenError : the plan says nothing of it
        """
        slot = self.program.plan.slots.get(value)
        if slot is None:
            raise CodegenError(f"the memory plan has no place for {value!r}")
        return slot

    def place(self, value: Value, pointer: V) -> None:
        """From now on the value lives at `pointer`, whatever the plan says."""
        self._overrides[value] = pointer

    def pointer(self, value: Value) -> V:
        """The address of a value's buffer."""
        if value in self._overrides:
            return self._overrides[value]
        slot = self.slot(value)
        match slot.space:
            case "arg":
                return self._offset(self._listed(0, slot.number), slot.offset)
            case "result":
                return self._offset(self._listed(1, slot.number), slot.offset)
            case "arena":
                return self._offset(self.roots[2], slot.offset)
            case "stack":
                return self._offset(self._small(slot.number), slot.offset)
            case "constant":
                return self._constant(value)

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
        return value not in self._overrides and self.slot(value).space == "constant"

    def scratch(self) -> V:
        """The address of the program's scratch memory."""
        return self._offset(self.roots[2], aligned(self.program.plan.arena_bytes))

    # ---------------------------------------------------------------- kernels

    def run(self, spec: KernelSpec, operands: Sequence[V], results: Sequence[V], distinct: bool) -> None:
        """Emit a kernel here, or a call of it."""
        if is_tiny(spec):
            emit_unrolled(self.program.e.scalars(self.b, spec), spec, operands, results)
            return
        code = self.program.kernel(spec, distinct, self.serial)
        self.b.call("void", code.name, [*operands, *results, self.scratch()])

    def run_on(self, spec: KernelSpec, operands: Sequence[Value], results: Sequence[Value]) -> None:
        """Run a kernel on the buffers of values."""
        distinct = not {self._home(v) for v in operands} & {self._home(v) for v in results}
        self.run(spec, [self.pointer(v) for v in operands], [self.pointer(v) for v in results], distinct)

    def _home(self, value: Value) -> object:
        return self._overrides.get(value) or self.slot(value)

    def same_place(self, one: Value, other: Value) -> bool:
        """Do both values live in one buffer."""
        return one is other or self._home(one) == self._home(other)

    def copy(self, target: Value, source: Value) -> None:
        """Copy a value's buffer, unless it is the same one."""
        if not self.same_place(target, source):
            copy(self.b, self.pointer(target), self.pointer(source), source.type.nbytes, source.type.dtype.itemsize)
