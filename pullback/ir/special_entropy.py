"""Sigmoids and products with logarithms in plain NumPy."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def expit(x: Array) -> Array:
    """1 / (1 + exp(-x)), by the exponential that is small."""
    small = np.exp(-np.abs(_wide(x)))
    return np.where(x < 0, small, np.where(np.isnan(x), x, 1.0)) / (1.0 + small)


def log_expit(x: Array) -> Array:
    """log(expit(x))."""
    wide = _wide(x)
    return np.where(wide < 0, wide, -0.0) - np.log1p(np.exp(-np.abs(wide)))


def xlogy(x: Array, y: Array) -> Array:
    return _product(_wide(x), _wide(y), np.log)


def xlog1py(x: Array, y: Array) -> Array:
    return _product(_wide(x), _wide(y), np.log1p)


def _product(x: Array, y: Array, log: Any) -> Array:
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, 0.0, x * log(np.where(zero, 1.0, y)))


def entr(x: Array) -> Array:
    """-x log(x); 0 at 0, -inf below."""
    wide = _wide(x)
    positive = wide > 0
    value = -wide * np.log(np.where(positive, wide, 1.0))
    return np.where(positive, value, np.where(wide < 0, -np.inf, wide + 0.0))


def rel_entr(x: Array, y: Array) -> Array:
    """x log(x / y) for x > 0 and y > 0, 0 for x = 0 and y >= 0, else inf."""
    return _with_ends(_wide(x), _wide(y), lambda u, v: u * _log_of_quotient(u, v), np.zeros(np.shape(x)))


def kl_div(x: Array, y: Array) -> Array:
    """x log(x / y) - x + y for x > 0 and y > 0, y for x = 0 and y >= 0, else inf."""
    return _with_ends(_wide(x), _wide(y), _kl_inside, _wide(y))


def _kl_inside(x: Array, y: Array) -> Array:
    return np.where(np.isinf(y) & np.isfinite(x), y, x * _log_of_quotient(x, y) + (y - x))


def _with_ends(x: Array, y: Array, inside: Any, at_zero: Array) -> Array:
    both = (x > 0) & (y > 0)
    value = np.where(both, inside(np.where(both, x, 1.0), np.where(both, y, 1.0)), np.inf)
    value = np.where((x == 0) & (y >= 0), at_zero, value)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, value)


def _log_of_quotient(x: Array, y: Array) -> Array:
    """log(x / y), by the difference where they are close and without overflow where they are far."""
    ratio = x / y
    near = (ratio > 0.5) & (ratio < 2.0)
    plain = np.log(np.where((ratio > 1e-300) & np.isfinite(ratio), ratio, 1.0))
    far = np.where((ratio > 1e-300) & np.isfinite(ratio), plain, np.log(x) - np.log(y))
    return np.where(near, np.log1p((x - y) / y), far)


def _wide(x: Array) -> Array:
    return np.asarray(x, np.float64)
