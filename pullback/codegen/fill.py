"""Writing one number to a whole buffer, and copying buffers."""

from __future__ import annotations

import numpy as np

from pullback.codegen import memory
from pullback.codegen.lane import lane_constant
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.ir.types import DType

_LANES = 8
_UNROLLED = 8


def fill(b: FunctionBuilder, pointer: V, dtype: DType, number: float, count: int) -> None:
    """`count` elements of `number` from `pointer` on."""
    if not any(np.asarray(number).astype(dtype).tobytes()):
        b.memset(pointer, 0, count * dtype.itemsize, dtype.itemsize)
        return
    lanes = 1 if dtype.kind == "c" else _LANES
    wide, one = lane_constant(dtype, number, lanes), lane_constant(dtype, number, 1)
    whole = count // lanes * lanes
    if whole > _UNROLLED * lanes:
        with b.loop(0, whole, lanes) as loop:
            memory.store(b, wide, b.gep("i8", pointer, b.mul(loop.index, dtype.itemsize)))
    else:
        for at in range(0, whole, lanes):
            memory.store(b, wide, memory.offset(b, pointer, dtype, at))
    for at in range(whole, count):
        memory.store(b, one, memory.offset(b, pointer, dtype, at))


def copy(b: FunctionBuilder, target: V, source: V, nbytes: int, align: int) -> None:
    """Copy a buffer to another one that does not overlap it."""
    if nbytes:
        b.memcpy(target, source, nbytes, align)
