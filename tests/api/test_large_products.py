"""Products and factorisations by BLAS on our threads: their values, and the number of threads the BLAS is left with."""

import threading

import numpy as np
import pytest

import pullback
from pullback import driver

SHAPES = [(700, 600, 500), (20, 900, 2000), (1500, 700, 13), (611, 1000, 389)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("turned", ["nn", "tn", "nt"])
def test_a_large_product_in_any_layout_is_numpys(shape: tuple[int, int, int], dtype: type, turned: str) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    x = rng.standard_normal((k, m) if turned[0] == "t" else (m, k)).astype(dtype)
    y = rng.standard_normal((n, k) if turned[1] == "t" else (k, n)).astype(dtype)

    def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x.T if turned[0] == "t" else x) @ (y.T if turned[1] == "t" else y)

    wanted = product(x, y)
    tolerance = 1e-3 if dtype is np.float32 else 1e-10
    np.testing.assert_allclose(pullback.jit(product)(x, y), wanted, rtol=tolerance, atol=tolerance)


def test_batches_of_large_products_are_numpys() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((3, 300, 200)), rng.standard_normal((3, 200, 250))
    np.testing.assert_allclose(pullback.jit(np.matmul)(x, y), x @ y, rtol=1e-10, atol=1e-10)


def test_the_blas_has_as_many_threads_afterwards_as_before() -> None:
    blas = driver.runtime().blas
    if not blas.has_thread_control:
        pytest.skip("this BLAS cannot be asked for its threads")
    x = np.random.default_rng(2).standard_normal((800, 800))
    function = pullback.jit(lambda x: x @ x)
    function(x)
    before = blas.threads
    threads = [threading.Thread(target=lambda: [function(x) for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas.threads == before


FACTORISATIONS = {
    "solve": lambda x: np.linalg.solve(x, x[..., :3]),
    "inv": np.linalg.inv,
    "cholesky": lambda x: np.linalg.cholesky(x @ np.swapaxes(x, -1, -2)),
    "svd": lambda x: np.linalg.svd(x)[1],
    "eigvalsh": lambda x: np.linalg.eigvalsh(x + np.swapaxes(x, -1, -2)),
    "slogdet": lambda x: np.linalg.slogdet(x)[1],
    "qr": lambda x: np.linalg.qr(x)[1],
}


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_batches_of_large_factorisations_are_numpys_and_leave_the_blas_its_threads(name: str) -> None:
    blas = driver.runtime().blas
    before = blas.threads
    x = np.random.default_rng(3).standard_normal((5, 130, 130)) + 130 * np.eye(130)
    wanted = FACTORISATIONS[name](x)
    np.testing.assert_allclose(pullback.jit(FACTORISATIONS[name])(x), wanted, rtol=1e-9, atol=1e-9)
    assert blas.threads == before


def test_a_factorisation_that_fails_leaves_the_blas_its_threads() -> None:
    blas = driver.runtime().blas
    before = blas.threads
    x = np.ones((4, 60, 60))
    with pytest.raises(np.linalg.LinAlgError):
        pullback.jit(np.linalg.inv)(x)
    assert blas.threads == before
