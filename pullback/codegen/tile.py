"""Kernels that read one array along another axis than they write: cut into squares of one vector each way.

An axis along which the strided array is contiguous is split in (tiles, lanes) and the inner part written out
(`expand`). The body then wants elements k, k + 1, ... at each lane of the vector axis, and these are whole vectors,
transposed in registers (`interleave`), where lane by lane each would be a load of its own from another cache line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pullback.codegen.expand import expand_axis
from pullback.codegen.nest import merged_axes, vector_axis, vector_lanes
from pullback.codegen.spec import KernelSpec, make_spec, remap
from pullback.codegen.target import Target
from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs, Literal, Op, Region, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.kernel import Load, Store
from pullback.ir.ops import OPS

_MOST_WEIGHT = 160


def tiled(spec: KernelSpec, target: Target) -> list[KernelSpec]:
    """The kernel, or the kernels for its whole tiles and for what is left."""
    axis = _axis_to_tile(spec, target)
    if axis is None:
        return [spec]
    lanes = vector_lanes(spec, target)
    n = spec.space[axis]
    whole = n // lanes * lanes
    parts = [expand_axis(_split(spec, axis, whole, lanes), len(spec.space))]
    if whole < n:
        parts.append(_part(spec, axis, whole, n))
    return parts


def _axis_to_tile(spec: KernelSpec, target: Target) -> int | None:
    """An axis along which a load is contiguous that strides along the vector axis."""
    lanes = vector_lanes(spec, target)
    sizes, table = merged_axes(spec)
    vector = vector_axis(spec, sizes, table, lanes)
    if vector is None or sizes[vector] < lanes or spec.weight * lanes > _MOST_WEIGHT:
        return None
    for load in spec.loads:
        at = remap(load.at, table)
        if load.bounds or abs(at.coefficient(vector)) <= lanes or spec.operands[load.operand].dtype.kind == "c":
            continue
        for axis, coefficient in at.terms:
            if coefficient == 1 and _may_split(spec, sizes, axis, lanes):
                return axis
    return None


def _may_split(spec: KernelSpec, sizes: Mapping[int, int], axis: int, lanes: int) -> bool:
    """Is the axis long enough, parallel in every store, and itself (not merged with others).

    Accumulators are set up for the whole result, so a kernel that accumulates must remain one.
    """
    parallel = all(store.at.coefficient(axis) for store in spec.stores)
    whole = sizes[axis] % lanes == 0 or all(store.kind == "store" for store in spec.stores)
    return parallel and whole and sizes[axis] == spec.space[axis] >= lanes


def _part(spec: KernelSpec, axis: int, start: int, stop: int) -> KernelSpec:
    """The kernel for indices start..stop-1 of the axis."""
    space = tuple(stop - start if k == axis else n for k, n in enumerate(spec.space))
    return _moved(spec, space, axis, lambda at: at.shift(at.coefficient(axis) * start), start)


def _split(spec: KernelSpec, axis: int, whole: int, lanes: int) -> KernelSpec:
    """The kernel for the first `whole` indices of the axis, cut in tiles of `lanes`, which are the last axis."""
    inner = len(spec.space)
    space = (*(whole // lanes if k == axis else n for k, n in enumerate(spec.space)), lanes)

    def moved(at: Affine) -> Affine:
        coefficient = at.coefficient(axis)
        if not coefficient:
            return at
        terms = [(a, c * lanes if a == axis else c) for a, c in at.terms]
        return Affine(at.offset, (*terms, (inner, coefficient)))

    return _moved(spec, space, axis, moved, 0, lanes)


def _moved(
    spec: KernelSpec,
    space: tuple[int, ...],
    axis: int,
    moved: Callable[[Affine], Affine],
    start: int,
    lanes: int = 0,
) -> KernelSpec:
    """The kernel over another space, in which index `axis` is `start + axis`, or `axis * lanes + the last axis`."""

    def bounds(old: tuple[Bound, ...]) -> tuple[Bound, ...]:
        return tuple(Bound(moved(bound.index), bound.low, bound.high) for bound in old)

    builder = Builder()

    def index() -> Value:
        outer = builder.emit(OPS["index"], axis=axis)
        if not lanes:
            return builder.emit(OPS["add"], outer, _number(builder, start))
        scaled = builder.emit(OPS["mul"], outer, _number(builder, lanes))
        return builder.emit(OPS["add"], scaled, builder.emit(OPS["index"], axis=len(space) - 1))

    loads = tuple(Load(load.operand, moved(load.at), bounds(load.bounds)) for load in spec.loads)
    stores = tuple(Store(store.kind, store.type, moved(store.at)) for store in spec.stores)
    made = make_spec(space, loads, stores, spec.operands, _rebuilt(builder, spec.body, axis, index, bounds))
    return replace(made, targets=spec.targets, contracts=spec.contracts)


def _number(builder: Builder, n: int) -> Value:
    return builder.emit(OPS["constant"], value=Literal(np.int64(n)))


def _rebuilt(
    builder: Builder,
    body: Region,
    axis: int,
    index: Callable[[], Value],
    bounds: Callable[[tuple[Bound, ...]], tuple[Bound, ...]],
) -> Region:
    values = {param: builder.param(param.type) for param in body.params}
    for op in body.ops:
        values[op.results[0]] = _moved_op(builder, op, [values[v] for v in op.operands], axis, index, bounds)
    return builder.region([values[v] for v in body.results])


def _moved_op(
    builder: Builder,
    op: Op,
    operands: list[Value],
    axis: int,
    index: Callable[[], Value],
    bounds: Callable[[tuple[Bound, ...]], tuple[Bound, ...]],
) -> Value:
    if op.name == "index" and op.attrs["axis"] == axis:
        return index()
    attrs = Attrs(bounds=bounds(op.attrs["bounds"])) if op.name == "within" else op.attrs
    return builder.add(op.opdef, operands, attrs).results[0]
