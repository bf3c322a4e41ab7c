"""Gradients of numpy.linalg against finite differences of plain NumPy, entry by entry."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from tests import reference

RNG = np.random.default_rng(5)
M, W = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
POSITIVE = M @ M.T + 4 * np.eye(4)
LOPSIDED = POSITIVE + np.triu(RNG.normal(size=(4, 4)), 1)  # which triangle is read shows in the value
BATCH = np.stack([POSITIVE, POSITIVE[::-1, ::-1]])

L = np.linalg


def hermitian(x: Any, y: Any) -> Any:
    return x + 1j * y + 5 * np.eye(4)


HERMITIAN: dict[str, Callable[..., Any]] = {
    "cholesky": lambda a: np.sum(W * L.cholesky(a)),
    "cholesky upper": lambda a: np.sum(W * L.cholesky(a, upper=True)),
    "eigh": lambda a: np.sum(W[0] * L.eigh(a)[0]) + np.sum(W * L.eigh(a)[1] ** 2),
    "eigh upper": lambda a: np.sum(W[0] * L.eigh(a, "U")[0]) + np.sum(W * L.eigh(a, "U")[1] ** 2),
    "eigvalsh": lambda a: np.sum(W[0] * L.eigvalsh(a)),
    "eigvalsh upper": lambda a: np.sum(W[0] * L.eigvalsh(a, UPLO="u")),
    "svd": lambda a: np.sum(W * L.svd(a - 5 * np.eye(4), hermitian=True)[2] ** 2),
    "pinv": lambda a: np.sum(W * L.pinv(a, hermitian=True)),
}


@pytest.mark.parametrize("name", HERMITIAN)
def test_what_reads_one_triangle_has_no_gradient_in_the_other(name: str) -> None:
    function = HERMITIAN[name]
    np.testing.assert_allclose(pullback.jit(function)(LOPSIDED), function(LOPSIDED), rtol=1e-12)
    found, wanted = pullback.grad(function)(LOPSIDED), reference.gradient(function, (LOPSIDED,))[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)
    unread = np.tril(found, -1) if name.endswith("upper") else np.triu(found, 1)
    assert not unread.any()


@pytest.mark.parametrize("upper", [False, True])
def test_complex_hermitian_functions_read_one_triangle_and_a_real_diagonal(upper: bool) -> None:
    uplo = "U" if upper else "L"
    for function in (
        lambda x, y: np.sum(W * np.abs(L.cholesky(hermitian(x, y), upper=upper)) ** 2),
        lambda x, y: np.sum(W * L.cholesky(hermitian(x, y), upper=upper).imag),
        lambda x, y: np.sum(W[0] * L.eigvalsh(hermitian(x, y), uplo)),
        lambda x, y: np.sum(W * np.abs(L.eigh(hermitian(x, y), uplo)[1]) ** 2),
    ):
        found = pullback.grad(function, argnums=(0, 1))(M * 0.3, W * 0.3)
        wanted = reference.gradient(function, (M * 0.3, W * 0.3), (0, 1))
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)
        assert not np.diagonal(found[1]).any()


def test_each_matrix_of_a_batch_reads_its_own_triangle() -> None:
    def function(a: Any) -> Any:
        return np.sum(W * L.cholesky(a)) + np.sum(W[0] * L.eigvalsh(a))

    wanted = reference.gradient(function, (BATCH,))[0]
    np.testing.assert_allclose(pullback.grad(function)(BATCH), wanted, rtol=1e-7, atol=1e-8)


def test_second_derivatives_agree_too() -> None:
    def function(a: Any) -> Any:
        return np.sum(W * L.cholesky(a)) + np.sum(W * L.eigh(a)[1] ** 2)

    direction = W * 0.5
    hessian = pullback.hessian(function)(LOPSIDED)
    found = np.einsum("ij,ijkl,kl", direction, hessian, direction)
    wanted = reference.second_derivative(function, (LOPSIDED,), (direction,))
    np.testing.assert_allclose(found, wanted.value, rtol=1e-6, atol=10 * wanted.error)


def test_an_unknown_triangle_is_refused() -> None:
    with pytest.raises(ValueError, match="UPLO argument must be 'L' or 'U'"):
        pullback.jit(lambda a: L.eigh(a, "X")[0])(POSITIVE)
