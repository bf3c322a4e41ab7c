"""Mutable cells and the views on them: where an array's content lives, how it is read, how a write replaces it."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import LeakedValueError, ReadOnlyError, UnsupportedError
from pullback.ir.graph import Value
from pullback.ir.types import DType, Shape
from pullback.tracer.evaluate import present
from pullback.tracer.layout import Order, Strides, is_contiguous, strides_in_order
from pullback.tracer.location import describe
from pullback.tracer.steps import Gathered, Reshaped, Step, Strided
from pullback.tracer.trace import Array, Content, Trace, active, current

if TYPE_CHECKING:
    from pullback.tracer.array import TracedValue


INNER_WRITE = (
    "an inner transformed function writes to an array of the function around it; "
    "return the new values from the inner function and assign them outside"
)


class Cell:
    """What an array owns: its present content. A write replaces a value; a constant's array belongs to its cell alone.

    order : axes from slowest to fastest where the memory NumPy would use is not in C order
    written : whether anything was ever written to it
    readonly : it shows an array from outside the function, which a write would not reach
    """

    __slots__ = ("content", "dtype", "order", "readonly", "shape", "trace", "version", "written")

    content: Content

    def __init__(self, trace: Trace, content: Content, order: Order | None = None) -> None:
        self.trace = trace
        self.content = content
        kind: Any = content.type if type(content) is Value else content
        self.shape: Shape = kind.shape
        self.dtype: DType = kind.dtype
        self.order = order
        self.version = 0
        self.written = False
        self.readonly = False

    def strides(self) -> Strides:
        return strides_in_order(self.shape, self.order)

    def replace(self, content: Content) -> None:
        self.content = content
        self.version += 1
        self.written = True


def read(x: "TracedValue") -> Content:
    """The present content of `x`, in the trace it belongs to. A constant's array is lent: copy it to keep it."""
    cell = x._cell
    if not x._steps:
        return cell.content
    if x._version == cell.version:
        assert x._seen is not None
        return x._seen
    content = cell.content
    for step in x._steps:
        content = step.read(cell.trace, content)
    if isinstance(content, Value):
        x._seen, x._version = content, cell.version
    return content


def content_in(trace: Trace, x: "TracedValue") -> Content:
    """The present content of `x` for ops of `trace`: a value of an enclosing trace becomes an extra parameter."""
    owner = x._cell.trace
    if owner is trace:
        return read(x)
    if not isinstance(x._cell.content, Value):
        return read(x)
    check_alive(owner, trace)
    value = read(x)
    assert isinstance(value, Value)
    return trace.capture_value(owner, value, lambda: present(owner, value))


def check_alive(owner: Trace, trace: Trace | None) -> None:
    """`owner`'s values may be used while it runs, in it and in traces inside it."""
    if owner.live and (trace is owner or (trace is not None and trace.is_inside(owner))):
        return
    where = describe(trace.locator.users(3)) if trace is not None else ""
    reason = "in another thread or context than the one tracing it" if owner.live else "after its trace had ended"
    raise LeakedValueError(
        f"a traced value of {owner.name!r} was used {reason}; it stands for no number there. "
        f"Return it from the function instead of storing it outside{where}"
    )


def content(x: "TracedValue") -> Content:
    """`content_in` of the running trace."""
    return content_in(active(), x)


def write(x: "TracedValue", new: Content) -> None:
    """Replace what the view `x` shows by `new`, of the same shape and dtype."""
    cell = x._cell
    trace = _writing_trace(cell, new)
    if cell.readonly or not all(s.writeable for s in x._steps):
        raise ReadOnlyError(f"assignment destination is read-only: {_locked_by(x)}{describe(trace.locator.here(2))}")
    if 0 in x._shape:
        return
    if not x._steps:
        cell.replace(_owned(new))
        return
    if isinstance(cell.content, np.ndarray) and isinstance(new, np.ndarray) and _write_constant(x, new):
        return
    bases = [cell.content]
    for step in x._steps[:-1]:
        bases.append(step.read(trace, bases[-1]))
    for step, base in zip(reversed(x._steps), reversed(bases), strict=True):
        new = step.write(trace, base, new)
    cell.replace(_owned(new))


