"""The native signature of a staged call: argument and result nodes for the runtime."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from pullback.api.call import Call, StaticArgument
from pullback.api.staged import Staged
from pullback.codegen.object import (
    ArgSpec,
    Captured,
    DictOf,
    Kind,
    ListOf,
    Node,
    ResultSpec,
    Signature,
    Static,
    TupleOf,
)
from pullback.ir.builder import Builder
from pullback.ir.graph import Function
from pullback.record import record
from pullback.tracer.arguments import Spec
from pullback.tracer.entry import Output
from pullback.tracer.tree import TreeDef

_KINDS = {float: Kind.FLOAT, int: Kind.INT, bool: Kind.BOOL, complex: Kind.COMPLEX}


class MisshapenError(Exception):
    """A container that native code does not take apart or build."""


@record(frozen=True)
class Shape:
    """How a specialisation is called.

    signature, objects : for the runtime
    function : with its parameters and results in the order of the signature
    order : which parameter of the staged program each parameter of `function` is
    direct : the signature is that of the user's call; else it takes the traced leaves as positional arguments
    built : the runtime builds the user's result; else it gives a flat tuple
    """

    signature: Signature
    objects: tuple[object, ...]
    function: Function
    order: tuple[int, ...]
    direct: bool
    built: bool


class _Slots:
    """Objects of the signature, each in a slot."""

    def __init__(self) -> None:
        self.objects: list[object] = []

    def add(self, thing: object) -> int:
        self.objects.append(thing)
        return len(self.objects) - 1


def shape_of_call(call: Call, staged: Staged, watched: bool = False) -> Shape:
    """The best signature for a call: the user's own where its containers allow, else the leaves one after the other.

    Parameters
    ----------
    watched : the native entry compares what the function rests on
    """
    slots = _Slots()
    params = staged.function.params
    first = len(staged.traced.leaves)
    captured = tuple(
        [Captured(slots.add(e.source), p.type) for e, p in zip(staged.extras, params[first:], strict=True)]
    )
    args = _given_args(call, staged, slots)
    direct = args is not None
    nodes, order, keywords = args or _flat_args(call, staged)
    result, results, built = _result(staged, slots)
    signature = Signature(nodes, result, len(slots.objects), keywords, captured, watched)
    order += tuple(range(first, len(params)))
    function = reordered(staged.function, order, results)
    return Shape(signature, tuple(slots.objects), function, order, direct, built)


_Args = tuple[tuple[Node, ...], tuple[int, ...], tuple[str, ...]]  # nodes, parameters in their order, keywords


def _given_args(call: Call, staged: Staged, slots: _Slots) -> _Args | None:
    """The user's own arguments; None where one is a container that native code does not take apart."""
    start = len(slots.objects)
    reader = _Reader(call, staged, slots)
    args, kwargs = call.tree.children
    try:
        nodes = [reader.node(child) for child in args.children]
        by_name = reader.children(kwargs)
    except MisshapenError:
        del slots.objects[start:]
        return None
    return (*nodes, *by_name), tuple(reader.order), tuple([kwargs.keys[k] for k in kwargs.order])


def _flat_args(call: Call, staged: Staged) -> _Args:
    numbers = staged.traced.leaves
    specs = [call.leaves[k] for k in numbers]
    nodes = tuple([ArgSpec(s.type, _arg_kinds(s), s.order) for s in specs if isinstance(s, Spec)])
    return nodes, tuple(range(len(numbers))), ()


class _Reader:
    """Turns the trees of arguments into nodes; notes the parameters in the order in which it met their leaves."""

    def __init__(self, call: Call, staged: Staged, slots: _Slots) -> None:
        self.order: list[int] = []
        self._call = call
        self._slots = slots
        self._numbers = {leaf: k for k, leaf in enumerate(staged.traced.leaves)}
        self._types = [p.type for p in staged.function.params]
        self._leaf = 0

    def node(self, tree: TreeDef) -> Node:
        """The node of the subtree whose first leaf is next. Trees nest as deep as the user's containers do."""
        if tree.kind == "leaf":
            self._leaf += 1
            return self._leaf_node(self._leaf - 1)
        if tree.kind == "none":
            return Static(self._slots.add(None))
        return _container(tree, self.children(tree), self._slots)

    def children(self, tree: TreeDef) -> tuple[Node, ...]:
        """The nodes of the children; of a dictionary, in the order it was written in."""
        if tree.kind != "dict":
            return tuple([self.node(child) for child in tree.children])
        starts = list(accumulate([child.size for child in tree.children], initial=self._leaf))
        nodes = []
        for k in tree.order:
            self._leaf = starts[k]
            nodes.append(self.node(tree.children[k]))
        self._leaf = starts[-1]
        return tuple(nodes)

    def _leaf_node(self, leaf: int) -> Node:
        spec = self._call.leaves[leaf]
        if isinstance(spec, Spec):
            number = self._numbers[leaf]
            self.order.append(number)
            return ArgSpec(self._types[number], _arg_kinds(spec), spec.order)
        value = self._call.values[leaf]
        return Static(self._slots.add(value.value if type(value) is StaticArgument else value))


