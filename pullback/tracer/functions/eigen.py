"""Eigenvalues: of Hermitian matrices, of general ones, and as the roots of polynomials."""

from typing import Any

import numpy as np
import numpy.linalg._linalg as numpy_linalg

from pullback.errors import ConcretizationError
from pullback.tracer.array import TracedValue
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, const
from pullback.tracer.functions.matrices import adjoint, factor, matrices
from pullback.tracer.trace import active

# ------------------------------------------------------------------ Hermitian


def hermitian_of(x: Any, lower: bool) -> Any:
    """The Hermitian matrix of which NumPy reads the lower (or upper) triangle and the real part of the diagonal.

    What it does not read has gradient 0, and a read element off the diagonal stands for two.
    """
    n = x.shape[-1]
    rows, columns = np.indices((n, n))
    made: Any = np.where(const(rows >= columns if lower else rows <= columns), x, adjoint(x))
    return made if x.dtype.kind != "c" else np.where(const(rows == columns), x.real, made)


def _eigh(a: Any, name: str, UPLO: str) -> list[Any]:
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    lower = UPLO.upper() == "L"
    return factor("eigh", hermitian_of(matrices(name, a), lower), lower=lower)


def eigh(a: Any, UPLO: str = "L") -> Any:
    return numpy_linalg.EighResult(*_eigh(a, "eigh", UPLO))


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return _eigh(a, "eigvalsh", UPLO)[0]


# ------------------------------------------------------------------ general

ALWAYS_COMPLEX = np.linalg.eigvals(np.eye(1)).dtype.kind == "c"
"""Whether this NumPy gives complex eigenvalues of every matrix, as it does from 2.5 on."""


def eig(a: Any) -> Any:
    x = matrices("eig", a)
    if x.size == 0:
        return numpy_linalg.EigResult(*[const(part) for part in np.linalg.eig(np.empty(x.shape, x.dtype))])
    values, vectors = factor("eig", x)
    if _are_real("eig", x, values):
        values, vectors = values.real, vectors.real
    return numpy_linalg.EigResult(values, vectors)


def eigvals(a: Any) -> Any:
    x = matrices("eigvals", a)
    if x.size == 0:
        return const(np.linalg.eigvals(np.empty(x.shape, x.dtype)))
    return _eigvals(x, "eigvals")


def _eigvals(x: TracedValue, name: str) -> Any:
    (values,) = factor("eigvals", x)
    return values.real if _are_real(name, x, values) else values


def _are_real(name: str, x: TracedValue, values: Any) -> bool:
    """Of a real matrix, NumPy before 2.5 returns real eigenvalues where all of them are: a guarded decision. Roots of
    polynomials are real in every version."""
    if x.dtype.kind == "c" or (ALWAYS_COMPLEX and name != "roots"):
        return False
    try:
        return bool(np.all(values.imag == 0))
    except ConcretizationError:
        raise active().error(
            ConcretizationError,
            f"whether np.linalg.{name} of a real matrix is real depends on its numbers, which are not known here; give "
            f"example values, or write np.linalg.{name}(a.astype(complex)), whose result is always complex",
        ) from None


# ------------------------------------------------------------------ polynomials


def roots(p: Any) -> Any:
    """Eigenvalues of the companion matrix. How many leading and trailing coefficients are 0 is guarded."""
    c = np.atleast_1d(array(p))
    if c.ndim != 1:
        raise active().error(ValueError, "Input must be a rank-1 array.")
    (places,) = np.nonzero(c)
    if places.size == 0:
        return const(np.array([]))
    first, last = int(places[0]), int(places[-1])
    zeros = c.size - last - 1
    c = c[first : last + 1]
    c = c if c.dtype.kind in "fc" else c.astype(np.float64)
    if c.size == 1:
        return const(np.zeros(zeros))
    found = _eigvals(matrices("eigvals", _companion(c)), "roots")
    return np.concatenate([found, const(np.zeros(zeros, found.dtype))]) if zeros else found


def _companion(c: Any) -> Any:
    n = c.size - 1
    below = const(np.eye(n - 1, n, dtype=c.dtype))
    return np.concatenate([(-c[1:] / c[0])[None, :], below])


FUNCTIONS: dict[Any, Entry] = {
    np.linalg.eigh: Entry(eigh),
    np.linalg.eigvalsh: Entry(eigvalsh),
    np.linalg.eig: Entry(eig),
    np.linalg.eigvals: Entry(eigvals),
    np.roots: Entry(roots),
}
