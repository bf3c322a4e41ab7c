"""`numpy.linalg` as compositions of a few factorisations and solves, over leading batch axes."""

import operator
from typing import Any

import numpy as np
import numpy.linalg._linalg as numpy_linalg

from pullback.errors import ShapeError, UnsupportedError
from pullback.tracer.array import TracedValue, new_array
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, const, contents, finish
from pullback.tracer.functions.determinant import det
from pullback.tracer.functions.eigen import hermitian_of
from pullback.tracer.functions.matrices import adjoint, factor, linalg_dtype, matrices
from pullback.tracer.functions.norms import norm
from pullback.tracer.operands import broadcast, cast
from pullback.tracer.trace import active

# ------------------------------------------------------------------ solves


def solve(a: Any, b: Any) -> Any:
    x, y = matrices("solve", a), array(b)
    if y.ndim == 0:
        raise active().error(
            ShapeError, "np.linalg.solve: 0-dimensional array given. Array must be at least one-dimensional"
        )
    vector = y.ndim == 1
    right = y[:, None] if vector else y
    if right.shape[-2] != x.shape[-1]:
        raise active().error(
            ShapeError,
            f"np.linalg.solve: the matrices have {x.shape[-1]} columns, the right sides {right.shape[-2]} rows: shapes "
            f"{x.shape} and {y.shape}",
        )
    result = solve_matrices(x, right)
    return result[..., 0] if vector else result


def solve_matrices(x: TracedValue, right: Any) -> Any:
    """op solve with the batch axes broadcast against each other."""
    dtype = linalg_dtype(x, right)
    trace, (lhs, rhs) = contents(x, right)
    batch = np.broadcast_shapes(x.shape[:-2], right.shape[:-2])
    lhs = broadcast(trace, cast(trace, lhs, dtype), batch + x.shape[-2:])
    rhs = broadcast(trace, cast(trace, rhs, dtype), batch + right.shape[-2:])
    return new_array(trace, trace.apply("solve", lhs, rhs, trans="N"))


