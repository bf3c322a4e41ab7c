"""dot_general in every way it is computed: as a kernel, in generated tiles, by BLAS; one or several threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.codegen import gemm
from pullback.codegen.library import products
from pullback.codegen.lower import lower
from pullback.codegen.target import host_target
from pullback.ir.types import DType, Shape, tensor_type
from tests.codegen.checks import assert_native_agrees, build
from tests.native import simple_plan

Array = np.ndarray[Any, Any]
Axes = tuple[int, ...]
Pair = tuple[Axes, Axes]

DTYPES = {"f8": 200, "f4": 300, "c16": 200, "c8": 400, "i4": 0, "f2": 100}
NONE: Pair = ((), ())
CASES: list[tuple[Shape, Shape, Pair, Pair]] = [
    ((3, 4), (4, 5), ((1,), (0,)), NONE),
    ((4, 3), (4, 5), ((0,), (0,)), NONE),
    ((3, 4), (5, 4), ((1,), (1,)), NONE),
    ((4, 3), (5, 4), ((0,), (1,)), NONE),
    ((100,), (100,), ((0,), (0,)), NONE),
    ((4,), (5,), NONE, NONE),
    ((30, 4), (4,), ((1,), (0,)), NONE),
    ((4,), (4, 30), ((0,), (0,)), NONE),
    ((1, 4), (4, 30), ((1,), (0,)), NONE),
    ((100, 3), (100, 3), ((0,), (0,)), NONE),
    ((64, 48), (48, 32), ((1,), (0,)), NONE),
    ((130, 70), (70, 50), ((1,), (0,)), NONE),
    ((70, 130), (50, 70), ((0,), (1,)), NONE),
    ((200, 200), (200,), ((1,), (0,)), NONE),
    ((200, 200), (200,), ((0,), (0,)), NONE),
    ((5, 8, 6), (5, 6, 7), ((2,), (1,)), ((0,), (0,))),
    ((8, 5, 6), (6, 7, 5), ((2,), (0,)), ((1,), (2,))),
    ((2, 3, 4, 5), (3, 2, 6, 5), ((3,), (3,)), ((0, 1), (1, 0))),
    ((2, 3, 4), (4, 3, 6), ((1, 2), (1, 0)), NONE),
    ((2, 3, 4), (3, 4, 6), ((1, 2), (0, 1)), NONE),
    ((40, 17, 9), (40, 9, 33), ((2,), (1,)), ((0,), (0,))),
    ((3, 10, 4, 6), (3, 12, 4, 6), ((3,), (3,)), ((0, 2), (0, 2))),
    ((3, 0), (0, 4), ((1,), (0,)), NONE),
]


def matrices(shape: Shape, dtype: DType, rng: np.random.Generator) -> Array:
    if dtype.kind in "iu":
        return rng.integers(0, 5, shape).astype(dtype)
    x = np.abs(rng.standard_normal(shape))  # without cancellation the error is a few units
    return (x * (1 + 0.5j) if dtype.kind == "c" else x).astype(dtype)


def check(case: tuple[Shape, Shape, Pair, Pair], name: str) -> None:
    left, right, contract, batch = case
    dtype, rng = np.dtype(name), np.random.default_rng(0)
    types = [tensor_type(dtype, left), tensor_type(dtype, right)]
    function = build(types, lambda f, x, y: f.dot_general(x, y, contract=contract, batch=batch))
    assert_native_agrees(function, [matrices(left, dtype, rng), matrices(right, dtype, rng)], DTYPES[name])


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_products_agree_with_numpy(case: tuple[Shape, Shape, Pair, Pair], name: str) -> None:
    check(case, name)


@pytest.mark.parametrize("name", ["f8", "f4", "c16"])
@pytest.mark.parametrize("case", [c for c in CASES if len(c[0]) > 1], ids=str)
def test_products_by_blas(case: tuple[Shape, Shape, Pair, Pair], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "is_near", lambda shapes: False)
    check(case, name)


@pytest.mark.parametrize("name", ["f8", "f4"])
@pytest.mark.parametrize("case", [c for c in CASES if len(c[0]) > 1], ids=str)
def test_products_by_the_shared_function(
    case: tuple[Shape, Shape, Pair, Pair], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "FEW_PRODUCTS", 0)
    monkeypatch.setattr(gemm, "OWN_CODE_UP_TO", 0)
    monkeypatch.setattr(products, "SHARED_FROM", 2000)
    check(case, name)


@pytest.mark.parametrize("case", [c for c in CASES if len(c[0]) > 1], ids=str)
def test_products_shared_among_threads(
    case: tuple[Shape, Shape, Pair, Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "SHARED_FROM", 200)
    check(case, "f8")


def test_a_large_product_calls_blas_without_copying() -> None:
    types = [tensor_type(np.dtype(np.float64), (2000, 600))] * 2
    function = build(types, lambda f, x, y: f.dot_general(x, y, contract=((0,), (0,)), batch=((), ())))
    lowered = lower(simple_plan(function), host_target())
    assert "cblas_dgemm" in lowered.symbols
    assert lowered.arena_bytes == 0


def test_without_a_blas_products_are_generated() -> None:
    types = [tensor_type(np.dtype(np.float64), (2000, 600))] * 2
    function = build(types, lambda f, x, y: f.dot_general(x, y, contract=((0,), (0,)), batch=((), ())))
    lowered = lower(simple_plan(function), host_target(), blas_int=0)
    assert not [name for name in lowered.symbols if name.startswith("cblas")]
