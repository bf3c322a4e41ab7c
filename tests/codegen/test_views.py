"""Ops that move elements, unfused, in dtypes of every size: slices, pads, transposes, gathers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pullback.ir.emit import Emitter, Expr
from pullback.ir.types import DType, Shape, tensor_type
from tests.codegen.checks import assert_native_agrees, build
from tests.codegen.samples import operands

Array = np.ndarray[Any, Any]
I64 = np.dtype(np.int64)

DTYPES = tuple(np.dtype(t) for t in ("f8", "f4", "?", "i4", "c16", "f2", "u1"))
pytestmark = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def numbers(shape: Shape, dtype: DType) -> Array:
    size = math.prod(shape)
    return operands(dtype, 1, max(size, 1), special=False)[0][:size].reshape(shape)


def check(dtype: DType, shapes: Sequence[Shape], program: Callable[..., Expr], *more: Array) -> None:
    types = [tensor_type(dtype, shape) for shape in shapes] + [tensor_type(x.dtype, x.shape) for x in more]
    assert_native_agrees(build(types, program), [*(numbers(shape, dtype) for shape in shapes), *more])


@pytest.mark.parametrize(
    ("shape", "perm"),
    [((3, 4), (1, 0)), ((17, 33), (1, 0)), ((64, 72), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((4, 50, 60), (0, 2, 1))],
)
def test_transpose(dtype: DType, shape: Shape, perm: Shape, shared: bool) -> None:
    check(dtype, [shape], lambda f, x: f.transpose(x, perm=perm))


def test_a_matrix_and_its_transpose_in_one_kernel(dtype: DType) -> None:
    check(dtype, [(41, 41)], lambda f, x: f.maximum(x, f.transpose(x, perm=(1, 0))) if dtype.kind != "c" else f.conj(x))


@pytest.mark.parametrize(("shape", "axes"), [((33,), (0,)), ((4, 37), (1,)), ((4, 37), (0,)), ((4, 37), (0, 1))])
def test_reverse(dtype: DType, shape: Shape, axes: Shape) -> None:
    check(dtype, [shape], lambda f, x: f.reverse(x, axes=axes))


def test_long_arrays_in_chunks_that_end_within_a_vector(dtype: DType) -> None:
    def program(f: Emitter, x: Expr) -> Expr:
        thirds = f.slice(f.reverse(x, axes=(0,)), start=(1,), stop=(120_011,), step=(3,))
        return f.maximum(thirds, thirds) if dtype.kind != "c" else thirds + thirds

    check(dtype, [(120_011,)], program)


SLICES = [
    ((50,), (3,), (47,), (1,)),
    ((50,), (3,), (47,), (3,)),
    ((90,), (1,), (90,), (2,)),
    ((20, 30), (1, 2), (19, 29), (2, 3)),
    ((20, 30), (1, 2), (19, 29), (1, 1)),
]


@pytest.mark.parametrize(("shape", "start", "stop", "step"), SLICES)
def test_slice_and_update(dtype: DType, shape: Shape, start: Shape, stop: Shape, step: Shape) -> None:
    attrs = {"start": start, "stop": stop, "step": step}
    part = tuple(-(-(b - a) // s) for a, b, s in zip(start, stop, step, strict=True))
    check(dtype, [shape], lambda f, x: f.slice(x, **attrs))
    check(dtype, [shape, part], lambda f, x, v: f.update(x, v, **attrs))


PADS = [
    ((50,), (3,), (4,), (0,)),
    ((50,), (0,), (40,), (0,)),
    ((20, 30), (1, 2), (3, 4), (0, 0)),
    ((20, 30), (1, 2), (3, 4), (1, 2)),
    ((3,), (1,), (1,), (0,)),
    ((2, 3, 4), (1, 1, 1), (1, 1, 1), (0, 0, 0)),
    ((0, 3), (2, 0), (1, 1), (0, 0)),
]


@pytest.mark.parametrize(("shape", "low", "high", "interior"), PADS)
def test_pad(dtype: DType, shape: Shape, low: Shape, high: Shape, interior: Shape, shared: bool) -> None:
    check(dtype, [shape], lambda f, x: f.pad(x, low=low, high=high, interior=interior))


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [([(5,), (7,), (9,)], 0), ([(3, 4), (3, 8)], 1), ([(3, 4), (8, 4)], 0), ([(2, 3, 4), (2, 1, 4), (2, 0, 4)], 1)],
)
def test_concatenate(dtype: DType, shapes: list[Shape], axis: int) -> None:
    check(dtype, shapes, lambda f, *xs: f.concatenate(*xs, axis=axis))


@pytest.mark.parametrize(("shape", "axis"), [((5,), 0), ((5, 6), 0), ((5, 6), 1), ((50, 3), 0)])
def test_iota(dtype: DType, shape: Shape, axis: int) -> None:
    check(dtype, [], lambda f: f.iota(type=tensor_type(dtype, shape), axis=axis))


GATHERS = [
    ((5,), (40,), 0),
    ((5, 6), (7,), 0),
    ((5, 6), (7,), 1),
    ((50, 3), (4, 5), 0),
    ((2, 5, 3), (6,), 1),
    ((5, 6), (), 0),
    ((9, 40), (13,), 0),
]


@pytest.mark.parametrize(("shape", "index", "axis"), GATHERS)
def test_gather_and_scatter_clamp_their_indices(dtype: DType, shape: Shape, index: Shape, axis: int) -> None:
    idx = np.random.default_rng(0).integers(-1, shape[axis] + 1, index)
    updates = numbers((*shape[:axis], *index, *shape[axis + 1 :]), dtype)
    check(dtype, [shape], lambda f, x, i: f.gather(x, i, axis=axis), idx)
    for name in ("scatter", "scatter_add"):
        check(dtype, [shape], lambda f, x, i, u, name=name: f.op(name, x, i, u, axis=axis), idx, updates)


@pytest.mark.parametrize(
    ("shape", "dims", "target"),
    [((5,), (0,), (5, 6)), ((5,), (1,), (4, 5)), ((), (), (3, 40)), ((5, 6), (0, 2), (5, 3, 6))],
)
def test_broadcast(dtype: DType, shape: Shape, dims: Shape, target: Shape) -> None:
    check(dtype, [shape], lambda f, x: f.broadcast(x, dims=dims, shape=target))


def test_constants(dtype: DType) -> None:
    def program(f: Emitter) -> list[Expr]:
        return [f.constant(numbers(shape, dtype)) for shape in ((), (3,), (40,), (7, 5))] + [
            f.full(tensor_type(dtype, (30,)), 1)
        ]

    assert_native_agrees(build([], program), [])
