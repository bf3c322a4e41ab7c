"""logsumexp, softmax and log_softmax of scipy.special.

SciPy writes them in Python, with the largest element taken out of the sum. Here it is only subtracted, and as a
constant: the derivatives are those of the sum itself, of every order, also where several elements are the largest.
"""

from typing import Any

import numpy as np

from pullback.tracer.functions.common import array, contents, finish


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log of the sum of b exp(a). Elements of -inf have gradient 0, also where all are -inf."""
    x = _inexact(a)
    if b is not None:
        weights = array(b)
        whole = np.result_type(x.dtype, _inexact(weights).dtype)
        shape = np.broadcast_shapes(x.shape, weights.shape)
        x, weights = (np.broadcast_to(v, shape).astype(whole) for v in (x, weights))
        total, shift = _weighted(x, weights, axis)
        value, sign = _log_of_signed(total, shift, return_sign)
    elif x.dtype.kind == "c":
        total, shift = _weighted(x, np.ones_like(x), axis)
        value, sign = _log_of_signed(total, shift, return_sign)
    else:
        value = _of_reals(x, axis)
        sign = np.where(np.isnan(value), value, value != -np.inf) if return_sign else None
    results = [v if keepdims else np.squeeze(v, axis=axis if x.shape else None) for v in (value, sign) if v is not None]
    results = [v[()] if v.ndim == 0 else v for v in results]
    return tuple(results) if return_sign else results[0]


def softmax(x: Any, axis: Any = None) -> Any:
    power = np.exp(_shifted(_inexact(x), axis))
    return power / np.sum(power, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    shifted = _shifted(_inexact(x), axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _inexact(x: Any) -> Any:
    a = array(x)
    return a if a.dtype.kind in "fc" else a.astype(np.float64)


def _fixed(x: Any) -> Any:
    """`x` as a constant for differentiation."""
    trace, (content,) = contents(x)
    return finish(trace.apply("stop_gradient", content))


def _largest(x: Any, axis: Any) -> Any:
    """The largest (real part), and 0 where it is not finite; kept as axes of length 1."""
    real = x.real if x.dtype.kind == "c" else x
    largest = np.max(_fixed(real), axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(largest), largest, np.zeros_like(largest))


def _shifted(x: Any, axis: Any) -> Any:
    return x - _largest(x, axis)


def _of_reals(x: Any, axis: Any) -> Any:
    """m + log(1 + t) with t = (sum of exp(x - m)) - 1, from which the ones of the largest elements are taken before
    they are added, so that a small rest keeps its digits."""
    largest = _largest(x, axis)
    ones = (_fixed(x) == largest).astype(x.dtype)
    count = np.sum(ones, axis=axis, keepdims=True)
    rest = np.sum(np.exp(x - largest) - ones, axis=axis, keepdims=True) + (count - 1)
    nothing = rest == -1
    value = np.log1p(np.where(nothing, np.zeros_like(rest), rest)) + largest
    return np.where(nothing, np.full_like(value, -np.inf), value)


def _weighted(x: Any, weights: Any, axis: Any) -> tuple[Any, Any]:
    """The sum of weights exp(x - m), and m. An element without weight counts nothing, whatever it is."""
    empty = weights == 0
    largest = _largest(np.where(empty, np.full_like(x, -np.inf), x), axis)
    terms = weights * np.exp(x - largest)
    terms = np.where(empty & ~np.isfinite(terms), np.zeros_like(terms), terms)
    return np.sum(terms, axis=axis, keepdims=True), largest


def _log_of_signed(total: Any, shift: Any, return_sign: bool) -> tuple[Any, Any]:
    """log |total| + shift and the sign, or the plain logarithm; NaN for a negative real sum."""
    size = np.abs(total) if return_sign else total
    nothing = size == 0
    value = np.log(np.where(nothing, np.ones_like(size), size)) + shift
    value = np.where(nothing, np.full_like(value, -np.inf), value)
    return value, np.sign(total) if return_sign else None
