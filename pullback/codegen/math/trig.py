"""sin, cos, tan: `x = n pi/2 + r`, then polynomials for the sine and the cosine of r."""

from __future__ import annotations

from itertools import zip_longest
from typing import NamedTuple

from pullback.codegen.llvm import FunctionBuilder, V, element_of, lanes_of
from pullback.codegen.math import coefficients as c
from pullback.codegen.math.kit import (
    Pair,
    constant,
    fabs,
    fast_two_sum,
    flip_sign,
    format_of,
    horner,
    is_odd,
    pair_quotient,
    patch_rare,
    polynomial,
    sign_bits,
    to_bits,
)
from pullback.codegen.math.trig_large import reduce_large
from pullback.record import record

TWO_OVER_PI = 0.6366197723675814


@record(frozen=True)
class Reduction:
    """pi/2 as a sum of three, each rounded to the format, and the largest |x| for which that is enough."""

    parts: tuple[float, float, float]
    largest: float


REDUCTIONS = {
    "double": Reduction((1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33), 2.0**31),
    "float": Reduction(
        (float.fromhex("0x1.921fb6p+0"), float.fromhex("-0x1.777a5cp-25"), float.fromhex("-0x1.ee59dap-50")), 2.0**17
    ),
}


class Angle(NamedTuple):
    """x = n pi/2 + r. The low bits of the integer `quadrant` are those of n; r is within pi/4."""

    r: Pair
    quadrant: V


def reduce(b: FunctionBuilder, x: V) -> Angle:
    """Reduce any x >= 0. NaN and infinity give NaN."""
    fmt = format_of(x)
    reduction = REDUCTIONS[fmt.name]
    first, second, third = reduction.parts
    shifted = b.fma(x, TWO_OVER_PI, fmt.round_magic)
    n = b.fsub(shifted, fmt.round_magic)
    rest = b.fma(n, -first, x)  # exact: both are multiples of one small number, and they nearly cancel
    hi = b.fsub(rest, b.fmul(n, second))
    # rest - hi is exact: where the product is not small beside rest, its rounding leaves the last places zero
    lo = b.fma(n, -third, b.fma(n, -second, b.fsub(rest, hi)))
    common = [hi, lo, to_bits(b, shifted)]
    large = b.fcmp("uge", x, reduction.largest)

    def only_large() -> list[V]:
        return [b.select(large, new, old) for new, old in zip(reduce_large(b, x), common, strict=True)]

    hi, lo, quadrant = patch_rare(b, large, common, only_large)
    return Angle(Pair(hi, lo), quadrant)


def sin_cos_reduced(b: FunctionBuilder, r: Pair, exact: bool = False) -> tuple[Pair, Pair]:
    """Sine and cosine of |r| <= pi/4 as unevaluated sums; `lo` is small beside `hi` but not below its last place.

    The sine of `lo` is taken for `lo` itself unless `exact`: that loses up to 0.15 of a unit in the last place.
    """
    z = b.fmul(r.hi, r.hi)
    one = lead_of_cosine(b, z, r)
    # 1 - z/2 is cos(r.hi) as closely as r.lo needs it
    sine_lo = b.fmul(r.lo, one.hi) if exact else r.lo
    sine = Pair(r.hi, b.fma(b.fmul(z, r.hi), polynomial(b, z, c.SIN_TAIL), sine_lo))
    return sine, Pair(one.hi, b.fma(b.fmul(z, z), polynomial(b, z, c.COS_TAIL), one.lo))


def lead_of_cosine(b: FunctionBuilder, z: V, r: Pair) -> Pair:
    """1 - z/2 - r.hi r.lo, where z is r.hi squared."""
    hi = b.fma(z, -0.5, 1.0)
    lost = b.fma(z, -0.5, b.rfsub(1.0, hi))
    return Pair(hi, b.fma(b.fneg(r.hi), r.lo, lost))


