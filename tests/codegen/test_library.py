"""Routines along an axis: running reductions, argmax, sort."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pullback.ir.types import DType, Shape, tensor_type
from tests.codegen.checks import assert_native_agrees, build
from tests.codegen.samples import operands

Array = np.ndarray[Any, Any]
I64 = np.dtype(np.int64)

DTYPES = tuple(np.dtype(t) for t in ("f8", "f4", "?", "i4", "c16", "f2", "u1", "i8"))
LINES = [((n,), 0) for n in (1, 5, 100, 1000)]
LINES += [((4, 37), 0), ((4, 37), 1), ((3, 5, 7), 1), ((0, 4), 0), ((50, 16), 0)]
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
    for shape, axis in LINES:
        x = numbers(shape, dtype, ties)
        places = np.arange(x.size).reshape(shape)

        def program(f, v, p, axis=axis):  # type: ignore[no-untyped-def]
            return [*f.ops_of("sort", v, p, axis=axis), *f.ops_of("sort", v, axis=axis)]

        assert_native_agrees(build([tensor_type(dtype, shape), tensor_type(I64, shape)], program), [x, places])
