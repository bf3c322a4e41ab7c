"""Special functions: where to look and what is right."""

import numpy as np
from mpmath import mp, mpf

from tests.codegen.math_points import Case, around, between, one, sizes

PROBABILITY = (between(0, 1), sizes(-1070, -1, False), around(0.5, -40, -1.1))


def ndtr(x: mpf) -> mpf:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log_ndtr(x: mpf) -> mpf:
    return mp.log(ndtr(x)) if x < 3 else mp.log1p(-ndtr(-x))


def erfcx(x: mpf) -> mpf:
    if x < 1e3:
        return mp.exp(x * x) * mp.erfc(x)
    return (1 - 1 / (2 * x * x) + 3 / (4 * x**4)) / (x * mp.sqrt(mp.pi))


def erfcx_of_order(n: int, x: mpf) -> mpf:
    """exp(x**2) times the n-th repeated integral of erfc."""
    with mp.workdps(120):
        before, value = 2 / mp.sqrt(mp.pi), mp.exp(x * x) * mp.erfc(x)
        for k in range(1, n + 1):
            before, value = value, (before - 2 * x * value) / (2 * k)
    return value


def erfcinv(q: mpf) -> mpf:
    """By Newton's method on the logarithm; for 0 < q < 2."""
    if q > 1:
        return -erfcinv(2 - q)
    if q == 1:
        return mpf(0)
    if q > 0.5:
        return mp.erfinv(1 - q)
    x = mp.sqrt(-mp.log(q))
    for _ in range(12):
        value = mp.erfc(x)
        x += mp.log(value / q) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
    return x


def erfinv(y: mpf) -> mpf:
    return mp.sign(y) * erfcinv(1 - abs(y)) if abs(y) > 0.5 else mp.erfinv(y)


def exprel(n: int, x: mpf) -> mpf:
    """The n-th derivative of (exp(x) - 1) / x."""
    with mp.workdps(150):
        value = mp.expm1(x) / x
        for k in range(1, n + 1):
            value = (mp.exp(x) - k * value) / x
    return value


def bessel_k(n: int, x: mpf) -> mpf:
    with mp.workdps(80):  # mpmath's own precision is not enough for large x
        return mp.besselk(n, x)


def gammainc(a: mpf, x: mpf) -> mpf:
    return mp.gammainc(a, 0, x, regularized=True)


def gammaincc(a: mpf, x: mpf) -> mpf:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def envelope(x: float) -> float:
    """The size of J and Y around their zeros."""
    return min(np.sqrt(2 / np.pi / abs(x)), 0.3)


SPECIAL_CASES: dict[str, Case] = {
    "expit": one(lambda x: 1 / (1 + mp.exp(-x)), between(-40, 40), between(-745, -80), between(-1, 1)),
    "log_expit": one(lambda x: -mp.log1p(mp.exp(-x)), between(-40, 40), between(-745, 745), between(-1, 1)),
    "xlogy": Case(
        lambda x, y: x * mp.log(y), ((between(-3, 3), sizes(-300, 300, False)), (between(-3, 3), between(0.5, 2)))
    ),
    "xlog1py": Case(
        lambda x, y: x * mp.log1p(y), ((between(-3, 3), sizes(-300, 300, False)), (between(-3, 3), between(-0.5, 2)))
    ),
    "entr": one(lambda x: -x * mp.log(x), sizes(-1000, 300, False), between(0, 3)),
    "rel_entr": Case(
        lambda x, y: x * mp.log(x / y),
        (
            (between(0, 3), between(0, 3)),
            (between(1, 1.001), between(1, 1.001)),
            (sizes(-1070, 1000, False), sizes(-1070, 1000, False)),
        ),
    ),
    "kl_div": Case(
        lambda x, y: x * mp.log(x / y) - x + y,
        ((between(0, 3), between(0, 3)), (between(1, 1.001), between(1, 1.001)), (sizes(-99, 99, False),) * 2),
        lambda x, y: abs(x - y),
    ),
    "erfcx": Case(erfcx, ((between(-26, 30),), (sizes(-30, 1000, False),), (sizes(-30, 3),)), static={"n": 0}),
    "ndtr": one(ndtr, between(-38, 8), between(-3, 3), between(-13, 0)),
    "log_ndtr": one(log_ndtr, between(-38, 10), between(-3, 3), sizes(3, 12), between(-200, 0)),
    "erfinv": one(erfinv, between(-1, 1), sizes(-50, 0), lambda rng, n: 1 - 2.0 ** rng.uniform(-52, -2, n)),
    "erfcinv": one(erfcinv, between(0.01, 1.99), sizes(-1070, 0, False), around(1.0, -40, -1)),
    "ndtri": one(lambda p: -mp.sqrt(2) * erfcinv(2 * p), *PROBABILITY),
    "gamma": one(
        mp.gamma, between(0, 30), between(30, 171.6), sizes(-1000, 7, False), between(-30, 0), between(-170, 0)
    ),
    "gammainc": Case(
        gammainc,
        ((between(0, 1), between(0, 1)), (between(0, 5), between(0, 8)), (between(0, 60), between(0, 60))),
        static={"n": 0},
        count=60,
    ),
    "gammaincc": Case(
        gammaincc,
        ((between(0, 1), between(0, 1)), (between(0, 5), between(0, 8)), (between(0, 60), between(0, 60))),
        static={"n": 0},
        count=60,
    ),
    "exprel": Case(
        lambda x: exprel(0, x), ((between(-40, 40),), (between(-3, 3),), (sizes(-30, 9.4),)), static={"n": 0}
    ),
    "jv": Case(
        lambda x: mp.besselj(0, x),
        ((between(-8, 8),), (between(8, 60),), (sizes(-30, 10),)),
        lambda x: 0.0 if abs(x) < 8 else envelope(x),
        {"n": 0},
    ),
    "yv": Case(
        lambda x: mp.bessely(0, x), ((between(0, 8),), (between(8, 60),), (sizes(-30, 10, False),)), envelope, {"n": 0}
    ),
    "iv": Case(
        lambda x: mp.besseli(0, x), ((between(-20, 20),), (between(-713, 713),), (sizes(-30, 3),)), static={"n": 0}
    ),
    "ive": Case(
        lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
        ((between(-20, 20),), (between(-713, 713),), (sizes(-30, 3),)),
        static={"n": 0},
    ),
    "kv": Case(lambda x: bessel_k(0, x), ((between(0, 20),), (sizes(-30, 9, False),)), static={"n": 0}, count=100),
    "kve": Case(
        lambda x: bessel_k(0, x) * mp.exp(x), ((between(0, 20),), (sizes(-30, 9, False),)), static={"n": 0}, count=100
    ),
}
