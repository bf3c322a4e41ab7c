"""Rearranging without computing. Reshapes, transposes and the like are views, as in NumPy: they share the cell."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError, UnsupportedError
from pullback.ir.graph import Literal
from pullback.ir.types import Shape, real_dtype
from pullback.tracer.array import TracedArray, TracedScalar, TracedValue, new_array, new_scalar
from pullback.tracer.cell import element_strides, extend, strided_tail
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import (
    array,
    axis_number,
    axis_numbers,
    contents,
    static_array,
)
from pullback.tracer.layout import is_contiguous, reshaped_strides
from pullback.tracer.operands import content_of
from pullback.tracer.steps import Gathered, Part, Reshaped, Step, Strided, reshape_content
from pullback.tracer.subscript import view_through
from pullback.tracer.trace import Content, active, shape_of


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


def reshape(
    a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: bool | None = None
) -> Any:
    x = array(a)
    trace = active()
    target = _target_shape(x, newshape if shape is None else shape)
    order = _resolved_order(x, order)
    made = _reshaped(x, target, order)
    if copy and made is not None:
        return made.copy()
    if made is None:
        if copy is False:
            trace.fail(ValueError, "Unable to avoid creating a copy while reshaping.")
        content = reshape_content(trace, content_of(trace, x), target, order)
        made = new_array(trace, content, tuple(reversed(range(len(target)))) if order == "F" else None, lent=True)
    return made


def _target_shape(x: TracedValue, shape: Any) -> Shape:
    """The wanted shape with its -1 worked out."""
    listed = tuple(shape) if isinstance(shape, tuple | list) or np.ndim(shape) else (shape,)
    numbers = [operator.index(n) for n in listed]
    if numbers.count(-1) > 1:
        active().fail(ValueError, "can only specify one unknown dimension")
    if -1 in numbers:
        known = math.prod(n for n in numbers if n != -1)
        if known == 0 or x.size % known:
            active().fail(ShapeError, f"cannot reshape array of size {x.size} into shape {_written(numbers)}")
        numbers[numbers.index(-1)] = x.size // known
    if math.prod(numbers) != x.size:
        active().fail(ShapeError, f"cannot reshape array of size {x.size} into shape {_written(numbers)}")
    return tuple(numbers)


def _written(shape: Sequence[int]) -> str:
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
        return strided(x, lambda tail: _with_ones(tail, target))
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
            trace.fail(ValueError, "axes don't match array")
        if len(set(perm)) != x.ndim:
            trace.fail(ValueError, "repeated axis in transpose")
    return permuted(x, perm)


def permuted(x: TracedValue, perm: Sequence[int]) -> Any:
    if isinstance(x, TracedScalar):
        return x
    return strided(x, lambda tail: tail.permuted(perm))


def matrix_transpose(x: Any, /) -> Any:
    return swapaxes(_at_least_two(array(x)), -1, -2)


def _at_least_two(x: TracedValue) -> TracedValue:
    if x.ndim < 2:
        active().fail(ValueError, f"Input array must be at least 2-dimensional, but it is {x.ndim}")
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
    sources = [axis_number(trace, k, x.ndim) for k in _listed(source)]
    targets = [axis_number(trace, k, x.ndim) for k in _listed(destination)]
    if len(sources) != len(targets):
        trace.fail(ValueError, "`source` and `destination` arguments must have the same number of elements")
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        trace.fail(ValueError, "repeated axis in `source` or `destination` argument")
    perm = [k for k in range(x.ndim) if k not in sources]
    for target, source_ in sorted(zip(targets, sources, strict=True)):
        perm.insert(target, source_)
    return permuted(x, perm)


def _listed(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list | range | np.ndarray) else (x,)


def rollaxis(a: Any, axis: Any, start: int = 0) -> Any:
    x = array(a)
    trace = active()
    number = axis_number(trace, axis, x.ndim)
    at = start + x.ndim if start < 0 else start
    if not 0 <= at <= x.ndim:
        trace.fail(ValueError, f"'start' arg requires {-x.ndim} <= start < {x.ndim + 1}, but {start} was passed in")
    at -= number < at
    perm = [k for k in range(x.ndim) if k != number]
    perm.insert(at, number)
    return permuted(x, perm)


def expand_dims(a: Any, axis: Any) -> Any:
    x = array(a)
    listed = _listed(axis)
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
    else:
        numbers = axis_numbers(trace, axis, x.ndim)
        if any(x.shape[k] != 1 for k in numbers):
            trace.fail(ShapeError, "cannot select an axis to squeeze out which has size not equal to one")
    if isinstance(x, TracedScalar):
        return x
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


# ------------------------------------------------------------------ broadcasts, diagonals, windows


def broadcast_to(array_: Any, shape: Any, subok: bool = False) -> Any:
    """A read-only view."""
    x = array(array_)
    target = tuple([operator.index(n) for n in shape]) if isinstance(shape, tuple | list) else (operator.index(shape),)
    fits = len(x.shape) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(x.shape), reversed(target), strict=False)
    )
    if not fits:
        active().fail(
            ShapeError,
            "operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{_written(x.shape)} and requested shape {_written(target)}",
        )
    if isinstance(x, TracedScalar):
        x = view(x, Strided.whole(()))
    made = strided(x, lambda tail: tail.stretched(target))
    return made


def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    made = [array(a) for a in args]
    shape = _common_shape([x.shape for x in made])
    return tuple([x if x.shape == shape else broadcast_to(x, shape) for x in made])


def _common_shape(shapes: Sequence[Shape]) -> Shape:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        active().fail(ShapeError, str(error))


def diagonal(a: Any, offset: int = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """A read-only view of a diagonal: a strided run through the two axes merged."""
    x = array(a)
    trace = active()
    if x.ndim < 2:
        trace.fail(ValueError, "diag requires an array of at least two dimensions")
    i, j = axis_number(trace, axis1, x.ndim), axis_number(trace, axis2, x.ndim)
    if i == j:
        trace.fail(ValueError, "axis1 and axis2 cannot be the same")
    perm = [*[k for k in range(x.ndim) if k not in (i, j)], i, j]
    turned = permuted(x, perm)
    rows, columns = turned.shape[-2:]
    offset = operator.index(offset)
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = offset if offset >= 0 else -offset * columns
    merged = view(turned, Reshaped(turned.shape, (*turned.shape[:-2], rows * columns)))
    last = turned.ndim - 2
    return strided(merged, lambda tail: tail.sliced(last, start if length else 0, columns + 1, length))


def diag(v: Any, k: int = 0) -> Any:
    x = array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    offset = operator.index(k)
    n = x.size + abs(offset)
    made = np.zeros((n, n), x.dtype)
    trace = active()
    target = new_array(trace, made)
    rows = np.arange(x.size) + max(-offset, 0)
    target[rows, rows + offset] = x
    return target


def diagflat(v: Any, k: int = 0) -> Any:
    return diag(ravel(v), k)


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Any:
    """Any view by strides in bytes, as a gather of fixed places."""
    a = array(x)
    target = a.shape if shape is None else tuple([operator.index(n) for n in shape])
    steps = a.strides if strides is None else tuple([operator.index(s) for s in strides])
    if any(s % a.itemsize for s in steps):
        active().fail(UnsupportedError, "np.lib.stride_tricks.as_strided: a stride is not a multiple of the item size")
    return _windowed(a, target, tuple([s // a.itemsize for s in steps]), writeable)


def _windowed(a: TracedValue, shape: Shape, strides: tuple[int, ...], writeable: bool) -> Any:
    """Places given by strides in memory, found among the elements of `a`."""
    memory = _memory_places(a).reshape(-1)
    first = int(memory[0]) if memory.size else 0
    wanted = np.full(shape, first, np.int64)
    for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
        wanted = wanted + (np.arange(n) * s).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    sorted_places = np.argsort(memory, kind="stable")
    found = np.searchsorted(memory[sorted_places], wanted)
    places = sorted_places[np.minimum(found, max(memory.size - 1, 0))] if memory.size else wanted
    if wanted.size and not (memory.size and bool((memory[places] == wanted).all())):
        active().fail(UnsupportedError, "np.lib.stride_tricks.as_strided: it reaches outside the elements of the array")
    distinct = len(np.unique(places)) == places.size
    return view(a, Gathered(Literal(places), strides, writeable and distinct))


def _memory_places(a: TracedValue) -> Any:
    """Where in memory, in elements from the start, each element of `a` lies."""
    places = np.zeros(a.shape, np.int64)
    for axis, (n, s) in enumerate(zip(a.shape, element_strides(a), strict=True)):
        places = places + (np.arange(n) * s).reshape([-1 if k == axis else 1 for k in range(a.ndim)])
    return places


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    a = array(x)
    trace = active()
    window = tuple([operator.index(n) for n in _listed(window_shape)])
    axes = tuple(range(a.ndim)) if axis is None else tuple([axis_number(trace, k, a.ndim) for k in _listed(axis)])
    if len(window) != len(axes):
        trace.fail(ValueError, f"Must provide matching length window_shape and axis; got {len(window)} and {len(axes)}")
    shape, strides = list(a.shape), list(element_strides(a))
    for n, k in zip(window, axes, strict=True):
        if shape[k] < n:
            trace.fail(ValueError, "window shape cannot be larger than input array shape")
        shape[k] -= n - 1
    inner = [element_strides(a)[k] for k in axes]
    return _windowed(a, (*shape, *window), (*strides, *inner), False)


# ------------------------------------------------------------------ parts of complex numbers


def real(val: Any) -> Any:
    return _part(val, "real")


def imag(val: Any) -> Any:
    return _part(val, "imag")


def _part(val: Any, name: str) -> Any:
    x = array(val)
    trace, (content,) = contents(x)
    if x.dtype.kind != "c":
        if name == "real":
            return x
        zeros = trace.full(x.dtype, x.shape, 0) if _depends(content) else np.zeros(x.shape, x.dtype)
        return _rewrapped(x, zeros)
    if isinstance(x, TracedScalar):
        return new_scalar(trace, trace.apply(name, content), float if x.python is complex else None)
    return view(x, Part(x.shape, name))


def _depends(content: Content) -> bool:
    return not isinstance(content, np.ndarray)


def _rewrapped(x: TracedValue, content: Content) -> Any:
    trace = active()
    if isinstance(x, TracedScalar):
        return new_scalar(trace, content, x.python)
    return new_array(trace, content)


def real_if_close(a: Any, tol: float = 100) -> Any:
    """The decision whether the imaginary parts are negligible is a guarded one."""
    x = array(a)
    if x.dtype.kind != "c":
        return x
    bound = tol if tol <= 1 else tol * np.finfo(real_dtype(x.dtype)).eps
    return x.real if bool(np.all(np.absolute(x.imag) < bound)) else x


# ------------------------------------------------------------------ what is known without looking


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


def tile(A: Any, reps: Any) -> Any:
    x = array(A)
    counts = [operator.index(n) for n in _listed(reps)]
    ndim = max(x.ndim, len(counts))
    counts = [1] * (ndim - len(counts)) + counts
    own = (1,) * (ndim - x.ndim) + x.shape
    wide = broadcast_to(
        x.reshape(tuple([k for n in own for k in (1, n)])), tuple([k for n, c in zip(own, counts, strict=True) for k in (c, n)])
    )
    return np.reshape(wide, tuple([n * c for n, c in zip(own, counts, strict=True)])).copy()


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    x = array(a)
    if axis is None:
        x, axis = ravel(x), 0
    trace = active()
    number = axis_number(trace, axis, x.ndim)
    counts = static_array(trace, repeats, "np.repeat: repeats")
    n = x.shape[number]
    if counts.size == 1:
        count = int(counts.reshape(-1)[0])
        spread = expand_dims(x, number + 1)
        wide = broadcast_to(spread, (*x.shape[: number + 1], count, *x.shape[number + 1 :]))
        return np.reshape(wide, (*x.shape[:number], n * count, *x.shape[number + 1 :])).copy()
    return x[(slice(None),) * number + (np.repeat(np.arange(n), counts),)]




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
        np.broadcast_to: broadcast_to,
        np.broadcast_arrays: broadcast_arrays,
        np.diagonal: diagonal,
        np.linalg.diagonal: lambda x, /, *, offset=0: diagonal(x, offset, -2, -1),
        np.diag: diag,
        np.diagflat: diagflat,
        np.lib.stride_tricks.as_strided: as_strided,
        np.lib.stride_tricks.sliding_window_view: sliding_window_view,
        np.real: real,
        np.imag: imag,
        np.real_if_close: real_if_close,
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
        np.tile: tile,
        np.repeat: repeat,
    }.items()
}