def _arg_kinds(spec: Spec) -> tuple[Kind, ...]:
    if spec.python is not None:
        return (_KINDS[spec.python],)
    if spec.scalar:
        return (Kind.SCALAR,)
    return (Kind.ARRAY, Kind.STRIDED) if spec.order is None else (Kind.STRIDED,)


def _container(tree: TreeDef, items: tuple[Node, ...], slots: _Slots) -> Node:
    match tree.kind:
        case "tuple":
            return TupleOf(items)
        case "list":
            return ListOf(items)
        case "dict":
            keys = tuple([tree.keys[k] for k in tree.order])
            if any(type(k) is not str for k in keys):
                raise MisshapenError
            return DictOf(keys, items)
        case type() as cls if issubclass(cls, tuple):
            return TupleOf(items, slots.add(cls))
    raise MisshapenError


def _result(staged: Staged, slots: _Slots) -> tuple[Node, list[int], bool]:
    """The result node, the order in which it takes the function's results, and whether it is the user's structure."""
    start = len(slots.objects)
    order: list[int] = []
    try:
        node = _result_node(staged.out_tree, iter(staged.outputs), staged.function, order, slots)
    except MisshapenError:
        del slots.objects[start:]
        used = [o for o in staged.outputs if o.kind != "static"]
        order = [o.index for o in used]
        items = tuple(_result_leaf(o, staged.function) for o in used)
        return TupleOf(items), order, False
    return node, order, True


def _result_node(tree: TreeDef, outputs: Any, function: Function, order: list[int], slots: _Slots) -> Node:
    if tree.kind == "none":
        return Static(slots.add(None))
    if tree.kind == "leaf":
        output: Output = next(outputs)
        if output.kind == "static":
            return Static(slots.add(output.value))
        order.append(output.index)
        return _result_leaf(output, function)
    if tree.kind == "dict" and tree.order != tuple(range(len(tree.keys))):
        return _unsorted_dict(tree, outputs, function, order, slots)
    items = tuple([_result_node(child, outputs, function, order, slots) for child in tree.children])
    return _container(tree, items, slots)


def _unsorted_dict(tree: TreeDef, outputs: Any, function: Function, order: list[int], slots: _Slots) -> Node:
    """Leaves come by sorted key, the dict has another order: build the children, then put their results in that
    order."""
    parts: list[tuple[Node, list[int]]] = []
    for child in tree.children:
        own: list[int] = []
        parts.append((_result_node(child, outputs, function, own, slots), own))
    for k in tree.order:
        order.extend(parts[k][1])
    return _container(tree, tuple([parts[k][0] for k in tree.order]), slots)


def _result_leaf(output: Output, function: Function) -> ResultSpec:
    type_ = function.results[output.index].type
    if output.kind == "python" and output.python is not None:
        return ResultSpec(type_, _KINDS[output.python])
    return ResultSpec(type_, Kind.SCALAR if output.kind == "scalar" else Kind.ARRAY)


def reordered(function: Function, params: Sequence[int], results: Sequence[int]) -> Function:
    """The function with parameters and results in another order (results may repeat or drop out)."""
    if list(params) == list(range(len(function.params))) and list(results) == list(range(len(function.results))):
        return function
    b = Builder()
    env = {}
    for k in params:
        old = function.params[k]
        env[old] = b.param(old.type, old.hint)
    values = b.inline(function.body, [env[p] for p in function.params])
    return b.function(function.name, [values[k] for k in results], function.stage, function.source)
