"""max, min, where they stand, and the same without NaN.

Complex numbers are ordered as NumPy orders them, by real and then by imaginary part; the element that is chosen gets
the gradient, and equal ones share it, as for real numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.types import I64, DType, Shape, real_dtype
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import (
    NOVALUE,
    axis_number,
    axis_numbers,
    contents,
    finish,
    given,
    iota,
    keep,
    masked,
    op,
    reduce,
    size_over,
)
from pullback.tracer.operands import broadcast, cast
from pullback.tracer.steps import reshape_content, transpose_content
from pullback.tracer.trace import Content, Trace, dtype_of, shape_of

UFUNCS = {"max": np.maximum, "min": np.minimum, "nanmax": np.fmax, "nanmin": np.fmin}


def keeps(keepdims: Any) -> bool:
    return bool(keepdims) if keepdims is not NOVALUE else False


def reduced_axes(trace: Trace, axis: Any, ndim: int) -> tuple[int, ...]:
    """The reduced axes; ufuncs let axis 0 or -1 pass for an array without axes."""
    return () if ndim == 0 and axis in (0, -1) else axis_numbers(trace, axis, ndim)


def _extremum(name: str) -> Callable[..., Any]:
    def extremum(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOVALUE, initial: Any = NOVALUE, where: Any = NOVALUE
    ) -> Any:
        trace, (x,) = contents(a)
        axes = reduced_axes(trace, axis, len(shape_of(x)))
        if given(where) and where is not True:
            if not given(initial):
                raise trace.error(
                    ValueError,
                    f"reduction operation '{UFUNCS[name].__name__}' does not have an identity, so to use a where mask "
                    "one has to specify 'initial'",
                )
            x = masked(trace, x, where, worst(dtype_of(x), "max" in name))
        result = extremum_of(trace, name, x, axes, keeps(keepdims), given(initial))
        return finish(_joined(trace, name, result, initial), out, f"np.{name}", "unsafe")

    return extremum


def _joined(trace: Trace, name: str, content: Content, initial: Any) -> Content:
    """The result together with `initial`."""
    if not given(initial):
        return content
    extra = broadcast(trace, cast(trace, contents(initial)[1][0], dtype_of(content)), shape_of(content))
    return contents(UFUNCS[name](finish(extra), finish(content)))[1][0]


def extremum_of(
    trace: Trace, name: str, x: Content, axes: tuple[int, ...], keepdims: bool = False, empty_allowed: bool = False
) -> Content:
    """`max`, `min`, `nanmax` or `nanmin` over `axes`, by the rule for ties the trace was started with."""
    shape, dtype = shape_of(x), dtype_of(x)
    if not axes:
        return x
    if size_over(shape, axes) == 0:
        if not empty_allowed:
            raise trace.error(
                ShapeError,
                f"zero-size array to reduction operation {UFUNCS[name].__name__} which has no identity",
            )
        result_shape = tuple([1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes])
        return np.full(result_shape, worst(dtype, "max" in name), dtype)
    if dtype.kind == "c":
        return _complex_extremum(trace, name, x, axes, keepdims)
    if dtype.kind != "f":
        name = name.removeprefix("nan")
    return reduce(trace, name, x, axes, keepdims, ties=trace.ties)


def worst(dtype: DType, lowest: bool) -> Any:
    """What no element is beyond: the neutral start of a maximum (or minimum)."""
    if dtype.kind == "f":
        return -np.inf if lowest else np.inf
    if dtype.kind == "c":
        return complex(-np.inf, -np.inf) if lowest else complex(np.inf, np.inf)
    if dtype.kind == "b":
        return not lowest
    info = np.iinfo(dtype)
    return info.min if lowest else info.max


max_ = _extremum("max")
min_ = _extremum("min")
nanmax = _extremum("nanmax")
nanmin = _extremum("nanmin")


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOVALUE) -> Any:
    trace, (x,) = contents(a)
    axes = reduced_axes(trace, axis, len(shape_of(x)))
    high, low = [extremum_of(trace, name, x, axes, keeps(keepdims)) for name in ("max", "min")]
    return finish(trace.apply("sub", high, low), out, "np.ptp", "unsafe")


# ------------------------------------------------------------------ complex numbers


def _complex_extremum(trace: Trace, name: str, z: Content, axes: tuple[int, ...], keepdims: bool) -> Content:
    """The parts of the elements that are the extremum, which are all the same; other elements are left out as NaN."""
    shape = shape_of(z)
    lines = _lines(trace, z, axes)
    last = len(shape_of(lines)) - 1
    hits = _hits(trace, name, lines, last)
    parts = []
    for part in ("real", "imag"):
        x = trace.apply(part, lines)
        chosen = trace.apply("select", hits, x, trace.full(dtype_of(x), shape_of(x), np.nan))
        parts.append(reduce(trace, "nanmax", chosen, (last,), ties=trace.ties))
    result = trace.apply("complex", *parts)
    narrow = tuple([1 if k in axes else n for k, n in enumerate(shape)])
    return reshape_content(trace, result, narrow) if keepdims else result


def _lines(trace: Trace, x: Content, axes: tuple[int, ...]) -> Content:
    """The reduced axes merged into one, which comes last."""
    shape = shape_of(x)
    kept = [k for k in range(len(shape)) if k not in axes]
    moved = transpose_content(trace, x, (*kept, *axes))
    return reshape_content(trace, moved, (*[shape[k] for k in kept], size_over(shape, axes)))


def _hits(trace: Trace, name: str, z: Content, axis: int) -> Content:
    """Which elements along `axis` are the extremum. A NaN is, the first one, unless NaN loses and there are others."""
    shape = shape_of(z)
    kind, far = name.removeprefix("nan"), worst(real_dtype(dtype_of(z)), "max" in name)
    nan = trace.apply("isnan", z)
    best = op(trace, "invert", nan)
    for part in ("real", "imag"):
        x = trace.apply(part, z)
        x = trace.apply("select", best, x, trace.full(dtype_of(x), shape, far))
        top = keep(trace, reduce(trace, kind, x, (axis,), ties="all"), shape, (axis,))
        best = trace.apply("bitwise_and", best, trace.apply("equal", x, top))
    decided = keep(trace, reduce(trace, "all" if name.startswith("nan") else "any", nan, (axis,)), shape, (axis,))
    return trace.apply("select", decided, _first(trace, nan, axis), best)


def _first(trace: Trace, pred: Content, axis: int) -> Content:
    """The first True along `axis` alone (or the first element, where there is none)."""
    shape = shape_of(pred)
    place = keep(trace, trace.apply("argmax", pred, axis=axis), shape, (axis,))
    return trace.apply("equal", place, np.array(iota(shape, axis)))


# ------------------------------------------------------------------ where it stands


def _place(name: str) -> Callable[..., Any]:
    def place(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOVALUE) -> Any:
        trace, (x,) = contents(a)
        return finish(place_of(trace, name, x, axis, keeps(keepdims)), out, f"np.{name}")

    return place


def place_of(trace: Trace, name: str, x: Content, axis: Any, keepdims: bool) -> Content:
    """argmax or argmin; without an axis, of the flattened array."""
    shape = shape_of(x)
    if axis is None:
        flat = reshape_content(trace, x, (size_over(shape, range(len(shape))),))
        return reshape_content(trace, _arg(trace, name, flat, 0), (1,) * len(shape) if keepdims else ())
    if not shape and axis in (0, -1):
        return np.zeros((), I64)
    number = axis_number(trace, axis, len(shape))
    result = _arg(trace, name, x, number)
    return reshape_content(trace, result, _with_unit(shape, number)) if keepdims else result


def _with_unit(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _arg(trace: Trace, name: str, x: Content, axis: int) -> Content:
    if shape_of(x)[axis] == 0:
        raise trace.error(ShapeError, f"attempt to get {name} of an empty sequence")
    if dtype_of(x).kind == "c":
        return trace.apply("argmax", _hits(trace, name.removeprefix("arg"), x, axis), axis=axis)
    return trace.apply(name, x, axis=axis)


def _nan_place(name: str) -> Callable[..., Any]:
    def place(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOVALUE) -> Any:
        trace, (x,) = contents(a)
        if dtype_of(x).kind in "fc":
            nan = trace.apply("isnan", x)
            every = reduce(trace, "all", nan, reduced_axes(trace, axis, len(shape_of(x))))
            trace.check(op(trace, "invert", every), "All-NaN slice encountered")
            far = trace.full(dtype_of(x), shape_of(x), worst(dtype_of(x), name == "argmax"))
            x = trace.apply("select", nan, far, x)
        return finish(place_of(trace, name, x, axis, keeps(keepdims)), out, f"np.nan{name}")

    return place


argmax = _place("argmax")
argmin = _place("argmin")

FUNCTIONS: dict[Any, Entry] = {
    np.max: Entry(max_),
    np.amax: Entry(max_),
    np.min: Entry(min_),
    np.amin: Entry(min_),
    np.ptp: Entry(ptp),
    np.nanmax: Entry(nanmax),
    np.nanmin: Entry(nanmin),
    np.argmax: Entry(argmax),
    np.argmin: Entry(argmin),
    np.nanargmax: Entry(_nan_place("argmax")),
    np.nanargmin: Entry(_nan_place("argmin")),
}
