"""One call of a transformed function: its arguments as leaves, and the key that tells specialisations apart."""

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pullback.errors import ArgumentError
from pullback.record import record
from pullback.tracer.arguments import Spec, Static, describe
from pullback.tracer.tree import TreeDef, flatten

Argnum = int | str
Argnums = int | str | Sequence[int | str]


class StaticArgument:
    """Wraps an argument that the caller declared static, so that it counts as one leaf."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@record(frozen=True)
class Call:
    """Arguments of one call, flattened.

    tree : of `(args, kwargs)`
    values : the leaves as given
    leaves : what each is traced as
    choices, careful : how it is traced, see `pullback.tracer.entry.trace`
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    tree: TreeDef
    values: list[Any]
    leaves: tuple[Spec | Static, ...]
    choices: tuple[tuple[int, int], ...] = ()
    careful: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for calls that one specialisation serves."""
        return (self.tree, tuple([_leaf_key(leaf) for leaf in self.leaves]))

    def traced_values(self) -> list[Any]:
        """The leaves that are traced, in order."""
        return [v for v, leaf in zip(self.values, self.leaves, strict=True) if isinstance(leaf, Spec)]


class Same:
    """Stands for an object in a key: equal to itself alone. It holds the object, whose identity then stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _leaf_key(leaf: Spec | Static) -> Any:
    return leaf if isinstance(leaf, Spec) else ("static", _static_key(leaf.value))


def _static_key(value: Any) -> Any:
    """A static leaf is told apart by type and value where it can be hashed, else by identity. 1, 1.0 and True differ,
    and so do 0.0 and -0.0."""
    if type(value) is tuple:
        return tuple([_static_key(part) for part in value])
    if type(value) is float:
        return (float, value.hex())
    try:
        hash(value)
    except TypeError:
        return Same(value)
    return (type(value), value)


def static_places(fn: Callable[..., Any], statics: Sequence[Argnum]) -> frozenset[Argnum]:
    """Positions and names of the static arguments, each in both forms as far as the signature tells: an argument may be
    passed either way."""
    names = parameter_names(fn) if statics else []
    places: set[Argnum] = set(statics)
    for item in statics:
        position = names.index(item) if item in names else item
        if isinstance(position, int):
            position += len(names) if position < 0 else 0
            places.add(position)
            places.update(names[position : position + 1])
    return frozenset(places)


def make_call(args: tuple[Any, ...], kwargs: Mapping[str, Any], statics: frozenset[Argnum] = frozenset()) -> Call:
    """Flatten the arguments; those in `statics` (positions and names) are one static leaf each.

    Raises
    ------
    ArgumentError : a leaf of a kind that cannot be traced.
    """
    if statics:
        args = tuple([StaticArgument(a) if k in statics else a for k, a in enumerate(args)])
        kwargs = {k: StaticArgument(a) if k in statics else a for k, a in kwargs.items()}
    values, tree = flatten((args, dict(kwargs)))
    leaves = tuple([_describe(v, tree, number) for number, v in enumerate(values)])
    return Call(args, kwargs, tree, values, leaves)


def _describe(value: Any, tree: TreeDef, number: int) -> Spec | Static:
    if type(value) is StaticArgument:
        return Static(value.value)
    try:
        return describe(value)
    except ArgumentError:
        return describe(value, f"argument {tree.paths()[number]}")  # once more, now with a name for the message


# ------------------------------------------------------------------ which arguments


def parameter_names(fn: Callable[..., Any]) -> list[str]:
    """Names of the positional parameters of `fn`, as far as they can be told."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds]


def as_argnums(argnums: Any, what: str = "argnums") -> tuple[Argnum, ...]:
    """A tuple of ints and names from what the user gave.

    Raises
    ------
    ArgumentError : something that is neither an int nor a name; the message has it.
    """
    items = argnums if isinstance(argnums, tuple | list) else (argnums,)
    found: list[Argnum] = []
    for item in items:
        if isinstance(item, str):
            found.append(item)
            continue
        try:
            found.append(operator.index(item))
        except TypeError:
            raise ArgumentError(
                f"{what} must be an int, an argument name, or a tuple of those, got {argnums!r} ({type(item).__name__})"
            ) from None
    return tuple(found)


def locate(fn: Callable[..., Any], call: Call, argnums: Sequence[Argnum]) -> list[Argnum]:
    """Each of `argnums` as a position in `args` or a key of `kwargs`.

    Raises
    ------
    ArgumentError : no argument of that number or name was given.
    """
    return [_locate_one(fn, call, item) for item in argnums]


def _locate_one(fn: Callable[..., Any], call: Call, item: Argnum) -> Argnum:
    names, given = parameter_names(fn), len(call.args)
    if isinstance(item, str):
        if item in call.kwargs:
            return item
        if item in names and names.index(item) < given:
            return names.index(item)
        known = ", ".join([*names, *(k for k in call.kwargs if k not in names)])
        raise ArgumentError(f"{_name(fn)} was given no argument named {item!r}; its arguments are {known or 'none'}")
    position = item + given if item < 0 else item
    if 0 <= position < given:
        return position
    if 0 <= position < len(names) and names[position] in call.kwargs:
        return names[position]
    raise ArgumentError(f"argnums {item}: {_name(fn)} was called with {given} positional arguments")


def leaf_ranges(call: Call) -> tuple[list[range], dict[str, range]]:
    """The leaf numbers of each positional argument and of each keyword argument."""
    args_tree, kwargs_tree = call.tree.children
    at, positional, keyword = 0, [], {}
    for child in args_tree.children:
        positional.append(range(at, at + child.size))
        at += child.size
    for name, child in zip(kwargs_tree.keys, kwargs_tree.children, strict=True):
        keyword[name] = range(at, at + child.size)
        at += child.size
    return positional, keyword


def leaf_names(fn: Callable[..., Any], call: Call) -> list[str]:
    """A name hint for each leaf: the parameter's name, with the path inside a container."""
    names = parameter_names(fn)
    args_tree, kwargs_tree = call.tree.children
    hints: list[str] = []
    for position, child in enumerate(args_tree.children):
        base = names[position] if position < len(names) else f"x{position}"
        hints += [_identifier(base + path) for path in child.paths()]
    for key, child in zip(kwargs_tree.keys, kwargs_tree.children, strict=True):
        hints += [_identifier(str(key) + path) for path in child.paths()]
    return hints


def _identifier(text: str) -> str:
    return "_".join(filter(None, "".join(c if c.isalnum() or c == "_" else " " for c in text).split()))


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", type(fn).__name__)
