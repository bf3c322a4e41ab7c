"""Textual IR: deterministic printing. `ir.parse` is the exact inverse."""

import io
from typing import Any

import numpy as np

from pullback.ir.graph import Function, Literal, Location, Module, Op, Region, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.kernel import Load, Store
from pullback.ir.types import DTYPE_NAMES, TensorType

COMMENT_COLUMN = 56


def print_module(module: Module) -> str:
    return "\n".join(print_function(f) for f in module)


def print_function(function: Function) -> str:
    """The text of a function. Values are numbered in order of definition; parameters keep their names."""
    return _Printer().function(function)


def value_names(function: Function) -> dict[Value, str]:
    """The name of each value in the printed text."""
    printer = _Printer()
    printer.function(function)
    return printer.names


class _Printer:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.next_number = 0
        self.out = io.StringIO()

    def function(self, function: Function) -> str:
        source = f"   from: {function.source}" if function.source else ""
        self.out.write(f"// stage: {function.stage}{source}\n")
        params = self.params(function.body)
        results = ", ".join(str(t) for t in function.result_types)
        self.out.write(f"func @{function.name}({params}) -> ({results}) {{\n")
        self.region(function.body, "  ", "return")
        self.out.write("}\n")
        return self.out.getvalue()

    def params(self, region: Region) -> str:
        return ", ".join(f"{self.name_param(p)}: {p.type}" for p in region.params)

    def name_param(self, value: Value) -> str:
        base = value.hint if value.hint.isidentifier() else f"a{value.index}"
        name, k = base, 1
        while name in self.taken:
            name, k = f"{base}_{k}", k + 1
        self.taken.add(name)
        self.names[value] = f"%{name}"
        return f"%{name}"

    def region(self, region: Region, indent: str, last_word: str) -> None:
        for op in region.ops:
            self.op(op, indent)
        given = ", ".join(self.names[v] for v in region.results)
        self.out.write(f"{indent}{last_word}{' ' + given if given else ''}\n")

    def op(self, op: Op, indent: str) -> None:
        for result in op.results:
            self.names[result] = f"%{self.next_number}"
            self.next_number += 1
        left = ", ".join(self.names[r] for r in op.results)
        operands = ", ".join(self.names[v] for v in op.operands)
        attrs = ", ".join(f"{key} = {format_attr(op.attrs[key])}" for key in op.opdef.attrs)
        line = f"{indent}{left + ' = ' if left else ''}{op.name}{' ' + operands if operands else ''}"
        line += f" {{{attrs}}}" if attrs else ""
        line += format_result_types(op)
        if op.regions:
            self.regions(op, line, indent)
        else:
            self.out.write(with_comment(line, op.loc))

    def regions(self, op: Op, line: str, indent: str) -> None:
        self.out.write(with_comment(f"{line} [", op.loc))
        for name, region in zip(op.opdef.regions, op.regions, strict=True):
            self.out.write(f"{indent}  {name} ({self.params(region)}) {{\n")
            self.region(region, indent + "    ", "yield")
            self.out.write(f"{indent}  }}\n")
        self.out.write(f"{indent}]\n")


def with_comment(line: str, loc: Location | None) -> str:
    return f"{line:<{COMMENT_COLUMN}} // {loc}\n" if loc is not None else f"{line}\n"


def format_result_types(op: Op) -> str:
    types = [str(r.type) for r in op.results]
    if not types:
        return ""
    return f" : {types[0]}" if len(types) == 1 else f" : ({', '.join(types)})"


def format_attr(value: Any) -> str:
    """One attribute; `ir.parse` reads each form back."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | np.integer():
            return str(int(value))
        case float():
            return repr(value)
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        case np.dtype():
            return DTYPE_NAMES[value]
        case TensorType():
            return str(value)
        case Literal():
            return format_literal(value.array)
        case Affine():
            return str(value)
        case Bound() | Load() | Store():
            return f"({value})"
        case tuple():
            return "[" + ", ".join(map(format_attr, value)) + "]"
        case _:
            raise TypeError(f"no textual form for an attribute of {type(value).__name__}: {value!r}")


def format_literal(array: np.ndarray[Any, Any]) -> str:
    """A scalar as a number; an array as nested lists up to 64 elements, beyond as hexadecimal bytes. Always exact."""
    if array.size <= 64 and not _has_odd_nan(array):
        return _nested(array)
    return f'hex "{array.tobytes().hex()}"'


def _has_odd_nan(array: np.ndarray[Any, Any]) -> bool:
    """NaNs whose bits `nan` would not bring back (a payload or a sign)."""
    if array.dtype.kind not in "fc":
        return False
    parts = array.reshape(-1).view(f"f{array.dtype.itemsize // 2}") if array.dtype.kind == "c" else array.reshape(-1)
    odd = parts[np.isnan(parts)]
    return bool(odd.size) and odd.tobytes() != np.full(odd.shape, np.nan, parts.dtype).tobytes()


def _nested(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return _number(array[()])
    return "[" + ", ".join(_nested(np.asarray(part)) for part in array) + "]"


def _number(x: Any) -> str:
    kind = x.dtype.kind
    if kind == "b":
        return "true" if x else "false"
    if kind in "iu":
        return str(int(x))
    if kind == "c":
        return f"({_number(x.real)}, {_number(x.imag)})"
    return str(x)
