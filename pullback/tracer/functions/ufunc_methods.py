"""`ufunc.reduce`, `accumulate`, `reduceat`, `outer` and `at`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pullback.errors import OutsideWriteError, ShapeError, TypeRuleError
from pullback.tracer.array import TracedArray
from pullback.tracer.functions.common import (
    NOVALUE,
    array,
    axis_number,
    axis_numbers,
    const,
    contents,
    finish,
    given,
    size_over,
    static_array,
)
from pullback.tracer.subscript import add_at, apply_at
from pullback.tracer.trace import active
from pullback.tracer.ufuncs import plain_out

REDUCTIONS: Mapping[Any, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.fmax: np.nanmax,
    np.fmin: np.nanmin,
    np.logical_and: np.all,
    np.logical_or: np.any,
}


def reduce(
    ufunc: np.ufunc,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = NOVALUE,
    where: Any = True,
) -> Any:
    x = array(a)
    target = out[0] if isinstance(out, tuple) else out
    axes = axis_numbers(active(), axis, x.ndim) if x.ndim else ()
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if where is not True:
        options["where"] = where
    if (ufunc in REDUCTIONS and dtype is None) or ufunc in (np.add, np.multiply):
        if initial is not NOVALUE and ufunc not in (np.logical_and, np.logical_or):
            options["initial"] = initial
        if ufunc in (np.add, np.multiply) and dtype is not None:
            options["dtype"] = dtype
        result = REDUCTIONS[ufunc](x, **options)
    elif ufunc is np.logaddexp and not given(initial):
        terms = _prepared(ufunc, x, dtype)[0]
        terms = terms if where is True else np.where(where, terms, terms.dtype.type(-np.inf))
        result = _logsumexp(terms, axes, keepdims)
    else:
        result = _folded(ufunc, *_prepared(ufunc, x, dtype), axes, keepdims, initial, where)
    return result if target is None else finish(contents(result)[1][0], target, f"np.{ufunc.__name__}.reduce", "unsafe")


def _logsumexp(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """max + log(sum(exp(x - max))), with a finite max; all -inf gives -inf and gradient 0."""
    wide = x if x.dtype.kind == "f" else x.astype(np.result_type(x.dtype, np.float16))
    if size_over(wide.shape, axes) == 0:
        return np.sum(wide, axis=axes, keepdims=keepdims) - np.inf
    trace, (content,) = contents(np.max(wide, axis=axes, keepdims=True))
    top: Any = finish(trace.apply("stop_gradient", content))
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.sum(np.exp(wide - top), axis=axes, keepdims=True)
    empty = total == 0
    result = np.where(empty, -np.inf, np.log(np.where(empty, 1, total))) + top
    result = result.astype(wide.dtype, copy=False)
    return result if keepdims else np.squeeze(result, axis=axes)


def _prepared(ufunc: np.ufunc, x: Any, dtype: Any) -> tuple[Any, Any]:
    """`x` in the dtype in which NumPy's loop takes its elements, and the dtype of the running result."""
    x = x if dtype is None else x.astype(dtype)
    try:
        running, element, _ = ufunc.resolve_dtypes((None, x.dtype, None), reduction=True)
    except TypeError as error:
        raise active().error(TypeRuleError, f"np.{ufunc.__name__}.reduce: {error}") from None
    return x.astype(element, copy=False), running


def _folded(
    ufunc: np.ufunc, x: Any, running: Any, axes: tuple[int, ...], keepdims: bool, initial: Any, where: Any
) -> Any:
    """From left to right, one call for each element of the reduced axes; from the identity on, where there is one."""
    lines, masks = _lines(x, axes), None if where is True else _lines(np.broadcast_to(array(where), x.shape), axes)
    count, shape = lines.shape[0], lines.shape[1:]
    start = initial if given(initial) else ufunc.identity
    if start is None and count == 0:
        raise active().error(
            ShapeError, f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
        )
    if start is None and masks is not None:
        raise active().error(
            ValueError,
            f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where mask one has to "
            "specify 'initial'",
        )
    total: Any = None if start is None else np.broadcast_to(_in_dtype(start, running), shape)
    for k in range(count):
        joined = lines[k].astype(running, copy=False) if total is None else ufunc(total, lines[k])
        total = joined if masks is None else np.where(masks[k], joined, total)
    return np.reshape(total, tuple([1 if k in axes else n for k, n in enumerate(x.shape)])) if keepdims else total


