"""Factorisations and solves, over any leading batch axes. NumPy's linalg functions are compositions of these.

Derivatives are stated for the gradient that pairs with tangents conjugated (`g`), which is how the formulas are
published; `_conj` turns cotangents, which pair without conjugation, into that and back. For real matrices it does
nothing.
"""

from collections.abc import Callable, Sequence

import numpy as np

from pullback.errors import NumericalError, ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Array, Custom, Infer, Library, OpDef, RunRegion, Types
from pullback.ir.ops.common import all_batched, check_arity, words
from pullback.ir.types import TensorType, real_dtype

MaybeExprs = Sequence[Expr | None]
LINALG_DTYPES = ("f4", "f8", "c8", "c16")


# ------------------------------------------------------------------ small matrix algebra on Exprs


def _conj(f: Emitter, x: Expr) -> Expr:
    return f.conj(x) if x.type.is_complex else x


def _t(f: Emitter, x: Expr) -> Expr:
    """The last two axes exchanged."""
    n = x.ndim
    return f.permute(x, (*range(n - 2), n - 1, n - 2))


def _h(f: Emitter, x: Expr) -> Expr:
    return _conj(f, _t(f, x))


def _mm(f: Emitter, x: Expr, y: Expr) -> Expr:
    """Matrix product over shared batch axes."""
    n = x.ndim
    batch = tuple(range(n - 2))
    return f.dot_general(x, y, contract=((n - 1,), (n - 2,)), batch=(batch, batch))


def _index_test(f: Emitter, x: Expr, test: Callable[[Expr, Expr], Expr]) -> Expr:
    n = x.ndim
    return test(f.arange_like(x.shape, n - 2), f.arange_like(x.shape, n - 1))


def _where(f: Emitter, pred: Expr, x: Expr) -> Expr:
    return f.select(pred, x, f.zeros_like(x))


def _tril(f: Emitter, x: Expr, strict: bool = False) -> Expr:
    return _where(f, _index_test(f, x, lambda i, j: i > j if strict else i >= j), x)


def _on_diagonal(f: Emitter, x: Expr) -> Expr:
    return _index_test(f, x, lambda i, j: i.eq(j))


def _eye_like(f: Emitter, x: Expr) -> Expr:
    return f.astype(_on_diagonal(f, x), x.dtype)


def _lower_half(f: Emitter, x: Expr) -> Expr:
    """Lower triangle with half the diagonal."""
    return f.select(_on_diagonal(f, x), x * 0.5, _tril(f, x))


def _columns(f: Emitter, v: Expr, like: Expr) -> Expr:
    """A vector of each matrix spread so that column j holds v[j]."""
    n = like.ndim
    return f.broadcast_to(v, like.shape, (*range(n - 2), n - 1))


def _rows(f: Emitter, v: Expr, like: Expr) -> Expr:
    n = like.ndim
    return f.broadcast_to(v, like.shape, (*range(n - 2), n - 2))


def _inverse_or_zero(f: Emitter, x: Expr) -> Expr:
    """1/x, and 0 where x is 0: the value that keeps functions of degenerate spectra finite where they are smooth."""
    zero = x.eq(0.0)
    return f.select(zero, f.zeros_like(x), 1.0 / f.select(zero, f.full_like(x, 1.0), x))


def _gap(f: Emitter, w: Expr, like: Expr) -> Expr:
    """1 / (w[j] - w[i]) with 0 where they are equal, in the dtype of `like`."""
    return f.astype(_inverse_or_zero(f, _columns(f, w, like) - _rows(f, w, like)), like.dtype)


def _real_part(f: Emitter, x: Expr) -> Expr:
    return f.real(x) if x.type.is_complex else x


def _diagonal(f: Emitter, x: Expr) -> Expr:
    """The diagonal of square matrices, as vectors."""
    return f.sum(_where(f, _on_diagonal(f, x), x), axes=(x.ndim - 1,))


def _as_diagonal(f: Emitter, v: Expr, like: Expr) -> Expr:
    wide = _columns(f, f.astype(v, like.dtype), like)
    return _where(f, _on_diagonal(f, wide), wide)


# ------------------------------------------------------------------ type rules


def _check_dtype(name: str, types: Types) -> None:
    if any(t.dtype != types[0].dtype or t.dtype.str[1:] not in LINALG_DTYPES for t in types):
        raise TypeRuleError(f"{name} needs operands of one dtype, float32, float64 or complex, got {words(types)}")


def _matrix_infer(name: str, results: Callable[[TensorType], tuple[TensorType, ...]], square: bool = True) -> Infer:
    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
        check_arity(name, types, 1)
        _check_dtype(name, types)
        (a,) = types
        if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
            raise ShapeError(f"{name} needs {'square ' if square else ''}matrices in the last two axes, got {a}")
        return results(a)

    return infer


