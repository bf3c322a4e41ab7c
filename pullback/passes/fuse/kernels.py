"""Kernels while they are being put together: nodes are body values, demanded before they are defined."""

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from pullback.ir.index import Affine
from pullback.ir.kernel import StoreKind
from pullback.ir.types import Shape
from pullback.passes.fuse.cost import BODY_LIMIT
from pullback.passes.fuse.maps import Bounds, Index, Map, Maps

if TYPE_CHECKING:
    from pullback.passes.fuse.table import Info


class Form(IntEnum):
    """How a node gets its value."""

    PENDING = 0
    POINT = 1  # the op of its info on `args`
    SAME = 2  # args[0]
    WITHIN = 3  # args[0] where `bounds` hold, else zero
    CHOOSE = 4  # args are predicate, value, predicate, value, ..., value
    HOLDS = 5  # whether `bounds` hold
    LOAD = 6
    INDEX = 7  # an integer, affine in the loop indices (`at`)
    NUMBER = 8
    GATHER = 9  # element at + args[0] * scale of the op's first operand
    ZERO = 10


class Node:
    """One value of a kernel's body: `info` at `map`."""

    __slots__ = ("args", "at", "bounds", "form", "info", "kernel", "map", "scale")

    args: "tuple[Node, ...]"

    def __init__(self, kernel: "Kernel", info: "Info", map: Map, form: Form = Form.PENDING) -> None:
        self.kernel = kernel
        self.info = info
        self.map = map
        self.form = form
        self.args = ()
        self.at = Affine()
        self.bounds: Bounds = ()
        self.scale = 1


class Sink:
    """What a kernel writes: the value of a node, where and how; within bounds, zero elsewhere."""

    __slots__ = ("at", "info", "kind", "node", "within")

    def __init__(self, info: "Info", kind: StoreKind, node: Node, at: Affine, within: Bounds = ()) -> None:
        self.info = info
        self.kind: StoreKind = kind
        self.node = node
        self.at = at
        self.within = within


class Kernel:
    """A loop nest over `space` at a time. `order` holds its nodes from last to first."""

    __slots__ = ("full", "maps", "nodes", "order", "sinks", "size", "space", "time", "weight")

    def __init__(self, space: Shape, time: int) -> None:
        self.space = space
        self.size = math.prod(space)
        self.time = time
        self.maps = Maps(space)
        self.nodes: dict[tuple[Any, Map], Node] = {}
        self.order: list[Node] = []
        self.sinks: list[Sink] = []
        self.weight = 0
        self.full = False

    def add_weight(self, instructions: int) -> None:
        """A body that is full takes nothing more that could be stored before, however light, lest heavy values be
        stored one by one while the light ops between them go on."""
        self.weight += instructions
        self.full = self.weight > BODY_LIMIT

    def demand(self, info: "Info", m: Map) -> Node:
        """The node of `info` at `m`; a new one waits on the info's list until the sweep comes to it."""
        key = (info, m)
        node = self.nodes.get(key)
        if node is None:
            node = self.nodes[key] = Node(self, info, m)
            info.demands.append(node)
        return node

    def has(self, info: "Info", m: Map) -> bool:
        return (info, m) in self.nodes

    def resolve(self, node: Node, form: Form, args: tuple[Node, ...] = ()) -> None:
        node.form = form
        node.args = args
        self.order.append(node)

    def extra(self, node: Node, form: Form, bounds: Bounds) -> Node:
        """A node that stands for no value of the function, beside `node`."""
        made = Node(self, node.info, node.map, form)
        made.bounds = bounds
        self.order.append(made)
        return made


def positions(index: Index, shape: Shape, axes: tuple[int, ...]) -> Affine:
    """The position in a value of `shape` without `axes`, of the element at `index` of `shape`."""
    at, stride = Affine(), 1
    for k in range(len(shape) - 1, -1, -1):
        if k not in axes:
            at = at.plus(index[k].scale(stride))
            stride *= shape[k]
    return at