def _locked_by(x: "TracedValue") -> str:
    """Why `x` cannot be written to, and what to do."""
    if x._cell.readonly:
        return "it shows an array made outside the traced function; write to a copy (np.array(x))"
    if any(isinstance(step, Gathered) for step in x._steps):
        return "an element is shown more than once; write to the array itself, or to a copy (x.copy())"
    return "it is a broadcast, a diagonal, or was set so; write to the array itself, or to a copy (x.copy())"


def _owned(new: Content) -> Content:
    """What a cell may keep: a constant may be lent by another cell, or be a view."""
    return new if isinstance(new, Value) else np.array(new)


def _write_constant(x: "TracedValue", new: Array) -> bool:
    """Write a constant into a constant in its own memory, where the view is one of NumPy's; a cell owns its array."""
    cell = x._cell
    view = cell.content
    for step in x._steps:
        if not isinstance(step, Strided) or not isinstance(view, np.ndarray):
            return False
        view = step.of_array(view)
    # One element of an array is a NumPy scalar, which is no view.
    assert isinstance(view, np.ndarray)
    view[...] = new
    cell.version += 1
    cell.written = True
    return True


def _writing_trace(cell: Cell, new: Content) -> Trace:
    trace = current()
    if trace is cell.trace:
        return trace
    if not isinstance(cell.content, Value) and not isinstance(new, Value):
        return cell.trace
    check_alive(cell.trace, trace)
    assert trace is not None
    raise trace.error(
        UnsupportedError,
        INNER_WRITE,
    )


def extend(steps: tuple[Step, ...], step: Step, shape: Shape) -> tuple[Step, ...]:
    """`steps` and one more, merged with the last where both are slices, or both are reshapes."""
    if not steps:
        return () if isinstance(step, Strided) and step.is_whole() else (step,)
    last = steps[-1]
    if isinstance(step, Reshaped) and isinstance(last, Reshaped) and step.order == last.order == "C":
        merged = Reshaped(last.source, step.shape)
        return steps[:-1] if merged.source == merged.shape else (*steps[:-1], merged)
    return (*steps, step)


def strided_tail(x: "TracedValue") -> tuple[tuple[Step, ...], Strided]:
    """The steps before, and the strided step in which slices of `x` are composed."""
    if x._steps and isinstance(x._steps[-1], Strided):
        return x._steps[:-1], x._steps[-1]
    return x._steps, Strided.whole(x._shape)


def element_strides(x: "TracedValue") -> Strides:
    """Strides of `x` in elements, as NumPy would have them."""
    strides = x._cell.strides()
    for step in x._steps:
        strides = step.strides(strides)
    return strides


def has_order(x: "TracedValue", order: Any) -> bool:
    """Whether the memory of `x` is laid out as NumPy's `order` asks."""
    if order not in ("C", "F"):
        return True
    return is_contiguous(x._shape, element_strides(x), order)


def copy_order(x: "TracedValue", order: Any) -> Order | None:
    """The memory order that NumPy gives a copy of `x`."""
    backwards = tuple(reversed(range(x.ndim)))
    if x.ndim < 2 or order == "C":
        return None
    if order == "F":
        return backwards
    if not x._steps and x._cell.order is None:
        return None
    strides = element_strides(x)
    if is_contiguous(x._shape, strides):
        return None
    if order == "A" or is_contiguous(x._shape, strides, "F"):
        return backwards if is_contiguous(x._shape, strides, "F") else None
    by_stride = tuple(sorted(range(x.ndim), key=lambda k: -abs(strides[k])))  # broadcast axes come last
    return None if by_stride == tuple(range(x.ndim)) else by_stride


def numpy_of(x: "TracedValue") -> Any:
    """The NumPy object (array, scalar or Python number) that the constant `x` stands for; a copy."""
    array = read(x)
    assert isinstance(array, np.ndarray)
    return np.array(array)


def size_of(shape: Shape) -> int:
    return math.prod(shape)
