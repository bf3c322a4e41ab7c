"""Differences, finite-difference gradients, integrals, convolutions."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import NOVALUE, array, available, axis_number, axis_slice
from pullback.tracer.functions.padding import pad
from pullback.tracer.trace import active


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOVALUE, append: Any = NOVALUE) -> Any:
    order = operator.index(n)
    if order == 0:
        return a
    if order < 0:
        raise ValueError(f"order must be non-negative but got {order}")
    x = array(a)
    if x.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    number = axis_number(active(), axis, x.ndim)
    parts = [_end(prepend, x, number)] if prepend is not NOVALUE else []
    parts += [x] + ([_end(append, x, number)] if append is not NOVALUE else [])
    x = np.concatenate(parts, axis=number) if len(parts) > 1 else x
    subtract = np.not_equal if x.dtype.kind == "b" else np.subtract
    for _ in range(order):
        x = subtract(x[axis_slice(number, 1, None)], x[axis_slice(number, None, -1)])
    return x


def _end(value: Any, x: Any, axis: int) -> Any:
    made = array(value)
    return np.broadcast_to(made, (*x.shape[:axis], 1, *x.shape[axis + 1 :])) if made.ndim == 0 else made


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = np.ravel(array(ary))
    parts = [x[1:] - x[:-1]]
    for name, ends, place in (("to_begin", to_begin, 0), ("to_end", to_end, 2)):
        if ends is None:
            continue
        extra = np.ravel(array(ends))
        if not np.can_cast(extra.dtype, x.dtype, "same_kind"):
            raise active().error(
                TypeError, f"np.ediff1d: {name} is {extra.dtype}, which is not cast to {x.dtype} by the rule same_kind"
            )
        parts.insert(place, extra.astype(x.dtype))
    return np.concatenate(parts)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Second-order central differences; one-sided at the ends, of `edge_order`."""
    x = array(f)
    trace = active()
    if axis is None or isinstance(axis, tuple):
        axes = tuple(range(x.ndim)) if axis is None else tuple([axis_number(trace, k, x.ndim) for k in axis])
    else:
        axes = (axis_number(trace, axis, x.ndim),)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    x = x.astype(np.float64) if x.dtype.kind in "iu" else x
    spacings = _spacings([array(v) for v in varargs], x, axes)
    results = [_derivative(x, k, h, edge_order) for k, h in zip(axes, spacings, strict=True)]
    if len(results) == 1:
        return results[0]
    return tuple(results)


def _spacings(varargs: Sequence[Any], x: Any, axes: Sequence[int]) -> list[Any]:
    """For each axis a number, or the differences of its coordinates."""
    if len(varargs) == 0:
        return [1.0] * len(axes)
    if len(varargs) == 1 and np.ndim(varargs[0]) == 0:
        return [varargs[0]] * len(axes)
    if len(varargs) != len(axes):
        raise TypeError("invalid number of arguments")
    spacings = []
    for given, k in zip(varargs, axes, strict=True):
        if np.ndim(given) == 0:
            spacings.append(given)
            continue
        if np.ndim(given) != 1:
            raise ValueError("distances must be either scalars or 1d")
        if np.shape(given)[0] != x.shape[k]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        steps = diff(array(given))
        spacings.append(steps if steps.dtype.kind in "fc" else steps.astype(np.float64))
    return spacings


def _derivative(x: Any, axis: int, h: Any, edge_order: int) -> Any:
    n = x.shape[axis]
    if n < edge_order + 1:
        raise active().error(
            ShapeError,
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
            "required.",
        )
    take = [x[axis_slice(axis, k, k + 1)] for k in (0, 1, min(2, n - 1))]
    last = [x[axis_slice(axis, n - k, n - k + 1)] for k in (1, 2, min(3, n))]
    before, after = x[axis_slice(axis, None, -2)], x[axis_slice(axis, 2, None)]
    if np.ndim(h) == 0:
        inner = (after - before) / (2.0 * h)
        low, high = [(take[1] - take[0]) / h], [(last[0] - last[1]) / h]
        if edge_order == 2:
            low = [(-1.5 / h) * take[0] + (2.0 / h) * take[1] + (-0.5 / h) * take[2]]
            high = [(0.5 / h) * last[2] + (-2.0 / h) * last[1] + (1.5 / h) * last[0]]
    else:
        inner, low, high = _uneven(x, axis, h, edge_order, take, last)
    return np.concatenate([*low, inner, *high], axis=axis)


