"""From whatever a user passes to a NumPy function to contents the tracer can work with."""

from collections.abc import Sequence
from contextvars import Context
from typing import Any, NamedTuple

import numpy as np
from numpy import asarray as plain_array  # while a trace runs, np.asarray is a wrapper

from pullback.errors import ArgumentError, ShapeError, UnsupportedError
from pullback.ir.graph import Value
from pullback.ir.types import BOOL, DTYPE_NAMES, DType, Shape
from pullback.tracer.array import TracedArray, TracedScalar, TracedValue, new_array, new_scalar
from pullback.tracer.cell import content_in
from pullback.tracer.dtypes import Key, default_dtype
from pullback.tracer.trace import Array, Content, Trace, active, dtype_of, shape_of

PYTHON_NUMBERS = (bool, int, float, complex)


class Operand(NamedTuple):
    """One operand of an elementwise call.

    key : how it takes part in promotion
    number : the Python number it is, if it is one
    source : the traced value it is, if it is one (its memory order counts)
    """

    content: Content
    key: Key
    number: bool | int | float | complex | None = None
    source: TracedValue | None = None


def operand(trace: Trace, x: Any) -> Operand:
    """What `x` is in an elementwise call."""
    kind = type(x)  # first of all: `isinstance` has to ask a traced value what it passes for
    if kind is TracedArray:
        return Operand(content_in(trace, x), x._dtype, None, x)
    if kind is TracedScalar:
        python = x.python
        return Operand(content_in(trace, x), x._dtype if python is None or python is bool else python, None, x)
    if kind is float or kind is int or kind is complex:
        return Operand(_python_array(trace, x), kind, x)
    if kind is bool:
        return Operand(plain_array(x), BOOL, x)
    content = content_of(trace, x)
    return Operand(content, dtype_of(content))


def _python_array(trace: Trace, x: Any) -> Array:
    array = plain_array(x)
    if array.dtype.kind not in "iufc":
        raise trace.error(OverflowError, f"the Python integer {x} is too large for any NumPy integer")
    return array


def content_of(trace: Trace, x: Any) -> Content:
    """The content of anything array-like: traced values as they are, numbers and lists as constants, NumPy arrays from
    outside the function as parameters that are read anew at each call."""
    if isinstance(x, TracedValue):
        return content_in(trace, x)
    if isinstance(x, np.ndarray):
        return _outer_content(trace, x)
    if isinstance(x, np.generic | bool | int | float | complex):
        if trace.reachable and isinstance(x, np.generic):
            trace.watch = True  # it may be an element of an array from outside
        return check_array(trace, plain_array(x))
    if isinstance(x, list | tuple | range):
        return content_in(trace, as_array(x))
    return _foreign_content(trace, x)


def _outer_content(trace: Trace, x: Array) -> Content:
    checked = check_array(trace, x)
    if x.size == 0:
        return np.array(checked)
    if checked is not x:
        trace.watch = True
    return trace.capture_array(checked)


def check_array(trace: Trace, x: Array) -> Array:
    """`x`, in native byte order, when it is a plain array of a dtype pullback works with."""
    dtype = x.dtype
    if dtype in DTYPE_NAMES and type(x) is np.ndarray:
        return x
    if isinstance(x, np.ma.MaskedArray | np.matrix):
        raise trace.error(
            UnsupportedError,
            f"{type(x).__name__} is not followed; use a plain array (np.asarray(x)) and np.where or a boolean mask",
        )
    if dtype not in DTYPE_NAMES and dtype.newbyteorder("=") in DTYPE_NAMES:
        return plain_array(x, dtype.newbyteorder("="))
    if dtype not in DTYPE_NAMES:
        raise trace.error(ArgumentError, untraceable(dtype))
    return plain_array(x)


def _foreign_content(trace: Trace, x: Any) -> Content:
    """An object of another library that can give a plain array."""
    if hasattr(x, "__traced_array__"):  # an iterator over a traced array, or elements chosen by a traced mask
        return content_in(trace, x.__traced_array__())
    if x is None or not hasattr(x, "__array__"):
        raise trace.error(ArgumentError, f"expected an array or a number, got {type(x).__name__}")
    trace.watch = True
    return _outer_content(trace, plain_of(x))


def plain_of(x: Any) -> Array:
    """The plain array that an object of another library gives, in a context without a trace: its arrays are its own."""
    made: Array = Context().run(plain_array, x)
    return made


# ------------------------------------------------------------------ arrays from anything


def as_array(x: Any, dtype: Any = None) -> TracedArray | TracedScalar:
    """`x` as a traced array (or scalar): itself when it is one, else what `content_of` makes of it; nested lists with
    traced parts are stacked."""
    if isinstance(x, TracedValue):
        result: Any = x
    elif hasattr(x, "__traced_array__"):
        result = x.__traced_array__()
    else:
        trace = active()
        if isinstance(x, list | tuple) and holds_traced(x):
            result = new_array(trace, stack_contents(trace, x))
        elif isinstance(x, list | tuple | range):
            result = new_array(trace, check_array(trace, _plain_list(trace, x)))
        else:
            content = content_of(trace, x)
            python = type(x) if type(x) in PYTHON_NUMBERS else None
            if isinstance(x, np.ndarray):
                result = new_array(trace, content, lent=True)
                result._cell.readonly = True
            elif shape_of(content) == ():
                result = new_scalar(trace, content, python)
            else:
                result = new_array(trace, content, lent=True)
    if dtype is not None:
        result = result.astype(dtype, copy=False)
    made: TracedArray | TracedScalar = result
    return made


