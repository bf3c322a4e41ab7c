"""Calls of BLAS, under its logical names (`cblas_dgemm`), which the runtime binds to the library that NumPy uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pullback.codegen.gemm import Matrices
from pullback.codegen.kernel import Emission
from pullback.codegen.lane import element_type
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.ir.types import DType, real_dtype
from pullback.record import record

_LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
_ROW_MAJOR, _NO_TRANS, _TRANS = 101, 111, 112


@record(frozen=True)
class BlasCall:
    """A product and the width of the library's integers in bytes."""

    matrices: Matrices
    int_bytes: int


def is_blas_dtype(dtype: DType) -> bool:
    """Does BLAS compute with it."""
    return dtype.str[1:] in _LETTERS


def emit_blas(
    e: Emission,
    b: FunctionBuilder,
    call: BlasCall,
    x: V,
    y: V,
    out: V,
    rows: V | None = None,
    columns: V | None = None,
) -> None:
    """out = x @ y by `gemm`, row-major; of so many rows or columns only, if they are given (i64)."""
    shapes = call.matrices
    name = f"cblas_{_LETTERS[shapes.dtype.str[1:]]}gemm"
    whole = f"i{8 * call.int_bytes}"
    scalar = "ptr" if shapes.dtype.kind == "c" else element_type(shapes.dtype)
    x_trans, x_lead = _layout(*shapes.x, shapes.m, shapes.k)
    y_trans, y_lead = _layout(*shapes.y, shapes.k, shapes.n)
    one, zero = _scalars(b, shapes.dtype)
    args = [
        *(const("i32", n) for n in (_ROW_MAJOR, x_trans, y_trans)),
        *(_count(b, whole, n, part) for n, part in ((shapes.m, rows), (shapes.n, columns), (shapes.k, None))),
        *(one, x, const(whole, x_lead), y, const(whole, y_lead)),
        *(zero, out, const(whole, shapes.n)),
    ]
    types = ("i32", "i32", "i32", whole, whole, whole, scalar, "ptr", whole, "ptr", whole, scalar, "ptr", whole)
    b.call("void", e.external(name, "void", types), args)


def _count(b: FunctionBuilder, whole: str, size: int, part: V | None) -> V:
    if part is None:
        return const(whole, size)
    return part if whole == "i64" else b.cast("trunc", part, whole)


def _layout(row: int, column: int, rows: int, columns: int) -> tuple[int, int]:
    """Transposed or not, and the leading dimension, of a matrix with these strides."""
    if column == 1 or columns == 1:
        return _NO_TRANS, max(row, columns)
    return _TRANS, max(column, rows)


def _scalars(b: FunctionBuilder, dtype: DType) -> tuple[V, V]:
    if dtype.kind != "c":
        return const(element_type(dtype), 1.0), const(element_type(dtype), 0.0)
    part = real_dtype(dtype).type
    one = part(1).tobytes() + part(0).tobytes()
    return b.module.constant(one), b.module.constant(bytes(dtype.itemsize))


@contextmanager
def one_blas_thread(e: Emission, b: FunctionBuilder) -> Iterator[None]:
    """While what is emitted inside runs, the BLAS has one thread: its own would wait for the pool's, and the pool's for
    them. For a BLAS that can be told."""
    get, set_ = (f"openblas_{verb}_num_threads" for verb in ("get", "set"))
    e.external(get, "i32", ())
    e.external(set_, "void", ("i32",))
    e.external("pb_blas_enter", "void", ("ptr", "ptr"))
    e.external("pb_blas_leave", "void", ("ptr",))
    b.call("void", "pb_blas_enter", [V(f"@{get}", "ptr"), V(f"@{set_}", "ptr")])
    yield
    b.call("void", "pb_blas_leave", [V(f"@{set_}", "ptr")])
