"""LLVM values, types and constants as text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, lru_cache
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
def intrinsic_name(name: str, type_: str) -> str:
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


def as_value(type_: str, operand: Operand) -> V:
    """The operand itself, or the constant of `type_` that a number stands for."""
    return operand if isinstance(operand, V) else const(type_, operand)
