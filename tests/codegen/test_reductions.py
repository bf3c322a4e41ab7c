"""Reductions: every kind, dtype and choice of axes; accuracy, NaN, signed zeros, shares of several threads."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pullback.ir.emit import Emitter, Expr
from pullback.ir.types import DType, tensor_type
from tests.codegen.checks import assert_close, build, compiled
from tests.codegen.samples import ALL, operands

Array = np.ndarray[Any, Any]

SHAPES = (
    (), (1,), (5,), (8,), (37,), (1000,), (3, 4), (17, 33), (100, 3), (3, 100), (5, 6, 7), (4, 1, 9), (0, 3), (70, 70),
)  # fmt: skip
KINDS = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all,
    "nanmax": np.fmax.reduce, "nanmin": np.fmin.reduce,
}  # fmt: skip
ALLOWED = {
    "sum": "iufc", "prod": "iufc", "max": "biuf", "min": "biuf", "any": "b", "all": "b", "nanmax": "f", "nanmin": "f",
}  # fmt: skip
EXTREMA = ("max", "min", "nanmax", "nanmin")


def numbers(kind: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    size = math.prod(shape)
    x = operands(dtype, 1, max(size, 1), special=False)[0][:size].reshape(shape)
    return (x * 0.05 + 1).astype(dtype) if kind == "prod" and dtype.kind in "fc" else x


def reduced(kind: str, f: Emitter, x: Expr, axes: tuple[int, ...]) -> Expr:
    ties = {"ties": "equal"} if kind in EXTREMA else {}
    return f.op(kind, x, axes=axes, **ties)


def tolerance(x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
    """A few rounding errors of the sum of sizes, or of the product."""
    eps = 1e-3 if dtype == np.float16 else float(np.finfo(dtype).eps)
    return np.asarray(np.abs(x.astype(np.complex128)).sum(axes) * eps * 8 + eps)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_over_every_choice_of_axes(kind: str, shared: bool) -> None:
    for number, shape in enumerate(SHAPES):
        choices = [axes for n in range(len(shape) + 1) for axes in combinations(range(len(shape)), n)]
        if kind in EXTREMA:
            choices = [axes for axes in choices if all(shape[a] for a in axes)]
        dtypes = [d for d in ALL if d.kind in ALLOWED[kind]]
        dtype = dtypes[number % len(dtypes)] if number % 3 else dtypes[-1 if kind not in ("sum", "prod") else -3]
        x = numbers(kind, dtype, shape)
        program = build([tensor_type(dtype, shape)], lambda f, v: [reduced(kind, f, v, a) for a in choices], kind)
        for axes, found in zip(choices, compiled(program)(x), strict=True):
            expected = np.asarray(KINDS[kind](x, axis=axes) if axes else x, dtype)
            if dtype.kind in "fc" and kind in ("sum", "prod"):
                assert np.all(np.abs(found - expected) <= tolerance(x, axes, dtype)), (kind, dtype, shape, axes)
            else:
                assert_close(found, expected, 0, f"{kind} {dtype} {shape} {axes}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype(kind: str, dtype: DType) -> None:
    if dtype.kind not in ALLOWED[kind]:
        return
    x = numbers(kind, dtype, (17, 33))
    axes_list = ((0,), (1,), (0, 1))
    program = build([tensor_type(dtype, x.shape)], lambda f, v: [reduced(kind, f, v, a) for a in axes_list])
    for axes, found in zip(axes_list, compiled(program)(x), strict=True):
        expected = np.asarray(KINDS[kind](x, axis=axes), dtype)
        if dtype.kind in "fc" and kind in ("sum", "prod"):
            assert np.all(np.abs(found - expected) <= tolerance(x, axes, dtype) * (4 if kind == "prod" else 1))
        else:
            assert_close(found, expected, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1000, 12_345, 1_000_000])
def test_the_error_of_a_sum_does_not_grow_with_its_length(size: int, dtype: type) -> None:
    x = np.random.default_rng(0).random(size).astype(dtype)
    found = compiled(build([tensor_type(np.dtype(dtype), (size,))], lambda f, v: f.sum(v, axes=(0,))))(x)[0]
    exact = math.fsum(x.tolist())
    eps = float(np.finfo(dtype).eps)
    assert abs(float(found) - exact) <= max(abs(float(np.sum(x)) - exact), 2 * eps * exact)


def test_nan_wins_wherever_it_stands() -> None:
    def program(f: Emitter, v: Expr) -> list[Expr]:
        return [f.op(kind, v, axes=(0,), ties="equal") for kind in ("max", "min")]

    native = compiled(build([tensor_type(np.dtype(np.float64), (53,))], program))
    for place in (0, 1, 7, 8, 31, 32, 48, 52):
        x = np.arange(53.0)
        x[place] = np.nan
        assert np.isnan(native(x)[0])
        assert np.isnan(native(x)[1])


def test_infinities_and_signed_zeros_add_up_as_in_numpy() -> None:
    program = build([tensor_type(np.dtype(np.float64), (700,))], lambda f, v: f.sum(v, axes=(0,)))
    native = compiled(program)
    for values in ([np.inf], [np.inf, -np.inf], [-np.inf, 1.0], [np.nan], [1e308, 1e308], [-0.0]):
        x = np.full(700, -0.0)
        x[: len(values)] = values
        with np.errstate(all="ignore"):
            expected = np.sum(x)
        found = native(x)[0]
        assert np.array_equal(found, expected, equal_nan=True)
        assert np.isnan(expected) or np.signbit(found) == np.signbit(expected)


def test_several_reductions_share_one_pass(shared: bool) -> None:
    """Sums along both axes and over all, with what they add up stored as well: accumulators in registers and memory."""
    x = np.random.default_rng(0).standard_normal((61, 45))

    def program(f: Emitter, v: Expr) -> list[Expr]:
        y = f.exp(v) * v
        return [y, f.sum(y, axes=(0,)), f.sum(y, axes=(1,)), f.sum(y, axes=(0, 1)), f.max(y, axes=(0,), ties="equal")]

    function = build([tensor_type(x.dtype, x.shape)], program)
    found = compiled(function)(x)
    y = np.exp(x) * x
    for got, want in zip(found, [y, y.sum(0), y.sum(1), y.sum(), y.max(0)], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)
