"""What a transform makes of one call: a program, and how its results are put together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pullback.api.call import Call, leaf_names
from pullback.api.settings import current_options
from pullback.ir.graph import Function
from pullback.lazy import uncollected
from pullback.passes.roll import roll
from pullback.record import record
from pullback.tracer.arguments import Spec
from pullback.tracer.entry import Extra, Output, Traced, trace
from pullback.tracer.environment import Environment
from pullback.tracer.trace import Check, Guard
from pullback.tracer.tree import TreeDef, flatten


@record(frozen=True)
class Staged:
    """A program for calls of one key.

    function : parameters are the traced leaves in order, then the extras; results are numbered by `outputs`
    outputs, out_tree : leaves and structure of what the call returns
    traced : the trace it came from (guards, checks, captured arrays, environment)
    """

    function: Function
    outputs: tuple[Output, ...]
    out_tree: TreeDef
    traced: Traced

    @property
    def extras(self) -> tuple[Extra, ...]:
        return self.traced.extras

    @property
    def guards(self) -> tuple[Guard, ...]:
        return self.traced.guards

    @property
    def checks(self) -> tuple[Check, ...]:
        return self.traced.checks

    @property
    def environment(self) -> Environment:
        return self.traced.environment


Stage = Callable[[Call], Staged]


class Leaf:
    """Stands for an `Output` while a result structure is being described."""

    __slots__ = ("output",)

    def __init__(self, output: Output) -> None:
        self.output = output


def shaped(result: Any) -> tuple[tuple[Output, ...], TreeDef]:
    """Outputs and structure of a container of `Leaf`; anything else in it is a static leaf."""
    leaves, tree = flatten(result)
    outputs = tuple([x.output if type(x) is Leaf else Output("static", value=x) for x in leaves])
    return outputs, tree


def as_container(outputs: Sequence[Output], tree: TreeDef, shift: int = 0) -> Any:
    """The container of `Leaf` for outputs whose results are numbered from `shift` on."""
    return tree.unflatten([Leaf(o if o.kind == "static" else o._replace(index=o.index + shift)) for o in outputs])


def trace_call(fn: Callable[..., Any], call: Call, with_values: bool = True) -> Traced:
    """Trace `fn` for a call, with its values for Python branches, under the options in force; long loops are rolled."""
    options = current_options()
    with uncollected():
        traced = trace(
            fn,
            call.tree,
            call.leaves,
            call.values if with_values else None,
            names=leaf_names(fn, call),
            ties=options.ties,
            patch=options.patch,
            choices=call.choices,
            careful=call.careful,
        )
        return replace(traced, function=roll(traced.function, options))


def stage_plain(fn: Callable[..., Any], call: Call) -> Staged:
    """The function itself."""
    traced = trace_call(fn, call)
    return Staged(traced.function, traced.outputs, traced.out_tree, traced)


def gradient_output(spec: Spec, index: int) -> Output:
    """How a gradient comes back: an array for an array, a NumPy scalar for a number."""
    return Output("scalar" if spec.scalar else "array", index)


def renamed(staged: Staged, name: str) -> Staged:
    return replace(staged, function=staged.function.with_name(name))
