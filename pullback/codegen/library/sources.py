"""Constants as buffers."""

from __future__ import annotations

from pullback.codegen import memory
from pullback.codegen.fill import copy, fill
from pullback.codegen.lane import lane_constant
from pullback.codegen.program import Frame
from pullback.ir.graph import Op

SMALL = 8
"""Constants of so few elements are stored number by number, which LLVM can look through."""


def lower_constant(frame: Frame, op: Op) -> None:
    """A constant in its own buffer; one that is planned to lie in the object needs nothing."""
    (result,) = op.results
    array = op.attrs["value"].array
    if array.size == 0 or frame.is_constant(result):
        return
    b, pointer = frame.b, frame.pointer(result)
    flat = array.reshape(-1)
    if array.size <= SMALL:
        for k in range(array.size):
            lane = lane_constant(array.dtype, flat[k], 1)
            memory.store(b, lane, memory.offset(b, pointer, array.dtype, k))
    elif array.tobytes() == flat[:1].tobytes() * array.size:
        fill(b, pointer, array.dtype, flat[0], array.size)
    else:
        copy(b, pointer, b.module.constant(array.tobytes()), array.nbytes, array.dtype.itemsize)
