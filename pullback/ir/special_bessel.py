"""Bessel functions of integer order in plain NumPy.

J and I by the continued fraction for the ratio of neighbouring orders, run downwards, and a sum over all orders for the
scale (Miller's algorithm); Y by Neumann's series of those J; far out by Hankel's expansions; K by its integral.
"""

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

J_TURN = 25.0
I_TURN = 300.0
K_TURN = 0.5
K_STEP = 1 / 4  # times 1 / sqrt(1 + x), the width of the integrand
TERMS = 24


def jv(n: int, x: Array) -> Array:
    """The Bessel function of the first kind, of order n; NaN at both infinities."""
    x = np.asarray(x, np.float64)
    size = np.abs(x)
    turn = max(J_TURN, float(n))
    near = _downward(np.minimum(size, turn), n)[0][n]
    far = np.maximum(size, turn)
    value = np.where(size > turn, _upward(_hankel(far, 0)[0], _hankel(far, 1)[0], far, n), near)
    value = np.where(np.isinf(x), np.nan, value)
    return np.where(np.signbit(x) if n == 1 else x < 0, -value, value) if n % 2 else value


def yv(n: int, x: Array) -> Array:
    """The Bessel function of the second kind, of order n; -inf at 0, NaN below and at inf."""
    x = np.asarray(x, np.float64)
    safe = np.where(x > 0, x, 1.0)
    values = []
    for order in (0, 1):
        near = _neumann(np.minimum(safe, J_TURN), order)
        values.append(np.where(safe > J_TURN, _hankel(np.maximum(safe, J_TURN), order)[1], near))
    value = _upward(values[0], values[1], safe, n)
    value = np.where(np.isnan(value) & (safe < 1), -np.inf, value)
    value = np.where(np.isinf(safe), np.nan, value)
    return np.where(x > 0, value, np.where(x == 0, -np.inf, np.nan))


def _upward(first: Array, second: Array, x: Array, n: int, sign: float = -1.0) -> Array:
    """Order n from 0 and 1 by f(k + 1) = 2 k / x f(k) + sign f(k - 1)."""
    if not n:
        return first
    for k in range(1, n):
        first, second = second, (2.0 * k / x) * second + sign * first
    return second


def _downward(x: Array, n: int) -> tuple[list[Array], int]:
    """J of orders 0, 1, ... at x >= 0, far enough to add them up."""
    largest = float(np.max(x, initial=0.0, where=np.isfinite(x)))
    count = int(max(largest, n) + 12 * max(largest, n, 1.0) ** (1 / 3)) + 24
    count += count % 2
    ratio = np.zeros_like(x)
    ratios = []
    for k in range(count, 0, -1):
        ratio = x / (2.0 * k - x * ratio)
        ratios.append(ratio)
    product, total = np.ones_like(x), np.ones_like(x)
    products = [product]
    for k, ratio in enumerate(reversed(ratios), 1):
        product = product * ratio
        products.append(product)
        if k % 2 == 0:
            total = total + 2.0 * product
    return [p / total for p in products], count


