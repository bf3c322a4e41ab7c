"""Differences, finite-difference gradients, integrals, convolutions, padding, evaluation of polynomials."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError, UnsupportedError
from pullback.tracer.dispatch import Entry, Refused
from pullback.tracer.functions.common import NOVALUE, array, axis_number, const, contents, finish
from pullback.tracer.trace import active


def _axis_slice(axis: int, *bounds: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, slice(*bounds))


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
        x = subtract(x[_axis_slice(number, 1, None)], x[_axis_slice(number, None, -1)])
    return x


def _end(value: Any, x: Any, axis: int) -> Any:
    made = array(value)
    return np.broadcast_to(made, (*x.shape[:axis], 1, *x.shape[axis + 1 :])) if made.ndim == 0 else made


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = np.ravel(array(ary))
    parts = [x[1:] - x[:-1]]
    if to_begin is not None:
        parts.insert(0, np.ravel(array(to_begin)).astype(x.dtype))
    if to_end is not None:
        parts.append(np.ravel(array(to_end)).astype(x.dtype))
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
    x = x if x.dtype.kind in "fc" else x.astype(np.float64)
    results = [_derivative(x, k, h, edge_order) for k, h in zip(axes, _spacings(varargs, x, axes), strict=True)]
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
        active().fail(
            ShapeError, "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
            "required.",
        )
    take = [x[_axis_slice(axis, k, k + 1)] for k in (0, 1, min(2, n - 1))]
    last = [x[_axis_slice(axis, n - k, n - k + 1)] for k in (1, 2, min(3, n))]
    before, after = x[_axis_slice(axis, None, -2)], x[_axis_slice(axis, 2, None)]
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
    inner = (
        a * x[_axis_slice(axis, None, -2)] + b * x[_axis_slice(axis, 1, -1)] + c * x[_axis_slice(axis, 2, None)]
    )
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
        d2 / (d1 * (d1 + d2)) * last[2]
        - (d2 + d1) / (d1 * d2) * last[1]
        + (2.0 * d2 + d1) / (d2 * (d1 + d2)) * last[0]
    )
    return inner, [low], [high]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values = array(y)
    number = axis_number(active(), axis, values.ndim)
    steps: Any = dx
    if x is not None:
        steps = diff(array(x), axis=number if np.ndim(x) > 1 else -1)
        if np.ndim(steps) == 1:
            steps = np.reshape(steps, tuple([-1 if k == number else 1 for k in range(values.ndim)]))
    pairs = values[_axis_slice(number, 1, None)] + values[_axis_slice(number, None, -1)]
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
    if m <= FEW_TAPS:
        total: Any = None
        for k in range(m):
            term = padded[k : k + count] * v[k]
            total = term if total is None else total + term
        return total
    windows = padded[const(np.arange(count)[:, None] + np.arange(m))]
    return np.matmul(windows, v)


FEW_TAPS = 64
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


# ------------------------------------------------------------------ padding


def pad(array_: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    x = array(array_)
    widths = _pairs(pad_width, x.ndim, int)
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        return _pad_by_function(x, widths, mode, kwargs)
    if mode == "constant":
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    if mode == "empty":
        return _pad_constant(x, widths, 0)
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        return _pad_by_index(x, widths, mode, kwargs.get("reflect_type", "even"))
    if mode == "linear_ramp":
        return _pad_ramp(x, widths, _pairs(kwargs.get("end_values", 0), x.ndim, None))
    if mode in STATISTICS:
        return _pad_statistic(x, widths, mode, kwargs.get("stat_length"))
    raise ValueError(f"mode {mode!r} is not supported")


def _pairs(value: Any, ndim: int, convert: Any) -> list[tuple[Any, Any]]:
    """One (before, after) pair an axis, from any of the forms NumPy takes."""
    if isinstance(value, dict):
        found: list[tuple[Any, Any]] = [(0, 0)] * ndim
        for axis, width in value.items():
            found[axis] = width if isinstance(width, tuple) else (width, width)
        return found
    listed = value.tolist() if isinstance(value, np.ndarray) and convert is int else value
    if not isinstance(listed, tuple | list):
        rows = [(listed, listed)] * ndim
    elif not isinstance(listed[0], tuple | list):
        rows = [(listed[0], listed[-1])] * ndim
    elif len(listed) == 1:
        rows = [(listed[0][0], listed[0][-1])] * ndim
    else:
        rows = [(row[0], row[-1]) for row in listed]
    if len(rows) != ndim:
        raise ValueError(f"operands could not be broadcast together with remapped shapes: {len(rows)} widths for {ndim} axes")
    return [(operator.index(a), operator.index(b)) for a, b in rows] if convert is int else rows


def _pad_constant(x: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    fills = _pairs(values, x.ndim, None)
    if all(type(f) in (int, float) and f == 0 for pair in fills for f in pair):
        trace, (content,) = contents(x)
        low, high = tuple([w[0] for w in widths]), tuple([w[1] for w in widths])
        return finish(trace.apply("pad", content, low=low, high=high, interior=(0,) * x.ndim)) if x.ndim else x
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, fills, strict=True)):
        parts = [_block(x, axis, before, first), x, _block(x, axis, after, last)]
        x = np.concatenate([p for p in parts if p is not None], axis=axis)
    return x


def _block(x: Any, axis: int, width: int, value: Any) -> Any:
    """`width` layers of one value."""
    if width == 0:
        return None
    shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
    return np.broadcast_to(array(value).astype(x.dtype), shape)


def _pad_by_index(x: Any, widths: list[tuple[int, int]], mode: str, reflect_type: str) -> Any:
    """Modes that copy elements: which ones is what NumPy's own pad makes of their numbers."""
    if reflect_type == "odd" and mode in ("reflect", "symmetric"):
        return _pad_odd(x, widths, mode)
    for axis, width in enumerate(widths):
        if width != (0, 0):
            x = np.take(x, const(np.pad(np.arange(x.shape[axis]), width, mode=mode)), axis=axis)  # type: ignore[call-overload]
    return x


