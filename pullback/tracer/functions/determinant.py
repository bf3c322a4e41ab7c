"""Determinants, whose derivative (the adjugate) must be exact for singular matrices too."""

from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.graph import Attrs
from pullback.tracer.array import new_array
from pullback.tracer.functions.common import array, const, contents, finish
from pullback.tracer.trace import Content, Trace, active, running


def det(a: Any) -> Any:
    """Small ones by minors; larger ones by an LU factorisation, or without division where that meets a zero pivot."""
    x = array(a)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise active().error(
            ShapeError, f"np.linalg.det: Last 2 dimensions of the array must be square, got shape {x.shape}"
        )
    if x.dtype == np.float16:
        raise active().error(TypeError, "array type float16 is unsupported in linalg")
    x = x.astype(np.float64 if x.dtype.kind in "biu" else x.dtype, copy=False)
    n = x.shape[-1]
    if n == 0:
        return np.ones_like(x, shape=x.shape[:-2])[()]
    return _by_minors(x, n) if n <= 4 else _by_factors(x)


def _by_minors(x: Any, n: int) -> Any:
    """Laplace's expansion; for 4 rows by pairs of complementary 2x2 minors."""
    at = [[x[..., i, j] for j in range(n)] for i in range(n)]
    if n == 1:
        return at[0][0]
    if n == 2:
        return at[0][0] * at[1][1] - at[0][1] * at[1][0]
    if n == 3:
        minors = [at[1][j] * at[2][k] - at[1][k] * at[2][j] for j, k in ((1, 2), (0, 2), (0, 1))]
        return at[0][0] * minors[0] - at[0][1] * minors[1] + at[0][2] * minors[2]
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    upper = [at[0][j] * at[1][k] - at[0][k] * at[1][j] for j, k in pairs]
    lower = [at[2][j] * at[3][k] - at[2][k] * at[3][j] for j, k in pairs]
    signs = (1, -1, 1, 1, -1, 1)
    total: Any = None
    for sign, u, w in zip(signs, upper, reversed(lower), strict=True):
        term = u * w if sign > 0 else -(u * w)
        total = term if total is None else total + term
    return total


def _by_factors(x: Any) -> Any:
    """An `if` on whether any pivot is zero, with the two ways to go on as its regions."""
    trace, (content,) = contents(x)
    if isinstance(content, np.ndarray):
        return const(np.linalg.det(content))[()]
    sign, _ = trace.apply_all("slogdet", (content,), {})
    zero = trace.apply("equal", sign, np.zeros(sign.type.shape, sign.type.dtype))  # type: ignore[union-attr]
    axes = tuple(range(x.ndim - 2))
    singular = trace.apply("any", zero, axes=axes) if axes else zero
    regions = tuple([_region(trace, content, way) for way in (_without_division, _from_logarithm)])
    op = trace.emit("if", [trace.lift(singular), content], Attrs(), regions)
    return finish(op.results[0])


def _region(outer: Trace, operand: Any, way: Any) -> Any:
    """One branch, traced on its own."""
    inner = Trace(outer.dispatch, parent=outer, name="det", ties=outer.ties)
    inner.place = outer.locator.here(3)
    with running(inner):
        param = inner.param(operand.type, "a", None)
        result: Content = contents(way(new_array(inner, param)))[1][0]
        value = inner.lift(result)
    return inner.builder.region([value])


def _from_logarithm(x: Any) -> Any:
    trace, (content,) = contents(x)
    sign, logabs = trace.apply_all("slogdet", (content,), {})
    return finish(sign) * np.exp(finish(logabs))


def _without_division(x: Any) -> Any:
    """Bird's algorithm: n - 1 products of matrices and no quotient, so exact derivatives of any order."""
    n = x.shape[-1]
    strict = const(np.triu(np.ones((n, n), bool), 1))
    on_diagonal = const(np.eye(n, dtype=bool))
    later = const(np.triu(np.ones((n, n)), 1).astype(x.dtype))
    current = x
    for _ in range(n - 1):
        diagonal = np.diagonal(current, axis1=-2, axis2=-1)
        tails = -np.matmul(later, diagonal[..., None])
        upper = np.where(strict, current, const(np.zeros((), x.dtype)))
        current = np.matmul(np.where(on_diagonal, tails, upper), x)
    first = current[..., 0, 0]
    return first if n % 2 else -first
