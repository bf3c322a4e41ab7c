"""NumPy's own functions on what is known while tracing: constants, and data that depends on no argument."""

from typing import Any

import numpy as np

from pullback.ir.graph import Value
from pullback.ir.types import DTYPE_NAMES
from pullback.tracer.array import TracedArray, TracedScalar, TracedValue, new_array, new_result
from pullback.tracer.cell import write
from pullback.tracer.evaluate import present
from pullback.tracer.operands import check_array, content_of, is_constant
from pullback.tracer.trace import Array, Trace

DEPENDS = object()
"""The result where an argument depends on the arguments of the traced function."""


def all_constant(args: Any) -> bool:
    for a in args:
        if isinstance(a, list | tuple):
            if not all_constant(a):
                return False
        elif not is_constant(a):
            return False
    return True


def call_plain(trace: Trace, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy's own `func` gives, as constants of the trace; `DEPENDS` where an argument is not known.

    NumPy works on copies of the traced arrays. What it writes to one (`out=`) is written to the array itself.
    """
    copies: list[tuple[TracedArray, Array, bytes]] = []
    try:
        plain_args, plain_kwargs = _plain(trace, args, copies), _plain(trace, kwargs, copies)
    except _DependsError:
        return DEPENDS
    with np.errstate(all="ignore"):
        result = func(*plain_args, **plain_kwargs)
    for x, array, before in copies:
        if array.tobytes() != before:
            write(x, array)
    return _wrapped(trace, result, {id(array): x for x, array, _ in copies})


class _DependsError(Exception):
    """A value that depends on the arguments was met."""


def _plain(trace: Trace, x: Any, copies: list[tuple[TracedArray, Array, bytes]]) -> Any:
    """`x` with every traced value replaced by the plain array or number it is."""
    if isinstance(x, TracedValue):
        content = content_of(trace, x)
        if isinstance(content, Value):
            if content not in trace.settled:
                raise _DependsError
            trace.watch = True
            content = present(trace, content)
        array = np.array(content)
        if isinstance(x, TracedScalar):
            return unwrapped(x, array)
        copies.append((x, array, array.tobytes()))  # type: ignore[arg-type]  # what is no scalar is an array
        return array
    if hasattr(x, "__traced_array__"):
        raise _DependsError
    if isinstance(x, np.ndarray):
        trace.rest_on(x)
        return x
    if type(x) in (list, tuple):
        return type(x)([_plain(trace, p, copies) for p in x])
    if type(x) is dict:
        return {k: _plain(trace, v, copies) for k, v in x.items()}
    return x


def unwrapped(x: TracedValue, array: Any) -> Any:
    """What a constant stands for: an array, a NumPy scalar, or a Python number."""
    if isinstance(x, TracedScalar):
        return x.python(array[()]) if x.python is not None else array[()]
    return array


def _wrapped(trace: Trace, result: Any, given: dict[int, TracedArray]) -> Any:
    """What NumPy returned, as constants of the trace; anything that is no array stays.

    given : the traced arrays whose copies NumPy was given, by the copy's identity
    """
    if isinstance(result, TracedValue):
        return result
    if id(result) in given:
        return given[id(result)]
    if isinstance(result, np.ndarray):
        if type(result) is not np.ndarray or result.dtype not in DTYPE_NAMES:
            return result
        return new_array(trace, np.array(check_array(trace, result)))
    if isinstance(result, np.generic):
        return new_result(trace, check_array(trace, np.asarray(result)))
    if type(result) in (list, tuple):
        return type(result)([_wrapped(trace, r, given) for r in result])
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[_wrapped(trace, r, given) for r in result])
    return result
