"""Factorisations and solves over leading batch axes: generated code where it is faster than a call, else LAPACK.

`lapack_calls` and `lapack_general` have the calls; `lapack_tiny`, `lapack_columns`, `lapack_triangle` and
`lapack_cholesky` the generated code; `lapack_loops` what is done where there is no LAPACK; `batches` the loop over the
batch. Every op fails in one way at most, by a status of `ir.failures`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pullback.codegen import memory
from pullback.codegen.fill import fill
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.library import lapack_calls as calls
from pullback.codegen.library import lapack_columns as small
from pullback.codegen.library import lapack_general as general
from pullback.codegen.library import lapack_loops as loops
from pullback.codegen.library.batches import Site, Work, site_of
from pullback.codegen.library.lapack_calls import Lapack
from pullback.codegen.library.lapack_cholesky import cholesky_small, cholesky_tiles, tiles_scratch
from pullback.codegen.library.lapack_factors import solve_shared
from pullback.codegen.library.lapack_tiny import TINY, Flags, System, slogdet_tiny, solve_tiny, width
from pullback.codegen.library.lapack_triangle import TriangleSolver, triangle, zero_on_diagonal
from pullback.codegen.llvm import FunctionBuilder, V, const, const_lanes
from pullback.codegen.program import Frame, Program
from pullback.codegen.spec import make_spec
from pullback.codegen.strips import element
from pullback.errors import CodegenError
from pullback.ir import failures
from pullback.ir.builder import Builder
from pullback.ir.graph import Op
from pullback.ir.index import Affine
from pullback.ir.kernel import Load, Store
from pullback.ir.ops import OPS
from pullback.ir.types import BOOL, F32, F64, DType, TensorType, real_dtype, tensor_type

CHOLESKY_SMALL = 8
"""Factors up to this size are written out: a third of the time of a call, and compile time grows as n cubed."""

CHOLESKY_TILES = range(13, 256)
"""Sizes of real matrices that are factored in tiles, in a half to a fourth of the time of a call."""

TRIANGLE_CALL_ROWS: Mapping[str, int] = {"f": 256, "c": 160}
"""From so many rows on BLAS is faster than generated code, for real and for complex numbers: it works in blocks that
fit the caches."""

VECTOR_CALL_ROWS = 9
"""The same for a single right side, where generated code has but one lane."""


def _needs_lapack(site: Site) -> None:
    if not site.frame.program.blas_int:
        raise CodegenError(f"{site.op.name} at {site.op.loc} needs LAPACK, and the one of NumPy was not found")


# ------------------------------------------------------------------ cholesky


def _cholesky(site: Site) -> None:
    """The lower factor of each matrix."""
    a = site.types[0]
    n, dtype, has_lapack = a.shape[-1], a.dtype, site.frame.program.blas_int
    in_tiles = dtype.kind == "f" and n in CHOLESKY_TILES

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> V:
        lapack = Lapack(program, b, dtype)
        matrix, out = pointers
        if dtype.kind == "f" and n <= CHOLESKY_SMALL:
            return cholesky_small(program.e.scalars(b), dtype, n, matrix, out)
        if in_tiles:
            return cholesky_tiles(lapack, n, matrix, out, scratch)
        return (calls.cholesky if has_lapack else loops.cholesky)(lapack, n, matrix, out)

    if n:
        scratch = tiles_scratch(dtype, n) if in_tiles else 0
        is_generated = in_tiles or (dtype.kind == "f" and n <= CHOLESKY_SMALL) or not has_lapack
        side = 0 if is_generated else n
        work = Work(("cholesky", dtype, n), scratch, calls.cost(n**3 / 3), failures.NOT_POSITIVE_DEFINITE, side)
        site.run(2, work, member)


# ------------------------------------------------------------------ solves


def _solve(site: Site) -> None:
    """op(A)**-1 B for each pair."""
    a, rhs, _ = site.types
    n, columns, dtype, trans = a.shape[-1], rhs.shape[-1], a.dtype, site.op.attrs["trans"]
    if rhs.size == 0:
        return
    if dtype.kind != "c" and trans == "C":
        trans = "T"
    shared = site.frame.program.factors.get(site.op)
    if shared is not None and not site.frame.serial:
        solve_shared(site, shared, trans)
        return
    int_bytes = site.frame.program.blas_int
    system = System(dtype, n, columns, trans == "T")
    is_small = small.is_small(site.frame.program.e.target, dtype, n)
    if is_small:
        scratch = small.scratch_size(system) if n > TINY else 0
    elif int_bytes:
        scratch = calls.total(calls.solve_sizes(dtype, n, columns, int_bytes))
    else:
        scratch = loops.scratch_size(dtype, n)

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> V:
        lapack = Lapack(program, b, dtype)
        matrix, sides, out = pointers
        if is_small:
            if n <= TINY:
                return solve_tiny(program, b, system, matrix, sides, out)
            return small.solve_columns(lapack, system, matrix, sides, out, scratch)
        return (calls.solve if int_bytes else loops.solve)(lapack, n, columns, trans, matrix, sides, out, scratch)

    flops = 2 * n**3 / 3 + 2.0 * n * n * columns
    side = 0 if is_small or not int_bytes else max(n, columns)
    work = Work(("solve", dtype, n, columns, trans), scratch, calls.cost(flops), failures.SINGULAR, side)
    site.run(2, work, member)


def _triangular_solve(site: Site) -> None:
    """op(A)**-1 B for each pair, A triangular. A zero on the diagonal is a failure."""
    a, rhs, _ = site.types
    n, columns, dtype = a.shape[-1], rhs.shape[-1], a.dtype
    lower, trans = site.op.attrs["lower"], site.op.attrs["trans"]
    if rhs.size == 0:
        return
    shape = triangle(dtype, n, lower, trans)
    by_blas = site.frame.program.blas_int and _is_for_blas(dtype, n, columns)

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> V:
        s = program.e.scalars(b)
        matrix, sides, out = pointers
        failed = zero_on_diagonal(s, dtype, n, matrix)
        if by_blas:
            lapack = Lapack(program, b, dtype)
            lapack.copied(out, sides, n * columns)
            lapack.solve_triangle(n, columns, lower, trans, matrix, out)
        else:
            TriangleSolver(s, program.e.target, shape, columns, pointers).run()
        return failed

    key = ("triangular_solve", dtype, n, columns, lower, trans)
    side = max(n, columns) if by_blas else 0
    site.run(2, Work(key, 0, calls.cost(n * n * columns), failures.SINGULAR, side), member)


def _is_for_blas(dtype: DType, n: int, columns: int) -> bool:
    return n >= (VECTOR_CALL_ROWS if columns == 1 else TRIANGLE_CALL_ROWS[dtype.kind])


# ------------------------------------------------------------------ determinant


def _slogdet(site: Site) -> None:
    """Sign and logarithm of the determinant; 0 and -inf if an exact zero is on the diagonal of U."""
    a = site.types[0]
    n, dtype, int_bytes = a.shape[-1], a.dtype, site.frame.program.blas_int
    system = System(dtype, n, 0, False)
    is_small = n > 0 and small.is_small(site.frame.program.e.target, dtype, n)
    scratch = small.scratch_size(system) if is_small else calls.total([n * n * dtype.itemsize, n * max(int_bytes, 8)])

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> None:
        lapack = Lapack(program, b, dtype)
        matrix, *outs = pointers
        if is_small:
            _slogdet_small(lapack, system, matrix, outs, scratch)
            return
        factors, pivots = calls.Parts(b, scratch, [n * n * dtype.itemsize, 0]).places
        if int_bytes:
            lapack.turned(factors, matrix, n, n)
            flags = Flags(lapack.call("getrf", n, n, factors, n, pivots), _odd_exchanges(lapack, n, pivots))
        else:
            lapack.copied(factors, matrix, n * n)
            flags = Flags(*loops.eliminate(n, [loops.Rows(lapack, program.e.scalars(b), factors, n)]))
        _finish_slogdet(lapack, n, factors, flags, outs)

    if n == 0:
        _fill_slogdet_of_nothing(site)
        return
    side = 0 if is_small or not int_bytes else n
    site.run(2, Work(("slogdet", dtype, n), scratch, calls.cost(2 * n**3 / 3), side=side), member)


def _odd_exchanges(lapack: Lapack, n: int, pivots: V) -> V:
    """i1: is the number of rows that LAPACK exchanged odd."""
    b, size = lapack.b, lapack.int_bytes
    with b.loop(0, n, carry=[const("i1", False)]) as loop:
        place = b.load(lapack.integer_type, b.gep("i8", pivots, b.mul(loop.index, size)), size)
        own = b.add(loop.index, 1)
        own = own if size == 8 else b.cast("trunc", own, lapack.integer_type)
        loop.turn(b.xor(loop.carry[0], b.icmp("ne", place, own)))
    return loop.results[0]


def _finish_slogdet(lapack: Lapack, n: int, factors: V, flags: Flags, outs: Sequence[V]) -> None:
    """The product of the diagonal's signs and the sum of its logarithms, in order, as NumPy does."""
    b, dtype = lapack.b, lapack.dtype
    s = lapack.program.e.scalars(b)
    part = real_dtype(dtype)
    one = lane_constant(dtype, 1.0, 1)
    start = s.select(Lane(BOOL, flags.odd), s.math("neg", one), one)
    with b.loop(0, n, carry=[*start.parts, lane_constant(part, 0.0, 1).re]) as loop:
        entry = memory.load(b, dtype, element(b, factors, dtype, b.mul(loop.index, n + 1)))
        turn = s.binary("mul", Lane(dtype, *loop.carry[:-1]), s.math("sign", entry))
        loop.turn(*turn.parts, b.fadd(loop.carry[-1], s.math("log", s.math("abs", entry)).re))
    _store_slogdet(lapack, flags.singular, Lane(dtype, *loop.results[:-1]), Lane(part, loop.results[-1]), outs)


