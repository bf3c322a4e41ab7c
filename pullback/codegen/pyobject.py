"""Emission of code that handles Python objects: what the parts of a native entry share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.codegen.llvm import FunctionBuilder, Module, V
from pullback.codegen.object import Kind, Layout
from pullback.errors import CodegenError
from pullback.ir.types import DType, TensorType

NULL = V("null", "ptr")
FLOAT_NAMES = {4: "float", 8: "double"}
UNOPTIMISED = "noinline optnone nounwind"


def llvm_scalar(dtype: DType) -> str:
    """The LLVM type of one integer or one real number (not float16) of `dtype`."""
    return FLOAT_NAMES[dtype.itemsize] if dtype.kind == "f" else f"i{8 * dtype.itemsize}"


class ObjectCode:
    """A function that handles Python objects, while it is emitted.

    The blocks it jumps to must be there in the end: `misfit` where an argument is not as wanted, `failed` where an
    exception is set.

    Attributes
    ----------
    b : where instructions go
    symbols : externals used so far, by the names the runtime knows
    """

    def __init__(
        self, module: Module, function: FunctionBuilder, layout: Layout, symbols: dict[str, None] | None = None
    ) -> None:
        self.module = module
        self.b = function
        self.layout = layout
        self.symbols: dict[str, None] = {} if symbols is None else symbols

    def api(self, result: str, name: str, args: Sequence[V]) -> V:
        """Call an external function."""
        self.symbols[name] = None
        self.module.declare(name, result, [arg.type for arg in args])
        return self.b.call(result, name, args)

    def datum(self, name: str) -> V:
        """The address of an external object."""
        self.symbols[name] = None
        return self.module.external(name)

    def slot_object(self, slot: int) -> V:
        return self.datum(f"pb_object_{slot}")

    def address(self, base: V, offset: int) -> V:
        return self.b.gep("i8", base, offset) if offset else base

    def field(self, base: V, offset: int, type_: str = "ptr", align: int = 8) -> V:
        return self.b.load(type_, self.address(base, offset), align)

    def leave_unless(self, condition: V, label: str) -> None:
        b = self.b
        following = b.new_label("go")
        b.condbr(condition, following, label)
        b.label(following)

    def require(self, condition: V) -> None:
        """Go on if the argument fits."""
        self.leave_unless(condition, "misfit")

    def checked(self, reference: V) -> V:
        """A new reference that must not be null."""
        self.leave_unless(self.b.icmp("ne", reference, NULL), "failed")
        return reference

    def pointers(self, items: list[V]) -> V:
        """An array of these on the stack."""
        array = self.b.alloca("ptr", max(1, len(items)), align=16)
        for number, item in enumerate(items):
            self.b.store(item, self.address(array, 8 * number), 8)
        return array

    def null_pointers(self, count: int) -> V:
        """An array of so many null pointers on the stack."""
        array = self.b.alloca("ptr", count, align=16)
        self.clear(array, count)
        return array

    def clear(self, array: V, count: int) -> None:
        for number in range(count):
            self.b.store(NULL, self.address(array, 8 * number), 8)

    def is_type(self, instance: V, type_name: str) -> V:
        return self.b.icmp("eq", self.field(instance, self.layout.object_type), self.datum(type_name))


def require_number(type_: TensorType, kind: Kind, dtype_kinds: str) -> None:
    """Raise unless a Python number of `kind` can stand for `type_`. float16 cannot: conversion needs library calls."""
    if type_.shape or type_.dtype.kind not in dtype_kinds or type_.dtype == np.float16:
        raise CodegenError(f"a Python {kind} cannot stand for {type_}")
