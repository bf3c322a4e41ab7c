"""Factorisations and solves, over any leading batch axes. NumPy's linalg functions are compositions of these.

Derivatives are stated for the gradient that pairs with tangents conjugated (`g`), which is how the formulas are
published; `matrices.conj` turns cotangents, which pair without conjugation, into that and back. For real matrices it
does nothing.
"""

from collections.abc import Sequence

import numpy as np

from pullback.errors import ShapeError
from pullback.ir import failures
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import Array, Custom, Infer, RunRegion, Types
from pullback.ir.ops import matrices as mat
from pullback.ir.ops.common import check_arity, words
from pullback.ir.ops.eigen import EIGEN
from pullback.ir.ops.matrices import MaybeExprs
from pullback.ir.types import TensorType

# ------------------------------------------------------------------ cholesky


def _cholesky_g(f: Emitter, factor: Expr, g: Expr) -> Expr:
    """L**-H Phi(L**H g) L**-1, made Hermitian."""
    inner = mat.lower_half(f, mat.mm(f, mat.h(f, factor), mat.tril(f, g)))
    left = f.triangular_solve(factor, inner, lower=True, trans="C")
    both = mat.h(f, f.triangular_solve(factor, mat.h(f, left), lower=True, trans="C"))
    return (both + mat.h(f, both)) * 0.5


def _cholesky_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (ct,) = cts
    return (None if ct is None else mat.conj(f, _cholesky_g(f, outs[0], mat.conj(f, ct))),)


def _cholesky_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (tan,), (factor,) = tans, outs
    if tan is None:
        return (None,)
    hermitian = (tan + mat.h(f, tan)) * 0.5
    left = f.triangular_solve(factor, hermitian, lower=True, trans="N")
    both = mat.h(f, f.triangular_solve(factor, mat.h(f, left), lower=True, trans="N"))
    return (mat.mm(f, factor, mat.lower_half(f, both)),)


CHOLESKY = mat.record(
    "cholesky",
    1,
    {},
    mat.matrix_infer("cholesky", lambda a: (a,)),
    lambda op, args, run: mat.numeric("cholesky", op, lambda: (np.linalg.cholesky(args[0]),)),
    Custom(_cholesky_vjp, _cholesky_jvp),
    "Lower factor L of a Hermitian positive definite matrix, A = L L**H. The derivative is that of Hermitian matrices.",
)


# ------------------------------------------------------------------ solves


def _solve_infer(name: str) -> Infer:
    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
        check_arity(name, types, 2)
        mat.check_dtype(name, types)
        a, b = types
        if a.ndim < 2 or a.ndim != b.ndim or a.shape[-1] != a.shape[-2] or a.shape[:-1] != b.shape[:-1]:
            raise ShapeError(f"{name} needs square matrices and right sides of as many rows, got {words(types)}")
        return (b,)

    return infer


def _orient(a: Array, trans: str) -> Array:
    turned = a if trans == "N" else np.swapaxes(a, -1, -2)
    return turned.conj() if trans == "C" else turned


def _opposite(trans: str) -> str:
    """The transpose of op(A)**-1, without conjugation."""
    return {"N": "T", "T": "N"}[trans]


def _transposed_solve(f: Emitter, op: Op, a: Expr, ct: Expr) -> Expr:
    """op(A)**-T ct."""
    trans = op.attrs["trans"]
    if trans == "C":
        return mat.conj(f, f.op(op.name, a, mat.conj(f, ct), **{**op.attrs, "trans": "N"}))
    return f.op(op.name, a, ct, **{**op.attrs, "trans": _opposite(trans)})


def _orient_ct(f: Emitter, op: Op, ct: Expr) -> Expr:
    """The cotangent of op(A) as one of A."""
    trans = op.attrs["trans"]
    turned = ct if trans == "N" else mat.t(f, ct)
    if trans == "C":
        turned = mat.conj(f, turned)
    return _mask(f, op, turned)


def _mask(f: Emitter, op: Op, x: Expr) -> Expr:
    """A triangular solve reads one triangle only."""
    if "lower" not in op.attrs:
        return x
    return mat.tril(f, x) if op.attrs["lower"] else mat.t(f, mat.tril(f, mat.t(f, x)))


def _solve_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (a, _), (x,), (ct,) = args, outs, cts
    if ct is None:
        return None, None
    ct_b = _transposed_solve(f, op, a, ct)
    return _orient_ct(f, op, -mat.mm(f, ct_b, mat.t(f, x))), ct_b


