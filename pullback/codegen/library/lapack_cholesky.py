"""Cholesky factors of real matrices in generated code: tiny ones entry by entry, others in tiles.

In tiles it is the upper factor U = L**T that is made, in place of the transposed matrix, rows of tiles from the top:
what the rows above contribute to a tile is a product of matrices, with the tile in registers; the tile on the diagonal
is then factored in registers, and the others of its row are solved for with it.
"""

from __future__ import annotations

from pullback.codegen import memory
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.library.lapack_calls import Lapack
from pullback.codegen.library.lapack_triangle import TILE_ROWS, Tile, Triangle, TriangleSolver
from pullback.codegen.llvm import V, const
from pullback.codegen.scalars import Scalars
from pullback.codegen.strips import element
from pullback.ir.types import DType


def cholesky_small(s: Scalars, dtype: DType, n: int, a: V, out: V) -> V:
    """L of the lower triangle of a real `a`, entry by entry; i1: is a pivot not positive (NaN goes through)."""
    b = s.b
    factor: dict[tuple[int, int], Lane] = {}
    failed = const("i1", False)
    for j in range(n):
        for i in range(j, n):
            entry = memory.load(b, dtype, memory.offset(b, a, dtype, i * n + j))
            for k in range(j):
                entry = s.multiply_add(s.math("neg", factor[i, k]), factor[j, k], entry)
            factor[i, j] = entry
        pivot = factor[j, j]
        failed = b.or_(failed, b.fcmp("ole", pivot.re, 0.0))
        factor[j, j] = root = s.math("sqrt", pivot)
        for i in range(j + 1, n):
            factor[i, j] = s.binary("div", factor[i, j], root)
    zero = lane_constant(dtype, 0.0, 1)
    for i in range(n):
        for j in range(n):
            memory.store(b, factor.get((i, j), zero), memory.offset(b, out, dtype, i * n + j))
    return failed


# ------------------------------------------------------------------ in tiles


def padded(n: int) -> int:
    """Rows of whole tiles."""
    return -(-n // TILE_ROWS) * TILE_ROWS


def tiles_scratch(dtype: DType, n: int) -> int:
    """Bytes that `cholesky_tiles` works in."""
    return padded(n) ** 2 * dtype.itemsize


def cholesky_tiles(lapack: Lapack, n: int, a: V, out: V, scratch: V) -> V:
    """L of the lower triangle of a real `a`; i1: is a pivot not positive."""
    b, dtype, size = lapack.b, lapack.dtype, padded(n)
    s = lapack.program.e.scalars(b)
    lapack.turned(scratch, a, n, n, apart=size)
    if size > n:
        _pad(s, dtype, n, scratch)
    shape = Triangle(dtype, size, True, (1, size), False)
    solver = TriangleSolver(s, lapack.program.e.target, shape, size, (scratch, scratch, scratch))
    with b.loop(0, size, TILE_ROWS, carry=[const("i1", False)]) as loop:
        failed = _factor(solver.tile(loop.index, loop.index, TILE_ROWS))
        with b.loop(b.add(loop.index, TILE_ROWS), size, TILE_ROWS) as strips:
            solver.tile(loop.index, strips.index, TILE_ROWS).solve()
        loop.turn(b.or_(loop.carry[0], failed))
    lapack.turned(out, scratch, n, n, lead=size)
    lapack.clear_rows(out, n, above=True)
    return loop.results[0]


def _pad(s: Scalars, dtype: DType, n: int, matrix: V) -> None:
    """Let rows and columns behind the matrix be those of the identity."""
    b, size, item = s.b, padded(n), dtype.itemsize
    rest = size - n
    with b.loop(0, n) as loop:
        b.memset(element(b, matrix, dtype, b.add(b.mul(loop.index, size), n)), 0, rest * item, item)
    b.memset(memory.offset(b, matrix, dtype, n * size), 0, rest * size * item, item)
    for k in range(n, size):
        memory.store(b, lane_constant(dtype, 1.0, 1), memory.offset(b, matrix, dtype, k * (size + 1)))


def _factor(tile: Tile) -> V:
    """Factor a tile on the diagonal; i1: is a pivot not positive."""
    s, b, dtype = tile.solver.s, tile.b, tile.solver.shape.dtype
    values = tile.less_known(tile.load(tile.solver.rhs))
    failed = const("i1", False)
    for r in range(TILE_ROWS):
        pivot = Lane(dtype, b.extract(values[r].re, r))
        failed = b.or_(failed, b.fcmp("ole", pivot.re, 0.0))
        inverse = s.binary("div", lane_constant(dtype, 1.0, 1), s.math("sqrt", pivot))
        values[r] = s.binary("mul", values[r], memory.splat(b, inverse, TILE_ROWS))
        for later in range(r + 1, TILE_ROWS):
            values[later] = tile.less(values[later], Lane(dtype, b.extract(values[r].re, later)), values[r])
    tile.store(values)
    return failed