def _slogdet_small(lapack: Lapack, system: System, matrix: V, outs: Sequence[V], scratch: V) -> None:
    """The same from pivots in lanes."""
    b, dtype, n = lapack.b, system.dtype, system.n
    s, lanes = lapack.program.e.scalars(b), width(n)
    if n <= TINY:
        pivots, flags = slogdet_tiny(lapack.program, b, dtype, n, matrix)
    else:
        pivots, flags = small.slogdet_columns(lapack, system, matrix, scratch)
    known = pivots.re
    if n < lanes:
        known = b.select(const_lanes("i1", [lane < n for lane in range(lanes)]), known, 1.0)
    logarithm = b.reduce("fadd", s.math("log", s.math("abs", Lane(dtype, known))).re, -0.0)
    minus = b.xor(b.reduce("xor", b.fcmp("olt", known, 0.0)), flags.odd)
    sign = s.select(Lane(BOOL, minus), lane_constant(dtype, -1.0, 1), lane_constant(dtype, 1.0, 1))
    _store_slogdet(lapack, flags.singular, sign, Lane(dtype, logarithm), outs)


def _store_slogdet(lapack: Lapack, singular: V, sign: Lane, logarithm: Lane, outs: Sequence[V]) -> None:
    s, known = lapack.program.e.scalars(lapack.b), Lane(BOOL, singular)
    for number, value, out in zip((0.0, float("-inf")), (sign, logarithm), outs, strict=True):
        memory.store(s.b, s.select(known, lane_constant(value.dtype, number, 1), value), out)


