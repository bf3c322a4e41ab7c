"""Strong zeros as users meet them: a construct leaves one element out, whose derivative is infinite or NaN.

Every construct with every function, in all modes of first and second order; interpreted, since lowering has its tests.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from tests.api.interpreted import interpreted

Elementwise = Callable[[Any], Any]
Construct = Callable[[Elementwise, Any], Any]

KEPT = np.array([True, False, True])
GOOD, OTHER = 0.6, 0.7

# name, function, a point where it or its derivative is no number
FUNCTIONS: list[tuple[str, Elementwise, float]] = [
    ("log", np.log, 0.0),
    ("reciprocal", lambda x: 1 / x, 0.0),
    ("x log x", lambda x: x * np.log(x), 0.0),
    ("overflow", lambda x: x * np.exp(x * x), 1e3),
    ("nan", lambda x: x * x, np.nan),
    ("hypot of sqrt", lambda x: np.hypot(np.sqrt(x), 1.0), 0.0),
    ("complex root", lambda x: np.sqrt(x + 0j).real, 0.0),
    ("modulus of a complex log", lambda x: np.abs(np.log(x + 0j)), 0.0),
    ("direction of a complex log", lambda x: np.sign(np.log(x + 1j * x)).real, 0.0),
    ("product with zeros", lambda x: np.prod(np.stack([np.log(x), np.sqrt(x), x]), axis=0), 0.0),
    ("running product", lambda x: np.cumprod(np.stack([np.log(x), np.sqrt(x), x]), axis=0)[2], 0.0),
    ("norm", lambda x: np.linalg.norm(np.stack([np.log(x), x]), axis=0), 0.0),
]


def assigned(f: Elementwise, x: Any) -> Any:
    y = f(x)
    y[~KEPT] = 0.0
    return np.sum(y)


def written(f: Elementwise, x: Any) -> Any:
    y = np.ones(3)
    np.exp(f(x) * 0.1, out=y, where=KEPT)
    return np.sum(y)


CONSTRUCTS: dict[str, Construct] = {
    "where": lambda f, x: np.sum(np.sin(np.where(KEPT, f(x), 0.0))),
    "a boolean mask": lambda f, x: np.mean(f(x)[KEPT]),
    "assignment": assigned,
    "a slice": lambda f, x: np.sum(f(x)[::2] ** 2),
    "out= and where=": written,
    "where= of a reduction": lambda f, x: np.std(f(x), where=KEPT) + np.prod(f(x), where=KEPT),
    "select": lambda f, x: np.sum(np.select([KEPT], [f(x)], 1.0)),
    "delete": lambda f, x: np.sum(np.delete(f(x), 1)),
}


@pytest.mark.parametrize(("function", "bad"), [row[1:] for row in FUNCTIONS], ids=[row[0] for row in FUNCTIONS])
@pytest.mark.parametrize("construct", CONSTRUCTS.values(), ids=CONSTRUCTS.keys())
def test_an_element_left_out_leaves_no_nan(construct: Construct, function: Elementwise, bad: float) -> None:
    def f(x: Any) -> Any:
        return construct(function, x)

    at, nearby = np.array([GOOD, bad, OTHER]), np.array([GOOD, GOOD, OTHER])
    gradient = pullback.grad(f)
    first, tame = interpreted(gradient, at), interpreted(gradient, nearby)
    np.testing.assert_allclose(first, np.where(KEPT, tame, 0.0), rtol=1e-12)
    np.testing.assert_allclose(interpreted(pullback.jacfwd(f), at), first, rtol=1e-12)
    np.testing.assert_allclose(interpreted(pullback.vmap(gradient), np.stack([at, nearby]))[0], first, rtol=1e-12)

    seconds = {
        "forward over reverse": interpreted(pullback.jacfwd(gradient), at),
        "reverse over reverse": interpreted(pullback.jacrev(gradient), at),
        "reverse over forward": interpreted(pullback.jacrev(pullback.jacfwd(f)), at),
    }
    wanted = interpreted(pullback.hessian(f), nearby) * np.outer(KEPT, KEPT)
    for what, found in seconds.items():
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12, err_msg=what)
