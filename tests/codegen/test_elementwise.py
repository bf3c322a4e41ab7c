"""Elementwise ops in every dtype: native code gives what the op's evaluation gives, special numbers included."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.opdef import OpDef, Scalar
from pullback.ir.ops import ALL_OPS
from pullback.ir.types import DType, tensor_type
from tests.codegen.checks import assert_close, assert_native_agrees, build, compiled
from tests.codegen.samples import ALL, FLOATS, operands

Array = np.ndarray[Any, Any]

ELEMENTWISE = tuple(op for op in ALL_OPS if isinstance(op.lower, Scalar))
ULP = 4
# The interpreter's own reference is no better than this.
LOOSE = {"lgamma": 256, "digamma": 64, "polygamma": 256, "pow": 16, "integer_pow": 40}
LOOSE |= {"logaddexp": 32, "logaddexp2": 32, "kl_div": 64, "jv": 64, "yv": 64}
LOOSE |= {"gammainc": 1e5, "gammaincc": 1e5}  # the second derivative has a zero near a = x
LOOSE |= {"iv": 16, "ive": 16, "kv": 16, "kve": 16, "erfcx": 16, "exprel": 16}
COMPLEX_ULP = 32


def attributes(op: OpDef) -> list[dict[str, Any]]:
    if op.name == "cast":
        return [{"dtype": dtype} for dtype in ALL]
    if op.name == "integer_pow":
        return [{"n": n} for n in (0, 1, 2, 3, 5, -1, -2, 40)]
    return [{"n": n} for n in (1, 2)] if "n" in op.attrs else [{}]


def arguments(op: OpDef, dtype: DType, attrs: dict[str, Any]) -> list[Array]:
    args = operands(dtype, op.arity or 1)
    if op.name == "select":
        args[0] = np.random.default_rng(1).random(args[1].size) < 0.5
    if op.name == "cast" and dtype.kind == "f" and attrs["dtype"].kind in "iu":
        # What does not fit has no defined result in C, nor in NumPy.
        args = [np.where(np.isfinite(args[0]) & (np.abs(args[0]) < 100), args[0], 1).astype(dtype)]
        args = [np.abs(args[0])] if attrs["dtype"].kind == "u" else args
    if op.name == "integer_pow" and dtype.kind == "c":
        args = [(args[0] / 4).astype(dtype)]
    return args


Call = tuple[list[Array], dict[str, Any]]


def is_typed(op: OpDef, args: list[Array], attrs: dict[str, Any]) -> bool:
    try:
        build([tensor_type(a.dtype, a.shape) for a in args], lambda f, *xs: f.op(op.name, *xs, **attrs), op.name)
    except (TypeRuleError, ShapeError):
        return False
    return True


def together(op: OpDef, calls: list[Call]) -> Function:
    """One function that does all calls, so that there is one compilation for each op."""

    def program(f: Emitter, *xs: Expr) -> list[Expr]:
        rest = iter(xs)
        return [f.op(op.name, *[next(rest) for _ in args], **attrs) for args, attrs in calls]

    return build([tensor_type(a.dtype, a.shape) for args, _ in calls for a in args], program, op.name)


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_native_code_agrees_with_the_evaluation_in_every_dtype(op: OpDef) -> None:
    calls = [(arguments(op, dtype, attrs), attrs) for dtype in ALL for attrs in attributes(op)]
    dtypes = [dtype for dtype in ALL for _ in attributes(op)]
    typed = [(call, dtype) for call, dtype in zip(calls, dtypes, strict=True) if is_typed(op, *call)]
    assert typed
    function = together(op, [call for call, _ in typed])
    values = [a for (args, _), _ in typed for a in args]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = interpret(function, values)
    for x, y, (_, dtype) in zip(compiled(function)(*values), expected, typed, strict=True):
        ulp = COMPLEX_ULP if dtype.kind == "c" else LOOSE.get(op.name, ULP)
        assert_close(x, np.asarray(y), ulp, f"{op.name} of {dtype}")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 9, 31, 32, 33, 100])
def test_every_length_is_covered_exactly(size: int, dtype: DType) -> None:
    args = operands(dtype, 2, size)
    types = [tensor_type(dtype, (size,))] * 2
    assert_native_agrees(build(types, lambda f, x, y: (x * y + x) / f.maximum(x, y)), args)


def test_an_operation_of_float16_is_rounded_once() -> None:
    """float64 to float16 by way of float32 must not round twice."""
    halfway = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-40, 65519.99999, 65520.0, 2.0**-25 + 2.0**-60])
    function = build([tensor_type(np.float64, (5,))], lambda f, x: f.cast(x, dtype=np.dtype(np.float16)))
    assert_native_agrees(function, [halfway])
