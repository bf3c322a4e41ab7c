"""Median, quantiles and percentiles, by NumPy's methods (Hyndman and Fan), as a sort and an interpolation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.tracer.array import TracedScalar, new_scalar
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import (
    NOVALUE,
    array,
    axis_numbers,
    const,
    contents,
    finish,
    size_over,
)
from pullback.tracer.trace import active

VirtualIndex = Callable[[Any, Any], Any]


def _plotting(alpha: float, beta: float) -> VirtualIndex:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


CONTINUOUS: dict[str, VirtualIndex] = {
    "linear": lambda n, q: (n - 1) * q,
    "interpolated_inverted_cdf": _plotting(0, 1),
    "hazen": _plotting(0.5, 0.5),
    "weibull": _plotting(0, 0),
    "median_unbiased": _plotting(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _plotting(3 / 8.0, 3 / 8.0),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
}


def _step(position: Any, is_previous: Callable[[Any, Any], Any]) -> Any:
    """The order statistic at or behind a position, never before the first."""
    previous = np.floor(position)
    chosen = np.where(is_previous(position - previous, previous), previous, previous + 1)
    return np.maximum(chosen, 0.0)


DISCRETE: dict[str, VirtualIndex] = {
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.round((n - 1) * q),
    "inverted_cdf": lambda n, q: _step(n * q - 1, lambda gamma, _: gamma == 0),
    "closest_observation": lambda n, q: _step(n * q - 1 - 0.5, lambda gamma, k: (gamma == 0) & (np.mod(k, 2) == 1)),
}


def _gamma(method: str, virtual: Any, previous: Any) -> Any:
    """The weight of the upper neighbour."""
    gamma = virtual - previous
    if method == "averaged_inverted_cdf":
        return np.where(gamma == 0, 0.5, 1.0)
    if method == "midpoint":
        return np.where(np.mod(virtual, 1) == 0, 0.0, 0.5)
    return gamma


def _lines_first(x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The reduced axes merged into one, which comes first."""
    axes = axis_numbers(active(), axis, x.ndim)
    kept = [k for k in range(x.ndim) if k not in axes]
    moved = np.transpose(x, (*axes, *kept))
    return np.reshape(moved, (size_over(x.shape, axes), *[x.shape[k] for k in kept])), axes


def _kept_shape(x: Any, axes: tuple[int, ...], lead: tuple[int, ...]) -> tuple[int, ...]:
    return (*lead, *[1 if k in axes else n for k, n in enumerate(x.shape)])


def _quantile(
    a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, skip_nan: bool, name: str
) -> Any:
    x = array(a)
    if x.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    if skip_nan and x.size == 0:
        return np.nanmean(x, axis=axis, out=out, keepdims=keepdims)
    if method not in CONTINUOUS and method not in DISCRETE:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {[*CONTINUOUS, *DISCRETE]}")
    wanted = array(q)
    _check_range(wanted, name)
    lines, axes = _lines_first(x, axis)
    ordered = np.sort(lines, axis=0)
    if weights is not None:
        result = _weighted(lines, wanted, _weight_lines(x, array(weights), axis, method), skip_nan)
    else:
        result = _at_quantiles(ordered, wanted, _weak(q, wanted), method, skip_nan)
    if x.dtype.kind == "f" and not skip_nan:
        nan = np.isnan(ordered[-1])
        result = np.where(nan, np.nan, result)
    if keepdims is not NOVALUE and keepdims:
        result = np.reshape(result, _kept_shape(x, axes, wanted.shape))
    return finish(contents(result)[1][0], out, name, "unsafe")


def _check_range(q: Any, name: str) -> None:
    if q.ndim > 2:
        raise ValueError("q must be a scalar or 1d")
    trace, (content,) = contents(np.all((q >= 0) & (q <= 1)))
    top = "100" if "percentile" in name else "1"
    trace.check(content, f"{name}: the quantiles must be in the range [0, {top}]")


def _weak(q: Any, wanted: Any) -> bool:
    """A Python number does not widen the result."""
    return type(q) in (int, float) or (isinstance(wanted, TracedScalar) and wanted.python is not None)


def _at_quantiles(ordered: Any, q: Any, weak: bool, method: str, skip_nan: bool) -> Any:
    n: Any = ordered.shape[0]
    lead = q.shape
    wide_q: Any = np.reshape(q, lead + (1,) * (ordered.ndim - 1)) if not weak else q
    if skip_nan and ordered.dtype.kind == "f":
        n = np.sum(~np.isnan(ordered), axis=0)
    virtual = (CONTINUOUS.get(method) or DISCRETE[method])(n, wide_q)
    last = np.maximum(n - 1, 0)
    previous = np.floor(virtual)
    low = _picked(ordered, np.clip(previous, 0, last), lead)
    if method in DISCRETE or (method == "linear" and q.dtype.kind in "biu"):
        return low
    high = _picked(ordered, np.clip(previous + 1, 0, last), lead)
    # beyond the ends NumPy counts from 0 and from -1, which shows in the sign of a zero
    gamma = _gamma(method, virtual, np.where(virtual >= last, -1, np.where(virtual < 0, 0, previous)))
    if weak:
        trace, (content,) = contents(gamma)
        gamma = new_scalar(trace, content, float)
    return _lerp(low, high, gamma)


