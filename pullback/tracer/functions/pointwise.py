"""Functions that work element by element without being ufuncs: where, clip, round, interp and their like."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import asarray as plain_array  # while a trace runs, np.asarray is a wrapper

from pullback.ir.types import BOOL, DType
from pullback.tracer.array import TracedArray, TracedValue
from pullback.tracer.dispatch import Entry
from pullback.tracer.dtypes import common_dtype
from pullback.tracer.functions.common import (
    NOVALUE,
    array,
    axis_number,
    contents,
    finish,
    full,
    given,
    op,
)
from pullback.tracer.operands import Operand, broadcast, broadcast_shape, cast, content_of, operand
from pullback.tracer.selection import Selection
from pullback.tracer.trace import Content, Trace, active, dtype_of, shape_of


def _select(trace: Trace, condition: Content, x: Content, y: Content) -> Content:
    shape = broadcast_shape(trace, "where", [shape_of(c) for c in (condition, x, y)])
    parts = [broadcast(trace, c, shape) for c in (cast(trace, condition, BOOL), x, y)]
    return trace.apply("select", *parts)


def where(condition: Any, x: Any = NOVALUE, y: Any = NOVALUE, /) -> Any:
    if x is NOVALUE and y is NOVALUE:
        return np.nonzero(array(condition))
    if x is NOVALUE or y is NOVALUE:
        raise ValueError("either both or neither of x and y should be given")
    trace = active()
    first, second = operand(trace, x), operand(trace, y)
    dtype = common_dtype((first.key, second.key))
    values = _converted(trace, (first, second), dtype, wraps=True)
    return finish(_select(trace, content_of(trace, condition), *values))


def _converted(trace: Trace, operands: Sequence[Operand], dtype: DType, wraps: bool = False) -> list[Content]:
    """The contents in one dtype; with `wraps`, a Python integer beyond those of the dtype is what NumPy's where makes
    of it: it is cut off, and since NumPy 2.5 refused."""
    made: list[Content] = []
    for o in operands:
        if o.number is None:
            made.append(cast(trace, o.content, dtype))
        else:
            beyond = wraps and type(o.number) is int and dtype.kind in "iu"
            made.append(plain_array(np.where(True, o.number, np.zeros((), dtype)) if beyond else o.number, dtype))
    return made


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """The first condition that holds chooses."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    trace = active()
    operands = [operand(trace, c) for c in (*choicelist, default)]
    dtype = common_dtype(tuple([o.key for o in operands]))
    values = _converted(trace, operands, dtype, wraps=True)
    result = values[-1]
    for condition, value in zip(reversed(condlist), reversed(values[:-1]), strict=True):
        pred = content_of(trace, condition)
        if dtype_of(pred) != BOOL:
            raise trace.error(TypeError, f"invalid entry in condlist: should be boolean ndarray, got {dtype_of(pred)}")
        result = _select(trace, pred, value, result)
    return finish(result)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Each function is applied to the elements of x where its condition holds."""
    a = array(x)
    if a.ndim == 0:
        rows = [np.reshape(array(c), 1) for c in _condition_rows(a, condlist)]
        return np.reshape(piecewise(np.reshape(a, 1), rows, funclist, *args, **kw), ())
    conditions = [array(c) for c in _condition_rows(a, condlist)]
    if len(funclist) == len(conditions) + 1:
        conditions.append(np.logical_not(_any_of(conditions)))
    elif len(funclist) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are "
            "expected"
        )
    result: Any = np.zeros_like(a)
    for condition, function in zip(conditions, funclist, strict=True):
        mask = condition.astype(bool)
        chosen = a[mask]
        if isinstance(chosen, Selection) or chosen.size:  # NumPy calls no function for nothing
            result[mask] = function(chosen, *args, **kw) if callable(function) else function
    return result


def _condition_rows(a: Any, condlist: Any) -> list[Any]:
    """A single condition counts as a list of one."""
    if isinstance(condlist, TracedValue | np.ndarray):
        return list(condlist) if np.ndim(condlist) > a.ndim else [condlist]
    if a.ndim and not isinstance(condlist[0], list | tuple | np.ndarray | TracedValue):
        return [condlist]
    return list(condlist)


def _any_of(conditions: list[Any]) -> Any:
    total = conditions[0]
    for condition in conditions[1:]:
        total = np.logical_or(total, condition)
    return total


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Element by element, the choice that `a` numbers."""
    index = array(a)
    trace = active()
    listed = [array(c) for c in choices]
    operands = [operand(trace, c) for c in listed]
    dtype = common_dtype(tuple([operand(trace, c).key for c in choices]))
    values = _converted(trace, operands, dtype)
    number, (place,) = len(listed), contents(index)[1]
    place = cast(trace, place, np.dtype(np.int64))
    if mode == "wrap":
        place = op(trace, "mod", place, number)
    elif mode == "clip":
        place = op(trace, "clip", place, 0, number - 1)
    else:
        inside = op(trace, "bitwise_and", op(trace, "greater_equal", place, 0), op(trace, "less", place, number))
        trace.check(inside, "invalid entry in choice array")
    result = values[-1]
    for k in reversed(range(number - 1)):
        result = _select(trace, op(trace, "equal", place, k), values[k], result)
    shape = broadcast_shape(trace, "choose", [shape_of(place), *[shape_of(v) for v in values]])
    return finish(broadcast(trace, result, shape), out, "np.choose", "unsafe")


