"""Textual IR run as native code, on flat arrays."""

from collections.abc import Sequence
from typing import Any

from pullback import driver
from pullback.codegen.object import ArgSpec, ResultSpec, Signature, TupleOf
from pullback.config import Options
from pullback.ir.graph import Function


def run_native(function: Function, arrays: Sequence[Any], settings: Options) -> tuple[int, list[Any]]:
    """Compile and run; the status and the results, see `Compiled.run`."""
    args = tuple(ArgSpec(p.type) for p in function.params)
    signature = Signature(args, TupleOf(tuple(ResultSpec(t) for t in function.result_types)))
    log = driver.Log()
    compiled = driver.loaded(driver.compiled(function, signature, settings, log), (), log)
    driver.trace_report(log, function.name, settings)
    return compiled.run(arrays)
