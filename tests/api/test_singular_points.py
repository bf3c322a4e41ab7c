"""Singular points and kinks of user-level functions: the documented values, in every mode of first and second order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from tests.api.interpreted import interpreted

INF = np.inf
FINITE = "finite"
ANY = "any"
ZEROS, SQUARE = np.zeros(3), np.zeros((2, 2))
PREFER = np.array([1.0, 10.0, 100.0])
WEIGHTED = np.array([True, True, False])
ENTROPY = np.array([[0, 0, 0], [0, 0.25, -0.25], [0, -0.25, 0.25]])

SWAPPED = np.zeros((2, 2, 2, 2))  # the second derivative of a determinant
SWAPPED[0, 0, 1, 1] = SWAPPED[1, 1, 0, 0] = 1
SWAPPED[0, 1, 1, 0] = SWAPPED[1, 0, 0, 1] = -1


def stable(x: Any) -> Any:
    largest = np.max(x)
    return np.log(np.sum(np.exp(x - largest))) + largest


def distances(x: Any) -> Any:
    return np.sum(np.linalg.norm(x[:, None] - x[None], axis=-1))


# name, function, argument, gradient of the sum, second derivative (an array, or whether it must be finite)
POINTS: list[tuple[str, Callable[..., Any], Any, Any, Any]] = [
    ("norm", np.linalg.norm, ZEROS, ZEROS, FINITE),
    ("norm of rows", lambda x: np.linalg.norm(x, axis=1), [[0.0, 0], [3, 4]], [[0, 0], [0.6, 0.8]], FINITE),
    ("norm 1", lambda x: np.linalg.norm(x, 1), ZEROS, ZEROS, FINITE),
    ("norm 1.5", lambda x: np.linalg.norm(x, 1.5), ZEROS, ZEROS, ANY),
    ("norm 3", lambda x: np.linalg.norm(x, 3), ZEROS, ZEROS, FINITE),
    ("norm inf", lambda x: np.linalg.norm(x, INF), ZEROS, ZEROS, FINITE),
    ("nuclear norm", lambda x: np.linalg.norm(x, "nuc"), SQUARE, SQUARE, FINITE),
    ("nuclear norm of rank 1", lambda x: np.linalg.norm(x, "nuc"), np.diag([2.0, 0]), np.diag([1.0, 0]), ANY),
    ("spectral norm", lambda x: np.linalg.norm(x, 2), SQUARE, SQUARE, FINITE),
    ("smallest singular value", lambda x: np.linalg.norm(x, -2), SQUARE, SQUARE, FINITE),
    ("cond", np.linalg.cond, np.eye(2), SQUARE, FINITE),
    ("distances", distances, [[0.0, 0], [3, 4]], [[-1.2, -1.6], [1.2, 1.6]], FINITE),
    ("std of equal numbers", np.std, np.full(3, 2.5), ZEROS, FINITE),
    ("std of some", lambda x: np.std(x, where=WEIGHTED), ZEROS, ZEROS, FINITE),
    ("nanstd", np.nanstd, [1.0, np.nan, 1.0], ZEROS, FINITE),
    ("hypot", lambda x: np.hypot(x[0], x[1]), [0.0, 0], [0.0, 0], FINITE),
    ("hypot on an axis", lambda x: np.hypot(x[0], x[1]), [3.0, 0], [1.0, 0], [[0, 0], [0, 1 / 3]]),
    ("arctan2", lambda x: np.arctan2(x[0], x[1]), [0.0, 0], [0.0, 0], FINITE),
    ("angle", lambda x: np.angle(x[0] + 1j * x[1]), [0.0, 0], [0.0, 0], FINITE),
    ("modulus", lambda x: np.abs(x[0] + 1j * x[1]), [0.0, 0], [0.0, 0], FINITE),
    ("abs", np.abs, 0.0, 0.0, 0.0),
    ("sqrt", np.sqrt, 0.0, INF, ANY),
    ("x**0", lambda x: x**0, 0.0, 0.0, 0.0),
    ("x**2.0 below 0", lambda x: x**2.0, -3.0, -6.0, 2.0),
    ("x**1.5", lambda x: x**1.5, 0.0, 0.0, INF),
    ("x**[0, 1, 2]", lambda x: x ** np.array([0.0, 1, 2]), ZEROS, [0.0, 1, 0], np.diag([0.0, 0, 2])),
    ("0**y", lambda y: 0.0**y, 2.0, 0.0, 0.0),
    ("x**y at (0, 2)", lambda x: x[0] ** x[1], [0.0, 2], [0.0, 0], [[2, 0], [0, 0]]),
    ("prod, one 0", np.prod, [0.0, 2, 3], [6.0, 0, 0], [[0, 3, 2], [3, 0, 0], [2, 0, 0]]),
    ("prod, two 0", np.prod, [0.0, 0, 3], ZEROS, [[0, 3, 0], [3, 0, 0], [0, 0, 0]]),
    ("prod of some", lambda x: np.prod(x, where=WEIGHTED), [0.0, 2, 3], [2.0, 0, 0], FINITE),
    ("nanprod", np.nanprod, [0.0, np.nan, 3], [3.0, 0, 0], FINITE),
    ("cumprod", np.cumprod, [2.0, 0, 3], [1.0, 8, 0], [[0, 4, 0], [4, 0, 2], [0, 2, 0]]),
    ("reduceat", lambda x: np.multiply.reduceat(x, [0, 1]), [0.0, 2, 3], [1.0, 3, 2], FINITE),
    ("max", np.max, [1.0, 3, 3], [0, 0.5, 0.5], np.zeros((3, 3))),
    ("ptp", np.ptp, [1.0, 1, 3], [-0.5, -0.5, 1], np.zeros((3, 3))),
    ("fmax of a NaN", lambda x: np.fmax(x[0], x[1]), [np.nan, 3], [0.0, 1], FINITE),
    ("nanmax", np.nanmax, [1.0, np.nan, 3], [0.0, 0, 1], FINITE),
    ("clip at a bound", lambda x: np.clip(x, 0, 1), 1.0, 1.0, 0.0),
    ("sort", lambda x: np.sort(x) * PREFER, [2.0, 1, 1], [100.0, 1, 10], np.zeros((3, 3))),
    ("median", np.median, [1.0, 1, 3], [0.0, 1, 0], np.zeros((3, 3))),
    ("logaddexp.reduce", np.logaddexp.reduce, [-INF, 0, 0], [0, 0.5, 0.5], ENTROPY),
    ("logaddexp.reduce of nothing", np.logaddexp.reduce, [-INF, -INF, -INF], ZEROS, np.zeros((3, 3))),
    ("logsumexp by hand", stable, [-INF, 0, 0], [0, 0.5, 0.5], ENTROPY),
    ("softplus", lambda x: np.log1p(np.exp(x)), -INF, 0.0, 0.0),
    ("sigmoid far below", lambda x: 1 / (1 + np.exp(-x)), -1000.0, 0.0, 0.0),
    ("sigmoid far above", lambda x: 1 / (1 + np.exp(-x)), 1000.0, 0.0, 0.0),
    ("tanh far out", np.tanh, INF, 0.0, 0.0),
    ("sinc", np.sinc, 0.0, 0.0, -(np.pi**2) / 3),
    ("sinc beside 0", np.sinc, 1e-8, -1e-8 * np.pi**2 / 3, -(np.pi**2) / 3),
    ("i0", np.i0, 0.0, 0.0, 0.5),
    ("copysign", lambda x: np.copysign(x, -1.0), 0.0, 0.0, 0.0),
    ("det of rank 1", np.linalg.det, [[1.0, 2], [2, 4]], [[4.0, -2], [-2, 1]], SWAPPED),
    ("det of zeros", np.linalg.det, SQUARE, SQUARE, SWAPPED),
    ("det of rank 2 of 4", np.linalg.det, np.diag([1.0, 2, 0, 0]), np.zeros((4, 4)), FINITE),
    ("dets", np.linalg.det, [SQUARE, np.eye(2)], [SQUARE, np.eye(2)], FINITE),
    ("equal eigenvalues", lambda x: np.linalg.eigvalsh(x) ** 2, np.eye(3), 2 * np.eye(3), FINITE),
    ("equal singular values", lambda x: np.linalg.svd(x)[1] ** 2, np.eye(3), 2 * np.eye(3), FINITE),
    ("0 times inf behind where", lambda x: np.where(x > 0, x * np.log(x), 0.0), 0.0, 0.0, 0.0),
    ("distance behind where", lambda x: np.where(x @ x > 0, np.sqrt(x @ x), 0.0), ZEROS, ZEROS, FINITE),
]  # fmt: skip


@pytest.mark.parametrize(("function", "at", "first", "second"), [p[1:] for p in POINTS], ids=[p[0] for p in POINTS])
def test_derivatives_at_a_singular_point(function: Callable[..., Any], at: Any, first: Any, second: Any) -> None:
    def total(x: Any) -> Any:
        return np.sum(function(x))

    x: Any = np.asarray(at, dtype=np.float64)
    gradient = pullback.grad(total)
    found = {
        "reverse": interpreted(gradient, x),
        "forward": interpreted(pullback.jacfwd(total), x),
        "batched": interpreted(pullback.vmap(gradient), np.stack([x, x]))[1],
        "compiled": gradient(x),
    }
    for mode, value in found.items():
        np.testing.assert_allclose(value, first, rtol=1e-12, atol=1e-12, err_msg=mode)
    if isinstance(second, str) and second == ANY:
        return
    bends = {
        "forward over reverse": interpreted(pullback.jacfwd(gradient), x),
        "reverse over reverse": interpreted(pullback.jacrev(gradient), x),
        "reverse over forward": interpreted(pullback.jacrev(pullback.jacfwd(total)), x),
        "forward over forward": interpreted(pullback.jacfwd(pullback.jacfwd(total)), x),
    }
    for mode, value in bends.items():
        if isinstance(second, str):
            assert np.isfinite(value).all(), mode
        else:
            np.testing.assert_allclose(value, second, rtol=1e-12, atol=1e-12, err_msg=mode)
