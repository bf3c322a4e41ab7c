"""Index arithmetic: what an affine index says is checked against NumPy, element by element."""

import itertools
import math

import numpy as np
import pytest

from pullback.ir.index import (
    Affine,
    Bound,
    axis_index,
    flatten_index,
    identity_index,
    reshape_index,
    strides_of,
    unflatten_index,
)
from pullback.ir.types import Shape

SHAPES = [s for k in range(4) for s in itertools.product((0, 1, 2, 3, 4, 6), repeat=k)]
PAIRS = [(a, b) for a in SHAPES[::3] for b in SHAPES if math.prod(a) == math.prod(b)][::5]


def value(e: Affine, at: tuple[int, ...]) -> int:
    return e.offset + sum(c * at[axis] for axis, c in e.terms)


def position(at: tuple[int, ...], shape: Shape) -> int:
    return int(sum(i * s for i, s in zip(at, strides_of(shape), strict=True)))


def check_same_element(index: tuple[Affine, ...], shape: Shape, target: Shape) -> None:
    assert len(index) == len(target)
    for at in np.ndindex(*shape):
        found = tuple(value(e, at) for e in index)
        assert all(0 <= i < n for i, n in zip(found, target, strict=True))
        assert position(found, target) == position(at, shape)


def test_an_affine_expression_adds_scales_and_shifts() -> None:
    e = axis_index(0).scale(3).plus(axis_index(1)).shift(5)
    assert e == Affine(5, ((0, 3), (1, 1)))
    assert e.plus(axis_index(1).scale(-1)) == Affine(5, ((0, 3),))
    assert e.scale(0) == Affine()
    assert (e.coefficient(0), e.coefficient(7)) == (3, 0)
    assert str(e.scale(-1)) == "-3*i0-i1-5"


def test_the_span_is_the_smallest_and_the_largest_value() -> None:
    e = Affine(2, ((0, 3), (1, -1)))
    found = [value(e, at) for at in np.ndindex(4, 5)]
    assert e.span((4, 5)) == (min(found), max(found))


def test_a_bound_prints_as_a_condition() -> None:
    assert str(Bound(axis_index(0).shift(-1), 0, 4)) == "0<=i0-1<4"


@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) == 2])
def test_flattening_gives_the_position_in_c_order(shape: Shape) -> None:
    flat = flatten_index(identity_index(len(shape)), shape)
    assert [value(flat, at) for at in np.ndindex(*shape)] == list(range(math.prod(shape)))


def test_an_index_through_a_reshape_finds_the_same_element() -> None:
    for shape, target in PAIRS:
        index = reshape_index(identity_index(len(shape)), shape, target)
        if index is not None:
            check_same_element(index, shape, target)


@pytest.mark.parametrize(
    ("shape", "target", "maps"),
    [
        ((2, 3), (6,), True),
        ((6,), (2, 3), False),
        ((4, 2, 3), (4, 6), True),
        ((4, 6), (4, 2, 3), False),
        ((4, 1, 6), (4, 6, 1), True),
        ((1,), (), True),
        ((0, 3), (0,), True),
        ((2, 6), (3, 4), False),
    ],
)
def test_an_index_maps_where_each_new_axis_is_a_run_of_old_ones(shape: Shape, target: Shape, maps: bool) -> None:
    assert (reshape_index(identity_index(len(shape)), shape, target) is not None) == maps


def test_a_position_comes_apart_into_the_axes_it_was_made_of() -> None:
    for shape, target in PAIRS:
        flat = flatten_index(identity_index(len(shape)), shape)
        index = unflatten_index(flat, target, shape)
        if index is not None and 0 not in shape:
            check_same_element(index, shape, target)


def test_a_position_comes_apart_over_a_finer_space() -> None:
    flat = flatten_index(identity_index(3), (4, 2, 3))
    assert unflatten_index(flat, (8, 3), (4, 2, 3)) == (Affine(0, ((0, 2), (1, 1))), axis_index(2))
    assert unflatten_index(axis_index(0), (2, 3), (6,)) is None


def test_a_shifted_position_keeps_its_offset_in_the_axes() -> None:
    flat = flatten_index((axis_index(0).shift(1), axis_index(1).shift(2)), (9, 10))
    assert unflatten_index(flat, (9, 10), (3, 4)) == (axis_index(0).shift(1), axis_index(1).shift(2))
