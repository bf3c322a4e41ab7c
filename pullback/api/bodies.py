"""Bodies of structured control flow: Python functions traced into regions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.api.settings import current_options
from pullback.errors import ArgumentError
from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter
from pullback.ir.graph import Region
from pullback.ir.ops import OPS
from pullback.ir.types import DType, TensorType
from pullback.record import record
from pullback.tracer.arguments import Spec, Static, describe
from pullback.tracer.entry import Output, Traced, trace
from pullback.tracer.tree import TreeDef, flatten


@record(frozen=True)
class Body:
    """A traced body: its region takes the argument leaves, then what it captured."""

    name: str
    traced: Traced

    @property
    def region(self) -> Region:
        return self.traced.function.body

    @property
    def captured(self) -> tuple[Any, ...]:
        return tuple([extra.source for extra in self.traced.extras])

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of the results, by output leaf."""
        results = self.traced.function.result_types
        return tuple([results[o.index] for o in self.traced.outputs])

    @property
    def tree(self) -> TreeDef:
        return self.traced.out_tree

    def outputs(self) -> tuple[Output, ...]:
        return self.traced.outputs


def require_function(what: str, parameter: str, given: Any) -> None:
    """Refuse what cannot be called.

    Raises
    ------
    ArgumentError : names the parameter and what was given for it.
    """
    if not callable(given):
        raise ArgumentError(f"{what}: {parameter} must be a function, got {given!r}")


def shown(tree: TreeDef) -> str:
    """A structure for messages: the container, with `*` for each array or number."""
    return repr(tree.unflatten([_STAR] * tree.size))


class _Star:
    def __repr__(self) -> str:
        return "*"


_STAR = _Star()


def trace_body(fn: Callable[..., Any], specs: Sequence[Any], what: str, name: str | None = None) -> Body:
    """Trace `fn` for arguments that are containers of `Spec`; messages call it `name`.

    Raises
    ------
    ArgumentError : a result that is no number or array, which a compiled loop cannot carry.
    """
    leaves, tree = _flatten_specs((tuple(specs), {}))
    options = current_options()
    traced = trace(fn, tree, leaves, None, ties=options.ties, patch=options.patch)
    name = str(name or getattr(fn, "__name__", what))
    for output, path in zip(traced.outputs, traced.out_tree.paths(), strict=True):
        if output.kind == "static":
            raise ArgumentError(
                f"{what}: result{path} of {name} is {output.value!r}; only arrays and numbers can be given"
            )
    return Body(name, traced)


class _Held:
    """A `Spec` is a named tuple, which flattening would take apart."""

    __slots__ = ("spec",)

    def __init__(self, spec: Spec | Static) -> None:
        self.spec = spec


def _flatten_specs(x: Any) -> tuple[list[Spec | Static], TreeDef]:
    leaves, tree = flatten(x)
    return [leaf.spec for leaf in leaves], tree


def specs_of(x: Any, what: str) -> tuple[list[Any], list[Spec], TreeDef]:
    """Leaves of a container of arrays and numbers, what they are traced as, and the structure.

    Raises
    ------
    ArgumentError : a leaf that is neither.
    """
    leaves, tree = flatten(x)
    specs = []
    for leaf, path in zip(leaves, tree.paths(), strict=True):
        spec = describe(leaf, f"{what}{path}")
        if isinstance(spec, Static):
            raise ArgumentError(f"{what}{path} is {leaf!r}; only arrays and numbers can go into compiled control flow")
        specs.append(spec._replace(order=None))
    return leaves, specs, tree


def held(tree: TreeDef, specs: Sequence[Spec]) -> Any:
    """The container with specs for leaves, as `trace_body` takes it."""
    return tree.unflatten([_Held(s) for s in specs])


def array_spec(type: TensorType) -> Spec:
    return Spec(type, None, type.shape == ())


def joint_region(body: Body, arguments: Sequence[TensorType], captured: Sequence[TensorType], at: int) -> Region:
    """The region of `body` with parameters for the arguments and for the captures of all bodies; its own begin at
    `at`."""
    b = Builder()
    given = [b.param(t) for t in arguments]
    extra = [b.param(t) for t in captured]
    own = extra[at : at + len(body.captured)]
    results = b.inline(body.region, [*given, *own])
    return b.region([results[o.index] for o in body.outputs()])


def converted(region: Region, types: Sequence[TensorType]) -> Region:
    """The region with its first results cast to these dtypes."""
    if all(r.type == t for r, t in zip(region.results, types, strict=False)):
        return region
    b = Builder()
    f = Emitter(b, OPS)
    results = b.inline(region, [b.param(p.type, p.hint) for p in region.params])
    cast = [f.astype(f.wrap(r), t.dtype).value for r, t in zip(results, types, strict=False)]
    return b.region([*cast, *results[len(cast) :]])


def promoted(types: Sequence[TensorType], others: Sequence[TensorType]) -> list[TensorType]:
    """Types that both of two rows of types fit into without loss of kind."""
    return [t.with_dtype(_common(t.dtype, o.dtype)) for t, o in zip(types, others, strict=True)]


def _common(x: DType, y: DType) -> DType:
    return np.result_type(x, y)


def captured_types(bodies: Sequence[Body]) -> list[TensorType]:
    types = []
    for body in bodies:
        first = len(body.traced.leaves)
        types += [p.type for p in body.region.params[first:]]
    return types


def all_captured(bodies: Sequence[Body]) -> list[Any]:
    return [source for body in bodies for source in body.captured]


def describe_leaves(tree: TreeDef, types: Sequence[TensorType]) -> str:
    """`[0]: f64[3], ['w']: f32[]` for messages."""
    return ", ".join(f"{path or 'value'}: {t}" for path, t in zip(tree.paths(), types, strict=True)) or "nothing"
