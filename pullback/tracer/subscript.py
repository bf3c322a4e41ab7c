"""`x[key]`, `x[key] = value` and `ufunc.at(x, key, value)`."""

from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.graph import Value
from pullback.ir.types import Shape
from pullback.tracer.advanced import Picked, fold, gather, scatter
from pullback.tracer.array import TracedArray, TracedScalar, TracedValue, new_array, new_scalar
from pullback.tracer.cell import extend, read, strided_tail, write
from pullback.tracer.convert import decide_array
from pullback.tracer.index import Parsed, mask_of, parse
from pullback.tracer.operands import broadcast, cast, content_of
from pullback.tracer.selection import Selection, assign, select_where
from pullback.tracer.steps import Step, Strided, reshape_content
from pullback.tracer.trace import Content, Trace, active, current, shape_of
from pullback.tracer.window import get_window, has_open_slice, set_window


def getitem(x: TracedValue, key: Any) -> Any:
    """`x[key]`: a view for basic indices, a scalar for one integer an axis, a new array for index arrays and masks."""
    trace = current() or x._cell.trace
    mask = mask_of(trace, key)
    if mask is not None:
        return select_where(trace, x, mask)
    if has_open_slice(trace, key):
        return get_window(trace, x, key)
    before, view = strided_tail(x)
    parsed = parse(trace, view, key)
    if isinstance(x, TracedScalar):
        return _of_scalar(trace, x, parsed, key)
    target = view_through(x, before, parsed.view)
    if not parsed.advanced:
        return new_scalar(x._cell.trace, read(target)) if parsed.scalar and _gives_scalar(key) else target
    plan = fold(trace, parsed.view.shape, parsed)
    if shape_of(plan.index) == () and plan.shape != () and x._cell.trace is trace:
        step = Picked(parsed.view.shape, plan, tuple([a.axis for a in parsed.advanced]))
        return TracedArray(target._cell, (*target._steps, step))
    content = gather(trace, content_of(trace, target), plan)
    if plan.shape == () and parsed.scalar:
        return new_scalar(trace, content)
    return new_array(trace, content, lent=True)


def _gives_scalar(key: Any) -> bool:
    """An ellipsis in the subscript keeps a 0-d array."""
    return key is not Ellipsis and not (type(key) is tuple and any(k is Ellipsis for k in key))


def _of_scalar(trace: Trace, x: TracedScalar, parsed: Parsed, key: Any) -> Any:
    """NumPy's scalars take `()`, `...` and None as subscripts."""
    if x.python is not None:
        raise trace.error(TypeError, f"'{x.python.__name__}' object is not subscriptable")
    content = parsed.view.read(trace, content_of(trace, x))
    return x if parsed.scalar and _gives_scalar(key) else new_array(trace, content, lent=True)


def view_through(x: TracedValue, before: tuple[Step, ...], view: Strided) -> TracedArray:
    """The array that shows the cell of `x` through the steps `before` and then `view`."""
    return TracedArray(x._cell, extend(before, view, view.shape))


def setitem(x: TracedArray, key: Any, value: Any) -> None:
    """`x[key] = value`, with the value converted to the dtype of `x`."""
    trace = current() or x._cell.trace
    mask = mask_of(trace, key)
    if mask is not None and assign(trace, x, mask, value):
        return
    if has_open_slice(trace, key):
        set_window(trace, x, key, value)
        return
    if isinstance(value, Selection):
        value = value.packed()
    before, view = strided_tail(x)
    parsed = parse(trace, view, key)
    target = view_through(x, before, parsed.view)
    if not parsed.advanced:
        if isinstance(value, TracedArray) and value._cell is x._cell and value._steps == target._steps:
            return  # the second half of `x[key] += ...`, whose first half wrote through the view already
        write(target, new_content(trace, value, target))
        return
    plan = fold(trace, parsed.view.shape, parsed)
    new = fitted(trace, content_of(trace, value), plan.shape)
    write(target, scatter(trace, content_of(trace, target), plan, cast(trace, new, x._dtype)))


def new_content(trace: Trace, value: Any, target: TracedArray) -> Content:
    """`value` in the dtype and shape of `target`; NumPy's assignment converts without asking."""
    if type(value) is complex and target._dtype.kind != "c":
        raise trace.error(TypeError, "can't convert complex to float")
    content = cast(trace, content_of(trace, value), target._dtype)
    return fitted(trace, content, target._shape)


def fitted(trace: Trace, content: Content, shape: Shape) -> Content:
    """`content` broadcast to `shape`; leading axes of length 1 more than it has are dropped, as in NumPy."""
    own = shape_of(content)
    extra = len(own) - len(shape)
    if extra > 0 and all(n == 1 for n in own[:extra]):
        content = reshape_content(trace, content, own[extra:])
        own = own[extra:]
    if own == shape:
        return content
    pairs = zip(reversed(own), reversed(shape), strict=False)
    if len(own) > len(shape) or any(n not in (1, m) for n, m in pairs):
        raise trace.error(ShapeError, f"could not broadcast input array from shape {own} into shape {shape}")
    if not isinstance(content, Value):
        return np.broadcast_to(content, shape)
    return broadcast(trace, content, shape)


# ------------------------------------------------------------------ ufunc.at


def add_at(trace: Trace, x: TracedArray, key: Any, value: Any, negate: bool = False) -> None:
    """`np.add.at` (or `subtract.at`): repeated indices accumulate."""
    before, view = strided_tail(x)
    parsed = parse(trace, view, key)
    target = view_through(x, before, parsed.view)
    if not parsed.advanced:
        if negate:
            target -= value
        else:
            target += value
        return
    plan = fold(trace, parsed.view.shape, parsed)
    new = cast(trace, fitted(trace, content_of(trace, value), plan.shape), x._dtype)
    if negate:
        new = trace.apply("neg", new)
    write(target, scatter(trace, content_of(trace, target), plan, new, "scatter_add"))


def apply_at(ufunc: np.ufunc, x: TracedArray, key: Any, value: Any) -> None:
    """Any other `ufunc.at`: the first occurrence of each place, then the second, and so on. Traced indices are guarded.

    value : None for a ufunc of one operand
    """
    trace = active()
    numbers = new_array(trace, np.arange(x.size).reshape(x._shape))
    places = decide_array(trace, content_of(trace, numbers[key]))
    values: Any = None
    if value is not None:
        values = new_array(trace, fitted(trace, content_of(trace, value), places.shape), lent=True).reshape(-1)
    flat, rounds = places.reshape(-1), _occurrence(places.reshape(-1))
    whole = x.reshape(-1) if x.flags.c_contiguous else x.flat
    for number in range(int(rounds.max(initial=-1)) + 1):
        chosen = np.flatnonzero(rounds == number)
        at, order = new_array(trace, flat[chosen]), new_array(trace, chosen)
        whole[at] = ufunc(whole[at]) if values is None else ufunc(whole[at], values[order])


def _occurrence(flat: Any) -> Any:
    """For each index how often it came before."""
    seen: dict[int, int] = {}
    result = np.zeros(len(flat), np.int64)
    for k, place in enumerate(flat.tolist()):
        result[k] = seen.get(place, 0)
        seen[place] = result[k] + 1
    return result
