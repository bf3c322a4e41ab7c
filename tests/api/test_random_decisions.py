"""Random functions full of Python decisions: right for any arguments in any order, special numbers among them."""

import random
from typing import Any

import numpy as np
import pytest

import pullback as pb
from tests.api.random_decisions import SPECIAL, Dual, dual, random_function

SEEDS = range(8)


def outcome(f: Any, *args: Any) -> Any:
    """The result, or the class of the built-in error that is raised in its place."""
    try:
        return f(*args)
    except (ValueError, OverflowError) as error:
        return next(kind for kind in (OverflowError, ValueError) if isinstance(error, kind))


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, type) or isinstance(found, type):
        return found is expected
    return bool(np.isclose(float(found), float(expected), rtol=1e-11, atol=1e-13, equal_nan=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_values_and_slopes_in_any_order_of_calls(seed: int) -> None:
    f, source = random_function(seed)
    rng = random.Random(seed)
    pool = [(rng.uniform(-4, 4), rng.uniform(-4, 4), rng.randrange(-2, 7)) for _ in range(10)]
    pool += [(rng.choice(SPECIAL), rng.choice(SPECIAL), rng.randrange(0, 5)) for _ in range(6)]
    value, slope = pb.jit(f), pb.value_and_grad(f)
    for _ in range(60):
        a, b, n = rng.choice(pool)
        expected = outcome(f, Dual(a, 1.0), Dual(b), n)
        plain = expected if isinstance(expected, type) else dual(expected).value
        assert same(outcome(value, a, b, n), plain), (source, a, b, n)
        if abs(a) + abs(b) < 100.0 and not isinstance(expected, type):
            found = slope(a, b, n)
            assert same(found[0], plain), (source, a, b, n)
            if a not in SPECIAL and b not in SPECIAL:  # there are kinks
                assert same(found[1], dual(expected).slope), (source, a, b, n)
