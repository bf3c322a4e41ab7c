"""What the function modules share: arguments into contents, axes, results out."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import IndexRangeError, OutsideWriteError, UnsupportedError
from pullback.ir.graph import Value
from pullback.ir.types import BOOL, DTYPE_NAMES, I64, DType, Shape
from pullback.tracer.array import TracedArray, TracedValue, new_array, new_result
from pullback.tracer.convert import decide_array
from pullback.tracer.operands import as_array, broadcast, broadcast_shape, cast, content_of, holds_traced
from pullback.tracer.steps import reshape_content, transpose_content
from pullback.tracer.trace import Content, Trace, active, dtype_of, shape_of
from pullback.tracer.ufuncs import plain_out, store

NOVALUE: Any = np._NoValue  # NumPy's own mark of an argument that was not given


def given(x: Any) -> bool:
    return x is not NOVALUE and x is not None


def array(x: Any) -> Any:
    """Any array-like as a traced array or scalar."""
    return as_array(x)


def const(x: Any) -> Any:
    """A plain array that this package made, as a constant of the trace (a user's own would be a parameter)."""
    made = np.array(x)
    return new_array(active(), made)


def constant_array(made: Any) -> Any:
    """An array NumPy has just made, as a constant of the trace."""
    if not isinstance(made, np.ndarray) or made.dtype not in DTYPE_NAMES:
        return made
    order = tuple(reversed(range(made.ndim))) if made.ndim > 1 and not made.flags.c_contiguous else None
    return new_array(active(), made if made.base is None else np.array(made), order)


def contents(*xs: Any) -> tuple[Trace, list[Content]]:
    """The running trace and the contents of arguments in it."""
    trace = active()
    return trace, [content_of(trace, x) for x in xs]


def axis_number(trace: Trace, axis: Any, ndim: int) -> int:
    """One axis as 0..ndim-1."""
    number = operator.index(axis)
    if not -ndim <= number < ndim:
        raise trace.error(AxisError, f"axis {number} is out of bounds for array of dimension {ndim}")
    return number % ndim if ndim else 0


class AxisError(IndexRangeError, ValueError):
    """An axis that the array does not have; NumPy's is a ValueError and an IndexError too."""


def axis_numbers(trace: Trace, axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as increasing numbers; None is all of them."""
    if axis is None:
        return tuple(range(ndim))
    listed = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    numbers = [axis_number(trace, a, ndim) for a in listed]
    if len(set(numbers)) != len(numbers):
        raise trace.error(ValueError, "duplicate value in 'axis'")
    return tuple(sorted(numbers))


def finish(content: Content, out: Any = None, name: str = "", casting: str = "same_kind") -> Any:
    """A function's result: a new array (or scalar), or `out` written to."""
    trace = active()
    if not given(out):
        return new_result(trace, content)
    (target,) = out if isinstance(out, tuple) else (out,)
    if not isinstance(target, TracedArray):
        raise trace.error(OutsideWriteError, plain_out(name, target))
    store(trace, name, content, target, casting)
    return target


def is_fixed(x: Any) -> bool:
    """Whether the numbers of `x` are known while tracing."""
    return not (isinstance(x, TracedValue) and isinstance(x._cell.content, Value))


def static_array(trace: Trace, x: Any, what: str) -> Any:
    """`x` as a plain array, for arguments that shape the program (repeats, indices); traced integers are guarded."""
    if isinstance(x, np.ndarray) and not isinstance(x, TracedValue):
        trace.rest_on(x)
        return x
    if isinstance(x, TracedValue) or (isinstance(x, list | tuple) and holds_traced(x)):
        content = content_of(trace, x)
        if isinstance(content, Value) and content.type.dtype.kind not in "biu":
            raise trace.error(
                UnsupportedError, f"{what} decides shapes, so it must be constant or an integer, not traced numbers"
            )
        return decide_array(trace, content)
    return np.asarray(x)


# ------------------------------------------------------------------ small compositions on contents


def full(trace: Trace, like: Content, number: Any, dtype: DType | None = None) -> Value:
    return trace.full(dtype or dtype_of(like), shape_of(like), number)


def op(trace: Trace, name: str, *operands: Any, **attrs: Any) -> Content:
    """An op whose operands may be Python numbers, which take dtype and shape of the first content among them."""
    like = next(o for o in operands if isinstance(o, Value | np.ndarray))
    filled = [o if isinstance(o, Value | np.ndarray) else _number_for(trace, like, o) for o in operands]
    return trace.apply(name, *filled, **attrs)


def _number(like: Content, number: Any) -> Content:
    return np.broadcast_to(np.asarray(number, dtype_of(like)), shape_of(like))


def reduce(
    trace: Trace, name: str, content: Content, axes: Sequence[int], keepdims: bool = False, **attrs: Any
) -> Content:
    """A reduction op over `axes`, which stay with length 1 if `keepdims`."""
    axes = tuple(axes)
    shape = shape_of(content)
    result = trace.apply(name, content, axes=axes, **attrs) if axes else content
    if keepdims:
        result = reshape_content(trace, result, tuple([1 if k in axes else n for k, n in enumerate(shape)]))
    return result


def begun(trace: Trace, name: str, content: Content, axes: Sequence[int]) -> Content:
    """The operand of a sum or product. NumPy's begin with 0.0 and with 1, which shows where a single element is all
    there is to add or multiply: in -0.0, and in a complex infinity."""
    kind, shape = dtype_of(content).kind, shape_of(content)
    if any(shape[axis] != 1 for axis in axes):
        return content
    if name == "sum" and kind in "fc":
        return op(trace, "add", content, 0)
    return op(trace, "mul", content, 1) if name == "prod" and kind == "c" else content


def keep(trace: Trace, content: Content, shape: Shape, axes: Sequence[int]) -> Content:
    """A reduced content stretched back over the reduced `axes` of `shape`."""
    narrow = tuple([1 if k in axes else n for k, n in enumerate(shape)])
    return broadcast(trace, reshape_content(trace, content, narrow), shape)


def masked(trace: Trace, content: Content, where: Any, fallback: Any) -> Content:
    """`content` where the mask holds, `fallback` elsewhere; without a mask, itself."""
    if where is True or not given(where):
        return content
    pred = cast(trace, content_of(trace, where), BOOL)
    shape = broadcast_shape(trace, "where", [shape_of(pred), shape_of(content)])
    wide = broadcast(trace, pred, shape)
    return trace.apply("select", wide, broadcast(trace, content, shape), trace.full(dtype_of(content), shape, fallback))


def move_last(trace: Trace, content: Content, axis: int) -> Content:
    ndim = len(shape_of(content))
    return transpose_content(trace, content, (*[k for k in range(ndim) if k != axis], axis))


def move_back(trace: Trace, content: Content, axis: int) -> Content:
    """Undo `move_last`."""
    last = len(shape_of(content)) - 1
    return transpose_content(trace, content, (*range(axis), last, *range(axis, last)))


def iota(shape: Shape, axis: int, dtype: DType = I64) -> Any:
    """A constant that counts along `axis`."""
    line = np.arange(shape[axis]).astype(dtype)
    return np.broadcast_to(line.reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape)


def slice_axis(trace: Trace, content: Content, axis: int, start: int, stop: int, step: int = 1) -> Content:
    """Elements start..stop of one axis."""
    shape = shape_of(content)
    if start == 0 and stop >= shape[axis] and step == 1:
        return content
    spots = [(0, n, 1) for n in shape]
    spots[axis] = (start, max(min(stop, shape[axis]), start), step)
    lists = [tuple([s[k] for s in spots]) for k in range(3)]
    return trace.apply("slice", content, start=lists[0], stop=lists[1], step=lists[2])


def concat(trace: Trace, parts: Sequence[Content], axis: int) -> Content:
    if len(parts) == 1:
        return parts[0]
    return trace.apply_all("concatenate", list(parts), {"axis": axis})[0]


def safe_sqrt(trace: Trace, content: Content) -> Content:
    """The square root of a sum of squares, with gradient 0 at 0: the root is taken where there is one to take."""
    zero = op(trace, "equal", content, 0)
    inner = trace.apply("select", zero, _number_for(trace, content, 1), content)
    return trace.apply("select", zero, content, trace.apply("sqrt", inner))


def _number_for(trace: Trace, like: Content, number: Any) -> Content:
    return trace.full(dtype_of(like), shape_of(like), number) if isinstance(like, Value) else _number(like, number)


def size_over(shape: Shape, axes: Sequence[int]) -> int:
    return math.prod([shape[a] for a in axes])


def axis_slice(axis: int, *bounds: Any) -> tuple[Any, ...]:
    """A subscript that slices one axis."""
    return (*(slice(None),) * axis, slice(*bounds))


def available(name: str, entry: Any) -> dict[Any, Any]:
    """A row of a table for a function that only newer NumPys have."""
    function = getattr(np, name, None)
    return {} if function is None else {function: entry}