def sine_or_cosine(b: FunctionBuilder, r: Pair, cosine: V) -> V:
    """Cosine of |r| <= pi/4 where the mask `cosine` is set, else sine, in the bits of `sin_cos_reduced`.

    With AVX-512 choosing each coefficient costs less than a second polynomial.
    """
    if "avx512f" not in b.module.features or lanes_of(r.hi.type) == 1:
        sine, cosine_pair = sin_cos_reduced(b, r)
        return b.select(cosine, rounded(b, cosine_pair), rounded(b, sine))
    z = b.fmul(r.hi, r.hi)
    one = lead_of_cosine(b, z, r)
    name = format_of(z).name
    pairs = zip_longest(c.COS_TAIL[name], c.SIN_TAIL[name], fillvalue=0.0)
    tail = horner(b, z, [b.select(cosine, constant(z, even), constant(z, odd)) for even, odd in pairs])
    factor = b.fmul(z, b.select(cosine, z, r.hi))
    lo = b.fma(factor, tail, b.select(cosine, one.lo, r.lo))
    return b.fadd(b.select(cosine, one.hi, r.hi), lo)


def rounded(b: FunctionBuilder, x: Pair) -> V:
    return b.fadd(x.hi, x.lo)


def rounded_sin_cos(b: FunctionBuilder, angle: Angle) -> tuple[V, V]:
    """Sine and cosine of the reduced angle."""
    sine, cosine = sin_cos_reduced(b, angle.r)
    return rounded(b, sine), rounded(b, cosine)


def half_turn_sign(b: FunctionBuilder, quadrant: V) -> V:
    """The sign bit, set where bit 1 of the quadrant is."""
    return b.shl(b.and_(quadrant, 2), 62 if element_of(quadrant.type) == "i64" else 30)


def signed_sine(b: FunctionBuilder, x: V, angle: Angle, size: V) -> V:
    """Sine of x from that of its reduced size. The sign is put on last, so that of zero is kept."""
    return flip_sign(b, size, b.xor(half_turn_sign(b, angle.quadrant), sign_bits(b, x)))


def signed_cosine(b: FunctionBuilder, angle: Angle, size: V) -> V:
    """Cosine of x from that of its reduced size."""
    return flip_sign(b, size, half_turn_sign(b, b.add(angle.quadrant, 1)))


def sin_cos(b: FunctionBuilder, x: V) -> tuple[V, V]:
    """Both at once for little more than the price of one."""
    angle = reduce(b, fabs(b, x))
    sine, cosine = rounded_sin_cos(b, angle)
    odd = is_odd(b, angle.quadrant)
    return (
        signed_sine(b, x, angle, b.select(odd, cosine, sine)),
        signed_cosine(b, angle, b.select(odd, sine, cosine)),
    )


def sin(b: FunctionBuilder, x: V) -> V:
    angle = reduce(b, fabs(b, x))
    return signed_sine(b, x, angle, sine_or_cosine(b, angle.r, is_odd(b, angle.quadrant)))


def cos(b: FunctionBuilder, x: V) -> V:
    angle = reduce(b, fabs(b, x))
    return signed_cosine(b, angle, sine_or_cosine(b, angle.r, b.not_(is_odd(b, angle.quadrant))))


def tan(b: FunctionBuilder, x: V) -> V:
    """Sine by cosine, or in odd quadrants -cosine by sine, of sums that are not rounded before the division."""
    angle = reduce(b, fabs(b, x))
    sine, cosine = (fast_two_sum(b, value.hi, value.lo) for value in sin_cos_reduced(b, angle.r, exact=True))
    odd = is_odd(b, angle.quadrant)
    above = Pair(b.select(odd, cosine.hi, sine.hi), b.select(odd, cosine.lo, sine.lo))
    below = Pair(b.select(odd, sine.hi, cosine.hi), b.select(odd, sine.lo, cosine.lo))
    sign = b.shl(b.and_(angle.quadrant, 1), format_of(x).bits - 1)
    return flip_sign(b, pair_quotient(b, above, below), b.xor(sign, sign_bits(b, x)))
