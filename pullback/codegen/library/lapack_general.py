"""Eigenvalues of general matrices by LAPACK, and the vectors that make an orthogonal factor square.

As in `lapack_calls`, the drivers are those that NumPy calls, with as much workspace as NumPy gives them.
"""

from __future__ import annotations

from pullback.codegen import memory
from pullback.codegen.lane import Lane, element_type
from pullback.codegen.library.lapack_calls import BLOCK, Lapack, Parts
from pullback.codegen.llvm import V, const
from pullback.codegen.strips import element
from pullback.ir.types import DType, complex_dtype, real_dtype

VECTORS_BLOCK = 64
"""Vectors that `trevc3`, behind `geev`, takes together."""

_SMALL_SWEEP = 4600
"""Numbers that the sweeps of small matrices ask for at most, whatever their size."""

# ------------------------------------------------------------------ eigenvalues


def eig_sizes(dtype: DType, n: int, vectors: bool) -> list[int]:
    """Scratch of `eig`: the matrix, the vectors, the eigenvalues in two parts, the workspaces: numbers and reals."""
    item, part = dtype.itemsize, real_dtype(dtype).itemsize
    numbers = max((2 + 2 * VECTORS_BLOCK if vectors else 2 + BLOCK) * n, _SMALL_SWEEP + n)
    square, reals = n * n * item, 2 * n * part
    if dtype.kind == "c":
        return [square, square if vectors else 0, 0, 0, numbers * item, reals]
    return [square, square if vectors else 0, n * part, n * part, numbers * item, 0]


def eig(lapack: Lapack, n: int, a: V, w: V, v: V | None, scratch: V) -> V:
    """`geev`; not called for matrices with infinities or NaNs, which fail."""
    b = lapack.b
    with b.loop(0, b.cast("zext", _is_finite(lapack, n * n, a), "i64"), carry=[const("i1", True)]) as once:
        once.turn(_geev(lapack, n, a, w, v, scratch))
    return once.results[0]


