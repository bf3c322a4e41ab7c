"""Python decisions: many paths through one function, their bound, threads, recursion, exceptions."""

import contextlib
import threading
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import LeakedValueError, PathLimitError, PullbackError


def collatz(x: Any) -> Any:
    """As many turns as it takes to get below one."""
    turns = 0.0
    while x > 1.0:
        x = x / 2.0 if x > 3.0 else x - 0.75
        turns += 1.0
    return x * turns


def by_hand(x: float) -> float:
    turns, slope = 0.0, 1.0
    while x > 1.0:
        slope, x = (slope / 2.0, x / 2.0) if x > 3.0 else (slope, x - 0.75)
        turns += 1.0
    return slope * turns


def test_each_path_is_traced_once_and_found_again() -> None:
    traces = []

    def f(x: Any) -> Any:
        traces.append(1)
        return collatz(x)

    g = pb.grad(f)
    points = [0.5, 1.5, 2.0, 3.5, 9.0, 17.0, 2.5, 30.0]
    for x in points * 3:
        assert g(x) == by_hand(x)
    assert len(traces) <= len(points)


def test_more_paths_than_the_bound_is_an_error_that_names_the_line() -> None:
    with pb.options(paths=3):
        g = pb.grad(lambda x: x * int(x))
    for x in (1.5, 2.5, 3.5):
        assert g(x) == int(x)
    with pytest.raises(PathLimitError, match=r"more than 3 different(.|\n)*test_paths.py:\d+"):
        g(4.5)
    assert g(2.25) == 2.0


def test_threads_that_call_first_together_trace_each_path_once() -> None:
    traces: list[int] = []

    def f(x: Any) -> Any:
        traces.append(1)
        return x * x if x > 0 else -x

    g = pb.grad(f)
    wrong: list[float] = []
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        x = 3.0 if number % 2 else -3.0
        barrier.wait()
        wrong.extend(found for found in (float(g(x)) for _ in range(50)) if found != (6.0 if x > 0 else -1.0))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(traces) == 2


def test_a_function_may_call_its_own_gradient() -> None:
    def f(x: Any, depth: int) -> Any:
        return x**3 if depth == 0 else x * g(x, depth - 1)

    g = pb.grad(f, static_argnums=1)
    assert g(2.0, 0) == 12.0
    assert g(2.0, 1) == pytest.approx(36.0)  # of 3 x**3
    assert g(2.0, 2) == pytest.approx(108.0)  # of 9 x**3


def test_an_error_of_the_users_code_passes_through_and_leaves_nothing_broken() -> None:
    broken = [True]

    def f(x: Any) -> Any:
        out = np.zeros(3)
        if broken[0]:
            raise KeyError("mine")
        out[0] = x
        return np.sum(out)

    g = pb.grad(f)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            g(1.0)
    assert type(np.zeros(2)) is np.ndarray
    broken[0] = False
    assert g(1.0) == 1.0


def test_a_value_that_leaks_is_an_error_when_used() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2.0)
        return x * x

    assert pb.grad(f)(3.0) == 6.0
    with pytest.raises(LeakedValueError):
        kept[0] + 1.0


def test_a_different_result_for_equal_arguments_is_an_error_or_right() -> None:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x * len(calls)

    with contextlib.suppress(PullbackError):
        assert pb.grad(f)(1.0) == 1.0


def test_without_memory_every_call_traces() -> None:
    traces = []

    def f(x: Any) -> Any:
        traces.append(1)
        return x * x

    with pb.options(cache="off"):
        g = pb.grad(f)
    assert [g(3.0), g(3.0)] == [6.0, 6.0]
    assert len(traces) == 2
