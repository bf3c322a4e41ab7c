"""`np.pad`, all modes."""

import operator
from typing import Any

import numpy as np

from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, axis_slice, const, contents, finish
from pullback.tracer.trace import active


def pad(array_: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    x = array(array_)
    widths = _pairs(pad_width, x.ndim, int)
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    if not any(w for pair in widths for w in pair):
        return np.copy(x)
    empty = [k for k, (n, pair) in enumerate(zip(x.shape, widths, strict=True)) if n == 0 and any(pair)]
    if empty and not callable(mode) and mode not in ("constant", "empty"):
        raise active().error(
            ValueError, f"can't extend empty axis {empty[0]} using modes other than 'constant' or 'empty'"
        )
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
        raise ValueError(
            f"operands could not be broadcast together with remapped shapes: {len(rows)} widths for {ndim} axes"
        )
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
    for axis, (before, after) in enumerate(widths):
        if x.shape[axis] == 1 and mode == "reflect":  # nothing to mirror
            x = _pad_by_index(x, [(before, after) if k == axis else (0, 0) for k in range(x.ndim)], "edge", "even")
            continue
        inner = 0 if mode == "symmetric" else 1
        period = x.shape[axis] - inner
        while before or after:
            most = (x.shape[axis] - inner) // period * period
            left, right = min(most, before), min(most, after)
            parts = [_mirrored(x, axis, 0, inner, left), x]
            x = np.concatenate([*parts, _mirrored(np.flip(x, axis), axis, 0, inner, right, turned=True)], axis=axis)
            before, after = before - left, after - right
    return x


def _mirrored(x: Any, axis: int, edge: int, inner: int, count: int, turned: bool = False) -> Any:
    """`count` layers beside the first one, mirrored in it; `turned` for those behind the last one."""
    layers = x[axis_slice(axis, inner, inner + count)]
    image = (2 * x[axis_slice(axis, edge, edge + 1)] - layers).astype(x.dtype, copy=False)
    return image if turned else np.flip(image, axis)


def _pad_ramp(x: Any, widths: list[tuple[int, int]], ends: list[tuple[Any, Any]]) -> Any:
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, ends, strict=True)):
        parts = [x]
        if before:
            edge = np.squeeze(x[axis_slice(axis, 0, 1)], axis=axis)
            parts.insert(0, np.linspace(array(first), edge, before, endpoint=False, dtype=x.dtype, axis=axis))
        if after:
            edge = np.squeeze(x[axis_slice(axis, -1, None)], axis=axis)
            ramp = np.linspace(array(last), edge, after, endpoint=False, dtype=x.dtype, axis=axis)
            parts.append(np.flip(ramp, axis))
        x = np.concatenate(parts, axis=axis)
    return x


STATISTICS: dict[str, Any] = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}


def _pad_statistic(x: Any, widths: list[tuple[int, int]], mode: str, stat_length: Any) -> Any:
    lengths = _pairs(stat_length, x.ndim, None)
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, lengths, strict=True)):
        n = x.shape[axis]
        parts = [x]
        if before:
            parts.insert(0, _statistic(x[axis_slice(axis, 0, min(n, first or n))], axis, before, mode, x.dtype))
        if after:
            parts.append(_statistic(x[axis_slice(axis, n - min(n, last or n), n)], axis, after, mode, x.dtype))
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


FUNCTIONS: dict[Any, Entry] = {
    np.pad: Entry(pad),
}
