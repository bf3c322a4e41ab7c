"""Special functions in plain NumPy: what the interpreter evaluates where NumPy has no function of its own.

Accuracy is a few ulp in float64; the native versions are tested against arbitrary precision, not against these.
"""

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_ERF = np.frompyfunc(math.erf, 1, 1)
_ERFC = np.frompyfunc(math.erfc, 1, 1)

# B_2k / (2k), the asymptotic series of digamma; B_2k / (2k)! for Hurwitz zeta
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330]


def erf(x: Array) -> Array:
    return np.asarray(_ERF(x), dtype=np.float64)


def erfc(x: Array) -> Array:
    return np.asarray(_ERFC(x), dtype=np.float64)


def _lgamma(x: float) -> float:
    if math.isinf(x):
        return math.inf
    if x <= 0 and x == math.floor(x):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


_LGAMMA = np.frompyfunc(_lgamma, 1, 1)


def lgamma(x: Array) -> Array:
    """log |gamma(x)|; +inf at the poles and at both infinities."""
    return np.asarray(_LGAMMA(x), dtype=np.float64)


def digamma(x: Array) -> Array:
    """Logarithmic derivative of gamma: reflection for x < 0, recurrence up to 10, then the asymptotic series.

    Poles: NaN at negative integers, -inf at +0, +inf at -0 (scipy.special's values).
    """
    x = np.asarray(x, np.float64)
    negative = x < 0
    y = np.where(negative, 1 - x, x)
    total = np.zeros_like(y)
    for _ in range(10):
        small = y < 10
        total = np.where(small, total - 1 / y, total)
        y = np.where(small, y + 1, y)
    inv2 = 1 / (y * y)
    series = np.zeros_like(y)
    for k in range(len(_BERNOULLI) - 1, -1, -1):
        series = (series + _BERNOULLI[k] / (2 * (k + 1))) * inv2
    value = total + np.log(y) - 0.5 / y - series
    fraction = x - np.rint(x)
    reflected = value - np.pi / np.tan(np.pi * fraction)
    value = np.where(negative, np.where(fraction == 0, np.nan, reflected), value)
    value = np.where(x == 0, np.copysign(np.inf, -x), value)
    return np.where(np.isposinf(x), np.inf, np.where(np.isneginf(x), np.nan, value))


def hurwitz_zeta(s: int, x: Array) -> Array:
    """sum over k >= 0 of (x + k)**-s for x > 0 and s > 1, by Euler-Maclaurin behind 12 terms."""
    total = np.zeros_like(x)
    for k in range(12):
        total = total + (x + k) ** -float(s)
    y = x + 12
    total = total + y ** (1.0 - s) / (s - 1) + 0.5 * y ** -float(s)
    factor = float(s)
    power = y ** (-float(s) - 1)
    for k, bernoulli in enumerate(_BERNOULLI):
        total = total + bernoulli / math.factorial(2 * k + 2) * factor * power
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2)
        power = power / (y * y)
    return total


def _cot_derivative(n: int, x: Array) -> Array:
    """The n-th derivative of pi*cot(pi*x), as a polynomial in cot: p' = -pi*(1 + c*c) dp/dc."""
    poly = np.polynomial.Polynomial([0.0, np.pi])
    for _ in range(n):
        poly = -np.pi * np.polynomial.Polynomial([1.0, 0.0, 1.0]) * poly.deriv()
    cot = 1 / np.tan(np.pi * (x - np.rint(x)))
    total = np.full_like(cot, poly.coef[-1])
    for c in poly.coef[-2::-1]:  # Horner by hand: an infinite cotangent must not meet a factor 0
        total = total * cot + c
    return total


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma, n >= 1: (-1)**(n+1) n! zeta(n+1, x); reflection for x < 0.

    At 0, -1, -2, ...: +inf for odd n (both sides agree), NaN for even n.
    """
    x = np.asarray(x, np.float64)
    sign = (-1.0) ** (n + 1)
    reflect = x < 0
    y = np.where(reflect, 1 - x, x)
    with np.errstate(all="ignore"):
        value = sign * math.factorial(n) * hurwitz_zeta(n + 1, np.where(y > 0, y, 1.0))
        mirrored = (-1.0) ** n * value - _cot_derivative(n, x)
        pole = (x <= 0) & (x == np.floor(x))
        value = np.where(reflect, mirrored, value)
    value = np.where(pole, np.inf if n % 2 else np.nan, value)
    value = np.where(np.isposinf(x), 0.0 * sign, value)
    return np.where(np.isnan(x) | np.isneginf(x), np.nan, value)