def _pad_odd(x: Any, widths: list[tuple[int, int]], mode: str) -> Any:
    """Mirrored through the edge value: twice the edge minus the mirror image, round after round."""
    for axis, width in enumerate(widths):
        n = x.shape[axis]
        if width == (0, 0):
            continue
        rows = np.pad(np.eye(n), (width, (0, 0)), mode=mode, reflect_type="odd")  # type: ignore[call-overload]
        moved = np.tensordot(const(rows.astype(x.dtype)), x, axes=(1, axis))
        x = np.moveaxis(moved, 0, axis)
    return x


def _pad_ramp(x: Any, widths: list[tuple[int, int]], ends: list[tuple[Any, Any]]) -> Any:
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, ends, strict=True)):
        parts = [x]
        if before:
            edge = np.squeeze(x[_axis_slice(axis, 0, 1)], axis=axis)
            parts.insert(0, np.linspace(array(first), edge, before, endpoint=False, axis=axis).astype(x.dtype))
        if after:
            edge = np.squeeze(x[_axis_slice(axis, -1, None)], axis=axis)
            ramp = np.linspace(array(last), edge, after, endpoint=False, axis=axis).astype(x.dtype)
            parts.append(np.flip(ramp, axis))
        x = np.concatenate(parts, axis=axis)
    return x


STATISTICS = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}


def _pad_statistic(x: Any, widths: list[tuple[int, int]], mode: str, stat_length: Any) -> Any:
    lengths = _pairs(stat_length, x.ndim, None)
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, lengths, strict=True)):
        n = x.shape[axis]
        parts = [x]
        if before:
            parts.insert(0, _statistic(x[_axis_slice(axis, 0, min(n, first or n))], axis, before, mode, x.dtype))
        if after:
            parts.append(_statistic(x[_axis_slice(axis, n - min(n, last or n), n)], axis, after, mode, x.dtype))
        x = np.concatenate(parts, axis=axis)
    return x


def _statistic(part: Any, axis: int, width: int, mode: str, dtype: Any) -> Any:
    value = STATISTICS[mode](part, axis=axis, keepdims=True)
    if dtype.kind in "iu" and mode in ("mean", "median"):
        value = np.rint(value)
    shape = (*part.shape[:axis], width, *part.shape[axis + 1 :])
    return np.broadcast_to(value.astype(dtype), shape)


def _pad_by_function(x: Any, widths: list[tuple[int, int]], function: Any, kwargs: dict[str, Any]) -> Any:
    """The user's function changes each padded line in place."""
    padded = _pad_constant(x, widths, 0).copy()
    for axis in range(padded.ndim):
        lines = np.moveaxis(padded, axis, -1)
        for index in np.ndindex(lines.shape[:-1]):
            function(lines[index], widths[axis], axis, kwargs)
    return padded


# ------------------------------------------------------------------ polynomials by coefficients


def polyval(p: Any, x: Any) -> Any:
    """Horner's rule, the highest power first."""
    coefficients, at = array(p), array(x)
    total: Any = np.zeros_like(at)
    for k in range(coefficients.shape[0]):
        total = total * at + coefficients[k]
    return total


def polyder(p: Any, m: int = 1) -> Any:
    x = array(p)
    for _ in range(operator.index(m)):
        n = x.size - 1
        x = x[:-1] * const(np.arange(n, 0, -1))
    return x


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    x = array(p)
    order = operator.index(m)
    given = [0.0] * order if k is None else (list(array(k)) if np.ndim(k) else [k] * order)
    for constant in given[:order]:
        scaled = x / const(np.arange(x.size, 0, -1))
        x = np.concatenate([scaled, np.reshape(array(constant), (1,)).astype(scaled.dtype)])
    return x


def _aligned(a1: Any, a2: Any) -> tuple[Any, Any]:
    """Both coefficient vectors with zeros in front to the longer length."""
    x, y = np.atleast_1d(array(a1)), np.atleast_1d(array(a2))
    n = max(x.size, y.size)
    return pad(x, (n - x.size, 0)), pad(y, (n - y.size, 0))


def polyadd(a1: Any, a2: Any) -> Any:
    x, y = _aligned(a1, a2)
    return x + y


def polysub(a1: Any, a2: Any) -> Any:
    x, y = _aligned(a1, a2)
    return x - y


def polymul(a1: Any, a2: Any) -> Any:
    return convolve(np.atleast_1d(array(a1)), np.atleast_1d(array(a2)))


def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with these roots."""
    roots = np.atleast_1d(array(seq_of_zeros))
    if roots.ndim != 1:
        active().fail(UnsupportedError, "np.poly of a matrix needs its eigenvalues; pass np.linalg.eigvals(a)")
    result: Any = const(np.ones(1))
    for k in range(roots.size):
        result = convolve(result, np.stack([const(np.ones((), roots.dtype)), -roots[k]]))
    return result




FUNCTIONS: dict[Any, Entry | Refused] = {
    np.diff: Entry(diff),
    np.ediff1d: Entry(ediff1d),
    np.gradient: Entry(gradient),
    np.trapezoid: Entry(trapezoid),
    np.convolve: Entry(convolve),
    np.correlate: Entry(correlate),
    np.pad: Entry(pad),
    np.polyval: Entry(polyval),
    np.polyder: Entry(polyder),
    np.polyint: Entry(polyint),
    np.polyadd: Entry(polyadd),
    np.polysub: Entry(polysub),
    np.polymul: Entry(polymul),
    np.poly: Entry(poly),
}
