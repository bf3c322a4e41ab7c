"""Factors that several solves share: a solve and its reverse, or two solves with one matrix, factor it once.

The first solve of a region leaves the factors (LU, column by column, and LAPACK's pivots) in memory that is the
program's from beginning to end; the others find them there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pullback.codegen.library.batches import Site, Work
from pullback.codegen.library.lapack_calls import Lapack, Parts, cost, total
from pullback.codegen.library.lapack_columns import is_small
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.program import Factors, Program, aligned
from pullback.codegen.target import Target
from pullback.ir import failures
from pullback.ir.graph import Function, Op, Region, Value, walk
from pullback.ir.types import DType, TensorType


def shared_factors(function: Function, target: Target, int_bytes: int) -> tuple[Mapping[Op, Factors], int]:
    """For each solve whose matrix another one of its region has too: where the factors are; and the bytes they take.

    Not for matrices that generated code solves with faster than LAPACK.
    """
    found: dict[Op, Factors] = {}
    size = 0
    for region in _regions(function.body) if int_bytes else ():
        groups: dict[Value, list[Op]] = {}
        for op in region.ops:
            if op.name == "solve" and not is_small(target, wide_dtype(op), op.operands[0].type.shape[-1]):
                groups.setdefault(op.operands[0], []).append(op)
        for matrix, ops in groups.items():
            if len(ops) > 1 and all(op.results[0].type.size for op in ops):
                sizes = [matrix.type.size * wide_dtype(ops[0]).itemsize, pivot_bytes(matrix.type, int_bytes)]
                found.update((op, Factors(size, size + aligned(sizes[0]), op is ops[0])) for op in ops)
                size += total(sizes)
    return found, size


def _regions(body: Region) -> Iterator[Region]:
    yield body
    for op in walk(body):
        if op.name != "rows":  # whose turns may run at once
            yield from op.regions


def wide_dtype(op: Op) -> DType:
    """What LAPACK computes the op in: double precision, as NumPy has it."""
    dtype = op.operands[0].type.dtype
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def pivot_bytes(matrix: TensorType, int_bytes: int) -> int:
    """The size of the pivots of a batch of matrices."""
    return matrix.size // matrix.shape[-1] * int_bytes


def factor(lapack: Lapack, n: int, a: V, factors: V, pivots: V) -> V:
    """`getrf` of A; i1: is it singular."""
    lapack.turned(factors, a, n, n)
    return lapack.call("getrf", n, n, factors, n, pivots)


def solve_factored(
    lapack: Lapack, n: int, columns: int, trans: str, places: Sequence[V], rhs: V, out: V, scratch: V
) -> None:
    """`getrs` with op(A)."""
    factors, pivots = places
    if columns == 1:
        lapack.copied(out, rhs, n)
        lapack.call("getrs", trans, n, 1, factors, n, pivots, out, n)
        return
    (sides,) = Parts(lapack.b, scratch, factored_sizes(lapack.dtype, n, columns)).places
    lapack.turned(sides, rhs, n, columns)
    lapack.call("getrs", trans, n, columns, factors, n, pivots, sides, n)
    lapack.turned(out, sides, columns, n)


def factored_sizes(dtype: DType, n: int, columns: int) -> list[int]:
    """Scratch of `solve_factored`: the right sides column by column if there are several."""
    return [n * columns * dtype.itemsize if columns > 1 else 0]


def solve_shared(site: Site, shared: Factors, trans: str) -> None:
    """op(A)**-1 B for each pair, where another solve has the matrix too: by the factors that the first one leaves."""
    a, rhs, _ = site.types
    n, columns, dtype, frame = a.shape[-1], rhs.shape[-1], a.dtype, site.frame
    pivots = TensorType(np.dtype(f"i{frame.program.blas_int}"), a.shape[:-1])
    places = (frame.behind_arena(shared.place), frame.behind_arena(shared.pivots))

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> V | None:
        lapack = Lapack(program, b, dtype)
        matrix, sides, out, *places = pointers
        failed = factor(lapack, n, matrix, *places) if shared.first else None
        solve_factored(lapack, n, columns, trans, places, sides, out, scratch)
        return failed

    flops = (2 * n**3 / 3 if shared.first else 0.0) + 2.0 * n * n * columns
    key = ("solve.factored", dtype, n, columns, trans, shared.first)
    scratch = total(factored_sizes(dtype, n, columns))
    work = Work(key, scratch, cost(flops), failures.SINGULAR if shared.first else 0, max(n, columns))
    replace(site, types=(*site.types, a, pivots), pointers=(*site.pointers, *places)).run(2, work, member)
