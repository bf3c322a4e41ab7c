"""Means, variances, order statistics, and the same without NaN."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.ir.graph import Value
from pullback.ir.types import BOOL, F32, F64, DType, real_dtype
from pullback.tracer.array import TracedArray
from pullback.tracer.dispatch import Entry
from pullback.tracer.dtypes import inexact_dtype
from pullback.tracer.functions.common import (
    NOVALUE,
    array,
    axis_numbers,
    begun,
    const,
    contents,
    finish,
    given,
    is_fixed,
    masked,
    op,
    reduce,
    safe_sqrt,
    size_over,
)
from pullback.tracer.functions.extrema import reduced_axes
from pullback.tracer.functions.reductions import cumprod, cumsum, prod, sum_
from pullback.tracer.operands import broadcast, cast, content_of
from pullback.tracer.trace import Content, Trace, active, dtype_of, shape_of


def _keep(keepdims: Any) -> bool:
    return bool(keepdims) if keepdims is not NOVALUE else False


def _working(dtype: DType, asked: Any, out: Any) -> tuple[DType, DType]:
    """In what a mean is computed, and what it is returned in: float16 sums in float32."""
    if asked is not None:
        return np.dtype(asked), np.dtype(asked)
    result = inexact_dtype(dtype)
    if result == np.float16:
        return F32, _result_dtype(out, result)
    result = result if dtype.kind in "biu" else _result_dtype(out, result)
    return result, result


def _result_dtype(out: Any, otherwise: DType) -> DType:
    """NumPy adds up in the dtype of `out`, where none is asked for."""
    target = out[0] if isinstance(out, tuple) else out
    found: DType = target.dtype if isinstance(target, TracedArray) else otherwise
    return found


def _count(trace: Trace, x: Content, axes: tuple[int, ...], where: Any, dtype: DType, keepdims: bool) -> Content:
    """How many elements there are for each result: a number, or a sum of the mask."""
    shape = shape_of(x)
    if not given(where) or where is True:
        kept = tuple([1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes])
        number = size_over(shape, axes)
        return trace.full(dtype, kept, number) if isinstance(x, Value) else np.full(kept, number, dtype)
    pred = broadcast(trace, cast(trace, content_of(trace, where), BOOL), shape)
    return reduce(trace, "sum", cast(trace, pred, dtype), axes, keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOVALUE, *, where: Any = NOVALUE
) -> Any:
    trace, (x,) = contents(a)
    working, result = _working(dtype_of(x), dtype, out)
    value = _mean(trace, x, _axes(trace, x, axis, where), where, _keep(keepdims), working, _result_dtype(out, working))
    return finish(cast(trace, value, result), out, "np.mean", "unsafe")


def _axes(trace: Trace, x: Content, axis: Any, where: Any) -> tuple[int, ...]:
    """NumPy counts by axis, but with a mask it adds up, which lets axis 0 pass for an array without axes."""
    check = reduced_axes if given(where) and where is not True else axis_numbers
    return check(trace, axis, len(shape_of(x)))


def _mean(
    trace: Trace,
    x: Content,
    axes: tuple[int, ...],
    where: Any,
    keepdims: bool,
    working: DType,
    result: DType | None = None,
) -> Content:
    """Summed in the dtype `working`; divided, as numbers, in the dtype of the result."""
    summed = begun(trace, "sum", masked(trace, cast(trace, x, working), where, 0), axes)
    total = reduce(trace, "sum", summed, axes, keepdims)
    wanted = result or working
    number = _divisible(wanted)
    count = _count(trace, x, axes, where, number, keepdims)
    return cast(trace, trace.apply("div", cast(trace, cast(trace, total, wanted), number), count), wanted)


def _divisible(dtype: DType) -> DType:
    return dtype if dtype.kind in "fc" else F64


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
        working, result = _working(dtype_of(x), dtype, None)
        axes = _axes(trace, x, axis, where)
        lost = ddof if correction is NOVALUE else correction
        centre = content_of(trace, mean) if given(mean) else _mean(trace, x, axes, where, True, working)
        squares = _squared_distances(trace, x, centre)
        last = np.dtype(dtype) if dtype is not None else _real(working)
        if dtype is None and dtype_of(x) != np.float16:
            last = _result_dtype(out, last)
        total = reduce(trace, "sum", masked(trace, cast(trace, squares, last), where, 0), axes, _keep(keepdims))
        total = cast(trace, total, _result_dtype(out, last))
        value = _per_degree(trace, x, total, axes, where, lost, _keep(keepdims))
        value = _root(trace, value) if root else value
        wanted = result if dtype is not None else _result_dtype(out, _real(result))
        return finish(cast(trace, value, wanted), out, "np.std" if root else "np.var", "unsafe")

    return spread


def _real(dtype: DType) -> DType:
    return real_dtype(dtype) if dtype.kind == "c" else dtype


def _root(trace: Trace, x: Content) -> Content:
    return cast(trace, safe_sqrt(trace, cast(trace, x, _divisible(dtype_of(x)))), dtype_of(x))


def _squared_distances(trace: Trace, x: Content, centre: Content, back: bool = False) -> Content:
    """|x - centre|**2, in the dtype that the two have together, or with `back` that of x; squares of real numbers stay
    complex if that is."""
    dtype = np.result_type(dtype_of(x), dtype_of(centre))
    wide = broadcast(trace, cast(trace, centre, dtype), shape_of(x))
    away = trace.apply("sub", cast(trace, x, dtype), wide)
    if back:
        dtype = dtype_of(x)
        away = cast(trace, away, dtype)
    if dtype.kind != "c" or dtype_of(x).kind in "iuf":
        return trace.apply("integer_pow", away, n=2)
    parts = [trace.apply("integer_pow", trace.apply(name, away), n=2) for name in ("real", "imag")]
    return trace.apply("add", *parts)


def _per_degree(
    trace: Trace, x: Content, total: Content, axes: tuple[int, ...], where: Any, lost: Any, keepdims: bool
) -> Content:
    """`total` divided by the number of elements less `lost`, which is not below 0."""
    real = _divisible(dtype_of(total))
    count = _count(trace, x, axes, where, _real(real), keepdims)
    fewer = broadcast(trace, cast(trace, content_of(trace, lost), _real(real)), shape_of(count))
    divisor = op(trace, "maximum", trace.apply("sub", count, fewer), 0)
    return cast(trace, trace.apply("div", cast(trace, total, real), cast(trace, divisor, real)), dtype_of(total))


var = _spread(False)
std = _spread(True)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NOVALUE) -> Any:
    x = array(a)
    keeps = _keep(keepdims)
    if weights is None:
        result = mean(x, axis, keepdims=keeps)
        scale: Any = const(np.full(result.shape, x.size / result.size, result.dtype))  # divided as in NumPy
    else:
        w = _weights(x, array(weights), axis)
        dtype = np.result_type(x.dtype, w.dtype, F64) if x.dtype.kind in "biu" else np.result_type(x.dtype, w.dtype)
        scale = np.sum(w, axis=axis, dtype=dtype, keepdims=keeps)
        if is_fixed(scale) and bool(np.any(scale == 0)):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
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


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOVALUE, *, where: Any = NOVALUE
) -> Any:
    filled, present = _without_nan(a, 0)
    _check_inexact(present, dtype)
    return mean(filled, axis, dtype, out, keepdims, where=_both(where, present))


def _check_inexact(present: Any, dtype: Any) -> None:
    if present is not None and dtype is not None and np.dtype(dtype).kind not in "fc":
        raise active().error(TypeError, "If a is inexact, then dtype must be inexact")


def _nan_spread(plain: Callable[..., Any], root: bool) -> Callable[..., Any]:
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
        lost = ddof if correction is NOVALUE else correction
        if present is None:
            return plain(filled, axis, dtype, out, lost, keepdims, where=where, mean=mean)
        _check_inexact(present, dtype)
        trace, (x,) = contents(filled)
        mask = _both(where, present)
        axes = reduced_axes(trace, axis, len(shape_of(x)))
        working = dtype_of(x) if dtype is None else np.dtype(dtype)
        centre = content_of(trace, mean) if given(mean) else _mean(trace, x, axes, mask, True, working)
        squares = _squared_distances(trace, x, centre, back=True)
        last = _real(dtype_of(x)) if dtype is None else working
        total = reduce(trace, "sum", masked(trace, cast(trace, squares, last), mask, 0), axes, _keep(keepdims))
        value = _per_degree(trace, x, total, axes, mask, lost, _keep(keepdims))
        value = _root(trace, value) if root else value
        enough = np.sum(mask, axis=axes, keepdims=_keep(keepdims)) > lost  # with too few elements it is NaN
        result = np.where(enough, finish(value), np.nan).astype(dtype_of(value), copy=False)
        return result if out is None else finish(contents(result)[1][0], out, "np.nanvar", "unsafe")

    return spread


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
    if x.shape[0] == 0:
        return const(np.zeros((0, 0)))
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
    """One variable a row; without a first one there are none."""
    rows = []
    for number, given_ in enumerate((m, y)):
        if given_ is None:
            continue
        x = array(given_)
        if x.ndim > 2:
            raise ValueError("m has more than 2 dimensions")
        wide = x if x.ndim == 2 else np.reshape(x, (1, -1))
        turned = not rowvar and (wide.shape[0] != 1 if number else x.ndim == 2)
        rows.append(wide.T if turned else wide)
        if number == 0 and rows[0].shape[0] == 0:
            return rows[0]
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


FUNCTIONS: dict[Any, Entry] = {
    np.mean: Entry(mean),
    np.var: Entry(var),
    np.std: Entry(std),
    np.average: Entry(average),
    np.nansum: Entry(_nan_total(sum_, 0)),
    np.nanprod: Entry(_nan_total(prod, 1)),
    np.nancumsum: Entry(_nan_running(cumsum, 0)),
    np.nancumprod: Entry(_nan_running(cumprod, 1)),
    np.nanmean: Entry(nanmean),
    np.nanvar: Entry(_nan_spread(var, False)),
    np.nanstd: Entry(_nan_spread(std, True)),
    np.cov: Entry(cov),
    np.corrcoef: Entry(corrcoef),
}