def _fill_slogdet_of_nothing(site: Site) -> None:
    """The determinant of a matrix without rows is 1."""
    for type_, pointer, number in zip(site.types[1:], site.pointers[1:], (1.0, 0.0), strict=True):
        fill(site.frame.b, pointer, type_.dtype, number, type_.size)


# ------------------------------------------------------------------ eigh, svd, qr


def _eigh(site: Site) -> None:
    """Eigenvalues and vectors of each Hermitian matrix."""
    a, lower = site.types[0], site.op.attrs["lower"]
    n, dtype = a.shape[-1], a.dtype
    if a.size == 0:
        return
    _needs_lapack(site)

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> V:
        matrix, w, v = pointers
        return calls.eigh(Lapack(program, b, dtype), n, lower, matrix, w, v, scratch)

    scratch = calls.total(calls.eigh_sizes(dtype, n, site.frame.program.blas_int))
    work = Work(("eigh", dtype, n, lower), scratch, calls.cost(9.0 * n**3), failures.NO_EIGENVALUES, n)
    site.run(2, work, member)


def _svd(site: Site) -> None:
    """The thin singular value decomposition of each matrix."""
    a = site.types[0]
    (m, n), dtype = a.shape[-2:], a.dtype
    if a.size == 0:
        return
    _needs_lapack(site)

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> V:
        matrix, u, s, vh = pointers
        return calls.svd(Lapack(program, b, dtype), m, n, matrix, u, s, vh, scratch)

    scratch = calls.total(calls.svd_sizes(dtype, m, n, site.frame.program.blas_int))
    ns = calls.cost(20.0 * m * n * min(m, n))
    work = Work(("svd", dtype, m, n), scratch, ns, failures.NO_SINGULAR_VALUES, max(m, n))
    site.run(2, work, member)


