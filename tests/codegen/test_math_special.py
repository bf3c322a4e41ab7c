"""Zeros, infinities, NaN and other corners: the same results as NumPy's or SciPy's, sign of zero included."""

import math
from importlib import import_module

import numpy as np
import pytest

from pullback.codegen.math import MATH
from tests.codegen.math_kernels import Kernel
from tests.codegen.math_special_cases import SPECIAL_CASES

CORNERS = np.array(
    [
        *(0.0, 1.0, 0.5, 2.0, 3.0, 7.5, 1e-300, 1e300, 5e-324, 1e-45, 1e-310, 3.4028235e38, 1.7976931348623157e308),
        *(np.inf, 1.0000000000000002, 0.9999999999999999, 2.0**53, 2.0**53 + 2, 2.0**24 - 1, 710.0, 1e5, 170.0),
    ]
)
CORNERS = np.concatenate([CORNERS, -CORNERS, [np.nan]])

# Values of float64 that SciPy and Python do not have right
EXPECTED = {
    "digamma": {-0.9999999999999999: -9007199254740991.58},
    "erfcinv": {5e-324: 27.21329321081295},
    "expit": {-710.0: 4.47628622567513e-309},
    "log_ndtr": {7.5: -3.190891672910947e-14},
    "ndtr": {-7.5: 3.1908916729108963e-14},
    "lgamma": {1.0000000000000002: -1.2816762426960008e-16, 0.9999999999999999: 6.408381213480008e-17},
}
OF_ORDER = {"polygamma", *{name for name, case in SPECIAL_CASES.items() if case.static}}  # below, test_math_orders.py
EXACT = ("fmod", "mod", "floor_divide", "nextafter")


def c_lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # poles; results too large
        return math.inf


def reference(name: str, *arrays: np.ndarray) -> np.ndarray:
    module, _, function = MATH[name].numpy.rpartition(".")
    with np.errstate(all="ignore"):
        if name == "lgamma":  # as in C: inf at -inf
            result = np.array([c_lgamma(float(x)) for x in arrays[0]]).astype(arrays[0].dtype)
        else:
            result = getattr(import_module(module), function)(*arrays)
    if result.dtype == np.float64:
        for argument, value in EXPECTED.get(name, {}).items():
            result = np.where(arrays[0] == argument, value, result)
    return result


def assert_same(
    got: np.ndarray, expected: np.ndarray, arrays: list[np.ndarray], exact: bool, beside_arguments: bool
) -> None:
    """NaN, infinities and zeros must be the same; other numbers close (test_math.py looks at them closely)."""
    special = ~np.isfinite(expected) | (expected == 0) & (not beside_arguments)
    tolerance = 0 if exact else 8 * np.finfo(got.dtype).eps
    size = abs(expected)
    if beside_arguments:
        size = np.maximum.reduce([size, *map(abs, arrays)])
    with np.errstate(all="ignore"):
        tiny = np.finfo(got.dtype).smallest_subnormal
        near = (abs(got - expected) <= tolerance * size + (0 if exact else tiny)) & np.isfinite(got)
        # the last number before overflow may be on either side of it
        edge = np.isinf(got) & (abs(expected) > np.finfo(got.dtype).max * (1 - 4 * np.finfo(got.dtype).eps))
    same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | np.isnan(got) & np.isnan(expected)
    fine = same | ~special & (near | edge) | (expected == 0) & (abs(got) <= tiny) & (not exact) & (got != 0)
    wrong = np.flatnonzero(~fine)
    assert not wrong.size, [(tuple(float(x[i]) for x in arrays), got[i], expected[i]) for i in wrong[:5]]


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", sorted(set(MATH) - OF_ORDER - {"kl_div"}))
def test_corners_are_numpys(name: str, dtype: str, lanes: int) -> None:
    with np.errstate(over="ignore"):
        corners = CORNERS.astype(dtype)
    arrays = [corners] if MATH[name].arity == 1 else [x.ravel() for x in np.meshgrid(corners, corners)]
    got = Kernel(name, dtype, lanes)(*arrays)
    assert_same(got, reference(name, *arrays), arrays, name in EXACT, name.startswith("logadd"))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", EXACT)
def test_exact_functions_equal_numpys_everywhere(name: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    x = 2.0 ** rng.uniform(-120, 120, 2000) * rng.choice([-1.0, 1.0], 2000)
    arrays = [
        np.concatenate([x, rng.uniform(-9, 9, 2000), np.rint(rng.uniform(-9, 9, 500))]).astype(dtype),
        np.concatenate([x[::-1], rng.uniform(-9, 9, 2000), np.rint(rng.uniform(-4, 4, 500))]).astype(dtype),
    ]
    for lanes in (1, 8):
        np.testing.assert_array_equal(Kernel(name, dtype, lanes)(*arrays), reference(name, *arrays))


@pytest.mark.parametrize("order", [1, 2])
def test_corners_of_polygamma_are_its_limits(order: int) -> None:
    x = np.array([0.0, -0.0, -1.0, -7.0, np.inf, np.nan, -np.inf, 1e-320, 1e-200])
    pole = np.inf if order == 1 else np.nan
    at_zero = np.inf if order == 1 else -np.inf
    expected = [pole, pole, pole, pole, 0.0 if order == 1 else -0.0, np.nan, np.nan, at_zero, at_zero]
    for lanes in (1, 8):
        np.testing.assert_array_equal(Kernel("polygamma", "f8", lanes, n=order)(x), expected)


def test_corners_of_kl_div_are_scipys() -> None:
    corners = np.array([0.0, -0.0, 0.5, 1.0, 3.0, -1.0, np.inf, -np.inf, np.nan])
    arrays = [x.ravel() for x in np.meshgrid(corners, corners)]
    wanted = reference("kl_div", *arrays)
    wanted[(arrays[0] > 0) & np.isfinite(arrays[0]) & (arrays[1] == np.inf)] = np.inf  # where SciPy has inf - inf
    np.testing.assert_allclose(Kernel("kl_div", "f8", 8)(*arrays), wanted, rtol=1e-15)


def test_subnormal_results_are_not_flushed() -> None:
    x = np.linspace(-745, -709, 64)
    np.testing.assert_allclose(Kernel("exp", "f8", 8)(x), np.exp(x), rtol=0, atol=5e-324)
