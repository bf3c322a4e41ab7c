"""Random programs of views and writes: every array after every statement is NumPy's, and gradients are right."""

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.ir.interpret import interpret
from tests.tracer.inplace_programs import live, random_program, run, snapshots, starting_arrays
from tests.tracer.support import assert_equal, execute, traced

LENGTH = 8
SMOOTH = [seed for seed in range(1000, 1017) if seed != 1002]  # no kink where the programs start
DIRECTION = [np.random.default_rng(k).normal(size=x.shape) for k, x in enumerate(starting_arrays())]


@pytest.mark.parametrize("group", range(20))
def test_every_array_after_every_statement_is_numpys(group: int) -> None:
    for seed in range(5 * group, 5 * group + 5):
        statements = random_program(seed, LENGTH)
        with np.errstate(all="ignore"):
            wanted = snapshots(statements, starting_arrays())
        arguments = starting_arrays()
        program = traced(lambda *xs, statements=statements: snapshots(statements, xs), *arguments)
        try:
            assert_equal(execute(program, *arguments), wanted)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}\n" + "\n".join(statements)) from error
        assert_equal(arguments, starting_arrays())


def loss(statements: list[str]) -> Any:
    """A number that every array left by the statements takes part in."""

    def total(a: Any, b: Any, c: Any) -> Any:
        *_, names = run(statements, (a, b, c))
        return sum(np.sum(np.sin(x) * (k + 1.0)) for k, x in enumerate(live(names)))

    return total


def moved(function: Any, step: float) -> float:
    return float(function(*[x + step * d for x, d in zip(starting_arrays(), DIRECTION, strict=True)]))


def slope_of(function: Any) -> float | None:
    """The slope along `DIRECTION` by plain NumPy; None at a kink, where the two sides differ."""
    step = 1e-5
    here, after, before, near = (moved(function, h) for h in (0.0, step, -step, step / 2))
    right, left, closer = (after - here) / step, (here - before) / step, (near - here) / (step / 2)
    slope = (right + left) / 2
    is_smooth = max(abs(right - left), abs(right - closer)) < 1e-3 * max(1.0, abs(slope))
    return slope if is_smooth else None


def along(gradients: Any) -> float:
    return float(sum(np.sum(g * d) for g, d in zip(gradients, DIRECTION, strict=True)))


@pytest.mark.parametrize("seed", SMOOTH)
def test_gradients_agree_with_differences_and_with_the_interpreter(seed: int) -> None:
    statements = random_program(seed, LENGTH)
    function = loss(statements)
    with np.errstate(all="ignore"):
        slope = slope_of(function)
    assert slope is not None, "\n".join(statements)
    gradient = pb.grad(function, argnums=(0, 1, 2))
    found = along(gradient(*starting_arrays()))
    np.testing.assert_allclose(found, slope, 1e-5, 1e-5, err_msg="\n".join(statements))
    staged = pb.lower(gradient, *starting_arrays())
    results = interpret(staged.function, [*starting_arrays(), *[extra.source for extra in staged.extras]])
    np.testing.assert_allclose(along(results[-3:]), found, 1e-10, 1e-10)
