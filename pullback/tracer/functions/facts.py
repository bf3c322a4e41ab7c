"""What is known of an array without looking at its elements."""

import math
from typing import Any

import numpy as np

from pullback.tracer.array import TracedScalar, TracedValue
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, axis_numbers
from pullback.tracer.steps import Part
from pullback.tracer.trace import active


def shape(a: Any) -> Any:
    return array(a).shape


def ndim(a: Any) -> int:
    return int(array(a).ndim)


def size(a: Any, axis: Any = None) -> int:
    x = array(a)
    if axis is None:
        return int(x.size)
    return math.prod(x.shape[k] for k in axis_numbers(active(), axis, x.ndim))


def isrealobj(x: Any) -> bool:
    return bool(array(x).dtype.kind != "c")


def iscomplexobj(x: Any) -> bool:
    return bool(array(x).dtype.kind == "c")


def result_type(*arrays_and_dtypes: Any) -> Any:
    return np.result_type(*[_example(x) for x in arrays_and_dtypes])


def _example(x: Any) -> Any:
    if isinstance(x, TracedScalar) and x.python is not None:
        return x.python(1)
    return x.dtype if isinstance(x, TracedValue) else x


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(_example(from_), to, casting)


def common_type(*arrays: Any) -> Any:
    return np.common_type(*[np.empty(0, array(a).dtype) for a in arrays])


def min_scalar_type(a: Any) -> Any:
    return array(a).dtype


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """By places: whether an element of the one is an element of the other."""
    x, y = array(a), array(b)
    if x._cell is not y._cell:
        return False
    source = np.arange(math.prod(x._cell.shape)).reshape(x._cell.shape)
    return bool(np.intersect1d(_shown(x, source), _shown(y, source)).size)


def _shown(x: TracedValue, places: Any) -> Any:
    trace = active()
    for step in x._steps:
        if not isinstance(step, Part):
            places = step.read(trace, places)
    return np.asarray(places)


FUNCTIONS: dict[Any, Entry] = {
    function: Entry(implementation, False)
    for function, implementation in {
        np.shape: shape,
        np.ndim: ndim,
        np.size: size,
        np.isrealobj: isrealobj,
        np.iscomplexobj: iscomplexobj,
        np.result_type: result_type,
        np.can_cast: can_cast,
        np.common_type: common_type,
        np.min_scalar_type: min_scalar_type,
        np.shares_memory: shares_memory,
        np.may_share_memory: shares_memory,
    }.items()
}
