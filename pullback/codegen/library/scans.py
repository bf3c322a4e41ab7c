"""Running sums, products and extrema along an axis."""

from __future__ import annotations

from collections.abc import Callable

from pullback.codegen import memory
from pullback.codegen.lane import Lane
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.program import Frame, Program
from pullback.codegen.reduce import combine
from pullback.codegen.strips import Lines, element, lanes_for, lines_of, vector_loop
from pullback.ir.graph import Op
from pullback.ir.kernel import StoreKind
from pullback.ir.types import DType

_KINDS: dict[str, StoreKind] = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}


def lower_running(frame: Frame, op: Op) -> None:
    """`cumsum cumprod cummax cummin`: one step after the other, whole rows at a time where rows are contiguous."""
    (x,), (out,) = op.operands, op.results
    lines = lines_of(x.type.shape, op.attrs["axis"])
    if x.type.size == 0:
        return
    key = (op.name, lines, x.type.dtype, op.attrs["reverse"])

    def emit(program: Program, b: FunctionBuilder) -> None:
        source, target = b.params
        _emit(program, b, source, target, lines, x.type.dtype, _KINDS[op.name], op.attrs["reverse"])

    frame.call(key, op.name, [x], [out], emit)


def _emit(
    program: Program,
    b: FunctionBuilder,
    source: V,
    target: V,
    lines: Lines,
    dtype: DType,
    kind: StoreKind,
    reverse: bool,
) -> None:
    s = program.e.scalars(b)
    lanes = lanes_for(program.e.target, dtype, lines.inner)
    step = -lines.inner if reverse else lines.inner
    first = (lines.length - 1) * lines.inner if reverse else 0

    def block(outer: V) -> None:
        start = b.add(b.mul(outer, lines.length * lines.inner), first)

        def strip(at: V, width: int, mask: int | None) -> None:
            place = b.add(start, at)
            total = memory.load(b, dtype, element(b, source, dtype, place), 1, width, mask)
            memory.store(b, total, element(b, target, dtype, place), 1, mask)
            with b.loop(1, lines.length, carry=total.parts) as loop:
                here = b.add(place, b.mul(loop.index, step))
                new = memory.load(b, dtype, element(b, source, dtype, here), 1, width, mask)
                total = combine(s, kind, Lane(dtype, *loop.carry), new)
                memory.store(b, total, element(b, target, dtype, here), 1, mask)
                loop.turn(*total.parts)

        vector_loop(b, lines.inner, lanes, strip)

    for_each(b, lines.outer, block)


def for_each(b: FunctionBuilder, count: int, emit: Callable[[V], None]) -> None:
    """A loop over 0..count-1."""
    with b.loop(0, count) as loop:
        emit(loop.index)
