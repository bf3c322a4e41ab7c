"""scatter and scatter_add: writing to places that are values, one index after the other."""

from __future__ import annotations

from pullback.codegen import memory
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.program import Frame, Program
from pullback.codegen.reduce import combine
from pullback.codegen.strips import Lines, element, lanes_for, lines_of, vector_loop
from pullback.ir.graph import Op
from pullback.ir.types import I64


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
