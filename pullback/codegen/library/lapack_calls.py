"""Factorisations and solves of one matrix by LAPACK, through its Fortran interface (`lapack_dgesv`).

The drivers are those that NumPy calls, on matrices laid out as NumPy lays them out, so that results agree to the bit
(signs of vectors and the decision what is singular included). Fortran keeps columns together: a matrix in C order is
its own transpose there. The factor of Cholesky's method is taken on that transpose, where it is the same factor; the
other drivers get a transposed copy, which they need anyway since they overwrite it.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import byteorder

from pullback.codegen.fill import copy
from pullback.codegen.lane import element_type
from pullback.codegen.library.lapack_turn import turn_function
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import Program, aligned
from pullback.codegen.spec import make_spec
from pullback.ir.builder import Builder
from pullback.ir.index import Affine
from pullback.ir.kernel import Load, Store
from pullback.ir.ops import OPS
from pullback.ir.types import DType, real_dtype, tensor_type

BLOCK = 32
"""Columns that LAPACK's blocked algorithms take together. Less workspace than for so many makes them slower; with what
they ask for when NumPy calls them, they do exactly the same."""

_LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
_HERMITIAN = {"syevd": "heevd", "orgqr": "ungqr"}
_ROW_MAJOR, _LEFT, _NON_UNIT = 101, 141, 131
_UPPER, _LOWER = 121, 122
_TRANS = {"N": 111, "T": 112, "C": 113}


_CALL_NS, _FLOPS_PER_NS = 500.0, 4.0


def cost(flops: float) -> float:
    """Estimated time of one member of a batch."""
    return _CALL_NS / 4 + flops / _FLOPS_PER_NS


def routine_letter(dtype: DType) -> str:
    """The first letter of LAPACK's names for that dtype."""
    return _LETTERS[dtype.str[1:]]


class Lapack:
    """Emits calls for matrices of one dtype into one function.

    Sizes are given by address, as Fortran wants them; they are constants of the module.
    """

    def __init__(self, program: Program, b: FunctionBuilder, dtype: DType) -> None:
        self.program = program
        self.b = b
        self.dtype = dtype
        self.int_bytes = program.blas_int
        self.integer_type = f"i{8 * program.blas_int}"
        self._info: V | None = None

    def integer(self, number: int) -> V:
        """The address of an integer."""
        return self.b.module.constant(number.to_bytes(self.int_bytes, byteorder, signed=True), self.int_bytes)

    def call(self, routine: str, *args: str | int | V) -> V:
        """Call a routine with letters, sizes and addresses; i1: did it report a failure.

        The lengths of the letters follow all arguments, unseen in Fortran.
        """
        b = self.b
        if self._info is None:
            self._info = b.alloca(self.integer_type, align=8)
        addresses = [self._address(arg) for arg in args] + [self._info]
        hidden = [const("i64", 1) for arg in args if isinstance(arg, str)]
        if self.dtype.kind == "c":
            routine = _HERMITIAN.get(routine, routine)
        name = f"lapack_{routine_letter(self.dtype)}{routine}"
        types = ["ptr"] * len(addresses) + ["i64"] * len(hidden)
        b.call("void", self.program.e.external(name, "void", types), [*addresses, *hidden])
        return b.icmp("ne", b.load(self.integer_type, self._info, self.int_bytes), 0)

    def _address(self, arg: str | int | V) -> V:
        if isinstance(arg, V):
            return arg
        return self.b.module.constant(arg.encode(), 1) if isinstance(arg, str) else self.integer(arg)

    def solve_triangle(self, n: int, columns: int, lower: bool, trans: str, a: V, x: V) -> None:
        """op(A) X = B in place, both in C order, by BLAS."""
        b, letter = self.b, routine_letter(self.dtype)
        uplo, turn = _LOWER if lower else _UPPER, _TRANS[trans]
        word = self.integer_type
        if columns == 1:
            flags = [const("i32", k) for k in (_ROW_MAJOR, uplo, turn, _NON_UNIT)]
            args = [*flags, const(word, n), a, const(word, n), x, const(word, 1)]
            name = f"cblas_{letter}trsv"
        else:
            flags = [const("i32", k) for k in (_ROW_MAJOR, _LEFT, uplo, turn, _NON_UNIT)]
            sizes = [const(word, n), const(word, columns)]
            args = [*flags, *sizes, self._one(), a, const(word, n), x, const(word, columns)]
            name = f"cblas_{letter}trsm"
        b.call("void", self.program.e.external(name, "void", [arg.type for arg in args]), args)

    def _one(self) -> V:
        """The number 1 as CBLAS takes it: complex numbers by address."""
        part = real_dtype(self.dtype)
        if self.dtype.kind == "c":
            return self.b.module.constant(part.type(1).tobytes() + part.type(0).tobytes())
        return const(element_type(part), 1.0)

    # ---------------------------------------------------------------- copies

    def turned(self, target: V, source: V, rows: int, columns: int, lead: int = 0, apart: int = 0) -> None:
        """The transpose: `source` has `rows` rows of `columns` elements, `lead` elements apart (default: close
        together), `target` gets `columns` rows, `apart` elements apart."""
        numbers = [const("i64", k) for k in (rows, columns, lead or columns, apart or rows)]
        self.b.call("void", turn_function(self.program, self.dtype), [source, target, *numbers])

    def copied(self, target: V, source: V, count: int, conjugate: bool = False) -> None:
        """So many elements, conjugated or as they are."""
        if not conjugate or self.dtype.kind != "c":
            copy(self.b, target, source, count * self.dtype.itemsize, self.dtype.itemsize)
            return
        builder = Builder()
        value = builder.emit(OPS["conj"], builder.param(tensor_type(self.dtype)))
        type_, at = tensor_type(self.dtype, (count,)), Affine(0, ((0, 1),))
        body = builder.region([value])
        self._run(make_spec((count,), (Load(0, at),), (Store("store", type_, at),), (type_,), body), source, target)

    def _run(self, spec: object, source: V, target: V) -> None:
        code = self.program.kernel(spec, True, True)  # type: ignore[arg-type]
        self.b.call("void", code.name, [source, target, target])

    def clear_rows(self, matrix: V, n: int, above: bool) -> None:
        """Zeros above (or below) the diagonal of a square matrix in C order."""
        b, item = self.b, self.dtype.itemsize
        if n < 2:
            return
        with b.loop(0, n - 1) as loop:
            row = loop.index if above else b.add(loop.index, 1)
            start = b.add(b.mul(row, n), b.add(row, 1)) if above else b.mul(row, n)
            count = b.rsub(n - 1, row) if above else row
            b.memset(b.gep("i8", matrix, b.mul(start, item), flags=""), 0, b.mul(count, item), item)


