"""A small, fast builder of LLVM IR text.

A module is a list of strings; nothing is modelled that a string can hold. One instruction costs about one
microsecond, a tenth of what an object model of LLVM costs, and the text is what `dump` shows.

Values are `V`: the printed name and the printed type. Wherever a value is expected beside another one, a Python
number may stand for a constant of the same type (`b.fma(x, x, 1.0)`); vectors get splats.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from sys import byteorder
from types import TracebackType
from typing import NamedTuple, TypeAlias


class V(NamedTuple):
    """An LLVM value or constant: its name as printed (`%t3`, `@table`, `0x3FF...`) and its type as printed."""

    name: str
    type: str


Operand: TypeAlias = V | int | float

_HEX_FLOATS = frozenset({"double", "float"})


def vector_type(element: str, lanes: int) -> str:
    """`<lanes x element>`, or `element` itself for one lane."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


@cache
def lanes_of(type_: str) -> int:
    """Number of lanes of a vector type; 1 for a scalar."""
    return int(type_[1 : type_.index(" ")]) if type_.startswith("<") else 1


@cache
def element_of(type_: str) -> str:
    """Element type of a vector type; a scalar type itself."""
    return type_[type_.index(" x ") + 3 : -1] if type_.startswith("<") else type_


@cache
def with_element(type_: str, element: str) -> str:
    """The type with the lanes of `type_` and the given element type."""
    return vector_type(element, lanes_of(type_))


@cache
def suffix_of(type_: str) -> str:
    """The mangled suffix of overloaded intrinsics: `v8f64`, `i64`, `p0`."""
    element = element_of(type_)
    short = {"double": "f64", "float": "f32", "half": "f16", "ptr": "p0"}.get(element, element)
    return f"v{lanes_of(type_)}{short}" if type_.startswith("<") else short


@cache
def _intrinsic_name(name: str, type_: str) -> str:
    return f"llvm.{name}.{suffix_of(type_)}"


def scalar_literal(element: str, number: float) -> str:
    """A scalar constant as LLVM reads it: floats as exact hexadecimal, bools as words."""
    if element in _HEX_FLOATS:
        if element == "float":
            (number,) = struct.unpack("<f", struct.pack("<f", number))
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if element == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
    if element == "i1":
        return "true" if number else "false"
    if element == "ptr":
        return "null" if not number else f"inttoptr (i64 {int(number)} to ptr)"
    return str(int(number))


def const(type_: str, number: float) -> V:
    """A constant of `type_`: `number` in every lane."""
    return _remembered_const(type_, number) if number else _const(type_, number)  # 0.0 and -0.0 are one key


def _const(type_: str, number: float) -> V:
    if type_.startswith("<"):
        element = element_of(type_)
        return V(f"splat ({element} {scalar_literal(element, number)})", type_)
    return V(scalar_literal(type_, number), type_)


_remembered_const = lru_cache(maxsize=4096)(_const)


def const_lanes(element: str, numbers: Sequence[float]) -> V:
    """A constant vector with one number for each lane."""
    items = ", ".join(f"{element} {scalar_literal(element, number)}" for number in numbers)
    return V(f"<{items}>", vector_type(element, len(numbers)))


def undefined(type_: str) -> V:
    """A poison value of `type_`, for lanes that are never looked at."""
    return V("poison", type_)


class Phi:
    """A phi whose incoming edges may be added until the function is printed."""

    __slots__ = ("edges", "value")

    def __init__(self, value: V) -> None:
        self.value = value
        self.edges: list[tuple[V, str]] = []

    def add(self, value: Operand, label: str) -> None:
        """Say that `value` comes from the block `label`."""
        known = value if type(value) is V else const(self.value.type, value)  # type: ignore[arg-type]
        self.edges.append((known, label))

    def __str__(self) -> str:
        edges = ", ".join(f"[ {value.name}, %{label} ]" for value, label in self.edges)
        return f"  {self.value.name} = phi {self.value.type} {edges}"


