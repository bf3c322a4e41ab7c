"""Gradients of programs with factorisations and transforms: native code gives what the interpreter gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback.config import Options
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.types import DType, tensor_type
from pullback.passes.fuse import fuse
from pullback.passes.memory import plan
from pullback.passes.reverse import reverse
from tests.codegen.checks import build
from tests.native import compile_plan

Array = np.ndarray[Any, Any]
OPTIONS = Options()
F64, C128, F32 = (np.dtype(t) for t in (np.float64, np.complex128, np.float32))


# ------------------------------------------------------------------ programs


def product(f: Emitter, x: Expr, y: Expr) -> Expr:
    """Matrix product over shared leading axes."""
    axes = tuple(range(x.ndim - 2))
    return f.dot_general(x, y, contract=((x.ndim - 1,), (x.ndim - 2,)), batch=(axes, axes))


def adjoint(f: Emitter, x: Expr) -> Expr:
    n = x.ndim
    turned = f.permute(x, (*range(n - 2), n - 1, n - 2))
    return f.conj(turned) if x.type.is_complex else turned


def spread(f: Emitter, x: Expr) -> Expr:
    """Hermitian, positive definite and with eigenvalues apart."""
    n = x.shape[-1]
    steps = np.broadcast_to(np.diag(np.arange(2.0, n + 2.0)), x.shape).astype(x.dtype)
    return product(f, x, adjoint(f, x)) * 0.1 + f.constant(steps)


def size(f: Emitter, x: Expr) -> Expr:
    """A real number that all elements matter to."""
    parts = [f.real(x), f.imag(x)] if x.type.is_complex else [x]
    terms = [f.sum(f.sin(part) * part, axes=tuple(range(part.ndim))) for part in parts]
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def gaussian_likelihood(f: Emitter, x: Expr, y: Expr) -> Expr:
    covariance = spread(f, x)
    factor = f.cholesky(covariance)
    white = f.triangular_solve(factor, y, lower=True, trans="N")
    back = f.triangular_solve(factor, white, lower=True, trans="C")
    _, logarithm = f.ops_of("slogdet", covariance)
    return size(f, back) + f.sum(logarithm, axes=tuple(range(logarithm.ndim)))


def chained_solves(f: Emitter, x: Expr, y: Expr) -> Expr:
    a = x + spread(f, x)
    return size(f, f.solve(a, f.solve(a, y, trans="T"), trans="N"))


def spectral_function(f: Emitter, x: Expr, y: Expr) -> Expr:
    """V diag(exp(-w)) V**H y."""
    w, v = f.ops_of("eigh", spread(f, x), lower=True)
    scaled = product(f, adjoint(f, v), y)
    weights = f.astype(f.exp(-w), y.dtype)
    return size(f, product(f, v, scaled * f.broadcast_to(weights, y.shape, range(w.ndim))))


def shrunk_singular_values(f: Emitter, x: Expr, y: Expr) -> Expr:
    u, s, vh = f.ops_of("svd", x + spread(f, x))
    scaled = u * f.broadcast_to(f.astype(f.sqrt(s), u.dtype), u.shape, (*range(s.ndim - 1), u.ndim - 1))
    return size(f, product(f, product(f, scaled, vh), y))


def least_squares(f: Emitter, x: Expr, y: Expr) -> Expr:
    """R**-1 Q**H y."""
    q, r = f.ops_of("qr", x + spread(f, x))
    return size(f, f.triangular_solve(r, product(f, adjoint(f, q), y), lower=False, trans="N"))


def filtered(f: Emitter, x: Expr, y: Expr) -> Expr:
    """A product of spectra, taken back."""
    x, y = (z if z.type.is_complex else f.complex(z, f.zeros_like(z)) for z in (x, y))
    left = f.fft(f.concatenate(x, y, axis=x.ndim - 1), inverse=False)
    return size(f, f.fft(left * left, inverse=True)) * 0.01


PROGRAMS = (
    gaussian_likelihood,
    chained_solves,
    spectral_function,
    shrunk_singular_values,
    least_squares,
    filtered,
)


# ------------------------------------------------------------------ native and interpreter


def gradient(program: Callable[..., Expr], dtype: DType, n: int, batch: tuple[int, ...]) -> Function:
    types = [tensor_type(dtype, (*batch, n, n)), tensor_type(dtype, (*batch, n, 2))]
    return reverse(build(types, program, program.__name__), [0, 1], seed=True)


def operands(dtype: DType, n: int, batch: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(n)
    made = [rng.standard_normal((*batch, n, k)) for k in (n, 2)]
    if dtype.kind == "c":
        made = [x + 0.5j * rng.standard_normal(x.shape) for x in made]
    return [x.astype(dtype) for x in made]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize(
    ("dtype", "n", "batch"),
    [(F64, 3, ()), (F64, 9, ()), (F64, 5, (2,)), (F32, 4, ()), (C128, 3, (2,)), (F64, 24, ())],
    ids=str,
)
def test_gradients(program: Callable[..., Expr], dtype: DType, n: int, batch: tuple[int, ...]) -> None:
    function = gradient(program, dtype, n, batch)
    arguments = operands(dtype, n, batch)
    native = compile_plan(plan(fuse(function, OPTIONS), OPTIONS))
    for found, wanted in zip(native(*arguments), interpret(function, arguments), strict=True):
        assert found.dtype == wanted.dtype
        bound = 5000 * np.finfo(wanted.dtype).eps * max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_are_derivatives(program: Callable[..., Expr]) -> None:
    """Along a direction, against differences of native values."""
    arguments = operands(F64, 4, ())
    native = compile_plan(plan(fuse(gradient(program, F64, 4, ()), OPTIONS), OPTIONS))
    rng = np.random.default_rng(1)
    directions = [rng.standard_normal(x.shape) for x in arguments]
    _, *gradients = native(*arguments)
    slope = sum(float(np.sum(g * d)) for g, d in zip(gradients, directions, strict=True))

    def value(step: float) -> float:
        return float(native(*[x + step * d for x, d in zip(arguments, directions, strict=True)])[0])

    h = 1e-3
    difference = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)
    assert slope == pytest.approx(difference, rel=1e-6)
