"""Tiny kernels, written out point by point: straight scalar code without loops.

Everything is loaded and computed before anything is stored, so a result may take the place of an operand.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from pullback.codegen import memory
from pullback.codegen.gathers import load_clamped
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.llvm import V, const
from pullback.codegen.reduce import Reducer, alone
from pullback.codegen.scalars import Scalars
from pullback.codegen.spec import CALL, KernelSpec
from pullback.errors import CodegenError
from pullback.ir.graph import Op, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.kernel import Load
from pullback.ir.opdef import Scalar
from pullback.ir.types import I64

TINY_WEIGHT = 96
"""Kernels whose points together weigh at most so much are written out."""


def is_tiny(spec: KernelSpec) -> bool:
    """Is the kernel worth writing out; transcendental functions in few points only, for their code is long."""
    return 0 < spec.points * max(1, spec.weight) <= (TINY_WEIGHT if spec.points > 1 else 16 * CALL)


class _Target(NamedTuple):
    """An element of a result."""

    store: int
    at: int


def emit_unrolled(s: Scalars, spec: KernelSpec, operands: Sequence[V], results: Sequence[V]) -> None:
    """Emit the kernel at the present place."""
    emitter = _Unrolled(s, spec, operands)
    for point in itertools.product(*map(range, spec.space)):
        emitter.compute(point)
    for target, lanes in emitter.values.items():
        store = spec.stores[target.store]
        lane = lanes[0] if store.kind == "store" else _reduced(s, Reducer(store.kind, store.type.dtype), lanes)
        memory.store(s.b, lane, memory.offset(s.b, results[target.store], store.type.dtype, target.at))


def _reduced(s: Scalars, reducer: Reducer, lanes: Sequence[Lane]) -> Lane:
    state = reducer.merge_all(s, [reducer.first(s, lane) for lane in lanes])
    return alone(s, reducer.kind, reducer.close(s, reducer.add_long(s, None, state), 1, across=False))


def _value_at(at: Affine, point: tuple[int, ...]) -> int:
    return at.offset + sum(c * point[axis] for axis, c in at.terms)


def _hold(bounds: Sequence[Bound], point: tuple[int, ...]) -> bool:
    return all(bound.low <= _value_at(bound.index, point) < bound.high for bound in bounds)


class _Unrolled:
    """Values of the points, one after the other; loads and constants are shared."""

    def __init__(self, s: Scalars, spec: KernelSpec, operands: Sequence[V]) -> None:
        self.s = s
        self.spec = spec
        self.operands = operands
        self.values: dict[_Target, list[Lane]] = {}
        self._loaded: dict[tuple[int, int], Lane] = {}

    def compute(self, point: tuple[int, ...]) -> None:
        body = self.spec.body
        env: dict[Value, Lane] = {}
        for param, load in zip(body.params, self.spec.loads, strict=True):
            env[param] = self._load(load, point)
        for op in body.ops:
            env[op.results[0]] = self._computed(op, [env[v] for v in op.operands], point)
        for k, (store, value) in enumerate(zip(self.spec.stores, body.results, strict=True)):
            self.values.setdefault(_Target(k, _value_at(store.at, point)), []).append(env[value])

    def _load(self, load: Load, point: tuple[int, ...]) -> Lane:
        dtype = self.spec.operands[load.operand].dtype
        if not _hold(load.bounds, point):
            return lane_constant(dtype, 0, 1)
        place = (load.operand, _value_at(load.at, point))
        if place not in self._loaded:
            address = memory.offset(self.s.b, self.operands[load.operand], dtype, place[1])
            self._loaded[place] = memory.load(self.s.b, dtype, address)
        return self._loaded[place]

    def _computed(self, op: Op, operands: list[Lane], point: tuple[int, ...]) -> Lane:
        match op.name:
            case "constant":
                return lane_constant(op.results[0].type.dtype, op.attrs["value"].array, 1)
            case "index":
                return Lane(I64, const("i64", point[op.attrs["axis"]]))
            case "within":
                x = operands[0]
                return x if _hold(op.attrs["bounds"], point) else lane_constant(x.dtype, 0, 1)
            case "load_at":
                return load_clamped(self.s, op, operands[0], self.operands, self.spec)
        if not isinstance(op.opdef.lower, Scalar):
            raise CodegenError(f"{op.name} cannot stand in the body of a kernel")
        lane: Lane = op.opdef.lower.emit(self.s, op, *operands)
        return lane
