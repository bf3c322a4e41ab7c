"""sinh and cosh, tanh, and the inverses of the three.

With x = n log(2) + r: sinh(x) = S(n) cosh(r) + C(n) sinh(r), where S and C are (2**n -+ 2**-n) / 2.
"""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import coefficients as c
from pullback.codegen.math import pieces
from pullback.codegen.math.exp import LIMITS, LOG2E, minus_one_scaled, plus_one_scaled, reduce
from pullback.codegen.math.kit import (
    INF,
    NAN,
    Exponent,
    Pair,
    at_most,
    constant,
    copysign,
    fabs,
    fast_two_sum,
    format_of,
    from_bits,
    odd_pieces,
    pair_quotient,
    polynomial,
    quarter_of_octave,
    round_to_exponent,
    scale_by,
    sqrt_pair,
    two_product,
    two_sum,
)
from pullback.codegen.math.log import log_of_pair
from pullback.record import record


@record(frozen=True)
class Halves:
    """What sinh and cosh of x = n log(2) + r are made of; everything is divided by 2**n, and x >= 0.

    Attributes
    ----------
    inverse : 2**-2n
    r : reduced argument
    lo : what r lost
    cosh_tail, sinh_tail : cosh(r) - 1 and sinh(r) - r
    """

    exponent: Exponent
    inverse: V
    r: V
    lo: V
    cosh_tail: V
    sinh_tail: V


def halves(b: FunctionBuilder, x: V) -> Halves:
    fmt = format_of(x)
    limits = LIMITS[fmt.name]
    exponent = round_to_exponent(b, x, LOG2E)
    first = b.fma(exponent.n, -limits.ln2_hi, x)
    r = b.fma(exponent.n, -limits.ln2_lo, first)
    lo = b.fma(exponent.n, -limits.ln2_lo, b.fsub(first, r))
    # 2**-2n, but not beyond where it is nothing beside 1
    most = fmt.bits_of(fmt.round_magic) + 2 * fmt.bias + fmt.mantissa
    n = b.sub(b.intrinsic("smin", exponent.biased, most), fmt.bits_of(fmt.round_magic) + 2 * fmt.bias)
    inverse = from_bits(b, b.shl(b.rsub(fmt.bias, b.add(n, n)), fmt.mantissa))
    z = b.fmul(r, r)
    cosh_tail = b.fma(b.fmul(z, z), polynomial(b, z, c.COSH_TAIL), b.fmul(z, 0.5))
    sinh_tail = b.fmul(b.fmul(z, r), polynomial(b, z, c.SINH_TAIL))
    return Halves(exponent, inverse, r, lo, cosh_tail, sinh_tail)


def sinh(b: FunctionBuilder, x: V) -> V:
    h = halves(b, at_most(b, fabs(b, x), LIMITS[format_of(x).name].highest + 1.0))
    half = b.fmul(h.inverse, 0.5)
    difference, total = fast_two_sum(b, constant(x, 0.5), b.fneg(half)), b.fadd(half, 0.5)
    product = two_product(b, total, h.r)
    lead = fast_two_sum(b, difference.hi, product.hi)
    lo = b.fadd(b.fadd(lead.lo, difference.lo), product.lo)
    rest = b.fma(total, b.fadd(h.sinh_tail, h.lo), b.fma(difference.hi, h.cosh_tail, lo))
    return copysign(b, scale_by(b, b.fadd(lead.hi, rest), h.exponent), x)


def cosh(b: FunctionBuilder, x: V) -> V:
    h = halves(b, at_most(b, fabs(b, x), LIMITS[format_of(x).name].highest + 1.0))
    half = b.fmul(h.inverse, 0.5)
    difference, total = b.rfsub(0.5, half), fast_two_sum(b, constant(x, 0.5), half)
    lead = fast_two_sum(b, total.hi, b.fmul(difference, h.r))
    lo = b.fma(total.hi, h.cosh_tail, b.fadd(lead.lo, total.lo))
    rest = b.fma(difference, b.fadd(h.sinh_tail, h.lo), lo)
    return scale_by(b, b.fadd(lead.hi, rest), h.exponent)