# ------------------------------------------------------------------ clipping and cleaning


def clip(
    a: Any,
    a_min: Any = NOVALUE,
    a_max: Any = NOVALUE,
    out: Any = None,
    *,
    min: Any = NOVALUE,
    max: Any = NOVALUE,
    **options: Any,
) -> Any:
    trace = active()
    x = operand(trace, a)
    dtype = dtype_of(x.content)
    low = _bound(min if a_min is NOVALUE else a_min, dtype, low=True)
    high = _bound(max if a_max is NOVALUE else a_max, dtype, low=False)
    operands = [x, *[operand(trace, bound) for bound in (low, high) if bound is not None]]
    asked = options.get("dtype")
    dtype = np.dtype(asked) if asked is not None else common_dtype(tuple([o.key for o in operands]))
    values = _converted(trace, operands, dtype)
    shape = broadcast_shape(trace, "clip", [shape_of(v) for v in values])
    wide, *bounds = [broadcast(trace, v, shape) for v in values]
    if len(bounds) == 2:
        single = all(v.size == 1 if isinstance(v, np.ndarray) else v.type.size == 1 for v in values[1:])
        result = _clipped(trace, wide, bounds[0], bounds[1], single)
    elif bounds:
        result = _one_sided(trace, wide, bounds[0], low is not None)
    else:
        result = wide
    return finish(result, out, "np.clip", options.get("casting", "same_kind"))


def _bound(bound: Any, dtype: DType, low: bool) -> Any:
    """The bound, or None where there is none, or where it is a Python integer beyond those of the dtype."""
    if not given(bound):
        return None
    if type(bound) is int and dtype.kind in "iu":
        info = np.iinfo(dtype)
        return None if (bound <= info.min if low else bound >= info.max) else bound
    return bound


def _clipped(trace: Trace, x: Content, low: Content, high: Content, single: bool) -> Content:
    """single : whether the bounds are one number each; then NumPy gives x where it equals a bound, else the bound"""
    kind = dtype_of(x).kind
    if kind == "b":
        return trace.apply("minimum", trace.apply("maximum", x, low), high)
    if kind == "c":
        return _better(trace, _better(trace, x, low, np.less), high, np.greater)
    keeps = kind == "f" and (single or dtype_of(x) == np.float16)
    return trace.apply("clamp" if keeps else "clip", x, low, high)


def _better(trace: Trace, x: Content, bound: Content, beyond: np.ufunc) -> Content:
    """`x`, or the bound where it is beyond that; NaN wins, that of x first."""
    (outside,) = contents(beyond(finish(x), finish(bound)))[1]
    nan = trace.apply("bitwise_and", op(trace, "invert", trace.apply("isnan", x)), trace.apply("isnan", bound))
    return trace.apply("select", trace.apply("bitwise_or", outside, nan), bound, x)


