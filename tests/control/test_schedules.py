"""Loops that keep some of their states: the same derivatives, and memory within the budget."""

import ctypes
import os
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.config import Options
from pullback.driver import optimised, planned
from pullback.errors import ArgumentError, BudgetError

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


def long(start: Any, scale: Any, **keeping: Any) -> Any:
    def step(x: Any, _: Any) -> Any:
        return x + 0.01 * np.sin(x * scale), x[0]

    last, firsts = pb.scan(step, start, None, 10_000, **keeping)
    return np.sum(last**2) + np.sum(firsts**2)


LONG = (np.linspace(-1.0, 1.0, 100), np.linspace(0.5, 2.0, 100))


def allocated(function: Any, *arguments: Any) -> int:
    """Work memory and results of a call."""
    plan = planned(optimised(pb.lower(function, *arguments).function, Options()), Options())
    return plan.arena_bytes + sum(plan.stack_bytes) + sum(t.nbytes for t in plan.function.result_types)


@pytest.mark.parametrize("budget", [1_000_000, 250_000])
def test_the_memory_of_ten_thousand_steps_stays_within_the_budget(budget: int) -> None:
    unbounded = pb.grad(long, argnums=(0, 1))
    bounded = pb.grad(lambda x, s: long(x, s, memory_budget=budget), argnums=(0, 1))
    assert allocated(unbounded, *LONG) > 8_000_000
    assert allocated(bounded, *LONG) <= budget
    for a, b in zip(unbounded(*LONG), bounded(*LONG), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_a_budget_that_cannot_be_kept_names_what_can() -> None:
    with pytest.raises(BudgetError, match=r"the least found to do is \d+, of which its results.* are 163200 "):
        pb.grad(lambda x: long(x, x, memory_budget=100_000))(np.ones(100))
    with pytest.raises(ArgumentError, match="not both"):
        pb.grad(lambda x: long(x, x, memory_budget=1000, checkpoint=3))(np.ones(100))
    with pytest.raises(ArgumentError, match="positive"):
        pb.grad(lambda x: long(x, x, checkpoint=0))(np.ones(100))


# ------------------------------------------------------------------ turns that are counted at run time only


def up_to(x: Any, n: Any, **keeping: Any) -> Any:
    return np.sum(pb.fori_loop(2, n, lambda i, v: np.tanh(WEIGHTS @ v + 0.01 * i), x, **keeping) ** 2)


def until(x: Any, n: Any, **keeping: Any) -> Any:
    def goes_on(state: Any) -> Any:
        return (state[0] < n) & (np.sum(state[1] ** 2) > 1e-9)

    def step(state: Any) -> Any:
        i, v = state
        return i + 1, np.tanh(WEIGHTS @ v + 0.01 * i)

    return np.sum(pb.while_loop(goes_on, step, (2, x), **keeping)[1] ** 2)


@pytest.mark.parametrize("loop", [up_to, until])
@pytest.mark.parametrize("keeping", [{"checkpoint": 3}, {"checkpoint": 50}, {"memory_budget": 3000}])
def test_loops_of_any_length_keep_some_states(loop: Any, keeping: Any) -> None:
    plain, kept = pb.value_and_grad(loop), pb.value_and_grad(lambda x, n: loop(x, n, **keeping))
    for n in (2, 3, 9, 40):
        for a, b in zip(plain(START, n), kept(START, n), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("loop", [up_to, until])
def test_loops_of_any_length_in_blocks_have_second_derivatives_and_batches(loop: Any) -> None:
    def kept(x: Any, n: Any) -> Any:
        return loop(x, n, checkpoint=3)

    np.testing.assert_allclose(pb.hessian(kept)(START, 7), pb.hessian(loop)(START, 7), rtol=1e-10, atol=1e-12)
    rows, counts = np.stack([START, 2 * START, 0.1 * START]), np.array([5, 11, 2])
    found = pb.vmap(pb.grad(kept))(rows, counts)
    np.testing.assert_allclose(found, [pb.grad(loop)(x, int(n)) for x, n in zip(rows, counts, strict=True)], rtol=1e-10)


def grown(call: Any) -> int:
    """Bytes by which the memory of this process grew at most meanwhile."""

    def status(key: str) -> int:
        with open("/proc/self/status") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith(key))

    ctypes.CDLL(None).malloc_trim(0)  # what earlier calls have given back would be taken again unseen
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = status("VmRSS")
    call()
    return status("VmHWM") - before


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of memory cannot be measured")
@pytest.mark.parametrize("loop", [pb.fori_loop, pb.while_loop])
def test_the_memory_of_a_loop_of_any_length_stays_within_the_budget(loop: Any) -> None:
    def steps(x: Any, n: Any, **keeping: Any) -> Any:
        if loop is pb.fori_loop:
            return np.sum(pb.fori_loop(0, n, lambda i, v: 0.999 * v + 0.001 * v * v, x, **keeping))
        state = pb.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, 0.999 * s[1] + 0.001 * s[1] ** 2), (0, x), **keeping
        )
        return np.sum(state[1])

    unbounded = pb.grad(steps)
    bounded = pb.grad(lambda x, n: steps(x, n, memory_budget=500_000))
    x, n = LONG[0], 40_000
    for function in (unbounded, bounded):
        function(x, 3)
    np.testing.assert_allclose(bounded(x, n), unbounded(x, n), rtol=1e-10)
    assert grown(lambda: unbounded(x, n)) > 25_000_000
    assert grown(lambda: bounded(x, n)) < 500_000


def test_a_loop_of_any_length_that_outgrows_its_budget_says_how_much_it_holds() -> None:
    with pytest.raises(BudgetError, match="not enough for one turn; the least is"):
        pb.grad(lambda x, n: up_to(x, n, memory_budget=300))(START, 9)
    for loop in (up_to, until):
        bounded = pb.grad(lambda x, n, loop=loop: loop(x, n, memory_budget=3000))
        with pytest.raises(BudgetError, match=r"memory_budget=3000 bytes are enough for \d+ turns.*\n.*test_schedules"):
            bounded(START, 100_000)
        assert np.isfinite(bounded(START, 50)).all()
