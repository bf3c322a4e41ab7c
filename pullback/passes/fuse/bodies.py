"""From the nodes of a kernel to a `kernel` op: independent parts come apart, axes merge, the body is written out."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pullback.ir.graph import Attrs, Literal, Location, Op, Region, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.kernel import Load, Store
from pullback.ir.ops import OPS
from pullback.ir.types import I64, DType, Shape, TensorType, tensor_type
from pullback.passes.fuse.kernels import Form, Kernel, Node, Sink
from pullback.passes.fuse.maps import Bounds
from pullback.passes.fuse.table import Info

SMALL = 4096
"""Kernels over so few elements are left whole: one loop costs less than two, and memory is near."""

FEW = 64
"""Values that such a kernel may read and write for that; LLVM's time grows faster than linearly with them."""

_TRUE = Literal(np.True_)


class Part:
    """Sinks that share what they read or compute, and the nodes below them from first to last."""

    __slots__ = ("nodes", "sinks", "space")

    def __init__(self, space: Shape, sinks: list[Sink], nodes: list[Node]) -> None:
        self.space = space
        self.sinks = sinks
        self.nodes = nodes

    def reads(self) -> dict[Info, None]:
        """The values it takes from memory, each once."""
        found: dict[Info, None] = {}
        for node in self.nodes:
            if node.form == Form.LOAD:
                found[node.info] = None
            elif node.form == Form.GATHER:
                found[node.info.inputs[0]] = None
        return found

    def accesses(self) -> int:
        """How many values it reads and writes."""
        return len(self.reads()) + len(self.sinks)

    def position(self) -> int:
        return max([s.info.position for s in self.sinks])


# ------------------------------------------------------------------ parts


def parts_of(kernel: Kernel) -> list[Part]:
    """The kernel in independent parts: they share no value but numbers, and in large kernels no array they read."""
    whole = Part(kernel.space, kernel.sinks, kernel.order[::-1])
    small = kernel.size <= SMALL
    if len(kernel.sinks) == 1 or (small and whole.accesses() <= FEW):
        return [whole]
    return _gathered(_independent(whole, shared=False)) if small else _independent(whole, shared=True)


def _independent(whole: Part, shared: bool) -> list[Part]:
    """Parts that share no value; `shared`: nor an array that they read."""
    groups = _Groups()
    for node in whole.nodes:
        for arg in node.args:
            if arg.form != Form.NUMBER:
                groups.join(node, arg)
        if shared and node.form == Form.LOAD and node.info.size > 1:
            groups.join(node, node.info)
        elif shared and node.form == Form.GATHER:
            groups.join(node, node.info.inputs[0])
    sinks: dict[object, list[Sink]] = {}
    for sink in whole.sinks:
        sinks.setdefault(groups.find(sink.node), []).append(sink)
    if len(sinks) == 1:
        return [whole]
    inside: dict[object, list[Node]] = {root: [] for root in sinks}
    for node in whole.nodes:
        if node.form == Form.NUMBER:
            for group in inside.values():
                group.append(node)
        else:
            inside[groups.find(node)].append(node)
    return [Part(whole.space, sinks[root], inside[root]) for root in sinks]


def _gathered(parts: list[Part]) -> list[Part]:
    """Parts put together again, as many as have `FEW` accesses."""
    found: list[Part] = []
    room = 0
    for part in parts:
        room -= part.accesses()
        if room >= 0:
            last = found[-1]
            seen = {node for node in last.nodes if node.form == Form.NUMBER}
            last.nodes.extend([node for node in part.nodes if node not in seen])
            last.sinks.extend(part.sinks)
        else:
            found.append(part)
            room = FEW - part.accesses()
    return found


class _Groups:
    """Disjoint sets of any objects."""

    def __init__(self) -> None:
        self.parent: dict[object, object] = {}

    def find(self, x: object) -> object:
        parent = self.parent
        while (above := parent.get(x, x)) is not x:
            parent[x] = parent.get(above, above)
            x = above
        return x

    def join(self, x: object, y: object) -> None:
        a, b = self.find(x), self.find(y)
        if a is not b:
            self.parent[a] = b


# ------------------------------------------------------------------ axes


