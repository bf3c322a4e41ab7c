"""exp, exp2, expm1: `x = n log(2) + r`, a polynomial in r, and scaling by 2**n."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import coefficients as c
from pullback.codegen.math.kit import (
    Exponent,
    Pair,
    at_least,
    at_most,
    constant,
    copysign,
    fast_two_sum,
    format_of,
    from_bits,
    polynomial,
    round_to_exponent,
    scale_by,
)
from pullback.record import record

LOG2E = 1.4426950408889634


@record(frozen=True)
class Limits:
    """Constants of one format.

    Attributes
    ----------
    ln2_hi, ln2_lo : log(2) as a sum of two
    lowest, highest : outside of them exp is 0 and inf; `lowest2`, `highest2` likewise for exp2
    minus_one : below it expm1 rounds to -1
    one : above it tanh rounds to 1
    """

    ln2_hi: float
    ln2_lo: float
    lowest: float
    highest: float
    lowest2: float
    highest2: float
    minus_one: float
    one: float


LIMITS = {
    "double": Limits(0.6931471805599453, 2.3190468138462996e-17, -746.0, 710.0, -1076.0, 1025.0, -38.0, 20.0),
    "float": Limits(0.693147182464599609375, -1.904654299957767e-09, -104.5, 89.0, -151.0, 129.0, -18.0, 10.0),
}


def exp(b: FunctionBuilder, x: V) -> V:
    limits = LIMITS[format_of(x).name]
    x = at_least(b, at_most(b, x, limits.highest), limits.lowest)
    exponent = round_to_exponent(b, x, LOG2E)
    r = b.fma(exponent.n, -limits.ln2_lo, b.fma(exponent.n, -limits.ln2_hi, x))
    return scale_by(b, exp_of_reduced(b, r, None), exponent)


def exp2(b: FunctionBuilder, x: V) -> V:
    limits = LIMITS[format_of(x).name]
    x = at_least(b, at_most(b, x, limits.highest2), limits.lowest2)
    exponent = round_to_exponent(b, x, 1.0)
    return scale_by(b, exp2_of_reduced(b, b.fsub(x, exponent.n), None), exponent)


def exp2_of_pair(b: FunctionBuilder, x: Pair) -> V:
    """2**(hi + lo), for `hi` within the limits of exp2."""
    exponent = round_to_exponent(b, x.hi, 1.0)
    rest = fast_two_sum(b, b.fsub(x.hi, exponent.n), x.lo)
    return scale_by(b, exp2_of_reduced(b, rest.hi, rest.lo), exponent)


def exp2_of_reduced(b: FunctionBuilder, x: V, lo: V | None) -> V:
    """2**(x + lo) for |x| <= 1/2."""
    limits = LIMITS[format_of(x).name]
    r = b.fmul(x, limits.ln2_hi)
    lost = b.fma(x, limits.ln2_lo, b.fma(x, limits.ln2_hi, b.fneg(r)))
    return exp_of_reduced(b, r, lost if lo is None else b.fma(lo, limits.ln2_hi, lost))


def exp_of_reduced(b: FunctionBuilder, r: V, lo: V | None) -> V:
    """exp(r + lo) for |r| <= log(2)/2."""
    one_and_r = fast_two_sum(b, constant(r, 1.0), r)
    rest = one_and_r.lo if lo is None else b.fadd(one_and_r.lo, lo)
    return b.fadd(one_and_r.hi, b.fma(b.fmul(r, r), polynomial(b, r, c.EXP_TAIL), rest))


def exp_pair(b: FunctionBuilder, x: Pair) -> tuple[Pair, Exponent]:
    """exp(hi + lo), for `hi` within the limits of exp, as a pair near 1 and a power of two."""
    limits = LIMITS[format_of(x.hi).name]
    exponent = round_to_exponent(b, x.hi, LOG2E)
    first = b.fma(exponent.n, -limits.ln2_hi, x.hi)
    r = fast_two_sum(b, first, b.fma(exponent.n, -limits.ln2_lo, x.lo))  # `first` is zero or the larger
    lead = fast_two_sum(b, constant(x.hi, 1.0), r.hi)
    tail = b.fma(b.fmul(r.hi, r.hi), polynomial(b, r.hi, c.EXP_TAIL), lead.lo)
    return fast_two_sum(b, lead.hi, b.fma(r.lo, lead.hi, tail)), exponent


@record(frozen=True)
class Reduced:
    """x = n log(2) + r: everything that exp(x) - 1 and its relatives are made of.

    `exp(x) = 2**n (1 + r + tail)` and `inverse = 2**-n`.
    """

    exponent: Exponent
    inverse: V
    r: V
    tail: V


def reduce(b: FunctionBuilder, x: V) -> Reduced:
    """Reduce x, which must be in the range of exp; relative accuracy is kept down to zero."""
    fmt = format_of(x)
    limits = LIMITS[fmt.name]
    # Rounded a little towards -inf, so that n = 0 for 3/4 < exp(x) < 3/2: with n = 1 and r near -log(2)/2 the sum of
    # 1/2, r and the tail would cancel.
    exponent = round_to_exponent(b, b.fma(x, LOG2E, -0.085), 1.0)
    first = b.fma(exponent.n, -limits.ln2_hi, x)
    r = b.fma(exponent.n, -limits.ln2_lo, first)
    lost = b.fma(exponent.n, -limits.ln2_lo, b.fsub(first, r))
    tail = b.fma(b.fmul(r, r), polynomial(b, r, c.EXPM1_TAIL), lost)
    # 2**-n only matters while it is not negligible beside 1; a larger n would leave the range of exponents.
    most = fmt.bits_of(fmt.round_magic) + 2 * fmt.bias + 2 * fmt.mantissa
    inverse = b.shl(b.rsub(3 * fmt.bias, b.intrinsic("smin", exponent.biased, most)), fmt.mantissa)
    return Reduced(exponent, from_bits(b, inverse), r, tail)


def minus_one_scaled(b: FunctionBuilder, e: Reduced) -> Pair:
    """(exp(x) - 1) / 2**n."""
    # 1 - 2**-n is 0 or at least 1/2 in size: larger than r.
    power = fast_two_sum(b, constant(e.r, 1.0), b.fneg(e.inverse))
    total = fast_two_sum(b, power.hi, e.r)
    return Pair(total.hi, b.fadd(total.lo, b.fadd(power.lo, e.tail)))


def plus_one_scaled(b: FunctionBuilder, e: Reduced) -> Pair:
    """(exp(x) + 1) / 2**n for x >= 0."""
    power = fast_two_sum(b, constant(e.r, 1.0), e.inverse)
    total = fast_two_sum(b, power.hi, e.r)
    return fast_two_sum(b, total.hi, b.fadd(total.lo, b.fadd(power.lo, e.tail)))


def expm1(b: FunctionBuilder, x: V) -> V:
    limits = LIMITS[format_of(x).name]
    e = reduce(b, at_least(b, at_most(b, x, limits.highest), limits.minus_one))
    total = minus_one_scaled(b, e)
    return copysign(b, scale_by(b, b.fadd(total.hi, total.lo), e.exponent), x)
