"""Index maps: which element of a value a kernel wants, as a function of the kernel's loop axes."""

import math
from collections.abc import Iterable, Sequence

from pullback.ir.graph import Op
from pullback.ir.index import Access, Affine, Bound, flatten_index, reshape_index, unflatten_index
from pullback.ir.opdef import Reduce, View
from pullback.ir.types import Shape

Index = tuple[Affine, ...]
Bounds = tuple[Bound, ...]


class Map:
    """One element of a value for each index of a kernel's space. Interned per kernel: equal maps are one object.

    index : one expression for each axis of the value, or None when only the position in C order is affine.
    flat : that position, when `index` is None.
    bounds : the element is wanted only where these hold; elsewhere the index may be out of range.
    """

    __slots__ = ("bounds", "flat", "index")

    def __init__(self, index: Index | None, flat: Affine | None, bounds: Bounds) -> None:
        self.index = index
        self.flat = flat
        self.bounds = bounds

    def position(self, shape: Shape) -> Affine:
        """The position in C order in a value of `shape`."""
        if self.index is None:
            assert self.flat is not None
            return self.flat
        return flatten_index(self.index, shape)


class UnmappableError(Exception):
    """A view is no index arithmetic here. `split`, if given, would help: an axis of the space, and a length."""

    def __init__(self, split: tuple[int, int] | None) -> None:
        super().__init__("no affine index")
        self.split = split


class Maps:
    """The maps of one kernel."""

    __slots__ = ("_interned", "space")

    def __init__(self, space: Shape) -> None:
        self.space = space
        self._interned: dict[tuple[Index | None, Affine | None, Bounds], Map] = {}

    def intern(self, index: Index | None, flat: Affine | None = None, bounds: Bounds = ()) -> Map:
        key = (index, flat, bounds)
        found = self._interned.get(key)
        if found is None:
            found = self._interned[key] = Map(index, flat, bounds)
        return found

    def index_of(self, m: Map, shape: Shape) -> Index:
        """The index into each axis of a value of `shape`; UnmappableError if only the flat position is affine."""
        if m.index is not None:
            return m.index
        assert m.flat is not None
        index = unflatten_index(m.flat, shape, self.space)
        if index is None:
            raise UnmappableError(useful_split(m.flat, shape, self.space))
        return index

    def through_reshape(self, m: Map, shape: Shape, source: Shape) -> Map:
        """The map into the operand (of shape `source`) of a reshape to `shape`."""
        if m.index is None:
            return m
        index = reshape_index(m.index, shape, source)
        if index is not None:
            return self.intern(index, None, m.bounds)
        flat = flatten_index(m.index, shape)
        index = unflatten_index(flat, source, self.space)
        return self.intern(index, None, m.bounds) if index is not None else self.intern(None, flat, m.bounds)

    def pieces(self, op: Op, m: Map) -> list[tuple[int, Map, Bounds]]:
        """What a view op reads: operand, map into it, bounds that this piece adds; without pieces never read."""
        if op.name == "reshape":
            return [(0, self.through_reshape(m, op.results[0].type.shape, op.operands[0].type.shape), ())]
        if not op.results[0].type.size:
            return []
        if op.name == "broadcast" and op.operands[0].type.size == 1:
            return [(0, self.intern((Affine(),) * op.operands[0].type.ndim, None, m.bounds), ())]
        index = self.index_of(m, op.results[0].type.shape)
        if isinstance(op.opdef.lower, Reduce):  # over axes of length 1, which it only drops
            kept = iter(index)
            axes = op.attrs["axes"]
            full = tuple([Affine() if k in axes else next(kept) for k in range(op.operands[0].type.ndim)])
            return [(0, self.intern(full, None, m.bounds), ())]
        return [
            (a.operand, self.intern(a.index, None, bounds), added)
            for a in _accesses(op, index)
            for added, bounds in self._bounds(a, m)
        ]

    def _bounds(self, access: Access, m: Map) -> Iterable[tuple[Bounds, Bounds]]:
        added = simplify_bounds(access.bounds, self.space)
        if added is None:
            return
        both = simplify_bounds((*m.bounds, *added), self.space) if added else m.bounds
        if both is not None:
            yield added, both


def _accesses(op: Op, index: Index) -> tuple[Access, ...]:
    """What a view reads; of an update (without steps) the new value where that is, else the old array."""
    if op.name == "update":
        starts = op.attrs["start"]
        moved = tuple([e.shift(-a) for e, a in zip(index, starts, strict=True)])
        bounds = tuple([Bound(e, 0, n) for e, n in zip(moved, op.operands[1].type.shape, strict=True)])
        return Access(1, moved, bounds), Access(0, index)
    assert isinstance(op.opdef.lower, View)
    return op.opdef.lower.access(op, index)


# ------------------------------------------------------------------ bounds


def simplify_bounds(bounds: Sequence[Bound], space: Shape) -> Bounds | None:
    """The bounds that are not always true, as intervals of an axis where they are on one; None if never all true."""
    found: dict[tuple[tuple[int, int], ...], tuple[int, int]] = {}
    for bound in bounds:
        normal = _normal_bound(bound)
        terms = normal.index.terms
        low, high = found.get(terms, (normal.low, normal.high))
        found[terms] = (max(low, normal.low), min(high, normal.high))
    kept = []
    for terms, (low, high) in sorted(found.items()):
        smallest, largest = Affine(0, terms).span(space)
        low, high = max(low, smallest), min(high, largest + 1)
        if low >= high:
            return None
        if low > smallest or high <= largest:
            kept.append(Bound(Affine(0, terms), low, high))
    return tuple(kept)


def _normal_bound(bound: Bound) -> Bound:
    """Without offset; on a single axis without coefficient."""
    offset, terms = bound.index
    low, high = bound.low - offset, bound.high - offset
    if len(terms) == 1:
        ((axis, c),) = terms
        if c < 0:  # low <= -k*i < high  is  1-high <= k*i < 1-low
            low, high, c = 1 - high, 1 - low, -c
        return Bound(Affine(0, ((axis, 1),)), -(-low // c), -(-high // c))
    return Bound(Affine(0, terms), low, high)


def needed_bounds(m: Map, shape: Shape, space: Shape) -> Bounds:
    """The bounds without which the element would lie outside a value of `shape`."""
    if not m.bounds:
        return ()
    if m.index is None:
        assert m.flat is not None
        checked: Iterable[tuple[Affine, int]] = [(m.flat, math.prod(shape))]
    else:
        checked = zip(m.index, shape, strict=True)
    loose: set[int] = set()
    for expr, n in checked:
        low, high = expr.span(space)
        if low < 0 or high >= n:
            loose.update(axis for axis, _ in expr.terms)
    return tuple([b for b in m.bounds if any(axis in loose for axis, _ in b.index.terms)])


# ------------------------------------------------------------------ spaces


def covers(position: Affine, space: Shape, size: int) -> bool:
    """Whether `position` runs over 0..size-1, each once, in some order of the axes of `space`."""
    if position.offset or not size:
        return False
    reached = 1
    for axis, c in sorted(position.terms, key=lambda term: term[1]):
        if c != reached:
            return False
        reached *= space[axis]
    return reached == size == math.prod(space)


def useful_split(flat: Affine, shape: Shape, space: Shape) -> tuple[int, int] | None:
    """An axis of `space`, and the length to divide it by, so that `flat` comes apart along `shape`."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    for axis, c in flat.terms:
        n = space[axis]
        for stride in strides:
            if 0 < c < stride < c * n and stride % c == 0 and n % (stride // c) == 0:
                return axis, stride // c
    return None
