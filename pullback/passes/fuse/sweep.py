"""The backward walk that decides what each kernel computes.

Every value is visited once, after all its readers. By then each kernel that wants it has said so, with an index map.
The walk then either gives the value a place in a kernel (it is stored there, and later kernels load it), or lets each
kernel compute it, which passes the demand on to its operands.
"""

from collections.abc import Sequence
from typing import cast

from pullback.ir.graph import Region, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.kernel import StoreKind
from pullback.ir.opdef import Reduce
from pullback.ir.types import Shape
from pullback.passes.base import has_effect
from pullback.passes.fuse.cost import KERNEL, load_cost, trip_cost
from pullback.passes.fuse.homes import Homes, is_host
from pullback.passes.fuse.kernels import Form, Kernel, Node, Sink, positions
from pullback.passes.fuse.maps import Index, Map, UnmappableError, needed_bounds
from pullback.passes.fuse.table import LAST, Cut, Info, Kind, Table

SCALAR_PENALTY = 8
"""A value that does not change along the inner loop is computed once per row, in scalar code."""

BOUNDED = 1.5
"""What is computed within bounds of its own costs this much more: it breaks the loops into pieces."""

NEVER = 1e18
"""A price that nobody pays."""

MANY = 40
"""So many different index maps of one value in one kernel are never worth it."""