def inv(a: Any) -> Any:
    x = matrices("inv", a)
    return solve_matrices(x, const(np.eye(x.shape[-1], dtype=x.dtype)))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    x, y = array(a), array(b)
    if axes is not None:
        kept = [k for k in range(x.ndim) if k not in axes]
        x = np.transpose(x, kept + list(axes))
    shape = x.shape[-(x.ndim - y.ndim) :]
    size = int(np.prod(shape))
    if x.size != size**2:
        raise active().error(
            ShapeError, "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return np.reshape(solve(np.reshape(x, (size, size)), np.ravel(y)), shape)


def tensorinv(a: Any, ind: int = 2) -> Any:
    x = array(a)
    count = operator.index(ind)
    if count <= 0:
        raise ValueError("Invalid ind argument.")
    size = int(np.prod(x.shape[count:]))
    return np.reshape(inv(np.reshape(x, (size, -1))), x.shape[count:] + x.shape[:count])


# ------------------------------------------------------------------ factorisations


def slogdet(a: Any) -> Any:
    sign, logabs = factor("slogdet", matrices("slogdet", a))
    return numpy_linalg.SlogdetResult(sign, logabs)


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    (lower,) = factor("cholesky", hermitian_of(matrices("cholesky", a), not upper))
    return adjoint(lower) if upper else lower


def _svd_by_eigh(x: Any) -> tuple[Any, Any, Any]:
    """What NumPy does for hermitian=True: the eigenvalues by size, their signs with the right vectors."""
    w, v = factor("eigh", hermitian_of(x, True), lower=True)
    order = np.argsort(np.abs(w), axis=-1)[..., ::-1]
    w = np.take_along_axis(w, order, -1)
    u = np.take_along_axis(v, order[..., None, :], -1)
    return u, np.abs(w), adjoint(u * np.sign(w)[..., None, :])


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    x = matrices("svd", a, square=hermitian)
    u, s, vh = _svd_by_eigh(x) if hermitian else factor("svd", x)
    if not compute_uv:
        return s
    rows, columns = x.shape[-2:]
    if full_matrices and rows > columns:
        u = np.concatenate([u, _complement(x, "svd")], axis=-1)
    elif full_matrices and columns > rows:
        vh = np.concatenate([vh, adjoint(_complement(adjoint(x), "svd_adjoint"))], axis=-2)
    return numpy_linalg.SVDResult(u, s, vh)


def _complement(x: Any, by: str) -> Any:
    """The columns that make a factor square. They are any basis of their space; its other factor is 0 there."""
    if x.size == 0:
        columns = np.eye(x.shape[-2], dtype=x.dtype)[:, x.shape[-1] :]
        return const(np.broadcast_to(columns, x.shape[:-2] + columns.shape))
    return factor("complement", x, by=by)[0]


def svdvals(x: Any, /) -> Any:
    return svd(x, compute_uv=False)


def qr(a: Any, mode: str = "reduced") -> Any:
    x = matrices("qr", a, square=False)
    rows, columns = x.shape[-2:]
    if mode not in ("reduced", "r", "complete"):
        raise active().error(
            UnsupportedError,
            f"np.linalg.qr with mode={mode!r} is not followed; use mode='reduced', 'complete' or 'r'",
        )
    if rows >= columns:
        q, r = factor("qr", x)
    else:
        q, first = factor("qr", x[..., :rows])
        rest = np.matmul(adjoint(q), x[..., rows:])
        r = np.concatenate([first, rest], axis=-1)
    if mode == "r":
        return r
    if mode == "complete" and rows > columns:
        q = np.concatenate([q, _complement(x, "qr")], axis=-1)
        below = const(np.zeros((*r.shape[:-2], rows - columns, columns), r.dtype))
        r = np.concatenate([r, below], axis=-2)
    return numpy_linalg.QRResult(q, r)


# ------------------------------------------------------------------ by singular values


def _stopped(x: Any) -> Any:
    trace, (content,) = contents(x)
    return finish(trace.apply("stop_gradient", content))


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The value comes from the singular values; the derivative, where the rank is full, from the normal equations.

    Those are smooth also where singular values coincide.
    """
    x = matrices("pinv", a, square=hermitian)
    x = hermitian_of(x, True) if hermitian else x
    rows, columns = x.shape[-2:]
    if x.size == 0:
        return np.zeros_like(x, shape=(*x.shape[:-2], columns, rows))
    bound = rcond if rcond is not None else rtol
    if bound is None:
        bound = 1e-15 if rcond is None and rtol is None else max(rows, columns) * np.finfo(x.dtype).eps
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    large = s > np.expand_dims(array(bound), -1) * np.max(s, axis=-1, keepdims=True)
    scale = np.where(large, 1 / np.where(large, s, 1), 0).astype(s.dtype)
    value = np.matmul(adjoint(vh), scale[..., None] * adjoint(u))
    full = np.expand_dims(np.all(large, axis=-1), (-2, -1))
    smooth = _by_normal_equations(x, full)
    return np.where(full, _stopped(value) + (smooth - _stopped(smooth)), value)


def _by_normal_equations(x: TracedValue, full: Any) -> Any:
    """(A* A)^-1 A*, or A* (A A*)^-1 for wide matrices; an identity stands in where the rank is not full."""
    turned = adjoint(x)
    tall = x.shape[-2] >= x.shape[-1]
    gram = np.matmul(turned, x) if tall else np.matmul(x, turned)
    safe = np.where(full, gram, const(np.eye(gram.shape[-1], dtype=x.dtype)))
    return solve_matrices(safe, turned) if tall else adjoint(solve_matrices(adjoint(safe), x))


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    x = array(A)
    if x.ndim < 2:
        return np.any(x != 0).astype(np.int64)
    s = svd(x, compute_uv=False, hermitian=hermitian)
    if tol is None:
        relative = max(x.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else np.expand_dims(array(rtol), -1)
        bound = (np.max(s, axis=-1, keepdims=True) if s.size else s) * relative
    else:
        bound = np.expand_dims(array(tol), -1)
    return np.sum(s > bound, axis=-1)


def cond(x: Any, p: Any = None) -> Any:
    a = matrices("cond", x, square=False)
    if p in (None, 2, -2):
        s = svdvals(a)
        largest, smallest = np.max(s, axis=-1), np.min(s, axis=-1)  # equal ones share the derivative
        result = smallest / largest if p == -2 else largest / smallest
    else:
        result = norm(a, p, (-2, -1)) * norm(inv(a), p, (-2, -1))
    known = ~np.any(np.isnan(a), axis=(-2, -1))
    return np.where(np.isnan(result) & known, np.inf, result).astype(result.dtype, copy=False)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """By QR where the rank is full (a guarded decision), else by the pseudo-inverse."""
    x, y = matrices("lstsq", a, square=False), array(b)
    if x.ndim != 2 or y.ndim not in (1, 2):
        raise active().error(
            ShapeError, f"np.linalg.lstsq takes one matrix and one or more right sides, got {x.shape} and {y.shape}"
        )
    rows, columns = x.shape
    if y.shape[0] != rows:
        raise active().error(ShapeError, f"np.linalg.lstsq: Incompatible dimensions: {x.shape} and {y.shape}")
    dtype = linalg_dtype(x, y)
    x, right = x.astype(dtype, copy=False), (y[:, None] if y.ndim == 1 else y).astype(dtype, copy=False)
    s = svdvals(x)
    bound = (
        np.finfo(dtype).eps * max(rows, columns) if rcond is None else (np.finfo(dtype).eps if rcond == -1 else rcond)
    )
    rank = int(np.sum(s > bound * s[0])) if s.size else 0
    solution = _least_squares(x, right, rank, bound)
    away = right - np.matmul(x, solution)
    squares = np.sum(np.abs(away) ** 2, axis=0) if rank == columns < rows else const(np.zeros(0, s.dtype))
    return (solution[:, 0] if y.ndim == 1 else solution), squares, np.int32(rank), s


def _least_squares(x: Any, right: Any, rank: int, bound: Any) -> Any:
    rows, columns = x.shape
    if rank == columns:
        q, r = factor("qr", x)
        return _triangular(r, np.matmul(adjoint(q), right), "N")
    if rank == rows:
        q, r = factor("qr", adjoint(x))
        return np.matmul(q, _triangular(r, right, "C"))
    return np.matmul(pinv(x, bound), right)


def _triangular(r: Any, right: Any, trans: str) -> Any:
    trace, parts = contents(r, right)
    return new_array(trace, trace.apply("triangular_solve", *parts, lower=False, trans=trans))


FUNCTIONS: dict[Any, Entry] = {
    np.linalg.solve: Entry(solve),
    np.linalg.inv: Entry(inv),
    np.linalg.det: Entry(det),
    np.linalg.slogdet: Entry(slogdet),
    np.linalg.cholesky: Entry(cholesky),
    np.linalg.svd: Entry(svd),
    np.linalg.svdvals: Entry(svdvals),
    np.linalg.qr: Entry(qr),
    np.linalg.pinv: Entry(pinv),
    np.linalg.matrix_rank: Entry(matrix_rank),
    np.linalg.cond: Entry(cond),
    np.linalg.lstsq: Entry(lstsq),
    np.linalg.tensorsolve: Entry(tensorsolve),
    np.linalg.tensorinv: Entry(tensorinv),
}
