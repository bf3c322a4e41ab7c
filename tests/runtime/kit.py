"""Small compiled functions for the runtime's tests, and a runtime to load them."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from pullback.codegen.entry import emit_entry
from pullback.codegen.llvm import Module
from pullback.codegen.object import (
    ArgSpec,
    CompiledObject,
    Kind,
    Layout,
    Node,
    ResultSpec,
    Signature,
    SupportObject,
)
from pullback.codegen.support import support_part
from pullback.codegen.target import NO_OPT, QUICK, compile_module, host_target, load_object
from pullback.ir.types import tensor_type
from pullback.runtime.compiled import Compiled, Miss
from pullback.runtime.runtime import Runtime
from pullback.runtime.watch import Watch

F64 = tensor_type(np.dtype("f8"))
VECTOR = tensor_type(np.dtype("f8"), (3,))


@cache
def support_code(name: str, layout: Layout) -> SupportObject:
    part = support_part(name, layout)
    return SupportObject(compile_module(part.text, host_target(), NO_OPT), part.exports, part.symbols)


def new_runtime(**options: Any) -> Runtime:
    return Runtime(load_object, support_code, **options)


@cache
def native_runtime() -> Runtime:
    return new_runtime(threads=2)


@cache
def ctypes_runtime() -> Runtime:
    return new_runtime(native=False)


def array_arg(shape: Sequence[int] = (3,), dtype: str = "f8") -> ArgSpec:
    return ArgSpec(tensor_type(np.dtype(dtype), tuple(shape)))


def array_result(shape: Sequence[int] = (3,), dtype: str = "f8") -> ResultSpec:
    return ResultSpec(tensor_type(np.dtype(dtype), tuple(shape)))


def number_arg(*kinds: Kind, dtype: str = "f8") -> ArgSpec:
    return ArgSpec(tensor_type(np.dtype(dtype)), kinds or (Kind.FLOAT, Kind.SCALAR))


def number_result(kind: Kind = Kind.SCALAR, dtype: str = "f8") -> ResultSpec:
    return ResultSpec(tensor_type(np.dtype(dtype)), kind)


def copying_kernel(signature: Signature, sources: Sequence[int] | None = None) -> str:
    """Result k is the bytes of argument `sources[k]` (default: k)."""
    results = signature.result_leaves()
    chosen = range(len(results)) if sources is None else sources
    body = [
        _copy(number, source, spec.type.nbytes)
        for number, (source, spec) in enumerate(zip(chosen, results, strict=False))
    ]
    return "\n".join(["define i64 @kernel(ptr %args, ptr %results, ptr %arena) {", "entry:", *body, "  ret i64 0", "}"])


def _copy(number: int, source: int, nbytes: int) -> str:
    return f"""
  %from.at{number} = getelementptr ptr, ptr %args, i64 {source}
  %from{number} = load ptr, ptr %from.at{number}
  %to.at{number} = getelementptr ptr, ptr %results, i64 {number}
  %to{number} = load ptr, ptr %to.at{number}
  br label %head{number}
head{number}:
  %i{number} = phi i64 [ 0, %{"entry" if number == 0 else f"end{number - 1}"} ], [ %next{number}, %body{number} ]
  %more{number} = icmp ult i64 %i{number}, {nbytes}
  br i1 %more{number}, label %body{number}, label %end{number}
body{number}:
  %source{number} = getelementptr i8, ptr %from{number}, i64 %i{number}
  %byte{number} = load i8, ptr %source{number}
  %target{number} = getelementptr i8, ptr %to{number}, i64 %i{number}
  store volatile i8 %byte{number}, ptr %target{number}
  %next{number} = add i64 %i{number}, 1
  br label %head{number}
end{number}:"""


def status_kernel() -> str:
    """Returns the int64 in its argument as its status; the result is 1.0."""
    return """define i64 @kernel(ptr %args, ptr %results, ptr %arena) {
  %from = load ptr, ptr %args
  %status = load i64, ptr %from
  %to = load ptr, ptr %results
  store double 1.0, ptr %to
  ret i64 %status
}"""


def build(
    signature: Signature,
    kernel: str = "",
    runtime: Runtime | None = None,
    objects: Sequence[object] = (),
    arena_bytes: int = 0,
    releases_gil: bool = False,
    symbols: Sequence[str] = (),
    watch: Watch | None = None,
) -> Compiled:
    """Compile and load; the default kernel copies each argument to the result of its number."""
    chosen = runtime or native_runtime()
    made = compiled_object(signature, kernel, chosen.layout, arena_bytes, releases_gil, symbols)
    return chosen.load(made, objects, watch)


def compiled_object(
    signature: Signature,
    kernel: str = "",
    layout: Layout | None = None,
    arena_bytes: int = 0,
    releases_gil: bool = False,
    symbols: Sequence[str] = (),
) -> CompiledObject:
    text = kernel or copying_kernel(signature)
    entry = ""
    needed: tuple[str, ...] = tuple(symbols)
    if layout is not None:
        module = Module()
        entry = "entry"
        needed += emit_entry(module, entry, "kernel", signature, arena_bytes, layout, releases_gil)
        text += "\n" + str(module)
    code = compile_module(text, host_target(), QUICK)
    return CompiledObject(code, "kernel", entry, signature, arena_bytes, tuple(dict.fromkeys(needed)), releases_gil)


def signature_of(args: Sequence[Node], result: Node, statics: int = 0) -> Signature:
    return Signature(tuple(args), result, statics)


def fallback(_function: object, args: Any, kwargs: Any, miss: Miss | None) -> Any:
    """A dispatch that says what it was called with."""
    return "python", args, dict(kwargs), miss


def native(compiled: Compiled, dispatch: Callable[..., Any] = fallback) -> Any:
    """A native function with that one specialisation."""
    function = native_runtime().function(dispatch)
    function.install(compiled)
    return function
