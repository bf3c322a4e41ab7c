"""Structured control flow equals the Python it stands for: values, first and second derivatives, in both modes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, IndexRangeError

X = np.array([0.4, -0.9, 1.3])


def scanned(x: Any) -> Any:
    carry, rows = pb.scan(lambda c, r: (np.tanh(c + r * x), c * r), x * 0.5, np.arange(1.0, 5.0))
    return np.sum(carry) + np.sum(rows**2)


def scanned_by_hand(x: Any) -> Any:
    carry, total = x * 0.5, 0.0
    for r in np.arange(1.0, 5.0):
        carry, row = np.tanh(carry + r * x), carry * r
        total = total + np.sum(row**2)
    return np.sum(carry) + total


def reversed_scan(x: Any) -> Any:
    return np.sum(pb.scan(lambda c, r: (c * r + x, np.sin(c)), x, np.arange(3.0), reverse=True)[1] * X)


def reversed_by_hand(x: Any) -> Any:
    carry, rows = x, []
    for r in np.arange(3.0)[::-1]:
        carry, row = carry * r + x, np.sin(carry)
        rows.append(row)
    return np.sum(np.stack(rows[::-1]) * X)


def chosen(x: Any) -> Any:
    return pb.cond(np.sum(x) > 0, lambda v: np.sum(v**3), lambda v: np.sum(np.exp(v)), x)


def chosen_by_hand(x: Any) -> Any:
    return np.sum(x**3) if np.sum(x) > 0 else np.sum(np.exp(x))


def switched(x: Any) -> Any:
    branches = [lambda v: np.sum(v), lambda v: np.sum(v**2), lambda v: np.sum(v**3), lambda v: np.prod(v)]
    return sum(pb.switch(np.int64(k), branches, x) for k in (-1, 1, 2, 7))


def switched_by_hand(x: Any) -> Any:
    return np.sum(x) + np.sum(x**2) + np.sum(x**3) + np.prod(x)


def turned(x: Any) -> Any:
    return np.sum(
        pb.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + np.sum(s[1] ** 2), s[1] * 0.9 + 0.1), (0.0, x))[1]
    )


def turned_by_hand(x: Any) -> Any:
    total, v = 0.0, x
    while total < 3.0:
        total, v = total + np.sum(v**2), v * 0.9 + 0.1
    return np.sum(v)


def counted(x: Any) -> Any:
    return np.sum(pb.fori_loop(1, 5, lambda i, v: v + np.sin(v) / i, x))


def counted_by_hand(x: Any) -> Any:
    v = x
    for i in range(1, 5):
        v = v + np.sin(v) / i
    return np.sum(v)


def mapped(x: Any) -> Any:
    return np.sum(pb.map(lambda v: v**3 + x[0], x) * X)


def mapped_by_hand(x: Any) -> Any:
    return np.sum((x**3 + x[0]) * X)


def combined(x: Any) -> Any:
    return np.sum(pb.associative_scan(lambda a, b: a * b, x + 2.0) * X)


def combined_by_hand(x: Any) -> Any:
    return np.sum(np.cumprod(x + 2.0) * X)


def nested(x: Any) -> Any:
    def body(c: Any, r: Any) -> Any:
        return pb.cond(r > 1.5, lambda v: np.sin(v), lambda v: v * r, c) + pb.fori_loop(0, 2, lambda i, v: v * x, c), c

    return np.sum(pb.scan(body, x, np.arange(4.0))[0])


def nested_by_hand(x: Any) -> Any:
    c = x
    for r in np.arange(4.0):
        c = (np.sin(c) if r > 1.5 else c * r) + c * x * x
    return np.sum(c)


PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "scan": (scanned, scanned_by_hand),
    "reversed scan": (reversed_scan, reversed_by_hand),
    "cond": (chosen, chosen_by_hand),
    "switch": (switched, switched_by_hand),
    "while": (turned, turned_by_hand),
    "fori": (counted, counted_by_hand),
    "map": (mapped, mapped_by_hand),
    "associative scan": (combined, combined_by_hand),
    "nested": (nested, nested_by_hand),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("x", [X, -X], ids=["x", "-x"])
def test_control_flow_equals_python(name: str, x: Any) -> None:
    ours, by_hand = PAIRS[name]
    np.testing.assert_allclose(ours(x), by_hand(x), rtol=1e-13)
    np.testing.assert_allclose(pb.jit(ours)(x), by_hand(x), rtol=1e-13)
    expected = pb.grad(by_hand)(x)
    np.testing.assert_allclose(pb.grad(ours)(x), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(pb.jvp(ours, (x,), (X,))[1], expected @ X, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", PAIRS)
def test_second_derivatives_of_control_flow(name: str) -> None:
    ours, by_hand = PAIRS[name]
    direction = np.array([1.0, -0.5, 2.0])
    expected = pb.grad(lambda x: pb.grad(by_hand)(x) @ direction)(X)
    found = pb.grad(lambda x: pb.grad(ours)(x) @ direction)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    forward = pb.jvp(pb.grad(ours), (X,), (direction,))[1]
    np.testing.assert_allclose(forward, expected, rtol=1e-11, atol=1e-13)


def test_bounds_may_be_traced() -> None:
    f = pb.jit(lambda n, x: pb.fori_loop(0, n, lambda i, v: v * 2.0 + i, x))
    assert [float(f(n, 1.0)) for n in (0, 1, 3, -2)] == [1.0, 2.0, 12.0, 1.0]
    g = pb.grad(lambda x, n: pb.fori_loop(0, n, lambda i, v: v * x, x))
    assert [float(g(2.0, n)) for n in (0, 1, 3)] == [1.0, 4.0, 32.0]


def test_an_index_out_of_range_inside_a_loop_is_an_index_error() -> None:
    def f(x: Any, k: Any) -> Any:
        return pb.scan(lambda c, i: (c + x[i], ()), 0.0, k)[0]

    g = pb.grad(f)
    np.testing.assert_array_equal(g(X, np.array([0, 2])), [1.0, 0.0, 1.0])
    with pytest.raises(IndexRangeError, match="out of bounds"):
        g(X, np.array([0, 3]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.scan(lambda c, r: (np.concatenate([c, c]), r), X, X), r"carry.*f64\[3\].*f64\[6\]"),
        (lambda: pb.scan(lambda c, r: c, X, X), "pair"),
        (lambda: pb.scan(lambda c, r: (c, r), X, (X, np.ones(2))), "number of turns"),
        (lambda: pb.scan(lambda c, r: (c, r), X), "give xs or length"),
        (lambda: pb.cond(True, lambda v: v, lambda v: (v, v), X), "different things"),
        (lambda: pb.cond(X > 0, lambda: 1.0, lambda: 2.0), "scalar predicate"),
        (lambda: pb.while_loop(lambda v: v, lambda v: v, 1.0), "one bool"),
        (lambda: pb.while_loop(lambda v: v[0] > 0, lambda v: v[0], (1.0,)), "carry starts as"),
        (lambda: pb.switch(0, []), "at least one branch"),
        (lambda: pb.scan(lambda c, r: ("text", r), 0.0, X), "only arrays and numbers"),
    ],
)
def test_a_body_that_cannot_be_compiled_is_an_error_that_says_why(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()
