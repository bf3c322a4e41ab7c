"""Slices whose bounds have no number: windows of known length are views, growing slices are masks."""

from typing import Any

import numpy as np
import pytest

from pullback.errors import UnsupportedError
from pullback.ir.interpret import interpret
from pullback.tracer.entry import describe, trace
from pullback.tracer.tree import flatten
from tests.tracer.support import assert_equal

A, X = np.arange(20.0).reshape(4, 5), np.arange(6.0)


def check(fn: Any, *args: Any) -> None:
    """`fn` traced for types alone gives NumPy's result for these arguments."""
    leaves, tree = flatten((args, {}))
    program = trace(fn, tree, [describe(leaf) for leaf in leaves])
    results = interpret(program.function, [np.asarray(leaf) for leaf in leaves])
    wanted = fn(*[np.copy(a) if isinstance(a, np.ndarray) else a for a in args])
    assert_equal(program.out_tree.unflatten(list(results)), wanted)


def test_bounds_a_constant_apart_make_a_window() -> None:
    check(lambda x, i: x[i : i + 3] * 2, X, 2)
    check(lambda x, i: x[i - 1 : i + 2].sum() + x[1 + i : i + 1 + 1][0], X, 2)
    check(lambda a, i: a[i : i + 2, i + 1 : i + 3], A, 1)
    check(lambda a, i: a[i, i : i + 2], A, 2)


def test_a_window_is_a_view_that_can_be_written() -> None:
    def f(a: Any, i: Any) -> Any:
        a[i : i + 2, 1] = 7.0
        part = a[i, i + 1 : i + 3]
        part *= 10.0
        return a

    check(f, A, 1)


def test_a_window_beyond_the_end_is_checked_in_the_call() -> None:
    leaves, tree = flatten(((X, 4), {}))
    program = trace(lambda x, i: x[i : i + 3], tree, [describe(leaf) for leaf in leaves])
    with pytest.raises(ValueError, match="out of bounds"):
        interpret(program.function, leaves)


def test_a_growing_slice_is_reduced_multiplied_and_written() -> None:
    def f(a: Any, i: Any, j: Any) -> Any:
        total = np.sum(a[i, :j] * a[j, :j]) + a[i, :j] @ a[0, :j] + a[:j, 1].max() + a[i:j, 2].sum()
        a[:j, 3] = 0.5
        a[i, :j] = a[i, :j] * 2 + 1
        return total, a

    check(f, A, 1, 3)


def test_what_a_growing_slice_cannot_do_is_an_error() -> None:
    for fn, text in (
        (lambda a, j: a[:, :j], "first axis"),
        (lambda a, j: a[:j:2], "step 1"),
        (lambda a, j: a[:j, [0, 1]], "integers and other slices"),
        (lambda a, j: a[0].__setitem__(slice(None, j), np.ones(3)), "same bounds"),
    ):
        leaves, tree = flatten(((A, 3), {}))
        with pytest.raises(UnsupportedError, match=text):
            trace(fn, tree, [describe(leaf) for leaf in leaves])
