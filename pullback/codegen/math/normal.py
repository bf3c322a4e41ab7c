"""erfcx, ndtr, log_ndtr: exp(-x**2 / 2) and erfcx, either as a pair. Floats are computed as doubles and rounded."""

from __future__ import annotations

import math

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math.erf import erfcx_pair, exp_of_minus_square
from pullback.codegen.math.exp import exp
from pullback.codegen.math.kit import (
    Pair,
    at_most,
    constant,
    fabs,
    fast_two_sum,
    horner,
    in_double,
    scale_by,
    two_product,
)
from pullback.codegen.math.log import log_of_pair
from pullback.codegen.math.quadrature import half_line

SQRT_HALF = (float.fromhex("0x1.6a09e667f3bcdp-1"), float.fromhex("-0x1.bdd3413b26456p-55"))
SQRT_PI = (float.fromhex("0x1.c5bf891b4ef6bp+0"), float.fromhex("-0x1.618f13eb7ca89p-54"))
TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
NEAR_UP_TO = 28.0
ZERO_FROM = 38.6  # ndtr(-x) is 0 from there on
EXP_OVERFLOWS = 27.0  # exp(x**2) is infinite from there on
HUGE = 2.0**1000  # repeated integrals are 0 from there on
FAR_SERIES = (1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875)  # of sqrt(pi) x erfcx(x) in 1 / x**2


def erfcx(b: FunctionBuilder, x: V, n: int) -> V:
    """exp(x**2) erfc(x); for n > 0 exp(x**2) times the n-th repeated integral of erfc, which the derivatives are."""
    return in_double(b, (lambda inner, wide: erfcx_of_order(inner, wide, n)) if n else erfcx_of_double, x)


def erfcx_of_double(b: FunctionBuilder, x: V) -> V:
    """2 exp(x**2) - erfcx(-x) below 0."""
    positive = erfcx_anywhere(b, fabs(b, x))
    size = at_most(b, fabs(b, x), EXP_OVERFLOWS)
    power, exponent = exp_of_minus_square(b, size, -1.0)
    lead = scale_by(b, b.fmul(power.hi, 2.0), exponent)
    rest = scale_by(b, b.fmul(power.lo, 2.0), exponent)
    below = b.fadd(lead, b.fsub(b.fsub(rest, positive.hi), positive.lo))
    below = b.select(b.fcmp("olt", x, -EXP_OVERFLOWS), math.inf, below)
    return b.select(b.fcmp("olt", x, 0.0), below, b.fadd(positive.hi, positive.lo))


def erfcx_anywhere(b: FunctionBuilder, x: V) -> Pair:
    """erfcx of x >= 0."""
    near = erfcx_pair(b, at_most(b, x, NEAR_UP_TO))
    far = b.fcmp("ogt", x, NEAR_UP_TO)
    big = b.select(far, x, NEAR_UP_TO)
    inverse = b.rfdiv(1.0, big)
    series = horner(b, b.fmul(inverse, inverse), FAR_SERIES)
    quotient = b.fdiv(b.fmul(series, 1.0 / SQRT_PI[0]), big)
    return Pair(b.select(far, quotient, near.hi), b.select(far, 0.0, near.lo))


def erfcx_of_root_half(b: FunctionBuilder, x: V) -> Pair:
    """erfcx(x / sqrt(2)) of x >= 0, with what the argument loses made up by the derivative."""
    t = b.fmul(x, SQRT_HALF[0])
    lost = b.fma(x, SQRT_HALF[1], b.fma(x, SQRT_HALF[0], b.fneg(t)))
    value = erfcx_anywhere(b, t)
    slope = b.fma(b.fmul(t, 2.0), value.hi, -TWO_OVER_SQRT_PI)
    close = b.fcmp("olt", t, NEAR_UP_TO)  # beyond, the slope has no digits, and is small
    return Pair(value.hi, b.fadd(value.lo, b.select(close, b.fmul(lost, slope), 0.0)))


