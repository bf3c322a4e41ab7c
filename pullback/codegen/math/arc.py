"""arctan, arctan2, arcsin, arccos."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import coefficients as c
from pullback.codegen.math.kit import (
    INF,
    Pair,
    at_most,
    constant,
    copysign,
    fabs,
    fast_two_sum,
    format_of,
    helper,
    name_of,
    patch_rare,
    polynomial,
    sqrt_pair,
    to_bits,
)

# Angles as sums of two, by format.
HALF_PI = {
    "double": (1.5707963267948966, 6.123233995736766e-17),
    "float": (float.fromhex("0x1.921fb6p+0"), float.fromhex("-0x1.777a5cp-25")),
}
ARCTAN_HALF = {
    "double": (0.4636476090008061, 2.2698777452961687e-17),
    "float": (float.fromhex("0x1.dac670p-2"), float.fromhex("0x1.586ed4p-28")),
}
# Quotients below the first are not reduced, between both by arctan(1/2), above by arctan(1): |t| stays below 1/4.
FIRST, SECOND = 0.25, 0.83


def angle_of_quotient(b: FunctionBuilder, n: V, d: V) -> Pair:
    """arctan(n / d) for 0 <= n <= d, as a pair.

    arctan(n / d) = arctan(k) + arctan((n - k d) / (d + k n)) with k = 0, 1/2 or 1: those differences are exact. What
    the sum and the division lose is put back.
    """
    name = format_of(n).name
    some, more = b.fcmp("ogt", n, b.fmul(d, FIRST)), b.fcmp("ogt", n, b.fmul(d, SECOND))
    k = b.select(more, constant(n, 1.0), b.select(some, constant(n, 0.5), 0.0))
    above, below = b.fma(b.fneg(k), d, n), b.fma(k, n, d)
    inverse = b.rfdiv(1.0, below)
    t = b.fmul(above, inverse)
    lost = b.fma(k, n, b.fsub(d, below))
    t_lo = b.fmul(b.fma(b.fneg(t), lost, b.fma(b.fneg(t), below, above)), inverse)
    z = b.fmul(t, t)
    half, quarter = ARCTAN_HALF[name], tuple(part * 0.5 for part in HALF_PI[name])
    base = Pair(*(b.select(more, constant(n, quarter[i]), b.select(some, constant(n, half[i]), 0.0)) for i in range(2)))
    tail = b.fma(b.fmul(z, t), polynomial(b, z, c.ATAN_TAIL), b.fadd(base.lo, t_lo))
    total = fast_two_sum(b, base.hi, t)
    return Pair(total.hi, b.fadd(total.lo, tail))


def from_angle(b: FunctionBuilder, angle: tuple[float, float], minus: Pair, where: V) -> Pair:
    """`angle - minus` where the mask is set, else `minus`; the angle is at least as large."""
    hi, lo = constant(minus.hi, angle[0]), constant(minus.hi, angle[1])
    difference = fast_two_sum(b, hi, b.fneg(minus.hi))
    rest = b.fadd(b.fsub(difference.lo, minus.lo), lo)
    return Pair(b.select(where, difference.hi, minus.hi), b.select(where, rest, minus.lo))


def arctan(b: FunctionBuilder, x: V) -> V:
    size = at_most(b, fabs(b, x), 2.0**100)  # no further away from pi/2 than infinity, but finite
    steep = b.fcmp("ogt", size, 1.0)
    n = b.select(steep, constant(x, 1.0), size)
    d = b.select(steep, size, constant(x, 1.0))
    angle = from_angle(b, HALF_PI[format_of(x).name], angle_of_quotient(b, n, d), steep)
    return copysign(b, b.fadd(angle.hi, angle.lo), x)


def arctan2(b: FunctionBuilder, y: V, x: V) -> V:
    fmt = format_of(x)
    wide, high = fabs(b, x), fabs(b, y)
    steep = b.fcmp("ogt", high, wide)
    n, d = b.select(steep, wide, high), b.select(steep, high, wide)
    common = angle_of_point(b, y, x, n, d)
    # d: neither zero nor NaN, nor so large that n + d overflows, nor so small that 1 / d does.
    low, span = fmt.bits_of(2.0 ** (10 - fmt.bias)), fmt.bits_of(2.0 ** (fmt.bias - 10))
    rare = b.icmp("uge", b.sub(to_bits(b, d), low), span - low)
    # n: not so small that its remainder, a product of last places, is lost; zero has none.
    least = fmt.bits_of(fmt.min_normal * 2.0 ** (fmt.mantissa + 2)) - 1
    rare = b.or_(rare, b.icmp("ult", b.sub(to_bits(b, n), 1), least))
    (result,) = patch_rare(
        b, rare, [common], lambda: [helper(b, name_of("arctan2.any", x.type), x.type, [y, x], write_arctan2)]
    )
    return result


def angle_of_point(b: FunctionBuilder, y: V, x: V, n: V, d: V) -> V:
    """The angle of (x, y), where n and d are the smaller and the larger of |x| and |y|, or in the same ratio."""
    half_pi = HALF_PI[format_of(x).name]
    steep = b.fcmp("ogt", fabs(b, y), fabs(b, x))
    angle = from_angle(b, half_pi, angle_of_quotient(b, n, d), steep)
    left = b.icmp("slt", to_bits(b, x), 0)
    angle = from_angle(b, (2 * half_pi[0], 2 * half_pi[1]), angle, left)
    return copysign(b, b.fadd(angle.hi, angle.lo), y)


def write_arctan2(b: FunctionBuilder) -> None:
    """arctan2 of any arguments."""
    y, x = b.params
    fmt = format_of(x)
    wide, high = fabs(b, x), fabs(b, y)
    steep = b.fcmp("ogt", high, wide)
    n, d = b.select(steep, wide, high), b.select(steep, high, wide)
    infinite, both = b.fcmp("oeq", d, INF), b.fcmp("oeq", n, INF)
    up = 2.0 ** (2 * fmt.mantissa + 4)
    large = b.fcmp("ogt", d, 2.0**fmt.bias / up)
    scale = b.select(large, constant(x, 0.25), up)
    n = b.select(infinite, b.select(both, constant(x, 1.0), 0.0), b.fmul(n, scale))
    d = b.select(b.or_(infinite, b.fcmp("oeq", d, 0.0)), 1.0, b.fmul(d, scale))
    result = angle_of_point(b, y, x, n, d)
    b.ret(b.select(b.fcmp("uno", x, y), b.fadd(x, y), result))


def arcsin(b: FunctionBuilder, x: V) -> V:
    size = fabs(b, x)
    small, value = arcsin_part(b, size)
    steep = from_angle(b, HALF_PI[format_of(x).name], value, b.not_(small))
    return copysign(b, b.fadd(steep.hi, steep.lo), x)


def arccos(b: FunctionBuilder, x: V) -> V:
    """pi/2 - arcsin(x), or 2 arcsin(sqrt((1 - |x|) / 2)), for negative x taken from pi."""
    half_pi = HALF_PI[format_of(x).name]
    small, value = arcsin_part(b, fabs(b, x))
    negative = b.fcmp("olt", x, 0.0)
    base = Pair(
        *(b.select(small, constant(x, part), b.select(negative, constant(x, 2 * part), 0.0)) for part in half_pi)
    )
    minus = b.icmp("ne", small, negative)
    hi, lo = (b.select(minus, b.fneg(part), part) for part in value)
    total = fast_two_sum(b, base.hi, hi)
    return b.fadd(total.hi, b.fadd(total.lo, b.fadd(base.lo, lo)))


def arcsin_part(b: FunctionBuilder, size: V) -> tuple[V, Pair]:
    """Where |x| <= 1/2 (the mask): arcsin |x|; elsewhere twice the arcsine of sqrt((1 - |x|) / 2)."""
    small = b.fcmp("ole", size, 0.5)
    rest = b.fma(size, -0.5, 0.5)
    root = sqrt_pair(b, Pair(rest, constant(size, 0.0)))
    z = b.select(small, b.fmul(size, size), rest)
    t, lo = b.select(small, size, b.fadd(root.hi, root.hi)), b.select(small, 0.0, b.fadd(root.lo, root.lo))
    return small, Pair(t, b.fma(b.fmul(z, t), polynomial(b, z, c.ASIN_TAIL), lo))
