"""vjp: the value of a function, and a function of cotangents that takes them back to the arguments."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn

from pullback.api.call import Call
from pullback.api.function import Transformed, kept, make_transformed
from pullback.api.programs import Program
from pullback.api.staged import Leaf, Staged, as_container, gradient_output, shaped, trace_call
from pullback.errors import ArgumentError
from pullback.ir.graph import Function, Value
from pullback.ir.types import TensorType
from pullback.passes.partition import Partition, partition
from pullback.passes.reverse import reverse
from pullback.tracer.arguments import Spec
from pullback.tracer.entry import Output, Traced
from pullback.tracer.environment import Environment


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Value, and the function that takes cotangents of the output back to the arguments.

    Returns
    -------
    `(value, pull)`, with `has_aux` `(value, pull, aux)`. `pull(ct)` takes a cotangent of the structure and shapes of
    the value and gives a tuple with one gradient for each argument (None for integer leaves). The forward pass runs
    once, here; `pull` uses what it kept, as often as it is called. Both are compiled, and kept for the next `vjp` of
    the same function.

    Raises
    ------
    ArgumentError (TypeError) : no argument is floating; or, from `pull`, a cotangent of another structure or shape.
    """
    value, residuals, backward = kept(_forward_function, fun, has_aux)(*primals)
    pull = Pullback(backward, residuals)
    return (value[0], pull, value[1]) if has_aux else (value, pull)


class Pullback:
    """The function of cotangents that `vjp` gives."""

    __slots__ = ("__weakref__", "_backward", "_residuals")

    def __init__(self, backward: "Backward", residuals: tuple[Any, ...]) -> None:
        self._backward = backward.function
        self._residuals = residuals

    def __call__(self, cotangent: Any) -> Any:
        return self._backward(self._residuals, cotangent)

    def __repr__(self) -> str:
        return f"<pullback of {self._backward.__name__}>"

    def __reduce__(self) -> NoReturn:
        raise ArgumentError(
            f"{self!r} cannot be pickled: its code belongs to this process; call vjp where it is needed"
        )


def _forward_function(fun: Callable[..., Any], has_aux: bool) -> Transformed:
    """The compiled function of the primals: value, residuals, and the `Backward` of the path that was taken."""

    def stage(call: Call) -> Staged:
        return _stage_forward(fun, call, has_aux)

    return make_transformed(fun, stage, "vjp")


def _stage_forward(fun: Callable[..., Any], call: Call, has_aux: bool) -> Staged:
    traced = trace_call(fun, call)
    if has_aux and (traced.out_tree.kind != "tuple" or len(traced.out_tree.children) != 2):
        raise ArgumentError(
            f"with has_aux=True the function must give a pair (output, aux), it gives {traced.out_tree!r}"
        )
    backward = Backward(fun, traced, call, has_aux)
    count = len(traced.function.results)
    residuals = tuple([Leaf(Output("array", count + k)) for k in range(len(backward.parts.residuals))])
    outputs, tree = shaped((as_container(traced.outputs, traced.out_tree), residuals, backward))
    return Staged(backward.parts.known, outputs, tree, traced)


class Backward:
    """The way back along one path: `reverse` of a traced function, cut at its cotangents.

    Attributes
    ----------
    parts : the two parts of the sweep; the forward one gives the outputs too
    """

    def __init__(self, fun: Callable[..., Any], traced: Traced, call: Call, has_aux: bool) -> None:
        self._fun, self._traced, self._call = fun, traced, call
        self._wrt = [k for k in traced.leaves if _is_inexact(call.leaves[k])]
        if not self._wrt:
            raise ArgumentError("vjp: no argument is floating or complex, so there is nothing to differentiate in")
        main = traced.out_tree.children[0] if has_aux else traced.out_tree
        self._tree, self._outputs = main, traced.outputs[: main.size]
        self.parts = self._split()

    def _split(self) -> Partition:
        function = self._traced.function
        numbers = {leaf: n for n, leaf in enumerate(self._traced.leaves)}
        swept = reverse(function, [numbers[k] for k in self._wrt])
        known = [k < len(function.params) for k in range(len(swept.params))]
        gives = [k < len(function.results) for k in range(len(swept.results))]
        return partition(swept, known, known_results=gives)

    @cached_property
    def function(self) -> Transformed:
        """The compiled function of (residuals, cotangent)."""
        return make_transformed(self._fun, self._stage, "pullback")

    def _stage(self, call: Call) -> Staged:
        residuals, cotangent = call.tree.children[0].children
        if cotangent != self._tree:
            raise ArgumentError(f"the cotangent has the structure {cotangent!r}, the output {self._tree!r}")
        function = self._program(call, residuals.size)
        gradients: dict[int, Leaf] = {}
        for n, leaf in enumerate(self._wrt):
            spec = self._call.leaves[leaf]
            assert isinstance(spec, Spec)
            gradients[leaf] = Leaf(gradient_output(spec, n))
        args = self._call.tree.children[0]
        outputs, tree = shaped(args.unflatten([gradients.get(k) for k in range(args.size)]))
        leaves = tuple([k for k, leaf in enumerate(call.leaves) if isinstance(leaf, Spec)])
        traced = replace(
            self._traced, leaves=leaves, extras=(), guards=(), outputs=outputs, out_tree=tree, environment=Environment()
        )
        return Staged(function, outputs, tree, traced)

    def _program(self, call: Call, count: int) -> Function:
        """The unknown part, on the cotangents as they are given: cast, and zero where there is none."""
        program = Program(self.parts.unknown)
        values = [program.b.param(p.type, p.hint) for p in self.parts.unknown.params[:count]]
        given: dict[int, Value] = {}
        for output, leaf in zip(self._outputs, call.leaves[count:], strict=True):
            value = program.b.param(leaf.type, "ct") if isinstance(leaf, Spec) else None
            type_ = self._type_of(output)
            if type_ is not None:
                _check(leaf, type_)
                assert value is not None
                given[output.index] = program.f.astype(program.f.wrap(value), type_.dtype).value
        for number, result in enumerate(self._traced.function.results):
            if result.type.is_inexact:
                values.append(given[number] if number in given else program.f.full(result.type, 0).value)
        return program.done("pull", program.call(self.parts.unknown, values))

    def _type_of(self, output: Output) -> TensorType | None:
        """The type of an output that has a derivative."""
        if output.kind == "static":
            return None
        type_ = self._traced.function.results[output.index].type
        return type_ if type_.is_inexact else None


def _is_inexact(leaf: Any) -> bool:
    return isinstance(leaf, Spec) and leaf.type.is_inexact


def _check(leaf: Any, type_: TensorType) -> None:
    """Raise ArgumentError where a cotangent is none of an output of that type."""
    if not isinstance(leaf, Spec):
        raise ArgumentError(f"the cotangent of an output of type {type_} is {type(leaf.value).__name__}")
    if leaf.type.shape != type_.shape:
        raise ArgumentError(f"the cotangent of an output of type {type_} has shape {leaf.type.shape}")
    if leaf.type.is_complex and not type_.is_complex:
        raise ArgumentError(f"the cotangent of an output of type {type_} is complex; take its real part")