def _uneven(
    x: Any, axis: int, h: Any, edge_order: int, take: list[Any], last: list[Any]
) -> tuple[Any, list[Any], list[Any]]:
    shape = tuple([-1 if k == axis else 1 for k in range(x.ndim)])
    h1, h2 = np.reshape(h[:-1], shape), np.reshape(h[1:], shape)
    a, b, c = -h2 / (h1 * (h1 + h2)), (h2 - h1) / (h1 * h2), h1 / (h2 * (h1 + h2))
    inner = a * x[axis_slice(axis, None, -2)] + b * x[axis_slice(axis, 1, -1)] + c * x[axis_slice(axis, 2, None)]
    if edge_order == 1:
        return inner, [(take[1] - take[0]) / h[0]], [(last[0] - last[1]) / h[-1]]
    d1, d2 = h[0], h[1]
    low = (
        -(2.0 * d1 + d2) / (d1 * (d1 + d2)) * take[0]
        + (d1 + d2) / (d1 * d2) * take[1]
        - d1 / (d2 * (d1 + d2)) * take[2]
    )
    d1, d2 = h[-2], h[-1]
    high = (
        d2 / (d1 * (d1 + d2)) * last[2] - (d2 + d1) / (d1 * d2) * last[1] + (2.0 * d2 + d1) / (d2 * (d1 + d2)) * last[0]
    )
    return inner, [low], [high]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values = array(y)
    number = axis_number(active(), axis, values.ndim)
    steps: Any = dx
    if x is not None:
        places = array(x)
        steps = diff(places, axis=number if places.ndim > 1 else -1)
        if steps.ndim == 1:
            steps = np.reshape(steps, tuple([-1 if k == number else 1 for k in range(values.ndim)]))
    pairs = values[axis_slice(number, 1, None)] + values[axis_slice(number, None, -1)]
    return np.sum(steps * pairs / 2.0, axis=number)


# ------------------------------------------------------------------ convolution


def _correlated(a: Any, v: Any, mode: str) -> Any:
    """out[k] = sum over n of a[n + k] * v[n]: the windows of the longer one against the shorter one."""
    n, m = a.size, v.size
    if n == 0 or m == 0:
        raise ValueError("a cannot be empty" if n == 0 else "v cannot be empty")
    left = {"valid": 0, "same": m // 2, "full": m - 1}[mode]
    right = {"valid": 0, "same": m - 1 - m // 2, "full": m - 1}[mode]
    padded = pad(a, (left, right)) if left or right else a
    count = padded.size - m + 1
    total: Any = None
    for start in range(0, m, TAPS):
        part: Any = None
        for k in range(start, min(start + TAPS, m)):
            term = padded[k : k + count] * v[k]
            part = term if part is None else part + term
        total = part if total is None else total + part
    return total


TAPS = 8
"""So many shifted copies are added in one pass over the result; many passes are rolled into a loop."""
MODES = {0: "valid", 1: "same", 2: "full"}


def _mode(mode: Any) -> str:
    name = MODES.get(mode, mode) if isinstance(mode, int) else mode
    for known in MODES.values():
        if name == known or (isinstance(name, str) and name and known.startswith(name)):
            return known
    raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")


def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    x, y = _vectors(a, v)
    if y.size > x.size:
        x, y = y, x
    return _correlated(x, y[::-1], _mode(mode))


def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    if np.ndim(a) == 0 or np.ndim(v) == 0:
        raise active().error(ValueError, "np.correlate: object of too small depth for desired array")
    x, y = _vectors(a, v)
    y = np.conjugate(y) if y.dtype.kind == "c" else y
    if y.size <= x.size:
        return _correlated(x, y, _mode(mode))
    kind = _mode(mode)
    turned = _correlated(y, x, "full" if kind == "full" else kind)
    return turned[::-1]


def _vectors(a: Any, v: Any) -> tuple[Any, Any]:
    x, y = np.atleast_1d(array(a)), np.atleast_1d(array(v))
    if x.ndim > 1 or y.ndim > 1:
        raise ValueError(f"object too deep for desired array: shapes {x.shape} and {y.shape}")
    dtype = np.result_type(x.dtype, y.dtype)
    return x.astype(dtype, copy=False), y.astype(dtype, copy=False)


FUNCTIONS: dict[Any, Entry] = {
    np.diff: Entry(diff),
    np.ediff1d: Entry(ediff1d),
    np.gradient: Entry(gradient),
    np.trapezoid: Entry(trapezoid),
    **available("trapz", Entry(trapezoid)),
    np.convolve: Entry(convolve),
    np.correlate: Entry(correlate),
}
