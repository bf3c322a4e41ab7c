"""Transforms inside the bodies of compiled control flow, and around it; carries of every type in gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

X = np.array([0.35, -0.7, 1.1])
Function = Callable[[Any], Any]


def energy(v: Any, k: Any) -> Any:
    return np.sum(np.sin(v * k) ** 2) + 0.1 * np.sum(v**4)


def descent(x: Any) -> Any:
    def step(v: Any, k: Any) -> Any:
        return v - 0.1 * pb.grad(lambda w: energy(w, k))(v), energy(v, k)

    last, energies = pb.scan(step, x, np.arange(1.0, 5.0))
    return np.sum(last**2) + np.sum(energies)


def descent_by_hand(x: Any) -> Any:
    total = 0.0
    for k in np.arange(1.0, 5.0):
        total = total + energy(x, k)
        x = x - 0.1 * pb.grad(lambda w, k=k: energy(w, k))(x)
    return np.sum(x**2) + total


def newton_step(v: Any) -> Any:
    curvature = pb.hessian(lambda w: energy(w, 1.3))(v) + 3 * np.eye(3)
    return v - np.linalg.solve(curvature, pb.grad(lambda w: energy(w, 1.3))(v))


def newton(x: Any) -> Any:
    return np.sum(pb.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, newton_step(s[1])), (0, x))[1] ** 2)


def newton_by_hand(x: Any) -> Any:
    return np.sum(newton_step(newton_step(newton_step(x))) ** 2)


def loop_in_branch_in_loop(x: Any) -> Any:
    def inner(w: Any) -> Any:
        return pb.fori_loop(0, 3, lambda i, c: np.sin(c) * np.sum(w) + c, np.sum(w))

    def body(i: Any, v: Any) -> Any:
        return pb.cond(np.sum(v) > 0, lambda u: u - 0.1 * pb.grad(inner)(u), lambda u: u * 0.9 + 0.3, v)

    return np.sum(pb.fori_loop(0, 4, body, x) ** 3)


def loop_in_branch_in_loop_by_hand(x: Any) -> Any:
    def inner(w: Any) -> Any:
        c = np.sum(w)
        for _ in range(3):
            c = np.sin(c) * np.sum(w) + c
        return c

    for _ in range(4):
        x = x - 0.1 * pb.grad(inner)(x) if np.sum(x) > 0 else x * 0.9 + 0.3
    return np.sum(x**3)


def many_kinds(x: Any) -> Any:
    layer = pb.checkpoint(lambda c, k: np.tanh(c * k) * c + pb.vmap(lambda u: np.sin(u * k))(c))
    rows = pb.scan(lambda c, k: (layer(c, k), np.sum(layer(c, 2 * k))), x, np.arange(1.0, 4.0))[1]
    turns = (x[2] * 4).astype(int)
    mapped = pb.map(lambda r: pb.cond(r > 0, np.sin, lambda q: q**2, r), x, batch_size=2)
    looped = pb.fori_loop(0, turns, lambda i, v: np.sin(v) + 0.1 * i, mapped, checkpoint=2)
    return np.sum(rows) + np.sum(pb.associative_scan(np.multiply, looped, reverse=True) ** 2)


def many_kinds_by_hand(x: Any) -> Any:
    def layer(c: Any, k: Any) -> Any:
        return np.tanh(c * k) * c + np.sin(c * k)

    total, c = 0.0, x
    for k in np.arange(1.0, 4.0):
        total = total + np.sum(layer(c, 2 * k))
        c = layer(c, k)
    v = np.stack([np.sin(r) if r > 0 else r**2 for r in x])
    for i in range((x[2] * 4).astype(int)):
        v = np.sin(v) + 0.1 * i
    return total + np.sum(np.cumprod(v[::-1]) ** 2)


PAIRS: dict[str, tuple[Function, Function]] = {
    "a gradient in a scan": (descent, descent_by_hand),
    "a Hessian in a while": (newton, newton_by_hand),
    "a gradient of a loop in a branch in a loop": (loop_in_branch_in_loop, loop_in_branch_in_loop_by_hand),
    "many kinds": (many_kinds, many_kinds_by_hand),
}


@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_of_both_orders_equal_those_of_python(name: str) -> None:
    ours, by_hand = PAIRS[name]
    np.testing.assert_allclose(pb.jit(ours)(X), by_hand(X), rtol=1e-12)
    np.testing.assert_allclose(pb.grad(ours)(X), pb.grad(by_hand)(X), rtol=1e-10, atol=1e-10)
    second = [pb.jvp(pb.grad(f), (X,), (X[::-1],))[1] for f in (ours, by_hand)]
    np.testing.assert_allclose(*second, rtol=1e-10, atol=1e-10)


def test_batches_and_hessians_of_many_kinds_of_loops() -> None:
    rows = np.stack([X, 0.8 * X])
    expected = [pb.grad(many_kinds_by_hand)(row) for row in rows]
    np.testing.assert_allclose(pb.vmap(pb.grad(many_kinds))(rows), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(pb.hessian(many_kinds)(X), pb.hessian(many_kinds_by_hand)(X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("loop", ["while", "scan"])
def test_gradients_through_carries_of_every_type(dtype: Any, loop: str) -> None:
    """Beside the active carry there are a bool, a small integer, a Python number and a wider float."""

    def run(z: Any) -> Any:
        def step(carry: Any) -> Any:
            x, flag, count, number, wide = carry
            return x * np.where(flag, z, z**2), ~flag, count + np.int8(1), number + 0.5, wide * 0.5

        start = (z, True, np.int8(0), 1, np.float64(2.0))
        if loop == "scan":
            x, flag, count, number, wide = pb.scan(lambda c, _: (step(c), None), start, None, 3)[0]
        else:
            x, flag, count, number, wide = pb.while_loop(lambda c: c[2] < 3, step, start)
        others = np.where(flag, 0, count) * (number * 2 - 4) * (wide * 4)
        return np.abs(x) ** 2 * others.astype(x.real.dtype)

    gradient = pb.grad(run)(dtype(0.7))  # of 3 |z**5|**2
    assert gradient.dtype == dtype
    rtol = {2: 1e-2, 4: 1e-5, 8: 1e-12}[np.finfo(dtype).dtype.itemsize]
    np.testing.assert_allclose(gradient, 30 * 0.7**9, rtol=rtol)
