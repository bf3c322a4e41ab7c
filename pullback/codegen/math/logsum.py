"""logaddexp and logaddexp2."""

from __future__ import annotations

from collections.abc import Callable

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math.exp import exp, exp2
from pullback.codegen.math.kit import INF, fabs, two_sum
from pullback.codegen.math.log import log1p, log2_of_1p

LN2 = 0.6931471805599453


def logaddexp(b: FunctionBuilder, x: V, y: V) -> V:
    """The larger, plus log1p(exp(smaller - larger))."""
    return larger_plus(b, x, y, exp, lambda power: log1p(b, power), 1.0)


def logaddexp2(b: FunctionBuilder, x: V, y: V) -> V:
    """The larger, plus log2(1 + 2**(smaller - larger))."""
    return larger_plus(b, x, y, exp2, lambda power: log2_of_1p(b, power), LN2)


def larger_plus(
    b: FunctionBuilder,
    x: V,
    y: V,
    power: Callable[[FunctionBuilder, V], V],
    rest: Callable[[V], V],
    derivative: float,
) -> V:
    """The error is below 2 units in the last place of the largest of |x|, |y| and the result.

    Where a negative operand and the logarithm nearly cancel, that is not small beside the result; NumPy's formula,
    which this is, has the same weakness.
    """
    greater = b.fcmp("ogt", x, y)
    larger, smaller = b.select(greater, x, y), b.select(greater, y, x)
    difference = two_sum(b, smaller, b.fneg(larger))
    # Equal infinities differ by NaN, but their sum is that infinity.
    exponent = b.select(b.fcmp("oeq", x, y), 0.0, difference.hi)
    lo = b.select(b.fcmp("olt", fabs(b, difference.hi), INF), difference.lo, 0.0)
    value = power(b, exponent)
    return b.fadd(larger, rest(b.fma(value, b.fmul(lo, derivative), value)))
