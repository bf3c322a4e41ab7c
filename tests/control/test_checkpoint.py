"""checkpoint(f): the same numbers, and an inside that is computed again."""

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.config import Options
from pullback.driver import optimised, planned
from pullback.ir.graph import walk

X = np.linspace(-1.0, 1.0, 6)
W = np.random.default_rng(0).standard_normal((6, 6))


def layer(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = np.tanh(x @ w) * np.sin(x)
    if np.sum(x) > 0:
        x = x * 2
    return x


def loss(x: Any, w: Any) -> Any:
    for _ in range(4):
        x = layer(x, w)
    return np.sum(x**2)


def checkpointed(x: Any, w: Any) -> Any:
    part = pb.checkpoint(layer)
    for _ in range(4):
        x = part(x, w)
    return np.sum(x**2)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gradients_and_hessians_are_those_of_the_function(sign: float) -> None:
    for a, b in zip(
        pb.grad(loss, argnums=(0, 1))(sign * X, W), pb.grad(checkpointed, argnums=(0, 1))(sign * X, W), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(pb.hessian(loss)(sign * X, W), pb.hessian(checkpointed)(sign * X, W), rtol=1e-10)


def test_nested_checkpoints_run_in_batches_and_forwards() -> None:
    def nested(x: Any) -> Any:
        def outer(y: Any) -> Any:
            return pb.checkpoint(lambda z: np.sum(np.exp(np.sin(z)) * W))(y * 2) + y

        return np.sum(pb.checkpoint(outer)(x))

    rows = np.stack([X, 2 * X])
    np.testing.assert_allclose(pb.vmap(pb.grad(nested))(rows), [pb.grad(nested)(row) for row in rows], rtol=1e-12)
    np.testing.assert_allclose(pb.jvp(nested, (X,), (X,))[1], pb.grad(nested)(X) @ X, rtol=1e-12)


def test_what_a_checkpointed_function_writes_outside_itself_is_seen() -> None:
    def f(x: Any) -> Any:
        out = np.zeros(6)

        def write(k: int) -> None:
            out[k] = np.sin(x[k]) * x[0]

        for k in range(6):
            pb.checkpoint(write)(k)
        return np.sum(out**2)

    def plain(x: Any) -> Any:
        return np.sum((np.sin(x) * x[0]) ** 2)

    np.testing.assert_allclose(pb.grad(f)(X), pb.grad(plain)(X), rtol=1e-12)


def test_the_inside_is_computed_again_and_not_kept() -> None:
    program = pb.lower(pb.grad(checkpointed), X, W).function
    again = [op for op in walk(program.body) if op.name == "checkpoint" and op.attrs["again"]]
    assert len(again) == 4
    assert all(sum(inner.name == "tanh" for inner in walk(op.regions[0])) >= 3 for op in again)


def test_outside_of_a_transform_it_is_the_function() -> None:
    np.testing.assert_array_equal(pb.checkpoint(layer)(X, W), layer(X, W))
    assert pb.checkpoint(layer).__name__ == "layer"


def test_a_chain_of_layers_needs_less_memory() -> None:
    def deep(x: Any, part: Any) -> Any:
        for _ in range(6):
            x = part(x)
        return np.sum(x**2)

    def products(x: Any) -> Any:
        for _ in range(6):
            x = np.tanh(x @ W)
        return x

    def arena(part: Any) -> int:
        program = pb.lower(pb.grad(lambda x: deep(x, part)), np.ones((400, 6))).function
        return planned(optimised(program, Options()), Options()).arena_bytes

    assert 2 * arena(pb.checkpoint(products)) < arena(products)
