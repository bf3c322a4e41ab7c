"""Arithmetic, casts, memory, vectors and loops."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.codegen.llvm.flow import Loop
from pullback.codegen.llvm.instructions import Instructions
from pullback.codegen.llvm.values import (
    Operand,
    V,
    as_value,
    const,
    element_of,
    intrinsic_name,
    lanes_of,
    suffix_of,
    undefined,
    vector_type,
    with_element,
)


class FunctionBuilder(Instructions):
    """Appends instructions to one function of a module; see `Module.function`.

    One instruction costs about a microsecond. Names are LLVM's; a trailing underscore where Python has the word.
    """

    def _binary(self, head: str, x: V, y: Operand) -> V:
        other = y.name if isinstance(y, V) else const(x.type, y).name
        self._count = count = self._count + 1
        name = f"%t{count}"
        self._lines.append(f"  {name} = {head} {x.type} {x.name}, {other}")
        return V(name, x.type)

    def loop(
        self, lo: Operand, hi: Operand, step: int = 1, carry: Sequence[V] = (), metadata: str = "", index: str = "i64"
    ) -> Loop:
        """A loop over `range(lo, hi, step)`, `step > 0`: `with b.loop(0, n) as loop: ... loop.index ...`.

        Carried values: `loop.carry` inside, `loop.turn(*next)` before the end, `loop.results` behind.
        """
        if step <= 0:
            raise ValueError(f"the step of a loop must be positive, found {step}")
        guarded = isinstance(lo, V) or isinstance(hi, V) or not lo < hi
        bounds = (as_value(index, lo), as_value(index, hi), step)
        return Loop(self, bounds, carry, guarded, metadata)

    # --- floating point -----------------------------------------------------------------------------------------

    def fadd(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary(_flagged("fadd", flags), x, y)

    def fsub(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary(_flagged("fsub", flags), x, y)

    def rfsub(self, x: Operand, y: V, flags: str = "") -> V:
        """`x - y` where `x` may be a number."""
        return self._binary(_flagged("fsub", flags), as_value(y.type, x), y)

    def fmul(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary(_flagged("fmul", flags), x, y)

    def fdiv(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary(_flagged("fdiv", flags), x, y)

    def rfdiv(self, x: Operand, y: V, flags: str = "") -> V:
        """`x / y` where `x` may be a number."""
        return self._binary(_flagged("fdiv", flags), as_value(y.type, x), y)

    def frem(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary(_flagged("frem", flags), x, y)

    def fneg(self, x: V) -> V:
        return self.emit(x.type, f"fneg {x.type} {x.name}")

    def fma(self, x: V, y: Operand, z: Operand) -> V:
        """`x * y + z` rounded once."""
        t = x.type
        factor = y.name if isinstance(y, V) else const(t, y).name
        term = z.name if isinstance(z, V) else const(t, z).name
        full = intrinsic_name("fma", t)
        self.module.declare(full, t, (t, t, t))
        self._count = count = self._count + 1
        name = f"%t{count}"
        self._lines.append(f"  {name} = call {t} @{full}({t} {x.name}, {t} {factor}, {t} {term})")
        return V(name, t)

    def fcmp(self, predicate: str, x: V, y: Operand) -> V:
        other = as_value(x.type, y)
        return self.emit(with_element(x.type, "i1"), f"fcmp {predicate} {x.type} {x.name}, {other.name}")

    # --- integers -----------------------------------------------------------------------------------------------

    def add(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary(_flagged("add", flags), x, y)

    def sub(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary(_flagged("sub", flags), x, y)

    def rsub(self, x: Operand, y: V, flags: str = "") -> V:
        """`x - y` where `x` may be a number."""
        return self._binary(_flagged("sub", flags), as_value(y.type, x), y)

    def mul(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary(_flagged("mul", flags), x, y)

    def sdiv(self, x: V, y: Operand) -> V:
        return self._binary("sdiv", x, y)

    def udiv(self, x: V, y: Operand) -> V:
        return self._binary("udiv", x, y)

    def srem(self, x: V, y: Operand) -> V:
        return self._binary("srem", x, y)

    def urem(self, x: V, y: Operand) -> V:
        return self._binary("urem", x, y)

    def and_(self, x: V, y: Operand) -> V:
        return self._binary("and", x, y)

    def or_(self, x: V, y: Operand) -> V:
        return self._binary("or", x, y)

    def xor(self, x: V, y: Operand) -> V:
        return self._binary("xor", x, y)

    def not_(self, x: V) -> V:
        return self._binary("xor", x, True if element_of(x.type) == "i1" else -1)

    def shl(self, x: V, y: Operand) -> V:
        return self._binary("shl", x, y)

    def lshr(self, x: V, y: Operand) -> V:
        return self._binary("lshr", x, y)

    def ashr(self, x: V, y: Operand) -> V:
        return self._binary("ashr", x, y)

    def icmp(self, predicate: str, x: V, y: Operand) -> V:
        other = as_value(x.type, y)
        return self.emit(with_element(x.type, "i1"), f"icmp {predicate} {x.type} {x.name}, {other.name}")

    def select(self, condition: V, x: Operand, y: Operand) -> V:
        """`x` where `condition`, else `y`; at least one of them a `V`. A scalar condition may choose vectors."""
        type_ = x.type if isinstance(x, V) else y.type if isinstance(y, V) else ""
        if not type_:
            raise TypeError(f"select needs one operand with a type, found {x!r} and {y!r}")
        one, other = as_value(type_, x), as_value(type_, y)
        return self.emit(type_, f"select {condition.type} {condition.name}, {type_} {one.name}, {type_} {other.name}")

    # --- casts --------------------------------------------------------------------------------------------------

    def cast(self, kind: str, x: V, type_: str) -> V:
        """`kind` is LLVM's word: bitcast, sitofp, uitofp, fptosi, fptoui, fpext, fptrunc, zext, sext, trunc, ptrtoint,
        inttoptr. A scalar `type_` means that element in as many lanes as `x` has (except for bitcast)."""
        if kind != "bitcast" and not type_.startswith("<"):
            type_ = with_element(x.type, type_)
        return self.emit(type_, f"{kind} {x.type} {x.name} to {type_}")

    def bitcast(self, x: V, type_: str) -> V:
        return self.cast("bitcast", x, type_)

    # --- memory -------------------------------------------------------------------------------------------------

    def load(self, type_: str, pointer: V, align: int, metadata: str = "") -> V:
        """`metadata` is appended as it stands: `, !alias.scope !1, !noalias !2`, `, !nontemporal !3`."""
        return self.emit(type_, f"load {type_}, ptr {pointer.name}, align {align}{metadata}")

    def store(self, value: V, pointer: V, align: int, metadata: str = "") -> None:
        self._lines.append(f"  store {value.type} {value.name}, ptr {pointer.name}, align {align}{metadata}")

    def gep(self, element: str, pointer: V, *indices: Operand, flags: str = "inbounds") -> V:
        """Address of `pointer[indices]` counted in `element`; numbers are i64. A vector index gives a vector of ptr."""
        items = [as_value("i64", index) for index in indices]
        type_ = next((with_element(i.type, "ptr") for i in (pointer, *items) if i.type.startswith("<")), "ptr")
        text = ", ".join(f"{item.type} {item.name}" for item in items)
        return self.emit(type_, f"getelementptr {flags} {element}, {pointer.type} {pointer.name}, {text}")

    def alloca(self, type_: str, count: int = 1, align: int = 64) -> V:
        """Stack memory, allocated once at the function's entry wherever this is called from."""
        self._count += 1
        name = f"%stack{self._count}"
        self._entry.append(f"  {name} = alloca {type_}, i64 {count}, align {align}")
        return V(name, "ptr")

    def masked_load(self, type_: str, pointer: V, align: int, mask: V, other: Operand = 0) -> V:
        return self._call(
            type_,
            f"llvm.masked.load.{suffix_of(type_)}.p0",
            [pointer, mask, as_value(type_, other)],
            {0: f"align {align}"},
        )

    def masked_store(self, value: V, pointer: V, align: int, mask: V) -> None:
        name = f"llvm.masked.store.{suffix_of(value.type)}.p0"
        self._call("void", name, [value, pointer, mask], {1: f"align {align}"})

    def gather(self, type_: str, pointers: V, align: int, mask: V | None = None, other: Operand = 0) -> V:
        """One element from each of the `pointers`; where `mask` is false, `other`. No mask: all lanes."""
        seen = mask or const(with_element(type_, "i1"), True)
        name = f"llvm.masked.gather.{suffix_of(type_)}.{suffix_of(pointers.type)}"
        return self._call(type_, name, [pointers, seen, as_value(type_, other)], {0: f"align {align}"})

    def scatter(self, value: V, pointers: V, align: int, mask: V | None = None) -> None:
        """Store lane after lane: where pointers coincide the last lane wins."""
        seen = mask or const(with_element(value.type, "i1"), True)
        name = f"llvm.masked.scatter.{suffix_of(value.type)}.{suffix_of(pointers.type)}"
        self._call("void", name, [value, pointers, seen], {1: f"align {align}"})

    def memcpy(self, target: V, source: V, size: Operand, align: int = 1) -> None:
        attributes = {0: f"align {align}", 1: f"align {align}"}
        operands = [target, source, as_value("i64", size), const("i1", False)]
        self._call("void", "llvm.memcpy.p0.p0.i64", operands, attributes)

    def memset(self, target: V, byte: Operand, size: Operand, align: int = 1) -> None:
        operands = [target, as_value("i8", byte), as_value("i64", size), const("i1", False)]
        self._call("void", "llvm.memset.p0.i64", operands, {0: f"align {align}"})

    # --- vectors ------------------------------------------------------------------------------------------------

    def extract(self, vector: V, lane: Operand) -> V:
        index = as_value("i64", lane)
        text = f"extractelement {vector.type} {vector.name}, {index.type} {index.name}"
        return self.emit(element_of(vector.type), text)

    def insert(self, vector: V, value: Operand, lane: Operand) -> V:
        index, item = as_value("i64", lane), as_value(element_of(vector.type), value)
        text = f"insertelement {vector.type} {vector.name}, {item.type} {item.name}, {index.type} {index.name}"
        return self.emit(vector.type, text)

    def shuffle(self, x: V, y: V, lanes: Sequence[int]) -> V:
        """Lanes of `x` then `y`, by number; -1 leaves a lane undefined."""
        mask = ", ".join(f"i32 {lane}" if lane >= 0 else "i32 poison" for lane in lanes)
        text = f"shufflevector {x.type} {x.name}, {y.type} {y.name}, <{len(lanes)} x i32> <{mask}>"
        return self.emit(vector_type(element_of(x.type), len(lanes)), text)

    def splat(self, x: V, lanes: int) -> V:
        """`x` in every lane; one lane gives `x` itself."""
        if lanes == 1:
            return x
        vector = self.insert(undefined(vector_type(x.type, lanes)), x, 0)
        return self.shuffle(vector, undefined(vector.type), [0] * lanes)

    def reduce(self, kind: str, x: V, start: Operand | None = None, flags: str = "") -> V:
        """`llvm.vector.reduce.<kind>`: add mul and or xor smin smax umin umax, fadd fmul (with `start`), fmin fmax
        (NaN loses) and fminimum fmaximum (NaN wins). A scalar is its own reduction (then `start` is joined to it)."""
        element = element_of(x.type)
        if lanes_of(x.type) == 1:
            return x if start is None else self._binary(_flagged(kind, flags), as_value(element, start), x)
        operands = [x] if start is None else [as_value(element, start), x]
        return self._call(element, f"llvm.vector.reduce.{kind}.{suffix_of(x.type)}", operands, {}, flags)

    def any(self, mask: V) -> V:
        """i1: is any lane of the mask true."""
        return self.reduce("or", mask)


def _flagged(operation: str, flags: str) -> str:
    return f"{operation} {flags}" if flags else operation
