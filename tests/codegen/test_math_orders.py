"""Math functions with an order: corners as SciPy has them, and every order against arbitrary precision."""

from functools import partial

import numpy as np
import pytest
from mpmath import mp, mpf

from pullback.codegen.math import MATH
from pullback.errors import CodegenError
from tests.codegen.math_kernels import Kernel, error_in_ulp, exact_values
from tests.codegen.math_special_cases import bessel_k, envelope, erfcx_of_order, exprel, gammainc, gammaincc

special = pytest.importorskip("scipy.special")

CORNERS = np.array([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-310, 2.0, 8.0, 700.0, -700.0, np.inf, -np.inf, np.nan])
NAMES = {
    **{(f"{name}v", n): f"{name}{n}" for name in "jyik" for n in (0, 1)},
    **{(f"{name}ve", n): f"{name}{n}e" for name in "ik" for n in (0, 1)},
    ("erfcx", 0): "erfcx",
    ("exprel", 0): "exprel",
}
WRONG = {"kv": (5e-324,), "kve": (5e-324,)}  # what SciPy does not have right


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(("name", "n"), NAMES)
def test_corners_are_scipys(name: str, n: int, lanes: int) -> None:
    with np.errstate(all="ignore"):
        wanted = getattr(special, NAMES[name, n])(CORNERS)
    got = Kernel(name, "f8", lanes, n=n)(CORNERS)
    wanted[np.isin(CORNERS, WRONG.get(name, ()))] = got[np.isin(CORNERS, WRONG.get(name, ()))]
    np.testing.assert_allclose(got, wanted, rtol=4e-15, atol=2e-15 if name in ("jv", "yv") else 5e-324)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(wanted)[known])


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_corners_of_incomplete_gamma_functions_are_scipys(name: str, lanes: int) -> None:
    line = np.array([0.0, -0.0, 1.0, -1.0, 1e-300, 0.5, 2.0, 30.0, 1e3, 1e5, np.inf, -np.inf, np.nan])
    a, x = (grid.ravel() for grid in np.meshgrid(line, line))
    with np.errstate(all="ignore"):
        wanted = getattr(special, name)(a, x)
    np.testing.assert_allclose(Kernel(name, "f8", lanes, n=0)(a, x), wanted, rtol=1e-11, atol=1e-300)


# name, order -> reference, bound, least and largest argument, size beside which errors count from the order on
ORDERS = {
    **{("erfcx", n): (partial(erfcx_of_order, n), 4.0, -5.0, 40.0) for n in (1, 2, 4)},
    **{("exprel", n): (partial(exprel, n), 3.0 + n, -40.0, 40.0) for n in (1, 2, 5)},
    **{("jv", n): (lambda x, n=n: mp.besselj(n, x), 4.0 + n / 2, 0.01, 60.0) for n in (1, 2, 3, 12, 40)},
    **{("yv", n): (lambda x, n=n: mp.bessely(n, x), 4.0 + 1.5 * n, 0.01, 60.0) for n in (1, 2, 5, 40)},
    **{("iv", n): (lambda x, n=n: mp.besseli(n, x), 4.0 + n, 0.01, 60.0) for n in (1, 2, 3, 8, 30)},
    **{("ive", n): (lambda x, n=n: mp.besseli(n, x) * mp.exp(-x), 4.0 + n, 0.01, 60.0) for n in (1, 2, 3, 8)},
    **{("kv", n): (partial(bessel_k, n), 4.0 + n, 0.01, 40.0) for n in (1, 2, 8, 50)},
    **{("kve", n): (lambda x, n=n: bessel_k(n, x) * mp.exp(x), 4.0 + n, 0.01, 40.0) for n in (1, 2, 8)},
}


@pytest.mark.parametrize(("name", "n"), ORDERS)
def test_every_order_is_within_its_bound(name: str, n: int) -> None:
    reference, bound, low, high = ORDERS[name, n]
    x = np.random.default_rng(n).uniform(low, high, 12 if name[0] == "k" else 60)
    got = Kernel(name, "f8", 8, n=n)(x)
    exact = exact_values(reference, [x])
    oscillates = name in ("jv", "yv")
    sizes = [envelope(v) if oscillates and v > min(n, 8.0) else 0.0 for v in x]
    errors = [error_in_ulp(a, r, x.dtype, size) for a, r, size in zip(got, exact, sizes, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, f"{errors[worst]:.3f} ulp at {x[worst]}: {got[worst]!r}"


@pytest.mark.parametrize("n", [1, 2])
def test_derivatives_of_incomplete_gamma_functions_in_the_first_argument(n: int) -> None:
    rng = np.random.default_rng(n)
    a = np.concatenate([rng.uniform(0, 3, 12), rng.uniform(3, 40, 12), 2.0 ** rng.uniform(-20, 0, 6)])
    x = np.concatenate([rng.uniform(0, 5, 12), rng.uniform(3, 40, 12), 2.0 ** rng.uniform(-9, 2, 6)])

    def reference(u: mpf, v: mpf) -> mpf:
        with mp.workdps(50):  # of the smaller part, so that nothing cancels
            if v < u:
                return mp.diff(lambda t: gammainc(t, v), u, n, h=mpf(10) ** -12)
            return -mp.diff(lambda t: gammaincc(t, v), u, n, h=mpf(10) ** -12)

    with mp.workdps(50):
        exact = np.array([float(reference(mpf(u), mpf(v))) for u, v in zip(a, x, strict=True)])
    np.testing.assert_allclose(Kernel("gammainc", "f8", 8, n=n)(a, x), exact, rtol=1e-13)
    np.testing.assert_allclose(Kernel("gammaincc", "f8", 8, n=n)(a, x), -exact, rtol=1e-13)


def test_a_lane_with_huge_arguments_leaves_its_neighbours_alone() -> None:
    a = np.array([1.7e308, 0.5, 1e308, 2.0, 1e6, 3.0, 0.0, 1e-300] * 2)
    x = np.array([1e-310, 0.5, 0.3, 3.0, 1e6, 1e300, 0.25, 0.125] * 2)
    for name in ("gammainc", "gammaincc"):
        for n in (0, 1, 2):
            alone = Kernel(name, "f8", 1, n=n)(a, x)
            for lanes in (4, 8, 16):
                np.testing.assert_allclose(Kernel(name, "f8", lanes, n=n)(a, x), alone, rtol=4e-15)


def test_incomplete_gamma_functions_of_large_arguments() -> None:
    a = np.array([1e3, 1e4, 1e6, 1e8, 1e12, 1e6, 1e8])
    x = np.array([1.1e3, 9.9e3, 1.001e6, 9.9999e7, 1e12 + 1e6, 1e6, 1e8 + 3e4])
    for name in ("gammainc", "gammaincc"):
        np.testing.assert_allclose(Kernel(name, "f8", 8, n=0)(a, x), getattr(special, name)(a, x), rtol=3e-11)


@pytest.mark.parametrize("name", sorted({name for name, _ in ORDERS} | {"gammainc", "gammaincc"}))
def test_an_impossible_order_is_an_error(name: str) -> None:
    if name == "erfcx":
        pytest.skip("it takes any")
    with pytest.raises(CodegenError, match="n = 105"):
        Kernel(name, "f8", 1, n=105)
    assert MATH[name].ulp[0] <= 8.0
