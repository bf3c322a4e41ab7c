"""NumPy's functions, each on a sample or more: the traced program gives NumPy's values, dtypes and structure."""

from typing import Any

import numpy as np
import pytest

from tests.tracer import calculation_samples, linalg_samples, structure_samples
from tests.tracer.support import assert_as_numpy

ALL = structure_samples.SAMPLES + calculation_samples.SAMPLES + linalg_samples.SAMPLES


@pytest.mark.parametrize("sample", ALL, ids=lambda s: s[0])
def test_a_traced_function_gives_numpys_result_and_captures_nothing(sample: tuple[Any, ...]) -> None:
    _, function, *arguments = sample
    program = assert_as_numpy(function, *arguments)
    assert program.extras == ()
    assert not program.watched


def test_fourier_transforms_of_odd_lengths_agree() -> None:
    assert_as_numpy(lambda a: (np.fft.rfft(a), np.fft.irfft(np.fft.rfft(a), 5)), np.arange(5.0))


def test_windows_polynomials_and_histograms_agree() -> None:
    y = np.array([0.3, -1.2, 2.0, 0.7])
    for function in (
        lambda a: np.hanning(4) * a,
        lambda a: np.kaiser(6, a[0]),
        lambda a: np.polyfit(np.arange(4.0), a, 2),
        lambda a: np.polydiv(a, [1.0, 2.0]),
        lambda a: np.histogram2d(a, a**2, bins=3),
        lambda a: np.histogramdd(np.stack([a, a**2], 1), bins=2)[0],
        lambda a: np.i0(a),
    ):
        assert_as_numpy(function, y)


def test_the_polynomial_package_evaluates_traced_coefficients_and_points() -> None:
    from numpy.polynomial import chebyshev, legendre, polynomial

    y = np.array([0.3, -1.2, 2.0, 0.7])
    for function in (
        lambda a: polynomial.polyval(2.0, a),
        lambda a: chebyshev.chebval(a, a),
        lambda a: legendre.legval(0.3, a),
        lambda a: polynomial.polyder(polynomial.polymul(a, [1.0, 2.0])),
        lambda a: polynomial.polyvander(a, 3),
        lambda a: np.polynomial.Polynomial([1, 2, 3.0])(a),
        polynomial.polyint,
    ):
        assert_as_numpy(function, y)


def test_minors_factors_and_the_division_free_way_give_the_same_determinant() -> None:
    rng = np.random.default_rng(3)
    for n in range(1, 8):
        assert_as_numpy(np.linalg.det, rng.normal(size=(n, n)))
    singular = rng.normal(size=(6, 6))
    singular[2] = 0
    assert_as_numpy(np.linalg.det, singular)


def test_piecewise_hands_its_functions_the_chosen_elements() -> None:
    y = np.array([-1.0, 2.0, 3.0, -4.0])
    for function in (
        lambda a: np.piecewise(a, [a < 0], [lambda v: v * v.sum(), lambda v: v**2 - v.mean()]),
        lambda a: np.piecewise(a, [a < 0], [lambda v, k: v * v.size, lambda v, k: np.sort(v) * k], 3.0),
        lambda a: np.piecewise(a, [a > 0, a > 2.5], [np.square, 7.0]),
        lambda a: np.piecewise(a[1], [a[1] < 0], [lambda v: -v, lambda v: v**3]),
        lambda a: np.piecewise(a, [np.array([True, False, True, False])], [np.exp, np.negative]),
    ):
        assert_as_numpy(function, y)


def test_even_spacing_between_narrow_floats_stays_narrow() -> None:
    narrow = np.array([1.0, 2.0], np.float32)
    for function in (
        lambda a: np.linspace(0, a[0], 3),
        lambda a: np.linspace(a, a * 2, 3, endpoint=False),
        lambda a: np.linspace(np.float64(0), a[1], 3),
        lambda a: np.linspace(0, a.astype(np.int16), 3),
    ):
        assert_as_numpy(function, narrow)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_long_kernels_are_convolved_without_a_table_of_windows(mode: str) -> None:
    rng = np.random.default_rng(5)
    signal, kernel = rng.normal(size=500), rng.normal(size=70)
    program = assert_as_numpy(lambda x, k: (np.convolve(x, k, mode), np.correlate(k, x, mode)), signal, kernel)
    constants = [op.attrs["value"].array.size for op in program.function.ops if op.name == "constant"]
    assert max(constants, default=0) <= 1
