"""Tests of closeness, equality and kind."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.ir.types import BOOL
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    x, y = array(a), array(b)
    near = (
        np.less_equal(np.abs(x - y), atol + rtol * np.abs(y)) if x.dtype != BOOL or y.dtype != BOOL else np.equal(x, y)
    )
    result = np.logical_or(np.logical_and(near, np.isfinite(y)), np.equal(x, y))
    if equal_nan:
        result = np.logical_or(result, np.logical_and(np.isnan(x), np.isnan(y)))
    return result


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """A Python bool, so a guarded decision."""
    return bool(np.all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    x, y = array(a1), array(a2)
    if x.shape != y.shape:
        return False
    same = np.equal(x, y)
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        same = np.logical_or(same, np.logical_and(np.isnan(x), np.isnan(y)))
    return bool(np.all(same))


def array_equiv(a1: Any, a2: Any) -> bool:
    x, y = array(a1), array(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return bool(np.all(np.equal(x, y)))


def iscomplex(x: Any) -> Any:
    a = array(x)
    return a.imag != 0 if a.dtype.kind == "c" else np.zeros_like(a, dtype=bool)


def isreal(x: Any) -> Any:
    a = array(x)
    return a.imag == 0 if a.dtype.kind == "c" else np.ones_like(a, dtype=bool)


def _signed_infinity(negative: bool) -> Callable[..., Any]:
    def test(x: Any, out: Any = None) -> Any:
        a = array(x)
        sign = np.signbit(a)
        return np.logical_and(np.isinf(a), sign if negative else np.logical_not(sign), out=out)

    return test


FUNCTIONS: dict[Any, Entry] = {
    np.isclose: Entry(isclose),
    np.allclose: Entry(allclose),
    np.array_equal: Entry(array_equal),
    np.array_equiv: Entry(array_equiv),
    np.iscomplex: Entry(iscomplex),
    np.isreal: Entry(isreal),
    np.isposinf: Entry(_signed_infinity(False)),
    np.isneginf: Entry(_signed_infinity(True)),
}
