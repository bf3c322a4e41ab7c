"""How a view sees its base: a chain of steps, each of which can be read through and written through.

Basic slices, integers, new axes and transposes merge into one `Strided` step, so a view of a view costs what one view
costs, and a write touches the written part only. Reading or writing emits ops; making a view does not.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from pullback.ir.graph import Literal, Value
from pullback.ir.index import strides_of
from pullback.ir.types import I64, DType, Shape, real_dtype
from pullback.record import record
from pullback.tracer.layout import Strides, reshaped_strides
from pullback.tracer.trace import Array, Content, Trace, shape_of


class Step(Protocol):
    """One stage of a view, from a base array to the array it shows."""

    @property
    def shape(self) -> Shape:
        """Shape of what the step shows."""

    @property
    def writeable(self) -> bool: ...

    def dtype(self, base: DType) -> DType: ...

    def read(self, trace: Trace, base: Content) -> Content: ...

    def write(self, trace: Trace, base: Content, new: Content) -> Content:
        """The base with the shown part replaced by `new`."""

    def strides(self, base: Strides) -> Strides:
        """Strides of the view, in elements, from those of the base."""


class Axis(NamedTuple):
    """An axis of a strided view: every `step`-th element of axis `base`, or (base -1) a new axis."""

    base: int
    step: int
    length: int


NEW_AXIS = Axis(-1, 0, 1)


class Strided(NamedTuple):
    """Slices, integers, new (or broadcast) axes and a permutation, all in one.

    source : shape of the base
    origin : index of the first element shown, for each base axis
    axes : axes of the view in order; a base axis that no view axis uses is fixed at its origin
    """

    source: Shape
    origin: tuple[int, ...]
    axes: tuple[Axis, ...]

    @staticmethod
    @lru_cache(maxsize=4096)
    def whole(shape: Shape) -> "Strided":
        return Strided(shape, (0,) * len(shape), tuple([Axis(k, 1, n) for k, n in enumerate(shape)]))

    @property
    def shape(self) -> Shape:
        return tuple([a.length for a in self.axes])

    @property
    def writeable(self) -> bool:
        return all(a.base >= 0 or a.length <= 1 for a in self.axes)

    def dtype(self, base: DType) -> DType:
        return base

    def is_whole(self) -> bool:
        return self == Strided.whole(self.source)

    # ------------------------------------------------------------------ composition

    def sliced(self, axis: int, start: int, step: int, length: int) -> "Strided":
        """Axis `axis` from `start` on, every `step`-th, `length` of them."""
        base, stride, _ = self.axes[axis]
        axes = (*self.axes[:axis], Axis(base, stride * step, length), *self.axes[axis + 1 :])
        return Strided(self.source, self._moved(base, stride * start if length else 0), axes)

    def fixed(self, axis: int, index: int) -> "Strided":
        """Element `index` of axis `axis`, which disappears."""
        base, stride, _ = self.axes[axis]
        return Strided(self.source, self._moved(base, stride * index), self.axes[:axis] + self.axes[axis + 1 :])

    def inserted(self, axis: int, length: int = 1) -> "Strided":
        """A new axis before `axis`."""
        return Strided(self.source, self.origin, (*self.axes[:axis], Axis(-1, 0, length), *self.axes[axis:]))

    def permuted(self, perm: Sequence[int]) -> "Strided":
        return Strided(self.source, self.origin, tuple([self.axes[p] for p in perm]))

    def stretched(self, shape: Shape) -> "Strided":
        """Broadcast to `shape`, which must fit."""
        lead = len(shape) - len(self.axes)
        axes = [Axis(-1, 0, n) for n in shape[:lead]]
        axes += [a if a.length == n else Axis(-1, 0, n) for a, n in zip(self.axes, shape[lead:], strict=True)]
        return Strided(self.source, self.origin, tuple(axes))

    def _moved(self, base: int, by: int) -> tuple[int, ...]:
        if base < 0 or by == 0:
            return self.origin
        return (*self.origin[:base], self.origin[base] + by, *self.origin[base + 1 :])

    # ------------------------------------------------------------------ reading and writing

    def read(self, trace: Trace, base: Content) -> Content:
        if not isinstance(base, Value):
            return self.of_array(base)
        key = (base, self)
        value: Content | None = trace.memo.get(key)
        if value is None:
            value = trace.memo[key] = _read_plan(trace, _plan(self), base)
        return value

    def write(self, trace: Trace, base: Content, new: Content) -> Content:
        plan = _plan(self)
        for name, attrs in plan.inverse:
            new = trace.apply(name, new, **attrs)
        return new if plan.box is None else trace.apply("update", base, new, **plan.box)

    def of_array(self, array: Array) -> Array:
        """The NumPy view of a constant base."""
        plan = _plan(self)
        view = array if plan.index is None else array[plan.index]
        if plan.kept_shape is not None:
            view = view.transpose(plan.perm)[plan.newaxes]
        return view if view.shape == self.shape else np.broadcast_to(view, self.shape)

    def strides(self, base: Strides) -> Strides:
        return tuple([0 if a.base < 0 else base[a.base] * a.step for a in self.axes])


Attributes = dict[str, Any]


@record(frozen=True)
class Plan:
    """How a strided view is read (slice the `box`, then `forward`) and written (`inverse`, then update the `box`)."""

    box: Attributes | None
    forward: tuple[tuple[str, Attributes], ...]
    inverse: tuple[tuple[str, Attributes], ...]
    index: tuple[Any, ...] | None
    kept_shape: Shape | None
    perm: tuple[int, ...]
    newaxes: tuple[Any, ...]


@lru_cache(maxsize=4096)
def _plan(view: Strided) -> Plan:
    used = {a.base: a for a in view.axes if a.base >= 0}
    start, stop, step, flipped, box = [], [], [], [], []
    index: list[slice | int] = []
    for axis, (n, origin) in enumerate(zip(view.source, view.origin, strict=True)):
        a = used.get(axis)
        stride, length = (a.step, a.length) if a is not None else (1, 1)
        last = origin + stride * (length - 1)
        low, high = (min(origin, last), max(origin, last) + 1) if length else (0, 0)
        start.append(low)
        stop.append(high)
        step.append(max(abs(stride), 1))
        box.append(length)
        if stride < 0:
            flipped.append(axis)
        index.append(_numpy_slice(a, origin, n) if a is not None else origin)
    sliced = any(s or e != n or t != 1 for s, e, t, n in zip(start, stop, step, view.source, strict=True))
    attrs = {"start": tuple(start), "stop": tuple(stop), "step": tuple(step)} if sliced else None
    forward, inverse, perm = _rearrangement(view, tuple(box), tuple(flipped))
    newaxes = tuple([None if a.base < 0 else slice(None) for a in view.axes])
    whole = not sliced and not flipped and len(used) == len(view.source)
    moved = perm != tuple(range(len(perm))) or None in newaxes
    return Plan(attrs, forward, inverse, None if whole else (*index, Ellipsis), () if moved else None, perm, newaxes)


def _numpy_slice(axis: Axis, origin: int, n: int) -> slice:
    if axis.length == 0:
        return slice(0, 0)
    stop = origin + axis.step * axis.length
    return slice(origin, stop if stop >= 0 else None, axis.step)


Rearrangement = tuple[tuple[tuple[str, Attributes], ...], tuple[tuple[str, Attributes], ...], tuple[int, ...]]


def _rearrangement(view: Strided, box: Shape, flipped: tuple[int, ...]) -> Rearrangement:
    """Ops from the sliced box to the view and back: reverse, drop fixed axes, permute, add new axes."""
    forward: list[tuple[str, Attributes]] = []
    inverse: list[tuple[str, Attributes]] = []
    if flipped:
        forward.append(("reverse", {"axes": flipped}))
        inverse.append(("reverse", {"axes": flipped}))
    order = [a.base for a in view.axes if a.base >= 0]
    kept = sorted(order)
    kept_shape = tuple([box[k] for k in kept])
    perm = tuple([kept.index(k) for k in order])
    moved_shape = tuple([kept_shape[p] for p in perm])
    shape = view.shape
    permuted = perm != tuple(range(len(perm)))
    if permuted:
        if kept_shape != box:
            forward.append(("reshape", {"shape": kept_shape}))
            inverse.append(("reshape", {"shape": box}))
        forward.append(("transpose", {"perm": perm}))
        inverse.append(("transpose", {"perm": tuple([order.index(k) for k in kept])}))
        box = moved_shape
    stretched = any(a.base < 0 and a.length != 1 for a in view.axes)
    if stretched:
        if moved_shape != box:
            forward.append(("reshape", {"shape": moved_shape}))
        dims = tuple([k for k, a in enumerate(view.axes) if a.base >= 0])
        forward.append(("broadcast", {"dims": dims, "shape": shape}))
    elif shape != box:
        forward.append(("reshape", {"shape": shape}))
        inverse.append(("reshape", {"shape": box}))
    return tuple(forward), tuple(reversed(inverse)), perm


def _read_plan(trace: Trace, plan: Plan, base: Content) -> Content:
    content = base if plan.box is None else trace.apply("slice", base, **plan.box)
    for name, attrs in plan.forward:
        content = trace.apply(name, content, **attrs)
    return content


class Reshaped(NamedTuple):
    """The base's elements under another shape, in C order or (order `F`) in Fortran order."""

    source: Shape
    shape: Shape
    order: str = "C"

    @property
    def writeable(self) -> bool:
        return True

    def dtype(self, base: DType) -> DType:
        return base

    def read(self, trace: Trace, base: Content) -> Content:
        return reshape_content(trace, base, self.shape, self.order)

    def write(self, trace: Trace, base: Content, new: Content) -> Content:
        return reshape_content(trace, new, self.source, self.order)

    def strides(self, base: Strides) -> Strides:
        strides = reshaped_strides(self.source, base, self.shape, self.order)
        return strides_of(self.shape) if strides is None else strides