def _one_sided(trace: Trace, x: Content, bound: Content, low: bool) -> Content:
    """A missing bound is the infinity (or the last integer): the derivative at the other bound is 1, as for clip."""
    dtype = dtype_of(x)
    if dtype.kind == "b":
        return trace.apply("maximum" if low else "minimum", x, bound)
    if dtype.kind == "c":
        return _better(trace, x, bound, np.less if low else np.greater)
    if dtype.kind == "f":
        far: Any = np.inf if low else -np.inf
    else:
        far = np.iinfo(dtype).max if low else np.iinfo(dtype).min
    other = full(trace, x, far)
    name = "clamp" if dtype == np.float16 else "clip"  # of equal zeros NumPy's maximum of float16 gives the first
    return trace.apply(name, x, bound, other) if low else trace.apply(name, x, other, bound)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    a = array(x)
    if a.dtype.kind not in "fc":
        return a.copy() if copy and isinstance(a, TracedArray) else a
    if a.dtype.kind == "c":
        parts = [nan_to_num(p, True, nan, posinf, neginf) for p in (a.real, a.imag)]
        result = finish(contents_op("complex", *parts))
    else:
        info = np.finfo(a.dtype)
        large = info.max if posinf is None else posinf
        small = info.min if neginf is None else neginf
        result = np.where(np.isnan(a), nan, np.where(np.isposinf(a), large, np.where(np.isneginf(a), small, a)))
        result = result.astype(a.dtype, copy=False)
    if not copy and isinstance(a, TracedArray):
        a[...] = result
        return a
    return result


def contents_op(name: str, *xs: Any) -> Content:
    """An op on the contents of values of one shape."""
    trace, parts = contents(*xs)
    return trace.apply(name, *parts)


def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    x = array(a)
    digits = operator.index(decimals)
    if x.dtype.kind == "b" and digits:
        raise active().error(
            TypeError, "np.round: booleans have no decimals: their product with 10.0 is no boolean; use astype"
        )
    if x.dtype.kind in "iu" and digits >= 0:
        result = x.copy() if isinstance(x, TracedArray) else x
    elif x.dtype.kind == "c":
        trace, parts = contents(round_(x.real, digits), round_(x.imag, digits))
        result = finish(trace.apply("complex", *parts))
    elif digits == 0:
        result = np.rint(x)
    else:
        scale = 10.0 ** abs(digits)
        scaled = np.rint(x * scale) / scale if digits > 0 else np.rint(x / scale) * scale
        result = scaled.astype(x.dtype, copy=False)
        if x.dtype.kind == "f":
            result = np.where(np.isfinite(x), result, x)
    return result if out is None else finish(contents(result)[1][0], out, "np.round", "unsafe")


def fix(x: Any, out: Any = None) -> Any:
    result = np.trunc(x)
    return result if out is None else finish(contents(result)[1][0], out, "np.fix")


