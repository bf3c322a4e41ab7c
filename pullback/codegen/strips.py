"""Loops over contiguous elements in vectors, for routines that are written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from pullback.codegen.lane import F16
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.target import Target
from pullback.ir.types import DType, Shape

# emit(first element, lanes, how many of them take part or None for all)
Strip = Callable[[V, int, int | None], None]


class Lines(NamedTuple):
    """An array seen along one axis: `outer` blocks of `length` rows of `inner` contiguous elements."""

    outer: int
    length: int
    inner: int


def lines_of(shape: Shape, axis: int) -> Lines:
    """The lines along `axis`."""
    return Lines(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))


def lanes_for(target: Target, dtype: DType, count: int) -> int:
    """Lanes for `count` elements: those of a whole vector, or of the smallest that holds them all."""
    if dtype.kind == "c":
        return 1
    lanes = min(target.lanes(4 if dtype == F16 else dtype.itemsize), 16)
    while lanes // 2 >= count:
        lanes //= 2
    return lanes


def vector_loop(b: FunctionBuilder, count: int, lanes: int, emit: Strip) -> None:
    """Cover `count` elements by vectors; the last one may be narrower, or masked."""
    whole = count // lanes * lanes
    if whole == lanes:
        emit(const("i64", 0), lanes, None)
    elif whole:
        with b.loop(0, whole, lanes) as loop:
            emit(loop.index, lanes, None)
    rest = count - whole
    if rest:
        while lanes // 2 >= rest:
            lanes //= 2
        emit(const("i64", whole), lanes, rest if rest < lanes else None)


def element(b: FunctionBuilder, pointer: V, dtype: DType, index: V) -> V:
    """Address of an element."""
    return b.gep("i8", pointer, b.mul(index, dtype.itemsize), flags="")
