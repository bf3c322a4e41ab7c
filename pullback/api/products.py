"""vjp and jvp: products with the Jacobian, and linear functions of cotangents."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.api.call import Call, make_call
from pullback.api.function import Transformed, make_transformed
from pullback.api.programs import Program
from pullback.api.settings import current_options, in_force
from pullback.api.staged import Leaf, Staged, as_container, gradient_output, shaped, trace_call
from pullback.config import Options
from pullback.errors import ArgumentError
from pullback.ir.graph import Function
from pullback.ir.types import TensorType
from pullback.passes.forward import forward
from pullback.passes.partition import Partition, partition
from pullback.passes.reverse import reverse
from pullback.tracer.arguments import Spec
from pullback.tracer.entry import Output, Traced
from pullback.tracer.trace import current
from pullback.tracer.tree import TreeDef, flatten

# ------------------------------------------------------------------ jvp


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
    if current() is None and isinstance(fun, Hashable):
        return _kept_jvp_function(fun, has_aux, current_options())(primals, tangents)
    return jvp_function(fun, has_aux)(primals, tangents)


@lru_cache(maxsize=16)
def _kept_jvp_function(fun: Callable[..., Any], has_aux: bool, options: Options) -> Any:
    """Kept for the next call with the same function, so that a loop of products compiles once."""
    with in_force(options):
        return jvp_function(fun, has_aux)


def jvp_function(fun: Callable[..., Any], has_aux: bool) -> Any:
    """The compiled function of (primals, tangents) behind `jvp`."""

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


# ------------------------------------------------------------------ vjp


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Value, and the function that takes cotangents of the output back to the arguments.

    Returns
    -------
    `(value, pull)`, with `has_aux` `(value, pull, aux)`. `pull(ct)` takes a cotangent of the structure and shapes of
    the value and gives a tuple with one gradient for each argument (None for integer leaves). The forward pass runs
    once, here; `pull` uses what it kept, as often as it is called.

    Raises
    ------
    ArgumentError (TypeError) : no argument is floating; or, from `pull`, a cotangent of another structure or shape.
    """
    call = make_call(primals, {})
    traced = trace_call(fun, call)
    if has_aux and (traced.out_tree.kind != "tuple" or len(traced.out_tree.children) != 2):
        raise ArgumentError(
            f"with has_aux=True the function must give a pair (output, aux), it gives {traced.out_tree!r}"
        )
    split = _split_program(traced, call, has_aux)
    forward_part: Transformed = make_transformed(fun, lambda c: _stage_forward(traced, split, c), "vjp")
    value, residuals = forward_part(*primals)
    pull = Pullback(fun, traced, call, split, residuals, has_aux)
    if has_aux:
        return value[0], pull, value[1]
    return value, pull


class _Split:
    """`reverse` of a traced function, cut at its cotangents."""

    def __init__(self, parts: Partition, wrt: Sequence[int], cotangents: Sequence[int]) -> None:
        self.parts = parts
        self.wrt = wrt
        self.cotangents = cotangents


def _split_program(traced: Traced, call: Call, has_aux: bool) -> _Split:
    wrt = [k for k in traced.leaves if _is_inexact(call.leaves[k])]
    if not wrt:
        raise ArgumentError("vjp: no argument is floating or complex, so there is nothing to differentiate in")
    numbers = {leaf: n for n, leaf in enumerate(traced.leaves)}
    swept = reverse(traced.function, [numbers[k] for k in wrt])
    first = len(traced.function.params)
    known = [k < first for k in range(len(swept.params))]
    count = len(traced.function.results)
    gives = [k < count for k in range(len(swept.results))]
    inexact = [k for k, r in enumerate(traced.function.results) if r.type.is_inexact]
    return _Split(partition(swept, known, known_results=gives), wrt, inexact)


def _stage_forward(traced: Traced, split: _Split, call: Call) -> Staged:
    """(value, residuals): residuals as a tuple of arrays."""
    count = len(traced.function.results)
    residuals = tuple([Leaf(Output("array", count + k)) for k in range(len(split.parts.residuals))])
    outputs, tree = shaped((as_container(traced.outputs, traced.out_tree), residuals))
    return Staged(split.parts.known, outputs, tree, traced)


class Pullback:
    """The function of cotangents that `vjp` gives."""

    def __init__(
        self,
        fun: Callable[..., Any],
        traced: Traced,
        call: Call,
        split: _Split,
        residuals: tuple[Any, ...],
        has_aux: bool,
    ) -> None:
        self._traced, self._call, self._split = traced, call, split
        self._residuals = residuals
        tree, outputs = traced.out_tree, traced.outputs
        if has_aux:
            tree, outputs = tree.children[0], outputs[: tree.children[0].size]
        self._tree, self._outputs = tree, outputs
        self._backward: Transformed = make_transformed(fun, self._stage, "vjp")

    def __call__(self, cotangent: Any) -> Any:
        leaves, tree = flatten(cotangent)
        if tree != self._tree:
            raise ArgumentError(f"the cotangent has the structure {tree!r}, the output {self._tree!r}")
        given = dict(zip([o.index for o in self._outputs], leaves, strict=True))
        types = self._traced.function.result_types
        cts = [_cotangent(given.get(k), types[k]) for k in self._split.cotangents]
        return self._backward(self._residuals, tuple(cts))

    def _stage(self, call: Call) -> Staged:
        wrt = self._split.wrt
        gradients = {}
        for n, leaf in enumerate(wrt):
            spec = self._call.leaves[leaf]
            assert isinstance(spec, Spec)
            gradients[leaf] = Leaf(gradient_output(spec, n))
        args = self._call.tree.children[0]
        result = args.unflatten([gradients.get(k) for k in range(args.size)])
        outputs, tree = shaped(result)
        leaves = tuple(range(len(call.leaves)))
        traced = replace(self._traced, leaves=leaves, extras=(), guards=(), outputs=outputs, out_tree=tree)
        return Staged(self._split.parts.unknown, outputs, tree, traced)


def _cotangent(given: Any, type_: TensorType) -> Any:
    """The cotangent as an array of the output's type; zero where none is given."""
    if given is None:
        return np.zeros(type_.shape, type_.dtype)
    if np.shape(given) != type_.shape:
        raise ArgumentError(f"the cotangent of an output of type {type_} has shape {np.shape(given)}")
    if isinstance(given, np.ndarray | np.generic | bool | int | float | complex):
        if np.asarray(given).dtype.kind == "c" and type_.dtype.kind != "c":
            raise ArgumentError(f"the cotangent of an output of type {type_} is complex; take its real part")
        return np.asarray(given, type_.dtype)
    return given
