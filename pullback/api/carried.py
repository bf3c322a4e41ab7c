"""What a compiled loop carries: its structure and types, which must be the same after each turn."""

from collections.abc import Callable, Sequence
from typing import Any
from typing import Literal as OneOf

import numpy as np

from pullback.api.bodies import Body, array_spec, converted, describe_leaves, promoted, shown
from pullback.errors import ArgumentError
from pullback.ir.graph import Region
from pullback.ir.types import DType, TensorType
from pullback.tracer.tree import TreeDef

ATTEMPTS = 4
"""Times that a body is traced: each time a carry may turn out to be of a wider type."""


def settled(
    what: str,
    tree: TreeDef,
    types: list[TensorType],
    make: Callable[[Sequence[Any]], Body],
    paired: OneOf["", "row", "index"] = "",
) -> tuple[Body, list[TensorType]]:
    """Trace the body until its carry keeps its types: a float that starts as an integer is promoted, a shape may not
    change.

    Parameters
    ----------
    make : traces the body for specs of the carry
    paired : what the body gives beside the carry: a row behind it, an index before it, or nothing

    Raises
    ------
    ArgumentError : the structure or a shape changes; the leaf is named with both types.
    """
    for _ in range(ATTEMPTS):
        body = make([array_spec(t) for t in types])
        given = list(_carry_types(what, tree, body, paired))
        for path, old, new in zip(tree.paths(), types, given, strict=True):
            if old.shape != new.shape:
                raise ArgumentError(
                    f"{what}: the carry{path} has type {old}, {body.name} gives {new}; a compiled loop carries one "
                    "shape"
                )
        wide = promoted(types, given)
        if wide == types:
            return body, types
        types = wide
    raise ArgumentError(f"{what}: the types of the carry do not settle: {describe_leaves(tree, types)}")


def _carry_types(what: str, tree: TreeDef, body: Body, paired: str) -> Sequence[TensorType]:
    found, first = body.tree, 0
    if paired == "row":
        if found.kind not in ("tuple", "list") or len(found.children) != 2:
            raise ArgumentError(f"{what}: {body.name} must give a pair (carry, row), it gives {shown(found)}")
        found = found.children[0]
    elif paired == "index":
        found, first = found.children[1], found.children[0].size
    if found != tree:
        raise ArgumentError(f"{what}: the carry starts as {shown(tree)}, {body.name} gives {shown(found)}")
    return body.types[first : first + tree.size]


def region_of(body: Body, carries: Sequence[TensorType]) -> Region:
    """The region giving exactly the output leaves in order, carries cast to their types."""
    region = body.region
    results = tuple([region.results[o.index] for o in body.outputs()])
    return converted(Region(region.params, region.ops, results), carries)


def cast(values: Sequence[Any], types: Sequence[TensorType]) -> list[Any]:
    return [as_dtype(v, t.dtype) for v, t in zip(values, types, strict=True)]


def as_dtype(value: Any, dtype: DType) -> Any:
    """A traced value or an array, converted where it has another dtype; a Python number becomes an array."""
    if not hasattr(value, "astype"):
        return np.asarray(value, dtype)
    return value if value.dtype == dtype else value.astype(dtype)
