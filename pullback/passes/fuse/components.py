"""Short axes written out: the coordinates of points, the channels of pixels.

Arrays of shape [n, 3] with arithmetic between the coordinates (norms, products of vectors, rotations) would become
kernels over [n, 3] and over [n] in turn, each waiting for the other. Written out along the short axis, all of it is one
kernel over [n]. Three things are rewritten, all with slices that fusion turns into index arithmetic:

- a reduction over a short axis becomes the reduced elements, combined one by one;
- a reduction that keeps a short axis becomes one reduction for each element of it;
- a value wanted in memory is made element by element of the short axis, and then put together.

The last two only where work that does not depend on the short axis would be done again for each of its elements.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from pullback.ir.graph import Attrs, Op, Region, Value
from pullback.ir.kernel import STORE_KINDS
from pullback.ir.opdef import Reduce, Scalar, View
from pullback.ir.ops import OPS
from pullback.ir.types import Shape, TensorType
from pullback.passes.base import Rebuild, with_operands
from pullback.passes.fuse.cost import compute_cost, load_cost
from pullback.passes.fuse.table import wanted_in_memory

FOLD = 4
"""A reduction of so many elements is written out, and an axis along which costly values are copied."""

SHORT = 12
"""An axis of so many elements is written out that is put together from pieces."""

MANY = 64
"""Elements beside the short axis, from which on all this is worth it."""

HEAVY = 0.3
"""Nanoseconds that a value must cost to be worth not computing again for each element of a short axis."""

_COMBINE = {
    "sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "nanmax": "fmax", "nanmin": "fmin",
    "any": "bitwise_or", "all": "bitwise_and",
}  # fmt: skip

F16 = np.dtype(np.float16)

Axes = frozenset[int]
NONE: Axes = frozenset()


def write_out(region: Region) -> tuple[Region, set[Value]]:
    """The region with short axes written out, and the values that are to be stored as they are."""
    if not any(_has_short_axis(v.type.shape) for op in region.ops for v in op.results):
        return region, set()
    return _Writer(region).write()


def _has_short_axis(shape: Shape) -> bool:
    return len(shape) > 1 and any(1 < n <= SHORT for n in shape)


class _Writer:
    """What is known of each value: `mixed`, the short axes along which work would be repeated; `chains`, what it costs;
    `fixed`, that it contains costly work which a value in memory shares, in a kernel over all axes."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.rebuild = Rebuild()
        self.stored: set[Value] = set()
        self._mixed: dict[Value, Axes] = {}
        self._chains: dict[Value, float] = {}
        self._fixed: set[Value] = set()
        self._wanted = wanted_in_memory(region)
        self._whole: dict[Value, Value] = {}
        self._parts: dict[tuple[Value, int, int], Value] = {}

    def write(self) -> tuple[Region, set[Value]]:
        for op in self.region.ops:
            self._learn(op)
            if isinstance(op.opdef.lower, Reduce) and op.opdef.lower.kind in STORE_KINDS:
                self._reduction(op)
            else:
                self._other(op)
        if not self.rebuild.changed:
            return self.region, set()
        results = tuple([self._in_memory(v) for v in self.region.results])
        return Region(self.region.params, tuple(self.rebuild.ops), results), self.stored

    # ------------------------------------------------------------------ what is known of values

    def _learn(self, op: Op) -> None:
        inputs = [self._chains.get(v, load_cost(v.type.dtype, v.type.size)) for v in op.operands]
        mixed = self._axes(op)
        chain = min(compute_cost(op)[0] + sum(inputs), 1e3) if _is_inlined(op) else None
        for value in op.results:
            if mixed:
                self._mixed[value] = mixed
            if chain is not None:
                self._chains[value] = chain
                if self._is_fixed(op, value, chain):
                    self._fixed.add(value)

    def _is_fixed(self, op: Op, value: Value, chain: float) -> bool:
        if any(v in self._fixed for v in op.operands):
            return True
        return value in self._wanted and chain >= HEAVY and self._worth(value, all_axes(value)) is None

    def _axes(self, op: Op) -> Axes:
        inputs = [self._mixed.get(v, NONE) for v in op.operands]
        if isinstance(op.opdef.lower, Scalar):
            return frozenset().union(*inputs)
        match op.name:
            case "broadcast":
                dims, shape = op.attrs["dims"], op.attrs["shape"]
                kept = {dims[a] for a in inputs[0]}
                return frozenset(kept | self._short(shape, set(range(len(shape))) - {*dims}, FOLD, op.operands))
            case "slice" | "reverse":
                return inputs[0]
            case "transpose":
                return frozenset(k for k, p in enumerate(op.attrs["perm"]) if p in inputs[0])
            case "reshape":
                return _through_reshape(inputs[0], op.operands[0].type.shape, op.results[0].type.shape)
            case "concatenate" | "pad":
                axes = {op.attrs["axis"]} if op.name == "concatenate" else _padded_axes(op)
                return self._short(op.results[0].type.shape, axes, SHORT, op.operands).union(*inputs)
        return NONE

    def _short(self, shape: Shape, axes: set[int], most: int, operands: Sequence[Value]) -> Axes:
        """Those of `axes` that are short, if some operand costs enough."""
        if max([self._chains.get(v, 0.0) for v in operands], default=0.0) < HEAVY:
            return NONE
        return frozenset(a for a in axes if 1 < shape[a] <= most)

    def _worth(self, value: Value, axes: Axes) -> int | None:
        """The mixed axis among `axes` to write out."""
        shape, size = value.type.shape, value.type.size
        mixed = self._mixed.get(value, NONE) & axes
        found = [a for a in mixed if 1 < shape[a] <= SHORT and size >= MANY * shape[a]]
        return max(found) if found else None

    # ------------------------------------------------------------------ ops

    def _other(self, op: Op) -> None:
        """Ops that read memory get values put together; elementwise ops and views go on with what they had."""
        if _is_inlined(op):
            self.rebuild.keep(op, self.rebuild.current(op))
            return
        operands = tuple([self._in_memory(v) for v in op.operands])
        self.rebuild.keep(op, op if operands == op.operands else with_operands(op, operands, op.regions))

    def _in_memory(self, old: Value) -> Value:
        """The value as something that reads memory gets it."""
        axis = self._worth(old, all_axes(old))
        value = self.rebuild.value(old)
        if axis is None or old.op is None or old not in self._wanted:
            return value
        if old not in self._whole:
            parts = [self._part(value, axis, k) for k in range(old.type.shape[axis])]
            self.stored.update(parts)
            self._whole[old] = self._together(parts, axis, old.type)
        return self._whole[old]

    def _reduction(self, op: Op) -> None:
        (old,), axes = op.operands, op.attrs["axes"]
        x = self.rebuild.value(old)
        reduced = [old.type.shape[a] for a in axes]
        elements = 1
        for n in reduced:
            elements *= n
        within, beside = self._worth(old, frozenset(axes)), self._worth(old, all_axes(old) - {*axes})
        rounds_in_between = old.type.dtype == F16 and op.name in ("sum", "prod")  # a reduction rounds once
        if old in self._fixed or rounds_in_between:
            self.rebuild.keep(op, self.rebuild.current(op))
        elif 1 < elements <= FOLD and op.results[0].type.size >= MANY:
            self._chains[op.results[0]] = elements * self._chains.get(old, 0.0) + HEAVY
            self._replace(op, self._folded(op.name, x, axes))
        elif within is not None and len(axes) > 1:
            rest = tuple([a - (a > within) for a in axes if a != within])
            self._replace(op, self._reduced(op, self._folded(op.name, x, (within,)), rest))
        elif beside is not None:
            rest = tuple([a - (a > beside) for a in axes])
            parts = [self._part(x, beside, k) for k in range(old.type.shape[beside])]
            place = beside - sum(a < beside for a in axes)
            self._replace(op, self._together([self._reduced(op, p, rest) for p in parts], place, op.results[0].type))
        else:
            self.rebuild.keep(op, self.rebuild.current(op))

    def _replace(self, op: Op, value: Value) -> None:
        self.rebuild.replace(op, [value])

    # ------------------------------------------------------------------ emitting

    def _emit(self, name: str, operands: Sequence[Value], type: TensorType, like: Value, **attrs: object) -> Value:
        loc = like.op.loc if like.op is not None else None
        op = Op(OPS[name], tuple(operands), Attrs(attrs), (type,), (), loc)
        self.rebuild.ops.append(op)
        self.rebuild.changed = True
        return op.results[0]

    def _part(self, x: Value, axis: int, k: int) -> Value:
        """x[..., k, ...], without the axis."""
        key = (x, axis, k)
        if key not in self._parts:
            shape = x.type.shape
            start = tuple([k if a == axis else 0 for a in range(len(shape))])
            stop = tuple([k + 1 if a == axis else n for a, n in enumerate(shape)])
            thin = x.type.with_shape(tuple([b - a for a, b in zip(start, stop, strict=True)]))
            cut = self._emit("slice", [x], thin, x, start=start, stop=stop, step=(1,) * len(shape))
            flat = x.type.with_shape((*shape[:axis], *shape[axis + 1 :]))
            self._parts[key] = self._emit("reshape", [cut], flat, x, shape=flat.shape)
        return self._parts[key]

    def _folded(self, kind: str, x: Value, axes: Sequence[int]) -> Value:
        """A reduction as a chain of binary ops."""
        total: Value | None = None
        for at in product(*[range(x.type.shape[a]) for a in axes]):
            part = x
            for axis, k in sorted(zip(axes, at, strict=True), reverse=True):
                part = self._part(part, axis, k)
            total = part if total is None else self._emit(_COMBINE[kind], [total, part], part.type, x)
        assert total is not None
        return total

    def _reduced(self, op: Op, x: Value, axes: tuple[int, ...]) -> Value:
        type = x.type.with_shape(tuple([n for a, n in enumerate(x.type.shape) if a not in axes]))
        return self._emit(op.name, [x], type, op.results[0], **{**op.attrs, "axes": axes})

    def _together(self, parts: Sequence[Value], axis: int, type: TensorType) -> Value:
        """Stack along a new axis."""
        thin = type.with_shape(tuple([1 if a == axis else n for a, n in enumerate(type.shape)]))
        columns = [self._emit("reshape", [p], thin, p, shape=thin.shape) for p in parts]
        return self._emit("concatenate", columns, type, parts[0], axis=axis)


def all_axes(value: Value) -> Axes:
    return frozenset(range(value.type.ndim))


def _is_inlined(op: Op) -> bool:
    """Whether kernels compute the op where they need it."""
    return op.name in ("iota", "gather") or isinstance(op.opdef.lower, Scalar | View)


def _padded_axes(op: Op) -> set[int]:
    widths: Mapping[str, Sequence[int]] = op.attrs
    return {a for a, (low, high) in enumerate(zip(widths["low"], widths["high"], strict=True)) if low or high}


def _through_reshape(axes: Axes, shape: Shape, target: Shape) -> Axes:
    """Axes that a reshape keeps: those with the same number of elements before and behind them."""
    found = set()
    for a in axes:
        before = 1
        for n in shape[:a]:
            before *= n
        reached = 1
        for b, n in enumerate(target):
            if reached == before and n == shape[a]:
                found.add(b)
                break
            reached *= n
    return frozenset(found)
