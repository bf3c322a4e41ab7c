"""The text of a function under construction, and the instructions that have to do with its structure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pullback.codegen.llvm.flow import Phi
from pullback.codegen.llvm.values import Operand, V, as_value, const, intrinsic_name, undefined

if TYPE_CHECKING:
    from pullback.codegen.llvm.module import Module


class Instructions:
    """The text of one function: names, blocks, phis, calls and ends of blocks.

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

    # --- calls --------------------------------------------------------------------------------------------------

    def intrinsic(self, name: str, x: V, *others: Operand, flags: str = "") -> V:
        """`llvm.<name>` overloaded on the type of `x` alone and returning it: fma, sqrt, fabs, floor, copysign, ctlz.

        Operands after the first may be numbers of the same type; an i1 flag (`ctlz`, `abs`) is given as a `V`.
        """
        type_, texts = x.type, [f"{x.type} {x.name}"]
        types = [type_]
        for other in others:
            operand = other if isinstance(other, V) else const(type_, other)
            texts.append(f"{operand.type} {operand.name}")
            types.append(operand.type)
        full = intrinsic_name(name, type_)
        self.module.declare(full, type_, types)
        call = f"call {flags}" if flags else "call"
        return self.emit(type_, f"{call} {type_} @{full}({', '.join(texts)})")

    def call(self, result: str, callee: str | V, args: Sequence[V], attributes: str = "", flags: str = "") -> V:
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

    def _call(self, result: str, name: str, operands: Sequence[V], attributes: dict[int, str], flags: str = "") -> V:
        self.module.declare(name, result, [operand.type for operand in operands])
        if attributes:
            typed = [
                V(x.name, f"{x.type} {attributes[i]}" if i in attributes else x.type) for i, x in enumerate(operands)
            ]
            return self.call(result, name, typed, flags=flags)
        return self.call(result, name, operands, flags=flags)

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
            self._lines.append(f"  ret {self.result} {as_value(self.result, value).name}")

    def unreachable(self) -> None:
        self._lines.append("  unreachable")


def _bare_type(type_: str) -> str:
    if type_.startswith("<"):
        return type_[: type_.index(">") + 1]
    return type_.split(" ", 1)[0]