class Loop:
    """A counted loop as a context: the body is what is emitted inside the `with`.

    The loop is emitted with its test at the end, behind a guard where the count may be zero, which is the form that
    LLVM would rotate it into.

    Attributes
    ----------
    index : the counter, `lo, lo + step, ...` below `hi`
    carry : values carried from turn to turn
    results : after the `with`: the last carried values
    """

    def __init__(
        self, builder: FunctionBuilder, bounds: tuple[V, V, int], carry: Sequence[V], guarded: bool, metadata: str
    ) -> None:
        self._builder = builder
        self._lo, self._hi, self._step = bounds
        self._initial = tuple(carry)
        self._guarded = guarded
        self._metadata = metadata
        self._next: tuple[V, ...] = self._initial
        self.index = self._lo
        self.carry: tuple[V, ...] = ()
        self.results: tuple[V, ...] = ()

    def turn(self, *values: V) -> None:
        """Give the carried values of the next turn."""
        self._next = values

    def __enter__(self) -> Loop:
        b = self._builder
        self._before = b.current
        self._body, self._exit = b.new_label("loop"), b.new_label("done")
        if self._guarded:
            b.condbr(b.icmp("slt", self._lo, self._hi), self._body, self._exit)
        else:
            b.br(self._body)
        b.label(self._body)
        self._index_phi = b.phi(self._lo.type, [(self._lo, self._before)])
        self._phis = [b.phi(value.type, [(value, self._before)]) for value in self._initial]
        self.index = self._index_phi.value
        self.carry = self._next = tuple(phi.value for phi in self._phis)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        if len(self._next) != len(self._initial):
            raise ValueError(f"loop carries {len(self._initial)} values but turn() gave {len(self._next)}")
        b = self._builder
        following = b.add(self.index, self._step, "nuw nsw" if self._step > 0 else "")
        again = b.icmp("slt", following, self._hi)
        latch = b.current
        b.condbr(again, self._body, self._exit, self._metadata)
        self._index_phi.add(following, latch)
        for phi, value in zip(self._phis, self._next, strict=True):
            phi.add(value, latch)
        b.label(self._exit)
        self.results = self._next
        if self._guarded:
            self.results = tuple(
                b.phi(old.type, [(old, self._before), (new, latch)]).value
                for old, new in zip(self._initial, self._next, strict=True)
            )


