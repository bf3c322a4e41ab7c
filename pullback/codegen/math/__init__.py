"""Math functions as LLVM text: float32 and float64, any vector width, with stated error bounds."""

from pullback.codegen.math.calls import MathCalls, Shared
from pullback.codegen.math.table import MATH, MathFunction, emit

__all__ = ["MATH", "MathCalls", "MathFunction", "Shared", "emit"]
