"""Elementwise ops in every dtype: native code gives what the op's evaluation gives, special numbers included."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.graph import Function
from pullback.ir.opdef import OpDef, Scalar
from pullback.ir.ops import ALL_OPS
from pullback.ir.types import DType, tensor_type
from tests.codegen.checks import assert_native_agrees, build
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


def made(op: OpDef, args: list[Array], attrs: dict[str, Any]) -> Function | None:
    try:
        types = [tensor_type(a.dtype, a.shape) for a in args]
        return build(types, lambda f, *xs: f.op(op.name, *xs, **attrs), op.name)
    except (TypeRuleError, ShapeError):
        return None


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_native_code_agrees_with_the_evaluation_in_every_dtype(op: OpDef) -> None:
    met = 0
    for dtype in ALL:
        for attrs in attributes(op):
            args = arguments(op, dtype, attrs)
            function = made(op, args, attrs)
            if function is None:
                continue
            met += 1
            ulp = COMPLEX_ULP if dtype.kind == "c" else LOOSE.get(op.name, ULP)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert_native_agrees(function, args, ulp)
    assert met


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