# ------------------------------------------------------------------ parts of scratch memory


class Parts:
    """Places one behind the other in scratch memory, each aligned to 64 bytes."""

    def __init__(self, b: FunctionBuilder, scratch: V, sizes: Sequence[int]) -> None:
        at, self.places = 0, []
        for size in sizes:
            self.places.append(b.gep("i8", scratch, at) if at else scratch)
            at += aligned(size)


def total(sizes: Sequence[int]) -> int:
    """Bytes that `Parts` takes."""
    return sum(aligned(size) for size in sizes)


# ------------------------------------------------------------------ the drivers


def cholesky(lapack: Lapack, n: int, a: V, out: V) -> V:
    """`a` is Hermitian, so its transpose has the lower triangle of `a` as its upper one, and U**H U = A**T says that
    U in memory, read in C order, is L."""
    lapack.copied(out, a, n * n)
    failed = lapack.call("potrf", "U", n, out, n)
    lapack.clear_rows(out, n, above=True)
    return failed


def solve_sizes(dtype: DType, n: int, columns: int, int_bytes: int) -> list[int]:
    """Scratch of `solve`: the matrix, the pivots, and the right sides column by column if there are several."""
    sides = n * columns * dtype.itemsize if columns > 1 else 0
    return [n * n * dtype.itemsize, n * int_bytes, sides]


def factor_copy(lapack: Lapack, n: int, trans: str, a: V, target: V) -> None:
    """op(A) column by column."""
    if trans == "N":
        lapack.turned(target, a, n, n)
    else:
        lapack.copied(target, a, n * n, conjugate=trans == "C")


def solve(lapack: Lapack, n: int, columns: int, trans: str, a: V, rhs: V, out: V, scratch: V) -> V:
    """`gesv` of op(A)."""
    sizes = solve_sizes(lapack.dtype, n, columns, lapack.int_bytes)
    factors, pivots, sides = Parts(lapack.b, scratch, sizes).places
    factor_copy(lapack, n, trans, a, factors)
    if columns == 1:
        lapack.copied(out, rhs, n)
        return lapack.call("gesv", n, 1, factors, n, pivots, out, n)
    lapack.turned(sides, rhs, n, columns)
    failed = lapack.call("gesv", n, columns, factors, n, pivots, sides, n)
    lapack.turned(out, sides, columns, n)
    return failed


