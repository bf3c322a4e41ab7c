"""The plan of a loop nest: which axes merge, their order, which is vectorised, how wide, how often unrolled.

An axis of length 1 vanishes. Two axes merge where every position moves through them as through one. The vector axis is
the one along which the loads and stores are cheapest, mostly the contiguous one; it is innermost, but for reduced axes
that are short or whose accumulators fit in registers beside it. The other axes go from the largest stride down.
"""

from __future__ import annotations

from collections.abc import Mapping

from pullback.codegen.expand import axis_to_expand, expand_axis
from pullback.codegen.spec import KernelSpec, longest_chain, remap, spec_affines
from pullback.codegen.target import Target
from pullback.ir.graph import Op, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.kernel import Load, Store
from pullback.ir.types import DType, TensorType
from pullback.record import record

MAX_LANES = 16
MAX_COPIES = 8
STRIDED_COST = 1.3
"""Of loading one element into a lane, where a whole vector load is 1."""

# weight up to -> copies
_REDUCING_COPIES = ((12, 4), (32, 2))
_STORING_COPIES = ((6, 4), (16, 2))

_WINDOW = 256
"""Instructions that a processor looks ahead, about."""

_LATENCY = 4
_LONGEST_COPIED = 800

_SHORT_AXIS = 16
_UNROLLED_AXIS = 8
_UNROLLED_WEIGHT = 160


@record(frozen=True, eq=False)
class Nest:
    """Loops, outermost first; positions are affine in the levels.

    sizes : trip count of each level
    vector : the level whose points fill lanes, or -1
    lanes : points in a vector
    copies : vectors in one turn of the vector loop
    unrolled : levels that are written out
    depends : for each body value a bit mask of the levels it depends on
    bounds : for each op `within` its bounds over levels
    level_of : where each original axis went; None for an axis of length 1
    """

    spec: KernelSpec
    sizes: tuple[int, ...]
    loads: tuple[Load, ...]
    stores: tuple[Store, ...]
    vector: int
    lanes: int
    copies: int
    unrolled: frozenset[int]
    depends: Mapping[Value, int]
    bounds: Mapping[Op, tuple[Bound, ...]]
    level_of: Mapping[int, int | None]

    @property
    def depth(self) -> int:
        return len(self.sizes)

    def on_vector(self, value: Value) -> bool:
        """Does the value differ between lanes."""
        return self.vector >= 0 and bool(self.depends[value] >> self.vector & 1)

    def level(self, value: Value) -> int:
        """Number of loops that must be open where the value is computed."""
        return self.depends[value].bit_length()

    def is_reduced(self, store: Store, level: int) -> bool:
        """Does the store accumulate over the level."""
        return store.at.coefficient(level) == 0

    def register_level(self, store: Store) -> int:
        """Levels from here on are all reduced: their sum stays in registers."""
        level = self.depth
        while level > 0 and self.is_reduced(store, level - 1):
            level -= 1
        return level

    def accumulates_in_memory(self, store: Store) -> bool:
        """Is a reduced level outside of a parallel one, so that elements of the result are revisited."""
        return any(self.is_reduced(store, level) for level in range(self.register_level(store)))


def plan_nest(spec: KernelSpec, target: Target) -> Nest:
    """Choose the loops of a kernel whose space is not empty."""
    sizes, table = merged_axes(spec)
    while (axis := axis_to_expand(spec, sizes)) is not None:
        spec = expand_axis(spec, axis)
        sizes, table = merged_axes(spec)
    lanes = vector_lanes(spec, target)
    vector = vector_axis(spec, sizes, table, lanes)
    order = _order(spec, sizes, table, vector, lanes)
    level = {axis: order.index(axis) for axis in order}
    moved = {axis: None if new is None else level[new] for axis, new in table.items()}
    vector_level = -1 if vector is None else level[vector]
    trips = tuple(sizes[axis] for axis in order)
    if vector_level >= 0:
        while lanes // 2 >= trips[vector_level]:
            lanes //= 2
    loads = tuple(Load(x.operand, remap(x.at, moved), _remap_bounds(x.bounds, moved)) for x in spec.loads)
    stores = tuple(Store(x.kind, x.type, remap(x.at, moved)) for x in spec.stores)
    within = {op: _remap_bounds(op.attrs["bounds"], moved) for op in spec.body.ops if op.name == "within"}
    return Nest(
        spec=spec,
        sizes=trips,
        loads=loads,
        stores=stores,
        vector=vector_level,
        lanes=lanes if vector_level >= 0 else 1,
        copies=_copies(spec, stores, trips, vector_level, lanes),
        unrolled=_unrolled(spec, trips, vector_level),
        depends=_dependences(spec, loads, within, moved),
        bounds=within,
        level_of=moved,
    )


