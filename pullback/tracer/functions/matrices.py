"""What functions of matrices share: their arguments, and the ops of factorisations."""

from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.graph import Value
from pullback.ir.types import DType
from pullback.tracer.array import TracedValue, new_array
from pullback.tracer.functions.common import array, contents, finish
from pullback.tracer.trace import active, shape_of


def linalg_dtype(*arrays: TracedValue) -> DType:
    """float64 for integers; float32, float64 and their complex partners stay."""
    for x in arrays:
        if x.dtype == np.float16:
            raise active().error(TypeError, "array type float16 is unsupported in linalg")
    return np.result_type(*[np.float64 if x.dtype.kind in "biu" else x.dtype for x in arrays])


def matrices(name: str, a: Any, square: bool = True) -> TracedValue:
    """The argument as matrices of a dtype LAPACK has."""
    x = array(a)
    if x.ndim < 2:
        raise active().error(
            ShapeError, f"np.linalg.{name}: {x.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise active().error(
            ShapeError, f"np.linalg.{name}: Last 2 dimensions of the array must be square, got shape {x.shape}"
        )
    made: TracedValue = x.astype(linalg_dtype(x), copy=False)
    return made


def factor(name: str, x: TracedValue, **attrs: Any) -> list[Any]:
    """The results of a factorisation op; a matrix is factored once, however often that is asked for."""
    trace, (content,) = contents(x)
    key = (name, content, *attrs.items()) if isinstance(content, Value) else None
    results = None if key is None else trace.memo.get(key)
    if results is None:
        results = trace.apply_all(name, (content,), attrs)
        if key is not None:
            trace.memo[key] = results
    return [new_array(trace, r) if shape_of(r) else finish(r) for r in results]


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    turned = np.swapaxes(x, -1, -2)
    return np.conjugate(turned) if x.dtype.kind == "c" else turned
