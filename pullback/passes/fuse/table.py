"""The values of a region as fusion sees them: what each is, when it can be had at the earliest, what it costs."""

from collections.abc import Mapping
from enum import IntEnum

from pullback.ir.graph import Op, Region, Value
from pullback.ir.kernel import STORE_KINDS
from pullback.ir.opdef import Reduce, Scalar, View
from pullback.ir.types import Shape
from pullback.passes.base import has_effect
from pullback.passes.fuse.cost import BODY_LIMIT, compute_cost, load_cost, trip_cost
from pullback.passes.fuse.kernels import Node


class Kind(IntEnum):
    """How a value comes about."""

    GIVEN = 0  # a parameter, an array constant, a result of an op that is no kernel
    NUMBER = 1  # a constant of one element
    IOTA = 2
    POINT = 3  # elementwise
    VIEW = 4
    GATHER = 5
    REDUCE = 6


class Cut(IntEnum):
    """Decided in an earlier round: the value is stored, and who reads it runs later."""

    NONE = 0
    VIEWS = 1  # readers through a view run later; elementwise readers may share its kernel
    ALL = 2


class Info:
    """One value.

    ready : the earliest time of a kernel that can have it in its body
    own, weight : nanoseconds an element and instructions of its op; `cost` and `chain` add what it is made of
    gathers : an element of an array at a computed index is part of it
    hard, deadline : it must be in memory, written by a kernel of that time or before
    aliased : it is in memory as another value under another shape
    demands : the nodes that want it, one for each kernel and index map
    """

    __slots__ = (
        "aliased", "chain", "cost", "cut", "deadline", "demands", "gathers", "hard", "inputs", "kind", "op", "own",
        "position", "ready", "value", "weight",
    )  # fmt: skip

    inputs: "tuple[Info, ...]"
    demands: list[Node]

    def __init__(self, value: Value, kind: Kind, position: int, inputs: "tuple[Info, ...]" = ()) -> None:
        self.value = value
        self.kind = kind
        self.op = value.op
        self.position = position
        self.inputs = inputs
        self.ready = 0
        self.own = 0.0
        self.weight = 0
        self.cost = 0.0
        self.chain = 0.0
        self.cut = Cut.NONE
        self.gathers = False
        self.hard = False
        self.deadline = LAST
        self.aliased = False
        self.demands = []

    @property
    def shape(self) -> Shape:
        return self.value.type.shape

    @property
    def size(self) -> int:
        return self.value.type.size

    def stored(self) -> int:
        """The earliest time of a kernel that can load it from memory."""
        return self.ready if self.kind in (Kind.GIVEN, Kind.REDUCE) else self.ready + 1

    def require(self, deadline: int) -> None:
        """It must be in memory: written by a kernel of time `deadline` or before."""
        self.hard = True
        self.deadline = min(self.deadline, deadline)


LAST = 1 << 60
"""A deadline that is none."""

VERY_LONG = 1e3
"""Bound of the cost of a chain, which grows exponentially where values are used twice."""

PIECES = 16
"""Arrays that a concatenation in a kernel chooses among at most; more are copied to their places."""

ROW = 8
"""Elements that a gather moves at a time from which on it is better done by copies of rows."""