# ------------------------------------------------------------------ axes


def _pinned_axes(spec: KernelSpec) -> set[int]:
    """Axes that bounds or index values look at: they must stay themselves."""
    pinned = {op.attrs["axis"] for op in spec.body.ops if op.name == "index"}
    groups = [load.bounds for load in spec.loads] + [op.attrs["bounds"] for op in spec.body.ops if op.name == "within"]
    for bounds in groups:
        pinned.update(axis for bound in bounds for axis, _ in bound.index.terms)
    return pinned


def merged_axes(spec: KernelSpec) -> tuple[dict[int, int], dict[int, int | None]]:
    """Sizes of the axes that remain, and what each original axis has become.

    Of two merged axes the inner one remains, with the outer's length multiplied in.
    """
    sizes = {axis: n for axis, n in enumerate(spec.space) if n != 1}
    table: dict[int, int | None] = {axis: axis if axis in sizes else None for axis in range(len(spec.space))}
    pinned = _pinned_axes(spec)
    positions = [dict(at.terms) for at in spec_affines(spec)]
    again = True
    while again:
        again = False
        for outer in [axis for axis in sizes if axis not in pinned]:
            inner = _continued_by(outer, sizes, pinned, positions)
            if inner is not None:
                sizes[inner] *= sizes.pop(outer)
                table[outer] = None
                again = True
    return sizes, table


def _continued_by(
    outer: int, sizes: Mapping[int, int], pinned: set[int], positions: list[dict[int, int]]
) -> int | None:
    for inner, n in sizes.items():
        if inner == outer or inner in pinned:
            continue
        if all(at.get(outer, 0) == at.get(inner, 0) * n for at in positions):
            return inner
    return None


def _remap_bounds(bounds: tuple[Bound, ...], table: Mapping[int, int | None]) -> tuple[Bound, ...]:
    return tuple(Bound(remap(bound.index, table), bound.low, bound.high) for bound in bounds)


# ------------------------------------------------------------------ choices


def vector_lanes(spec: KernelSpec, target: Target) -> int:
    """Lanes of the widest dtype in the body; complex numbers are two vectors, one for each part."""
    types: list[TensorType] = [p.type for p in spec.body.params]
    types += [op.results[0].type for op in spec.body.ops]
    types += [store.type for store in spec.stores]
    dtypes = {t.dtype for t in types}
    return min(target.lanes(max((_lane_bytes(dtype) for dtype in dtypes), default=8)), MAX_LANES)


def _lane_bytes(dtype: DType) -> int:
    """Of one number in a vector: float16 is computed in float32."""
    if dtype.kind == "c":
        return dtype.itemsize // 2
    return 4 if dtype.kind == "f" and dtype.itemsize == 2 else dtype.itemsize


def _access_cost(stride: int, lanes: int) -> float:
    """Of one access by all lanes, in instructions."""
    if stride == 0:
        return 0.1
    return 1.0 if abs(stride) == 1 else STRIDED_COST * lanes


