"""erfcx, the normal distribution and the inverse error functions in plain NumPy."""

import math
from typing import Any

import numpy as np

from pullback.ir import quadrature, special

Array = np.ndarray[Any, Any]

SQRT_TWO = math.sqrt(2.0)
SQRT_PI = math.sqrt(math.pi)
FAR = 25.0
SPLITTER = 2.0**27 + 1.0
STEPS = 8


def exp_square(x: Array, factor: float) -> Array:
    """exp(factor * x**2) with the square exact, factor a power of two; |x| at most 2**500."""
    high = x * SPLITTER - (x * SPLITTER - x)
    return np.exp(factor * high * high) * np.exp(factor * (x + high) * (x - high))


def erfcx(n: int, x: Array) -> Array:
    """exp(x**2) times erfc(x), or for n > 0 times its n-th repeated integral."""
    x = np.asarray(x, np.float64)
    if not n:
        return _scaled(x)
    size = np.abs(x)
    scale = 1.0 / (size + 1.0)
    total = np.zeros_like(size)
    for node, weight in quadrature.half_line():
        t = node * scale
        total = total + weight * t**n * np.exp(-t * (t + 2.0 * size))
    positive = np.where(size < 2.0**1000, total * scale * (2.0 / SQRT_PI / math.factorial(n)), 0.0)
    positive = np.where(np.isnan(x), x, positive)
    before, value = np.full_like(x, 2.0 / SQRT_PI), _scaled(x)
    for k in range(1, n + 1):
        before, value = value, (before - 2.0 * x * value) * (0.5 / k)
    return np.where(x < 0, value, positive)


def _scaled(x: Array) -> Array:
    near = np.clip(x, -40.0, FAR)
    usual = special.erfc(near) * exp_square(near, 1.0)
    far = np.where(x > FAR, x, FAR)
    inverse = 1.0 / (far * far)
    series = np.ones_like(x)
    for k in range(10, 0, -1):
        series = 1.0 - (k - 0.5) * inverse * series
    return np.where(x > FAR, series / (SQRT_PI * far), usual)


def ndtr(x: Array) -> Array:
    """Distribution function of the normal distribution."""
    x = np.asarray(x, np.float64)
    tail = _tail(np.abs(x))
    return np.where(x > 0, 1.0 - tail, tail)


def _tail(size: Array) -> Array:
    bounded = np.minimum(size, 39.0)
    return 0.5 * _scaled(bounded / SQRT_TWO) * exp_square(bounded, -0.5)


def log_ndtr(x: Array) -> Array:
    x = np.asarray(x, np.float64)
    size = np.abs(x)
    below = np.log(0.5 * _scaled(size / SQRT_TWO)) - 0.5 * size * size
    return np.where(x < 0, below, np.log1p(-_tail(size)))


# ------------------------------------------------------------------ inverses


def erfinv(y: Array) -> Array:
    y = np.asarray(y, np.float64)
    size = np.abs(y)
    near = size <= 0.5
    tail = _tail_inverse(np.where(near, 0.5, 1.0 - size))
    value = np.where(near, _central_inverse(np.where(near, y, 0.5)) + 0.0, np.copysign(tail, y))
    return np.where(np.isnan(y) | (size > 1), np.nan, value)


def erfcinv(q: Array) -> Array:
    q = np.asarray(q, np.float64)
    return _from_tail(q, 2.0 - q, -(q - 1.0))  # -0 in the middle, as SciPy has it


def ndtri(p: Array) -> Array:
    """The inverse of ndtr."""
    p = np.asarray(p, np.float64)
    return -SQRT_TWO * _from_tail(2.0 * p, 2.0 * (1.0 - p), 1.0 - 2.0 * p) + 0.0


def _from_tail(q: Array, upper: Array, middle: Array) -> Array:
    """erfcinv(q), of q, 2 - q and 1 - q."""
    near, lower = np.abs(middle) <= 0.5, q < 1
    smaller = np.where(lower, q, upper)
    tail = _tail_inverse(np.where(near, 0.5, smaller))
    value = np.where(near, _central_inverse(np.where(near, middle, 0.5)), np.where(lower, tail, -tail))
    return np.where(smaller >= 0, value, np.nan)


def _central_inverse(y: Array) -> Array:
    """erfinv(y) for |y| <= 1/2, by Newton's method; the sign of zero is kept."""
    x = y * (SQRT_PI / 2.0)
    for _ in range(STEPS):
        x = x - (special.erf(x) - y) * (SQRT_PI / 2.0) * np.exp(x * x)
    return np.where(y == 0, y, x)


def _tail_inverse(q: Array) -> Array:
    """erfcinv(q) for 0 <= q <= 1/2: Newton's method on the logarithm of erfc."""
    safe = np.where(q > 0, q, 0.25)
    log = np.log(safe)
    x = np.sqrt(-log)
    for _ in range(STEPS):
        scaled = _scaled(x)
        x = x + (np.log(scaled) - x * x - log) * scaled * (SQRT_PI / 2.0)
    return np.where(q > 0, x, np.where(q == 0, np.inf, np.nan))
