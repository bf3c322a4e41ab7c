"""Factorisations and solves: native code gives what numpy.linalg gives, and fails where it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pullback.codegen.library.lapack_calls import eigh_sizes, qr_sizes, svd_sizes
from pullback.codegen.library.lapack_columns import is_small
from pullback.codegen.library.lapack_general import eig_sizes, rest_of_u_sizes
from pullback.codegen.library.lapack_tiny import TINY
from pullback.codegen.lower import lower as lower_plan
from pullback.codegen.target import compile_module, host_target, load_object
from pullback.errors import CodegenError, NumericalError
from pullback.ir import failures
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.types import DType, real_dtype, tensor_type
from tests.codegen.checks import build, compiled
from tests.native import Native, simple_plan, symbols_of

scipy_lapack = pytest.importorskip("scipy.linalg.lapack")

Array = np.ndarray[Any, Any]
DTYPES = tuple(np.dtype(t) for t in ("f4", "f8", "c8", "c16"))
REAL = DTYPES[:2]
SIZES = (1, 2, 3, 5, TINY, TINY + 1, 9, 16, 17, 33, 80)
by_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
# single precision is widened, so a size of each kind of code will do
CASES = [(dtype, n) for dtype in DTYPES for n in (SIZES if real_dtype(dtype).itemsize == 8 else (3, 20))]
by_size = pytest.mark.parametrize(("dtype", "n"), CASES, ids=str)


# ------------------------------------------------------------------ matrices


def matrix(dtype: DType, *shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed + sum(shape))
    x = rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def regular(dtype: DType, *shape: int) -> Array:
    """Far from singular; the largest entries of a column are not on the diagonal."""
    n = shape[-1]
    x = matrix(dtype, *shape) + 3 * np.sqrt(n) * np.eye(n)
    return np.ascontiguousarray(x[..., np.random.default_rng(n).permutation(n), :].astype(dtype))


def positive(dtype: DType, *shape: int) -> Array:
    x = matrix(dtype, *shape)
    return np.ascontiguousarray((x @ np.swapaxes(x, -1, -2).conj() + shape[-1] * np.eye(shape[-1])).astype(dtype))


def triangular(dtype: DType, *shape: int) -> Array:
    """Regular in both triangles."""
    n = shape[-1]
    x = matrix(dtype, *shape) / max(n, 1)
    return np.ascontiguousarray((x + 2 * np.sign(x.real) * np.eye(n)).astype(dtype))


# ------------------------------------------------------------------ running


def function_of(program: Callable[..., Expr | Sequence[Expr]], *operands: Array) -> Function:
    return build([tensor_type(x.dtype, x.shape) for x in operands], program)


def assert_agrees(
    program: Callable[..., Expr | Sequence[Expr]], *operands: Array, ulps: float = 60, native: Native | None = None
) -> None:
    """Native code and interpreter differ by some units in the last place of the largest number of each matrix."""
    function = function_of(program, *operands)
    found, wanted = (native or compiled(function))(*operands), interpret(function, operands)
    for k, (x, y) in enumerate(zip(found, wanted, strict=True)):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        size = np.abs(y).max(initial=1.0, where=np.isfinite(y))
        np.testing.assert_allclose(x, y, rtol=0, atol=ulps * np.finfo(y.dtype).eps * size, err_msg=f"result {k}")


def status_of(program: Callable[..., Expr | Sequence[Expr]], *operands: Array) -> int:
    status, _ = compiled(function_of(program, *operands)).run(*operands)
    return status


def solve(trans: str = "N") -> Callable[..., Expr]:
    return lambda f, a, b: f.solve(a, b, trans=trans)


def triangular_solve(lower: bool, trans: str = "N") -> Callable[..., Expr]:
    return lambda f, a, b: f.triangular_solve(a, b, lower=lower, trans=trans)


# ------------------------------------------------------------------ values


@by_size
def test_solve_in_three_orientations(dtype: DType, n: int) -> None:
    a = regular(dtype, n, n)
    sides = [matrix(dtype, n, columns) for columns in (1, n, 11)]

    def program(f: Emitter, a: Expr, *sides: Expr) -> list[Expr]:
        return [f.solve(a, b, trans=trans) for trans in "NTC" for b in sides]

    assert_agrees(program, a, *sides)


@by_size
def test_triangular_solve_reads_one_triangle(dtype: DType, n: int) -> None:
    a = triangular(dtype, n, n)
    sides = [matrix(dtype, n, columns) for columns in (1, n, 19)]
    cases = [(lower, trans) for lower in (True, False) for trans in ("NTC" if dtype.kind == "c" else "NT")]
    for lower, trans in cases:
        given = np.where(np.tri(n, dtype=bool).T ^ lower | np.eye(n, dtype=bool), a, np.nan).astype(dtype)
        assert np.isnan(given).any() or n == 1

        def program(f: Emitter, a: Expr, *sides: Expr, lower=lower, trans=trans) -> list[Expr]:  # type: ignore[no-untyped-def]
            return [f.triangular_solve(a, b, lower=lower, trans=trans) for b in sides]

        assert_agrees(program, given, *sides)


@by_size
def test_cholesky_reads_the_lower_triangle(dtype: DType, n: int) -> None:
    a = positive(dtype, n, n)
    a[np.triu_indices(n, 1)] = np.nan
    assert_agrees(lambda f, a: f.cholesky(a), a)


@by_size
def test_sign_and_logarithm_of_determinants(dtype: DType, n: int) -> None:
    a = np.stack([regular(dtype, n, n), matrix(dtype, n, n, seed=1), -regular(dtype, n, n)])
    assert_agrees(lambda f, a: f.ops_of("slogdet", a), a, ulps=200)


@by_dtype
@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
def test_eigenvalues_and_vectors_are_those_of_numpy_to_the_bit(dtype: DType, n: int) -> None:
    a = positive(dtype, n, n)
    a[np.triu_indices(n, 1)] = np.nan
    assert_same_bits(lambda f, a: f.ops_of("eigh", a, lower=True), a)
    assert_same_bits(lambda f, a: f.ops_of("eigh", a, lower=False), np.ascontiguousarray(np.swapaxes(a, -1, -2)))


@by_dtype
@pytest.mark.parametrize("n", [1, 2, 3, 7, 40, 90])
def test_eigenvalues_and_vectors_of_general_matrices_are_those_of_numpy_to_the_bit(dtype: DType, n: int) -> None:
    a = np.stack([matrix(dtype, n, n, seed=seed) for seed in range(3)])  # with and without conjugate pairs
    assert_same_bits(lambda f, a: [*f.ops_of("eig", a), *f.ops_of("eigvals", a)], a)


@by_dtype
def test_eigenvectors_of_many_general_matrices(dtype: DType) -> None:
    assert_agrees(lambda f, a: f.ops_of("eig", a), matrix(dtype, 40, 4, 4), ulps=1000)


@by_dtype
@pytest.mark.parametrize("by", ["qr", "svd", "svd_adjoint"])
@pytest.mark.parametrize(("m", "n"), [(2, 1), (5, 3), (40, 7), (41, 40)])
def test_the_rest_of_an_orthogonal_factor_is_that_of_numpy(dtype: DType, by: str, m: int, n: int) -> None:
    assert_agrees(lambda f, a: f.ops_of("complement", a, by=by), matrix(dtype, 2, m, n), ulps=1000)


@by_dtype
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 2), (3, 5), (5, 3), (1, 4), (4, 1), (40, 7), (7, 40)])
def test_singular_values_and_vectors_are_those_of_numpy_to_the_bit(dtype: DType, m: int, n: int) -> None:
    assert_same_bits(lambda f, a: f.ops_of("svd", a), matrix(dtype, m, n))


@by_dtype
def test_large_decompositions_have_the_signs_of_numpy(dtype: DType) -> None:
    """With its larger workspace LAPACK works in blocks here, and rounds otherwise."""
    assert_agrees(lambda f, a: f.ops_of("svd", a), matrix(dtype, 50, 50), ulps=1000)


@by_dtype
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 2), (5, 3), (4, 1), (40, 33)])
def test_qr_factors_are_those_of_numpy_to_the_bit(dtype: DType, m: int, n: int) -> None:
    assert_same_bits(lambda f, a: f.ops_of("qr", a), matrix(dtype, m, n))


def assert_same_bits(program: Callable[..., Expr | Sequence[Expr]], *operands: Array) -> None:
    function = function_of(program, *operands)
    for x, y in zip(compiled(function)(*operands), interpret(function, operands), strict=True):
        np.testing.assert_array_equal(x, y)


def test_large_solves_are_those_of_numpy_to_the_bit() -> None:
    a, b = regular(REAL[1], 40, 40), matrix(REAL[1], 40, 7)
    for trans in "NT":
        assert_same_bits(lambda f, a, b, trans=trans: f.solve(a, b, trans=trans), a, b)


# ------------------------------------------------------------------ batches


@pytest.mark.parametrize("dtype", DTYPES[1:3], ids=str)
@pytest.mark.parametrize("n", [2, 8, 20])
@pytest.mark.parametrize("batch", [(3,), (2, 150), (2, 0)], ids=str)
def test_batches_one_by_one_and_shared_among_threads(dtype: DType, n: int, batch: tuple[int, ...]) -> None:
    spd, a, t = (make(dtype, *batch, n, n) for make in (positive, regular, triangular))
    b = matrix(dtype, *batch, n, 2)

    def program(f: Emitter, spd: Expr, a: Expr, t: Expr, b: Expr) -> list[Expr]:
        ops = [f.cholesky(spd), f.solve(a, b, trans="N"), f.triangular_solve(t, b, lower=True, trans="T")]
        ops += [*f.ops_of("slogdet", a), *f.ops_of("eigh", spd, lower=True), *f.ops_of("eig", a)]
        return [*ops, *f.ops_of("svd", b), *f.ops_of("qr", b)]

    assert_agrees(program, spd, a, t, b, ulps=200)


@by_dtype
def test_matrices_without_rows_or_columns(dtype: DType) -> None:
    a, b, wide = np.zeros((3, 0, 0), dtype), np.zeros((3, 0, 2), dtype), np.zeros((2, 0), dtype)
    full, none = regular(dtype, 3, 3), np.zeros((3, 0), dtype)

    def program(f: Emitter, a: Expr, b: Expr, wide: Expr, full: Expr, none: Expr) -> list[Expr]:
        ops = [f.cholesky(a), f.solve(a, b, trans="N"), f.triangular_solve(a, b, lower=True, trans="N")]
        ops += [f.solve(full, none, trans="N"), *f.ops_of("slogdet", a), *f.ops_of("eigh", a, lower=True)]
        ops += [*f.ops_of("eig", a), *f.ops_of("svd", a), *f.ops_of("svd", wide)]
        return [*ops, *f.ops_of("qr", wide), *f.ops_of("qr", a)]

    assert_agrees(program, a, b, wide, full, none, ulps=0)


# ------------------------------------------------------------------ failures


@by_dtype
@pytest.mark.parametrize("n", [1, 2, 5, 8, 20])
def test_singular_matrices_fail(dtype: DType, n: int) -> None:
    a, b = regular(dtype, n, n), matrix(dtype, n, 2)
    a[n // 2] = 0
    assert status_of(solve(), a, b) == -failures.SINGULAR
    assert status_of(solve("T"), a, b) == -failures.SINGULAR
    t = triangular(dtype, n, n)
    t[n - 1, n - 1] = 0
    for lower in (True, False):
        assert status_of(triangular_solve(lower), t, b) == -failures.SINGULAR


@by_dtype
@pytest.mark.parametrize("n", [1, 2, 5, 8, 20])
def test_the_determinant_of_a_singular_matrix_is_zero(dtype: DType, n: int) -> None:
    a = np.stack([regular(dtype, n, n), np.zeros((n, n), dtype), regular(dtype, n, n)])
    a[2, :, n // 2] = 0
    assert_agrees(lambda f, a: f.ops_of("slogdet", a), a)
    sign, logarithm = compiled(function_of(lambda f, a: f.ops_of("slogdet", a), a))(a)
    assert np.all(sign[1:] == 0)
    assert np.all(logarithm[1:] == -np.inf)


@by_dtype
@pytest.mark.parametrize("n", [1, 4, 12])
def test_indefinite_matrices_have_no_cholesky_factor(dtype: DType, n: int) -> None:
    a = np.stack([positive(dtype, n, n)] * 3)
    a[1, n - 1, n - 1] = -1
    assert status_of(lambda f, a: f.cholesky(a), a) == -failures.NOT_POSITIVE_DEFINITE


def test_proportional_rows_of_small_integers_are_singular() -> None:
    """The products are rounded before they are subtracted, as OpenBLAS does: fused, rounding errors would be left."""
    rng = np.random.default_rng(3)
    a = rng.integers(-9, 10, (300, 2, 2)).astype(np.float64)
    a[:, 1] = a[:, 0] * rng.integers(-3, 4, (300, 1))
    sign, _ = compiled(function_of(lambda f, a: f.ops_of("slogdet", a), a))(a)
    np.testing.assert_array_equal(sign, 0)


@by_dtype
def test_a_failure_in_one_thread_s_share_is_seen(dtype: DType) -> None:
    a, b = regular(dtype, 600, 8, 8), matrix(dtype, 600, 8, 1)
    a[577] = 0
    assert status_of(solve(), a, b) == -failures.SINGULAR


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_eigenvalues_and_singular_values_of_nan_do_not_converge(dtype: DType) -> None:
    a = np.full((4, 4), np.nan, dtype)
    assert status_of(lambda f, a: f.ops_of("eig", a), a) == -failures.NO_EIGENVALUES
    assert status_of(lambda f, a: f.ops_of("eigvals", a), a) == -failures.NO_EIGENVALUES
    assert status_of(lambda f, a: f.ops_of("eigh", a, lower=True), a) == -failures.NO_EIGENVALUES
    assert status_of(lambda f, a: f.ops_of("svd", a), a) == -failures.NO_SINGULAR_VALUES


@pytest.mark.parametrize("n", [1, 3, 8, 20])
def test_nan_in_a_solve_gives_nan(n: int) -> None:
    a, b = regular(REAL[1], n, n), matrix(REAL[1], n, 1)
    a[n // 2, :] = np.nan
    status, (x,) = compiled(function_of(solve(), a, b)).run(a, b)
    assert status == 0
    assert np.isnan(x).any()


def test_failure_codes_stand_for_errors_that_are_numpy_s_too() -> None:
    for code, words in failures.FAILURES.items():
        error = failures.failure_error(code, "model.py:3")
        assert isinstance(error, NumericalError)
        assert isinstance(error, np.linalg.LinAlgError)
        assert words in str(error)
        assert "model.py:3" in str(error)
    assert failures.failure_error(7) is None


# ------------------------------------------------------------------ factors that solves share


def two_solves(dtype: DType, n: int, batch: tuple[int, ...] = ()) -> tuple[Function, list[Array]]:
    shapes = [(*batch, n, n), (*batch, n, 1), (*batch, n, 3)]
    trans = "C" if dtype.kind == "c" else "T"

    def program(f: Emitter, a: Expr, b: Expr, c: Expr) -> list[Expr]:
        return [f.solve(a, b, trans="N"), f.solve(a, c, trans=trans), f.solve(a, c, trans="N")]

    types = [tensor_type(dtype, shape) for shape in shapes]
    return build(types, program), [regular(dtype, *shapes[0]), *(matrix(dtype, *shape) for shape in shapes[1:])]


@by_dtype
@pytest.mark.parametrize(("n", "batch"), [(1, ()), (16, ()), (17, ()), (40, (3,)), (64, (2, 20))], ids=str)
def test_solves_with_one_matrix_share_its_factors(dtype: DType, n: int, batch: tuple[int, ...]) -> None:
    function, args = two_solves(dtype, n, batch)
    for found, wanted in zip(compiled(function)(*args), interpret(function, args), strict=True):
        assert found.dtype == wanted.dtype
        eps = np.finfo(real_dtype(dtype)).eps
        np.testing.assert_allclose(found, wanted, rtol=0, atol=100 * eps * np.abs(wanted).max())


def test_solves_that_share_factors_keep_the_bits_of_numpy_but_for_transposes() -> None:
    a, b, c = regular(REAL[1], 40, 40), matrix(REAL[1], 40, 7), matrix(REAL[1], 40, 2)
    assert_same_bits(lambda f, a, b, c: [f.solve(a, b, trans="N"), f.solve(a, c, trans="N")], a, b, c)


def test_a_shared_matrix_is_factored_once_and_a_small_one_by_generated_code() -> None:
    for n, factored, whole in ((40, 1, 0), (5, 0, 0)):
        text = lower_plan(simple_plan(two_solves(REAL[1], n)[0]), host_target()).text
        assert text.count("call void @lapack_dgetrf(") == factored
        assert text.count("call void @lapack_dgesv(") == whole


def test_a_singular_shared_matrix_is_a_failure() -> None:
    function, args = two_solves(REAL[1], 30)
    args[0][:, 3] = 0.0
    status, _ = compiled(function).run(*args)
    assert status == -failures.SINGULAR


# ------------------------------------------------------------------ without LAPACK


def without_lapack(function: Function) -> Native:
    lowered = lower_plan(simple_plan(function), host_target(), blas_int=0)
    assert not [name for name in lowered.symbols if name.startswith(("lapack_", "cblas_"))]
    code = compile_module(lowered.text, host_target())
    return Native(function, lowered, load_object(code, [lowered.kernel], symbols_of(lowered)))


@by_dtype
@pytest.mark.parametrize("n", [1, 4, 20])
def test_plain_loops_where_there_is_no_lapack(dtype: DType, n: int) -> None:
    spd, a, t = positive(dtype, n, n), regular(dtype, 2, n, n), triangular(dtype, n, n)
    b = matrix(dtype, 2, n, 3)

    def program(f: Emitter, spd: Expr, a: Expr, t: Expr, b: Expr) -> list[Expr]:
        side = f.reshape(f.slice(b, start=(0, 0, 0), stop=(1, n, 3), step=(1, 1, 1)), shape=(n, 3))
        solves = [f.solve(a, b, trans=trans) for trans in "NTC"]
        solves += [f.triangular_solve(t, side, lower=True, trans=trans) for trans in "NTC"]
        return [f.cholesky(spd), *solves, *f.ops_of("slogdet", a)]

    operands = (spd, a, t, b)
    assert_agrees(program, *operands, ulps=200, native=without_lapack(function_of(program, *operands)))


@by_dtype
def test_plain_loops_fail_as_lapack_does(dtype: DType) -> None:
    a, b = regular(dtype, 20, 20), matrix(dtype, 20, 1)
    a[:, 7] = 0
    assert without_lapack(function_of(solve(), a, b)).run(a, b)[0] == -failures.SINGULAR
    spd = positive(dtype, 20, 20)
    spd[19, 19] = -1
    program = function_of(lambda f, a: f.cholesky(a), spd)
    assert without_lapack(program).run(spd)[0] == -failures.NOT_POSITIVE_DEFINITE


@pytest.mark.parametrize(("name", "attrs"), [("eigh", {"lower": True}), ("eig", {}), ("svd", {}), ("qr", {})])
def test_what_needs_lapack_says_so(name: str, attrs: dict[str, Any]) -> None:
    function = function_of(lambda f, a: f.ops_of(name, a, **attrs), positive(REAL[1], 3, 3))
    with pytest.raises(CodegenError, match=f"{name} .* needs LAPACK"):
        lower_plan(simple_plan(function), host_target(), blas_int=0)


# ------------------------------------------------------------------ workspaces


def query(name: str, dtype: DType, *args: Any, **options: Any) -> int:
    (routine,) = scipy_lapack.get_lapack_funcs((name,), dtype=dtype)
    return int(np.real(routine(*args, **options)[0]))


@by_dtype
@pytest.mark.parametrize("n", [1, 2, 7, 30, 100, 700])
def test_workspaces_are_as_large_as_lapack_asks_for(dtype: DType, n: int) -> None:
    item, part = dtype.itemsize, real_dtype(dtype).itemsize
    driver = "heevd" if dtype.kind == "c" else "syevd"
    assert eigh_sizes(dtype, n, 8)[1] // item >= query(f"{driver}_lwork", dtype, n, lower=1)
    for m in (n, 2 * n, 5 * n):
        for rows, columns in ((m, n), (n, m)):
            wanted = query("gesdd_lwork", dtype, rows, columns, compute_uv=1, full_matrices=0)
            assert svd_sizes(dtype, rows, columns, 8)[3] // item >= wanted
        assert qr_sizes(dtype, m, n)[2] // item >= query("geqrf_lwork", dtype, m, n)
    for vectors in (False, True):
        wanted = query("geev_lwork", dtype, n, compute_vl=0, compute_vr=int(vectors))
        assert eig_sizes(dtype, n, vectors)[4] // item >= wanted
    wanted = query("gesdd_lwork", dtype, 2 * n, n, compute_uv=1, full_matrices=1)
    assert rest_of_u_sizes(dtype, 2 * n, n, 8)[4] // item >= wanted
    assert eigh_sizes(dtype, n, 8)[2] // part >= (1 + 5 * n + 2 * n * n if dtype.kind == "c" else 0)


def test_the_generated_code_is_for_real_matrices() -> None:
    target = host_target()
    assert is_small(target, REAL[1], TINY)
    assert not is_small(target, DTYPES[3], 2)