def tanh(b: FunctionBuilder, x: V) -> V:
    size = fabs(b, x)
    return copysign(b, tanh_of_float(b, size) if format_of(x).name == "float" else tanh_of_double(b, size), x)


def tanh_of_float(b: FunctionBuilder, x: V) -> V:
    """One polynomial for each quarter of an octave of x + 1."""
    bounded = at_most(b, x, LIMITS["float"].one)
    shifted = b.fadd(bounded, 1.0)
    index = quarter_of_octave(b, shifted, 0)
    return odd_pieces(b, pieces.TANH, index, bounded, b.fcmp("olt", shifted, 1.25))


def tanh_of_double(b: FunctionBuilder, x: V) -> V:
    """(exp(2 x) - 1) / (exp(2 x) + 1), both sides divided by 2**n and kept as pairs."""
    bounded = at_most(b, x, LIMITS["double"].one)
    e = reduce(b, b.fadd(bounded, bounded))
    return pair_quotient(b, minus_one_scaled(b, e), plus_one_scaled(b, e))


# Above it, x**2 + 1 is x**2 to working precision, and the square is not formed.
LARGE = 2.0**30


def arcsinh(b: FunctionBuilder, x: V) -> V:
    """log(|x| + sqrt(x**2 + 1)), with the sum as a pair: it is 1 + |x| for small x."""
    size = fabs(b, x)
    bounded = at_most(b, size, LARGE)
    square = two_product(b, bounded, bounded)
    total = two_sum(b, constant(x, 1.0), square.hi)
    root = sqrt_pair(b, Pair(total.hi, b.fadd(total.lo, square.lo)))
    return copysign(b, log_with_root(b, size, bounded, root), x)


def arccosh(b: FunctionBuilder, x: V) -> V:
    """log(x + sqrt(x**2 - 1))."""
    bounded = at_most(b, x, LARGE)
    square = two_product(b, bounded, bounded)
    total = two_sum(b, square.hi, constant(x, -1.0))
    root = sqrt_pair(b, Pair(total.hi, b.fadd(total.lo, square.lo)))
    result = log_with_root(b, x, bounded, root)
    return b.select(b.fcmp("olt", x, 1.0), NAN, result)


def log_with_root(b: FunctionBuilder, x: V, bounded: V, root: Pair) -> V:
    """log(x + root); above `LARGE`, where `bounded` is less than x, log(2 x)."""
    total = two_sum(b, root.hi, bounded)
    large = b.fcmp("ogt", x, LARGE)
    hi, lo = b.select(large, x, total.hi), b.select(large, 0.0, b.fadd(total.lo, root.lo))
    common = log_of_pair(b, Pair(hi, lo), b.select(large, constant(x, 1.0), 0.0))
    return b.select(b.fcmp("olt", x, INF), common, x)


def arctanh(b: FunctionBuilder, x: V) -> V:
    """log1p(2 |x| / (1 - |x|)) / 2, the quotient as a pair."""
    size = fabs(b, x)
    below = fast_two_sum(b, constant(x, 1.0), b.fneg(size))
    inverse = b.rfdiv(1.0, below.hi)
    twice = b.fadd(size, size)
    quotient = b.fmul(twice, inverse)
    lost = b.fma(b.fneg(quotient), below.lo, b.fma(b.fneg(quotient), below.hi, twice))
    total = two_sum(b, constant(x, 1.0), quotient)
    common = b.fmul(log_of_pair(b, Pair(total.hi, b.fma(lost, inverse, total.lo)), None), 0.5)
    result = b.select(b.fcmp("oeq", size, 1.0), INF, b.select(b.fcmp("olt", size, 1.0), common, NAN))
    return copysign(b, result, x)
