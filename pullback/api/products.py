"""jvp: value and directional derivative."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pullback.api.call import Call
from pullback.api.function import kept, make_transformed
from pullback.api.programs import Program
from pullback.api.staged import Leaf, Staged, as_container, shaped, trace_call
from pullback.errors import ArgumentError
from pullback.ir.graph import Function
from pullback.passes.forward import forward
from pullback.tracer.arguments import Spec
from pullback.tracer.entry import Output, Traced
from pullback.tracer.tree import TreeDef


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Value and directional derivative: `(fun(*primals), d fun(*primals) . tangents)`.

    Parameters
    ----------
    primals, tangents : sequences of the same structure; tangents of integer leaves are ignored

    Raises
    ------
    ArgumentError (TypeError) : the structures or shapes differ; the message has both.
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentError("jvp takes primals and tangents as tuples, one entry for each argument of the function")
    primals, tangents = tuple(primals), tuple(tangents)
    return kept(_jvp_function, fun, has_aux)(primals, tangents)


def _jvp_function(fun: Callable[..., Any], has_aux: bool) -> Any:
    """The compiled function of (primals, tangents)."""

    def stage(call: Call) -> Staged:
        return _stage_jvp(fun, call, has_aux)

    return make_transformed(fun, stage, "jvp")


def _stage_jvp(fun: Callable[..., Any], call: Call, has_aux: bool) -> Staged:
    primals_tree, tangents_tree = call.tree.children[0].children
    if primals_tree != tangents_tree:
        raise ArgumentError(f"jvp: primals have the structure {primals_tree!r}, tangents {tangents_tree!r}")
    count = primals_tree.size
    inner = replace(
        call,
        args=call.args[0],
        kwargs={},
        tree=_args_tree(primals_tree),
        values=call.values[:count],
        leaves=call.leaves[:count],
    )
    traced = trace_call(fun, inner)
    wrt = [k for k in traced.leaves if _is_inexact(call.leaves[k])]
    if not wrt:
        raise ArgumentError("jvp: no primal is floating or complex, so there is nothing to differentiate in")
    for k in wrt:
        _check_tangent(call, k, count)
    numbers = {leaf: n for n, leaf in enumerate(traced.leaves)}
    pushed = forward(traced.function, [numbers[k] for k in wrt])
    function = _primals_then_tangents(traced, call, pushed, wrt, count)
    values = as_container(traced.outputs, traced.out_tree)
    result: Any
    main = traced.out_tree.children[0].size if has_aux else len(traced.outputs)
    moved = _tangent_outputs(traced, len(traced.function.results))
    if has_aux:
        tangent_tree, tangents = traced.out_tree.children[0], moved[:main]
        result = (values[0], tangent_tree.unflatten([Leaf(o) for o in tangents]), values[1])
    else:
        result = (values, traced.out_tree.unflatten([Leaf(o) for o in moved]))
    outputs, tree = shaped(result)
    return Staged(function, outputs, tree, _with_leaves(traced, call))


def _args_tree(tree: TreeDef) -> TreeDef:
    """The structure ((args), {}) for a tree of positional arguments."""
    return TreeDef("tuple", (), (TreeDef("tuple", (), tree.children), TreeDef("dict")))


def _is_inexact(leaf: Any) -> bool:
    return isinstance(leaf, Spec) and leaf.type.is_inexact


def _check_tangent(call: Call, leaf: int, count: int) -> None:
    primal, tangent = call.leaves[leaf], call.leaves[leaf + count]
    assert isinstance(primal, Spec)
    if not isinstance(tangent, Spec) or tangent.type.shape != primal.type.shape:
        found = tangent.type if isinstance(tangent, Spec) else type(tangent.value).__name__
        raise ArgumentError(f"jvp: the primal {call.tree.paths()[leaf]} is {primal.type}, its tangent is {found}")


def _primals_then_tangents(traced: Traced, call: Call, pushed: Function, wrt: Sequence[int], count: int) -> Function:
    """`pushed` with a parameter for every traced leaf of (primals, tangents), then the extras."""
    program = Program(traced.function)
    numbers = {leaf: n for n, leaf in enumerate(traced.leaves)}
    primals = [
        program.b.param(traced.function.params[numbers[k]].type, traced.function.params[numbers[k]].hint)
        for k in traced.leaves
    ]
    tangents = {}
    for k in range(count):
        leaf = call.leaves[k + count]
        if isinstance(leaf, Spec):
            tangents[k] = program.b.param(leaf.type, f"d{k}")
    extras = [program.b.param(p.type, p.hint) for p in traced.function.params[len(primals) :]]
    cast = [program.f.astype(program.f.wrap(tangents[k]), _dtype(call, k)).value for k in wrt]
    return program.done("jvp", program.call(pushed, [*primals, *extras, *cast]))


def _dtype(call: Call, leaf: int) -> Any:
    spec = call.leaves[leaf]
    assert isinstance(spec, Spec)
    return spec.type.dtype


def _tangent_outputs(traced: Traced, first: int) -> list[Output]:
    """One for each output leaf; those without derivative have the static tangent None."""
    inexact = [k for k, r in enumerate(traced.function.results) if r.type.is_inexact]
    found = []
    for output in traced.outputs:
        if output.kind == "static" or output.index not in inexact:
            found.append(Output("static", value=None))
        else:
            found.append(Output("array" if output.kind == "array" else "scalar", first + inexact.index(output.index)))
    return found


def _with_leaves(traced: Traced, call: Call) -> Traced:
    numbers = tuple([k for k, leaf in enumerate(call.leaves) if isinstance(leaf, Spec)])
    return replace(traced, leaves=numbers)
