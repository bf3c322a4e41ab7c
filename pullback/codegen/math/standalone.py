"""A math function over arrays, as a module of its own: for tests, benchmarks and looking at its code."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, Module, vector_type
from pullback.codegen.math.table import MathFunction
from pullback.codegen.target import Target

ITEM_BYTES = {"double": 8, "float": 4}


def elementwise_module(function: MathFunction, element: str, lanes: int, target: Target, **static: int) -> Module:
    """`void @apply(ptr out, i64 n, ptr x0, ...)`: `function` of each of n elements, n a multiple of `lanes`."""
    module = target.module(function.name)
    params = [("ptr noalias", "out"), ("i64", "n"), *(("ptr noalias", f"x{i}") for i in range(function.arity))]
    write_loop(module.function("apply", "void", params), function, vector_type(element, lanes), lanes, static)
    return module


def write_loop(b: FunctionBuilder, function: MathFunction, type_: str, lanes: int, static: dict[str, int]) -> None:
    out, count, *sources = b.params
    element = type_ if lanes == 1 else type_[type_.index(" x ") + 3 : -1]
    size = ITEM_BYTES[element]
    with b.loop(0, count, lanes) as loop:
        args = [b.load(type_, b.gep(element, source, loop.index), size) for source in sources]
        b.store(function.emit(b, *args, **static), b.gep(element, out, loop.index), size)
    b.ret()
