"""Containers of arrays: flattened to leaves and a `TreeDef`, and put together again.

Tuples, lists, dicts, named tuples, dataclasses and None, nested. A dict's leaves come by sorted key, so that two dicts
with the same keys are of one structure whatever their order; unflattened, it has the order it was flattened with.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from pullback.errors import ArgumentError


class TreeDef:
    """The structure of a container, without its leaves. Hashable and comparable by content.

    kind : `leaf`, `none`, `tuple`, `list`, `dict`, or the class of a named tuple or dataclass
    keys : dict keys sorted, or field names; for tuples and lists unused
    children : in the order of keys
    order : positions of `children` in the order in which a dict was written; not part of the comparison
    """

    __slots__ = ("_hash", "children", "keys", "kind", "order", "size")

    kind: Any
    keys: tuple[Any, ...]
    children: "tuple[TreeDef, ...]"
    order: tuple[int, ...]
    size: int

    def __init__(
        self,
        kind: Any,
        keys: tuple[Any, ...] = (),
        children: "tuple[TreeDef, ...]" = (),
        order: tuple[int, ...] = (),
    ) -> None:
        self.kind = kind
        self.keys = keys
        self.children = children
        self.order = order
        self.size = 1 if kind == "leaf" else sum([c.size for c in children])
        self._hash = hash((kind, keys, children))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, TreeDef)
            and self._hash == other._hash
            and self.kind == other.kind
            and self.keys == other.keys
            and self.children == other.children
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"TreeDef({self.unflatten(['*'] * self.size)!r})" if self.kind != "leaf" else "TreeDef(*)"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The container with these leaves."""
        return _build(self, iter(leaves))

    def paths(self) -> list[str]:
        """For each leaf how it is reached: `['weights'][0]`, `.bias`; empty for a bare leaf."""
        found: list[str] = []
        _walk_paths(self, "", found)
        return found


LEAF = TreeDef("leaf")
NONE = TreeDef("none")


def flatten(x: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of `x` in order, and its structure. Anything that is no container is a leaf."""
    leaves: list[Any] = []
    tree = _flatten(x, leaves)
    return leaves, tree


def unflatten(tree: TreeDef, leaves: Iterable[Any]) -> Any:
    return tree.unflatten(leaves)


def structure(x: Any) -> TreeDef:
    """The structure alone."""
    return _flatten(x, [])


def map_leaves(function: Callable[..., Any], x: Any, *others: Any) -> Any:
    """`x` with `function` applied to each leaf, together with the leaves of `others` of the same structure.

    Raises
    ------
    ArgumentError : a structure differs; the message has both.
    """
    leaves, tree = flatten(x)
    columns: list[Sequence[Any]] = [leaves]
    for other in others:
        more, found = flatten(other)
        if found != tree:
            raise ArgumentError(f"containers of different structure: {tree!r} and {found!r}")
        columns.append(more)
    return tree.unflatten([function(*row) for row in zip(*columns, strict=True)])


def _flatten(x: Any, leaves: list[Any]) -> TreeDef:
    kind = type(x)
    if kind is tuple or kind is list:
        return TreeDef(kind.__name__, (), tuple([_flatten(part, leaves) for part in x]))
    if x is None:
        return NONE
    if kind is dict:
        return _flatten_dict(x, leaves)
    if isinstance(x, tuple) and hasattr(kind, "_fields"):
        return TreeDef(kind, kind._fields, tuple([_flatten(part, leaves) for part in x]))
    if is_dataclass(kind):
        names = tuple([f.name for f in fields(kind)])
        return TreeDef(kind, names, tuple([_flatten(getattr(x, name), leaves) for name in names]))
    leaves.append(x)
    return LEAF


def _flatten_dict(x: dict[Any, Any], leaves: list[Any]) -> TreeDef:
    written = list(x)
    keys = tuple(_sorted_keys(written))
    children = tuple([_flatten(x[k], leaves) for k in keys])
    place = {k: n for n, k in enumerate(keys)}
    return TreeDef("dict", keys, children, tuple([place[k] for k in written]))


def _sorted_keys(keys: list[Any]) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:  # keys of several types: by type name, then by text
        return sorted(keys, key=lambda k: (type(k).__name__, repr(k)))


def _build(tree: TreeDef, leaves: Any) -> Any:
    kind = tree.kind
    if kind == "leaf":
        return next(leaves)
    if kind == "none":
        return None
    parts = [_build(child, leaves) for child in tree.children]
    if kind == "tuple":
        return tuple(parts)
    if kind == "list":
        return parts
    if kind == "dict":
        return {tree.keys[k]: parts[k] for k in tree.order}
    if issubclass(kind, tuple):
        return kind(*parts)
    return _build_dataclass(kind, tree.keys, parts)


def _build_dataclass(kind: Any, names: tuple[str, ...], parts: list[Any]) -> Any:
    """Through the constructor where every field is one of its arguments, else attribute by attribute."""
    if all(f.init for f in fields(kind)):
        return kind(**dict(zip(names, parts, strict=True)))
    made = object.__new__(kind)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def _walk_paths(tree: TreeDef, prefix: str, found: list[str]) -> None:
    if tree.kind == "leaf":
        found.append(prefix)
        return
    for number, child in enumerate(tree.children):
        if tree.kind in ("tuple", "list"):
            step = f"[{number}]"
        elif tree.kind == "dict":
            step = f"[{tree.keys[number]!r}]"
        else:
            step = f".{tree.keys[number]}"
        _walk_paths(child, prefix + step, found)
