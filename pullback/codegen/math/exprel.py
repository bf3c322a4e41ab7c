"""exprel and its derivatives: the integrals of t**n exp(x t) over 0 < t < 1."""

from __future__ import annotations

import math

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math.exp import LIMITS, exp_pair, expm1
from pullback.codegen.math.kit import (
    INF,
    Pair,
    at_least,
    at_most,
    constant,
    copysign,
    fabs,
    in_double,
    polynomial,
    scale_by,
)
from pullback.errors import CodegenError

HIGHEST = 104
TERM = 2.0**-60
OVERFLOWS = 760.0


def exprel(b: FunctionBuilder, x: V, n: int) -> V:
    """The n-th derivative of (exp(x) - 1) / x.

    Raises
    ------
    CodegenError : n is out of range
    """
    if not 0 <= n <= HIGHEST:
        raise CodegenError(f"exprel needs a derivative 0 <= n <= {HIGHEST}, found n = {n}")
    return in_double(b, lambda inner, wide: exprel_of_double(inner, wide, n), x)


def exprel_of_double(b: FunctionBuilder, x: V, n: int) -> V:
    limit = n + 2.0
    size = fabs(b, x)
    inside = at_most(b, size, limit)
    value = b.select(b.fcmp("ole", size, limit), near(b, copysign(b, inside, x), n, limit), far(b, x, n, limit))
    return b.select(b.fcmp("ult", x, OVERFLOWS), b.select(b.fcmp("uno", x, x), x, value), INF)


def near(b: FunctionBuilder, x: V, n: int, limit: float) -> V:
    """Sums of positive terms: of x**k / (k! (k + n + 1)) above 0, of |x|**k n! / (k + n + 1)! times exp(x) below."""
    if not n:
        zero = b.fcmp("oeq", x, 0.0)
        safe = b.select(zero, 1.0, x)
        return b.select(zero, 1.0, b.fdiv(expm1(b, safe), safe))
    above, below, k = [1.0 / (n + 1)], [1.0 / (n + 1)], 0
    while limit**k * above[-1] > TERM:
        k += 1
        above.append(1.0 / (math.factorial(k) * (k + n + 1)))
        below.append(below[-1] / (k + n + 1))
    size, positive = fabs(b, x), b.fcmp("oge", x, 0.0)
    power, exponent = exp_pair(b, Pair(at_most(b, x, 0.0), constant(x, 0.0)))
    first = polynomial(b, size, {"double": tuple(above)})
    second = polynomial(b, size, {"double": tuple(below)})
    return b.select(positive, first, scale_by(b, b.fmul(second, b.fadd(power.hi, power.lo)), exponent))


def far(b: FunctionBuilder, x: V, n: int, limit: float) -> V:
    """By parts: x f(n) = exp(x) - n f(n - 1); above 0 with exp(x) taken out."""
    positive = b.fcmp("ogt", x, 0.0)
    size = at_least(b, fabs(b, x), limit)
    bounded = at_most(b, size, -LIMITS["double"].lowest)
    power, exponent = exp_pair(b, Pair(b.fneg(bounded), constant(x, 0.0)))
    small = scale_by(b, b.fadd(power.hi, power.lo), exponent)
    inverse = b.rfdiv(1.0, size)
    one, lead = b.rfsub(1.0, small), b.select(positive, constant(x, 1.0), b.fneg(small))
    value = b.fdiv(one, size)
    for k in range(1, n + 1):
        step = b.fmul(value, float(k))
        value = b.fmul(b.fadd(lead, b.select(positive, b.fneg(step), step)), inverse)
    power, exponent = exp_pair(b, Pair(b.select(positive, at_most(b, size, OVERFLOWS), 0.0), constant(x, 0.0)))
    return scale_by(b, b.fmul(value, b.fadd(power.hi, power.lo)), exponent)
