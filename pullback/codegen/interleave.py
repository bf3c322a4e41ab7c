"""Loads and stores that stride along the vector axis, done together: whole vectors, and shuffles between registers.

The elements x[3i], x[3i+1], x[3i+2] of eight i are three contiguous vectors and six shuffles, where lane by lane they
would be 24 loads. The elements x[1000i], ..., x[1000i+7] of eight i are eight vectors and a transpose.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.nest import Nest
from pullback.ir.graph import Value
from pullback.ir.index import Affine
from pullback.record import record

MAX_STRIDE = 4


@record(frozen=True)
class LoadGroup:
    """Loads of one buffer that the same vectors hold; `first` is the position of the first element.

    transposed : a vector for each lane, `stride` apart; else `stride` vectors one after the other
    """

    operand: int
    first: Affine
    stride: int
    transposed: bool = False


@record(frozen=True)
class StoreGroup:
    """Stores to one result that together fill `len(stores)` vectors, in the order of their positions."""

    stores: tuple[int, ...]
    first: Affine


def deinterleave(b: FunctionBuilder, vectors: Sequence[V], lanes: int, which: int) -> V:
    """Lane i is element `stride * i + which` of the vectors one after the other."""
    stride = len(vectors)
    wanted = [stride * lane + which for lane in range(lanes)]
    picked = [[(at if at // lanes == k else -1) for at in wanted] for k in range(stride)]
    return _selected(b, vectors, [[-1 if at < 0 else at % lanes for at in row] for row in picked], lanes)


def interleave(b: FunctionBuilder, values: Sequence[V], lanes: int) -> list[V]:
    """The lanes of the values in turn, as that many vectors."""
    stride = len(values)
    vectors = []
    for k in range(stride):
        places = range(k * lanes, (k + 1) * lanes)
        rows = [[at // stride if at % stride == which else -1 for at in places] for which in range(stride)]
        vectors.append(_selected(b, values, rows, lanes))
    return vectors


def transpose(b: FunctionBuilder, vectors: Sequence[V]) -> list[V]:
    """Vector i of the result holds lane i of each vector; as many vectors as lanes, a power of two."""
    rows = list(vectors)
    lanes = len(rows)
    distance = 1
    while distance < lanes:
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        for i in range(lanes):
            if not i & distance:
                x, y = rows[i], rows[i + distance]
                rows[i], rows[i + distance] = b.shuffle(x, y, low), b.shuffle(x, y, high)
        distance *= 2
    return rows


def _selected(b: FunctionBuilder, sources: Sequence[V], rows: Sequence[Sequence[int]], lanes: int) -> V:
    """Lane i from the source whose row names a lane there; sources are joined two at a time."""
    parts = [(source, list(row)) for source, row in zip(sources, rows, strict=True) if max(row) >= 0]
    while len(parts) > 1:
        joined = []
        for (x, x_row), (y, y_row) in zip(parts[::2], parts[1::2], strict=False):
            lanes_of_both = [p if p >= 0 else (lanes + q if q >= 0 else -1) for p, q in zip(x_row, y_row, strict=True)]
            here = [k if lane >= 0 else -1 for k, lane in enumerate(lanes_of_both)]
            joined.append((b.shuffle(x, y, lanes_of_both), here))
        parts = joined + parts[len(joined) * 2 :]
    source, row = parts[0]
    return source if row == list(range(lanes)) else b.shuffle(source, source, row)


# ------------------------------------------------------------------ which loads and stores go together


def load_groups(nest: Nest) -> dict[Value, tuple[LoadGroup, int]]:
    """For each load that is better done with others: the group and its place in it."""
    streams: dict[tuple[int, tuple[tuple[int, int], ...], int], dict[int, list[Value]]] = {}
    for value, load in zip(nest.spec.body.params, nest.loads, strict=True):
        stride = load.at.coefficient(nest.vector) if nest.vector >= 0 else 0
        if not load.bounds and stride >= 2 and nest.spec.operands[load.operand].dtype.kind != "c":
            stream = streams.setdefault((load.operand, load.at.terms, stride), {})
            stream.setdefault(load.at.offset, []).append(value)
    groups: dict[Value, tuple[LoadGroup, int]] = {}
    for (operand, terms, stride), offsets in streams.items():
        transposed = stride > MAX_STRIDE
        for start, members in _runs(sorted(offsets), nest.lanes if transposed else stride):
            group = LoadGroup(operand, Affine(start, terms), stride, transposed)
            if len(members) == nest.lanes if transposed else _stays_inside(nest, group):
                for offset in members:
                    groups.update((value, (group, offset - start)) for value in offsets[offset])
    return groups


def _runs(offsets: Sequence[int], stride: int) -> list[tuple[int, list[int]]]:
    runs: list[tuple[int, list[int]]] = []
    for offset in offsets:
        if runs and offset < runs[-1][0] + stride:
            runs[-1][1].append(offset)
        else:
            runs.append((offset, [offset]))
    return runs


def _stays_inside(nest: Nest, group: LoadGroup) -> bool:
    """Do the vectors end within the buffer: they reach up to `stride` - 1 elements beyond the last one wanted."""
    _, last = group.first.span(nest.sizes)
    return last + group.stride <= nest.spec.operands[group.operand].size


def store_groups(nest: Nest) -> list[StoreGroup]:
    """Stores, not kept in registers, that fill every place of their stride."""
    streams: dict[tuple[int, tuple[tuple[int, int], ...], int], dict[int, int]] = {}
    for k, store in enumerate(nest.stores):
        stride = store.at.coefficient(nest.vector) if nest.vector >= 0 else 0
        if nest.register_level(store) == nest.depth and 2 <= stride <= MAX_STRIDE and store.type.dtype.kind != "c":
            streams.setdefault((nest.spec.target(k), store.at.terms, stride), {})[store.at.offset] = k
    groups = []
    for (_, terms, stride), offsets in streams.items():
        for start, members in _runs(sorted(offsets), stride):
            if len(members) == stride:
                groups.append(StoreGroup(tuple(offsets[offset] for offset in members), Affine(start, terms)))
    return groups
