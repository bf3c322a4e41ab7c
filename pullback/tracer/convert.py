"""What happens when Python asks for the number, the truth or the text of a traced value.

An integer or a truth value can be guarded: the compiled path holds only while it is what it was. A floating value
cannot: it would leave the gradient behind, so it is an error that says what to write instead.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import ConcretizationError, IntegerRangeError, LeakedValueError, LostGradientError
from pullback.ir.graph import Value
from pullback.ir.types import DTYPE_NAMES, I64
from pullback.tracer.cell import check_alive, content_in, read
from pullback.tracer.evaluate import present
from pullback.tracer.location import describe
from pullback.tracer.trace import Array, Content, Trace, current

_LEAST = -(1 << 63)

if TYPE_CHECKING:
    from pullback.tracer.array import TracedValue


def phrase(x: "TracedValue") -> str:
    """`a traced f64[3]`, for messages."""
    name = DTYPE_NAMES.get(x._dtype, str(x._dtype))
    return f"a traced {name}[{','.join(map(str, x._shape))}]"


def text(x: "TracedValue") -> str:
    """Type and place of origin; the numbers too when they are constant."""
    content = read(x)
    name = type(x).__name__
    if not isinstance(content, Value):
        return f"{name}({np.array2string(content, separator=', ', threshold=20)}, dtype={x._dtype})"
    where = f", made at {content.op.loc}" if content.op is not None and content.op.loc is not None else ""
    label = f" {content.hint}" if content.hint else ""
    return f"<{name}{label} {DTYPE_NAMES.get(x._dtype, x._dtype)}[{','.join(map(str, x._shape))}]{where}>"


def formatted(x: "TracedValue", spec: str) -> str:
    """Constants format as numbers; a traced value has none yet, and shows its type instead."""
    content = read(x)
    if not isinstance(content, Value) and content.shape == ():
        return format(content[()], spec)
    return text(x)


def _trace_for(x: "TracedValue") -> Trace:
    trace = current()
    if trace is None:
        check_alive(x._cell.trace, trace)
        raise LeakedValueError(f"{phrase(x)} was used outside a trace")
    return trace


def single(x: "TracedValue", what: str) -> Content:
    """The content of a one-element array, without axes."""
    if x.size != 1:
        if what == "bool()":
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
                if x.size
                else "The truth value of an empty array is ambiguous. Use `array.size > 0` to check for elements"
            )
        raise TypeError(
            f"only 0-dimensional arrays can be converted to Python scalars, got shape {x._shape} for {what}"
        )
    content = read(x)
    if not isinstance(content, Value):
        return content.reshape(())
    trace = _trace_for(x)
    content = content_in(trace, x)
    return trace.apply("reshape", content, shape=()) if x._shape else content


def to_bool(x: "TracedValue") -> bool:
    content = single(x, "bool()")
    if not isinstance(content, Value):
        return bool(content)
    trace = _trace_for(x)
    if content.type.dtype.kind != "b":
        zero = np.zeros((), content.type.dtype)
        content = trace.apply("not_equal", content, zero)
    assert isinstance(content, Value)
    return bool(_decide(trace, content, is_choice=True))


def to_int(x: "TracedValue", what: str) -> int:
    content = single(x, what)
    if not isinstance(content, Value):
        return int(content)
    trace = _trace_for(x)
    if content.type.dtype.kind == "c":
        raise TypeError(f"int() argument must be a real number, not complex{describe(trace.locator.users(2))}")
    if content.type.dtype.kind == "f":
        number = int(present(trace, content))  # infinities and NaN raise what Python raises
        if not _LEAST <= number <= -(_LEAST + 1):
            raise trace.error(IntegerRangeError, f"{what} of a number like {number:.3g}, which needs more than 64 bits")
        cast = trace.apply("cast", content, dtype=I64)
        assert isinstance(cast, Value)
        content = cast
    return _decide(trace, content)


def to_index(x: "TracedValue") -> int:
    is_python_bool = x._dtype.kind == "b" and getattr(x, "python", None) is bool
    if not is_python_bool and (x._dtype.kind not in "iu" or x._shape):
        raise TypeError(f"only integer scalar arrays can be converted to a scalar index, got {phrase(x)}")
    return to_int(x, "an index")


def _decide(trace: Trace, value: Value, is_choice: bool = False) -> int:
    """The present integer of `value`, guarded. A choice may have been made before the trace, see `Trace.choices`."""
    known = trace.guarded.get(value)
    if known is not None:
        return known
    number = int(present(trace, value))
    if is_choice:
        number = trace.choices.get(len(trace.guards), number)
    if not _is_fixed(value):
        trace.guard(value, number)
    return number


def decide_array(trace: Trace, content: Content) -> Array:
    """The present integers or truths of `content`, guarded as a whole: what decides a shape or a path.

    Data that depends on no argument is free, but must then not change between calls.
    """
    if not isinstance(content, Value):
        return content
    now = np.array(present(trace, content))
    if content in trace.settled:
        trace.watch = True
    elif now.size:
        same = trace.apply("equal", content, now)
        whole = trace.apply("all", same, axes=tuple(range(now.ndim))) if now.ndim else same
        assert isinstance(whole, Value)
        _decide(trace, whole)
    return now


def _is_fixed(value: Value) -> bool:
    return value.op is not None and value.op.name in ("constant", "iota")


def number_of(x: "TracedValue", what: str, instead: str) -> Any:
    """The present number of `x` for a conversion that would lose a gradient: free for what depends on no argument."""
    content = single(x, what)
    if not isinstance(content, Value):
        return content[()]
    trace = _trace_for(x)
    if content in trace.settled:
        trace.watch = True
        return present(trace, content)[()]
    if content.type.dtype.kind in "biu":
        return _decide(trace, content)
    raise lost(x, what, instead)


def lost(x: "TracedValue", what: str, instead: str) -> LostGradientError:
    """The error for a conversion behind which the gradient would vanish."""
    trace = current()
    where = describe(trace.locator.users(2)) if trace is not None else ""
    return LostGradientError(
        f"{what} of {phrase(x)} would turn it into a plain number and lose its gradient; {instead}{where}"
    )


def to_float(x: "TracedValue") -> float:
    instead = (
        "keep it as it is, or use the NumPy function instead of one from `math` (np.sin for math.sin); if it is to be "
        "stored into an array made outside the traced function, make that array inside (np.zeros) or write to a copy "
        "of it (np.copy)"
    )
    return float(number_of(x, "float()", instead))


def to_complex(x: "TracedValue") -> complex:
    return complex(number_of(x, "complex()", "use x + 0j or x.astype(complex)"))


def to_hash(x: "TracedValue") -> int:
    content = read(x)
    if not isinstance(content, Value):
        return hash(content[()])
    if content.type.dtype.kind in "iub":  # a key: the path rests on it
        return hash(to_int(x, "hash()"))
    raise TypeError(
        f"{phrase(x)} has no hash: its number is not fixed. Use int(x) or a constant as a key{_here(current())}"
    )


def rounded(x: Any, ndigits: int | None) -> Any:
    if ndigits is not None:
        return np.round(x, ndigits)
    whole: Any = np.rint(x)
    return to_int(whole, "round()")


def to_ndarray(x: "TracedValue", dtype: Any) -> Array:
    """A plain array of a constant. Of a traced value there is none: code that asks would work on frozen numbers."""
    content = read(x)
    if not isinstance(content, Value):
        return np.array(content, dtype)
    trace = current()
    # A library that is asked for its own array (`plain_of`) is asked outside of the trace.
    owner = trace or x._cell.trace
    if owner.live and content in owner.settled:
        owner.watch = True
        return np.array(present(owner, content), dtype)
    asked = x._dtype if dtype is None and x._shape == () else dtype
    name = None if asked is None else np.dtype(asked).name
    if not content.type.is_inexact:
        where = "" if trace is None else describe(trace.locator.users(2))
        cast = "" if name is None else f"; if it is to be converted, write x.astype(np.{name}) for np.{name}(x)"
        raise ConcretizationError(
            f"the numbers of {phrase(x)} are not known here. If it is an index into an array made outside the compiled "
            f"function, write np.asarray(a)[i] for a[i]{cast}{where}"
        )
    scalar = "" if name is None else f"write x.astype(np.{name}) for np.{name}(x); "
    raise lost(
        x,
        "conversion to a plain NumPy array",
        f"{scalar}this happens when it is stored into an array made outside the traced function (make the array inside "
        "it, with np.zeros, np.array or np.copy), or handed to code that pullback cannot follow",
    )


# Attributes of ndarray that a traced array does not have, and why.
NO_MEMORY = "a traced array has no memory; hand the result of the compiled function on"
NO_NUMBERS = "its numbers are not known while tracing; write the result of the compiled function"
NO_FIELDS = "structured types are not followed; use an array for each field"

REFUSED_ATTRIBUTES: Mapping[str, str] = {
    "data": NO_MEMORY,
    "ctypes": NO_MEMORY,
    "tobytes": NO_NUMBERS,
    "tofile": NO_NUMBERS,
    "dump": NO_NUMBERS,
    "dumps": NO_NUMBERS,
    "byteswap": "bytes of a traced array cannot be reordered; do so before the call, or with the result",
    "getfield": NO_FIELDS,
    "setfield": NO_FIELDS,
}


PROTOCOLS = ("__array_interface__", "__array_struct__", "__dlpack__", "__dlpack_device__")


def _here(trace: Trace | None) -> str:
    """The user's line, for the end of a message."""
    return "" if trace is None else describe(trace.locator.users(3))


def not_pickled(x: "TracedValue") -> TypeError:
    return TypeError(
        f"{phrase(x)} cannot be pickled: it exists only while its function is traced. Pickle the result of the "
        f"compiled function{_here(current())}"
    )


def no_attribute(x: "TracedValue", name: str) -> AttributeError:
    """The error for an attribute that a traced array does not have, with the reason where there is one."""
    reason = REFUSED_ATTRIBUTES.get(name) or (NO_MEMORY if name in PROTOCOLS else None)
    if reason is not None:
        return AttributeError(f"{phrase(x)} has no {name!r}: {reason}{_here(current())}")
    return AttributeError(f"{phrase(x)} has no attribute {name!r}" + ("" if name[:2] == "__" else _here(current())))