def vector_axis(spec: KernelSpec, sizes: Mapping[int, int], table: Mapping[int, int | None], lanes: int) -> int | None:
    """The axis with the cheapest points, None where one by one is as cheap."""
    if lanes == 1 or not sizes:
        return None
    best, least = None, float(spec.weight) + 1.0
    for axis, n in sizes.items():
        width = lanes
        while width // 2 >= n:
            width //= 2
        cost = _vector_cost(spec, table, axis, width) / (n / -(-n // width))
        if cost <= least * 0.999:
            best, least = axis, cost
        elif best is not None and cost <= least * 1.001:
            best = axis
    return best


def _vector_cost(spec: KernelSpec, table: Mapping[int, int | None], axis: int, lanes: int) -> float:
    cost = float(spec.weight - len(spec.loads) - len(spec.stores))
    for load in spec.loads:
        cost += _access_cost(remap(load.at, table).coefficient(axis), lanes)
    for store in spec.stores:
        stride = remap(store.at, table).coefficient(axis)
        cost += 1.0 if stride == 0 else _access_cost(stride, lanes) * (1.0 if abs(stride) == 1 else 1.5)
    return cost


def _order(
    spec: KernelSpec, sizes: Mapping[int, int], table: Mapping[int, int | None], vector: int | None, lanes: int
) -> list[int]:
    """Axes from the outermost to the innermost loop."""
    positions = [remap(at, table) for at in spec_affines(spec)]
    outer = sorted(
        (axis for axis in sizes if axis != vector),
        key=lambda axis: (-max((abs(at.coefficient(axis)) for at in positions), default=0), axis),
    )
    if vector is None:
        return outer
    inner = [axis for axis in outer if _belongs_inside(spec, sizes, table, axis, vector, lanes)]
    return [axis for axis in outer if axis not in inner] + [vector] + inner


def _belongs_inside(
    spec: KernelSpec,
    sizes: Mapping[int, int],
    table: Mapping[int, int | None],
    axis: int,
    vector: int,
    lanes: int,
) -> bool:
    """Is it better to loop over a reduced axis inside of the vector axis: accumulators are then vectors in registers.

    So where every store accumulates over `axis` and runs along `vector`, and either the axis is short, or the vector
    axis fits in registers whole.
    """
    stores = [remap(store.at, table) for store in spec.stores]
    reduced = [at for at in stores if at.coefficient(axis) == 0]
    if not reduced or any(at.coefficient(vector) == 0 for at in reduced) or len(reduced) != len(stores):
        return False
    return sizes[axis] <= _SHORT_AXIS or sizes[vector] <= lanes * MAX_COPIES // max(1, len(reduced))


def _copies(spec: KernelSpec, stores: tuple[Store, ...], sizes: tuple[int, ...], vector: int, lanes: int) -> int:
    """Vectors in one turn: enough to hide latencies, few where the code would get long.

    Short bodies gain by less loop overhead and, in reductions, by independent sums. Long ones that are a chain of
    dependent instructions fill the processor's window before the next turn comes into it: they want company.
    """
    if vector < 0:
        return 1
    reduces = any(store.kind != "store" for store in stores)
    table = _REDUCING_COPIES if reduces else _STORING_COPIES
    copies = next((count for limit, count in table if spec.weight <= limit), 0) or _copies_for_latency(spec)
    if vector != len(sizes) - 1 and spec.weight <= 8:
        copies = MAX_COPIES // max(1, len(stores))
    vectors = -(-sizes[vector] // lanes)
    while copies > vectors:
        copies //= 2
    return max(1, copies)


def _copies_for_latency(spec: KernelSpec) -> int:
    wanted = _LATENCY * longest_chain(spec) / spec.weight / max(1, _WINDOW // spec.weight)
    if wanted < 1.0 or spec.weight > _LONGEST_COPIED:
        return 1
    return 2 if wanted < 1.3 else 4


def _unrolled(spec: KernelSpec, sizes: tuple[int, ...], vector: int) -> frozenset[int]:
    """Short innermost loops are written out."""
    level = len(sizes) - 1
    if level < 0 or level == vector or sizes[level] > _UNROLLED_AXIS or sizes[level] * spec.weight > _UNROLLED_WEIGHT:
        return frozenset()
    return frozenset({level})


# ------------------------------------------------------------------ dependences


def _levels(at: Affine) -> int:
    mask = 0
    for level, _ in at.terms:
        mask |= 1 << level
    return mask


def _bound_levels(bounds: tuple[Bound, ...]) -> int:
    mask = 0
    for bound in bounds:
        mask |= _levels(bound.index)
    return mask


def _dependences(
    spec: KernelSpec,
    loads: tuple[Load, ...],
    within: Mapping[Op, tuple[Bound, ...]],
    level_of: Mapping[int, int | None],
) -> dict[Value, int]:
    masks: dict[Value, int] = {}
    for param, load in zip(spec.body.params, loads, strict=True):
        masks[param] = _levels(load.at) | _bound_levels(load.bounds)
    for op in spec.body.ops:
        mask = _bound_levels(within[op]) if op in within else 0
        for operand in op.operands:
            mask |= masks[operand]
        if op.name == "index":
            level = level_of[op.attrs["axis"]]
            mask |= 0 if level is None else 1 << level
        masks[op.results[0]] = mask
    return masks