def reshape_content(trace: Trace, content: Content, shape: Shape, order: str = "C") -> Content:
    """`content` under another shape of the same size."""
    if shape_of(content) == shape:
        return content
    if order == "C":
        return content.reshape(shape) if not isinstance(content, Value) else _memo_reshape(trace, content, shape)
    turned = transpose_content(trace, content, tuple(reversed(range(len(shape_of(content))))))
    reshaped = reshape_content(trace, turned, tuple(reversed(shape)))
    return transpose_content(trace, reshaped, tuple(reversed(range(len(shape)))))


def _memo_reshape(trace: Trace, value: Value, shape: Shape) -> Content:
    key = (value, "reshape", shape)
    known: Content | None = trace.memo.get(key)
    if known is None:
        known = trace.memo[key] = trace.apply("reshape", value, shape=shape)
    return known


def transpose_content(trace: Trace, content: Content, perm: Sequence[int]) -> Content:
    perm = tuple(perm)
    if perm == tuple(range(len(perm))):
        return content
    if isinstance(content, Value):
        return trace.apply("transpose", content, perm=perm)
    return content.transpose(perm)


class Locked(NamedTuple):
    """The base itself, but not to be written: broadcasts and diagonals, and every view of them."""

    shape: Shape

    @property
    def writeable(self) -> bool:
        return False

    def dtype(self, base: DType) -> DType:
        return base

    def read(self, trace: Trace, base: Content) -> Content:
        return base

    def write(self, trace: Trace, base: Content, new: Content) -> Content:
        raise AssertionError("a locked view is not written to")

    def strides(self, base: Strides) -> Strides:
        return base


