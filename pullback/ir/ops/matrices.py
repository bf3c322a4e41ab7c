"""Small matrix algebra on `Expr`s, and what the records of matrix ops share."""

from collections.abc import Callable, Sequence

import numpy as np

from pullback.errors import NumericalError, ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Array, Custom, Infer, Library, OpDef, Types
from pullback.ir.ops.common import all_batched, check_arity, words
from pullback.ir.types import TensorType, real_dtype

MaybeExprs = Sequence[Expr | None]
LINALG_DTYPES = ("f4", "f8", "c8", "c16")

def conj(f: Emitter, x: Expr) -> Expr:
    return f.conj(x) if x.type.is_complex else x


def t(f: Emitter, x: Expr) -> Expr:
    """The last two axes exchanged."""
    n = x.ndim
    return f.permute(x, (*range(n - 2), n - 1, n - 2))


def h(f: Emitter, x: Expr) -> Expr:
    return conj(f, t(f, x))


def mm(f: Emitter, x: Expr, y: Expr) -> Expr:
    """Matrix product over shared batch axes."""
    n = x.ndim
    batch = tuple(range(n - 2))
    return f.dot_general(x, y, contract=((n - 1,), (n - 2,)), batch=(batch, batch))


def index_test(f: Emitter, x: Expr, test: Callable[[Expr, Expr], Expr]) -> Expr:
    n = x.ndim
    return test(f.arange_like(x.shape, n - 2), f.arange_like(x.shape, n - 1))


def where(f: Emitter, pred: Expr, x: Expr) -> Expr:
    return f.select(pred, x, f.zeros_like(x))


def tril(f: Emitter, x: Expr, strict: bool = False) -> Expr:
    return where(f, index_test(f, x, lambda i, j: i > j if strict else i >= j), x)


def on_diagonal(f: Emitter, x: Expr) -> Expr:
    return index_test(f, x, lambda i, j: i.eq(j))


def eye_like(f: Emitter, x: Expr) -> Expr:
    return f.astype(on_diagonal(f, x), x.dtype)


def lower_half(f: Emitter, x: Expr) -> Expr:
    """Lower triangle with half the diagonal."""
    return f.select(on_diagonal(f, x), x * 0.5, tril(f, x))


def columns(f: Emitter, v: Expr, like: Expr) -> Expr:
    """A vector of each matrix spread so that column j holds v[j]."""
    n = like.ndim
    return f.broadcast_to(v, like.shape, (*range(n - 2), n - 1))


def rows(f: Emitter, v: Expr, like: Expr) -> Expr:
    n = like.ndim
    return f.broadcast_to(v, like.shape, (*range(n - 2), n - 2))


def inverse_or_zero(f: Emitter, x: Expr) -> Expr:
    """1/x, and 0 where x is 0: the value that keeps functions of degenerate spectra finite where they are smooth."""
    zero = x.eq(0.0)
    return f.select(zero, f.zeros_like(x), 1.0 / f.select(zero, f.full_like(x, 1.0), x))


def gap(f: Emitter, w: Expr, like: Expr) -> Expr:
    """1 / (w[j] - w[i]) with 0 where they are equal, in the dtype of `like`."""
    return f.astype(inverse_or_zero(f, columns(f, w, like) - rows(f, w, like)), like.dtype)


def real_part(f: Emitter, x: Expr) -> Expr:
    return f.real(x) if x.type.is_complex else x


def diagonal(f: Emitter, x: Expr) -> Expr:
    """The diagonal of square matrices, as vectors."""
    return f.sum(where(f, on_diagonal(f, x), x), axes=(x.ndim - 1,))


def as_diagonal(f: Emitter, v: Expr, like: Expr) -> Expr:
    wide = columns(f, f.astype(v, like.dtype), like)
    return where(f, on_diagonal(f, wide), wide)


# ------------------------------------------------------------------ type rules


def check_dtype(name: str, types: Types) -> None:
    if any(t.dtype != types[0].dtype or t.dtype.str[1:] not in LINALG_DTYPES for t in types):
        raise TypeRuleError(f"{name} needs operands of one dtype, float32, float64 or complex, got {words(types)}")


def matrix_infer(name: str, results: Callable[[TensorType], tuple[TensorType, ...]], square: bool = True) -> Infer:
    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
        check_arity(name, types, 1)
        check_dtype(name, types)
        (a,) = types
        if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
            raise ShapeError(f"{name} needs {'square ' if square else ''}matrices in the last two axes, got {a}")
        return results(a)

    return infer


def batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    return tuple(f.ops_of(op.name, *all_batched(f, args, batched), **op.attrs))


def record(
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
        batch=batch,
        lower=Library(name),
        algebra=PLAIN,
        doc=doc,
    )


def numeric(what: str, op: Op, function: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
    try:
        return tuple(np.asarray(a, dtype=r.type.dtype, order="C") for a, r in zip(function(), op.results, strict=True))
    except np.linalg.LinAlgError as error:
        raise NumericalError(f"{what}: {error} (at {op.loc})") from error


def tensor_real(a: TensorType) -> TensorType:
    return a.with_dtype(real_dtype(a.dtype))


