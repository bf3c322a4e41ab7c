"""erf and erfc: one polynomial for each of 16 intervals."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import pieces
from pullback.codegen.math.exp import exp_pair
from pullback.codegen.math.kit import (
    Exponent,
    Pair,
    at_least,
    at_most,
    copysign,
    fabs,
    format_of,
    odd_pieces,
    pieces_pair,
    quarter_of_octave,
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


def exp_of_minus_square(b: FunctionBuilder, x: V, factor: float = 1.0) -> tuple[Pair, Exponent]:
    """exp(-factor x**2), factor a power of two, as a pair near 1 and a power of two."""
    square = two_product(b, x, x)
    return exp_pair(b, Pair(b.fmul(square.hi, -factor), b.fmul(square.lo, -factor)))


def erfcx_pair(b: FunctionBuilder, x: V) -> Pair:
    """exp(x**2) erfc(x) for 0 <= x < 30."""
    index = quarter_of_octave(b, b.fadd(x, 2.0), 1)
    return pieces_pair(b, pieces.ERFCX[format_of(x).name], index, x)
