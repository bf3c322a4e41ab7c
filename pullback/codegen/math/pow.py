"""pow: 2**(y log2(x)), with log2(x) and the product as pairs; float32 in double precision."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import coefficients as c
from pullback.codegen.math.exp import exp2_of_pair
from pullback.codegen.math.kit import (
    INF,
    NAN,
    Pair,
    at_least,
    at_most,
    constant,
    fabs,
    flip_sign,
    format_of,
    helper,
    horner,
    name_of,
    patch_rare,
    power_of_two,
    round_to_integer,
    sign_bits,
)
from pullback.codegen.math.log import is_rare, log2_pair, log2_short, normalised, split

EXPONENT_LIMIT = 1100.0  # beyond it 2**x is 0 or infinite, in both formats


def pow(b: FunctionBuilder, x: V, y: V) -> V:
    rare = b.or_(is_rare(b, x), b.fcmp("uge", fabs(b, y), INF))
    common = power_of_positive(b, x, y, None)
    (result,) = patch_rare(
        b, rare, [common], lambda: [helper(b, name_of("pow.any", x.type), x.type, [x, y], write_pow)]
    )
    return result


def power_of_positive(b: FunctionBuilder, x: V, y: V, scaled: V | None) -> V:
    """x**y for a normal positive number x and finite y; `scaled` is to be added to the exponent of x."""
    if format_of(x).name == "float":
        return power_of_float(b, x, y)
    parts = split(b, x)
    if scaled is not None:
        parts = parts.shifted(b, scaled)
    log2 = log2_pair(b, parts)
    product = b.fmul(log2.hi, y)
    lo = b.fma(log2.lo, y, b.fma(log2.hi, y, b.fneg(product)))
    inside = b.fcmp("olt", fabs(b, product), EXPONENT_LIMIT)
    bounded = at_least(b, at_most(b, product, EXPONENT_LIMIT), -EXPONENT_LIMIT)
    return exp2_of_pair(b, Pair(bounded, b.select(inside, lo, 0.0)))


def power_of_float(b: FunctionBuilder, x: V, y: V) -> V:
    """The same for floats, subnormal ones too: they are normal doubles."""
    wide_x, wide_y = (b.cast("fpext", value, "double") for value in (x, y))
    exponent = b.fmul(log2_short(b, split(b, wide_x)), wide_y)
    limit = 300.0  # far outside of float, far inside of double
    exponent = at_least(b, at_most(b, exponent, limit), -limit)
    n, integer = round_to_integer(b, exponent, 1.0)
    power = power_of_two(b, integer)
    rest = b.fsub(exponent, n)
    fraction = horner(b, rest, c.EXP2_SHORT["double"])
    return b.cast("fptrunc", b.fma(b.fmul(power, rest), fraction, power), "float")


def write_pow(b: FunctionBuilder) -> None:
    """pow for any arguments, as in C99."""
    x, y = b.params
    size = fabs(b, x)
    if format_of(x).name == "float":
        value = power_of_positive(b, size, y, None)
    else:
        normal, scaled = normalised(b, size)
        value = power_of_positive(b, normal, y, scaled)
    b.ret(patch_pow_ends(b, x, y, patch_infinite_exponent(b, size, y, value)))


def patch_infinite_exponent(b: FunctionBuilder, size: V, y: V, value: V) -> V:
    """|x|**y where |x| is 0 or infinite, or y is infinite."""
    up = b.fcmp("ogt", y, 0.0)
    value = b.select(b.fcmp("oeq", size, 0.0), b.select(up, constant(size, 0.0), INF), value)
    value = b.select(b.fcmp("oeq", size, INF), b.select(up, constant(size, INF), 0.0), value)
    grows = b.icmp("eq", up, b.fcmp("ogt", size, 1.0))
    limit = b.select(b.fcmp("oeq", size, 1.0), 1.0, b.select(grows, constant(size, INF), 0.0))
    return b.select(b.fcmp("oeq", fabs(b, y), INF), limit, value)


def patch_pow_ends(b: FunctionBuilder, x: V, y: V, value: V) -> V:
    """Signs of negative bases, NaN, and what is 1 whatever the other argument."""
    half = b.fmul(y, 0.5)
    whole = b.fcmp("oeq", b.intrinsic("trunc", y), y)
    odd = b.and_(whole, b.fcmp("one", b.intrinsic("trunc", half), half))
    value = b.select(odd, flip_sign(b, value, sign_bits(b, x)), value)
    finite_negative = b.and_(b.fcmp("olt", x, 0.0), b.fcmp("ogt", x, -INF))
    value = b.select(b.and_(finite_negative, b.not_(whole)), NAN, value)
    value = b.select(b.fcmp("uno", x, y), b.fadd(x, y), value)
    return b.select(b.or_(b.fcmp("oeq", x, 1.0), b.fcmp("oeq", y, 0.0)), 1.0, value)