def _geev(lapack: Lapack, n: int, a: V, w: V, v: V | None, scratch: V) -> V:
    dtype, has_vectors = lapack.dtype, v is not None
    sizes = eig_sizes(dtype, n, has_vectors)
    matrix, vectors, real, imag, numbers, reals = Parts(lapack.b, scratch, sizes).places
    lapack.turned(matrix, a, n, n)
    is_complex = dtype.kind == "c"
    values: list[int | V] = [w] if is_complex else [real, imag]
    spaces: list[int | V] = [numbers, sizes[4] // dtype.itemsize, *([reals] if is_complex else [])]
    lead = n if has_vectors else 1
    job = "V" if has_vectors else "N"
    failed = lapack.call("geev", "N", job, n, matrix, n, *values, vectors, 1, vectors, lead, *spaces)
    if is_complex and v is not None:
        lapack.turned(v, vectors, n, n)
    elif not is_complex:
        _join_values(lapack, n, real, imag, w)
        if v is not None:
            _join_vectors(lapack, n, imag, vectors, v)
    return failed


def _is_finite(lapack: Lapack, count: int, a: V) -> V:
    """i1: are all numbers finite."""
    b, dtype = lapack.b, real_dtype(lapack.dtype)
    with b.loop(0, count * lapack.dtype.itemsize // dtype.itemsize, carry=[const("i1", True)]) as loop:
        x = b.load(element_type(dtype), element(b, a, dtype, loop.index), dtype.itemsize)
        loop.turn(b.and_(loop.carry[0], b.fcmp("oeq", b.fsub(x, x), 0.0)))
    return loop.results[0]


def _join_values(lapack: Lapack, n: int, real: V, imag: V, w: V) -> None:
    """Complex numbers from their two parts."""
    b, dtype = lapack.b, lapack.dtype
    with b.loop(0, n) as loop:
        parts = [memory.load(b, dtype, element(b, p, dtype, loop.index)).re for p in (real, imag)]
        whole = complex_dtype(dtype)
        memory.store(b, Lane(whole, *parts), element(b, w, whole, loop.index))


def _join_vectors(lapack: Lapack, n: int, imag: V, vectors: V, v: V) -> None:
    """LAPACK gives a pair of conjugate vectors as the real and the imaginary part of the one whose eigenvalue has a
    positive imaginary part; a real vector stands alone."""
    b, dtype = lapack.b, lapack.dtype
    whole = complex_dtype(dtype)
    with b.loop(0, n) as columns:
        j = columns.index
        part = b.load(element_type(dtype), element(b, imag, dtype, j), dtype.itemsize)
        first, second, lone = b.fcmp("ogt", part, 0.0), b.fcmp("olt", part, 0.0), b.fcmp("oeq", part, 0.0)
        re_column = b.sub(j, b.cast("zext", second, "i64"))
        im_column = b.add(j, b.cast("zext", first, "i64"))
        with b.loop(0, n) as rows:
            i = rows.index
            re, im = [
                memory.load(b, dtype, element(b, vectors, dtype, b.add(b.mul(column, n), i))).re
                for column in (re_column, im_column)
            ]
            im = b.select(lone, const(im.type, 0.0), b.select(second, b.fneg(im), im))
            memory.store(b, Lane(whole, re, im), element(b, v, whole, b.add(b.mul(i, n), j)))


# ------------------------------------------------------------------ the rest of an orthogonal factor


def rest_of_q_sizes(dtype: DType, m: int, n: int) -> list[int]:
    """Scratch of `rest_of_q`: the matrix with room for m columns, the factors of the reflections, the workspace."""
    return [m * m * dtype.itemsize, n * dtype.itemsize, BLOCK * m * dtype.itemsize]


def rest_of_q(lapack: Lapack, m: int, n: int, a: V, out: V, scratch: V) -> None:
    """`geqrf`, then all columns of Q by `orgqr`; those from column n on."""
    sizes = rest_of_q_sizes(lapack.dtype, m, n)
    matrix, factors, space = Parts(lapack.b, scratch, sizes).places
    lapack.turned(matrix, a, m, n)
    lapack.call("geqrf", m, n, matrix, m, factors, space, BLOCK * n)
    lapack.call("orgqr", m, m, n, matrix, m, factors, space, BLOCK * m)
    lapack.turned(out, element(lapack.b, matrix, lapack.dtype, const("i64", n * m)), m - n, m)


def rest_of_u_sizes(dtype: DType, m: int, n: int, int_bytes: int) -> list[int]:
    """Scratch of `rest_of_u`: A, the large square factor, the small one, the singular values, the workspaces of
    `gesdd`: numbers, reals, integers. m > n."""
    part, item = real_dtype(dtype).itemsize, dtype.itemsize
    if dtype.kind == "c":
        numbers, reals = 2 * n * n + (3 + 2 * BLOCK) * n + (1 + BLOCK) * m, max(5 * n, 2 * m + 2 * n + 1) * n
    else:
        numbers, reals = 5 * n * n + (9 + 2 * BLOCK) * n + (1 + BLOCK) * m, 0
    matrices = [m * n * item, m * m * item, n * n * item, n * part]
    return [*matrices, numbers * item, reals * part + 5 * n * part, 8 * n * int_bytes]


def rest_of_u(lapack: Lapack, m: int, n: int, of_adjoint: bool, a: V, out: V, scratch: V) -> V:
    """`gesdd` of A, or of its adjoint, with all vectors; those of the long side from number n on, as columns."""
    dtype, b = lapack.dtype, lapack.b
    sizes = rest_of_u_sizes(dtype, m, n, lapack.int_bytes)
    matrix, large, small, values, numbers, reals, integers = Parts(b, scratch, sizes).places
    spaces: list[int | V] = [numbers, sizes[4] // dtype.itemsize, *([reals] if dtype.kind == "c" else [])]
    if of_adjoint:
        lapack.copied(matrix, a, m * n, conjugate=True)  # the adjoint column by column is the conjugate row by row
        failed = lapack.call("gesdd", "A", n, m, matrix, n, values, small, n, large, m, *spaces, integers)
        _last_rows_adjoint(lapack, m, n, large, out)
    else:
        lapack.turned(matrix, a, m, n)
        failed = lapack.call("gesdd", "A", m, n, matrix, m, values, large, m, small, n, *spaces, integers)
        lapack.turned(out, element(b, large, dtype, const("i64", n * m)), m - n, m)
    return failed


def _last_rows_adjoint(lapack: Lapack, m: int, n: int, square: V, out: V) -> None:
    """The adjoint of the rows from n on of a matrix that lies column by column: pieces of its columns, conjugated."""
    b, dtype, count = lapack.b, lapack.dtype, m - n
    with b.loop(0, m) as loop:
        source = element(b, square, dtype, b.add(b.mul(loop.index, m), n))
        target = element(b, out, dtype, b.mul(loop.index, count))
        lapack.copied(target, source, count, conjugate=True)
