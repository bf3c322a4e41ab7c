"""What a call costs before any arithmetic: `python -m benchmarks.call_latency_native`.

Nanoseconds of a call through the native entry, for kernels that do next to nothing, beside calls that everybody knows.
"""

import math
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.codegen.entry import emit_entry
from pullback.codegen.llvm import Module
from pullback.codegen.object import ArgSpec, CompiledObject, DictOf, Kind, Node, ResultSpec, Signature, TupleOf
from pullback.codegen.target import compile_module, host_target
from pullback.driver import runtime
from pullback.ir.types import TensorType, tensor_type

REPEATS = 7
NUMBER = tensor_type(np.dtype("f8"))
VECTOR = tensor_type(np.dtype("f8"), (3,))
SCALAR_ARG, SCALAR_RESULT = ArgSpec(NUMBER, (Kind.FLOAT, Kind.SCALAR)), ResultSpec(NUMBER, Kind.SCALAR)
ARRAY_ARG, ARRAY_RESULT = ArgSpec(VECTOR), ResultSpec(VECTOR)


def kernel(signature: Signature) -> str:
    """Each result is the square of the last argument where types agree, else ones."""
    specs = signature.arg_leaves()
    source = len(specs) - 1
    lines = []
    for number, spec in enumerate(signature.result_leaves()):
        lines += [*store(number, spec.type, source if spec.type == specs[source].type else None)]
    return "\n".join(["define i64 @kernel(ptr %args, ptr %results, ptr %arena) {", *lines, "ret i64 0", "}"])


def store(number: int, type_: TensorType, source: int | None) -> list[str]:
    name = llvm_type(type_)
    lines = [
        f"%to.at{number} = getelementptr ptr, ptr %results, i64 {number}",
        f"%to{number} = load ptr, ptr %to.at{number}",
    ]
    if source is None:
        value = "1.0" if name == "double" else "splat (double 1.0)"
        return [*lines, f"store {name} {value}, ptr %to{number}, align 8"]
    return [
        *lines,
        f"%from.at{number} = getelementptr ptr, ptr %args, i64 {source}",
        f"%from{number} = load ptr, ptr %from.at{number}",
        f"%x{number} = load {name}, ptr %from{number}, align 8",
        f"%square{number} = fmul {name} %x{number}, %x{number}",
        f"store {name} %square{number}, ptr %to{number}, align 8",
    ]


def llvm_type(type_: TensorType) -> str:
    return "double" if type_.size == 1 else f"<{type_.size} x double>"


def native(
    args: tuple[Node, ...], result: Node, releases_gil: bool = False, arena_bytes: int = 0
) -> Callable[..., Any]:
    """A native function of that signature."""
    signature = Signature(args, result)
    layout = runtime().layout
    if layout is None:
        raise SystemExit(f"calls are not native here: {runtime().reason}")
    module = Module()
    symbols = emit_entry(module, "entry", "kernel", signature, arena_bytes, layout, releases_gil)
    code = compile_module(kernel(signature) + "\n" + str(module), host_target())
    made = CompiledObject(code, "kernel", "entry", signature, arena_bytes, symbols)
    return runtime().load(made).invoke


def nanoseconds(function: Callable[..., Any], *args: Any) -> float:
    """Of one call, at best."""
    number = 200_000
    names = {"f": function, **{f"a{k}": a for k, a in enumerate(args)}}
    call = f"f({', '.join(f'a{k}' for k in range(len(args)))})"
    return min(timeit.repeat(call, globals=names, number=number, repeat=REPEATS)) / number * 1e9


def main() -> None:
    x, v = 1.5, np.arange(3.0)
    pair = DictOf(("w", "b"), (ARRAY_ARG, ARRAY_ARG))
    pair_result = TupleOf((SCALAR_RESULT, DictOf(("w", "b"), (ARRAY_RESULT, ARRAY_RESULT))))
    rows: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
        ("float -> numpy.float64", native((SCALAR_ARG,), SCALAR_RESULT), (x,)),
        ("3-vector -> 3-vector", native((ARRAY_ARG,), ARRAY_RESULT), (v,)),
        ("3-vector -> (number, 3-vector)", native((ARRAY_ARG,), TupleOf((SCALAR_RESULT, ARRAY_RESULT))), (v,)),
        ("3-vector, lock released", native((ARRAY_ARG,), ARRAY_RESULT, releases_gil=True), (v,)),
        ("3-vector, 100 kB of scratch", native((ARRAY_ARG,), ARRAY_RESULT, arena_bytes=100_000), (v,)),
        (
            "dict of 2 -> (number, dict of 2)",
            native((pair,), pair_result),
            ({"w": v, "b": v},),
        ),
        ("math.sqrt(1.5)", math.sqrt, (x,)),
        ("numpy.empty(3)", np.empty, (3,)),
        ("numpy.multiply(v, v)", np.multiply, (v, v)),
    ]
    for label, function, args in rows:
        print(f"{label:<40}{nanoseconds(function, *args):8.0f} ns")


if __name__ == "__main__":
    main()
