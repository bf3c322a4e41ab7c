"""Random programs of nested loops and branches have the values and derivatives of the same programs in plain Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.api.compiling import lower
from pullback.ir.interpret import interpret
from tests.control.random_loops import SIZE, Structured, Turns, arguments, loss, program

WANTED = (0, 1, 2, 3)
SHAPES: tuple[tuple[int, ...], ...] = ((), (SIZE,), (SIZE, SIZE), (4, SIZE))


def interpreted(function: Any, given: tuple[Any, ...]) -> list[Any]:
    """What the program traced for these arguments gives, without machine code."""
    return list(interpret(lower(function, *given).function, [np.asarray(a) for a in given]))


def flat(results: Any) -> list[Any]:
    return [part for result in results for part in (result if isinstance(result, tuple) else (result,))]


def assert_equal(found: Any, expected: Any) -> None:
    for x, y in zip(flat(found), flat(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * max(1.0, float(np.max(np.abs(y)))))


def direction(number: int) -> tuple[Any, ...]:
    return tuple([np.cos(np.arange(int(np.prod(shape))) + number).reshape(shape) for shape in SHAPES])


def along(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient in a fixed direction."""
    gradient = pb.grad(function, argnums=WANTED)
    return lambda *given: sum(np.sum(g * w) for g, w in zip(gradient(*given), direction(1), strict=True))


def pushed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative in a fixed direction, by forward mode."""
    return lambda *given: pb.jvp(lambda *inner: function(*inner, given[-1]), given[:-1], direction(2))[1]


@pytest.mark.parametrize("seed", range(300, 307))
def test_values_and_gradients(seed: int) -> None:
    statements, given = program(seed), arguments(seed)
    found = pb.value_and_grad(loss(statements, Structured()), argnums=WANTED)(*given)
    turns = loss(statements, Turns())
    np.testing.assert_allclose(found[0], turns(*given), rtol=1e-12)
    assert_equal(found, interpreted(pb.value_and_grad(turns, argnums=WANTED), given))


@pytest.mark.parametrize(("seed", "outer", "inner"), [
    (2, pb.grad, along), (310, pb.grad, pushed), (311, pushed, along), (312, pushed, pushed),
])  # fmt: skip
def test_second_derivatives(seed: int, outer: Any, inner: Any) -> None:
    statements, given = program(seed), arguments(seed)
    structured, turns = (inner(loss(statements, flow)) for flow in (Structured(), Turns()))
    if outer is pb.grad:
        found = pb.grad(structured, argnums=WANTED)(*given)
        assert_equal(found, interpreted(pb.grad(turns, argnums=WANTED), given))
    else:
        assert_equal([pb.jit(outer(structured))(*given)], interpreted(pb.jit(outer(turns)), given))


def test_batches_whose_rows_make_different_numbers_of_turns() -> None:
    statements, given = program(44), arguments(44)
    rows = [(*(np.asarray(a) * k for a in given[:-1]), count) for k, count in ((1.0, 4), (0.7, 0), (1.3, 2))]
    found = pb.vmap(pb.grad(loss(statements, Structured()), argnums=WANTED))(*map(np.stack, zip(*rows, strict=True)))
    for k, row in enumerate(rows):
        expected = interpreted(pb.grad(loss(statements, Turns()), argnums=WANTED), row)
        assert_equal([part[k] for part in found], expected)