def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x). Near 0 by its series, since the derivatives of the quotient lose their digits there."""
    a = array(x)
    a = a if a.dtype.kind in "fc" else a.astype(np.float64)
    y = np.pi * a
    near = np.abs(y) < 0.5
    small = np.where(near, y, 0)
    square: Any = small * small
    series: Any = 1.0
    for k in range(SINC_TERMS, 0, -1):
        series = 1 - square * (series / (2 * k * (2 * k + 1)))
    safe = np.where(near, 1, y)
    return np.where(near, series, np.sin(safe) / safe).astype(a.dtype, copy=False)


SINC_TERMS = 9
"""The next term is below 1e-22 where the series is used: enough for some derivatives too."""


def i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    a = array(x)
    if a.dtype.kind == "c":
        raise active().error(TypeError, "np.i0 is not supported for complex values")
    trace, (content,) = contents(a if a.dtype.kind == "f" else a.astype(np.float64))
    return finish(trace.apply("iv", content, n=0))


def angle(z: Any, deg: bool = False) -> Any:
    x = array(z)
    result = np.arctan2(x.imag, x.real) if x.dtype.kind == "c" else np.arctan2(0, x)
    return result * (180 / np.pi) if deg else result


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """Jumps larger than half a period are taken as whole periods; their number has no derivative."""
    x = array(p)
    number = axis_number(active(), axis, x.ndim)
    steps = np.diff(x, axis=number)
    limit = period / 2 if discont is None else discont
    whole = np.result_type(x.dtype, period)
    if whole.kind in "iu":
        half, rest = divmod(period, 2)
        ambiguous = rest == 0
    else:
        half, ambiguous = period / 2, True
    low = -half
    wrapped = np.mod(steps - low, period) + low
    if ambiguous:
        wrapped = np.where((wrapped == low) & (steps > 0), half, wrapped)
    correction = np.where(np.abs(steps) < limit, 0, wrapped - steps)
    lead = (slice(None),) * number
    made = x.astype(whole)
    made[(*lead, slice(1, None))] = x[(*lead, slice(1, None))] + np.cumsum(correction, axis=number)
    return made


# ------------------------------------------------------------------ interpolation


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear; followed in x, xp and fp."""
    at, knots, values = array(x), array(xp), array(fp)
    if at.dtype.kind == "c" or knots.dtype.kind == "c":
        raise active().error(TypeError, "np.interp: cannot cast complex points to float64")
    if knots.ndim != 1 or values.ndim != 1:
        raise active().error(ValueError, "np.interp: the data points must have one axis: object too deep or too flat")
    if knots.size != values.size:
        raise ValueError(f"fp and xp are not of the same length: {values.size} and {knots.size}")
    if knots.size == 0:
        raise ValueError("array of sample points is empty")
    at, knots = at.astype(np.float64, copy=False), knots.astype(np.float64, copy=False)
    values = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64, copy=False)
    if period is not None:
        at, knots, values = _periodic(at, knots, values, abs(period))
        left = right = None
    if knots.size == 1:
        inner = values[0] + 0 * at
    else:
        cell = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, knots.size - 2)
        x0, x1, y0, y1 = knots[cell], knots[cell + 1], values[cell], values[cell + 1]
        slope = (y1 - y0) / (x1 - x0)
        # at the last knot from the other end, so that the value there is exact and the derivative the slope before it
        near, far = slope * (at - x0) + y0, slope * (at - x1) + y1
        inner = np.where(at == knots[-1], far, np.where(np.isnan(near), far, near))
        known = (at == x0) | (y0 == y1)  # where an infinite slope would hide it
        inner = np.where(np.isnan(inner) & known, y0, inner)
    low = values[0] if left is None else left
    high = values[-1] if right is None else right
    result = np.where(at < knots[0], low, np.where(at > knots[-1], high, inner))
    return np.where(np.isnan(at), at, result)


def _periodic(at: Any, knots: Any, values: Any, period: Any) -> tuple[Any, Any, Any]:
    if not isinstance(period, TracedValue) and period == 0:
        raise ValueError("period must be a non-zero value")
    at, knots = np.mod(at, period), np.mod(knots, period)
    order = np.argsort(knots)
    knots, values = knots[order], values[order]
    wide_knots = np.concatenate([knots[-1:] - period, knots, knots[:1] + period])
    return at, wide_knots, np.concatenate([values[-1:], values, values[:1]])


FUNCTIONS: dict[Any, Entry] = {
    np.where: Entry(where),
    np.select: Entry(select),
    np.piecewise: Entry(piecewise, False),
    np.choose: Entry(choose),
    np.clip: Entry(clip),
    np.nan_to_num: Entry(nan_to_num, False),
    np.round: Entry(round_),
    np.around: Entry(round_),
    np.fix: Entry(fix),
    np.sinc: Entry(sinc),
    np.angle: Entry(angle),
    np.i0: Entry(i0),
    np.unwrap: Entry(unwrap),
    np.interp: Entry(interp),
}