def _lines(x: Any, axes: tuple[int, ...]) -> Any:
    """The elements over `axes` as the first axis."""
    kept = [k for k in range(x.ndim) if k not in axes]
    shape = tuple([x.shape[k] for k in kept])
    return np.reshape(np.transpose(x, (*axes, *kept)), (size_over(x.shape, axes), *shape))


def _in_dtype(number: Any, dtype: Any) -> Any:
    return const(np.array(number).astype(dtype)) if type(number) in (bool, int, float) else array(number).astype(dtype)


def accumulate(ufunc: np.ufunc, array_: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    x = array(array_)
    number = axis_number(active(), axis, x.ndim)
    target = out[0] if isinstance(out, tuple) else out
    if ufunc in (np.add, np.multiply):
        result = (np.cumsum if ufunc is np.add else np.cumprod)(x, axis=number, dtype=dtype)
    elif ufunc in (np.maximum, np.minimum) and x.dtype.kind in "iuf":
        trace, (content,) = contents(x if dtype is None else x.astype(dtype))
        name = "cummax" if ufunc is np.maximum else "cummin"
        result = finish(trace.apply(name, content, axis=number, reverse=False))
    else:
        x, running = _prepared(ufunc, x, dtype)
        lines = np.moveaxis(x, number, 0)
        rows = [lines[0].astype(running, copy=False)] if lines.shape[0] else []
        for k in range(1, lines.shape[0]):
            rows.append(ufunc(rows[-1], lines[k]))
        result = np.moveaxis(np.stack(rows), 0, number) if rows else x.astype(running)
    return result if target is None else finish(contents(result)[1][0], target, f"np.{ufunc.__name__}.accumulate")


def reduceat(ufunc: np.ufunc, array_: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """One reduction for each stretch between constant indices."""
    x, trace = array(array_), active()
    number = axis_number(trace, axis, x.ndim)
    marks = static_array(trace, indices, "ufunc.reduceat: the indices").tolist()
    n = x.shape[number]
    lead = (slice(None),) * number
    rows = []
    for start, stop in zip(marks, [*marks[1:], n], strict=True):
        if not 0 <= start < n:
            raise trace.error(IndexError, f"index {start} out-of-bounds in {ufunc.__name__}.reduceat [0, {n})")
        if stop <= start + 1:  # one element, which no identity is joined to
            rows.append(_prepared(ufunc, x[(*lead, start)], dtype)[0])
        else:
            rows.append(reduce(ufunc, x[(*lead, slice(start, stop))], number, dtype))
    result = np.stack(rows, axis=number)
    return result if out is None else finish(contents(result)[1][0], out, f"np.{ufunc.__name__}.reduceat")


def outer(ufunc: np.ufunc, A: Any, B: Any, **kwargs: Any) -> Any:
    x, y = array(A), array(B)
    return ufunc(np.reshape(x, x.shape + (1,) * y.ndim), y, **kwargs)


def at(ufunc: np.ufunc, a: Any, indices: Any, b: Any = None) -> None:
    """Unbuffered: repeated indices take part again and again."""
    trace = active()
    if not isinstance(a, TracedArray):
        raise trace.error(OutsideWriteError, plain_out(f"np.{ufunc.__name__}.at", a))
    if (b is None) != (ufunc.nin == 1):
        raise trace.error(ValueError, f"np.{ufunc.__name__}.at takes {'no values' if ufunc.nin == 1 else 'values'}")
    if ufunc in (np.add, np.subtract) and a.dtype.kind != "b":
        add_at(trace, a, indices, b, negate=ufunc is np.subtract)
    else:
        apply_at(ufunc, a, indices, b)


METHODS: Mapping[str, Any] = {
    "reduce": reduce,
    "accumulate": accumulate,
    "reduceat": reduceat,
    "outer": outer,
    "at": at,
}