def _solve_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (a, _), (x,), (tan_a, tan_b) = args, outs, tans
    right = tan_b
    if tan_a is not None:
        turned = _mask(f, op, tan_a)
        if op.attrs["trans"] != "N":
            turned = mat.t(f, turned) if op.attrs["trans"] == "T" else mat.h(f, turned)
        moved = -mat.mm(f, turned, x)
        right = moved if right is None else right + moved
    return (None if right is None else f.op(op.name, a, right, **op.attrs),)


SOLVE = mat.record(
    "solve",
    2,
    {"trans": "str"},
    _solve_infer("solve"),
    lambda op, args, run: mat.numeric(
        "solve", op, lambda: (np.linalg.solve(_orient(args[0], op.attrs["trans"]), args[1]),)
    ),
    Custom(_solve_vjp, _solve_jvp),
    "X with op(A) X = B by an LU factorisation; op is A, its transpose (T) or its conjugate transpose (C).",
)


def _triangle(a: Array, lower: bool) -> Array:
    return np.tril(a) if lower else np.triu(a)


TRIANGULAR_SOLVE = mat.record(
    "triangular_solve",
    2,
    {"lower": "bool", "trans": "str"},
    _solve_infer("triangular_solve"),
    lambda op, args, run: mat.numeric(
        "triangular_solve",
        op,
        lambda: (np.linalg.solve(_orient(_triangle(args[0], op.attrs["lower"]), op.attrs["trans"]), args[1]),),
    ),
    Custom(_solve_vjp, _solve_jvp),
    "X with op(A) X = B for triangular A; the other triangle is not read.",
)


# ------------------------------------------------------------------ determinants


def _inverse_transpose(f: Emitter, a: Expr) -> Expr:
    return f.solve(a, mat.eye_like(f, a), trans="T")


def _slogdet_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    """log|det| has the gradient A**-T; the sign of a complex determinant turns with its imaginary part."""
    (a,), (sign, _), (ct_sign, ct_log) = args, outs, cts
    weight = None if ct_log is None else f.astype(ct_log, a.dtype)
    if a.type.is_complex and ct_sign is not None:  # d sign = i sign Im(tr(A**-1 dA))
        turn = ct_sign * sign * f.full_like(sign, 1j)
        part = f.complex(f.zeros_like(f.real(turn)), -f.real(turn))
        weight = part if weight is None else weight + part
    if weight is None:
        return (None,)
    inverse = _inverse_transpose(f, a)
    return (inverse * f.broadcast_to(weight, a.shape, range(a.ndim - 2)),)


def _slogdet_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (a,), (sign, _), (tan,) = args, outs, tans
    if tan is None:
        return None, None
    n = a.ndim
    trace = f.sum(_inverse_transpose(f, a) * tan, axes=(n - 2, n - 1))
    if not a.type.is_complex:
        return None, trace
    turn = f.complex(f.zeros_like(f.real(trace)), f.imag(trace))
    return sign * turn, f.real(trace)


SLOGDET = mat.record(
    "slogdet",
    1,
    {},
    mat.matrix_infer(
        "slogdet", lambda a: (a.with_shape(a.shape[:-2]), mat.tensor_real(a).with_shape(a.shape[:-2]))
    ),
    lambda op, args, run: mat.numeric("slogdet", op, lambda: tuple(np.linalg.slogdet(args[0]))),
    Custom(_slogdet_vjp, _slogdet_jvp, singular=True),
    "Sign and logarithm of the absolute determinant, by an LU factorisation.",
)


# ------------------------------------------------------------------ svd (thin)


def _svd_types(a: TensorType) -> tuple[TensorType, ...]:
    m, n = a.shape[-2:]
    k, lead = min(m, n), a.shape[:-2]
    return a.with_shape((*lead, m, k)), mat.tensor_real(a).with_shape((*lead, k)), a.with_shape((*lead, k, n))


def _svd_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    return mat.numeric("svd", op, lambda: tuple(np.linalg.svd(args[0], full_matrices=False)))


def _skew(f: Emitter, x: Expr) -> Expr:
    return x - mat.h(f, x)


