"""The gamma function, by Stirling's formula in powers of two; arguments below 8 are shifted up by 8."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import coefficients as c
from pullback.codegen.math.exp import exp2_of_pair
from pullback.codegen.math.gamma import PI, SERIES_FROM, sin_cos_of_turns
from pullback.codegen.math.kit import (
    INF,
    NAN,
    Pair,
    at_least,
    at_most,
    constant,
    copysign,
    fabs,
    fast_two_sum,
    helper,
    in_double,
    is_odd,
    name_of,
    pair_product,
    pair_quotient,
    patch_rare,
    polynomial,
    two_product,
    two_sum,
)
from pullback.codegen.math.log import log2_pair, split

SHIFT = 8
LARGEST = 190.0  # beyond it gamma is infinite and 1 / gamma zero, with room
OVERFLOWS = 171.7
SMALLEST = 2.0**-60  # below it gamma(x) is 1 / x
LOG2_E = (float.fromhex("0x1.71547652b82fep+0"), float.fromhex("0x1.777d0ffda0d24p-56"))
LOG2_SQRT_TWO_PI = (float.fromhex("0x1.536439a4c6efcp+0"), float.fromhex("-0x1.49e49a361efebp-54"))


def gamma(b: FunctionBuilder, x: V) -> V:
    """inf and -inf at 0 and -0, NaN at -1, -2, ... and at -inf."""
    return in_double(b, gamma_of_double, x)


def gamma_of_double(b: FunctionBuilder, x: V) -> V:
    usual = b.and_(b.fcmp("ogt", x, SMALLEST), b.fcmp("olt", x, INF))
    common = gamma_of_positive(b, b.select(usual, x, 1.0))
    (result,) = patch_rare(
        b, b.not_(usual), [common], lambda: [helper(b, name_of("gamma.any", x.type), x.type, [x], write_gamma)]
    )
    return result


def gamma_of_positive(b: FunctionBuilder, x: V) -> V:
    power, product = stirling_power(b, at_most(b, x, LARGEST))
    value = pair_quotient(b, Pair(exp2_of_pair(b, power), constant(x, 0.0)), product)
    return b.select(b.fcmp("ogt", x, OVERFLOWS), INF, value)


def stirling_power(b: FunctionBuilder, x: V, first: int = 0) -> tuple[Pair, Pair]:
    """gamma(x) = 2**power / product for 0 < x < 2**10; the product is x (x + 1) ... (x + 7), and 1 from 8 on.

    `first` : the product begins with x + first
    """
    small = b.fcmp("olt", x, SERIES_FROM)
    product = Pair(b.select(small, b.fadd(x, float(first)), 1.0), constant(x, 0.0))
    if first:
        start = two_sum(b, x, constant(x, float(first)))
        product = Pair(product.hi, b.select(small, start.lo, 0.0))
    for k in range(first + 1, SHIFT):
        factor = two_sum(b, x, constant(x, float(k)))
        factor = Pair(b.select(small, factor.hi, 1.0), b.select(small, factor.lo, 0.0))
        product = pair_product(b, product, factor)
    shifted = two_sum(b, x, b.select(small, constant(x, float(SHIFT)), constant(x, 0.0)))
    return log2_gamma(b, shifted), product


def log2_gamma(b: FunctionBuilder, x: Pair) -> Pair:
    """log2(gamma(hi + lo)) for 8 <= hi < 2**10, to about 2**-57."""
    log2 = log2_pair(b, split(b, x.hi))
    factor = b.fsub(x.hi, 0.5)
    lead = two_product(b, log2.hi, factor)
    less = two_product(b, x.hi, constant(x.hi, -LOG2_E[0]))
    inverse = b.rfdiv(1.0, x.hi)
    slope = b.fma(inverse, -0.5 * LOG2_E[0], log2.hi)
    series = b.fmul(b.fmul(inverse, LOG2_E[0]), polynomial(b, b.fmul(inverse, inverse), c.LGAMMA_TAIL))
    total = two_sum(b, lead.hi, less.hi)
    whole = two_sum(b, total.hi, constant(x.hi, LOG2_SQRT_TWO_PI[0]))
    lost = b.fma(log2.lo, factor, b.fadd(lead.lo, b.fma(x.hi, -LOG2_E[1], less.lo)))
    lost = b.fadd(lost, b.fadd(total.lo, b.fadd(whole.lo, LOG2_SQRT_TWO_PI[1])))
    return fast_two_sum(b, whole.hi, b.fadd(lost, b.fma(x.lo, slope, series)))


def write_gamma(b: FunctionBuilder) -> None:
    """Any double; below 0 pi / (x sin(pi x) gamma(-x)), positive where floor(x) is even."""
    (x,) = b.params
    size = at_least(b, fabs(b, x), SMALLEST)
    positive = gamma_of_positive(b, size)
    power, product = stirling_power(b, at_most(b, size, LARGEST))
    sine, _ = sin_cos_of_turns(b, size)
    inverse = exp2_of_pair(b, Pair(b.fneg(power.hi), b.fneg(power.lo)))
    turned = two_product(b, inverse, constant(x, PI[0]))
    above = pair_product(b, Pair(turned.hi, b.fma(inverse, PI[1], turned.lo)), product)
    reflected = pair_quotient(b, above, two_product(b, size, fabs(b, sine)))
    floor = b.intrinsic("floor", b.select(b.fcmp("olt", fabs(b, x), 2.0**52), x, 0.0))
    odd = is_odd(b, b.cast("fptosi", floor, "i64"))
    reflected = b.select(odd, b.fneg(reflected), reflected)
    reflected = b.select(b.fcmp("oeq", sine, 0.0), NAN, reflected)
    result = b.select(b.fcmp("olt", x, 0.0), reflected, b.select(b.fcmp("ult", x, INF), positive, INF))
    tiny = b.fcmp("olt", fabs(b, x), SMALLEST)
    result = b.select(tiny, b.rfdiv(1.0, x), result)
    b.ret(b.select(b.fcmp("oeq", x, 0.0), copysign(b, constant(x, INF), x), result))
