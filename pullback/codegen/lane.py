"""The values that generated code computes with: a scalar of an IR dtype, or a vector of lanes of it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from pullback.codegen.llvm import V, const, lanes_of
from pullback.ir.types import BOOL, DType, real_dtype

F16 = np.dtype(np.float16)

_FLOATS = {2: "half", 4: "float", 8: "double"}


class Lane(NamedTuple):
    """One number, or one for each lane of a vector.

    Attributes
    ----------
    dtype : of the IR
    re : the number; bool is i1, float16 is half
    im : the imaginary part of a complex number
    """

    dtype: DType
    re: V
    im: V | None = None

    @property
    def lanes(self) -> int:
        return lanes_of(self.re.type)

    @property
    def parts(self) -> tuple[V, ...]:
        return (self.re,) if self.im is None else (self.re, self.im)


@cache
def element_type(dtype: DType) -> str:
    """The LLVM type of a number of `dtype` in a register; of its parts for complex."""
    if dtype.kind == "b":
        return "i1"
    if dtype.kind in "fc":
        return _FLOATS[real_dtype(dtype).itemsize]
    return f"i{8 * dtype.itemsize}"


@cache
def memory_type(dtype: DType) -> str:
    """The LLVM type of a number of `dtype` in memory: bools are bytes."""
    return "i8" if dtype == BOOL else element_type(dtype)


@cache
def vector_of(dtype: DType, lanes: int) -> str:
    """The LLVM type of `lanes` numbers of `dtype` in registers."""
    element = element_type(dtype)
    return element if lanes == 1 else f"<{lanes} x {element}>"


def lane_constant(dtype: DType, number: object, lanes: int) -> Lane:
    """`number`, rounded to `dtype` as NumPy does, in every lane."""
    value = np.asarray(number).astype(dtype)
    type_ = vector_of(dtype, lanes)
    if dtype.kind == "c":
        z = complex(value)
        return Lane(dtype, const(type_, z.real), const(type_, z.imag))
    return Lane(dtype, const(type_, value.item()))