class FunctionBuilder:
    """Appends instructions to one function of a module.

    Parameters
    ----------
    module : where declarations, constants and metadata go
    name : without the `@`
    result : return type
    params : (type with attributes, name without the `%`); the type is the first word, or the `<...>`
    linkage : `internal`, `private` or nothing
    attributes : function attributes, or the `#n` of `Module.attributes`
    """

    def __init__(
        self,
        module: Module,
        name: str,
        result: str,
        params: Sequence[tuple[str, str]] = (),
        linkage: str = "",
        attributes: str = "",
    ) -> None:
        self.module = module
        self.name = name
        self.result = result
        self.params = tuple(V(f"%{name}", _bare_type(type_)) for type_, name in params)
        self.current = "entry"
        self.linkage = linkage
        self.attributes = attributes
        self._params = ", ".join(f"{type_} %{param}" for type_, param in params)
        self._entry: list[str] = []
        self._lines: list[str | Phi] = []
        self._count = 0

    def __str__(self) -> str:
        linkage = self.linkage + " " if self.linkage else ""
        head = f"define {linkage}{self.result} @{self.name}({self._params}) {self.attributes} {{"
        return "\n".join([head, "entry:", *self._entry, *map(str, self._lines), "}"])

    @property
    def instructions(self) -> int:
        """Lines emitted so far: a measure of the function's size."""
        return len(self._lines)

    # --- names, blocks ------------------------------------------------------------------------------------------

    def fresh(self, type_: str) -> V:
        """A new name of `type_`, for `line`."""
        self._count = count = self._count + 1
        return V(f"%t{count}", type_)

    def line(self, text: str) -> None:
        """Append one instruction as it stands."""
        self._lines.append("  " + text)

    def emit(self, type_: str, text: str) -> V:
        """Append `%new = text` and return the new value of `type_`."""
        self._count = count = self._count + 1
        name = f"%t{count}"
        self._lines.append(f"  {name} = {text}")
        return V(name, type_)

    def new_label(self, hint: str = "block") -> str:
        """A label not used before."""
        self._count = count = self._count + 1
        return f"{hint}.{count}"

    def label(self, label: str) -> str:
        """Begin the block `label`; the block before must have ended with a terminator."""
        self._lines.append(f"{label}:")
        self.current = label
        return label

    def phi(self, type_: str, incoming: Iterable[tuple[Operand, str]] = ()) -> Phi:
        """A phi at the present place, which must be the beginning of a block."""
        phi = Phi(self.fresh(type_))
        for value, label in incoming:
            phi.add(value, label)
        self._lines.append(phi)
        return phi

    def comment(self, text: str) -> None:
        """A remark in the text, on its own line."""
        self._lines.append("  ; " + text)

    def loop(
        self, lo: Operand, hi: Operand, step: int = 1, carry: Sequence[V] = (), metadata: str = "", index: str = "i64"
    ) -> Loop:
        """A loop over `range(lo, hi, step)`, `step > 0`: `with b.loop(0, n) as loop: ... loop.index ...`.

        Carried values: `loop.carry` inside, `loop.turn(*next)` before the end, `loop.results` behind.
        """
        if step <= 0:
            raise ValueError(f"the step of a loop must be positive, found {step}")
        guarded = type(lo) is V or type(hi) is V or not lo < hi
        bounds = (self._same(index, lo), self._same(index, hi), step)
        return Loop(self, bounds, carry, guarded, metadata)

    @staticmethod
    def _same(type_: str, operand: Operand) -> V:
        return operand if type(operand) is V else const(type_, operand)  # type: ignore[arg-type,return-value]

    def _binary(self, head: str, x: V, y: Operand) -> V:
        other = y.name if type(y) is V else const(x.type, y).name  # type: ignore[arg-type]
        self._count = count = self._count + 1
        name = f"%t{count}"
        self._lines.append(f"  {name} = {head} {x.type} {x.name}, {other}")
        return V(name, x.type)

    # --- floating point -----------------------------------------------------------------------------------------

    def fadd(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary("fadd " + flags, x, y)

    def fsub(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary("fsub " + flags, x, y)

    def rfsub(self, x: Operand, y: V, flags: str = "") -> V:
        """`x - y` where `x` may be a number."""
        return self._binary("fsub " + flags, self._same(y.type, x), y)

    def fmul(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary("fmul " + flags, x, y)

    def fdiv(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary("fdiv " + flags, x, y)

    def rfdiv(self, x: Operand, y: V, flags: str = "") -> V:
        """`x / y` where `x` may be a number."""
        return self._binary("fdiv " + flags, self._same(y.type, x), y)

    def frem(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary("frem " + flags, x, y)

    def fneg(self, x: V) -> V:
        return self.emit(x.type, f"fneg {x.type} {x.name}")

    def fma(self, x: V, y: Operand, z: Operand) -> V:
        """`x * y + z` rounded once."""
        t = x.type
        factor = y.name if type(y) is V else const(t, y).name  # type: ignore[arg-type]
        term = z.name if type(z) is V else const(t, z).name  # type: ignore[arg-type]
        full = _intrinsic_name("fma", t)
        self.module.declare(full, t, (t, t, t))
        self._count = count = self._count + 1
        name = f"%t{count}"
        self._lines.append(f"  {name} = call {t} @{full}({t} {x.name}, {t} {factor}, {t} {term})")
        return V(name, t)

    def fcmp(self, predicate: str, x: V, y: Operand) -> V:
        other = self._same(x.type, y)
        return self.emit(with_element(x.type, "i1"), f"fcmp {predicate} {x.type} {x.name}, {other.name}")

    # --- integers -----------------------------------------------------------------------------------------------

    def add(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary("add " + flags, x, y)

    def sub(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary("sub " + flags, x, y)

    def rsub(self, x: Operand, y: V, flags: str = "") -> V:
        """`x - y` where `x` may be a number."""
        return self._binary("sub " + flags, self._same(y.type, x), y)

    def mul(self, x: V, y: Operand, flags: str = "") -> V:
        return self._binary("mul " + flags, x, y)

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
        other = self._same(x.type, y)
        return self.emit(with_element(x.type, "i1"), f"icmp {predicate} {x.type} {x.name}, {other.name}")

    def select(self, condition: V, x: Operand, y: Operand) -> V:
        """`x` where `condition`, else `y`; at least one of them a `V`. A scalar condition may choose vectors."""
        type_ = x.type if isinstance(x, V) else y.type if isinstance(y, V) else ""
        if not type_:
            raise TypeError(f"select needs one operand with a type, found {x!r} and {y!r}")
        one, other = self._same(type_, x), self._same(type_, y)
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
        items = [self._same("i64", index) for index in indices]
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
            [pointer, mask, self._same(type_, other)],
            {0: f"align {align}"},
        )

    def masked_store(self, value: V, pointer: V, align: int, mask: V) -> None:
        name = f"llvm.masked.store.{suffix_of(value.type)}.p0"
        self._call("void", name, [value, pointer, mask], {1: f"align {align}"})

    def gather(self, type_: str, pointers: V, align: int, mask: V | None = None, other: Operand = 0) -> V:
        """One element from each of the `pointers`; where `mask` is false, `other`. No mask: all lanes."""
        seen = mask or const(with_element(type_, "i1"), True)
        name = f"llvm.masked.gather.{suffix_of(type_)}.{suffix_of(pointers.type)}"
        return self._call(type_, name, [pointers, seen, self._same(type_, other)], {0: f"align {align}"})

    def scatter(self, value: V, pointers: V, align: int, mask: V | None = None) -> None:
        """Store lane after lane: where pointers coincide the last lane wins."""
        seen = mask or const(with_element(value.type, "i1"), True)
        name = f"llvm.masked.scatter.{suffix_of(value.type)}.{suffix_of(pointers.type)}"
        self._call("void", name, [value, pointers, seen], {1: f"align {align}"})

    def memcpy(self, target: V, source: V, size: Operand, align: int = 1) -> None:
        attributes = {0: f"align {align}", 1: f"align {align}"}
        operands = [target, source, self._same("i64", size), const("i1", False)]
        self._call("void", "llvm.memcpy.p0.p0.i64", operands, attributes)

    def memset(self, target: V, byte: Operand, size: Operand, align: int = 1) -> None:
        operands = [target, self._same("i8", byte), self._same("i64", size), const("i1", False)]
        self._call("void", "llvm.memset.p0.i64", operands, {0: f"align {align}"})

    # --- vectors ------------------------------------------------------------------------------------------------

    def extract(self, vector: V, lane: Operand) -> V:
        index = self._same("i64", lane)
        text = f"extractelement {vector.type} {vector.name}, {index.type} {index.name}"
        return self.emit(element_of(vector.type), text)

    def insert(self, vector: V, value: Operand, lane: Operand) -> V:
        index, item = self._same("i64", lane), self._same(element_of(vector.type), value)
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
            return x if start is None else self._binary(f"{kind} {flags}", self._same(element, start), x)
        operands = [x] if start is None else [self._same(element, start), x]
        return self._call(element, f"llvm.vector.reduce.{kind}.{suffix_of(x.type)}", operands, {}, flags)

    def any(self, mask: V) -> V:
        """i1: is any lane of the mask true."""
        return self.reduce("or", mask)

    def extract_value(self, aggregate: V, index: int, type_: str) -> V:
        """Field `index` of a struct value, such as a call's `{ double, i64 }`; its type is `type_`."""
        return self.emit(type_, f"extractvalue {aggregate.type} {aggregate.name}, {index}")

    def ret_struct(self, *fields: V) -> None:
        """Return a struct of the given fields."""
        struct_value = undefined(self.result)
        for index, field in enumerate(fields):
            text = f"insertvalue {self.result} {struct_value.name}, {field.type} {field.name}, {index}"
            struct_value = self.emit(self.result, text)
        self.ret(struct_value)

    # --- calls --------------------------------------------------------------------------------------------------

    def intrinsic(self, name: str, x: V, *others: Operand, flags: str = "") -> V:
        """`llvm.<name>` overloaded on the type of `x` alone and returning it: fma, sqrt, fabs, floor, copysign, ctlz.

        Operands after the first may be numbers of the same type; an i1 flag (`ctlz`, `abs`) is given as a `V`.
        """
        type_, texts = x.type, [f"{x.type} {x.name}"]
        types = [type_]
        for other in others:
            operand = other if type(other) is V else const(type_, other)  # type: ignore[arg-type]
            texts.append(f"{operand.type} {operand.name}")
            types.append(operand.type)
        full = _intrinsic_name(name, type_)
        self.module.declare(full, type_, types)
        return self.emit(type_, f"call {flags} {type_} @{full}({', '.join(texts)})")

    def call(
        self, result: str, callee: str | V, args: Sequence[V], attributes: str = "", flags: str = ""
    ) -> V:
        """Call a function by name (declare external ones with `Module.declare`) or through a pointer.

        A call of type `void` returns a value that must not be used.
        """
        target = callee.name if isinstance(callee, V) else f"@{callee}"
        listed = ", ".join([f"{arg.type} {arg.name}" for arg in args])
        text = f"call {flags + ' ' if flags else ''}{result} {target}({listed}) {attributes}".rstrip()
        if result == "void":
            self._lines.append("  " + text)
            return V("", "void")
        return self.emit(result, text)

    def _call(
        self, result: str, name: str, operands: Sequence[V], attributes: dict[int, str], flags: str = ""
    ) -> V:
        self.module.declare(name, result, [operand.type for operand in operands])
        if attributes:
            typed = [V(x.name, f"{x.type} {attributes[i]}" if i in attributes else x.type) for i, x in enumerate(operands)]
            return self.call(result, name, typed, flags=flags)
        return self.call(result, name, operands, flags=flags)

    # --- ends of blocks -----------------------------------------------------------------------------------------

    def br(self, label: str) -> None:
        self._lines.append(f"  br label %{label}")

    def condbr(self, condition: V, then: str, otherwise: str, metadata: str = "") -> None:
        self._lines.append(f"  br i1 {condition.name}, label %{then}, label %{otherwise}{metadata}")

    def switch(self, value: V, default: str, cases: Iterable[tuple[int, str]]) -> None:
        arms = " ".join(f"{value.type} {number}, label %{label}" for number, label in cases)
        self._lines.append(f"  switch {value.type} {value.name}, label %{default} [ {arms} ]")

    def ret(self, value: Operand | None = None) -> None:
        if value is None:
            self._lines.append("  ret void")
        else:
            self._lines.append(f"  ret {self.result} {self._same(self.result, value).name}")

    def unreachable(self) -> None:
        self._lines.append("  unreachable")


def _bare_type(type_: str) -> str:
    if type_.startswith("<"):
        return type_[: type_.index(">") + 1]
    return type_.split(" ", 1)[0]


class Module:
    """Functions, declarations, constants, attribute groups and metadata; `str` of it is LLVM assembly.

    Parameters
    ----------
    function_attributes : that every function gets besides its own: `Target.function_attributes`
    features : of the processor, for emitters that have a better way on some
    """

    def __init__(
        self,
        name: str = "pullback",
        triple: str = "",
        function_attributes: str = "",
        features: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.features = features
        self.triple = triple
        self.function_attributes = function_attributes
        self.functions: dict[str, FunctionBuilder] = {}
        self._declarations: dict[str, str] = {}
        self._globals: dict[str, str] = {}
        self._constants: dict[tuple[bytes, int], V] = {}
        self._attributes: dict[str, int] = {}
        self._metadata: list[str] = []
        self._nodes: dict[str, str] = {}

    def function(
        self,
        name: str,
        result: str,
        params: Sequence[tuple[str, str]] = (),
        linkage: str = "",
        attributes: str = "",
    ) -> FunctionBuilder:
        """Begin a function; see `FunctionBuilder`."""
        if name in self.functions:
            raise ValueError(f"function @{name} is already in the module")
        attributes = f"{self.function_attributes} {attributes}".strip()
        self.functions[name] = FunctionBuilder(self, name, result, params, linkage, attributes)
        return self.functions[name]

    def declare(self, name: str, result: str, args: Sequence[str], attributes: str = "") -> V:
        """Declare an external function once; returns its address."""
        if name not in self._declarations:
            self._declarations[name] = f"declare {result} @{name}({', '.join(args)}) {attributes}".rstrip()
        return V(f"@{name}", "ptr")

    def external(self, name: str, type_: str = "i8") -> V:
        """An external datum, bound when the object is loaded; returns its address."""
        self._globals.setdefault(name, f"@{name} = external global {type_}")
        return V(f"@{name}", "ptr")

    def variable(self, name: str, type_: str, initial: str = "zeroinitializer", align: int = 64) -> V:
        """A private mutable global; returns its address."""
        self._globals[name] = f"@{name} = internal global {type_} {initial}, align {align}"
        return V(f"@{name}", "ptr")

    def constant(self, data: bytes, align: int = 64) -> V:
        """Constant bytes in host order, equal ones stored once; returns their address.

        Written as a string of bytes whatever they hold: LLVM reads that ten times as fast as a list of numbers.
        """
        key = (data, align)
        if key not in self._constants:
            name = f"constant.{len(self._constants)}"
            text = "".join([_BYTES[byte] for byte in data])
            self._globals[name] = (
                f'@{name} = private unnamed_addr constant [{len(data)} x i8] c"{text}", align {align}'
            )
            self._constants[key] = V(f"@{name}", "ptr")
        return self._constants[key]

    def words(self, numbers: Sequence[int]) -> V:
        """A constant array of unsigned i64; returns its address."""
        return self.constant(b"".join(number.to_bytes(8, byteorder) for number in numbers))

    def attributes(self, text: str) -> str:
        """The attribute group `#n` that holds `text`."""
        return f"#{self._attributes.setdefault(text, len(self._attributes))}"

    def metadata(self, body: str, distinct: bool = False) -> str:
        """A metadata node `!n` with the given body; `{self}` in the body is the node's own name.

        `module.metadata('!{{self}, !"domain"}', distinct=True)` is an alias domain. Equal bodies share a node.
        """
        if not distinct and body in self._nodes:
            return self._nodes[body]
        name = f"!{len(self._metadata)}"
        self._metadata.append(f"{name} = {'distinct ' if distinct else ''}{body.replace('{self}', name)}")
        self._nodes[body] = name
        return name

    def __str__(self) -> str:
        parts = [f"; ModuleID = '{self.name}'"]
        if self.triple:
            parts.append(f'target triple = "{self.triple}"')
        parts += self._globals.values()
        parts += [str(function) for function in self.functions.values()]
        parts += [text for name, text in self._declarations.items() if name not in self.functions]
        parts += [f"attributes #{number} = {{ {text} }}" for text, number in self._attributes.items()]
        parts += self._metadata
        return "\n".join(parts) + "\n"


_BYTES = tuple(f"\\{byte:02X}" for byte in range(256))
