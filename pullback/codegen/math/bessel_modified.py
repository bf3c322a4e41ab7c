"""Modified Bessel functions I and K of integer order, with exp(-|x|) or exp(x) taken out (ive, kve) or not (iv, kv).

Orders 0 and 1: pieces in quarters of octaves, then a polynomial in 1 / x. Higher orders of K by recurrence, of I by the
power series, whose terms are all positive, and from half of n**2 on by recurrence.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import bessel_modified_pieces as pieces
from pullback.codegen.math import special_coefficients as c
from pullback.codegen.math.bessel import check_order, lead, odd, series_length
from pullback.codegen.math.coefficients import Coefficients
from pullback.codegen.math.exp import LIMITS, exp, exp_pair
from pullback.codegen.math.kit import (
    INF,
    NAN,
    Exponent,
    Pair,
    at_least,
    at_most,
    constant,
    fabs,
    fast_two_sum,
    in_double,
    pair_quotient,
    pieces_pair,
    polynomial,
    quarter_of_octave,
    scale_by,
    sqrt_pair,
    two_product,
)
from pullback.codegen.math.log import log

I_PIECES_END, K_PIECES_END = 15.0, 16.0
HIGHEST_I, HIGHEST_K = 34, 104
SERIES_TERMS = 12  # of K below 1
LOG_TWO_LESS_EULER = 0.11593151565841245
SQRT_HALF_PI = (float.fromhex("0x1.40d931ff62706p+0"), float.fromhex("-0x1.a6a0d6f814637p-54"))
INVERSE_SQRT_TWO_PI = (float.fromhex("0x1.9884533d43651p-2"), float.fromhex("-0x1.cbc0d30ebfd15p-56"))
LARGEST = 760.0  # exp of it is infinite beside any power

I_ROWS, I_FAR = (pieces.I0, pieces.I1), (c.I0_FAR, c.I1_FAR)
K_ROWS, K_FAR = (pieces.K0, pieces.K1), (c.K0_FAR, c.K1_FAR)


def iv(b: FunctionBuilder, x: V, n: int) -> V:
    """The modified Bessel function of the first kind, of order n; NaN at both infinities."""
    check_order("iv", n, HIGHEST_I)
    return in_double(b, lambda inner, wide: first_kind(inner, wide, n, scaled=False), x)


def ive(b: FunctionBuilder, x: V, n: int) -> V:
    """exp(-|x|) iv(n, x); 0 at both infinities."""
    check_order("ive", n, HIGHEST_I)
    return in_double(b, lambda inner, wide: first_kind(inner, wide, n, scaled=True), x)


def kv(b: FunctionBuilder, x: V, n: int) -> V:
    """The modified Bessel function of the second kind, of order n; inf at 0, NaN below."""
    check_order("kv", n, HIGHEST_K)
    return in_double(b, lambda inner, wide: second_kind(inner, wide, n, scaled=False), x)


def kve(b: FunctionBuilder, x: V, n: int) -> V:
    """exp(x) kv(n, x)."""
    check_order("kve", n, HIGHEST_K)
    return in_double(b, lambda inner, wide: second_kind(inner, wide, n, scaled=True), x)


# --- first kind -----------------------------------------------------------------------------------------------------


def first_kind(b: FunctionBuilder, x: V, n: int, scaled: bool) -> V:
    size = fabs(b, x)
    bounded = at_most(b, size, LARGEST) if not scaled else size
    value, tail = scaled_first_kind(b, bounded, n)
    if scaled:
        result = b.fadd(value, tail)
        result = b.select(b.fcmp("oeq", size, INF), 0.0, result)
    else:
        result = times_exp(b, Pair(value, tail), bounded)
        result = b.select(b.fcmp("oeq", size, INF), NAN, result)
    return odd(b, result, x) if n % 2 else result


def times_exp(b: FunctionBuilder, x: Pair, size: V) -> V:
    """x exp(size), rounded once; infinite only where the product is."""
    power, exponent = exp_pair(b, Pair(size, constant(size, 0.0)))
    product = two_product(b, x.hi, power.hi)
    lo = b.fma(x.hi, power.lo, b.fma(x.lo, power.hi, product.lo))
    return scale_by(b, b.fadd(product.hi, lo), exponent)


def scaled_first_kind(b: FunctionBuilder, x: V, n: int) -> Pair:
    """exp(-x) I_n(x) for x >= 0."""
    if n < 2:
        return scaled_i(b, x, n)
    limit = max(8.0, n * n / 2.0)
    above = b.select(b.fcmp("ogt", x, limit), x, limit)
    zero, one = (scaled_i(b, above, k) for k in (0, 1))
    first, second = b.fadd(zero.hi, zero.lo), b.fadd(one.hi, one.lo)
    minus_twice = b.rfdiv(-2.0, above)
    for k in range(1, n):
        first, second = second, b.fma(b.fmul(minus_twice, float(k)), second, first)
    inside = at_most(b, x, limit)
    share = b.fmul(inside, 1.0 / limit)
    coefficients = {"double": series_coefficients(n, series_length(n, limit), limit)}
    sum_ = polynomial(b, b.fmul(share, share), coefficients)
    series = b.fmul(b.fmul(lead(b, inside, n), exp(b, b.fneg(inside))), sum_)
    value = b.select(b.fcmp("ole", x, limit), series, second)
    return Pair(b.select(b.fcmp("uno", x, x), x, value), constant(x, 0.0))


def scaled_i(b: FunctionBuilder, x: V, n: int) -> Pair:
    """exp(-x) I_n(x) for x >= 0 and n 0 or 1."""
    near = b.fcmp("olt", x, I_PIECES_END)
    inside, outside = b.select(near, x, 0.0), b.select(near, I_PIECES_END, x)
    index = quarter_of_octave(b, b.fadd(inside, 1.0), 0)
    value = pieces_pair(b, I_ROWS[n]["double"], index, inside)
    if n:
        product = two_product(b, value.hi, inside)
        value = Pair(product.hi, b.fma(value.lo, inside, product.lo))
    far = far_quotient(b, outside, INVERSE_SQRT_TWO_PI, I_FAR[n])
    return Pair(b.select(near, value.hi, far), b.select(near, value.lo, 0.0))


def series_coefficients(n: int, count: int, limit: float = 2.0) -> tuple[float, ...]:
    """(limit / 2)**(2 k) / (k! (n + 1)...(n + k))"""
    found = [1.0]
    for k in range(1, count):
        found.append(found[-1] * (limit * limit / 4.0) / (k * (n + k)))
    return tuple(found)


def far_quotient(b: FunctionBuilder, x: V, limit: tuple[float, float], tail: Coefficients) -> V:
    """(limit + tail(1 / x) / x) / sqrt(x)."""
    z = b.rfdiv(1.0, x)
    rest = b.fma(z, polynomial(b, z, tail), constant(x, limit[1]))
    above = fast_two_sum(b, constant(x, limit[0]), rest)
    return pair_quotient(b, above, sqrt_pair(b, Pair(x, constant(x, 0.0))))


# --- second kind ----------------------------------------------------------------------------------------------------


class Scaled(NamedTuple):
    """value * 2**exponent."""

    value: V
    exponent: Exponent


def second_kind(b: FunctionBuilder, x: V, n: int, scaled: bool) -> V:
    positive = b.fcmp("ogt", x, 0.0)
    safe = b.select(positive, x, 1.0)
    below = b.fcmp("olt", safe, 1.0)
    factors = exp_factors(b, safe, below, scaled)
    orders = (n,) if n < 2 else (0, 1)
    values = [of_order(b, safe, below, k, factors) for k in orders]
    value = values[-1]
    if n > 1:
        twice, first, second = b.rfdiv(2.0, safe), values[0], values[1]
        for k in range(1, n):
            first, second = second, b.fma(b.fmul(twice, float(k)), second, first)
        value = second
    edge = b.select(b.fcmp("oeq", x, 0.0), constant(x, INF), constant(x, NAN))
    value = b.select(b.fcmp("oeq", x, INF), 0.0, value)
    return b.select(positive, value, edge)


def exp_factors(b: FunctionBuilder, x: V, below: V, scaled: bool) -> tuple[V, Scaled | None]:
    """What K itself is multiplied with below 1, and exp(x) K above it."""
    if scaled:
        return exp(b, b.select(below, x, 0.0)), None
    size = at_most(b, x, -LIMITS["double"].lowest)
    power, exponent = exp_pair(b, Pair(b.fneg(size), constant(x, 0.0)))
    return constant(x, 1.0), Scaled(b.fadd(power.hi, power.lo), exponent)


def of_order(b: FunctionBuilder, x: V, below: V, n: int, factors: tuple[V, Scaled | None]) -> V:
    """K of order 0 or 1."""
    inside = at_most(b, x, 1.0)
    low = b.fmul(near_zero(b, inside, n), factors[0])
    above = at_least(b, x, 1.0)
    far = b.fcmp("oge", above, K_PIECES_END)
    middle = b.select(far, 1.0, above)
    value = pieces_pair(b, K_ROWS[n]["double"], quarter_of_octave(b, middle, 0), middle)
    high = pair_quotient(b, value, sqrt_pair(b, Pair(middle, constant(x, 0.0))))
    outside = b.select(far, above, K_PIECES_END)
    high = b.select(far, far_quotient(b, outside, SQRT_HALF_PI, K_FAR[n]), high)
    if factors[1] is not None:
        high = scale_by(b, b.fmul(high, factors[1].value), factors[1].exponent)
    return b.select(below, low, high)


def near_zero(b: FunctionBuilder, x: V, n: int) -> V:
    """K_0(x) = -log(x / 2) I_0(x) + ..., K_1(x) = 1 / x + log(x / 2) I_1(x) - ..., for 0 < x <= 1."""
    z = b.fmul(b.fmul(x, x), 0.25)
    minus_log = b.fadd(b.fneg(log(b, x)), LOG_TWO_LESS_EULER)
    ordinary = {"double": series_coefficients(n, SERIES_TERMS)}
    tail = {"double": harmonic_coefficients(n)}
    series = polynomial(b, z, ordinary)
    rest = polynomial(b, z, tail)
    if not n:
        return b.fma(minus_log, series, b.fmul(z, rest))
    correction = b.fmul(b.fmul(x, 0.5), b.fadd(b.fmul(minus_log, series), rest))
    return b.fsub(b.rfdiv(1.0, x), correction)


def harmonic_coefficients(n: int) -> tuple[float, ...]:
    """For n = 0 H_(k+1) / (k + 1)!**2; for n = 1 (H_k + H_(k+1)) / (2 k! (k + 1)!); H_k = 1 + ... + 1 / k."""
    harmonic = [math.fsum(1 / j for j in range(1, k + 1)) for k in range(SERIES_TERMS + 1)]
    if not n:
        return tuple(harmonic[k + 1] / math.factorial(k + 1) ** 2 for k in range(SERIES_TERMS))
    return tuple(
        (harmonic[k] + harmonic[k + 1]) / (2 * math.factorial(k) * math.factorial(k + 1)) for k in range(SERIES_TERMS)
    )