class Axes:
    """Axes of a space merged where every position runs through them as through one."""

    __slots__ = ("_place", "_stride", "space")

    def __init__(self, space: Shape, positions: Iterable[Affine], bounds: Iterable[Bound]) -> None:
        joined = _joinable(space, positions, bounds)
        self._place: list[int] = []
        self._stride = [1] * len(space)
        sizes: list[int] = []
        for axis, n in enumerate(space):
            if axis and joined[axis]:
                sizes[-1] *= n
            else:
                sizes.append(n)
            self._place.append(len(sizes) - 1)
        for axis in range(len(space) - 2, -1, -1):
            if joined[axis + 1]:
                self._stride[axis] = self._stride[axis + 1] * space[axis + 1]
        self.space = tuple(sizes)

    def affine(self, e: Affine) -> Affine:
        """The last axis of a merged run has the coefficient of the merged one."""
        return Affine(e.offset, tuple(sorted({self._place[a]: c for a, c in e.terms}.items())))

    def bounds(self, bounds: Bounds) -> Bounds:
        return tuple(sorted([self._bound(b) for b in bounds]))

    def _bound(self, b: Bound) -> Bound:
        if len(b.index.terms) == 1:
            ((axis, c),) = b.index.terms
            stride = self._stride[axis]
            return Bound(self.affine(b.index), b.low * stride, b.high * stride) if c == 1 else b
        return Bound(self.affine(b.index), b.low, b.high)


def _joinable(space: Shape, positions: Iterable[Affine], bounds: Iterable[Bound]) -> list[bool]:
    """For each axis whether it continues the one before it."""
    joined = [axis > 0 for axis in range(len(space))]
    for e in dict.fromkeys(positions):
        _require_run(joined, space, e)
    for b in dict.fromkeys(bounds):
        if len(b.index.terms) == 1 and b.index.terms[0][1] == 1:
            joined[b.index.terms[0][0]] = False  # an interval of the first axis of a run is one of the run
        else:
            _require_run(joined, space, b.index)
    return joined


def _require_run(joined: list[bool], space: Shape, e: Affine) -> None:
    coefficients = dict(e.terms)
    for axis in range(1, len(space)):
        if joined[axis] and coefficients.get(axis - 1, 0) != coefficients.get(axis, 0) * space[axis]:
            joined[axis] = False


def _axes_of(part: Part) -> Axes:
    positions = [n.at for n in part.nodes if n.form in (Form.LOAD, Form.INDEX, Form.GATHER)]
    positions += [s.at for s in part.sinks]
    bounds = [b for n in part.nodes for b in n.bounds] + [b for s in part.sinks for b in s.within]
    return Axes(part.space, positions, bounds)


# ------------------------------------------------------------------ body


def kernel_op(part: Part, memory: Callable[[Info], Value]) -> Op:
    """The `kernel` op of a part. `memory` gives the planned value of what it reads; results follow `part.sinks`."""
    axes = _axes_of(part)
    body = _Body(axes, memory)
    for node in part.nodes:
        body.write(node)
    stores, given = [], []
    for sink in part.sinks:
        value = body.values[sink.node]
        given.append(body.within(value, sink.within) if sink.within else value)
        stores.append(Store(sink.kind, sink.info.value.type, axes.affine(sink.at)))
    region = Region(tuple(body.params), tuple(body.ops), tuple(given))
    attrs = Attrs(space=axes.space, loads=tuple(body.loads), stores=tuple(stores))
    types = tuple([s.type for s in stores])
    op = Op(OPS["kernel"], tuple(body.operands), attrs, types, (region,), _location(part.sinks))
    for sink, result in zip(part.sinks, op.results, strict=True):
        result.hint = sink.info.value.hint
    return op


def _location(sinks: Sequence[Sink]) -> Location | None:
    last = max(sinks, key=lambda s: s.info.position)
    return last.info.op.loc if last.info.op is not None else None


