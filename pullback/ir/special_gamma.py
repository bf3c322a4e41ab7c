"""gamma, the incomplete gamma functions with their derivatives in both arguments, and exprel in plain NumPy."""

import math
from typing import Any

import numpy as np

from pullback.ir import quadrature, special

Array = np.ndarray[Any, Any]
Series = list[Array]


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    if x == math.inf:
        return x
    if x != x or x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        odd = x < 0 and math.floor(x) % 2
        return -math.inf if odd else math.inf


_GAMMA = np.frompyfunc(_gamma, 1, 1)


def gamma(x: Array) -> Array:
    """inf and -inf at 0 and -0, NaN at -1, -2, ... and at -inf."""
    return np.asarray(_GAMMA(np.asarray(x, np.float64)), np.float64)


# ------------------------------------------------------------------ incomplete gamma functions


def gammainc(n: int, a: Array, x: Array) -> Array:
    """The regularised lower incomplete gamma function, or its n-th derivative in a."""
    return _incomplete(n, a, x, True)


def gammaincc(n: int, a: Array, x: Array) -> Array:
    """1 - gammainc(a, x), or its n-th derivative in a."""
    return _incomplete(n, a, x, False)


def _incomplete(n: int, a: Array, x: Array, lower: bool) -> Array:
    """A power series below x = 1, an integral above, all as series in a small change of a."""
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    inside = (a >= 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    u, v = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    density = _density(n, u, v)
    small, upper = v < 1, v >= u
    value = np.where(small, _below_one(n, u, np.minimum(v, 1.0), density), _from_one(n, u, np.maximum(v, 1.0), density))
    is_lower = small | ~upper
    if n:
        value = np.where(is_lower == lower, value, -value)
    else:
        value = np.where(is_lower == lower, value, 1.0 - value)
        if not lower:
            value = np.where(small & (u < 1), _upper_near_zero(np.minimum(u, 1.0), np.minimum(v, 1.0)), value)
    return np.where(inside, value, _ends(n, a, x, lower))


def _ends(n: int, a: Array, x: Array, lower: bool) -> Array:
    none, all_ = (0.0, 0.0) if n else (0.0, 1.0) if lower else (1.0, 0.0)
    empty = ((x == 0) & (a > 0)) | ((a == np.inf) & (x >= 0) & (x < np.inf))
    full = (x == np.inf) & (a >= 0) & (a < np.inf)
    return np.where(empty, none, np.where(full, all_, np.nan))


def _log_less(x: Array, a: Array) -> Array:
    """d - log(1 + d) with 1 + d = x / a, where x is close to a too."""
    d = (x - a) / a
    s = d / (2.0 + d)
    z = s * s
    tail = np.zeros_like(d)
    for k in range(24, -1, -1):
        tail = tail * z + 2.0 / (2 * k + 3)
    near = np.abs(d) < 0.4
    return np.where(near, s * (d - z * tail), d - np.log(x / a))


def _stirling(a: Array) -> Array:
    """log(gamma(a)) - (a - 1/2) log(a) + a - log(2 pi) / 2 for a >= 8."""
    z = 1.0 / (a * a)
    total = np.zeros_like(a)
    for c in (-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        total = total * z + c
    return total / a


def _density(n: int, a: Array, x: Array) -> Series:
    """x**a exp(-x) / gamma(a + 1) at a + e, as a power series in e."""
    large = np.maximum(a, 8.0)
    fall = large * _log_less(x, large) + _stirling(large)
    value = np.exp(-fall) / np.sqrt(2 * np.pi * large)
    small = np.minimum(a, 8.0)
    plain = x**small * np.exp(-x) / gamma(small + 1.0)
    by_log = np.exp(small * np.log(x) - x - special.lgamma(small + 1.0))
    plain = np.where((x > 1e-30) & (x < 1e30), plain, by_log)
    value = np.where(a < 8, plain, value)
    exponent = [np.zeros_like(a), np.log(x) - special.digamma(a + 1.0)]
    for k in range(2, n + 1):
        exponent.append(-special.polygamma(k - 1, a + 1.0) / math.factorial(k))
    found: Series = [np.ones_like(a)]
    for k in range(1, n + 1):
        found.append(sum((j * exponent[j] * found[k - j] for j in range(1, k + 1)), np.zeros_like(a)) / k)
    return [value * f for f in found]


def _coefficient(one: Series, other: Series, n: int) -> Array:
    return np.asarray(sum(one[k] * other[n - k] for k in range(n + 1)))


def _below_one(n: int, a: Array, x: Array, density: Series) -> Array:
    total = [np.ones_like(a), *[np.zeros_like(a)] * n]
    for k in range(20, 0, -1):
        found: Series = []
        for term in total:
            above = x * term
            found.append((above - found[-1] if found else above) / (a + k))
        found[0] = found[0] + 1.0
        total = found
    return _coefficient(density, total, n) * math.factorial(n)


def _from_one(n: int, a: Array, x: Array, density: Series) -> Array:
    apart, sign = np.abs(x - a), np.where(x >= a, 1.0, -1.0)
    scale = 1.0 / (apart + np.sqrt(x))
    parts = [np.zeros_like(a) for _ in range(n + 1)]
    for node, weight in quadrature.half_line():
        v = node * scale
        value = weight * np.exp(-(x * _exp_beyond_linear(sign * v) + apart * v))
        for k in range(n + 1):
            parts[k] = parts[k] + value * (sign * v) ** k
    parts = [part * scale / math.factorial(k) for k, part in enumerate(parts)]
    total = a * _coefficient(density, parts, n)
    if n:
        total = total + _coefficient(density, parts, n - 1)
    return total * math.factorial(n)


def _exp_beyond_linear(w: Array) -> Array:
    """exp(w) - 1 - w."""
    inside = np.clip(w, -1.0, 1.0)
    total = np.zeros_like(w)
    for k in range(20, -1, -1):
        total = total * inside + 1 / math.factorial(k + 2)
    return np.where(np.abs(w) <= 1, inside * inside * total, np.expm1(w) - w)


def _upper_near_zero(a: Array, x: Array) -> Array:
    """gammaincc for a < 1 and x < 1, exact where it is small."""
    total = np.zeros_like(a)
    for k in range(20, 0, -1):
        total = (1.0 / ((a + k) * math.factorial(k)) + total) * -x
    rest = np.expm1(a * np.log(x) - _lgamma_beyond_one(a))
    return np.asarray(0.0 - (rest + (rest + 1.0) * a * total))


def _lgamma_beyond_one(a: Array) -> Array:
    """log(gamma(1 + a)) for 0 <= a <= 1: its series at a = 0, the nearest pole taken out."""
    total = np.zeros_like(a)
    for k in range(50, 1, -1):
        zeta_less_one = float(special.hurwitz_zeta(k, np.asarray(2.0)))
        total = (zeta_less_one / k * (-1) ** k + total) * a
    return (total + (1.0 - np.euler_gamma)) * a - np.log1p(a)


# ------------------------------------------------------------------ exprel


def exprel(n: int, x: Array) -> Array:
    """The n-th derivative of (exp(x) - 1) / x: the integral of t**n exp(x t) over 0 < t < 1."""
    x = np.asarray(x, np.float64)
    size = np.abs(x)
    near = np.clip(x, -n - 2.0, n + 2.0)
    above, below, term, other = np.zeros_like(x), np.zeros_like(x), 1.0, 1.0 / (n + 1)
    for k in range(60 + 2 * n):
        above = above + term * np.abs(near) ** k / (k + n + 1)
        below = below + other * np.abs(near) ** k
        term, other = term / (k + 1), other / (k + n + 2)
    series = np.where(near >= 0, above, below * np.exp(np.minimum(near, 0.0)))
    far = np.where(size > n + 2.0, x, n + 2.0)
    half = np.exp(np.maximum(far, 0.0) / 2)
    lead, value = np.where(far > 0, 1.0, np.exp(far)), -np.expm1(-np.abs(far)) / np.abs(far)
    for k in range(1, n + 1):
        value = (lead - k * value) / far
    value = value * half * half
    if not n:
        series = np.where(near == 0, 1.0, np.expm1(near) / np.where(near == 0, 1.0, near))
    value = np.where(far == -np.inf, 0.0, np.where(far == np.inf, np.inf, value))
    return np.where(size <= n + 2.0, series, np.where(np.isnan(x), x, value + 0.0))