def _neumann(x: Array, order: int) -> Array:
    """Y of order 0 or 1 for 0 < x <= J_TURN."""
    j, count = _downward(x, 1)
    log = np.log(x) - math.log(2) + np.euler_gamma
    total = np.zeros_like(x)
    if not order:
        for k in range(1, count // 2):
            total = total + (-1) ** k * j[2 * k] / k
        return np.asarray((2 * log * j[0] - 4 * total) / np.pi)
    for k in range(1, count // 2):
        total = total + (-1) ** k * (2 * k + 1) / (k * (k + 1)) * j[2 * k + 1]
    return np.asarray((2 * (log - 1) * j[1] - 2 * total - 2 * j[0] / x) / np.pi)


def _hankel(x: Array, order: int) -> tuple[Array, Array]:
    """J and Y of order 0 or 1 for large x."""
    p, q, term = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    for k in range(TERMS):
        signed = term if k % 4 < 2 else -term
        p, q = (p + signed, q) if k % 2 == 0 else (p, q + signed)
        term = term * (4 * order**2 - (2 * k + 1) ** 2) / (8 * (k + 1) * x)
    sine, cosine = np.sin(x), np.cos(x)
    plus, minus, size = cosine + sine, sine - cosine, np.sqrt(1 / np.pi / x)
    if order:
        return size * (p * minus + q * plus), size * (q * minus - p * plus)
    return size * (p * plus - q * minus), size * (p * minus + q * plus)


# ------------------------------------------------------------------ modified


def ive(n: int, x: Array) -> Array:
    """exp(-|x|) iv(n, x); 0 at both infinities."""
    x = np.asarray(x, np.float64)
    size = np.abs(x)
    value = np.where(size > I_TURN, _far_i(np.maximum(size, I_TURN), n), _near_i(np.minimum(size, I_TURN), n))
    value = np.where(np.isinf(x), 0.0, value)
    return np.asarray(np.where(x < 0, -value, value) if n % 2 else value)


def iv(n: int, x: Array) -> Array:
    """The modified Bessel function of the first kind, of order n; NaN at both infinities."""
    x = np.asarray(x, np.float64)
    half = np.exp(np.abs(x) / 2)  # twice, so that it overflows no sooner than the product
    return np.where(np.isinf(x), np.nan, ive(n, x) * half * half)


def _near_i(x: Array, n: int) -> Array:
    largest = float(np.max(x, initial=0.0, where=np.isfinite(x)))
    ratio, ratios = np.zeros_like(x), []
    for k in range(int(math.sqrt(90 * largest)) + n + 40, 0, -1):
        ratio = x / (2.0 * k + x * ratio)
        ratios.append(ratio)
    product, total, wanted = np.ones_like(x), np.ones_like(x), np.ones_like(x)
    for k, ratio in enumerate(reversed(ratios), 1):
        product = product * ratio
        total = total + 2.0 * product
        if k == n:
            wanted = product
    return np.asarray(wanted / total)


def _far_i(x: Array, n: int) -> Array:
    total, term = np.ones_like(x), np.ones_like(x)
    for k in range(1, 60):
        term = term * ((2 * k - 1) ** 2 - 4 * n**2) / (8 * k * x)
        total = total + term
    return np.asarray(total * np.sqrt(0.5 / np.pi / x))


def kve(n: int, x: Array) -> Array:
    """exp(x) kv(n, x)."""
    return _second(n, np.asarray(x, np.float64), True)


def kv(n: int, x: Array) -> Array:
    """The modified Bessel function of the second kind, of order n; inf at 0, NaN below."""
    return _second(n, np.asarray(x, np.float64), False)


def _second(n: int, x: Array, scaled: bool) -> Array:
    safe = np.where(x > 0, x, 1.0)
    values = []
    for order in (0, 1):
        near = _k_near_zero(np.minimum(safe, K_TURN), order)
        near = near * np.exp(safe) if scaled else near
        far = _k_integral(np.maximum(safe, K_TURN), order)
        far = far if scaled else far * np.exp(-safe)
        values.append(np.where(safe < K_TURN, near, far))
    value = _upward(values[0], values[1], safe, n, 1.0)
    value = np.where(np.isinf(safe), 0.0, value)
    return np.where(x > 0, value, np.where(x == 0, np.inf, np.nan))


def _k_integral(x: Array, order: int) -> Array:
    """The integral of exp(-x (cosh(t) - 1)) cosh(order t) over t > 0, by the trapezoidal rule."""
    step = K_STEP / np.sqrt(1.0 + x)
    total = np.full_like(x, 0.5)
    for k in range(1, int(45 / K_STEP)):
        t = k * step
        total = total + np.exp(-x * (2.0 * np.sinh(t / 2) ** 2)) * np.cosh(order * t)
    return total * step


def _k_near_zero(x: Array, order: int) -> Array:
    """K of order 0 or 1 for x up to K_TURN, by power series."""
    z = x * x / 4
    minus_log = math.log(2) - np.euler_gamma - np.log(x)
    series, rest, term, harmonic = np.zeros_like(x), np.zeros_like(x), np.ones_like(x), 0.0
    for k in range(14):
        following = harmonic + 1 / (k + 1)
        series = series + term
        rest = rest + term * (harmonic if not order else (harmonic + following) / 2)
        term, harmonic = term * z / ((k + 1) * (k + 1 + order)), following
    if not order:
        return minus_log * series + rest
    return 1 / x - x / 2 * (minus_log * series + rest)
