"""NumPy's BLAS and LAPACK are found by logical names and can be called."""

import ctypes

import numpy as np
import pytest

from pullback.runtime.blas import Blas

BLAS = Blas.find()
needs_blas = pytest.mark.skipif(not BLAS, reason="this NumPy has no BLAS that is known")


@needs_blas
def test_a_matrix_product_through_its_pointer_is_numpys() -> None:
    integer = ctypes.c_int64 if BLAS.int_bytes == 8 else ctypes.c_int32
    address = BLAS.address("cblas_dgemm")
    assert address
    order, number, pointer = ctypes.c_int, ctypes.c_double, ctypes.c_void_p
    sizes = (order, order, order, integer, integer, integer)
    gemm = ctypes.CFUNCTYPE(None, *sizes, number, pointer, integer, pointer, integer, number, pointer, integer)(address)
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(4, 5)), rng.normal(size=(5, 3)), np.zeros((4, 3))
    gemm(101, 111, 111, 4, 3, 5, 1.0, a.ctypes.data, 5, b.ctypes.data, 3, 0.0, c.ctypes.data, 3)
    np.testing.assert_allclose(c, a @ b, rtol=1e-14)


@needs_blas
def test_a_cholesky_factor_through_its_pointer_is_numpys() -> None:
    integer = ctypes.c_int64 if BLAS.int_bytes == 8 else ctypes.c_int32
    address = BLAS.address("lapack_dpotrf")
    assert address
    potrf = ctypes.CFUNCTYPE(None, ctypes.c_char_p, *[ctypes.c_void_p] * 4)(address)
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    size, info = integer(2), integer(9)
    factor = a.copy()
    potrf(b"U", ctypes.addressof(size), factor.ctypes.data, ctypes.addressof(size), ctypes.addressof(info))
    assert info.value == 0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a), rtol=1e-15)


@needs_blas
def test_symbols_are_those_that_are_there() -> None:
    found = BLAS.symbols(["cblas_dgemm", "cblas_sgemv", "lapack_dgesdd", "cblas_nothing", "lapack_nothing", "other"])
    assert set(found) == {"cblas_dgemm", "cblas_sgemv", "lapack_dgesdd"}
    assert len(set(found.values())) == 3


@needs_blas
def test_the_number_of_threads_can_be_set() -> None:
    before = BLAS.threads
    if before is None:
        assert not BLAS.set_threads(1)
        return
    assert BLAS.set_threads(1)
    assert BLAS.threads == 1
    BLAS.set_threads(before)
    assert BLAS.threads == before


def test_an_absent_library_has_no_symbols() -> None:
    absent = Blas(0)
    assert not absent
    assert absent.symbols(["cblas_dgemm"]) == {}
    assert absent.threads is None
    assert not absent.set_threads(2)