def _picked(ordered: Any, index: Any, lead: tuple[int, ...]) -> Any:
    """Order statistics: the same for all lines, or each its own."""
    places = index.astype(np.int64) if hasattr(index, "astype") else const(np.int64(index))
    rest = ordered.shape[1:]
    if places.size == 1 or all(n == 1 for n in places.shape[len(lead) :]):
        return np.take(ordered, np.reshape(places, lead), axis=0)
    flat = np.reshape(np.broadcast_to(places, lead + rest), (-1, *rest))
    return np.reshape(np.take_along_axis(ordered, flat, 0), lead + rest)


def _lerp(low: Any, high: Any, gamma: Any) -> Any:
    """From the nearer end, as NumPy does, so that equal ends give themselves."""
    step = high - low
    near = np.where(gamma >= 0.5, high - step * (1 - gamma), low + step * gamma)
    return near.astype(np.result_type((low + step * gamma).dtype), copy=False)


def _weight_lines(x: Any, w: Any, axis: Any, method: str) -> Any:
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    if w.shape != x.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        axes = axis_numbers(active(), axis, x.ndim)
        w = np.broadcast_to(np.reshape(w, tuple([n if k in axes else 1 for k, n in enumerate(x.shape)])), x.shape)
    return _lines_first(w, axis)[0]


def _weighted(lines: Any, q: Any, weights: Any, skip_nan: bool) -> Any:
    """The first element at which the cumulated weight reaches the quantile."""
    order = np.argsort(lines, axis=0)
    ordered = np.take_along_axis(lines, order, 0)
    mass = np.take_along_axis(weights, order, 0).astype(np.float64)
    if skip_nan:
        mass = np.where(np.isnan(ordered), 0.0, mass)
    total = np.cumsum(mass, axis=0)
    share = total / total[-1]
    share = np.where(share == 0, -1.0, share)  # what weighs nothing is never chosen
    wide = np.reshape(q, q.shape + (1,) * lines.ndim)
    index = np.sum(share < wide, axis=q.ndim)
    index = np.minimum(index, lines.shape[0] - 1)
    flat = np.reshape(index, (-1, *lines.shape[1:]))
    return np.reshape(np.take_along_axis(ordered, flat, 0), q.shape + lines.shape[1:])


def _family(percent: bool, skip_nan: bool) -> Callable[..., Any]:
    name = "np." + ("nan" if skip_nan else "") + ("percentile" if percent else "quantile")

    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        scaled = q / 100 if percent and type(q) in (int, float) else np.true_divide(array(q), 100) if percent else q
        return _quantile(a, scaled, axis, out, method, keepdims, weights, skip_nan, name)

    return quantile


def _middle(skip_nan: bool) -> Callable[..., Any]:
    def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
        x = array(a)
        lines, axes = _lines_first(x, axis)
        if skip_nan and x.dtype.kind in "fc":
            result = _nan_median(np.sort(lines, axis=0))
        else:
            result = _median(np.sort(lines, axis=0))
        if keepdims is not NOVALUE and keepdims:
            result = np.reshape(result, _kept_shape(x, axes, ()))
        return finish(contents(result)[1][0], out, "np.median", "unsafe")

    return median


def _nan_median(ordered: Any) -> Any:
    """The middle of what is a number; NaN stands last. No weights, which would turn infinities into NaN."""
    n = ordered.shape[0]
    if n == 0:
        return np.mean(ordered, axis=0)
    count = n - np.sum(np.isnan(ordered), axis=0)
    places = (np.maximum(count - 1, 0) // 2, count // 2)
    low, high = [np.take_along_axis(ordered, np.expand_dims(place, 0), 0)[0] for place in places]
    return np.where(count % 2 == 1, np.mean(np.stack([low]), axis=0), np.mean(np.stack([low, high]), axis=0))


def _median(ordered: Any) -> Any:
    n = ordered.shape[0]
    if n == 0:
        return np.mean(ordered, axis=0)
    low, high = ordered[(n - 1) // 2], ordered[n // 2]
    middle = np.mean(np.stack([low, high]), axis=0) if n % 2 == 0 else np.mean(np.stack([low]), axis=0)
    if ordered.dtype.kind not in "fc":
        return middle
    return np.where(np.isnan(ordered[-1]), ordered[-1], middle)


FUNCTIONS: dict[Any, Entry] = {
    np.median: Entry(_middle(False)),
    np.nanmedian: Entry(_middle(True)),
    np.quantile: Entry(_family(False, False)),
    np.percentile: Entry(_family(True, False)),
    np.nanquantile: Entry(_family(False, True)),
    np.nanpercentile: Entry(_family(True, True)),
}
