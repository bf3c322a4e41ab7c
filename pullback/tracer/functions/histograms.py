"""Histograms and counts: followed in the weights; which bin an element falls into is a step."""

import math
import operator
from typing import Any

import numpy as np

from pullback.errors import UnsupportedError
from pullback.ir.types import F64, I64
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, contents
from pullback.tracer.trace import active


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Followed in the weights; the edges must not depend on the arguments, except by their range."""
    x = np.ravel(array(a))
    edges = histogram_bin_edges(x, bins, range)
    count = edges.size - 1
    place = np.searchsorted(edges, x, side="right") - 1
    place = np.where(x == edges[-1], count - 1, place)
    inside = (x >= edges[0]) & (x <= edges[-1])
    w: Any = np.ones_like(place) if weights is None else np.ravel(array(weights))
    bars = _added_up(np.clip(place, 0, count - 1), inside, w, count).astype(w.dtype, copy=False)
    if density:
        bars = bars / np.diff(edges).astype(float) / np.sum(bars)
    return bars, edges


def _added_up(place: Any, inside: Any, weights: Any, count: int) -> Any:
    """The weights of what is inside, bin by bin, in the dtype NumPy adds them up in."""
    wide = np.complex128 if weights.dtype.kind == "c" else F64
    bars = np.zeros_like(weights, shape=(count,), dtype=wide)
    np.add.at(bars, place, np.where(inside, weights, 0).astype(wide))
    return bars


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Several variables; followed in the weights."""
    columns = [array(c) for c in sample] if isinstance(sample, tuple | list) else list(np.atleast_2d(array(sample).T))
    counts = list(bins) if isinstance(bins, tuple | list) else [bins] * len(columns)
    spans = [None] * len(columns) if range is None else list(range)
    edges = [_edges(c, b, r) for c, b, r in zip(columns, counts, spans, strict=True)]
    shape = tuple([e.size - 1 for e in edges])
    place: Any = 0
    inside: Any = True
    for c, e, n in zip(columns, edges, shape, strict=True):
        number = np.searchsorted(e, c, side="right") - 1
        number = np.where(c == e[-1], n - 1, number)
        place = place * n + np.clip(number, 0, n - 1)
        inside = inside & ((c >= e[0]) & (c <= e[-1]))
    w: Any = np.ones_like(columns[0], dtype=F64) if weights is None else array(weights).astype(F64)
    bars = np.reshape(_added_up(place, inside, w, math.prod(shape)), shape)
    if density:
        total = np.sum(bars)
        for k, e in enumerate(edges):
            bars = bars / np.reshape(np.diff(e), tuple([-1 if j == k else 1 for j, _ in enumerate(shape)]))
        bars = bars / total
    return bars, edges


def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if array(x).ndim != 1 or array(y).ndim != 1:
        raise ValueError("np.histogram2d: x and y must have one axis")
    if len(array(x)) != len(array(y)):
        raise ValueError("x and y must have the same length.")
    pair = bins if isinstance(bins, tuple | list) and len(bins) == 2 else [bins, bins]
    bars, edges = histogramdd([x, y], pair, range, density, weights)
    return bars, edges[0], edges[1]


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    x = np.ravel(array(a))
    if isinstance(bins, str):
        raise active().error(
            UnsupportedError, f"np.histogram: bins={bins!r} chooses their number from the data; give a number or edges"
        )
    if np.ndim(bins):
        return array(bins)
    low, high = _outer_edges(x, range)
    wanted = np.result_type(low, high, x)
    dtype = np.result_type(wanted, float) if wanted.kind in "biu" else wanted
    return np.linspace(array(low), array(high), operator.index(bins) + 1, dtype=dtype)


def _edges(x: Any, bins: Any, range: Any) -> Any:
    """Of one variable among several: as NumPy has it, whatever the dtype of the data."""
    if np.ndim(bins):
        return array(bins)
    low, high = _outer_edges(x, range)
    return np.linspace(array(low), array(high), operator.index(bins) + 1)


def _outer_edges(x: Any, range: Any) -> tuple[Any, Any]:
    """The given range, or that of the data; one without width gets half a unit on both sides."""
    if range is not None:
        low, high = range
    elif x.size == 0:
        low, high = 0, 1
    else:
        low, high = np.min(x), np.max(x)
        trace, (finite,) = contents(np.logical_and(np.isfinite(low), np.isfinite(high)))
        trace.check(finite, "np.histogram: the range found in the data is not finite; give range=")
    if bool(low == high):
        low, high = low - 0.5, high + 0.5
    return low, high


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """The number of bins is decided by the largest entry."""
    index, trace = array(x), active()
    if index.ndim != 1:
        depth = "too deep" if index.ndim else "of too small depth"
        raise trace.error(ValueError, f"np.bincount: object {depth} for desired array")
    if (index.size or not isinstance(x, list | tuple)) and not np.can_cast(index.dtype, I64, "safe"):
        raise trace.error(TypeError, f"np.bincount: cannot cast array data from {index.dtype!r} to int64 safely")
    index = index.astype(I64, copy=False)
    longest = int(np.max(index)) + 1 if index.size else 0
    trace.check(contents(index >= 0)[1][0], "np.bincount: 'list' argument must have no negative elements")
    w = np.ones_like(index) if weights is None else _bin_weights(array(weights), index)
    bars = np.zeros_like(w, shape=(max(longest, operator.index(minlength)),))
    np.add.at(bars, index, w)
    return bars


def _bin_weights(w: Any, index: Any) -> Any:
    if w.dtype.kind == "c":
        raise active().error(TypeError, "np.bincount: cannot cast complex weights to float64; count their parts")
    if w.shape != index.shape:
        raise active().error(ValueError, "np.bincount: the weights and list don't have the same length")
    return w.astype(F64)


FUNCTIONS: dict[Any, Entry] = {
    np.histogram: Entry(histogram),
    np.histogram_bin_edges: Entry(histogram_bin_edges),
    np.histogram2d: Entry(histogram2d),
    np.histogramdd: Entry(histogramdd),
    np.bincount: Entry(bincount),
}