def half_tail(b: FunctionBuilder, size: V, other: Pair) -> Pair:
    """ndtr(-size) from erfcx(size / sqrt(2))."""
    gauss, exponent = exp_of_minus_square(b, at_most(b, size, ZERO_FROM), 0.5)
    product = two_product(b, b.fmul(gauss.hi, 0.5), other.hi)
    lo = b.fma(b.fmul(gauss.hi, 0.5), other.lo, b.fma(b.fmul(gauss.lo, 0.5), other.hi, product.lo))
    total = fast_two_sum(b, product.hi, lo)
    return Pair(scale_by(b, total.hi, exponent), scale_by(b, total.lo, exponent))


def ndtr(b: FunctionBuilder, x: V) -> V:
    """Distribution function of the normal distribution."""
    return in_double(b, ndtr_of_double, x)


def ndtr_of_double(b: FunctionBuilder, x: V) -> V:
    size = at_most(b, fabs(b, x), ZERO_FROM)
    tail = half_tail(b, size, erfcx_of_root_half(b, size))
    return b.select(b.fcmp("ogt", x, 0.0), b.rfsub(1.0, tail.hi), b.fadd(tail.hi, tail.lo))


def log_ndtr(b: FunctionBuilder, x: V) -> V:
    """log(erfcx(-x / sqrt(2)) / 2) - x**2 / 2 below 0, log(1 - ndtr(-x)) above."""
    return in_double(b, log_ndtr_of_double, x)


def log_ndtr_of_double(b: FunctionBuilder, x: V) -> V:
    size = fabs(b, x)
    other = erfcx_of_root_half(b, size)
    tail = half_tail(b, size, other)
    one = fast_two_sum(b, constant(x, 1.0), b.fneg(tail.hi))
    negative = b.fcmp("olt", x, 0.0)
    hi = b.select(negative, b.fmul(other.hi, 0.5), one.hi)
    lo = b.select(negative, b.fmul(other.lo, 0.5), b.fsub(one.lo, tail.lo))
    logarithm = log_of_pair(b, Pair(hi, lo), None)
    square = two_product(b, size, size)
    lost = b.select(b.fcmp("olt", square.hi, math.inf), b.fmul(square.lo, 0.5), 0.0)
    below = b.fsub(b.fsub(logarithm, lost), b.fmul(square.hi, 0.5))
    return b.fneg(fabs(b, b.select(negative, below, logarithm)))  # -0 far above


# --- repeated integrals ---------------------------------------------------------------------------------------------


def erfcx_of_order(b: FunctionBuilder, x: V, n: int) -> V:
    """For x >= 0, 2 / (sqrt(pi) n!) times the integral of t**n exp(-t**2 - 2 x t)."""
    size = fabs(b, x)

    def integrand(t: V) -> list[V]:
        value = exp(b, b.fneg(b.fmul(t, b.fma(size, 2.0, t))))
        for _ in range(n):
            value = b.fmul(value, t)
        return [value]

    (integral,) = half_line(b, b.rfdiv(1.0, b.fadd(size, 1.0)), 1, integrand)
    positive = b.fmul(integral, TWO_OVER_SQRT_PI / math.factorial(n))
    positive = b.select(b.fcmp("oge", size, HUGE), 0.0, positive)
    return b.select(b.fcmp("olt", x, 0.0), below_zero(b, x, n), positive)


def below_zero(b: FunctionBuilder, x: V, n: int) -> V:
    """By the recurrence 2 k g(k) = g(k - 2) - 2 x g(k - 1), whose terms are positive."""
    before, value = constant(x, TWO_OVER_SQRT_PI), erfcx_of_double(b, x)
    for k in range(1, n + 1):
        before, value = value, b.fmul(b.fma(b.fmul(x, -2.0), value, before), 0.5 / k)
    return value
