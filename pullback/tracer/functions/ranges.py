"""Evenly spaced numbers."""

import operator
from typing import Any

import numpy as np

from pullback.tracer.array import TracedValue, new_array
from pullback.tracer.dispatch import Entry
from pullback.tracer.dtypes import common_dtype
from pullback.tracer.functions.common import array, const, constant_array
from pullback.tracer.operands import operand
from pullback.tracer.trace import active


def arange(*args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any) -> Any:
    """`np.arange`; traced bounds decide the length, so the length is a guarded decision."""
    start, stop, step, dtype = _range_bounds(args, named, dtype)
    if not any(isinstance(v, TracedValue) for v in (start, stop, step)):
        return constant_array(np.arange(*(start, stop, step), dtype=dtype))
    length = max(int(np.ceil((stop - start) / step)), 0)
    values = start + const(np.arange(length)) * step
    return array(values) if dtype is None else array(values).astype(dtype)


def _range_bounds(args: tuple[Any, ...], named: dict[str, Any], dtype: Any) -> tuple[Any, Any, Any, Any]:
    listed = list(args)
    if len(listed) == 4:
        dtype = listed.pop()
    start, stop, step = named.get("start", 0), named.get("stop"), named.get("step", 1)
    if len(listed) == 1 and stop is None:
        stop = listed[0]
    elif len(listed) == 1:
        start = listed[0]
    elif len(listed) >= 2:
        start, stop = listed[0], listed[1]
        step = listed[2] if len(listed) == 3 else step
    if stop is None:
        start, stop = 0, start
    return start, stop, 1 if step is None else step, dtype


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced numbers, by NumPy's own formula."""
    count = operator.index(num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    trace = active()
    kind = common_dtype((operand(trace, start).key, operand(trace, stop).key, float))
    lo, hi = array(start).astype(kind, copy=False), array(stop).astype(kind, copy=False)
    delta = hi - lo
    parts = count - 1 if endpoint else count
    grid: Any = np.arange(count, dtype=np.float64).reshape((-1,) + (1,) * np.ndim(delta))
    ramp = new_array(trace, grid.astype(kind))
    step = delta / parts if parts > 0 else delta * np.nan
    values = ramp * step + lo if parts > 0 else ramp * delta + lo
    if endpoint and count > 1:
        values[-1] = hi
    if axis != 0:
        values = np.moveaxis(values, 0, axis)
    if dtype is not None:
        wanted = np.dtype(dtype)
        values = (np.floor(values) if wanted.kind in "iu" else values).astype(wanted)
    return (values, step) if retstep else values


def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    powers = np.power(array(base) * 1.0, exponents)
    return powers if dtype is None else powers.astype(dtype)


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Between positive numbers, or between negative ones."""
    lo, hi = array(start) * 1.0, array(stop) * 1.0
    sign = np.sign(lo)
    values = sign * 10.0 ** linspace(np.log10(sign * lo), np.log10(sign * hi), num, endpoint, axis=axis)
    return values if dtype is None else values.astype(dtype)


FUNCTIONS: dict[Any, Entry] = {
    np.linspace: Entry(linspace),
    np.logspace: Entry(logspace),
    np.geomspace: Entry(geomspace),
}
