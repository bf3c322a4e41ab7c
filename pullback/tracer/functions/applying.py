"""A user's function on each line, over several axes; index grids."""

from typing import Any

import numpy as np

from pullback.ir.types import BOOL
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, axis_number
from pullback.tracer.trace import active


def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`func1d` on each line in turn."""
    x = array(arr)
    number = axis_number(active(), axis, x.ndim)
    lines = np.moveaxis(x, number, -1)
    outer_shape = lines.shape[:-1]
    results = [array(func1d(lines[index], *args, **kwargs)) for index in np.ndindex(*outer_shape)]
    if not results:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    inner_ndim = results[0].ndim
    stacked = np.reshape(np.stack(results), outer_shape + results[0].shape)
    at = list(range(len(outer_shape), len(outer_shape) + inner_ndim))
    return np.moveaxis(stacked, at, range(number, number + inner_ndim)).copy()


def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    x = array(a)
    for axis in np.atleast_1d(np.asarray(axes)).tolist():
        number = axis_number(active(), axis, x.ndim)
        result = array(func(x, number))
        x = result if result.ndim == x.ndim else np.expand_dims(result, number)
        if x.ndim != array(a).ndim:
            raise ValueError("function is not returning an array of the correct shape")
    return x


def ix_(*args: Any) -> Any:
    ndim = len(args)
    made = []
    for k, sequence in enumerate(args):
        x = array(sequence)
        if x.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if x.dtype == BOOL:
            (x,) = np.nonzero(x)
        made.append(np.reshape(x, (1,) * k + (x.size,) + (1,) * (ndim - k - 1)))
    return tuple(made)


FUNCTIONS: dict[Any, Entry] = {
    np.apply_along_axis: Entry(apply_along_axis, False),
    np.apply_over_axes: Entry(apply_over_axes, False),
    np.ix_: Entry(ix_),
}
