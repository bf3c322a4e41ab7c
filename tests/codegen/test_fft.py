"""The discrete Fourier transform: native code gives what numpy.fft gives, for any length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

from pullback.codegen.library.fft import SHARED_FROM, TOGETHER_BELOW
from pullback.codegen.library.fft_plan import (
    LARGEST,
    best_split,
    convolution_length,
    is_direct,
    passes_of,
    radices_of,
    unit_roots,
)
from pullback.codegen.lower import lower
from pullback.codegen.target import compile_module, host_target, load_object
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.types import DType, Shape, tensor_type
from tests.codegen.checks import build, compiled
from tests.native import Native, simple_plan, symbols_of

Array = np.ndarray[Any, Any]
DTYPES = (np.dtype(np.complex64), np.dtype(np.complex128))
by_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def numbers(dtype: DType, *shape: int) -> Array:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def transforms(dtype: DType, shapes: Sequence[Shape], inverse: bool = False) -> Function:
    """The transforms of arrays of these shapes in one function."""

    def program(f: Emitter, *xs: Expr) -> list[Expr]:
        return [f.fft(x, inverse=inverse) for x in xs]

    return build([tensor_type(dtype, shape) for shape in shapes], program)


def assert_transforms(native: Native, xs: Sequence[Array], inverse: bool = False) -> None:
    """The error of each line, relative in the 2-norm, grows as the logarithm of the length."""
    for x, found in zip(xs, native(*xs), strict=True):
        assert (found.dtype, found.shape) == (x.dtype, x.shape)
        exact = x.astype(np.clongdouble)
        wanted = np.fft.ifft(exact, norm="forward") if inverse else np.fft.fft(exact)
        error, size = (np.sqrt(np.sum(np.abs(y) ** 2, axis=-1)) for y in (found - wanted, wanted))
        bound = np.finfo(x.dtype).eps * max(1.0, math.log2(x.shape[-1]))
        assert np.all(error <= bound * size), (x.shape, float(np.max(error / size)), bound)


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(("dtype", "inverse"), [(DTYPES[0], False), (DTYPES[1], True)], ids=str)
@pytest.mark.parametrize("lengths", [range(1, 50), range(50, 100), range(100, 140)], ids=["to 49", "to 99", "to 139"])
def test_every_length(dtype: DType, inverse: bool, lengths: range) -> None:
    xs = [numbers(dtype, n) for n in lengths]
    assert_transforms(compiled(transforms(dtype, [x.shape for x in xs], inverse)), xs, inverse)


@by_dtype
@pytest.mark.parametrize("n", [256, 360, 1000, 1021, 4096, 127 * 128, 10007, 30030, SHARED_FROM, 40961, 98304])
def test_long_lines(dtype: DType, n: int) -> None:
    assert_transforms(compiled(transforms(dtype, [(n,)])), [numbers(dtype, n)])


@by_dtype
@pytest.mark.parametrize("n", [2, 7, 31, 60, 127, 128, 211])
def test_batches_of_lines(dtype: DType, n: int) -> None:
    counts: list[Shape] = [(0,), (1,), (3,), (16,), (2, 17), (40, 9)]
    xs = [numbers(dtype, *count, n) for count in counts]
    inverse = n % 2 == 0
    assert_transforms(compiled(transforms(dtype, [x.shape for x in xs], inverse)), xs, inverse)


def test_batches_of_long_lines_share_tables_made_at_the_call() -> None:
    x = numbers(DTYPES[1], 3, 10007)
    assert_transforms(compiled(transforms(DTYPES[1], [x.shape], True)), [x], True)


@by_dtype
@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_shorter_vectors(dtype: DType, vector_bytes: int) -> None:
    xs = [numbers(dtype, *shape) for shape in ((12,), (13,), (100,), (131,), (9, 10), (9, 131))]
    function = transforms(dtype, [x.shape for x in xs])
    target = replace(host_target(), vector_bytes=vector_bytes)
    lowered = lower(simple_plan(function), target)
    code = compile_module(lowered.text, target)
    native = Native(function, lowered, load_object(code, [lowered.kernel], symbols_of(lowered)))
    assert_transforms(native, xs)


def test_the_inverse_takes_the_transform_back() -> None:
    xs = [numbers(DTYPES[1], n) for n in (8, 45, 97, 262)]

    def program(f: Emitter, *xs: Expr) -> list[Expr]:
        return [f.fft(f.fft(x, inverse=False), inverse=True) for x in xs]

    native = compiled(build([tensor_type(x.dtype, x.shape) for x in xs], program))
    for x, back in zip(xs, native(*xs), strict=True):
        np.testing.assert_allclose(back / len(x), x, rtol=0, atol=1e-14)


def test_an_impulse_has_a_flat_transform_and_nan_spoils_its_line_only() -> None:
    lengths = (2, 5, 16, 49, 64, 131)
    xs = [np.zeros((20, n), np.complex128) for n in lengths]
    for x in xs:
        x[:, 0] = 1
        x[7, -1] = np.nan
    for x, found in zip(xs, compiled(transforms(DTYPES[1], [x.shape for x in xs]))(*xs), strict=True):
        assert np.all(np.isnan(found[7]))
        bound = 1e-15 if is_direct(x.shape[1], 8, 8) else 1e-14
        np.testing.assert_allclose(np.delete(found, 7, 0), 1, rtol=0, atol=bound)


# ------------------------------------------------------------------ plans


def test_roots_of_unity_are_rounded_once() -> None:
    with mpmath.workdps(40):
        for n in (1, 2, 3, 8, 100, 10007, 1 << 20):
            t = np.arange(-3, 2 * n, max(1, n // 40))
            for k, root in zip(t.tolist(), unit_roots(t, n), strict=True):
                exact = mpmath.expjpi(mpmath.mpf(-2 * k) / n)
                assert abs(mpmath.mpf(root.real) - exact.real) <= 2**-53
                assert abs(mpmath.mpf(root.imag) - exact.imag) <= 2**-53


def test_passes_go_through_all_factors_of_a_length() -> None:
    for n in [*range(1, 600), 1 << 20, 30030, 127**2]:
        if radices_of(n) is None:
            continue
        stride = 1
        for step in passes_of(n):
            assert step.stride == stride
            assert step.radix * step.count * step.stride == n
            stride *= step.radix
        assert stride == n
    assert radices_of(131) is None
    assert radices_of(2 * 131) is None
    assert LARGEST < 131


@pytest.mark.parametrize("lanes", [2, 8, 16])
def test_splits_and_convolutions_fit_the_length(lanes: int) -> None:
    for n in [*range(2, 300), 10007, 65536, 1 << 20]:
        if radices_of(n) is not None:
            split = best_split(n, lanes)
            assert split.rows * split.columns == n
        length = convolution_length(n, lanes)
        assert length >= 2 * n - 1
        assert radices_of(length) is not None
    assert is_direct(64, lanes, 1)
    assert not is_direct(131, lanes, 1)
    assert is_direct(TOGETHER_BELOW - 1, lanes, lanes) == (radices_of(TOGETHER_BELOW - 1) is not None)
