"""The native signature of a staged call: argument and result nodes for the runtime."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pullback.api.call import Call, StaticArgument
from pullback.api.staged import Staged
from pullback.codegen.object import ArgSpec, DictOf, Kind, ListOf, Node, ResultSpec, Signature, Static, TupleOf
from pullback.ir.builder import Builder
from pullback.ir.graph import Function
from pullback.tracer.arguments import Spec
from pullback.tracer.entry import Output
from pullback.tracer.tree import TreeDef

_KINDS = {float: Kind.FLOAT, int: Kind.INT, bool: Kind.BOOL, complex: Kind.COMPLEX}


class MisshapenError(Exception):
    """A container that native code does not take apart or build."""


@dataclass(frozen=True)
class Shape:
    """How a specialisation is called.

    signature, objects : for the runtime
    function : with its parameters and results in the order of the signature
    direct : the signature is that of the user's call; else it takes the traced leaves and the extras as positional
        arguments
    built : the runtime builds the user's result; else it gives a flat tuple
    """

    signature: Signature
    objects: tuple[object, ...]
    function: Function
    direct: bool
    built: bool


class _Slots:
    """Objects of the signature, each in a slot."""

    def __init__(self) -> None:
        self.objects: list[object] = []

    def add(self, thing: object) -> int:
        self.objects.append(thing)
        return len(self.objects) - 1


def shape_of_call(call: Call, staged: Staged) -> Shape:
    """The best signature for a call: the user's own where containers and captures allow, else a flat one."""
    slots = _Slots()
    types = [p.type for p in staged.function.params]
    numbers = {leaf: k for k, leaf in enumerate(staged.traced.leaves)}
    order: list[int] = []
    direct = not call.kwargs and not staged.extras
    args: tuple[Node, ...] = ()
    if direct:
        try:
            args = tuple(_arg_nodes(call, types, numbers, order, slots))
        except MisshapenError:
            direct, slots, order = False, _Slots(), []
    if not direct:
        order = list(range(len(types)))
        specs = [call.leaves[k] for k in staged.traced.leaves]
        args = tuple(ArgSpec(t, _arg_kinds(s)) for t, s in zip(types, specs, strict=False) if isinstance(s, Spec))
        args += tuple(ArgSpec(t) for t in types[len(specs) :])
    result, results, built = _result(staged, slots)
    signature = Signature(args, result, len(slots.objects))
    function = reordered(staged.function, order, results)
    return Shape(signature, tuple(slots.objects), function, direct, built)


def _arg_kinds(spec: Spec) -> tuple[Kind, ...]:
    if spec.python is not None:
        return (_KINDS[spec.python],)
    return (Kind.SCALAR,) if spec.scalar else (Kind.ARRAY,)


def _arg_nodes(
    call: Call, types: Sequence[Any], numbers: dict[int, int], order: list[int], slots: _Slots
) -> list[Node]:
    leaf = 0
    nodes = []
    for child in call.tree.children[0].children:
        nodes.append(_arg_node(child, leaf, call, types, numbers, order, slots))
        leaf += child.size
    return nodes


def _arg_node(
    tree: TreeDef, leaf: int, call: Call, types: Sequence[Any], numbers: dict[int, int], order: list[int], slots: _Slots
) -> Node:
    """The node of one subtree whose first leaf has number `leaf`. Trees nest as deep as the user's containers do."""
    if tree.kind == "leaf":
        spec = call.leaves[leaf]
        if isinstance(spec, Spec):
            order.append(numbers[leaf])
            return ArgSpec(types[numbers[leaf]], _arg_kinds(spec))
        value = call.values[leaf]
        return Static(slots.add(value.value if type(value) is StaticArgument else value))
    if tree.kind == "none":
        return Static(slots.add(None))
    starts, at = [], leaf
    for child in tree.children:
        starts.append(at)
        at += child.size
    places = tree.order if tree.kind == "dict" else range(len(tree.children))
    items = tuple([_arg_node(tree.children[k], starts[k], call, types, numbers, order, slots) for k in places])
    return _container(tree, items, slots)


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
