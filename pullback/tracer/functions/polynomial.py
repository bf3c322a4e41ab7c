"""Polynomials by coefficients, the highest power first."""

import operator
from typing import Any

import numpy as np

from pullback.errors import UnsupportedError
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, const
from pullback.tracer.functions.differences import convolve
from pullback.tracer.functions.eigen import eigvals
from pullback.tracer.functions.joining import trim_zeros
from pullback.tracer.functions.padding import pad
from pullback.tracer.trace import active


def polyval(p: Any, x: Any) -> Any:
    """Horner's rule, the highest power first."""
    coefficients, at = array(p), array(x)
    total: Any = np.zeros_like(at)
    for k in range(coefficients.shape[0]):
        total = total * at + coefficients[k]
    return total


def polyder(p: Any, m: int = 1) -> Any:
    x = array(p)
    for _ in range(operator.index(m)):
        n = x.size - 1
        x = x[:-1] * const(np.arange(n, 0, -1))
    return x


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    x = array(p)
    order = operator.index(m)
    constants = array(0.0 if k is None else k)
    given = list(constants) if constants.ndim else [constants] * order
    for constant in given[:order]:
        scaled = x / const(np.arange(x.size, 0, -1))
        x = np.concatenate([scaled, np.reshape(array(constant), (1,)).astype(scaled.dtype)])
    return x


def _aligned(a1: Any, a2: Any) -> tuple[Any, Any]:
    """Both coefficient vectors with zeros in front to the longer length."""
    x, y = np.atleast_1d(array(a1)), np.atleast_1d(array(a2))
    n = max(x.size, y.size)
    return pad(x, (n - x.size, 0)), pad(y, (n - y.size, 0))


def polyadd(a1: Any, a2: Any) -> Any:
    x, y = _aligned(a1, a2)
    return x + y


def polysub(a1: Any, a2: Any) -> Any:
    x, y = _aligned(a1, a2)
    return x - y


def polymul(a1: Any, a2: Any) -> Any:
    """Leading zeros, which ends in a guarded decision, are left out."""
    return convolve(*[_trimmed(np.atleast_1d(array(a))) for a in (a1, a2)])


def _trimmed(x: Any) -> Any:
    kept = trim_zeros(x, "f")
    return kept if kept.size else const(np.zeros(1, x.dtype))


def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with these roots; those of a square matrix are its eigenvalues.

    Complex roots that come in conjugate pairs (a guarded decision) have real coefficients.
    """
    zeros = np.atleast_1d(array(seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] > 0:
        zeros = eigvals(zeros)
    elif zeros.ndim != 1:
        raise active().error(ValueError, "input must be 1d or non-empty square 2d array.")
    if zeros.size == 0:
        return 1.0
    zeros = zeros.astype(np.mintypecode(zeros.dtype.char), copy=False)
    result: Any = const(np.ones(1, zeros.dtype))
    for k in range(zeros.size):
        result = convolve(result, np.stack([const(np.ones((), zeros.dtype)), -zeros[k]]))
    if zeros.dtype.kind == "c" and bool(np.all(np.sort(zeros) == np.sort(np.conjugate(zeros)))):
        return result.real.copy()
    return result


def polydiv(u: Any, v: Any) -> Any:
    """Long division. How long the remainder is, is a guarded decision: leading terms that are nearly 0 are dropped."""
    x, y = np.atleast_1d(array(u)) + 0.0, np.atleast_1d(array(v)) + 0.0
    w = x[0] + y[0]
    count = max(x.size - y.size + 1, 1)
    quotient = const(np.zeros(count, w.dtype))
    remainder = x.astype(w.dtype)
    for k in range(x.size - y.size + 1):
        factor = remainder[k] / y[0]
        quotient[k] = factor
        remainder[k : k + y.size] -= factor * y
    while remainder.size > 1 and np.allclose(remainder[0], 0, rtol=1e-14):
        remainder = remainder[1:]
    return quotient, remainder


def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: bool = False) -> Any:
    """Least squares in the powers of x, columns scaled to length 1."""
    if full or cov or np.ndim(deg):
        raise active().error(UnsupportedError, "np.polyfit is followed for one degree, without full= and cov=")
    at, values = array(x) + 0.0, array(y) + 0.0
    order = operator.index(deg) + 1
    lhs = np.vander(at, order)
    if w is not None:
        weights = array(w) + 0.0
        lhs = lhs * weights[:, None]
        values = values * (weights[:, None] if values.ndim == 2 else weights)
    scale = np.sqrt(np.sum(lhs * lhs, axis=0))
    solution = np.linalg.lstsq(lhs / scale, values, at.size * np.finfo(at.dtype).eps if rcond is None else rcond)[0]
    return (solution.T / scale).T


FUNCTIONS: dict[Any, Entry] = {
    np.polyval: Entry(polyval),
    np.polyder: Entry(polyder),
    np.polyint: Entry(polyint),
    np.polyadd: Entry(polyadd),
    np.polysub: Entry(polysub),
    np.polymul: Entry(polymul),
    np.poly: Entry(poly),
    np.polydiv: Entry(polydiv),
    np.polyfit: Entry(polyfit),
}