class Sweep:
    """One backward walk over a region. `cuts` and `splits` are what it found it could not do without another round."""

    def __init__(self, region: Region, table: Table, homes: Homes) -> None:
        self.region = region
        self.table = table
        self.homes = homes
        self.cuts: dict[Value, Cut] = {}
        self.splits: dict[Shape, tuple[int, int]] = {}
        self._flattened: dict[tuple[Kernel, Map], Info] = {}  # where a map lost its axes: the operand of a reshape

    def run(self) -> None:
        infos = self.table.infos
        for value in self.region.results:
            infos[value].require(LAST)
        for op in reversed(self.region.ops):
            results = [infos[v] for v in op.results]
            if results and results[0].kind != Kind.GIVEN:
                self._settle(results[0])
                continue
            if has_effect(op) or any(r.hard or r.demands for r in results):
                ready = self._ready(op.operands, results)
                for operand in op.operands:
                    infos[operand].require(ready - 1)
            for result in results:
                self._load_all(result.demands)
        for param in reversed(self.region.params):
            self._load_all(infos[param].demands)

    def _ready(self, operands: Sequence[Value], results: Sequence[Info]) -> int:
        if results:
            return results[0].ready
        return max([self.table.infos[v].stored() for v in operands], default=0)

    # ------------------------------------------------------------------ one value

    def _settle(self, info: Info) -> None:
        if not info.demands and not info.hard:
            return
        if info.kind == Kind.REDUCE:
            self._settle_reduction(info)
        elif info.kind == Kind.NUMBER:
            for node in info.demands:
                node.kernel.resolve(node, Form.NUMBER)
        elif info.hard and info.kind == Kind.VIEW and is_alias(info):
            info.aliased = True
            info.inputs[0].require(info.deadline)
            self._inline_all(info.demands)
        elif info.cut:
            before = min([n.kernel.time - 1 for n in info.demands], default=LAST)
            self._store(info, max(info.ready, min(before, info.deadline)))
        elif info.hard:
            self._store(info, info.deadline)
        elif info.kind in (Kind.POINT, Kind.GATHER):
            self._choose(info)
        else:
            self._inline_all(info.demands)

    def _settle_reduction(self, info: Info) -> None:
        assert info.op is not None
        assert isinstance(info.op.opdef.lower, Reduce)
        deadline = min([info.deadline, *(n.kernel.time - 1 for n in info.demands)])
        operand = info.inputs[0]
        axes: tuple[int, ...] = info.op.attrs["axes"]
        kernel, m = self.homes.for_reduction(operand, info, deadline)
        index = kernel.maps.index_of(m, operand.shape)
        at = positions(index, operand.shape, axes)
        node = kernel.demand(operand, m)
        kernel.sinks.append(Sink(info, cast(StoreKind, info.op.opdef.lower.kind), node, at, m.bounds))
        self._load_all(info.demands)

    def _store(self, info: Info, deadline: int) -> None:
        """Give the value a kernel that writes it. Later kernels load it if that is cheaper than computing it again."""
        kernel, m = self.homes.for_value(info, deadline)
        self._write(info, kernel, m)
        for node in list(info.demands):
            if node.form != Form.PENDING or node.kernel is kernel:
                continue
            if node.kernel.time <= kernel.time:
                if info.cut == Cut.VIEWS:  # a reader wants it elsewhere than where it is made: it must run later
                    self.cuts[info.value] = Cut.ALL
            elif info.cut or self._inline_cost(node) > _load_cost(node):
                self._load(node)
        self._inline_all([n for n in info.demands if n.form == Form.PENDING])

    def _write(self, info: Info, kernel: Kernel, m: Map) -> None:
        node = kernel.demand(info, m)
        kernel.sinks.append(Sink(info, "store", node, m.position(info.shape)))

    # ------------------------------------------------------------------ store or compute again

    def _choose(self, info: Info) -> None:
        nodes = info.demands
        first = min([n.kernel.time for n in nodes])
        if len(nodes) == 1 and not self._is_doubtful(info, nodes[0]):
            self._inline_all(nodes)
            return
        inline = [self._inline_cost(n) for n in nodes]
        load = [_load_cost(n) for n in nodes]
        trip = info.size * trip_cost(info.value.type.dtype, info.size)
        host = next((n for n in nodes if n.kernel.time == first and is_host(n)), None)
        gain = 0.0  # of storing it from the first kernel that wants it, for the later ones
        if host is not None:
            later = [k for k, n in enumerate(nodes) if n.kernel.time > first]
            gain = sum([inline[k] - load[k] for k in later]) - trip if later else 0.0
        operands = [min(i.size, info.size) * _operand_cost(i, info.ready) for i in info.inputs]
        once = info.size * info.own + sum(operands) + trip + KERNEL
        apart = sum(inline) - sum(load) - once  # of storing it from a kernel before all of them
        if info.ready < first and apart > max(gain, 0.0):
            self._store(info, first - 1)
        elif gain > 0.0:
            self._store(info, first)
        else:
            if info.ready == first and (len(nodes) > MANY or sum(inline) > 2 * (sum(load) + once) + 10 * KERNEL):
                self.cuts[info.value] = Cut.ALL if info.cut else Cut.VIEWS
            self._inline_or_cut(info)

    def _inline_or_cut(self, info: Info) -> None:
        if info.value in self.cuts:  # this round is for nothing: go on as if it were stored
            kernel, m = self.homes.alone(info)
            self._write(info, kernel, m)
            self._load_all([n for n in info.demands if n.kernel is not kernel])
        self._inline_all([n for n in info.demands if n.form == Form.PENDING])

    def _is_doubtful(self, info: Info, node: Node) -> bool:
        """Whether even a single reader may better load the value: it is small and costly, or the body is full."""
        kernel = node.kernel
        return (kernel.full and info.ready < kernel.time) or (info.own > 0.1 and 2 * info.size <= kernel.size)

    def _inline_cost(self, node: Node) -> float:
        """Nanoseconds to compute the value in the kernel of `node`, beside what it computes or loads already."""
        info, kernel = node.info, node.kernel
        if kernel.full:
            return NEVER
        cost = info.own
        for operand in info.inputs:
            if not kernel.has(operand, node.map):
                cost += _operand_cost(operand, kernel.time)
        return cost * _evaluations(node) * (BOUNDED if node.map.bounds else 1.0)

    # ------------------------------------------------------------------ defining nodes

    def _load_all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._load(node)

    def _load(self, node: Node) -> None:
        info, kernel = node.info, node.kernel
        kernel.resolve(node, Form.LOAD)
        node.at = node.map.position(info.shape)
        node.bounds = needed_bounds(node.map, info.shape, kernel.space)

    def _inline_all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.form != Form.PENDING:
                continue
            match node.info.kind:
                case Kind.POINT:
                    self._inline_point(node)
                case Kind.IOTA:
                    self._inline_iota(node)
                case Kind.GATHER:
                    self._inline_gather(node)
                case _:
                    self._inline_view(node)

    def _inline_point(self, node: Node) -> None:
        kernel, m = node.kernel, node.map
        kernel.add_weight(node.info.weight)
        kernel.resolve(node, Form.POINT, tuple([kernel.demand(i, m) for i in node.info.inputs]))

    def _inline_iota(self, node: Node) -> None:
        info = node.info
        assert info.op is not None
        index = self._index(node)
        if index is not None:
            node.kernel.resolve(node, Form.INDEX)
            node.at = index[info.op.attrs["axis"]]

    def _inline_gather(self, node: Node) -> None:
        """Element [before, idx, after] of the data, whose index is partly a value."""
        info, kernel = node.info, node.kernel
        assert info.op is not None
        index = self._index(node)
        if index is None:
            return
        data, idx = info.inputs
        axis = info.op.attrs["axis"]
        before, place, after = index[:axis], index[axis : axis + len(idx.shape)], index[axis + len(idx.shape) :]
        kernel.add_weight(info.weight)
        kernel.resolve(node, Form.GATHER, (kernel.demand(idx, kernel.maps.intern(place, None, node.map.bounds)),))
        node.at = positions((*before, Affine(), *after), data.shape, ())
        node.scale = _stride(data.shape, axis)
        data.require(kernel.time - 1)

    def _inline_view(self, node: Node) -> None:
        info, kernel = node.info, node.kernel
        assert info.op is not None
        try:
            pieces = kernel.maps.pieces(info.op, node.map)
        except UnmappableError as problem:
            self._cannot_map(node, problem)
            return
        if info.op.name == "reshape" and node.map.index is not None and pieces[0][1].index is None:
            self._flattened.setdefault((kernel, pieces[0][1]), info.inputs[0])
        wanted = [(kernel.demand(info.inputs[k], m), bounds) for k, m, bounds in pieces]
        if not wanted:
            kernel.resolve(node, Form.ZERO)
        elif len(wanted) > 1:
            self._choose_piece(node, wanted)
        elif wanted[0][1]:
            kernel.resolve(node, Form.WITHIN, (wanted[0][0],))
            node.bounds = wanted[0][1]
        else:
            kernel.resolve(node, Form.SAME, (wanted[0][0],))

    def _choose_piece(self, node: Node, wanted: list[tuple[Node, tuple[Bound, ...]]]) -> None:
        """Pieces that together fill the whole: the last one needs no question."""
        kernel = node.kernel
        kernel.resolve(node, Form.CHOOSE)
        args: list[Node] = []
        for piece, bounds in wanted[:-1]:
            args += [kernel.extra(node, Form.HOLDS, bounds), piece]
        node.args = (*args, wanted[-1][0])

    def _index(self, node: Node) -> Index | None:
        try:
            return node.kernel.maps.index_of(node.map, node.info.shape)
        except UnmappableError as problem:
            self._cannot_map(node, problem)
            return None

    def _cannot_map(self, node: Node, problem: UnmappableError) -> None:
        """Another round is needed: with an axis of the space split, or with the reshape's operand stored as it is."""
        if problem.split is not None:
            self.splits.setdefault(node.kernel.space, problem.split)
        else:
            self.cuts[self._flattened[node.kernel, node.map].value] = Cut.ALL
        node.kernel.resolve(node, Form.ZERO)


