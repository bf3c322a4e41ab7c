"""The reference interpreter: a function evaluated in NumPy, op by op. Passes and native code are compared with it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ArgumentError
from pullback.ir.graph import Function, Op, Region, Value
from pullback.ir.opdef import Array, RunRegion
from pullback.ir.tape import tape_store


def interpret(function: Function, arguments: Sequence[Any], run: RunRegion | None = None) -> tuple[Array, ...]:
    """The results of `function` on arrays of exactly its parameter types.

    Parameters
    ----------
    run : evaluates a region, in place of `run_region`: for who wants to see each op

    Raises
    ------
    ArgumentError : an argument has another dtype or shape.
    GuardFailedError, NumericalError : as the function's guards and checks say.
    """
    params = function.params
    if len(arguments) != len(params):
        raise ArgumentError(f"{function.name} takes {len(params)} arguments, got {len(arguments)}")
    arrays = []
    for number, (param, argument) in enumerate(zip(params, arguments, strict=True)):
        array = np.asarray(argument)
        if array.dtype != param.type.dtype or array.shape != param.type.shape:
            found = f"{array.dtype}{list(array.shape)}"
            raise ArgumentError(f"argument {number} of {function.name} has type {param.type}, got {found}")
        arrays.append(array)
    with np.errstate(all="ignore"), tape_store():
        return (run or run_region)(function.body, arrays)


def run_region(region: Region, arguments: Sequence[Array]) -> tuple[Array, ...]:
    """Evaluate the ops of a region in order. Regions nest only as deep as the user's control flow does."""
    env: dict[Value, Array] = dict(zip(region.params, arguments, strict=True))
    for op in region.ops:
        env.update(zip(op.results, evaluate_op(op, [env[v] for v in op.operands]), strict=True))
    return tuple(np.asarray(env[v]) for v in region.results)


def evaluate_op(op: Op, arguments: Sequence[Array]) -> tuple[Array, ...]:
    return op.opdef.evaluate(op, arguments, run_region)


def evaluate_values(wanted: Sequence[Value], env: dict[Value, Array]) -> list[Array]:
    """The arrays of `wanted`, computing only what they need and `env` lacks; `env` is filled on the way.

    The tracer asks this way for the value a Python branch depends on. No recursion: a stack of values still to compute.
    """
    stack = list(wanted)
    with np.errstate(all="ignore"):
        while stack:
            value = stack[-1]
            if value in env:
                stack.pop()
                continue
            op = value.op
            if op is None:
                raise ArgumentError(f"no value is known for parameter {value!r}")
            missing = [v for v in op.operands if v not in env]
            if missing:
                stack.extend(missing)
                continue
            env.update(zip(op.results, evaluate_op(op, [env[v] for v in op.operands]), strict=True))
    return [env[v] for v in wanted]