def _qr(site: Site) -> None:
    """The thin QR factorisation of each matrix."""
    a = site.types[0]
    (m, n), dtype = a.shape[-2:], a.dtype
    if a.size == 0:
        return
    _needs_lapack(site)

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> None:
        matrix, q, r = pointers
        calls.qr(Lapack(program, b, dtype), m, n, matrix, q, r, scratch)

    work = Work(("qr", dtype, m, n), calls.total(calls.qr_sizes(dtype, m, n)), calls.cost(4.0 * m * n * n), side=m)
    site.run(2, work, member)


# ------------------------------------------------------------------ eig, complement


def _eig(site: Site) -> None:
    """Eigenvalues of each matrix, and its vectors if the op gives them."""
    a, has_vectors = site.types[0], len(site.op.results) == 2
    n, dtype = a.shape[-1], a.dtype
    if a.size == 0:
        return
    _needs_lapack(site)

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> V:
        matrix, w, *v = pointers
        return general.eig(Lapack(program, b, dtype), n, matrix, w, v[0] if v else None, scratch)

    scratch = calls.total(general.eig_sizes(dtype, n, has_vectors))
    work = Work(("eig", dtype, n, has_vectors), scratch, calls.cost(25.0 * n**3), failures.NO_EIGENVALUES, n)
    site.run(2, work, member)


def _complement(site: Site) -> None:
    """The columns that complete an orthogonal factor of each matrix."""
    a, by = site.types[0], site.op.attrs["by"]
    (m, n), dtype = a.shape[-2:], a.dtype
    if a.size == 0:
        return
    _needs_lapack(site)

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> V | None:
        lapack, (matrix, out) = Lapack(program, b, dtype), pointers
        if by == "qr":
            general.rest_of_q(lapack, m, n, matrix, out, scratch)
            return None
        return general.rest_of_u(lapack, m, n, by == "svd_adjoint", matrix, out, scratch)

    if by == "qr":
        sizes, failure = general.rest_of_q_sizes(dtype, m, n), 0
    else:
        sizes, failure = general.rest_of_u_sizes(dtype, m, n, site.frame.program.blas_int), failures.NO_SINGULAR_VALUES
    work = Work(("complement", by, dtype, m, n), calls.total(sizes), calls.cost(10.0 * m * m * n), failure, m)
    site.run(2, work, member)


_RULES: Mapping[str, Callable[[Site], None]] = {
    "cholesky": _cholesky,
    "complement": _complement,
    "eig": _eig,
    "eigvals": _eig,
    "eigh": _eigh,
    "qr": _qr,
    "slogdet": _slogdet,
    "solve": _solve,
    "svd": _svd,
    "triangular_solve": _triangular_solve,
}


# ------------------------------------------------------------------ single precision


def lower_linalg(frame: Frame, op: Op) -> None:
    """Any op of this module, in double precision as NumPy computes it: single precision is widened and rounded."""
    site, rule = site_of(frame, op), _RULES[op.name]
    wide = tuple(t.with_dtype(_WIDE.get(t.dtype, t.dtype)) for t in site.types)
    if wide == site.types:
        rule(site)
        return
    sizes = [t.nbytes for t in wide]
    inputs = len(op.operands)
    with frame.scratch(calls.total(sizes)) as scratch:
        places = calls.Parts(frame.b, scratch, sizes).places
        for k in range(inputs):
            _cast(frame, site.types[k], wide[k], site.pointers[k], places[k])
        rule(Site(frame, op, wide, tuple(places)))
        for k in range(inputs, len(wide)):
            _cast(frame, wide[k], site.types[k], places[k], site.pointers[k])


_WIDE: Mapping[DType, DType] = {F32: F64, np.dtype(np.complex64): np.dtype(np.complex128)}


def _cast(frame: Frame, source: TensorType, target: TensorType, pointer: V, place: V) -> None:
    """Copy a whole buffer as another dtype."""
    builder, at, size = Builder(), Affine(0, ((0, 1),)), (source.size,)
    value = builder.emit(OPS["cast"], builder.param(tensor_type(source.dtype)), dtype=target.dtype)
    loads, stores = (Load(0, at),), (Store("store", target.with_shape(size), at),)
    spec = make_spec(size, loads, stores, (source.with_shape(size),), builder.region([value]))
    frame.run(spec, [pointer], [place], distinct=True)


LAPACK: Mapping[str, Callable[[Frame, Op], None]] = dict.fromkeys(_RULES, lower_linalg)
