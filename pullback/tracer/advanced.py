"""Index arrays: reading gathers, writing scatters, both along one axis into which the indexed axes are folded."""

import math
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.graph import Value
from pullback.ir.types import I64, DType, Shape
from pullback.record import record
from pullback.tracer.index import Advanced, Parsed, wrapped_index
from pullback.tracer.layout import Strides
from pullback.tracer.operands import broadcast
from pullback.tracer.steps import reshape_content, transpose_content
from pullback.tracer.trace import Content, Trace, shape_of


@record(frozen=True)
class Folded:
    """Indexed axes folded into one.

    perm : brings the indexed axes of the view side by side, at `at`
    folded : shape of the view after that, with the indexed axes as one
    at : the folded axis
    index : i64, within range
    shape : shape of the result
    """

    perm: tuple[int, ...]
    moved: Shape
    folded: Shape
    at: int
    index: Content
    shape: Shape


def fold(trace: Trace, view_shape: Shape, parsed: Parsed) -> Folded:
    """Work out how the index arrays of `parsed` address a view of `view_shape`."""
    axes = [a.axis for a in parsed.advanced]
    indices = _broadcast_indices(trace, parsed.advanced, view_shape)
    rest = [k for k in range(len(view_shape)) if k not in axes]
    at = axes[0] if parsed.adjacent else 0
    perm = (*rest[:at], *axes, *rest[at:])
    moved = tuple([view_shape[p] for p in perm])
    lengths = [view_shape[a] for a in axes]
    folded = (*moved[:at], math.prod(lengths), *moved[at + len(axes) :])
    flat = _flat_index(trace, indices, lengths)
    shape = (*moved[:at], *shape_of(flat), *moved[at + len(axes) :])
    return Folded(perm, moved, folded, at, flat, shape)


def _broadcast_indices(trace: Trace, advanced: tuple[Advanced, ...], view_shape: Shape) -> list[Content]:
    wrapped = [wrapped_index(trace, a.index, view_shape[a.axis], a.axis) for a in advanced]
    shapes = [shape_of(w) for w in wrapped]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " ".join(str(s).replace(" ", "") for s in shapes)
        raise trace.error(
            ShapeError, f"shape mismatch: indexing arrays could not be broadcast together with shapes {listed}"
        ) from None
    if not any(isinstance(w, Value) for w in wrapped):
        return [np.broadcast_to(np.asarray(w), shape) for w in wrapped]
    return [broadcast(trace, w, shape) for w in wrapped]


def _flat_index(trace: Trace, indices: list[Content], lengths: list[int]) -> Content:
    total = indices[0]
    for index, n in zip(indices[1:], lengths[1:], strict=True):
        if isinstance(total, Value) or isinstance(index, Value):
            scaled = trace.apply("mul", total, trace.full(I64, shape_of(total), n))
            total = trace.apply("add", scaled, index)
        else:
            total = total * n + index
    return total


def gather(trace: Trace, content: Content, plan: Folded) -> Content:
    """The elements that the index arrays choose."""
    flat = reshape_content(trace, transpose_content(trace, content, plan.perm), plan.folded)
    if not isinstance(plan.index, Value):
        run = _as_run(plan.index, plan.folded[plan.at])
        if run is not None:
            return _read_run(trace, flat, plan.at, run)
        if math.prod(plan.shape) == 0:
            return np.zeros(plan.shape, _dtype(content))
    return trace.apply("gather", flat, plan.index, axis=plan.at)


def _dtype(content: Content) -> Any:
    return content.type.dtype if isinstance(content, Value) else content.dtype


def scatter(trace: Trace, content: Content, plan: Folded, new: Content, op: str = "scatter") -> Content:
    """`content` with the chosen elements replaced (or, with `scatter_add`, added to); `new` has the result's shape."""
    if math.prod(plan.shape) == 0:
        return content
    flat = reshape_content(trace, transpose_content(trace, content, plan.perm), plan.folded)
    run = _as_run(plan.index, plan.folded[plan.at]) if not isinstance(plan.index, Value) and op == "scatter" else None
    if run is not None:
        written = _write_run(trace, flat, plan.at, run, new)
    else:
        written = trace.apply(op, flat, plan.index, new, axis=plan.at)
    back = reshape_content(trace, written, plan.moved)
    return transpose_content(trace, back, tuple(int(k) for k in np.argsort(plan.perm)))


@record(frozen=True)
class Picked:
    """A step of a view: traced integer indices, whose axes disappear. NumPy gives a view there, and so it is here."""

    source: Shape
    plan: Folded
    axes: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        return self.plan.shape

    @property
    def writeable(self) -> bool:
        return True

    def dtype(self, base: DType) -> DType:
        return base

    def read(self, trace: Trace, base: Content) -> Content:
        return gather(trace, base, self.plan)

    def write(self, trace: Trace, base: Content, new: Content) -> Content:
        return scatter(trace, base, self.plan, new)

    def strides(self, base: Strides) -> Strides:
        return tuple([s for k, s in enumerate(base) if k not in self.axes])


# ------------------------------------------------------------------ index arrays that are slices


def _as_run(index: Any, n: int) -> tuple[int, int, int] | None:
    """(start, step, length) of a constant one-axis index that is evenly spaced: then it is a slice, with no gather."""
    if index.ndim != 1 or index.size == 0:
        return None
    if index.size == 1:
        return int(index[0]), 1, 1
    step = int(index[1]) - int(index[0])
    if step == 0 or not bool((np.diff(index) == step).all()):
        return None
    return int(index[0]), step, index.size


def _run_attributes(shape: Shape, axis: int, run: tuple[int, int, int]) -> dict[str, Any]:
    start, step, length = run
    low = min(start, start + step * (length - 1))
    high = max(start, start + step * (length - 1)) + 1
    spots = [(0, n, 1) for n in shape]
    spots[axis] = (low, high, abs(step))
    return {name: tuple([s[k] for s in spots]) for k, name in enumerate(("start", "stop", "step"))}


def _read_run(trace: Trace, flat: Content, axis: int, run: tuple[int, int, int]) -> Content:
    piece = trace.apply("slice", flat, **_run_attributes(shape_of(flat), axis, run))
    return trace.apply("reverse", piece, axes=(axis,)) if run[1] < 0 else piece


def _write_run(trace: Trace, flat: Content, axis: int, run: tuple[int, int, int], new: Content) -> Content:
    if run[1] < 0:
        new = trace.apply("reverse", new, axes=(axis,))
    return trace.apply("update", flat, new, **_run_attributes(shape_of(flat), axis, run))