def _operand_cost(info: Info, time: int) -> float:
    """Nanoseconds an element of an operand, at a time. What is elementwise and ready no earlier has to be computed; all
    else can have been stored before."""
    return info.chain if info.kind == Kind.POINT and info.ready >= time else info.cost


def _load_cost(node: Node) -> float:
    """Nanoseconds to read the value wherever the kernel of `node` wants it."""
    type = node.info.value.type
    return load_cost(type.dtype, type.size) * _evaluations(node, scalar=1)


def _evaluations(node: Node, scalar: int = SCALAR_PENALTY) -> float:
    """How often the kernel computes the node: once per index of its space, less where an outer loop can do it."""
    space = node.kernel.space
    position = node.map.position(node.info.shape)
    used = 1 + max([axis for axis, _ in position.terms], default=-1)
    if used == len(space):
        return float(node.kernel.size)
    outer = float(scalar)
    for n in space[:used]:
        outer *= n
    return min(outer, float(node.kernel.size))


def _stride(shape: Shape, axis: int) -> int:
    stride = 1
    for n in shape[axis + 1 :]:
        stride *= n
    return stride


def is_alias(info: Info) -> bool:
    """Whether a view keeps all elements in their order, so that it is the same memory under another shape."""
    assert info.op is not None
    source = info.inputs[0]
    match info.op.name:
        case "transpose":
            perm = [p for p in info.op.attrs["perm"] if source.shape[p] != 1]
            return perm == sorted(perm)
        case "reverse" | "pad" | "concatenate" | "update":
            return False
    return source.size == info.size