def _svd_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    u, s, vh = outs
    ct_u, ct_s, ct_vh = cts
    if ct_u is None and ct_s is None and ct_vh is None:
        return (None,)
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    v = mat.h(f, vh)
    square = mat.mm(f, vh, v)
    s_inverse = f.astype(mat.inverse_or_zero(f, s), u.dtype)
    wide_s = f.astype(s, u.dtype)
    core: Expr | None = None if ct_s is None else mat.as_diagonal(f, ct_s, square)
    g: Expr | None = None
    gap = mat.gap(f, s * s, square)
    if ct_u is not None:
        gu = mat.conj(f, ct_u)
        uh_gu = mat.mm(f, mat.h(f, u), gu)
        part = gap * _skew(f, uh_gu) * mat.columns(f, wide_s, square)
        if u.type.is_complex:  # the phase of a pair of vectors: an imaginary diagonal
            diagonal = f.select(mat.on_diagonal(f, uh_gu), _skew(f, uh_gu) * 0.5, f.zeros_like(uh_gu))
            part = part + diagonal * mat.columns(f, s_inverse, square)
        core = part if core is None else core + part
        if m > k:
            outside = (gu - mat.mm(f, u, uh_gu)) * mat.columns(f, s_inverse, u)
            g = mat.mm(f, outside, vh)
    if ct_vh is not None:
        gv = mat.h(f, mat.conj(f, ct_vh))
        vh_gv = mat.mm(f, vh, gv)
        part = gap * _skew(f, vh_gv) * mat.rows(f, wide_s, square)
        core = part if core is None else core + part
        if n > k:
            outside = mat.h(f, gv - mat.mm(f, v, vh_gv)) * mat.rows(f, s_inverse, vh)
            extra = mat.mm(f, u, outside)
            g = extra if g is None else g + extra
    if core is not None:
        inside = mat.mm(f, mat.mm(f, u, core), vh)
        g = inside if g is None else g + inside
    return (None if g is None else mat.conj(f, g),)


def _svd_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (u, s, vh), (tan,) = outs, tans
    if tan is None:
        return None, None, None
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    v = mat.h(f, vh)
    inner = mat.mm(f, mat.mm(f, mat.h(f, u), tan), v)
    wide_s = f.astype(s, u.dtype)
    inner_s, s_inner = inner * mat.columns(f, wide_s, inner), inner * mat.rows(f, wide_s, inner)
    gap = mat.gap(f, s * s, inner)
    turn_u = gap * (inner_s + mat.h(f, inner_s))
    turn_v = gap * (s_inner + mat.h(f, s_inner))
    s_inverse = f.astype(mat.inverse_or_zero(f, s), u.dtype)
    if u.type.is_complex:
        phase = f.select(mat.on_diagonal(f, inner), _skew(f, inner) * 0.5, f.zeros_like(inner))
        turn_u = turn_u + phase * mat.columns(f, s_inverse, inner)
    tan_u, tan_v = mat.mm(f, u, turn_u), mat.mm(f, v, turn_v)
    if m > k:
        moved = mat.mm(f, tan, v)
        tan_u = tan_u + (moved - mat.mm(f, u, mat.mm(f, mat.h(f, u), moved))) * mat.columns(f, s_inverse, u)
    if n > k:
        moved = mat.mm(f, mat.h(f, tan), u)
        tan_v = tan_v + (moved - mat.mm(f, v, mat.mm(f, vh, moved))) * mat.columns(f, s_inverse, v)
    return tan_u, mat.real_part(f, mat.diagonal(f, inner)), mat.h(f, tan_v)


SVD = mat.record(
    "svd",
    1,
    {},
    mat.matrix_infer("svd", _svd_types, square=False),
    _svd_evaluate,
    Custom(_svd_vjp, _svd_jvp),
    "Thin singular value decomposition A = U diag(s) Vh, s decreasing. Between equal singular values the derivative of "
    "the vectors is taken as 0 (finite, but what mixes the vectors of equal ones is left out), and 1/s as 0 where s is "
    "0.",
)


# ------------------------------------------------------------------ qr (thin, at least as many rows as columns)


def _qr_types(a: TensorType) -> tuple[TensorType, ...]:
    m, n = a.shape[-2:]
    if m < n:
        raise ShapeError(f"qr needs at least as many rows as columns, got {a}")
    return a, a.with_shape((*a.shape[:-2], n, n))


def _copy_lower(f: Emitter, x: Expr) -> Expr:
    """The lower triangle, mirrored (conjugated) into the upper one, with the real part of the diagonal."""
    low = mat.tril(f, x, strict=True)
    diagonal = mat.where(f, mat.on_diagonal(f, x), (x + mat.h(f, x)) * 0.5)
    return low + mat.h(f, low) + diagonal


def _qr_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (q, r), (ct_q, ct_r) = outs, cts
    m: Expr | None = None if ct_r is None else mat.mm(f, r, mat.h(f, mat.conj(f, ct_r)))
    if ct_q is not None:
        part = -mat.mm(f, mat.h(f, mat.conj(f, ct_q)), q)
        m = part if m is None else m + part
    if m is None:
        return (None,)
    right = mat.mm(f, q, _copy_lower(f, m))
    if ct_q is not None:
        right = right + mat.conj(f, ct_q)
    return (mat.conj(f, mat.h(f, f.triangular_solve(r, mat.h(f, right), lower=False, trans="N"))),)


