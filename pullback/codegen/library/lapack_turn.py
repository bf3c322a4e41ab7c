"""Transposed copies of matrices of any size, by one function for each dtype."""

from __future__ import annotations

from pullback.codegen import memory
from pullback.codegen.interleave import transpose
from pullback.codegen.lane import Lane
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import Program
from pullback.codegen.strips import element
from pullback.ir.types import DType

SIDE = 8
"""Real matrices are moved in squares of so many rows and columns, turned in registers."""


def turn_function(program: Program, dtype: DType) -> str:
    """(source, target, rows, columns, lead, apart): as many rows of the source, `lead` elements apart, become columns
    of the target, whose rows are `apart` elements apart."""
    name = f"{program.name}.turn.{dtype.str[1:]}"
    if name not in program.e.module.functions:
        params = [("ptr noalias", "source"), ("ptr noalias", "target")]
        params += [("i64", number) for number in ("rows", "columns", "lead", "apart")]
        b = program.e.function(name, params, attributes="noinline")
        _Turn(b, dtype).emit()
        b.ret()
    return name


class _Turn:
    def __init__(self, b: FunctionBuilder, dtype: DType) -> None:
        self.b = b
        self.dtype = dtype
        self.source, self.target, self.rows, self.columns, self.lead, self.apart = b.params

    def emit(self) -> None:
        """Whole squares, then what is left of the rows, then whole rows that are left."""
        b, zero = self.b, const("i64", 0)
        if self.dtype.kind == "c":
            self._one_by_one(zero, self.rows, zero, self.columns)
            return
        rows, columns = b.and_(self.rows, -SIDE), b.and_(self.columns, -SIDE)
        with b.loop(zero, rows, SIDE) as i, b.loop(zero, columns, SIDE) as j:
            self._square(i.index, j.index)
        self._one_by_one(zero, rows, columns, self.columns)
        self._one_by_one(rows, self.rows, zero, self.columns)

    def _square(self, i: V, j: V) -> None:
        b, item = self.b, self.dtype.itemsize
        here, there = self._place(self.source, i, self.lead, j), self._place(self.target, j, self.apart, i)
        steps = [b.mul(step, item) for step in (self.lead, self.apart)]
        rows = [memory.load(b, self.dtype, self._step(here, steps[0], k), 1, SIDE).re for k in range(SIDE)]
        for k, row in enumerate(transpose(b, rows)):
            memory.store(b, Lane(self.dtype, row), self._step(there, steps[1], k))

    def _one_by_one(self, first: V, last: V, start: V, stop: V) -> None:
        b = self.b
        with b.loop(first, last) as i, b.loop(start, stop) as j:
            value = memory.load(b, self.dtype, self._place(self.source, i.index, self.lead, j.index))
            memory.store(b, value, self._place(self.target, j.index, self.apart, i.index))

    def _place(self, pointer: V, row: V, apart: V, column: V) -> V:
        return element(self.b, pointer, self.dtype, self.b.add(self.b.mul(row, apart), column))

    def _step(self, pointer: V, distance: V, times: int) -> V:
        return self.b.gep("i8", pointer, self.b.mul(distance, times), flags="") if times else pointer