def _batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    return tuple(f.ops_of(op.name, *all_batched(f, args, batched), **op.attrs))


def _linalg(
    name: str, arity: int, attrs: dict[str, str], infer: Infer, evaluate: object, derivative: Custom, doc: str
) -> OpDef:
    return OpDef(
        name=name,
        arity=arity,
        attrs=attrs,
        infer=infer,
        evaluate=evaluate,  # type: ignore[arg-type]  # each is an Evaluate; the constructor is shared
        numpy=(),
        derivative=derivative,
        batch=_batch,
        lower=Library(name),
        algebra=PLAIN,
        doc=doc,
    )


def _numeric(what: str, op: Op, function: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
    try:
        return tuple(np.asarray(a, dtype=r.type.dtype, order="C") for a, r in zip(function(), op.results, strict=True))
    except np.linalg.LinAlgError as error:
        raise NumericalError(f"{what}: {error} (at {op.loc})") from error


# ------------------------------------------------------------------ cholesky


def _cholesky_g(f: Emitter, factor: Expr, g: Expr) -> Expr:
    """L**-H Phi(L**H g) L**-1, made Hermitian."""
    inner = _lower_half(f, _mm(f, _h(f, factor), _tril(f, g)))
    left = f.triangular_solve(factor, inner, lower=True, trans="C")
    both = _h(f, f.triangular_solve(factor, _h(f, left), lower=True, trans="C"))
    return (both + _h(f, both)) * 0.5


def _cholesky_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (ct,) = cts
    return (None if ct is None else _conj(f, _cholesky_g(f, outs[0], _conj(f, ct))),)


def _cholesky_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (tan,), (factor,) = tans, outs
    if tan is None:
        return (None,)
    hermitian = (tan + _h(f, tan)) * 0.5
    left = f.triangular_solve(factor, hermitian, lower=True, trans="N")
    both = _h(f, f.triangular_solve(factor, _h(f, left), lower=True, trans="N"))
    return (_mm(f, factor, _lower_half(f, both)),)


CHOLESKY = _linalg(
    "cholesky",
    1,
    {},
    _matrix_infer("cholesky", lambda a: (a,)),
    lambda op, args, run: _numeric("cholesky", op, lambda: (np.linalg.cholesky(args[0]),)),
    Custom(_cholesky_vjp, _cholesky_jvp),
    "Lower factor L of a Hermitian positive definite matrix, A = L L**H. The derivative is that of Hermitian matrices.",
)


# ------------------------------------------------------------------ solves


def _solve_infer(name: str) -> Infer:
    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
        check_arity(name, types, 2)
        _check_dtype(name, types)
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
        return _conj(f, f.op(op.name, a, _conj(f, ct), **{**op.attrs, "trans": "N"}))
    return f.op(op.name, a, ct, **{**op.attrs, "trans": _opposite(trans)})


def _orient_ct(f: Emitter, op: Op, ct: Expr) -> Expr:
    """The cotangent of op(A) as one of A."""
    trans = op.attrs["trans"]
    turned = ct if trans == "N" else _t(f, ct)
    if trans == "C":
        turned = _conj(f, turned)
    return _mask(f, op, turned)


def _mask(f: Emitter, op: Op, x: Expr) -> Expr:
    """A triangular solve reads one triangle only."""
    if "lower" not in op.attrs:
        return x
    return _tril(f, x) if op.attrs["lower"] else _t(f, _tril(f, _t(f, x)))


def _solve_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (a, _), (x,), (ct,) = args, outs, cts
    if ct is None:
        return None, None
    ct_b = _transposed_solve(f, op, a, ct)
    return _orient_ct(f, op, -_mm(f, ct_b, _t(f, x))), ct_b


def _solve_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (a, _), (x,), (tan_a, tan_b) = args, outs, tans
    right = tan_b
    if tan_a is not None:
        turned = _mask(f, op, tan_a)
        if op.attrs["trans"] != "N":
            turned = _t(f, turned) if op.attrs["trans"] == "T" else _h(f, turned)
        moved = -_mm(f, turned, x)
        right = moved if right is None else right + moved
    return (None if right is None else f.op(op.name, a, right, **op.attrs),)


SOLVE = _linalg(
    "solve",
    2,
    {"trans": "str"},
    _solve_infer("solve"),
    lambda op, args, run: _numeric(
        "solve", op, lambda: (np.linalg.solve(_orient(args[0], op.attrs["trans"]), args[1]),)
    ),
    Custom(_solve_vjp, _solve_jvp),
    "X with op(A) X = B by an LU factorisation; op is A, its transpose (T) or its conjugate transpose (C).",
)


def _triangle(a: Array, lower: bool) -> Array:
    return np.tril(a) if lower else np.triu(a)


TRIANGULAR_SOLVE = _linalg(
    "triangular_solve",
    2,
    {"lower": "bool", "trans": "str"},
    _solve_infer("triangular_solve"),
    lambda op, args, run: _numeric(
        "triangular_solve",
        op,
        lambda: (np.linalg.solve(_orient(_triangle(args[0], op.attrs["lower"]), op.attrs["trans"]), args[1]),),
    ),
    Custom(_solve_vjp, _solve_jvp),
    "X with op(A) X = B for triangular A; the other triangle is not read.",
)


# ------------------------------------------------------------------ determinants


def _inverse_transpose(f: Emitter, a: Expr) -> Expr:
    return f.solve(a, _eye_like(f, a), trans="T")


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


SLOGDET = _linalg(
    "slogdet",
    1,
    {},
    _matrix_infer(
        "slogdet", lambda a: (a.with_shape(a.shape[:-2]), tensor_real(a).with_shape(a.shape[:-2]))
    ),
    lambda op, args, run: _numeric("slogdet", op, lambda: tuple(np.linalg.slogdet(args[0]))),
    Custom(_slogdet_vjp, _slogdet_jvp, singular=True),
    "Sign and logarithm of the absolute determinant, by an LU factorisation.",
)


def tensor_real(a: TensorType) -> TensorType:
    return a.with_dtype(real_dtype(a.dtype))


# ------------------------------------------------------------------ eigh


def _eigh_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (w, v), (ct_w, ct_v) = outs, cts
    inner = None
    if ct_v is not None:
        inner = _gap(f, w, v) * _mm(f, _h(f, v), _conj(f, ct_v))
    if ct_w is not None:
        diagonal = _as_diagonal(f, ct_w, v)
        inner = diagonal if inner is None else inner + diagonal
    if inner is None:
        return (None,)
    g = _mm(f, _mm(f, v, inner), _h(f, v))
    return (_conj(f, (g + _h(f, g)) * 0.5),)


def _eigh_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (w, v), (tan,) = outs, tans
    if tan is None:
        return None, None
    inner = _mm(f, _mm(f, _h(f, v), (tan + _h(f, tan)) * 0.5), v)
    return _real_part(f, _diagonal(f, inner)), _mm(f, v, _gap(f, w, v) * inner)


EIGH = _linalg(
    "eigh",
    1,
    {},
    _matrix_infer("eigh", lambda a: (tensor_real(a).with_shape(a.shape[:-1]), a)),
    lambda op, args, run: _numeric("eigh", op, lambda: tuple(np.linalg.eigh(args[0]))),
    Custom(_eigh_vjp, _eigh_jvp),
    "Eigenvalues, increasing, and orthonormal eigenvectors (columns) of a Hermitian matrix; the lower triangle is "
    "read. Between equal eigenvalues the derivative of the vectors is taken as 0: finite, and right where the function "
    "is smooth.",
)


# ------------------------------------------------------------------ svd (thin)


def _svd_types(a: TensorType) -> tuple[TensorType, ...]:
    m, n = a.shape[-2:]
    k, lead = min(m, n), a.shape[:-2]
    return a.with_shape((*lead, m, k)), tensor_real(a).with_shape((*lead, k)), a.with_shape((*lead, k, n))


def _svd_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    return _numeric("svd", op, lambda: tuple(np.linalg.svd(args[0], full_matrices=False)))


def _skew(f: Emitter, x: Expr) -> Expr:
    return x - _h(f, x)


def _svd_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    u, s, vh = outs
    ct_u, ct_s, ct_vh = cts
    if ct_u is None and ct_s is None and ct_vh is None:
        return (None,)
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    v = _h(f, vh)
    square = _mm(f, vh, v)
    s_inverse = f.astype(_inverse_or_zero(f, s), u.dtype)
    wide_s = f.astype(s, u.dtype)
    core: Expr | None = None if ct_s is None else _as_diagonal(f, ct_s, square)
    g: Expr | None = None
    gap = _gap(f, s * s, square)
    if ct_u is not None:
        gu = _conj(f, ct_u)
        uh_gu = _mm(f, _h(f, u), gu)
        part = gap * _skew(f, uh_gu) * _columns(f, wide_s, square)
        if u.type.is_complex:  # the phase of a pair of vectors: an imaginary diagonal
            diagonal = f.select(_on_diagonal(f, uh_gu), _skew(f, uh_gu) * 0.5, f.zeros_like(uh_gu))
            part = part + diagonal * _columns(f, s_inverse, square)
        core = part if core is None else core + part
        if m > k:
            outside = (gu - _mm(f, u, uh_gu)) * _columns(f, s_inverse, u)
            g = _mm(f, outside, vh)
    if ct_vh is not None:
        gv = _h(f, _conj(f, ct_vh))
        vh_gv = _mm(f, vh, gv)
        part = gap * _skew(f, vh_gv) * _rows(f, wide_s, square)
        core = part if core is None else core + part
        if n > k:
            outside = _h(f, gv - _mm(f, v, vh_gv)) * _rows(f, s_inverse, vh)
            extra = _mm(f, u, outside)
            g = extra if g is None else g + extra
    if core is not None:
        inside = _mm(f, _mm(f, u, core), vh)
        g = inside if g is None else g + inside
    return (None if g is None else _conj(f, g),)


def _svd_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (u, s, vh), (tan,) = outs, tans
    if tan is None:
        return None, None, None
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    v = _h(f, vh)
    inner = _mm(f, _mm(f, _h(f, u), tan), v)
    wide_s = f.astype(s, u.dtype)
    inner_s, s_inner = inner * _columns(f, wide_s, inner), inner * _rows(f, wide_s, inner)
    gap = _gap(f, s * s, inner)
    turn_u = gap * (inner_s + _h(f, inner_s))
    turn_v = gap * (s_inner + _h(f, s_inner))
    s_inverse = f.astype(_inverse_or_zero(f, s), u.dtype)
    if u.type.is_complex:
        phase = f.select(_on_diagonal(f, inner), _skew(f, inner) * 0.5, f.zeros_like(inner))
        turn_u = turn_u + phase * _columns(f, s_inverse, inner)
    tan_u, tan_v = _mm(f, u, turn_u), _mm(f, v, turn_v)
    if m > k:
        moved = _mm(f, tan, v)
        tan_u = tan_u + (moved - _mm(f, u, _mm(f, _h(f, u), moved))) * _columns(f, s_inverse, u)
    if n > k:
        moved = _mm(f, _h(f, tan), u)
        tan_v = tan_v + (moved - _mm(f, v, _mm(f, vh, moved))) * _columns(f, s_inverse, v)
    return tan_u, _real_part(f, _diagonal(f, inner)), _h(f, tan_v)


SVD = _linalg(
    "svd",
    1,
    {},
    _matrix_infer("svd", _svd_types, square=False),
    _svd_evaluate,
    Custom(_svd_vjp, _svd_jvp),
    "Thin singular value decomposition A = U diag(s) Vh, s decreasing. Between equal singular values the derivative of "
    "the vectors is taken as 0, and 1/s as 0 where s is 0.",
)


# ------------------------------------------------------------------ qr (thin, at least as many rows as columns)


def _qr_types(a: TensorType) -> tuple[TensorType, ...]:
    m, n = a.shape[-2:]
    if m < n:
        raise ShapeError(f"qr needs at least as many rows as columns, got {a}")
    return a, a.with_shape((*a.shape[:-2], n, n))


def _copy_lower(f: Emitter, x: Expr) -> Expr:
    """The lower triangle, mirrored (conjugated) into the upper one, with the real part of the diagonal."""
    low = _tril(f, x, strict=True)
    diagonal = _where(f, _on_diagonal(f, x), (x + _h(f, x)) * 0.5)
    return low + _h(f, low) + diagonal


def _qr_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (q, r), (ct_q, ct_r) = outs, cts
    m: Expr | None = None if ct_r is None else _mm(f, r, _h(f, _conj(f, ct_r)))
    if ct_q is not None:
        part = -_mm(f, _h(f, _conj(f, ct_q)), q)
        m = part if m is None else m + part
    if m is None:
        return (None,)
    right = _mm(f, q, _copy_lower(f, m))
    if ct_q is not None:
        right = right + _conj(f, ct_q)
    return (_conj(f, _h(f, f.triangular_solve(r, _h(f, right), lower=False, trans="N"))),)


def _qr_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (q, r), (tan,) = outs, tans
    if tan is None:
        return None, None
    scaled = _h(f, f.triangular_solve(r, _h(f, tan), lower=False, trans="C"))
    inner = _mm(f, _h(f, q), scaled)
    low = _tril(f, inner, strict=True)
    turn = low - _h(f, low)
    if q.type.is_complex:
        turn = turn + _where(f, _on_diagonal(f, inner), _skew(f, inner) * 0.5)
    return _mm(f, q, turn - inner) + scaled, _mm(f, inner - turn, r)


QR = _linalg(
    "qr",
    1,
    {},
    _matrix_infer("qr", _qr_types, square=False),
    lambda op, args, run: _numeric("qr", op, lambda: tuple(np.linalg.qr(args[0]))),
    Custom(_qr_vjp, _qr_jvp, singular=True),
    "Thin QR factorisation of a matrix with at least as many rows as columns, signs as LAPACK gives them.",
)

LINALG = (CHOLESKY, SOLVE, TRIANGULAR_SOLVE, SLOGDET, EIGH, SVD, QR)
