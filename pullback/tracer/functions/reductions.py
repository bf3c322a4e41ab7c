"""Sums, products, truth over axes, and their running forms."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.ir.types import BOOL, I64, DType
from pullback.tracer.array import TracedArray, new_scalar
from pullback.tracer.dispatch import Entry
from pullback.tracer.dtypes import sum_dtype
from pullback.tracer.functions.common import (
    NOVALUE,
    array,
    available,
    axis_number,
    begun,
    concat,
    contents,
    finish,
    given,
    masked,
    op,
    reduce,
)
from pullback.tracer.functions.extrema import keeps, reduced_axes
from pullback.tracer.operands import broadcast, cast
from pullback.tracer.steps import reshape_content
from pullback.tracer.trace import Content, Trace, dtype_of, shape_of


def _initial(trace: Trace, name: str, content: Content, initial: Any) -> Content:
    """The result combined with `initial`."""
    if not given(initial):
        return content
    extra = cast(trace, contents(initial)[1][0], dtype_of(content))
    return op(trace, name, content, broadcast(trace, extra, shape_of(content)))


def _summed_in(x: Content, dtype: Any, out: Any) -> DType:
    """NumPy adds up in the dtype of `out`, where none is asked for."""
    target = out[0] if isinstance(out, tuple) else out
    real = isinstance(target, TracedArray) and target.dtype.kind != "c"
    if dtype is None and isinstance(target, TracedArray) and not (real and dtype_of(x).kind == "c"):
        return target.dtype
    wanted: DType = sum_dtype(dtype_of(x)) if dtype is None else np.dtype(dtype)
    return wanted


def _total(op_name: str, combine: str, neutral: int, ufunc_name: str) -> Callable[..., Any]:
    def total(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = NOVALUE,
        initial: Any = NOVALUE,
        where: Any = NOVALUE,
    ) -> Any:
        trace, (x,) = contents(a)
        x = cast(trace, x, _summed_in(x, dtype, out))
        x = masked(trace, x, where, neutral)
        axes = reduced_axes(trace, axis, len(shape_of(x)))
        result = reduce(trace, op_name, begun(trace, op_name, _numeric(trace, x), axes), axes, keeps(keepdims))
        result = _initial(trace, combine, cast(trace, result, dtype_of(x)), initial)
        return finish(result, out, f"np.{ufunc_name}", "unsafe" if dtype_of(x).kind == "c" else "same_kind")

    return total


def _numeric(trace: Trace, x: Content) -> Content:
    """Booleans, when the caller insists on them as the dtype, are summed as integers."""
    return cast(trace, x, I64) if dtype_of(x) == BOOL else x


sum_ = _total("sum", "add", 0, "sum")
prod = _total("prod", "mul", 1, "prod")


def _truth(op_name: str, neutral: bool) -> Callable[..., Any]:
    def truth(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOVALUE, *, where: Any = NOVALUE) -> Any:
        trace, (x,) = contents(a)
        x = masked(trace, cast(trace, x, BOOL), where, neutral)
        axes = reduced_axes(trace, axis, len(shape_of(x)))
        return finish(reduce(trace, op_name, x, axes, keeps(keepdims)), out, f"np.{op_name}", "unsafe")

    return truth


any_ = _truth("any", False)
all_ = _truth("all", True)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """A Python integer where NumPy gives one: without an axis."""
    trace, (x,) = contents(a)
    axes = reduced_axes(trace, axis, len(shape_of(x)))
    count = reduce(trace, "sum", cast(trace, cast(trace, x, BOOL), I64), axes, bool(keepdims))
    return new_scalar(trace, count, int) if axis is None and not keepdims else finish(count)


# ------------------------------------------------------------------ running forms


def _running(op_name: str) -> Callable[..., Any]:
    def running(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        trace, (x,) = contents(a)
        x = cast(trace, x, _summed_in(x, dtype, out))
        if axis is None or (shape_of(x) == () and axis in (0, -1)):
            x, axis = reshape_content(trace, x, (int(np.prod(shape_of(x), dtype=I64)),)), 0
        number = axis_number(trace, axis, len(shape_of(x)))
        return finish(trace.apply(op_name, x, axis=number, reverse=False), out, f"np.{op_name}")

    return running


cumsum = _running("cumsum")
cumprod = _running("cumprod")


def _cumulative(op_name: str, start: int) -> Callable[..., Any]:
    def cumulative(
        x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Any:
        a = array(x)
        if axis is None:
            if a.ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        a = array(a.reshape(1)) if a.ndim == 0 else a
        total = (cumsum if op_name == "cumsum" else cumprod)(a, axis=axis, dtype=dtype)
        if not include_initial:
            return finish(contents(total)[1][0], out, f"np.{op_name}")
        trace, (content,) = contents(total)
        number = axis_number(trace, axis, total.ndim)
        shape = (*total.shape[:number], 1, *total.shape[number + 1 :])
        return finish(concat(trace, [trace.full(total.dtype, shape, start), content], number), out, f"np.{op_name}")

    return cumulative


cumulative_sum = _cumulative("cumsum", 0)
cumulative_prod = _cumulative("cumprod", 1)

FUNCTIONS: dict[Any, Entry] = {
    np.sum: Entry(sum_),
    np.prod: Entry(prod),
    np.any: Entry(any_),
    np.all: Entry(all_),
    np.count_nonzero: Entry(count_nonzero),
    np.cumsum: Entry(cumsum),
    np.cumprod: Entry(cumprod),
    **available("cumulative_sum", Entry(cumulative_sum)),
    **available("cumulative_prod", Entry(cumulative_prod)),
}
