"""erf and erfc: one polynomial for each of 16 intervals."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import coefficients as c
from pullback.codegen.math import pieces
from pullback.codegen.math.exp import LIMITS, LOG2E
from pullback.codegen.math.kit import (
    Exponent,
    Pair,
    at_least,
    at_most,
    constant,
    copysign,
    fabs,
    fast_two_sum,
    format_of,
    odd_pieces,
    pieces_pair,
    polynomial,
    quarter_of_octave,
    round_to_exponent,
    scale_by,
    to_bits,
    two_product,
)

INTERVALS_PER_UNIT = 2.95  # of ERF_INTERVALS in tools/fit_table.py
FIRST_ENDS = 2.5 / INTERVALS_PER_UNIT
ONE_FROM = 5.93
ZERO_FROM = {"double": 27.3, "float": 10.1}


def erf(b: FunctionBuilder, x: V) -> V:
    fmt = format_of(x)
    size = at_most(b, fabs(b, x), ONE_FROM)
    shifted = b.fma(at_least(b, size, 0.7), INTERVALS_PER_UNIT, fmt.round_magic - 2.0)
    index = b.sub(to_bits(b, shifted), fmt.bits_of(fmt.round_magic))
    result = odd_pieces(b, pieces.ERF, index, size, b.fcmp("olt", size, FIRST_ENDS))
    return copysign(b, result, x)


def erfc(b: FunctionBuilder, x: V) -> V:
    """exp(-x**2) erfcx(|x|), either factor as a pair; taken from 2 for negative x."""
    name = format_of(x).name
    size = at_most(b, fabs(b, x), ZERO_FROM[name])
    gauss, exponent = exp_of_minus_square(b, size)
    other = erfcx_pair(b, size)
    product = two_product(b, gauss.hi, other.hi)
    lo = b.fma(gauss.hi, other.lo, b.fma(gauss.lo, other.hi, product.lo))
    value = scale_by(b, b.fadd(product.hi, lo), exponent)
    return b.select(b.fcmp("olt", x, 0.0), b.rfsub(2.0, value), value)


def exp_of_minus_square(b: FunctionBuilder, x: V) -> tuple[Pair, Exponent]:
    """exp(-x**2) as a pair near 1 and a power of two."""
    limits = LIMITS[format_of(x).name]
    square = two_product(b, x, x)
    minus = b.fneg(square.hi)
    exponent = round_to_exponent(b, minus, LOG2E)
    first = b.fma(exponent.n, -limits.ln2_hi, minus)
    lost = b.fsub(b.fmul(exponent.n, -limits.ln2_lo), square.lo)
    r = fast_two_sum(b, first, lost)  # `first` is either zero or larger than what both products lost
    lead = fast_two_sum(b, constant(x, 1.0), r.hi)
    tail = b.fma(b.fmul(r.hi, r.hi), polynomial(b, r.hi, c.EXP_TAIL), lead.lo)
    return Pair(lead.hi, b.fma(r.lo, lead.hi, tail)), exponent


def erfcx_pair(b: FunctionBuilder, x: V) -> Pair:
    """exp(x**2) erfc(x) for 0 <= x < 30."""
    index = quarter_of_octave(b, b.fadd(x, 2.0), 1)
    return pieces_pair(b, pieces.ERFCX[format_of(x).name], index, x)
