"""Python control flow on numbers that depend on the inputs: right in any order of calls."""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import PullbackError


def root(a: Any) -> Any:
    """Newton's iteration for the cube root: a number of turns that depends on the data."""
    x = a
    while abs(x * x * x - a) > 1e-12 * abs(a):
        x = x - (x * x * x - a) / (3 * x * x)
    return x


def bisected(a: Any) -> Any:
    """The zero of x^3 - a by halving, then one Newton step, which carries the derivative."""
    low, high = 0.0, 64.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if middle * middle * middle > a:
            high = middle
        else:
            low = middle
    return low - (low * low * low - a) / (3 * low * low)


def decay(a: Any) -> Any:
    """y' = -a y over [0, 1] by Heun's method with steps chosen by the error."""
    t, y, h = 0.0, 1.0, 0.25
    while t < 1.0:
        h = min(h, 1.0 - t)
        first = -a * y
        second = -a * (y + h * first)
        error = abs(h * (second - first) / 2)
        if error > 0.05:
            h = h / 2
            continue
        y = y + h * (first + second) / 2
        t = t + h
        if error < 0.005:
            h = h * 2
    return y


def collatz(a: Any) -> Any:
    x = a
    for _ in range(6):
        x = 3 * x + 1 if int(x) % 2 else x / 2
        if x < 1.5:
            break
    return x


def piecewise(a: Any) -> Any:
    if a < 3 and not a > 2.5:
        return a * a
    if 3 <= a < 10 or a > 20:
        return np.sin(a)
    return abs(a) + max(a, 12.0) * min(a, 2.0)


def fixed_point(a: Any) -> Any:
    x, turns = 1.0, 0
    while True:
        new = np.cos(x / a)
        turns += 1
        if abs(new - x) < 1e-10:
            return new
        assert turns < 500
        x = new


FUNCTIONS: list[Callable[[Any], Any]] = [root, bisected, decay, collatz, piecewise, fixed_point]
POINTS = [2.2, 27.5, 3.7, 11.3, 2.7]


def slope(f: Callable[[Any], Any], x: float) -> float:
    h = 1e-6 * x
    return float((f(x + h) - f(x - h)) / (2 * h))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_values_and_gradients_in_any_order_of_calls(f: Callable[[Any], Any]) -> None:
    both, plain = pb.value_and_grad(f), pb.jit(f)
    expected = {x: f(x) for x in POINTS}
    slopes = {x: pb.grad(f)(x) for x in POINTS}  # each by a path of its own
    for order in itertools.islice(itertools.permutations(POINTS), 0, 120, 47):
        for x in order:
            value, gradient = both(x)
            assert value == pytest.approx(expected[x], rel=1e-12)
            assert gradient == pytest.approx(slopes[x], rel=1e-12)
            assert plain(x) == pytest.approx(expected[x], rel=1e-12)


@pytest.mark.parametrize("f", [root, bisected, collatz, piecewise, fixed_point])
def test_gradients_are_slopes(f: Callable[[Any], Any]) -> None:
    for x in POINTS:
        assert pb.grad(f)(x) == pytest.approx(slope(f, x), rel=1e-4, abs=1e-6)


def test_forward_mode_and_nested_transforms_take_the_path_of_the_numbers() -> None:
    for x in POINTS:
        value, tangent = pb.jvp(root, (x,), (1.0,))
        assert (value, tangent) == pytest.approx((x ** (1 / 3), x ** (-2 / 3) / 3), rel=1e-9)
        value, pull = pb.vjp(piecewise, x)
        assert pull(1.0)[0] == pytest.approx(pb.grad(piecewise)(x))
    second = pb.grad(pb.grad(piecewise))
    assert [second(x) for x in (2.2, 3.7, 2.2)] == pytest.approx([2.0, -np.sin(3.7), 2.0])
    inner = pb.jit(pb.grad(lambda x: pb.jit(piecewise)(x) * 2))
    assert [inner(x) for x in POINTS] == pytest.approx([2 * pb.grad(piecewise)(x) for x in POINTS])


def test_threads_take_their_own_paths() -> None:
    gradient = pb.grad(piecewise)
    expected = [pb.grad(piecewise)(x) for x in POINTS]
    found: dict[int, list[float]] = {}

    def run(number: int) -> None:
        turned = POINTS[number:] + POINTS[:number]
        found[number] = [gradient(x) for x in turned for _ in range(20)][::20]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        assert found[k] == pytest.approx(expected[k:] + expected[:k])


def test_too_many_paths_end_in_an_error_that_shows_the_structured_form() -> None:
    def counted(x: Any) -> Any:
        return sum(1.0 for k in range(100) if x > k) * x

    with pb.options(paths=4):
        f = pb.jit(counted)
        for k in range(4):
            assert f(k + 0.5) == (k + 1) * (k + 0.5)
        with pytest.raises(PullbackError, match="cond"):
            f(4.5)
