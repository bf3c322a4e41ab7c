"""Routines along an axis: running reductions, argmax, sort."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pullback.ir.types import DType, Shape, tensor_type
from pullback.passes.fuse import fuse
from tests.codegen.checks import assert_native_agrees, build
from tests.codegen.samples import operands
from tests.native import run_native, simple_plan

Array = np.ndarray[Any, Any]
I64 = np.dtype(np.int64)

DTYPES = tuple(np.dtype(t) for t in ("f8", "f4", "?", "i4", "c16", "f2", "u1", "i8"))
LINES = [((n,), 0) for n in (1, 5, 100, 1000)]
LINES += [((4, 37), 0), ((4, 37), 1), ((3, 5, 7), 1), ((0, 4), 0), ((50, 16), 0)]
LONG_LINES = [((300, 3), 0), ((2, 70, 3), 1), ((40, 200), 1), ((1, 70_000), 1)]
pytestmark = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def numbers(shape: Shape, dtype: DType, ties: bool = False, nans: bool = True) -> Array:
    size = math.prod(shape)
    x = operands(dtype, 1, max(size, 1), special=False)[0][:size].reshape(shape)
    x = np.round(x).astype(dtype) if ties and dtype.kind == "f" else x
    if nans and dtype.kind == "f" and size > 30:
        x.reshape(-1)[11::17] = np.nan
    return x


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_running_reductions(name: str, dtype: DType) -> None:
    if dtype.kind not in ("iufc" if name in ("cumsum", "cumprod") else "iuf"):
        return
    for shape, axis in LINES:
        x = numbers(shape, dtype)
        x = (x * 0.1).astype(dtype) if name == "cumprod" else x

        def program(f, v, axis=axis):  # type: ignore[no-untyped-def]
            return [f.op(name, v, axis=axis, reverse=reverse) for reverse in (False, True)]

        assert_native_agrees(build([tensor_type(dtype, shape)], program, name), [x], 4)


@pytest.mark.parametrize("ties", [False, True])
def test_the_first_extremum_wins_and_the_first_nan_before_it(ties: bool, dtype: DType) -> None:
    if dtype.kind == "c":
        return
    for shape, axis in LINES:
        if 0 in shape:
            continue
        x = numbers(shape, dtype, ties)

        def program(f, v, axis=axis):  # type: ignore[no-untyped-def]
            return [f.argmax(v, axis=axis), f.argmin(v, axis=axis)]

        assert_native_agrees(build([tensor_type(dtype, shape)], program), [x])


@pytest.mark.parametrize("ties", [False, True])
def test_sort_is_stable_and_puts_nan_last(ties: bool, dtype: DType) -> None:
    for shape, axis in LINES + LONG_LINES:
        x = numbers(shape, dtype, ties)
        places = np.arange(x.size).reshape(shape)

        def program(f, v, p, axis=axis):  # type: ignore[no-untyped-def]
            return [*f.ops_of("sort", v, p, axis=axis), *f.ops_of("sort", v, axis=axis)]

        assert_native_agrees(build([tensor_type(dtype, shape), tensor_type(I64, shape)], program), [x, places])


def test_sort_keeps_the_order_of_zeros_and_puts_the_ends_right(dtype: DType) -> None:
    if dtype.kind != "f":
        return
    x = np.tile(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 6e-8, -6e-8], dtype), 10)
    places = np.arange(x.size)
    types = [tensor_type(dtype, x.shape), tensor_type(I64, x.shape)]
    function = build(types, lambda f, v, p: f.ops_of("sort", v, p, axis=0))
    found, order = run_native(simple_plan(fuse(function)), [x, places])
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x[order]))