class Table:
    """All values of a region, with times from a walk in order.

    Kernels are placed at times 0, 1, 2...: each loads only what kernels of earlier times store, so kernels of one time
    and one space can be merged without asking for cycles. An op that is no kernel runs just before the time its results
    are ready.
    """

    def __init__(self, region: Region, cuts: Mapping[Value, Cut]) -> None:
        self.infos: dict[Value, Info] = {}
        self._cuts = cuts
        self._weights: dict[tuple[int, Shape], int] = {}
        self._room: dict[tuple[int, Shape], int] = {}  # of full times: a later one, with none that has room between
        self._plain = wanted_in_memory(region)
        self._effects = 0  # the time of the latest op with an effect
        for param in region.params:
            self.infos[param] = Info(param, Kind.GIVEN, -1)
        for position, op in enumerate(region.ops):
            self._enter(op, position)

    def _enter(self, op: Op, position: int) -> None:
        inputs = tuple([self.infos[v] for v in op.operands])
        kind = self._kind(op, inputs)
        own, weight = compute_cost(op)
        ready = self._ready(kind, inputs)
        if kind == Kind.POINT:
            ready = self._not_too_full(op.results[0].type.shape, weight, ready)
        if has_effect(op):  # effects keep their order, so a later one cannot be had at an earlier time
            ready = self._effects = max(ready, self._effects)
        for value in op.results:
            info = self.infos[value] = Info(value, kind, position, inputs)
            info.own, info.weight, info.ready = own, weight, ready
            info.cut = self._cuts.get(value, Cut.NONE)
            info.gathers = kind == Kind.GATHER or (kind in (Kind.POINT, Kind.VIEW) and any(i.gathers for i in inputs))
            _set_costs(info)

    def _kind(self, op: Op, inputs: tuple[Info, ...]) -> Kind:
        match op.opdef.lower:
            case Scalar():
                return Kind.POINT
            case View():
                return Kind.GIVEN if _is_strided_pad(op) or len(op.operands) > PIECES else Kind.VIEW
            case Reduce(kind) if kind in STORE_KINDS:
                return Kind.REDUCE if _reduces(op) else Kind.VIEW
        match op.name:
            case "constant":
                return Kind.NUMBER if op.results[0].type.size == 1 else Kind.GIVEN
            case "iota":
                return Kind.IOTA
            case "update":
                return Kind.VIEW if _writes_most(op) else Kind.GIVEN
            case "gather":
                return Kind.GIVEN if self._is_row_copy(op) or inputs[1].gathers else Kind.GATHER
        return Kind.GIVEN

    def _is_row_copy(self, op: Op) -> bool:
        x, axis = op.operands[0].type, op.attrs["axis"]
        row = 1
        for n in x.shape[axis + 1 :]:
            row *= n
        return row >= ROW and op.results[0] in self._plain

    def _ready(self, kind: Kind, inputs: tuple[Info, ...]) -> int:
        if kind == Kind.GIVEN:
            return max([i.stored() for i in inputs], default=0)
        through_view = kind in (Kind.VIEW, Kind.GATHER)
        ready = max([i.ready + (i.cut == Cut.ALL or (i.cut == Cut.VIEWS and through_view)) for i in inputs], default=0)
        if kind == Kind.GATHER:
            ready = max(ready, inputs[0].stored())
        return ready + 1 if kind == Kind.REDUCE else ready

    def _not_too_full(self, shape: Shape, weight: int, ready: int) -> int:
        """The first time from `ready` on whose elementwise work over this shape still fits one kernel body."""
        room, full = self._room, []
        while (later := room.get((ready, shape))) is not None:
            full.append(ready)
            ready = later
        for time in full:  # who comes this way again need not ask each of them
            room[time, shape] = ready
        total = self._weights[ready, shape] = self._weights.get((ready, shape), 0) + weight
        if total > BODY_LIMIT:
            room[ready, shape] = ready + 1
        return ready


def wanted_in_memory(region: Region) -> set[Value]:
    """Values that an op other than elementwise ones, views and reductions reads, or the region gives."""
    wanted = set(region.results)
    for op in region.ops:
        if not isinstance(op.opdef.lower, Scalar | View | Reduce):
            wanted.update(op.operands)
    return wanted


def _writes_most(op: Op) -> bool:
    """Whether an update without steps writes so much that one pass over the whole array costs no more."""
    x, v = op.operands[0].type, op.operands[1].type
    return 2 * v.size >= x.size and all(step == 1 for step in op.attrs["step"])


def _is_strided_pad(op: Op) -> bool:
    return op.name == "pad" and any(op.attrs["interior"])


def _reduces(op: Op) -> bool:
    """Whether a reduction adds up anything; over axes of length 1 it only drops them."""
    shape = op.operands[0].type.shape
    return any(shape[a] != 1 for a in op.attrs["axes"])


def _set_costs(info: Info) -> None:
    """Nanoseconds an element to have the value in one more kernel.

    `chain` is to compute it, with the elementwise ops before it; `cost` is that or to read it, whichever is less.
    """
    type = info.value.type
    if info.kind in (Kind.NUMBER, Kind.IOTA):
        return
    if info.kind in (Kind.GIVEN, Kind.REDUCE):
        info.cost = info.chain = load_cost(type.dtype, type.size)
        return
    size = max(type.size, 1)
    inputs = sum([(i.chain if i.kind == Kind.POINT else i.cost) * min(1.0, i.size / size) for i in info.inputs])
    info.chain = min(info.own + inputs, VERY_LONG)
    info.cost = min(info.chain, trip_cost(type.dtype, type.size))
