"""Where values are computed: finding or making the kernel that stores a value or adds up a reduction."""

from collections.abc import Iterator, Mapping
from itertools import islice

from pullback.ir.index import Affine, Bound, axis_index
from pullback.ir.types import Shape
from pullback.passes.fuse.kernels import Kernel, Node
from pullback.passes.fuse.maps import Index, Map, covers, simplify_bounds
from pullback.passes.fuse.table import Info, Kind

LOOK_BACK = 8
"""How many of the latest candidates are looked at, so that the search stays linear."""

NEAR = 1.3
"""A sum joins a kernel over a larger space if that is no more than this factor larger."""

Home = tuple[Kernel, Map]
Splits = Mapping[Shape, tuple[int, int]]


class Homes:
    """All kernels of one round, by space. `splits` says which axis of a space is divided in two, and at what length."""

    def __init__(self, splits: Splits) -> None:
        self.kernels: list[Kernel] = []
        self._splits = splits
        self._by_space: dict[Shape, list[Kernel]] = {}
        self._axes: dict[Shape, tuple[Shape, Index]] = {}

    def for_value(self, info: Info, deadline: int) -> Home:
        """A kernel at a time from `info.ready` to `deadline` to store the value from, and the map of its elements."""
        hosts = [n for n in info.demands if info.ready <= n.kernel.time <= deadline and is_host(n)]
        if hosts:
            host = min(hosts, key=lambda n: n.kernel.time)
            return host.kernel, host.map
        return self._at(info, info.ready, deadline)

    def for_reduction(self, operand: Info, result: Info, deadline: int) -> Home:
        """A kernel to reduce `operand` in, and the map of its elements; bounded if zeros beside them do no harm."""
        low = result.ready - 1
        assert result.op is not None
        axes = result.op.attrs["axes"]
        for node in islice(reversed(operand.demands), LOOK_BACK):
            if low <= node.kernel.time <= deadline and is_host(node) and _separates(node.map, axes):
                return node.kernel, node.map
        if result.op.name in ("sum", "any"):
            near = self._nearby(operand, axes, low, deadline)
            if near is not None:
                return near
        return self._at(operand, low, deadline)

    def alone(self, info: Info) -> Home:
        """A kernel that nobody else will find."""
        space, index = self.canonical(info)
        kernel = Kernel(space, info.ready)
        return kernel, kernel.maps.intern(index)

    # ------------------------------------------------------------------ spaces

    def canonical(self, info: Info) -> tuple[Shape, Index]:
        """The space of a kernel made for the value, and its index there; transposes keep the operand's order."""
        perms = []
        while info.kind == Kind.VIEW and info.op is not None and info.op.name == "transpose":
            perms.append(info.op.attrs["perm"])
            info = info.inputs[0]
        space, index = self._space(info.shape)
        for perm in reversed(perms):
            index = tuple([index[p] for p in perm])
        return space, index

    def _space(self, shape: Shape) -> tuple[Shape, Index]:
        found = self._axes.get(shape)
        if found is None:
            found = self._axes[shape] = self._divided(shape)
        return found

    def _divided(self, shape: Shape) -> tuple[Shape, Index]:
        """Axes of length 1 dropped, others divided as `splits` says."""
        space = tuple([n for n in shape if n != 1])
        owner = [k for k, n in enumerate(shape) if n != 1]
        while space in self._splits:
            axis, inner = self._splits[space]
            space = (*space[:axis], space[axis] // inner, inner, *space[axis + 1 :])
            owner.insert(axis, owner[axis])
        index = [Affine()] * len(shape)
        stride = dict.fromkeys(owner, 1)
        for axis in range(len(space) - 1, -1, -1):
            k = owner[axis]
            index[k] = index[k].plus(axis_index(axis).scale(stride[k]))
            stride[k] *= space[axis]
        return space, tuple(index)

    # ------------------------------------------------------------------ search

    def _at(self, info: Info, low: int, high: int) -> Home:
        space, index = self.canonical(info)
        kernel = self._sharing(info, space, low, high) or self._existing(space, low, high) or self._new(space, low)
        return kernel, kernel.maps.intern(index)

    def _sharing(self, info: Info, space: Shape, low: int, high: int) -> Kernel | None:
        """A kernel over `space` that reads or computes an operand of the value."""
        for operand in info.inputs:
            for node in islice(reversed(operand.demands), LOOK_BACK):
                if node.kernel.space == space and _fits(node.kernel, low, high):
                    return node.kernel
        return None

    def _existing(self, space: Shape, low: int, high: int) -> Kernel | None:
        recent = islice(reversed(self._by_space.get(space, ())), LOOK_BACK)
        fitting = [k for k in recent if _fits(k, low, high)]
        return min(fitting, key=lambda k: k.time) if fitting else None

    def _new(self, space: Shape, time: int) -> Kernel:
        kernel = Kernel(space, time)
        self.kernels.append(kernel)
        self._by_space.setdefault(space, []).append(kernel)
        return kernel

    def _nearby(self, operand: Info, axes: tuple[int, ...], low: int, high: int) -> Home | None:
        """A kernel over a slightly larger space that has part of what `operand` needs, as for x[1:] - x[:-1]."""
        space, index = self._space(operand.shape)
        recent = [k for k in islice(reversed(self.kernels), LOOK_BACK) if _fits(k, low, high)]
        for kernel in [k for k in recent if _is_slightly_larger(k.space, space)]:
            wanted = list(_cone(operand))
            found = [n.map for i in wanted if i.shape == operand.shape for n in i.demands if n.kernel is kernel]
            if not found and _have_in_common(wanted, kernel):
                found = [kernel.maps.intern(index)]
            for m in found:
                bounded = _bounded(m, kernel, operand.shape, axes)
                if bounded is not None:
                    return kernel, bounded
        return None


def is_host(node: Node) -> bool:
    """Whether the kernel computes every element of the value just once, so that it can write it."""
    info, m = node.info, node.map
    return not m.bounds and covers(m.position(info.shape), node.kernel.space, info.size)


def _separates(m: Map, axes: tuple[int, ...]) -> bool:
    """Whether no loop axis runs over both a reduced and a kept axis."""
    if m.index is None:
        return False
    reduced = {a for k in axes for a, _ in m.index[k].terms}
    return all(a not in reduced for k, e in enumerate(m.index) if k not in axes for a, _ in e.terms)


def _fits(kernel: Kernel, low: int, high: int) -> bool:
    return low <= kernel.time <= high and not kernel.full


def _is_slightly_larger(space: Shape, wanted: Shape) -> bool:
    if len(space) != len(wanted) or any(n < m for n, m in zip(space, wanted, strict=True)):
        return False
    larger = smaller = 1
    for n, m in zip(space, wanted, strict=True):
        larger, smaller = larger * n, smaller * m
    return larger <= NEAR * smaller + LOOK_BACK


def _cone(*infos: Info) -> Iterator[Info]:
    """Values and what they are made of by elementwise ops and views, nearest first, a few."""
    queue, seen = list(infos), set(infos)
    for at in queue:
        yield at
        if at.kind in (Kind.POINT, Kind.VIEW) and len(queue) < 4 * LOOK_BACK:
            fresh = [i for i in dict.fromkeys(at.inputs) if i not in seen]
            seen.update(fresh)
            queue.extend(fresh)


def _have_in_common(wanted: list[Info], kernel: Kernel) -> bool:
    """Whether the kernel computes or reads some of `wanted` that is no single number."""
    made = set(_cone(*(sink.node.info for sink in kernel.sinks)))
    return any(i in made and i.size > 1 and i.kind in (Kind.POINT, Kind.GIVEN, Kind.REDUCE) for i in wanted)


def _bounded(m: Map, kernel: Kernel, shape: Shape, axes: tuple[int, ...]) -> Map | None:
    """`m` if it moves each axis by a constant, bounded to the value's range; kept axes must be full."""
    index, space = m.index, kernel.space
    if index is None:
        return None
    bounds, axis = [], 0
    for k, (expr, n) in enumerate(zip(index, shape, strict=True)):
        if n == 1:
            continue
        start = -expr.offset
        if expr.terms != ((axis, 1),) or start < 0 or start + n > space[axis]:
            return None
        if k not in axes and space[axis] != n:
            return None
        bounds.append(Bound(axis_index(axis), start, start + n))
        axis += 1
    simple = simplify_bounds(bounds, space)
    return kernel.maps.intern(index, None, simple) if simple is not None else None
