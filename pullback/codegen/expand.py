"""Short axes written out: a kernel over (i, j, k < 3) becomes one over (i, j) whose body does the work of all three k.

What does not depend on k is then computed once, sums over k are sums of three values, and accumulators for each k stand
in registers side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pullback.codegen.spec import KernelSpec, make_spec
from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs, Literal, Op, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.kernel import Load, Store
from pullback.ir.ops import OPS

ALWAYS_UP_TO = 4
SCATTERED_UP_TO = 8
"""Axes that long are written out: always, or where nothing is contiguous along them."""

LEAST_LANES = 8
"""Another axis at least so long must remain to fill vectors."""

_MOST_WEIGHT = 240
_MOST_ACCESSES = 48
_COMBINE = {
    "sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "nanmax": "fmax", "nanmin": "fmin",
    "any": "bitwise_or", "all": "bitwise_and",
}  # fmt: skip


def expand_axis(spec: KernelSpec, axis: int) -> KernelSpec:
    """The same kernel without `axis`, whose length is not 0."""
    return _Expansion(spec, axis).result()


def axis_to_expand(spec: KernelSpec, sizes: Mapping[int, int]) -> int | None:
    """An axis worth writing out among those that did not merge with others; `sizes` are the merged axes."""
    for axis, n in sorted(sizes.items(), key=lambda item: item[1]):
        others = [m for other, m in sizes.items() if other != axis]
        if n != spec.space[axis] or not 2 <= n <= SCATTERED_UP_TO or max(others, default=0) < LEAST_LANES:
            continue
        if n > ALWAYS_UP_TO and _is_contiguous_along(spec, axis):
            continue
        accesses = len(spec.loads) + len(spec.stores)
        if spec.weight * n <= _MOST_WEIGHT and accesses * n <= _MOST_ACCESSES:
            return axis
    return None


def _is_contiguous_along(spec: KernelSpec, axis: int) -> bool:
    positions = [load.at for load in spec.loads] + [store.at for store in spec.stores]
    return any(abs(at.coefficient(axis)) == 1 for at in positions)


class _Expansion:
    """A body being rebuilt; each old value has become one value, or one for each index of the axis."""

    def __init__(self, spec: KernelSpec, axis: int) -> None:
        self.spec = spec
        self.axis = axis
        self.count = spec.space[axis]
        self.builder = Builder()
        self.values: dict[Value, list[Value]] = {}
        self.loads: list[Load] = []

    def result(self) -> KernelSpec:
        body = self.spec.body
        for param, load in zip(body.params, self.spec.loads, strict=True):
            self.values[param] = [self._param(param, moved) for moved in self._loads(load)]
        for op in body.ops:
            self.values[op.results[0]] = self._ops(op)
        stores, targets, results = self._stores()
        space = tuple(1 if k == self.axis else n for k, n in enumerate(self.spec.space))
        made = make_spec(space, tuple(self.loads), stores, self.spec.operands, self.builder.region(results))
        return replace(made, targets=targets, contracts=self.spec.contracts)

    def _at(self, at: Affine, index: int) -> Affine:
        coefficient = at.coefficient(self.axis)
        terms = tuple(term for term in at.terms if term[0] != self.axis)
        return Affine(at.offset + coefficient * index, terms)

    def _bounds(self, bounds: Sequence[Bound], index: int) -> tuple[Bound, ...]:
        return tuple(Bound(self._at(bound.index, index), bound.low, bound.high) for bound in bounds)

    def _depends(self, at: Affine, bounds: Sequence[Bound]) -> bool:
        return any(a.coefficient(self.axis) for a in (at, *(bound.index for bound in bounds)))

    def _loads(self, load: Load) -> list[Load]:
        indices = range(self.count) if self._depends(load.at, load.bounds) else range(1)
        return [Load(load.operand, self._at(load.at, k), self._bounds(load.bounds, k)) for k in indices]

    def _param(self, param: Value, load: Load) -> Value:
        self.loads.append(load)
        return self.builder.param(param.type)

    # ---------------------------------------------------------------- body

    def _value(self, value: Value, index: int) -> Value:
        values = self.values[value]
        return values[index if len(values) > 1 else 0]

    def _ops(self, op: Op) -> list[Value]:
        varies = any(len(self.values[v]) > 1 for v in op.operands)
        if op.name == "index":
            varies = op.attrs["axis"] == self.axis
        elif op.name == "within":
            varies = varies or self._depends(Affine(), op.attrs["bounds"])
        return [self._op(op, k) for k in (range(self.count) if varies else range(1))]

    def _op(self, op: Op, index: int) -> Value:
        if op.name == "index" and op.attrs["axis"] == self.axis:
            return self.builder.emit(OPS["constant"], value=Literal(np.int64(index)))
        attrs = op.attrs
        if op.name == "within":
            attrs = Attrs(bounds=self._bounds(attrs["bounds"], index))
        return self.builder.add(op.opdef, [self._value(v, index) for v in op.operands], attrs).results[0]

    # ---------------------------------------------------------------- stores

    def _stores(self) -> tuple[tuple[Store, ...], tuple[int, ...], list[Value]]:
        stores, targets, results = [], [], []
        for k, (store, value) in enumerate(zip(self.spec.stores, self.spec.body.results, strict=True)):
            target = self.spec.target(k)
            if store.at.coefficient(self.axis):
                for index in range(self.count):
                    stores.append(Store(store.kind, store.type, self._at(store.at, index)))
                    targets.append(target)
                    results.append(self._value(value, index))
            else:
                stores.append(store)
                targets.append(target)
                results.append(self._combined(store, [self._value(value, index) for index in range(self.count)]))
        return tuple(stores), tuple(targets), results

    def _combined(self, store: Store, values: list[Value]) -> Value:
        """The values of all indices in one, pairwise."""
        opdef = OPS[_COMBINE[store.kind]]
        while len(values) > 1:
            pairs = [self.builder.emit(opdef, x, y) for x, y in zip(values[::2], values[1::2], strict=False)]
            values = pairs + values[len(pairs) * 2 :]
        return values[0]
