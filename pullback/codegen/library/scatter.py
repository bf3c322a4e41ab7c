"""gather, scatter and scatter_add of whole rows: places that are values, one index after the other."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.codegen import memory
from pullback.codegen.kernel import chunk_pointers, run_parallel
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import Frame, Program
from pullback.codegen.reduce import combine
from pullback.codegen.strips import Lines, element, lanes_for, lines_of, vector_loop
from pullback.ir.graph import Op
from pullback.ir.types import I64, DType

CHUNK = 1 << 15
"""Elements that a thread copies at a time."""


def lower_gather(frame: Frame, op: Op) -> None:
    """Rows of the operand at clamped indices."""
    (x, idx), (out,) = op.operands, op.results
    lines = lines_of(x.type.shape, op.attrs["axis"])
    count, dtype = idx.type.size, x.type.dtype
    if out.type.size == 0:
        return
    rows = max(1, CHUNK // (lines.outer * lines.inner))
    if frame.serial or rows * 2 > count:

        def emit(program: Program, b: FunctionBuilder) -> None:
            _gather_rows(program, b, b.params, lines, dtype, (const("i64", 0), const("i64", count)), count)

        frame.call(("gather", lines, count, dtype), "gather", [x, idx], [out], emit)
        return

    def chunk(b: FunctionBuilder) -> None:
        lo = b.mul(b.params[1], rows)
        hi = b.intrinsic("smin", b.add(lo, rows), count)
        _gather_rows(frame.program, b, chunk_pointers(b, 3), lines, dtype, (lo, hi), count)

    name = frame.program.chunk(("gather chunk", lines, count, dtype), "gather.chunk", chunk)
    pointers = [frame.pointer(v) for v in (x, idx, out)]
    run_parallel(frame.program.e, frame.b, name, pointers, -(-count // rows))


def _gather_rows(
    program: Program,
    b: FunctionBuilder,
    pointers: Sequence[V],
    lines: Lines,
    dtype: DType,
    part: tuple[V, V],
    count: int,
) -> None:
    source, places, target = pointers
    lanes = lanes_for(program.e.target, dtype, lines.inner)
    with b.loop(0, lines.outer) as outer, b.loop(*part) as loop:
        row = _clamped_row(b, places, loop.index, outer.index, lines)
        to = b.mul(b.add(b.mul(outer.index, count), loop.index), lines.inner)

        def strip(at: V, width: int, mask: int | None) -> None:
            value = memory.load(b, dtype, element(b, source, dtype, b.add(row, at)), 1, width, mask)
            memory.store(b, value, element(b, target, dtype, b.add(to, at)), 1, mask)

        vector_loop(b, lines.inner, lanes, strip)


def lower_scatter(frame: Frame, op: Op) -> None:
    """The base with rows replaced (of repeated indices the last wins) or added to; indices are clamped."""
    base, idx, updates = op.operands
    (out,) = op.results
    frame.copy(out, base)
    lines = lines_of(base.type.shape, op.attrs["axis"])
    count = idx.type.size
    if updates.type.size == 0 or base.type.size == 0:
        return
    dtype, adds = base.type.dtype, op.name == "scatter_add"

    def emit(program: Program, b: FunctionBuilder) -> None:
        places, values, target = b.params
        s = program.e.scalars(b)
        lanes = lanes_for(program.e.target, dtype, lines.inner)
        with b.loop(0, lines.outer) as outer, b.loop(0, count) as loop:
            row = _clamped_row(b, places, loop.index, outer.index, lines)
            source = b.mul(b.add(b.mul(outer.index, count), loop.index), lines.inner)

            def strip(at: V, width: int, mask: int | None) -> None:
                value = memory.load(b, dtype, element(b, values, dtype, b.add(source, at)), 1, width, mask)
                address = element(b, target, dtype, b.add(row, at))
                if adds:
                    value = combine(s, "sum", memory.load(b, dtype, address, 1, width, mask), value)
                memory.store(b, value, address, 1, mask)

            vector_loop(b, lines.inner, lanes, strip)

    frame.call((op.name, lines, count, dtype), op.name, [idx, updates], [out], emit)


def _clamped_row(b: FunctionBuilder, places: V, number: V, outer: V, lines: Lines) -> V:
    """First element of the row that index `number` names."""
    place = b.load("i64", element(b, places, I64, number), 8)
    place = b.intrinsic("smin", b.intrinsic("smax", place, 0), lines.length - 1)
    return b.mul(b.add(b.mul(outer, lines.length), place), lines.inner)