def eigh_sizes(dtype: DType, n: int, int_bytes: int) -> list[int]:
    """Scratch of `eigh`: the matrix, and the workspaces of `syevd` (or `heevd`): numbers, reals, integers."""
    part = real_dtype(dtype).itemsize
    if dtype.kind == "c":
        numbers, reals = max(2 * n + n * n, (1 + BLOCK) * n), 1 + 5 * n + 2 * n * n
    else:
        numbers, reals = max(1 + 6 * n + 2 * n * n, (2 + BLOCK) * n), 0
    return [n * n * dtype.itemsize, numbers * dtype.itemsize, reals * part, (3 + 5 * n) * int_bytes]


def eigh(lapack: Lapack, n: int, lower: bool, a: V, w: V, v: V, scratch: V) -> V:
    """`syevd` of one triangle."""
    dtype = lapack.dtype
    sizes = eigh_sizes(dtype, n, lapack.int_bytes)
    matrix, numbers, reals, integers = Parts(lapack.b, scratch, sizes).places
    lapack.turned(matrix, a, n, n)
    counts = [sizes[1] // dtype.itemsize, sizes[2] // real_dtype(dtype).itemsize, sizes[3] // lapack.int_bytes]
    spaces: list[int | V] = [numbers, counts[0]]
    if dtype.kind == "c":
        spaces += [reals, counts[1]]
    failed = lapack.call("syevd", "V", "L" if lower else "U", n, matrix, n, w, *spaces, integers, counts[2])
    lapack.turned(v, matrix, n, n)
    return failed


def svd_sizes(dtype: DType, m: int, n: int, int_bytes: int) -> list[int]:
    """Scratch of `svd`: A, U, V**H, and the workspaces of `gesdd`: numbers, reals, integers."""
    small, large, part = min(m, n), max(m, n), real_dtype(dtype).itemsize
    if dtype.kind == "c":
        numbers = 2 * small * small + (3 + 2 * BLOCK) * small + (1 + BLOCK) * large
        reals = max(5 * small * small + 5 * small, 2 * large * small + 2 * small * small + small)
    else:
        numbers, reals = 5 * small * small + (9 + 2 * BLOCK) * small + (1 + BLOCK) * large, 0
    matrices = [m * n * dtype.itemsize, m * small * dtype.itemsize, small * n * dtype.itemsize]
    return [*matrices, numbers * dtype.itemsize, reals * part, 8 * small * int_bytes]


def svd(lapack: Lapack, m: int, n: int, a: V, u: V, s: V, vh: V, scratch: V) -> V:
    """`gesdd`, thin."""
    dtype, small = lapack.dtype, min(m, n)
    sizes = svd_sizes(dtype, m, n, lapack.int_bytes)
    matrix, left, right, numbers, reals, integers = Parts(lapack.b, scratch, sizes).places
    lapack.turned(matrix, a, m, n)
    spaces: list[int | V] = [numbers, sizes[3] // dtype.itemsize]
    if dtype.kind == "c":
        spaces.append(reals)
    failed = lapack.call("gesdd", "S", m, n, matrix, m, s, left, m, right, small, *spaces, integers)
    lapack.turned(u, left, small, m)
    lapack.turned(vh, right, n, small)
    return failed


def qr_sizes(dtype: DType, m: int, n: int) -> list[int]:
    """Scratch of `qr`: the matrix, the factors of the reflections, the workspace."""
    return [m * n * dtype.itemsize, n * dtype.itemsize, BLOCK * n * dtype.itemsize]


def qr(lapack: Lapack, m: int, n: int, a: V, q: V, r: V, scratch: V) -> None:
    """`geqrf`, R from its upper triangle, then Q by `orgqr`."""
    sizes = qr_sizes(lapack.dtype, m, n)
    matrix, factors, space = Parts(lapack.b, scratch, sizes).places
    lapack.turned(matrix, a, m, n)
    lapack.call("geqrf", m, n, matrix, m, factors, space, BLOCK * n)
    lapack.turned(r, matrix, n, n, lead=m)
    lapack.clear_rows(r, n, above=False)
    lapack.call("orgqr", m, n, n, matrix, m, factors, space, BLOCK * n)
    lapack.turned(q, matrix, n, m)
