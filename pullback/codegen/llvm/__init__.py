"""A small, fast builder of LLVM IR text.

A module is a list of strings; nothing is modelled that a string can hold. One instruction costs about one
microsecond, a tenth of what an object model of LLVM costs, and the text is what `dump` shows.

Values are `V`: the printed name and the printed type. Wherever a value is expected beside another one, a Python
number may stand for a constant of the same type (`b.fma(x, x, 1.0)`); vectors get splats.
"""

from pullback.codegen.llvm.builder import FunctionBuilder
from pullback.codegen.llvm.flow import Loop, Phi
from pullback.codegen.llvm.module import Module
from pullback.codegen.llvm.values import (
    Operand,
    V,
    as_value,
    const,
    const_lanes,
    element_of,
    lanes_of,
    scalar_literal,
    suffix_of,
    undefined,
    vector_type,
    with_element,
)

__all__ = [
    "FunctionBuilder",
    "Loop",
    "Module",
    "Operand",
    "Phi",
    "V",
    "as_value",
    "const",
    "const_lanes",
    "element_of",
    "lanes_of",
    "scalar_literal",
    "suffix_of",
    "undefined",
    "vector_type",
    "with_element",
]
