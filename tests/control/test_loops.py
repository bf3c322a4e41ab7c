"""Structured loops against the same loops in plain Python: values, first and second derivatives, memory, errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.config import Options
from pullback.driver import optimised, planned
from pullback.errors import ArgumentError, PullbackError

X = np.array([0.4, 1.3, -0.7])
Function = Callable[[Any], Any]


def agree(structured: Function, plain: Function, x: Any = X) -> None:
    """Value, gradient and Hessian, and the directional derivative."""
    np.testing.assert_allclose(pb.jit(structured)(x), plain(x), rtol=1e-12)
    np.testing.assert_allclose(pb.grad(structured)(x), pb.grad(plain)(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(pb.hessian(structured)(x), pb.hessian(plain)(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(pb.jvp(structured, (x,), (X,))[1], pb.jvp(plain, (x,), (X,))[1], rtol=1e-10, atol=1e-12)


def test_a_while_loop_of_unknown_length() -> None:
    def structured(x: Any) -> Any:
        return np.sum(pb.while_loop(lambda v: np.sum(v * v) > 0.1, lambda v: np.sin(v) * 0.9, x))

    def plain(x: Any) -> Any:
        while np.sum(x * x) > 0.1:
            x = np.sin(x) * 0.9
        return np.sum(x)

    agree(structured, plain)
    np.testing.assert_array_equal(pb.grad(structured)(X * 0.01), np.ones(3))


def test_a_range_whose_end_is_a_run_time_number_is_one_program() -> None:
    calls = []

    def structured(x: Any, n: Any) -> Any:
        calls.append(n)
        return np.sum(pb.fori_loop(1, n, lambda i, v: np.sin(v) + v / i, x))

    def plain(x: Any, n: int) -> Any:
        for i in range(1, n):
            x = np.sin(x) + x / i
        return np.sum(x)

    gradient = pb.grad(structured)
    for n in (4, 1, 7, 0, 4):
        np.testing.assert_allclose(gradient(X, n), pb.grad(plain)(X, n), rtol=1e-10)
    assert len(calls) == 1


@pytest.mark.parametrize("backwards", [False, True])
def test_a_body_that_writes_at_a_traced_index(backwards: bool) -> None:
    def structured(x: Any) -> Any:
        def step(y: Any, i: Any) -> Any:
            y[i + 1] = np.sin(y[i]) * x[1] + y[i + 1]
            y[0] += 0.1 * y[i]
            return y, y[i]

        start = np.concatenate([x, x * x])
        y, rows = pb.scan(step, start, np.arange(5), reverse=backwards)
        return np.sum(y * np.arange(6)) + np.sum(rows**2)

    def plain(x: Any) -> Any:
        y, rows = np.concatenate([x, x * x]), []
        for i in reversed(range(5)) if backwards else range(5):
            y[i + 1] = np.sin(y[i]) * x[1] + y[i + 1]
            y[0] += 0.1 * y[i]
            rows.append(y[i])
        return np.sum(y * np.arange(6)) + np.sum(np.stack(rows) ** 2)

    agree(structured, plain)


def test_a_scan_in_a_while_loop_in_a_branch() -> None:
    def structured(x: Any) -> Any:
        def inner(c: Any, row: Any) -> Any:
            return np.sin(c) + 0.1 * row, c * row

        def turn(v: Any) -> Any:
            c, rows = pb.scan(inner, v, np.arange(2.0))
            return c * 0.8 + 0.01 * np.sum(rows)

        loop = pb.cond(
            x[0] > 0, lambda v: pb.while_loop(lambda u: np.sum(u * u) > 0.5, turn, v), lambda v: np.exp(v), x
        )
        return np.sum(loop**2)

    def plain(x: Any) -> Any:
        v = x
        if x[0] > 0:
            while np.sum(v * v) > 0.5:
                c, total = v, 0.0
                for row in (0.0, 1.0):
                    total = total + np.sum(c * row)
                    c = np.sin(c) + 0.1 * row
                v = c * 0.8 + 0.01 * total
        else:
            v = np.exp(v)
        return np.sum(v**2)

    agree(structured, plain)
    agree(structured, plain, -X)
    both = np.stack([X, -X, 0.1 * X])
    np.testing.assert_allclose(
        pb.vmap(pb.grad(structured))(both), [pb.grad(structured)(x) for x in both], rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 9])
def test_switch_takes_the_nearest_branch(index: int) -> None:
    branches = [np.sin, np.exp, lambda v: v * v]
    chosen: Any = branches[min(max(index, 0), 2)]
    agree(lambda x: np.sum(pb.switch(index, branches, x)), lambda x: np.sum(chosen(x)))
    assert pb.jit(lambda i, v: pb.switch(i, branches, v))(index, 0.5) == chosen(0.5)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8", "?"])
def test_carries_keep_their_types(dtype: str) -> None:
    start = np.array([1, 0, 1]).astype(dtype)
    last, rows = pb.scan(lambda c, x: (c[::-1], c), start, np.zeros(3))
    assert last.dtype == rows.dtype == start.dtype
    np.testing.assert_array_equal(rows, [start, start[::-1], start])


def test_python_numbers_empty_loops_and_arrays_of_one_element() -> None:
    last, rows = pb.scan(lambda c, x: (c * 0.5 + x, c), 1, np.arange(3.0))
    assert last == 2.625
    assert rows.dtype == np.float64
    last, rows = pb.scan(lambda c, x: (c + x, c), 1.5, np.zeros(0))
    assert (last, rows.shape) == (1.5, (0,))
    agree(
        lambda x: np.sum(pb.fori_loop(0, 3, lambda i, v: np.sin(v) * (i + 1), x[:1])),
        lambda x: np.sum(3 * np.sin(2 * np.sin(np.sin(x[:1])))),
    )


def filled(start: Any, n: int) -> Any:
    def step(y: Any, i: Any) -> Any:
        y[i + 1] = np.sin(y[i]) * 0.9
        return y, None

    return np.sum(pb.scan(step, start, np.arange(n - 1))[0])


def test_a_carried_array_written_one_element_a_turn_is_never_copied() -> None:
    for n in (200, 800):
        program = pb.lower(pb.grad(lambda x, n=n: filled(x, n)), np.ones(n)).function
        plan = planned(optimised(program, Options()), Options())
        assert plan.copies == ()
        assert plan.arena_bytes <= 40 * n


def test_errors_name_the_carry_and_both_types() -> None:
    with pytest.raises(ArgumentError, match=r"\['a'\].*f64\[3\].*f64\[2\]"):
        pb.scan(lambda c, x: ({"a": c["a"][:2]}, x), {"a": np.ones(3)}, np.ones(2))
    with pytest.raises(ArgumentError, match="must give one bool"):
        pb.while_loop(lambda v: v, lambda v: v, np.ones(()))
    with pytest.raises(ArgumentError, match="scalar predicate"):
        pb.cond(np.array([True, False]), np.sin, np.cos, 1.0)
    with pytest.raises(ArgumentError, match="branches give different things"):
        pb.cond(True, lambda x: x, lambda x: (x, x), 1.0)
    with pytest.raises(ArgumentError, match="one number of turns"):
        pb.scan(lambda c, x: (c, x), 1.0, (np.ones(2), np.ones(3)))


def test_a_branch_in_a_compiled_body_and_a_leaked_value_are_errors() -> None:
    kept = []

    def leaking(c: Any, x: Any) -> Any:
        kept.append(c)
        return c + x, None

    def branching(c: Any, x: Any) -> Any:
        return (c + x if c > 0 else c), None

    with pytest.raises(PullbackError, match="cond"):
        pb.scan(branching, 1.0, np.ones(2))
    with pytest.raises(PullbackError):
        pb.jit(lambda x: pb.scan(leaking, x, np.ones(2))[0] + kept[0])(1.0)


def test_slices_with_run_time_bounds() -> None:
    """Windows and growing slices, read and written, at places that the turn says."""

    def structured(x: Any) -> Any:
        def step(y: Any, i: Any) -> Any:
            y[i : i + 2] = y[i : i + 2] * 2
            y[i + 1] = np.sum(y[: i + 1] * 0.5) + y[i + 1]
            return y, np.sum(y[i : i + 2])

        y, rows = pb.scan(step, np.concatenate([x, x]), np.arange(4))
        return np.sum(y * y) + np.sum(rows)

    def plain(x: Any) -> Any:
        y, total = np.concatenate([x, x]), 0.0
        for i in range(4):
            y[i : i + 2] = y[i : i + 2] * 2
            y[i + 1] = np.sum(y[: i + 1] * 0.5) + y[i + 1]
            total = total + np.sum(y[i : i + 2])
        return np.sum(y * y) + total

    agree(structured, plain)


def test_a_traced_index_into_an_array_from_outside_is_followed() -> None:
    table = np.arange(12.0).reshape(3, 4)
    total, _ = pb.scan(lambda c, i: (c + table[i, 1], None), 0.0, np.arange(3))
    assert total == 15.0
    total, _ = pb.scan(lambda c, i: (c + np.sum(np.asarray(table)[i, :i]), None), 0.0, np.arange(3))
    assert total == 21.0


def test_loops_that_may_fail_keep_their_order_among_kernels() -> None:
    def two(x: Any, k: Any) -> Any:
        late = x + np.sum(x)
        first = pb.fori_loop(0, 2, lambda i, v: v + late[i + k], 0.0)
        return first, pb.fori_loop(0, 2, lambda i, v: v * x[i + k], x * x) + x

    first, second = pb.jit(two)(np.arange(1.0, 4.0), 1)
    assert first == 17.0
    np.testing.assert_allclose(second, [7.0, 26.0, 57.0])
