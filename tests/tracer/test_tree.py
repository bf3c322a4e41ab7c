"""Containers are flattened, compared and put together again."""

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.errors import ArgumentError
from pullback.tracer.tree import flatten, map_leaves, structure

Point = namedtuple("Point", "a b")


@dataclass
class Layer:
    weights: Any
    bias: Any


@dataclass(frozen=True)
class Cached:
    x: Any
    y: Any = field(init=False, default=0)


leaves = st.integers() | st.text(max_size=3)
trees = st.recursive(
    leaves | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Layer, inner, inner)
    ),
    max_leaves=12,
)


@given(trees)
def test_a_container_is_put_together_as_it_was(x: Any) -> None:
    found, tree = flatten(x)
    assert tree.unflatten(found) == x
    assert tree.size == len(found) == len(tree.paths())
    assert structure(x) == tree
    assert hash(structure(x)) == hash(tree)


def test_dicts_are_equal_by_keys_and_keep_their_order() -> None:
    first, second = {"b": 1, "a": 2}, {"a": 3, "b": 4}
    assert structure(first) == structure(second)
    assert list(flatten(first)[1].unflatten([10, 20])) == ["b", "a"]
    assert flatten(first)[0] == [2, 1]
    assert structure(first) != structure({"a": 1})


def test_paths_say_how_a_leaf_is_reached() -> None:
    x = ({"w": [1, 2]}, Point(3, Layer(4, None)))
    assert flatten(x)[1].paths() == ["[0]['w'][0]", "[0]['w'][1]", "[1].a", "[1].b.weights"]


def test_a_dataclass_with_computed_fields_is_rebuilt_without_its_constructor() -> None:
    tree = flatten(Cached(1))[1]
    made = tree.unflatten([5, 6])
    assert (made.x, made.y) == (5, 6)


def test_keys_of_several_types_have_an_order() -> None:
    assert flatten({1: "a", "k": "b"})[0] == ["a", "b"]


def test_mapping_over_containers_of_different_structure_names_both() -> None:
    assert map_leaves(lambda a, b: a + b, [1, (2,)], [10, (20,)]) == [11, (22,)]
    with pytest.raises(ArgumentError, match=r"\['\*'\].*\['\*', '\*'\]"):
        map_leaves(lambda a, b: a + b, [1], [1, 2])