def _qr_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (q, r), (tan,) = outs, tans
    if tan is None:
        return None, None
    scaled = mat.h(f, f.triangular_solve(r, mat.h(f, tan), lower=False, trans="C"))
    inner = mat.mm(f, mat.h(f, q), scaled)
    low = mat.tril(f, inner, strict=True)
    turn = low - mat.h(f, low)
    if q.type.is_complex:
        turn = turn + mat.where(f, mat.on_diagonal(f, inner), _skew(f, inner) * 0.5)
    return mat.mm(f, q, turn - inner) + scaled, mat.mm(f, inner - turn, r)


QR = mat.record(
    "qr",
    1,
    {},
    mat.matrix_infer("qr", _qr_types, square=False),
    lambda op, args, run: mat.numeric("qr", op, lambda: tuple(np.linalg.qr(args[0]))),
    Custom(_qr_vjp, _qr_jvp, singular=True),
    "Thin QR factorisation of a matrix with at least as many rows as columns, signs as LAPACK gives them.",
)


# ------------------------------------------------------------------ the rest of a square orthogonal factor


def _complement_types(a: TensorType) -> tuple[TensorType, ...]:
    m, n = a.shape[-2:]
    if not m > n > 0:
        raise ShapeError(f"complement needs columns and more rows than those, got {a}")
    return (a.with_shape((*a.shape[:-1], m - n)),)


def _complement_of(a: Array, by: str) -> Array:
    n = a.shape[-1]
    if by == "qr":
        return np.linalg.qr(a, "complete")[0][..., n:]
    if by == "svd":
        return np.linalg.svd(a)[0][..., n:]
    return np.swapaxes(np.linalg.svd(np.swapaxes(a, -1, -2).conj())[2][..., n:, :], -1, -2).conj()


def _inverse_adjoint(f: Emitter, op: Op, a: Expr) -> Expr:
    """The pseudo-inverse of A**H."""
    if op.attrs["by"] == "qr":
        q, r = f.ops_of("qr", a)
        return mat.h(f, f.triangular_solve(r, mat.h(f, q), lower=False, trans="N"))
    u, s, vh = f.ops_of("svd", a)
    return mat.mm(f, u * mat.columns(f, f.astype(mat.inverse_or_zero(f, s), u.dtype), u), vh)


def _check_invariant(f: Emitter, x: Expr, g: Expr) -> None:
    """That the gradient does not ask for a turn of the basis within its space, but for rounding."""
    turn = f.abs(_skew(f, mat.mm(f, mat.h(f, x), g)))
    axes = tuple(range(turn.ndim))
    bound = f.sum(f.abs(g), axes=axes) * float(np.sqrt(np.finfo(x.dtype).eps))
    fine = turn <= f.broadcast_to(bound, turn.shape)
    message = failures.FAILURES[failures.ARBITRARY_BASIS]
    f.b.add(f.ops["check"], [fine.value], Attrs(message=message, code=failures.ARBITRARY_BASIS))


def _complement_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (a,), (x,), (ct,) = args, outs, cts
    if ct is None:
        return (None,)
    g = mat.conj(f, ct)
    _check_invariant(f, x, g)
    return (-mat.conj(f, mat.mm(f, x, mat.mm(f, mat.h(f, g), _inverse_adjoint(f, op, a)))),)


def _complement_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (a,), (x,), (tan,) = args, outs, tans
    if tan is None:
        return (None,)
    return (-mat.mm(f, _inverse_adjoint(f, op, a), mat.mm(f, mat.h(f, tan), x)),)


COMPLEMENT = mat.record(
    "complement",
    1,
    {"by": "str"},
    mat.matrix_infer("complement", _complement_types, square=False),
    lambda op, args, run: mat.numeric("complement", op, lambda: (_complement_of(args[0], op.attrs["by"]),)),
    Custom(_complement_vjp, _complement_jvp, singular=True),
    "For a matrix with more rows than columns, the orthonormal columns that complete its factor of `qr`, or its left "
    "factor of `svd` (`svd_adjoint`: of the adjoint's right one), to a square matrix, as LAPACK gives them. Any basis "
    "of that space would do: the reverse derivative fails where the result depends on the choice, the forward one is "
    "that of the basis that turns least.",
)

LINALG = (CHOLESKY, SOLVE, TRIANGULAR_SOLVE, SLOGDET, *EIGEN, SVD, QR, COMPLEMENT)
