"""Sums, products, extrema, truth over axes, and their running forms."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import ShapeError, UnsupportedError
from pullback.ir.types import BOOL, I64, DType
from pullback.tracer.array import new_scalar
from pullback.tracer.dispatch import Entry
from pullback.tracer.dtypes import sum_dtype
from pullback.tracer.functions.common import (
    NOVALUE,
    array,
    available,
    axis_number,
    axis_numbers,
    concat,
    contents,
    finish,
    given,
    masked,
    op,
    reduce,
    size_over,
)
from pullback.tracer.operands import broadcast, cast
from pullback.tracer.steps import reshape_content
from pullback.tracer.trace import Content, Trace, dtype_of, shape_of


def _keep(keepdims: Any) -> bool:
    return bool(keepdims) if keepdims is not NOVALUE else False


def _axes(trace: Trace, axis: Any, ndim: int) -> tuple[int, ...]:
    """The reduced axes; ufuncs let axis 0 or -1 pass for an array without axes."""
    return () if ndim == 0 and axis in (0, -1) else axis_numbers(trace, axis, ndim)


def _initial(trace: Trace, name: str, content: Content, initial: Any) -> Content:
    """The result combined with `initial`."""
    if not given(initial):
        return content
    extra = cast(trace, contents(initial)[1][0], dtype_of(content))
    return op(trace, name, content, broadcast(trace, extra, shape_of(content)))


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
        x = cast(trace, x, sum_dtype(dtype_of(x)) if dtype is None else np.dtype(dtype))
        x = masked(trace, x, where, neutral)
        axes = _axes(trace, axis, len(shape_of(x)))
        result = reduce(trace, op_name, _numeric(trace, x), axes, _keep(keepdims))
        return finish(_initial(trace, combine, cast(trace, result, dtype_of(x)), initial), out, f"np.{ufunc_name}")

    return total


def _numeric(trace: Trace, x: Content) -> Content:
    """Booleans, when the caller insists on them as the dtype, are summed as integers."""
    return cast(trace, x, I64) if dtype_of(x) == BOOL else x


sum_ = _total("sum", "add", 0, "sum")
prod = _total("prod", "mul", 1, "prod")


def _extremum(op_name: str, combine: str, word: str) -> Callable[..., Any]:
    def extremum(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOVALUE, initial: Any = NOVALUE, where: Any = NOVALUE
    ) -> Any:
        trace, (x,) = contents(a)
        if dtype_of(x).kind == "c":
            raise trace.error(
                UnsupportedError, f"np.{op_name} of complex numbers is not followed; compare np.abs or a part"
            )
        axes = _axes(trace, axis, len(shape_of(x)))
        if given(where) and where is not True:
            if not given(initial):
                raise trace.error(
                    ValueError,
                    f"reduction operation '{combine}' does not have an identity, so to use a where mask one "
                    "has to specify 'initial'",
                )
            x = masked(trace, x, where, _worst(dtype_of(x), op_name == "max"))
        result = extremum_of(trace, op_name, x, axes, _keep(keepdims), given(initial), combine)
        return finish(_initial(trace, combine, result, initial), out, f"np.{op_name}")

    extremum.__doc__ = f"The {word} element over axes."
    return extremum


def extremum_of(
    trace: Trace,
    name: str,
    x: Content,
    axes: tuple[int, ...],
    keepdims: bool = False,
    empty_allowed: bool = False,
    combine: str = "maximum",
) -> Content:
    """`max` or `min` over `axes`, by the rule for ties the trace was started with."""
    shape = shape_of(x)
    if axes and size_over(shape, axes) == 0:
        if not empty_allowed:
            raise trace.error(ShapeError, f"zero-size array to reduction operation {combine} which has no identity")
        result_shape = tuple([1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes])
        return np.full(result_shape, _worst(dtype_of(x), name == "max"), dtype_of(x))
    return reduce(trace, name, x, axes, keepdims, ties=trace.ties) if axes else x


def _worst(dtype: DType, lowest: bool) -> Any:
    """What no element is beyond: the neutral start of a maximum (or minimum)."""
    if dtype.kind == "f":
        return -np.inf if lowest else np.inf
    if dtype.kind == "b":
        return not lowest
    info = np.iinfo(dtype)
    return info.min if lowest else info.max


max_ = _extremum("max", "maximum", "largest")
min_ = _extremum("min", "minimum", "smallest")


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOVALUE) -> Any:
    trace, (x,) = contents(a)
    axes = _axes(trace, axis, len(shape_of(x)))
    high, low = [extremum_of(trace, name, x, axes, _keep(keepdims)) for name in ("max", "min")]
    return finish(trace.apply("sub", high, low), out, "np.ptp", "unsafe")


def _truth(op_name: str, neutral: bool) -> Callable[..., Any]:
    def truth(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOVALUE, *, where: Any = NOVALUE) -> Any:
        trace, (x,) = contents(a)
        x = masked(trace, cast(trace, x, BOOL), where, neutral)
        axes = _axes(trace, axis, len(shape_of(x)))
        return finish(reduce(trace, op_name, x, axes, _keep(keepdims)), out, f"np.{op_name}", "unsafe")

    return truth


any_ = _truth("any", False)
all_ = _truth("all", True)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """A Python integer where NumPy gives one: without an axis."""
    trace, (x,) = contents(a)
    axes = _axes(trace, axis, len(shape_of(x)))
    count = reduce(trace, "sum", cast(trace, cast(trace, x, BOOL), I64), axes, bool(keepdims))
    return new_scalar(trace, count, int) if axis is None and not keepdims else finish(count)


def _place(op_name: str) -> Callable[..., Any]:
    def place(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOVALUE) -> Any:
        trace, (x,) = contents(a)
        return finish(place_of(trace, op_name, x, axis, _keep(keepdims)), out, f"np.{op_name}")

    return place


def place_of(trace: Trace, name: str, x: Content, axis: Any, keepdims: bool) -> Content:
    """argmax or argmin; without an axis, of the flattened array."""
    shape = shape_of(x)
    if axis is None:
        flat = reshape_content(trace, x, (int(np.prod(shape, dtype=I64)),))
        return reshape_content(trace, _arg(trace, name, flat, 0), (1,) * len(shape) if keepdims else ())
    if not shape and axis in (0, -1):
        return np.zeros((), I64)
    number = axis_number(trace, axis, len(shape))
    result = _arg(trace, name, x, number)
    return reshape_content(trace, result, (*shape[:number], 1, *shape[number + 1 :])) if keepdims else result


def _arg(trace: Trace, name: str, x: Content, axis: int) -> Content:
    if shape_of(x)[axis] == 0:
        raise trace.error(ShapeError, f"attempt to get {name} of an empty sequence")
    if dtype_of(x).kind == "c":
        raise trace.error(UnsupportedError, f"np.{name} of complex numbers is not followed; compare np.abs or a part")
    return trace.apply(name, x, axis=axis)


argmax = _place("argmax")
argmin = _place("argmin")


# ------------------------------------------------------------------ running forms


def _running(op_name: str) -> Callable[..., Any]:
    def running(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        trace, (x,) = contents(a)
        x = cast(trace, x, sum_dtype(dtype_of(x)) if dtype is None else np.dtype(dtype))
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
    np.max: Entry(max_),
    np.amax: Entry(max_),
    np.min: Entry(min_),
    np.amin: Entry(min_),
    np.ptp: Entry(ptp),
    np.any: Entry(any_),
    np.all: Entry(all_),
    np.count_nonzero: Entry(count_nonzero),
    np.argmax: Entry(argmax),
    np.argmin: Entry(argmin),
    np.cumsum: Entry(cumsum),
    np.cumprod: Entry(cumprod),
    **available("cumulative_sum", Entry(cumulative_sum)),
    **available("cumulative_prod", Entry(cumulative_prod)),
}
