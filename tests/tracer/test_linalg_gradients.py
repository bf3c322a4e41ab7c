"""Gradients of numpy.linalg against finite differences of plain NumPy, entry by entry."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.errors import ConcretizationError
from pullback.tracer.entry import describe, trace
from pullback.tracer.functions.eigen import ALWAYS_COMPLEX
from pullback.tracer.tree import flatten
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


# ------------------------------------------------------------------ general eigenvalues

SPREAD = np.diag([1.0, 2.5, 4.0, 6.0]) + 0.3 * M  # real eigenvalues
TURNING = M + np.array([[0, 3, 0, 0], [-3, 0, 0, 0], [0, 0, 0, 1], [0, 0, -1, 0.0]])  # conjugate pairs
V = RNG.normal(size=(4, 4))

GENERAL: dict[str, Callable[..., Any]] = {
    "eigvals": lambda a: np.sum(W[0] * np.abs(L.eigvals(a)) ** 2) + np.sum(W[1] * L.eigvals(a).imag),
    "eig values": lambda a: np.sum(W[0] * L.eig(a)[0].real) + np.sum(W[1] * L.eig(a)[0].imag),
    "eig vectors": lambda a: np.sum(W * L.eig(a)[1].real) + np.sum(V * L.eig(a).eigenvectors.imag),
    "spectral radius": lambda a: np.max(np.abs(L.eigvals(a))),
    "exponential": lambda a: np.sum(W * ((L.eig(a)[1] * np.exp(L.eig(a)[0])) @ L.inv(L.eig(a)[1])).real),
    "roots": lambda a: np.sum(W[0, :3] * np.roots(a[0]).real) + np.sum(np.abs(np.roots(a[1])) ** 2),
    "poly": lambda a: np.sum(np.arange(5.0) * np.poly(a)),
}


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("matrix", [SPREAD, TURNING], ids=["real", "pairs"])
def test_gradients_through_eigenvalues_and_vectors_agree(name: str, matrix: Any) -> None:
    function = GENERAL[name]
    np.testing.assert_allclose(pullback.jit(function)(matrix), function(matrix), rtol=1e-11)
    wanted = reference.gradient(function, (matrix,))[0]
    np.testing.assert_allclose(pullback.grad(function)(matrix), wanted, rtol=1e-6, atol=1e-7)


def test_whether_eigenvalues_are_real_decides_the_dtype_at_each_call() -> None:
    function = pullback.jit(L.eigvals)
    for matrix in (SPREAD, TURNING, SPREAD):
        found, wanted = function(matrix), L.eigvals(matrix)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.skipif(ALWAYS_COMPLEX, reason="this NumPy gives complex eigenvalues of every matrix")
def test_without_numbers_the_dtype_of_eigenvalues_must_be_asked_for() -> None:
    leaves, tree = flatten(((M,), {}))
    with pytest.raises(ConcretizationError, match=r"(?s)eigvals\(a\.astype\(complex\)\).*test_linalg_gradients"):
        trace(L.eigvals, tree, [describe(leaf) for leaf in leaves])
    trace(lambda a: L.eig(a.astype(complex))[0], tree, [describe(leaf) for leaf in leaves])


def test_gradients_of_complex_matrices_agree() -> None:
    def function(x: Any, y: Any) -> Any:
        w, v = L.eig(x + 1j * y)
        return np.sum(W[0] * w.real + W[1] * w.imag) + np.sum(W * v.real + V * v.imag)

    found = pullback.grad(function, argnums=(0, 1))(M, W)
    np.testing.assert_allclose(found, reference.gradient(function, (M, W), (0, 1)), rtol=1e-6, atol=1e-7)


def test_equal_eigenvalues_give_finite_gradients_of_smooth_functions() -> None:
    gradient = pullback.grad(lambda a: np.sum(L.eigvals(a).real))(np.eye(3))
    np.testing.assert_allclose(gradient, np.eye(3), atol=1e-12)


def test_a_matrix_that_is_not_finite_fails_as_in_numpy() -> None:
    function = pullback.jit(lambda a: L.eigvals(a.astype(complex)))
    function(M)
    with pytest.raises(L.LinAlgError):
        function(np.full((4, 4), np.nan))


# ------------------------------------------------------------------ square orthogonal factors

TALL, W5, W55 = RNG.normal(size=(5, 2)), RNG.normal(size=(5, 2)), RNG.normal(size=(5, 5))


def projector(basis: Any) -> Any:
    return basis @ basis.T


COMPLETE: dict[str, Callable[..., Any]] = {
    "singular values": lambda a: np.sum(L.svd(a)[1] * np.array([1.0, 3.0])),
    "thin part of U": lambda a: np.sum(W5 * L.svd(a)[0][:, :2] ** 2),
    "all of Q and R": lambda a: np.sum(W5 * L.qr(a, "complete")[0][:, :2]) + np.sum(L.qr(a, "complete")[1] ** 3),
    "projector": lambda a: np.sum(W55 * projector(L.svd(a)[0][:, 2:])),
    "projector by two calls": lambda a: np.sum(W55 * (L.svd(a)[0][:, 2:] @ L.svd(a)[0][:, 2:].T)),
    "projector of qr": lambda a: np.sum(W55 * projector(L.qr(a, "complete")[0][:, 2:])),
    "projector of the adjoint": lambda a: np.sum(W55 * projector(L.svd(a.T)[2][2:].T)),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_functions_of_square_factors_that_do_not_depend_on_the_basis_have_gradients(name: str) -> None:
    function = COMPLETE[name]
    np.testing.assert_allclose(pullback.jit(function)(TALL), function(TALL), rtol=1e-11)
    wanted = reference.gradient(function, (TALL,))[0]
    np.testing.assert_allclose(pullback.grad(function)(TALL), wanted, rtol=1e-6, atol=1e-8)


def test_second_derivatives_of_a_projector_agree() -> None:
    function, direction = COMPLETE["projector"], W5
    found = np.einsum("ij,ijkl,kl", direction, pullback.hessian(function)(TALL), direction)
    wanted = reference.second_derivative(function, (TALL,), (direction,))
    np.testing.assert_allclose(found, wanted.value, rtol=1e-6, atol=10 * wanted.error)


@pytest.mark.parametrize("function", [lambda a: L.svd(a)[0][0, 3], lambda a: L.qr(a, "complete")[0][0, 3]])
def test_a_gradient_that_depends_on_an_arbitrary_basis_is_an_error(function: Any) -> None:
    gradient = pullback.grad(function)
    with pytest.raises(L.LinAlgError, match=r"(?s)full_matrices=False or mode='reduced'.*test_linalg_gradients"):
        gradient(TALL)
