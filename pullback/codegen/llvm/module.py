"""A module: functions and everything beside them."""

from __future__ import annotations

from collections.abc import Sequence
from sys import byteorder

from pullback.codegen.llvm.builder import FunctionBuilder
from pullback.codegen.llvm.values import V


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
            self._globals[name] = f'@{name} = private unnamed_addr constant [{len(data)} x i8] c"{text}", align {align}'
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
