"""Means, variances, order statistics, and the same without NaN."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import UnsupportedError
from pullback.ir.types import BOOL, F64, I64, DType, complex_dtype
from pullback.tracer.dispatch import Entry
from pullback.tracer.dtypes import inexact_dtype
from pullback.tracer.functions.common import (
    NOVALUE,
    array,
    axis_numbers,
    contents,
    finish,
    given,
    masked,
    op,
    reduce,
    safe_sqrt,
    size_over,
)
from pullback.tracer.functions.reductions import cumprod, cumsum, max_, min_, place_of, prod, sum_
from pullback.tracer.operands import broadcast, cast, content_of
from pullback.tracer.trace import Content, Trace, dtype_of, shape_of


def _keep(keepdims: Any) -> bool:
    return bool(keepdims) if keepdims is not NOVALUE else False


def _working(dtype: DType, asked: Any) -> tuple[DType, DType]:
    """In what a mean is computed, and what it is returned in: float16 sums in float32."""
    result = inexact_dtype(dtype) if asked is None else np.dtype(asked)
    return (np.dtype(np.float32) if result == np.float16 and asked is None else result), result


def _count(trace: Trace, x: Content, axes: tuple[int, ...], where: Any, dtype: DType, keepdims: bool) -> Content:
    """How many elements there are for each result: a number, or a sum of the mask."""
    shape = shape_of(x)
    if not given(where) or where is True:
        kept = tuple([1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes])
        return np.full(kept, size_over(shape, axes), dtype)
    pred = broadcast(trace, cast(trace, content_of(trace, where), BOOL), shape)
    return reduce(trace, "sum", cast(trace, pred, dtype), axes, keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOVALUE, *, where: Any = NOVALUE
) -> Any:
    trace, (x,) = contents(a)
    working, result = _working(dtype_of(x), dtype)
    axes = axis_numbers(trace, axis, len(shape_of(x)))
    total = _mean(trace, cast(trace, x, working), axes, where, _keep(keepdims))
    return finish(cast(trace, total, result), out, "np.mean", "unsafe")


def _mean(trace: Trace, x: Content, axes: tuple[int, ...], where: Any, keepdims: bool) -> Content:
    count = _count(trace, x, axes, where, dtype_of(x), keepdims)
    total = reduce(trace, "sum", masked(trace, x, where, 0), axes, keepdims)
    return trace.apply("div", total, count)


def _spread(root: bool) -> Callable[..., Any]:
    def spread(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = NOVALUE,
        *,
        where: Any = NOVALUE,
        mean: Any = NOVALUE,
        correction: Any = NOVALUE,
    ) -> Any:
        trace, (x,) = contents(a)
        working, result = _working(dtype_of(x), dtype)
        axes = axis_numbers(trace, axis, len(shape_of(x)))
        lost = ddof if correction is NOVALUE else correction
        if dtype_of(x).kind == "c" and working.kind == "f":  # a real dtype= is that of the sums, not of the distances
            mean = mean if given(mean) else finish(_mean(trace, cast(trace, x, working), axes, where, True))
            working = complex_dtype(working)
        value = _variance(trace, cast(trace, x, working), axes, lost, _keep(keepdims), where, mean)
        value = safe_sqrt(trace, value) if root else value
        wanted = np.dtype(result.char.lower()) if result.kind == "c" else result
        return finish(cast(trace, value, wanted), out, "np.std" if root else "np.var", "unsafe")

    return spread


def _variance(
    trace: Trace, x: Content, axes: tuple[int, ...], ddof: Any, keepdims: bool, where: Any, mean: Any
) -> Content:
    """The mean of squared distances from the mean; `ddof` fewer in the divisor, which is not below 0."""
    centre = content_of(trace, mean) if given(mean) else _mean(trace, x, axes, where, True)
    away = trace.apply("sub", x, broadcast(trace, cast(trace, centre, dtype_of(x)), shape_of(x)))
    if dtype_of(x).kind == "c":
        parts = [trace.apply("integer_pow", trace.apply(name, away), n=2) for name in ("real", "imag")]
        squares = trace.apply("add", *parts)
    else:
        squares = trace.apply("integer_pow", away, n=2)
    total = reduce(trace, "sum", masked(trace, squares, where, 0), axes, keepdims)
    count = _count(trace, x, axes, where, dtype_of(squares), keepdims)
    lost = cast(trace, content_of(trace, ddof), dtype_of(squares))
    divisor = trace.apply("sub", count, broadcast(trace, lost, shape_of(count)))
    return trace.apply("div", total, op(trace, "maximum", divisor, 0))


var = _spread(False)
std = _spread(True)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NOVALUE) -> Any:
    x = array(a)
    keeps = _keep(keepdims)
    if weights is None:
        result = mean(x, axis, keepdims=keeps)
        scale = result * 0 + x.size / max(result.size, 1)
    else:
        w = _weights(x, array(weights), axis)
        dtype = np.result_type(x.dtype, w.dtype, F64) if x.dtype.kind in "biu" else np.result_type(x.dtype, w.dtype)
        scale = np.sum(w, axis=axis, dtype=dtype, keepdims=keeps)
        result = np.sum(np.multiply(x, w, dtype=dtype), axis=axis, keepdims=keeps) / scale
    return (result, np.copy(np.broadcast_to(scale, result.shape))) if returned else result


def _weights(x: Any, w: Any, axis: Any) -> Any:
    """The weights, in the shape of `x`."""
    if x.shape == w.shape:
        return w
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = axis_numbers(contents(x)[0], axis, x.ndim)
    if w.shape != tuple([x.shape[k] for k in axes]):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    shape = tuple([n if k in axes else 1 for k, n in enumerate(x.shape)])
    return np.broadcast_to(np.reshape(w, shape), x.shape)


# ------------------------------------------------------------------ without NaN


def _without_nan(a: Any, fallback: Any) -> tuple[Any, Any]:
    """`a` with every NaN replaced, and where there was none (None for integers)."""
    x = array(a)
    if x.dtype.kind not in "fc":
        return x, None
    present = np.logical_not(np.isnan(x))
    trace, (pred, content) = contents(present, x)
    other = (
        trace.full(x.dtype, x.shape, fallback)
        if not isinstance(content, np.ndarray)
        else np.full(x.shape, fallback, x.dtype)
    )
    return finish(trace.apply("select", pred, content, other)), present


def _both(where: Any, present: Any) -> Any:
    if present is None:
        return where
    return np.logical_and(present, where) if given(where) and where is not True else present


def _nan_total(function: Callable[..., Any], neutral: int) -> Callable[..., Any]:
    def total(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = NOVALUE,
        initial: Any = NOVALUE,
        where: Any = NOVALUE,
    ) -> Any:
        return function(_without_nan(a, neutral)[0], axis, dtype, out, keepdims, initial, where)

    return total


def _nan_running(function: Callable[..., Any], neutral: int) -> Callable[..., Any]:
    return lambda a, axis=None, dtype=None, out=None: function(_without_nan(a, neutral)[0], axis, dtype, out)


def _nan_extremum(function: Callable[..., Any], far: float) -> Callable[..., Any]:
    def extremum(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOVALUE, initial: Any = NOVALUE, where: Any = NOVALUE
    ) -> Any:
        filled, present = _without_nan(a, far)
        result = function(filled, axis, None, keepdims, initial, where)
        if present is not None:
            any_left = np.any(_both(where, present), axis=axis, keepdims=_keep(keepdims))
            result = np.where(any_left, result, np.nan) if not given(initial) else result
        return result if out is None else finish(contents(result)[1][0], out, "np.nanmax")

    return extremum


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOVALUE, *, where: Any = NOVALUE
) -> Any:
    filled, present = _without_nan(a, 0)
    return mean(filled, axis, dtype, out, keepdims, where=_both(where, present))


def _nan_spread(function: Callable[..., Any]) -> Callable[..., Any]:
    def spread(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = NOVALUE,
        *,
        where: Any = NOVALUE,
        mean: Any = NOVALUE,
        correction: Any = NOVALUE,
    ) -> Any:
        filled, present = _without_nan(a, 0)
        mask = _both(where, present)
        lost = ddof if correction is NOVALUE else correction
        result = function(filled, axis, dtype, None, lost, keepdims, where=mask, mean=mean)
        if mask is not NOVALUE:  # too few elements: NaN
            enough = np.sum(mask, axis=axis, keepdims=_keep(keepdims)) > lost
            result = np.where(enough, result, np.nan)
        return result if out is None else finish(contents(result)[1][0], out, "np.nanvar")

    return spread


def _nan_place(name: str, far: float) -> Callable[..., Any]:
    def place(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOVALUE) -> Any:
        filled, present = _without_nan(a, far)
        trace, (x,) = contents(filled)
        if present is not None:
            trace.check(contents(np.all(np.any(present, axis=axis)))[1][0], "All-NaN slice encountered")
        return finish(place_of(trace, name, x, axis, _keep(keepdims)), out, f"np.nan{name}")

    return place


# ------------------------------------------------------------------ together


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    x = _variables(m, y, rowvar, dtype)
    freedom = ddof if ddof is not None else (0 if bias else 1)
    weights: Any = None
    if fweights is not None:
        weights = array(fweights).astype(float)
    if aweights is not None:
        extra = array(aweights).astype(float)
        weights = extra if weights is None else weights * extra
    centre, total = average(x, 1, weights, True)
    total = total[0]
    if weights is None:
        factor = x.shape[1] - freedom
    elif freedom == 0:
        factor = total
    elif aweights is None:
        factor = total - freedom
    else:
        factor = total - freedom * np.sum(weights * array(aweights)) / total
    if isinstance(factor, int) and factor <= 0:
        factor = 0.0
    away = x - centre[:, None]
    weighted = away if weights is None else away * weights
    result = np.matmul(away, np.conjugate(weighted.T)) * np.true_divide(1, array(factor))
    return np.squeeze(result)


def _variables(m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    """One variable a row."""
    rows = []
    for given_ in (m, y):
        if given_ is None:
            continue
        x = array(given_)
        if x.ndim > 2:
            raise ValueError("m has more than 2 dimensions")
        wide = x if x.ndim == 2 else np.reshape(x, (1, -1))
        rows.append(wide.T if not rowvar and x.ndim == 2 and wide.shape[0] != 1 else wide)
    kind = np.result_type(*[r.dtype for r in rows], np.float64) if dtype is None else np.dtype(dtype)
    return np.concatenate([r.astype(kind) for r in rows], axis=0)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = np.sqrt(np.diagonal(c).real)
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        return np.clip(c.real, -1, 1) + 1j * np.clip(c.imag, -1, 1)
    return np.clip(c, -1, 1)


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Followed in the weights; the edges must not depend on the arguments, except by their range."""
    x = np.ravel(array(a))
    edges = histogram_bin_edges(x, bins, range)
    count = edges.size - 1
    place = np.searchsorted(edges, x, side="right") - 1
    place = np.where(x == edges[-1], count - 1, place)
    inside = (x >= edges[0]) & (x <= edges[-1])
    w: Any = np.ones_like(place) if weights is None else np.ravel(array(weights))
    bars = np.zeros_like(w, shape=(count,))
    np.add.at(bars, np.clip(place, 0, count - 1), np.where(inside, w, np.zeros_like(w)))
    if density:
        bars = bars / np.diff(edges) / np.sum(bars)
    return bars, edges


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Several variables; followed in the weights."""
    columns = [array(c) for c in sample] if isinstance(sample, tuple | list) else list(array(sample).T)
    counts = list(bins) if isinstance(bins, tuple | list) else [bins] * len(columns)
    spans = [None] * len(columns) if range is None else list(range)
    edges = [histogram_bin_edges(c, b, r) for c, b, r in zip(columns, counts, spans, strict=True)]
    shape = tuple([e.size - 1 for e in edges])
    place: Any = 0
    inside: Any = True
    for c, e, n in zip(columns, edges, shape, strict=True):
        number = np.searchsorted(e, c, side="right") - 1
        number = np.where(c == e[-1], n - 1, number)
        place = place * n + np.clip(number, 0, n - 1)
        inside = inside & ((c >= e[0]) & (c <= e[-1]))
    w: Any = np.ones_like(columns[0], dtype=F64) if weights is None else array(weights).astype(F64)
    bars = np.zeros_like(w, shape=(size_over(shape, tuple(np.arange(len(shape)).tolist())),))
    np.add.at(bars, place, np.where(inside, w, 0.0))
    bars = np.reshape(bars, shape)
    if density:
        for k, e in enumerate(edges):
            bars = bars / np.reshape(np.diff(e), tuple([-1 if j == k else 1 for j, _ in enumerate(shape)]))
        bars = bars / np.sum(np.where(inside, w, 0.0))
    return bars, edges


def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    pair = bins if isinstance(bins, tuple | list) and len(bins) == 2 else [bins, bins]
    bars, edges = histogramdd([x, y], pair, range, density, weights)
    return bars, edges[0], edges[1]


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    x = np.ravel(array(a))
    if isinstance(bins, str):
        trace = contents(x)[0]
        raise trace.error(
            UnsupportedError, f"np.histogram: bins={bins!r} chooses their number from the data; give a number or edges"
        )
    if np.ndim(bins):
        return array(bins)
    low, high = (np.min(x), np.max(x)) if range is None else range
    if range is None and bool(low == high):
        low, high = low - 0.5, high + 0.5
    wanted = np.result_type(low, high, x)
    dtype = np.result_type(wanted, float) if wanted.kind in "biu" else wanted
    return np.linspace(array(low), array(high), int(bins) + 1, dtype=dtype)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """The number of bins is decided by the largest entry."""
    index = array(x)
    longest = int(np.max(index)) + 1 if index.size else 0
    count = max(longest, int(minlength))
    w = np.ones_like(index, dtype=I64) if weights is None else array(weights).astype(F64)
    bars = np.zeros_like(w, shape=(count,))
    np.add.at(bars, index, w)
    return bars


FUNCTIONS: dict[Any, Entry] = {
    np.mean: Entry(mean),
    np.var: Entry(var),
    np.std: Entry(std),
    np.average: Entry(average),
    np.nansum: Entry(_nan_total(sum_, 0)),
    np.nanprod: Entry(_nan_total(prod, 1)),
    np.nancumsum: Entry(_nan_running(cumsum, 0)),
    np.nancumprod: Entry(_nan_running(cumprod, 1)),
    np.nanmax: Entry(_nan_extremum(max_, -np.inf)),
    np.nanmin: Entry(_nan_extremum(min_, np.inf)),
    np.nanmean: Entry(nanmean),
    np.nanvar: Entry(_nan_spread(var)),
    np.nanstd: Entry(_nan_spread(std)),
    np.nanargmax: Entry(_nan_place("argmax", -np.inf)),
    np.nanargmin: Entry(_nan_place("argmin", np.inf)),
    np.cov: Entry(cov),
    np.corrcoef: Entry(corrcoef),
    np.histogram: Entry(histogram),
    np.histogram_bin_edges: Entry(histogram_bin_edges),
    np.histogram2d: Entry(histogram2d),
    np.histogramdd: Entry(histogramdd),
    np.bincount: Entry(bincount),
}