class Part(NamedTuple):
    """The real or imaginary part of a complex base."""

    shape: Shape
    name: str

    @property
    def writeable(self) -> bool:
        return True

    def dtype(self, base: DType) -> DType:
        return real_dtype(base)

    def read(self, trace: Trace, base: Content) -> Content:
        return trace.apply(self.name, base)

    def write(self, trace: Trace, base: Content, new: Content) -> Content:
        other = trace.apply("imag" if self.name == "real" else "real", base)
        parts = (new, other) if self.name == "real" else (other, new)
        return trace.apply("complex", *parts)

    def strides(self, base: Strides) -> Strides:
        return tuple([2 * s for s in base])


@record(frozen=True)
class Gathered:
    """Elements at fixed places of the flattened base: overlapping windows and free strides.

    places : i64, the number of each shown element in C order of the base
    distinct : whether no element is shown twice; only then may it be written
    """

    places: Literal
    view_strides: Strides
    distinct: bool

    @property
    def shape(self) -> Shape:
        shape: Shape = self.places.array.shape
        return shape

    @property
    def writeable(self) -> bool:
        return self.distinct

    def dtype(self, base: DType) -> DType:
        return base

    def read(self, trace: Trace, base: Content) -> Content:
        if not isinstance(base, Value):
            chosen: Array = base.reshape(-1)[self.places.array]
            return chosen
        flat = reshape_content(trace, base, (base.type.size,))
        return trace.apply("gather", flat, self.places.array, axis=0)

    def write(self, trace: Trace, base: Content, new: Content) -> Content:
        shape = shape_of(base)
        flat = reshape_content(trace, base, (int(np.prod(shape, dtype=I64)),))
        places = self.places.array.reshape(-1)
        updates = reshape_content(trace, new, places.shape)
        return reshape_content(trace, trace.apply("scatter", flat, places, updates, axis=0), shape)

    def strides(self, base: Strides) -> Strides:
        return self.view_strides