class _Body:
    """Scalar ops in order; equal ones are written once."""

    def __init__(self, axes: Axes, memory: Callable[[Info], Value]) -> None:
        self.values: dict[Node, Value] = {}
        self.params: list[Value] = []
        self.loads: list[Load] = []
        self.operands: dict[Value, int] = {}
        self.ops: list[Op] = []
        self._axes = axes
        self._memory = memory
        self._made: dict[object, Value] = {}

    def write(self, node: Node) -> None:
        self.values[node] = self._value(node)

    def _value(self, node: Node) -> Value:
        args = [self.values[a] for a in node.args]
        type = node.info.value.type
        match node.form:
            case Form.POINT:
                return self._point(node, args)
            case Form.SAME:
                return args[0]
            case Form.LOAD:
                return self._load(node)
            case Form.WITHIN:
                return self.within(args[0], node.bounds)
            case Form.HOLDS:
                return self.within(self.constant(_TRUE), node.bounds)
            case Form.CHOOSE:
                return self._choose(args, node.info.op)
            case Form.NUMBER:
                return self._number(node)
            case Form.INDEX:
                return self._cast(self._position(self._axes.affine(node.at), None), type.dtype)
            case Form.GATHER:
                return self._gather(node, args[0])
        return self.constant(Literal(np.zeros((), type.dtype)))

    # ------------------------------------------------------------------ forms

    def _point(self, node: Node, args: list[Value]) -> Value:
        op = node.info.op
        assert op is not None
        key = (op, *args)
        value = self._made.get(key)
        if value is None:
            made = Op(op.opdef, tuple(args), op.attrs, (tensor_type(node.info.value.type.dtype),), (), op.loc)
            self.ops.append(made)
            value = self._made[key] = made.results[0]
            value.hint = node.info.value.hint
        return value

    def _load(self, node: Node) -> Value:
        source = self._memory(node.info)
        at, bounds = self._axes.affine(node.at), self._axes.bounds(node.bounds)
        key = (source, at, bounds)
        value = self._made.get(key)
        if value is None:
            value = self._made[key] = Value(tensor_type(source.type.dtype), None, len(self.params), source.hint)
            self.params.append(value)
            self.loads.append(Load(self._operand(source), at, bounds))
        return value

    def _operand(self, source: Value) -> int:
        return self.operands.setdefault(source, len(self.operands))

    def within(self, value: Value, bounds: Bounds) -> Value:
        bounds = self._axes.bounds(bounds)
        if value.op is None and set(bounds) <= set(self.loads[value.index].bounds):
            return value  # the load gives zero there already
        return self._emit("within", value.type, value, bounds=bounds)

    def _choose(self, args: list[Value], op: Op | None) -> Value:
        value = args[-1]
        for k in range(len(args) - 3, -1, -2):
            value = self._emit("select", value.type, args[k], args[k + 1], value)
        return value

    def _number(self, node: Node) -> Value:
        op = node.info.op
        assert op is not None
        literal: Literal = op.attrs["value"]
        return self.constant(literal if literal.array.shape == () else Literal(literal.array.reshape(())))

    def constant(self, literal: Literal) -> Value:
        return self._emit("constant", tensor_type(literal.array.dtype), value=literal)

    def _position(self, at: Affine, moved: Value | None) -> Value:
        """`at`, plus `moved` if given, as an i64."""
        total = moved
        for axis, c in at.terms:
            term = self._emit("index", _INT, axis=axis)
            if c != 1:
                term = self._emit("mul", _INT, term, self._integer(c))
            total = term if total is None else self._emit("add", _INT, total, term)
        if total is None:
            return self._integer(at.offset)
        return self._emit("add", _INT, total, self._integer(at.offset)) if at.offset else total

    def _integer(self, number: int) -> Value:
        return self.constant(Literal(np.int64(number)))

    def _cast(self, value: Value, dtype: DType) -> Value:
        return value if value.type.dtype == dtype else self._emit("cast", tensor_type(dtype), value, dtype=dtype)

    def _gather(self, node: Node, idx: Value) -> Value:
        op = node.info.op
        assert op is not None
        data = self._memory(node.info.inputs[0])
        n, dtype = data.type.shape[op.attrs["axis"]], data.type.dtype
        if n != data.type.size:  # `load_at` keeps within the array; an index out of range must stay in its row
            idx = self._emit("clip", _INT, idx, self._integer(0), self._integer(n - 1))
        if node.scale != 1:
            idx = self._emit("mul", _INT, idx, self._integer(node.scale))
        place = self._position(self._axes.affine(node.at), idx)
        return self._emit("load_at", tensor_type(dtype), place, operand=self._operand(data), dtype=dtype)

    def _emit(self, name: str, type: TensorType, *args: Value, **attrs: object) -> Value:
        frozen = Attrs(attrs)
        key = (name, args, frozen.key())
        value = self._made.get(key)
        if value is None:
            made = Op(OPS[name], args, frozen, (type,))
            self.ops.append(made)
            value = self._made[key] = made.results[0]
        return value


_INT = tensor_type(I64)
