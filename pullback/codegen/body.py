"""The body of a kernel, emitted at the loop level where each of its values belongs.

A value is computed in the loops it depends on and no deeper: what does not change in the inner loop stands before it,
with its splat. Along the vector level a value is a vector of lanes, in as many copies as one turn has vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from pullback.codegen import memory
from pullback.codegen.gathers import load_clamped, vector_steps
from pullback.codegen.interleave import (
    LoadGroup,
    StoreGroup,
    deinterleave,
    interleave,
    load_groups,
    store_groups,
    transpose,
)
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.llvm import FunctionBuilder, V, const, lanes_of
from pullback.codegen.memory import Mask
from pullback.codegen.nest import Nest
from pullback.codegen.reduce import Reducer, State, alone, combine
from pullback.codegen.scalars import Scalars
from pullback.codegen.segments import holds_statically, level_segments
from pullback.errors import CodegenError
from pullback.ir.graph import Op, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.opdef import Scalar
from pullback.ir.types import BOOL, F32, F64, I64, DType

Index: TypeAlias = V | int
Env: TypeAlias = dict[tuple[Value, int, int], Lane]
Stream: TypeAlias = tuple[str, tuple[tuple[int, int], ...]]

_ZEROS = bytes(16)


class BodyEmitter:
    """Emits values, loads and stores of one nest into one function.

    operands, results : addresses of the buffers
    ragged : may a range of the vector level end within a turn, where its ends are not known
    streamed : stores that go past the cache
    """

    def __init__(
        self, s: Scalars, nest: Nest, operands: Sequence[V], results: Sequence[V], ragged: bool = True
    ) -> None:
        self.s = s
        self.b: FunctionBuilder = s.b
        self.nest = nest
        self.operands = operands
        self.results = results
        self.ragged = ragged
        self.reducers = [Reducer(store.kind, store.type.dtype) for store in nest.stores]
        self.ranges = [(0, n) for n in nest.sizes]
        self.lanes, self.copies = nest.lanes, 1
        self.streamed: frozenset[int] = frozenset()
        self._end: Index | None = None
        self._mask: Mask = None
        self._index: list[Index] = [0] * nest.depth
        self._env: list[Env] = [{}]
        self._streams: dict[Stream, tuple[V, int]] = {}
        self._schedule = _schedule(nest)
        self._splatted = _read_by_vectors(nest)
        self._loads = dict(zip(nest.spec.body.params, nest.loads, strict=True))
        self._load_groups = load_groups(nest)
        self._steps = vector_steps(nest)
        self._store_groups = store_groups(nest)
        self._wide: dict[tuple[LoadGroup, int], list[V]] = {}
        self._start_streams()

    # ---------------------------------------------------------------- places

    def segments(self, level: int) -> list[tuple[int, int]]:
        return level_segments(self.nest, level)

    def state_lanes(self, k: int) -> int:
        """Lanes of an accumulator: all of a full vector where lanes are summed, else those of the present turn."""
        if self.nest.vector < 0:
            return 1
        across = self.nest.register_level(self.nest.stores[k]) <= self.nest.vector
        return self.nest.lanes if across else self.lanes

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is forgotten behind."""
        streams, ranges, index, shared = self._streams, list(self.ranges), list(self._index), self.s.shared
        wide, self._wide = self._wide, {}
        self._env.append({})
        self._streams = dict(streams)
        self.s.shared = None if shared is None else dict(shared)
        yield
        self._env.pop()
        self._wide = wide
        self._streams, self.ranges, self._index, self.s.shared = streams, ranges, index, shared

    def begin_vectors(self, lanes: int, copies: int, end: Index | None) -> None:
        """Turns of the vector level follow; lanes at and behind the index `end` take no part."""
        self.lanes, self.copies, self._end, self._mask = lanes, copies, end, None

    def end_vectors(self) -> None:
        self.lanes, self.copies, self._end, self._mask = self.nest.lanes, 1, None, None

    def enter(self, level: int, index: Index) -> None:
        """Begin a turn of `level`: addresses move on, values that wait for this level are computed."""
        self._index[level] = index
        if isinstance(index, int):
            width = self.lanes * self.copies if level == self.nest.vector else 1
            self.ranges[level] = (index, min(index + width, self.ranges[level][1]))
        if level == self.nest.vector:
            self._mask = self._mask_from(index)
        for stream, (pointer, at) in self._streams.items():
            coefficient = _coefficient(stream[1], level)
            if coefficient:
                self._streams[stream] = self._moved(stream, pointer, at, coefficient, index)
        self.define(level + 1)

    def _mask_from(self, index: Index) -> Mask:
        """The lanes of the vector at `index` that take part."""
        end = self._end
        if end is None:
            return None
        if isinstance(end, V):
            left = self.b.sub(end, index)
        elif isinstance(index, int):
            return end - index
        else:
            left = self.b.rsub(end, index)
        return self.b.icmp("ugt", memory.splat_value(self.b, left, self.lanes), memory.lane_numbers(self.lanes))

    # ---------------------------------------------------------------- addresses

    def _start_streams(self) -> None:
        """One running address for each buffer and set of strides."""
        used = {value for values in self._schedule.values() for value in values}
        for value, load in self._loads.items():
            if value in used:
                self._streams[f"operand{load.operand}", load.at.terms] = (self.operands[load.operand], 0)
        for k, store in enumerate(self.nest.stores):
            self._streams[f"result{k}", store.at.terms] = (self.results[self.nest.spec.target(k)], 0)

    def _itemsize(self, buffer: str) -> int:
        if buffer.startswith("operand"):
            return self.nest.spec.operands[int(buffer[7:])].dtype.itemsize
        return self.nest.stores[int(buffer[6:])].type.dtype.itemsize

    def _moved(self, stream: Stream, pointer: V, at: int, coefficient: int, index: Index) -> tuple[V, int]:
        if isinstance(index, int):
            return pointer, at + coefficient * index
        distance = self.b.mul(index, coefficient * self._itemsize(stream[0]))
        return self.b.gep("i8", pointer, distance, flags=""), at

    def _address(self, buffer: str, at: Affine, further: int = 0) -> V:
        pointer, known = self._streams[buffer, at.terms]
        distance = (known + at.offset + further) * self._itemsize(buffer)
        return pointer if distance == 0 else self.b.gep("i8", pointer, distance, flags="")

    def _vector_stride(self, at: Affine) -> int:
        return at.coefficient(self.nest.vector) if self.nest.vector >= 0 else 0

    # ---------------------------------------------------------------- values

    def define(self, level: int) -> None:
        """Emit every value that needs exactly `level` open loops."""
        for value in self._schedule.get(level, ()):
            on_vector = self.nest.on_vector(value)
            for copy in range(self.copies if on_vector else 1):
                lane = self._computed(value, copy, self.lanes if on_vector else 1)
                self._env[-1][value, copy, lane.lanes] = lane
            if not on_vector and value in self._splatted and self.lanes > 1:
                self._env[-1][value, 0, self.lanes] = memory.splat(self.b, lane, self.lanes)

    def _value(self, value: Value, copy: int, lanes: int) -> Lane:
        key = (value, copy if self.nest.on_vector(value) else 0, lanes)
        for env in reversed(self._env):
            if key in env:
                return env[key]
        if lanes == 1:
            raise CodegenError(f"{value!r} is used before it is computed")
        lane = memory.splat(self.b, self._value(value, copy, 1), lanes)
        self._env[-1][key] = lane
        return lane

    def _computed(self, value: Value, copy: int, lanes: int) -> Lane:
        if value.op is None:
            return self._loaded(value, copy, lanes)
        op = value.op
        match op.name:
            case "constant":
                return lane_constant(value.type.dtype, op.attrs["value"].array, lanes)
            case "index":
                return self._loop_index(op.attrs["axis"], copy, lanes)
            case "within":
                return self._within(op, copy, lanes)
            case "load_at":
                flat = self._value(op.operands[0], copy, lanes)
                step = self._steps.get(value) if self._mask is None else None
                return load_clamped(self.s, op, flat, self.operands, self.nest.spec, step)
        if not isinstance(op.opdef.lower, Scalar):
            raise CodegenError(f"{op.name} cannot stand in the body of a kernel")
        operands = [self._value(operand, copy, lanes) for operand in op.operands]
        lane: Lane = op.opdef.lower.emit(self.s, op, *operands)
        return lane

    def _position(self, at: Affine, copy: int, lanes: int) -> V:
        """The value of an affine index as i64, one for each lane."""
        total = const("i64", at.offset)
        for level, coefficient in at.terms:
            index = self._index[level]
            step = const("i64", index * coefficient) if isinstance(index, int) else self.b.mul(index, coefficient)
            total = step if total.name == "0" else self.b.add(step, total)
        if lanes == 1:
            return total
        coefficient = self._vector_stride(at)
        steps = memory.lane_numbers(lanes)
        first = memory.splat_value(self.b, total, lanes)
        if coefficient == 0:
            return first
        return self.b.add(self.b.add(first, copy * lanes * coefficient), self.b.mul(steps, coefficient))

    def _loop_index(self, axis: int, copy: int, lanes: int) -> Lane:
        level = self.nest.level_of[axis]
        at = Affine() if level is None else Affine(0, ((level, 1),))
        return Lane(I64, self._position(at, copy, lanes))

    # ---------------------------------------------------------------- bounds

    def _holds(self, bounds: Sequence[Bound], copy: int, lanes: int) -> bool | V:
        """Do all bounds hold: known for the whole segment, or an i1 (for each lane)."""
        result: V | None = None
        for bound in bounds:
            known = holds_statically(bound, self.ranges)
            if known is False:
                return False
            if known is None:
                wide = lanes if self._vector_stride(bound.index) else 1
                above = self.b.sub(self._position(bound.index, copy, wide), bound.low)
                test = self.b.icmp("ult", above, bound.high - bound.low)
                result = test if result is None else self._both(result, test)
        return True if result is None else result

    def _both(self, x: V, y: V) -> V:
        lanes = max(lanes_of(x.type), lanes_of(y.type))
        return self.b.and_(*[memory.splat_value(self.b, v, lanes) if lanes_of(v.type) == 1 else v for v in (x, y)])

    def _within(self, op: Op, copy: int, lanes: int) -> Lane:
        x = self._value(op.operands[0], copy, lanes)
        zero = lane_constant(x.dtype, 0, lanes)
        match self._holds(self.nest.bounds[op], copy, lanes):
            case True:
                return x
            case False:
                return zero
            case V() as pred:
                return self.s.select(Lane(BOOL, pred), x, zero)

    # ---------------------------------------------------------------- loads

    def _loaded(self, value: Value, copy: int, lanes: int) -> Lane:
        load = self._loads[value]
        holds = self._holds(load.bounds, copy, lanes)
        if holds is False:
            return lane_constant(value.type.dtype, 0, lanes)
        stride = self._vector_stride(load.at)
        buffer = f"operand{load.operand}"
        address = self._address(buffer, load.at, copy * lanes * stride if lanes > 1 else 0)
        if lanes == 1 or stride == 0:
            return self._one_loaded(value, address, holds, lanes)
        if value in self._load_groups and self._mask is None and lanes == self.nest.lanes:
            return self._loaded_in_group(value, copy, lanes)
        mask = self._mask if holds is True else self._lane_mask(holds, lanes)
        return memory.load(self.b, value.type.dtype, address, stride, lanes, mask)

    def _loaded_in_group(self, value: Value, copy: int, lanes: int) -> Lane:
        group, which = self._load_groups[value]
        dtype = value.type.dtype
        if (group, copy) not in self._wide:
            first = self._address(f"operand{group.operand}", group.first, copy * lanes * group.stride)
            self._wide[group, copy] = self._group_vectors(group, dtype, first, lanes)
        vectors = self._wide[group, copy]
        return Lane(dtype, vectors[which] if group.transposed else deinterleave(self.b, vectors, lanes, which))

    def _group_vectors(self, group: LoadGroup, dtype: DType, first: V, lanes: int) -> list[V]:
        count, step = (lanes, group.stride) if group.transposed else (group.stride, lanes)
        addresses = [memory.offset(self.b, first, dtype, k * step) for k in range(count)]
        vectors = [memory.load(self.b, dtype, address, 1, lanes).re for address in addresses]
        return transpose(self.b, vectors) if group.transposed else vectors

    def _one_loaded(self, value: Value, address: V, holds: V | bool, lanes: int) -> Lane:
        dtype = value.type.dtype
        if isinstance(holds, V) and lanes_of(holds.type) == 1:
            address = self.b.select(holds, address, self.b.module.constant(_ZEROS))
            holds = True
        lane = memory.splat(self.b, memory.load(self.b, dtype, address), lanes)
        if isinstance(holds, V):
            return self.s.select(Lane(BOOL, holds), lane, lane_constant(dtype, 0, lanes))
        return lane

    def _lane_mask(self, holds: V | bool, lanes: int) -> V:
        assert isinstance(holds, V)
        wide = memory.splat_value(self.b, holds, lanes) if lanes_of(holds.type) == 1 else holds
        tail = memory.mask_vector(self.b, self._mask, lanes)
        return wide if tail is None else self.b.and_(wide, tail)

    # ---------------------------------------------------------------- stores

    def leaf(self, shorts: dict[int, list[State]]) -> dict[int, list[State]]:
        """The innermost point: values go into accumulators and to memory."""
        result = dict(shorts)
        grouped = set(self._write_groups())
        for k, value in enumerate(self.nest.spec.body.results):
            if k in shorts:
                result[k] = self._stepped(k, value, shorts[k])
            elif k not in grouped:
                on_vector = self.nest.vector >= 0
                for copy in range(self.copies if on_vector else 1):
                    self.write(k, self._value(value, copy, self.lanes if on_vector else 1), copy)
        return result

    def _write_groups(self) -> Iterator[int]:
        """Write the stores that together are contiguous; gives their numbers."""
        if self._mask is not None or self.lanes == 1:
            return
        for group in self._store_groups:
            for copy in range(self.copies):
                self._write_group(group, copy)
            yield from group.stores

    def _write_group(self, group: StoreGroup, copy: int) -> None:
        first, lanes, stride = group.stores[0], self.lanes, len(group.stores)
        store = self.nest.stores[first]
        values = [self._value(self.nest.spec.body.results[k], copy, lanes).re for k in group.stores]
        address = self._address(f"result{first}", group.first, copy * lanes * stride)
        for k, vector in enumerate(interleave(self.b, values, lanes)):
            place = memory.offset(self.b, address, store.type.dtype, k * lanes)
            value = Lane(store.type.dtype, vector)
            if self.nest.accumulates_in_memory(store):
                value = combine(self.s, store.kind, memory.load(self.b, value.dtype, place, 1, lanes), value)
            else:
                value = alone(self.s, store.kind, value)
            memory.store(self.b, value, place)

    def _stepped(self, k: int, value: Value, states: Sequence[State]) -> list[State]:
        lanes = self.state_lanes(k)
        across = self.nest.register_level(self.nest.stores[k]) <= self.nest.vector
        mask = memory.mask_vector(self.b, self._mask, lanes) if across else None
        reducer = self.reducers[k]
        if self._is_product(k, value):
            return [self._product_step(k, value, state, copy, mask) for copy, state in enumerate(states)]
        return [
            reducer.step(self.s, state, self._value(value, copy, lanes), mask) for copy, state in enumerate(states)
        ]

    def _is_product(self, k: int, value: Value) -> bool:
        """May the store's sum of products be computed by fused multiply and add."""
        product = self.nest.spec.contracts and value.op is not None and value.op.name == "mul"
        return product and self.reducers[k].kind == "sum" and value.type.dtype in (F32, F64)

    def _product_step(self, k: int, value: Value, state: State, copy: int, mask: V | None) -> State:
        lanes = self.state_lanes(k)
        assert value.op is not None
        x, y = (self._value(v, copy, lanes) for v in value.op.operands)
        new = self.s.multiply_add(x, y, Lane(x.dtype, *state)).re
        return (new if mask is None else self.b.select(mask, new, state[0]),)

    def write(self, k: int, value: Lane, copy: int) -> None:
        """A value (of one copy) to its place, or added to what is there."""
        store = self.nest.stores[k]
        stride = self._vector_stride(store.at) if value.lanes > 1 else 0
        address = self._address(f"result{k}", store.at, copy * value.lanes * stride)
        mask = self._mask if value.lanes > 1 else None
        if self.nest.accumulates_in_memory(store):
            old = memory.load(self.b, value.dtype, address, stride, value.lanes, mask)
            value = combine(self.s, store.kind, old, value)
        elif self.nest.register_level(store) == self.nest.depth:
            value = alone(self.s, store.kind, value)
        if k in self.streamed and mask is None and value.lanes == self.nest.lanes:
            memory.stream(self.b, value, address)
        else:
            memory.store(self.b, value, address, stride, mask)


# ------------------------------------------------------------------ analysis


def _coefficient(terms: tuple[tuple[int, int], ...], level: int) -> int:
    return next((c for axis, c in terms if axis == level), 0)


def _used(nest: Nest) -> set[Value]:
    """Values that some store needs."""
    body = nest.spec.body
    used = set(body.results)
    for op in reversed(body.ops):
        if op.results[0] in used:
            used.update(op.operands)
    return used


def _schedule(nest: Nest) -> dict[int, list[Value]]:
    """Values by the number of loops they need, each list in the body's order."""
    used, table = _used(nest), dict[int, list[Value]]()
    body = nest.spec.body
    for value in (*body.params, *(op.results[0] for op in body.ops)):
        if value in used:
            table.setdefault(nest.level(value), []).append(value)
    return table


def _read_by_vectors(nest: Nest) -> set[Value]:
    """Values that are the same in all lanes but are used beside vectors."""
    if nest.vector < 0:
        return set()
    body = nest.spec.body
    read = set(body.results)
    for op in body.ops:
        if nest.on_vector(op.results[0]):
            read.update(op.operands)
    return {value for value in read if not nest.on_vector(value)}
