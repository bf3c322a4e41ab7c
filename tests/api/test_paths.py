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


def test_where_compiled_code_rounds_otherwise_the_path_is_the_one_it_finds() -> None:
    def f(v: Any) -> Any:
        rest = np.sum(v - np.sum(v) / 7.0)  # zero but for roundings
        if rest > 0.0:
            return np.sum(v) * 2.0
        return np.sum(v) * 3.0 if rest == 0.0 else np.sum(v) * 5.0

    g = pb.value_and_grad(f)
    rng = np.random.default_rng(0)
    for _ in range(60):
        v = rng.normal(size=7)
        value, gradient = g(v)
        factor = gradient[0]
        assert factor in (2.0, 3.0, 5.0)
        np.testing.assert_allclose(value, factor * v.sum(), rtol=1e-12, atol=1e-14)
    assert len(next(iter(g.specialisations.items()))[1].paths) <= 6


def test_an_index_error_that_the_function_catches_is_a_path_of_its_own() -> None:
    def f(x: Any, k: Any) -> Any:
        v = np.array([1.0, 2.0, 3.0]) * x
        try:
            return v[k] * x
        except IndexError:
            return -x

    g = pb.grad(f)
    for k in (5, 0, 2, 7, -4, 1, -3):
        assert g(2.0, k) == (4.0 * [1.0, 2.0, 3.0][k] if -3 <= k < 3 else -1.0)


def test_an_index_error_that_nobody_catches_passes_through_the_function() -> None:
    cleaned: list[int] = []

    def f(v: Any, k: Any) -> Any:
        try:
            return v[k]
        finally:
            cleaned.append(1)

    g = pb.grad(f)
    for k in (3, 0, 3):
        if k < 3:
            np.testing.assert_array_equal(g(np.ones(3), k), [1.0, 0.0, 0.0])
        else:
            with pytest.raises(IndexError, match=r"out of bounds(.|\n)*test_paths.py:\d+"):
                g(np.ones(3), k)


@pytest.mark.parametrize(
    ("f", "number", "error"),
    [
        (lambda n: n * n, 1 << 32, OverflowError),
        (lambda n: n + n, 1 << 62, OverflowError),
        (lambda n: -3 - n, (1 << 63) - 1, OverflowError),
        (lambda n: n**5, 10_000, OverflowError),
        (lambda n: n << 3, 1 << 61, OverflowError),
        (lambda n: -n, -(1 << 63), OverflowError),
        (lambda n: 7 // n, 0, ZeroDivisionError),
        (lambda n: 7 % n, 0, ZeroDivisionError),
        (lambda n: divmod(7, n), 0, ZeroDivisionError),
        (lambda n: 2.5 / n, 0, ZeroDivisionError),
        (lambda n: int(n * 1e200), 1 << 40, OverflowError),
    ],
)
def test_a_python_integer_never_wraps_around(f: Any, number: int, error: type[Exception]) -> None:
    compiled = pb.jit(f)
    for n in (number, 3, number):
        if (n == 3 and error is not OverflowError) or (n == 3 and abs(f(3)) < 1 << 60):
            assert compiled(n) == f(n)
        elif n != 3:
            with pytest.raises(error, match=r"test_paths.py:\d+") as caught:
                compiled(n)
            assert isinstance(caught.value, PullbackError)


def test_dozens_of_paths_in_random_order_are_right() -> None:
    def f(x: Any, n: Any) -> Any:
        turns = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            turns += 1
        return x**2 * turns

    g = pb.grad(f)
    rng = np.random.default_rng(1)
    lengths = {n: _collatz_length(n) for n in range(1, 30)}
    for n in rng.integers(1, 30, 400):
        x = float(rng.normal())
        assert g(x, int(n)) == pytest.approx(2 * x * lengths[int(n)], rel=1e-14)


def _collatz_length(n: int) -> int:
    turns = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        turns += 1
    return turns


def test_the_bound_on_paths_shows_the_compiled_form_of_the_statement() -> None:
    def looping(x: Any) -> Any:
        y = x if x < 0.5 else x * 2.0
        while y > 1.0:
            y = y - 1.0
        return y

    def branching(x: Any) -> Any:
        if x > 1.0:
            return x
        if x > 0.5:
            return 2.0 * x
        return 3.0 * x

    with pb.options(paths=2):
        g, h = pb.jit(looping), pb.jit(branching)
    assert [g(0.6), g(2.7)] == pytest.approx([0.2, 0.4])
    with pytest.raises(PathLimitError, match=r"`state = pullback.while_loop\(lambda state: y > 1.0, body, state\)`"):
        g(1.7)
    assert [h(0.1), h(0.6)] == pytest.approx([0.3, 1.2])
    with pytest.raises(PathLimitError, match=r"`result = pullback.cond\(x > \d.\d, then, otherwise, \*operands\)`"):
        h(2.7)


def test_a_whole_number_may_be_a_key() -> None:
    def f(x: Any, n: Any, k: Any) -> Any:
        table = {0: 2.0, 1: 3.0, 4: 5.0}
        return x * table[n] * (10.0 if k in {1, 2} else 1.0)

    g = pb.grad(f)
    for n, k in ((0, 1), (4, 2), (1, 3), (0, 2), (4, 1)):
        factor = {0: 2.0, 1: 3.0, 4: 5.0}[n] * (10.0 if k in (1, 2) else 1.0)
        assert g(1.0, n, np.int64(k)) == factor
    with pytest.raises(KeyError):
        g(1.0, 2, np.int64(1))