def _plain_list(trace: Trace, x: Any) -> Array:
    """A nested list of numbers and plain arrays; arrays in it may change between calls, so they are watched."""
    if holds(x, np.ndarray):
        trace.watch = True
    return plain_array(x)


def holds(x: Any, kind: type | tuple[type, ...]) -> bool:
    """Whether nested lists and tuples hold an object of `kind`."""
    pending = [x]
    while pending:
        top = pending.pop()
        if isinstance(top, kind):
            return True
        if isinstance(top, list | tuple):
            pending.extend(top)
    return False


def holds_traced(x: Any) -> bool:
    return holds(x, TracedValue)


def stack_contents(trace: Trace, x: Any, dtype: DType | None = None) -> Content:
    """Nested lists and tuples with traced numbers or arrays in them, as one content of their common dtype."""
    leaves, shape = _leaves(trace, x)
    operands = [operand(trace, leaf) for leaf in leaves]
    wanted = dtype or _list_dtype([o.key for o in operands])
    contents = [cast(trace, o.content, wanted) for o in operands]
    inner = shape_of(contents[0])
    for content in contents:
        if shape_of(content) != inner:
            raise trace.error(
                ValueError,
                f"setting an array element with a sequence: the parts have shapes {inner} and {shape_of(content)}",
            )
    if not any(isinstance(c, Value) for c in contents):
        return np.stack([plain_array(c) for c in contents]).reshape(shape + inner)
    rows = [trace.apply("reshape", c, shape=(1, *inner)) for c in contents]
    joined = rows[0] if len(rows) == 1 else trace.apply_all("concatenate", rows, {"axis": 0})[0]
    return joined if shape == (len(rows),) else trace.apply("reshape", joined, shape=shape + inner)


def _list_dtype(keys: Sequence[Key]) -> DType:
    """`np.array` of a list takes Python numbers at their default dtype."""
    return np.result_type(*[k if isinstance(k, np.dtype) else default_dtype(k) for k in keys])


def _leaves(trace: Trace, x: Any) -> tuple[list[Any], Shape]:
    """The leaves of evenly nested lists in order, and the nesting's shape. An array beside a list counts as a list."""
    level: list[Any] = [x]
    shape: Shape = ()
    while any(isinstance(part, list | tuple) for part in level):
        lengths = {len(part) if isinstance(part, list | tuple) or np.ndim(part) else -1 for part in level}
        if len(lengths) != 1:
            raise trace.error(
                ValueError, "setting an array element with a sequence: the nested lists have uneven lengths"
            )
        shape = (*shape, lengths.pop())
        level = [leaf for part in level for leaf in part]
    return level, shape


# ------------------------------------------------------------------ casts and broadcasts


def cast(trace: Trace, content: Content, dtype: DType) -> Content:
    """`content` in another dtype, as astype converts."""
    if dtype_of(content) == dtype:
        return content
    if dtype not in DTYPE_NAMES:
        raise trace.error(ArgumentError, untraceable(dtype))
    return trace.apply("cast", content, dtype=dtype)


def untraceable(dtype: DType) -> str:
    names = ", ".join(str(d) for d in DTYPE_NAMES)
    return f"an array of dtype {dtype} cannot be traced; convert it to one of {names}"


def broadcast_shape(trace: Trace, what: str, shapes: Sequence[Shape]) -> Shape:
    """The common shape of operands."""
    common: Shape = ()
    for shape in shapes:  # equal ones, and numbers beside them, are the rule
        if shape != common and shape != ():
            if common != ():
                break
            common = shape
    else:
        return common
    ndim = max(len(s) for s in shapes)
    result = [1] * ndim
    for shape in shapes:
        for k, n in enumerate(shape, ndim - len(shape)):
            if n != 1 and result[k] != n:
                if result[k] != 1:
                    listed = " ".join(str(s).replace(" ", "") for s in shapes)
                    raise trace.error(
                        ShapeError, f"np.{what}: operands could not be broadcast together with shapes {listed}"
                    )
                result[k] = n
    return tuple(result)


def broadcast(trace: Trace, content: Content, shape: Shape) -> Content:
    """`content` stretched to `shape` by NumPy's rule, explicitly; it is known to fit."""
    own = shape_of(content)
    if own == shape:
        return content
    if not isinstance(content, Value):
        if content.size == 1:
            number = content.item() if content.dtype.kind in "iuf" else content.reshape(())
            return trace.full(content.dtype, shape, number)
        content = trace.lift(content)
    key = (content, shape)
    known: Content | None = trace.memo.get(key)
    if known is None:
        lead = len(shape) - len(own)
        dims = tuple([lead + k for k, n in enumerate(own) if shape[lead + k] == n])
        kept = tuple([n for k, n in enumerate(own) if shape[lead + k] == n])
        narrow = content if kept == own else trace.apply("reshape", content, shape=kept)
        known = narrow if kept == shape else trace.apply("broadcast", narrow, dims=dims, shape=shape)
        trace.memo[key] = known
    return known


def is_constant(x: Any) -> bool:
    """Whether `x` holds no value that depends on a parameter; plain arrays from outside count as such."""
    if isinstance(x, TracedValue):
        return not isinstance(x._cell.content, Value)
    return not isinstance(x, np.ndarray)
