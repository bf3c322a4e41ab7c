"""Eigenvalues and eigenvectors, of Hermitian and of general matrices."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op
from pullback.ir.opdef import Array, Custom, RunRegion
from pullback.ir.ops import matrices as mat
from pullback.ir.ops.matrices import MaybeExprs
from pullback.ir.types import TensorType, complex_dtype

# ------------------------------------------------------------------ eigh


def _eigh_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (w, v), (ct_w, ct_v) = outs, cts
    inner = None
    if ct_v is not None:
        inner = mat.gap(f, w, v) * mat.mm(f, mat.h(f, v), mat.conj(f, ct_v))
    if ct_w is not None:
        diagonal = mat.as_diagonal(f, ct_w, v)
        inner = diagonal if inner is None else inner + diagonal
    if inner is None:
        return (None,)
    g = mat.mm(f, mat.mm(f, v, inner), mat.h(f, v))
    return (mat.conj(f, (g + mat.h(f, g)) * 0.5),)


def _eigh_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (w, v), (tan,) = outs, tans
    if tan is None:
        return None, None
    inner = mat.mm(f, mat.mm(f, mat.h(f, v), (tan + mat.h(f, tan)) * 0.5), v)
    return mat.real_part(f, mat.diagonal(f, inner)), mat.mm(f, v, mat.gap(f, w, v) * inner)


def _eigh_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    triangle: Literal["L", "U"] = "L" if op.attrs["lower"] else "U"
    return mat.numeric("eigh", op, lambda: tuple(np.linalg.eigh(args[0], triangle)))


EIGH = mat.record(
    "eigh",
    1,
    {"lower": "bool"},
    mat.matrix_infer("eigh", lambda a: (mat.tensor_real(a).with_shape(a.shape[:-1]), a)),
    _eigh_evaluate,
    Custom(_eigh_vjp, _eigh_jvp),
    "Eigenvalues, increasing, and orthonormal eigenvectors (columns) of a Hermitian matrix, of which LAPACK reads the "
    "`lower` or the upper triangle (its choice of signs differs). Between equal eigenvalues the derivative of the "
    "vectors is taken as 0: finite, and right for functions of the eigenvalues, to first order; what mixes the vectors "
    "of equal ones is left out. The derivative of their phases is taken as 0 too.",
)


# ------------------------------------------------------------------ general matrices


def _as_complex(f: Emitter, x: Expr) -> Expr:
    return f.astype(x, complex_dtype(x.dtype))


def _as_operand(f: Emitter, ct: Expr, a: Expr) -> Expr:
    """The cotangent of a matrix that was taken as complex."""
    return ct if a.type.is_complex else f.real(ct)


def _in_eigenbasis(f: Emitter, v: Expr, tan: Expr) -> Expr:
    """V**-1 dA V."""
    return f.solve(v, mat.mm(f, _as_complex(f, tan), v), trans="N")


def _from_eigenbasis(f: Emitter, v: Expr, ct: Expr) -> Expr:
    """The transpose of `_in_eigenbasis`."""
    return f.solve(v, mat.mm(f, ct, mat.t(f, v)), trans="T")


def _anchor(f: Emitter, v: Expr) -> tuple[Expr, Expr]:
    """Where each vector has its largest element, as a mask, and that element, which is real."""
    n = v.ndim
    place = f.argmax(f.abs(v), axis=n - 2)
    mask = f.arange_like(v.shape, n - 2).eq(mat.columns(f, place, v))
    return mask, f.sum(f.real(mat.where(f, mask, v)), axes=(n - 2,))


def _over_rows(f: Emitter, x: Expr) -> Expr:
    return f.sum(x, axes=(x.ndim - 2,))


def _i_times(f: Emitter, x: Expr) -> Expr:
    return f.complex(f.zeros_like(x), x)


def _vectors_tangent(f: Emitter, w: Expr, v: Expr, basis: Expr) -> Expr:
    """dV = M + V D with M = V (V**-1 dA V / gaps); the diagonal D keeps each vector at length 1 and its largest
    element real."""
    moved = mat.mm(f, v, mat.gap(f, w, v) * basis)
    mask, anchor = _anchor(f, v)
    growth = _over_rows(f, f.real(mat.conj(f, v) * moved))
    turn = _over_rows(f, f.imag(mat.where(f, mask, moved))) / anchor
    return moved - v * mat.columns(f, f.complex(growth, turn), v)


def _vectors_cotangent(f: Emitter, w: Expr, v: Expr, ct: Expr) -> Expr:
    """The transpose of `_vectors_tangent`."""
    mask, anchor = _anchor(f, v)
    along = _over_rows(f, ct * v)
    growth = mat.conj(f, v) * mat.columns(f, f.astype(f.real(along), v.dtype), v)
    turn = mat.where(f, mask, mat.columns(f, _i_times(f, f.imag(along) / anchor), v))
    return mat.gap(f, w, v) * mat.mm(f, mat.t(f, v), ct - growth - turn)


def _eig_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (a,), (w, v), (ct_w, ct_v) = args, outs, cts
    inner = None if ct_w is None else mat.as_diagonal(f, ct_w, v)
    if ct_v is not None:
        part = _vectors_cotangent(f, w, v, ct_v)
        inner = part if inner is None else inner + part
    return (None if inner is None else _as_operand(f, _from_eigenbasis(f, v, inner), a),)


def _eig_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (w, v), (tan,) = outs, tans
    if tan is None:
        return None, None
    basis = _in_eigenbasis(f, v, tan)
    return mat.diagonal(f, basis), _vectors_tangent(f, w, v, basis)


def _eig_types(a: TensorType) -> tuple[TensorType, ...]:
    made = a.with_dtype(complex_dtype(a.dtype))
    return made.with_shape(a.shape[:-1]), made


EIG = mat.record(
    "eig",
    1,
    {},
    mat.matrix_infer("eig", _eig_types),
    lambda op, args, run: mat.numeric("eig", op, lambda: tuple(np.linalg.eig(args[0]))),
    Custom(_eig_vjp, _eig_jvp, singular=True),
    "Eigenvalues and eigenvectors (columns) of a square matrix, both complex. Each vector has length 1 and a real "
    "largest element. Between equal eigenvalues the derivative of the vectors is taken as 0; matrices without a basis "
    "of eigenvectors have no derivative.",
)


def _eigvals_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (a,), (ct,) = args, cts
    if ct is None:
        return (None,)
    _, v = f.ops_of("eig", a)
    return (_as_operand(f, _from_eigenbasis(f, v, mat.as_diagonal(f, ct, v)), a),)


def _eigvals_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (a,), (tan,) = args, tans
    if tan is None:
        return (None,)
    _, v = f.ops_of("eig", a)
    return (mat.diagonal(f, _in_eigenbasis(f, v, tan)),)


EIGVALS = mat.record(
    "eigvals",
    1,
    {},
    mat.matrix_infer("eigvals", lambda a: _eig_types(a)[:1]),
    lambda op, args, run: mat.numeric("eigvals", op, lambda: (np.linalg.eigvals(args[0]),)),
    Custom(_eigvals_vjp, _eigvals_jvp, singular=True),
    "The eigenvalues of a square matrix, complex, in LAPACK's order.",
)

EIGEN = (EIGH, EIG, EIGVALS)
