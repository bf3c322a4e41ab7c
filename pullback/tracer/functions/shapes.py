"""Rearranging without computing. Reshapes, transposes and the like are views, as in NumPy: they share the cell."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.types import Shape
from pullback.tracer.array import TracedArray, TracedScalar, TracedValue, new_array
from pullback.tracer.cell import element_strides, extend, strided_tail
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import (
    array,
    axis_number,
    axis_numbers,
    const,
    contents,
    static_array,
)
from pullback.tracer.layout import is_contiguous, reshaped_strides
from pullback.tracer.operands import content_of
from pullback.tracer.steps import Reshaped, Step, Strided, reshape_content
from pullback.tracer.subscript import view_through
from pullback.tracer.trace import active


def view(x: TracedValue, step: Step) -> TracedArray:
    """The array that shows `x` through one more step."""
    if isinstance(x, TracedScalar):
        trace, (content,) = contents(x)
        x = new_array(trace, content, lent=True)
    return TracedArray(x._cell, extend(x._steps, step, step.shape))


def strided(x: TracedValue, change: Any) -> Any:
    """A view of `x` with its strided step changed by `change`."""
    if isinstance(x, TracedScalar):
        x = view(x, Strided.whole(()))
    before, tail = strided_tail(x)
    return view_through(x, before, change(tail))


# ------------------------------------------------------------------ reshape


def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: bool | None = None) -> Any:
    x = array(a)
    trace = active()
    target = _target_shape(x, newshape if shape is None else shape)
    order = _resolved_order(x, order)
    made = _reshaped(x, target, order)
    if copy and made is not None:
        return made.copy()
    if made is None:
        if copy is False:
            raise trace.error(ValueError, "Unable to avoid creating a copy while reshaping.")
        content = reshape_content(trace, content_of(trace, x), target, order)
        made = new_array(trace, content, tuple(reversed(range(len(target)))) if order == "F" else None, lent=True)
    return made


def _target_shape(x: TracedValue, shape: Any) -> Shape:
    """The wanted shape with its -1 worked out."""
    listed = tuple(shape) if isinstance(shape, tuple | list) or np.ndim(shape) else (shape,)
    numbers = [operator.index(n) for n in listed]
    if numbers.count(-1) > 1:
        raise active().error(ValueError, "can only specify one unknown dimension")
    if -1 in numbers:
        known = math.prod(n for n in numbers if n != -1)
        if known == 0 or x.size % known:
            raise active().error(ShapeError, f"cannot reshape array of size {x.size} into shape {written(numbers)}")
        numbers[numbers.index(-1)] = x.size // known
    if math.prod(numbers) != x.size:
        raise active().error(ShapeError, f"cannot reshape array of size {x.size} into shape {written(numbers)}")
    return tuple(numbers)


def written(shape: Sequence[int]) -> str:
    return str(tuple(shape)).replace(" ", "")


def _resolved_order(x: TracedValue, order: str) -> str:
    """Order `A` is Fortran order for what lies in Fortran order."""
    if order not in "AK":
        return order
    strides = element_strides(x)
    return "F" if is_contiguous(x.shape, strides, "F") and not is_contiguous(x.shape, strides) else "C"


def _reshaped(x: TracedValue, target: Shape, order: str) -> TracedArray | None:
    """The view, where NumPy gives one."""
    if isinstance(x, TracedScalar):
        return None
    if target == x.shape:
        return TracedArray(x._cell, x._steps)
    if [n for n in target if n != 1] == [n for n in x.shape if n != 1]:
        made: TracedArray = strided(x, lambda tail: _with_ones(tail, target))
        return made
    if reshaped_strides(x.shape, element_strides(x), target, order) is None:
        return None
    return view(x, Reshaped(x.shape, target, order))


def _with_ones(tail: Strided, target: Shape) -> Strided:
    """Axes of length 1 dropped and added."""
    for axis in reversed(range(len(tail.axes))):
        if tail.axes[axis].length == 1:
            tail = tail.fixed(axis, 0)
    for axis, n in enumerate(target):
        if n == 1:
            tail = tail.inserted(axis)
    return tail


def ravel(a: Any, order: str = "C") -> Any:
    """A view where the elements lie in one run, else a copy."""
    x = array(a)
    trace = active()
    if order == "K" and not isinstance(x, TracedScalar):
        perm = tuple(sorted(range(x.ndim), key=lambda k: -abs(element_strides(x)[k])))
        return ravel(strided(x, lambda tail: tail.permuted(perm)))
    order = _resolved_order(x, order)
    contiguous = not isinstance(x, TracedScalar) and is_contiguous(x.shape, element_strides(x), order)
    if contiguous or (x.ndim == 1 and not isinstance(x, TracedScalar) and element_strides(x) == (1,)):
        made = _reshaped(x, (x.size,), order)
        if made is not None:
            return made
    return new_array(trace, reshape_content(trace, content_of(trace, x), (x.size,), order), lent=True)


# ------------------------------------------------------------------ axes


def transpose(a: Any, axes: Any = None) -> Any:
    x = array(a)
    if axes is None:
        perm = tuple(reversed(range(x.ndim)))
    else:
        trace = active()
        perm = tuple([axis_number(trace, k, x.ndim) for k in axes])
        if len(perm) != x.ndim:
            raise trace.error(ValueError, "axes don't match array")
        if len(set(perm)) != x.ndim:
            raise trace.error(ValueError, "repeated axis in transpose")
    return permuted(x, perm)


def permuted(x: TracedValue, perm: Sequence[int]) -> Any:
    if isinstance(x, TracedScalar):
        return x
    return strided(x, lambda tail: tail.permuted(perm))


def matrix_transpose(x: Any, /) -> Any:
    return swapaxes(_at_least_two(array(x)), -1, -2)


def _at_least_two(x: TracedValue) -> TracedValue:
    if x.ndim < 2:
        raise active().error(ValueError, f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return x


def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    x = array(a)
    trace = active()
    i, j = axis_number(trace, axis1, x.ndim), axis_number(trace, axis2, x.ndim)
    perm = list(range(x.ndim))
    perm[i], perm[j] = j, i
    return permuted(x, perm)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    x = array(a)
    trace = active()
    sources = [axis_number(trace, k, x.ndim) for k in as_tuple(source)]
    targets = [axis_number(trace, k, x.ndim) for k in as_tuple(destination)]
    if len(sources) != len(targets):
        raise trace.error(ValueError, "`source` and `destination` arguments must have the same number of elements")
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise trace.error(ValueError, "repeated axis in `source` or `destination` argument")
    perm = [k for k in range(x.ndim) if k not in sources]
    for target, source_ in sorted(zip(targets, sources, strict=True)):
        perm.insert(target, source_)
    return permuted(x, perm)


def as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list | range | np.ndarray) else (x,)


def rollaxis(a: Any, axis: Any, start: int = 0) -> Any:
    x = array(a)
    trace = active()
    number = axis_number(trace, axis, x.ndim)
    at = start + x.ndim if start < 0 else start
    if not 0 <= at <= x.ndim:
        raise trace.error(
            ValueError, f"'start' arg requires {-x.ndim} <= start < {x.ndim + 1}, but {start} was passed in"
        )
    at -= number < at
    perm = [k for k in range(x.ndim) if k != number]
    perm.insert(at, number)
    return permuted(x, perm)


def expand_dims(a: Any, axis: Any) -> Any:
    x = array(a)
    listed = as_tuple(axis)
    numbers = axis_numbers(active(), tuple(listed), x.ndim + len(listed))
    return strided(x, lambda tail: _inserted(tail, numbers))


def _inserted(tail: Strided, numbers: Sequence[int]) -> Strided:
    for number in numbers:
        tail = tail.inserted(number)
    return tail


def squeeze(a: Any, axis: Any = None) -> Any:
    x = array(a)
    trace = active()
    if axis is None:
        numbers = tuple([k for k, n in enumerate(x.shape) if n == 1])
    elif x.ndim == 0 and axis in (0, -1):
        numbers = ()
    else:
        numbers = axis_numbers(trace, axis, x.ndim)
        if any(x.shape[k] != 1 for k in numbers):
            raise trace.error(ShapeError, "cannot select an axis to squeeze out which has size not equal to one")
    if isinstance(x, TracedScalar) or not numbers:
        return x  # the array itself, as in NumPy
    return strided(x, lambda tail: _dropped(tail, numbers))


def _dropped(tail: Strided, numbers: Sequence[int]) -> Strided:
    for number in reversed(numbers):
        tail = tail.fixed(number, 0)
    return tail


def _at_least(ndim: int) -> Any:
    def one(x: Any) -> Any:
        made = array(x)
        if made.ndim >= ndim:
            return made
        if ndim == 1 or made.ndim == 0:
            return reshape(made, (1,) * ndim)
        if ndim == 2:
            return made[None, :]
        return made[None, :, None] if made.ndim == 1 else made[:, :, None]

    def at_least(*arys: Any) -> Any:
        made = tuple([one(x) for x in arys])
        return made[0] if len(made) == 1 else made

    return at_least


# ------------------------------------------------------------------ turning round


def flip(m: Any, axis: Any = None) -> Any:
    x = array(m)
    numbers = axis_numbers(active(), axis, x.ndim)
    return x[tuple([slice(None, None, -1) if k in numbers else slice(None) for k in range(x.ndim)])] if x.ndim else x


def fliplr(m: Any) -> Any:
    x = array(m)
    if x.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return x[:, ::-1]


def flipud(m: Any) -> Any:
    x = array(m)
    if x.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return x[::-1]


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    x = array(m)
    first, second = [axis_number(active(), a, x.ndim) for a in axes]
    if first == second:
        raise ValueError("Axes must be different.")
    turns = k % 4
    if turns == 0:
        return x[...]
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


# ------------------------------------------------------------------ copies


def tile(A: Any, reps: Any) -> Any:
    x = array(A)
    counts = [operator.index(n) for n in as_tuple(reps)]
    ndim = max(x.ndim, len(counts))
    counts = [1] * (ndim - len(counts)) + counts
    own = (1,) * (ndim - x.ndim) + x.shape
    wide = np.broadcast_to(
        x.reshape(tuple([k for n in own for k in (1, n)])),
        tuple([k for n, c in zip(own, counts, strict=True) for k in (c, n)]),
    )
    return np.reshape(wide, tuple([n * c for n, c in zip(own, counts, strict=True)])).copy()


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    x = array(a)
    if axis is None or (x.ndim == 0 and axis in (0, -1)):
        x, axis = ravel(x), 0
    trace = active()
    number = axis_number(trace, axis, x.ndim)
    counts = static_array(trace, repeats, "np.repeat: repeats")
    n = x.shape[number]
    if counts.size == 1:
        count = int(counts.reshape(-1)[0])
        spread = expand_dims(x, number + 1)
        wide = np.broadcast_to(spread, (*x.shape[: number + 1], count, *x.shape[number + 1 :]))
        return np.reshape(wide, (*x.shape[:number], n * count, *x.shape[number + 1 :])).copy()
    return x[(slice(None),) * number + (const(np.repeat(np.arange(n), counts)),)]


FUNCTIONS: dict[Any, Entry] = {
    function: Entry(implementation, False)
    for function, implementation in {
        np.reshape: reshape,
        np.ravel: ravel,
        np.transpose: transpose,
        np.matrix_transpose: matrix_transpose,
        np.linalg.matrix_transpose: matrix_transpose,
        np.swapaxes: swapaxes,
        np.moveaxis: moveaxis,
        np.rollaxis: rollaxis,
        np.expand_dims: expand_dims,
        np.squeeze: squeeze,
        np.atleast_1d: _at_least(1),
        np.atleast_2d: _at_least(2),
        np.atleast_3d: _at_least(3),
        np.flip: flip,
        np.fliplr: fliplr,
        np.flipud: flipud,
        np.rot90: rot90,
        np.tile: tile,
        np.repeat: repeat,
    }.items()
}
