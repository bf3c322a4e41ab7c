"""Loops that keep some of their states: the same derivatives, and memory within the budget."""

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.config import Options
from pullback.driver import optimised, planned
from pullback.errors import ArgumentError

START = np.linspace(-1.0, 1.0, 4)
WEIGHTS = np.random.default_rng(0).standard_normal((4, 4)) / 2
ROWS = np.random.default_rng(1).standard_normal((23, 4))
ARGUMENTS = (START, WEIGHTS, ROWS)


def recurrent(start: Any, weights: Any, rows: Any, **keeping: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        h, k = state
        h = np.tanh(weights @ h + x)
        return (h, k + 1), np.sum(h**2) * k

    (last, _), errors = pb.scan(step, (start, 0), rows, **keeping)
    return np.sum(errors) + np.sum(np.sin(last))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("every", [1, 4, 23, 100])
def test_gradients_do_not_depend_on_what_is_kept(every: int, backwards: bool) -> None:
    plain = pb.grad(lambda *a: recurrent(*a, reverse=backwards), argnums=(0, 1, 2))(*ARGUMENTS)
    kept = pb.grad(lambda *a: recurrent(*a, reverse=backwards, checkpoint=every), argnums=(0, 1, 2))(*ARGUMENTS)
    for a, b in zip(plain, kept, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_second_derivatives_forward_mode_and_batches_work_through_blocks() -> None:
    def kept(x: Any) -> Any:
        return recurrent(x, WEIGHTS, ROWS, checkpoint=5)

    def plain(x: Any) -> Any:
        return recurrent(x, WEIGHTS, ROWS)

    np.testing.assert_allclose(pb.hessian(kept)(START), pb.hessian(plain)(START), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(pb.jvp(kept, (START,), (START,))[1], pb.grad(plain)(START) @ START, rtol=1e-11)
    both = np.stack([START, 2 * START])
    np.testing.assert_allclose(pb.vmap(pb.grad(kept))(both), [pb.grad(plain)(x) for x in both], rtol=1e-11)


def test_a_loop_over_a_range_keeps_every_so_many_turns_too() -> None:
    def power(x: Any, **keeping: Any) -> Any:
        return np.sum(pb.fori_loop(0, 40, lambda i, v: np.sin(v) + 0.01 * i, x, **keeping))

    np.testing.assert_allclose(pb.grad(lambda x: power(x, checkpoint=7))(START), pb.grad(power)(START), rtol=1e-12)
    with pytest.raises(ArgumentError, match="Python numbers"):
        pb.jit(lambda n: pb.fori_loop(0, n, lambda i, v: v, 1.0, checkpoint=2))(3)


def long(start: Any, scale: Any, **keeping: Any) -> Any:
    def step(x: Any, _: Any) -> Any:
        return x + 0.01 * np.sin(x * scale), None

    return np.sum(pb.scan(step, start, None, 10_000, **keeping)[0] ** 2)


def arena(function: Any, *arguments: Any) -> int:
    program = pb.lower(function, *arguments).function
    return planned(optimised(program, Options()), Options()).arena_bytes


@pytest.mark.parametrize("budget", [500_000, 50_000])
def test_the_memory_of_ten_thousand_steps_stays_within_the_budget(budget: int) -> None:
    arguments = (np.linspace(-1.0, 1.0, 100), np.linspace(0.5, 2.0, 100))
    unbounded = pb.grad(long, argnums=(0, 1))
    bounded = pb.grad(lambda x, s: long(x, s, memory_budget=budget), argnums=(0, 1))
    assert arena(unbounded, *arguments) > 8_000_000
    assert arena(bounded, *arguments) <= budget
    for a, b in zip(unbounded(*arguments), bounded(*arguments), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_a_budget_that_cannot_be_kept_names_what_can() -> None:
    with pytest.raises(ArgumentError, match="the least found to do is"):
        pb.grad(lambda x: long(x, x, memory_budget=1000))(np.ones(100))
    with pytest.raises(ArgumentError, match="not both"):
        pb.grad(lambda x: long(x, x, memory_budget=1000, checkpoint=3))(np.ones(100))
    with pytest.raises(ArgumentError, match="positive"):
        pb.grad(lambda x: long(x, x, checkpoint=0))(np.ones(100))
