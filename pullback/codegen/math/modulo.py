"""fmod, remainder, floor_divide, nextafter: exact."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math.kit import (
    INF,
    NAN,
    constant,
    copysign,
    fabs,
    format_of,
    from_bits,
    helper,
    lane_by_lane,
    name_of,
    patch_rare,
    scale,
    to_bits,
)

DOUBLE_BITS = 52
STEP = 11  # so many zeros can be appended to a significand of 53 bits in 64


def fmod(b: FunctionBuilder, x: V, y: V) -> V:
    """C's fmod: x - trunc(x / y) y, exact."""
    fmt = format_of(x)
    n, d = fabs(b, x), fabs(b, y)
    quotient = b.fdiv(n, d)
    common = reduced_once(b, n, d, quotient)
    # The first also catches y = 0, infinite x, and NaN.
    rare = b.or_(b.fcmp("uge", quotient, 2.0 ** (fmt.mantissa - 1)), b.fcmp("oeq", d, INF))
    (size,) = patch_rare(
        b, rare, [common], lambda: [helper(b, name_of("fmod.any", x.type), x.type, [n, d], write_lanes)]
    )
    return copysign(b, size, x)


def reduced_once(b: FunctionBuilder, n: V, d: V, quotient: V) -> V:
    """n modulo d where n / d has been rounded to `quotient`, which is not large: the whole part is at most 1 off."""
    rest = b.fma(b.fneg(b.intrinsic("trunc", quotient)), d, n)
    rest = b.select(b.fcmp("olt", rest, 0.0), b.fadd(rest, d), rest)
    return b.select(b.fcmp("oge", rest, d), b.fsub(rest, d), rest)


def write_lanes(b: FunctionBuilder) -> None:
    n, d = b.params

    def lane(one: V, other: V) -> list[V]:
        if one.type == "double":
            return [helper(b, "pb.fmod", "double", [one, other], write_scalar)]
        wide = [b.cast("fpext", item, "double") for item in (one, other)]
        return [b.cast("fptrunc", helper(b, "pb.fmod", "double", wide, write_scalar), "float")]

    b.ret(lane_by_lane(b, [n, d], [format_of(n).name], lane)[0])


def write_scalar(b: FunctionBuilder) -> None:
    """n modulo d in integers, n, d >= 0: the significand of n is shifted and reduced, some bits at a time."""
    n, d = b.params
    n_bits, n_exponent = significand(b, n)
    d_bits, d_exponent = significand(b, d)
    some = b.icmp("ugt", d_bits, 0)
    d_bits = b.select(some, d_bits, 1)
    shift = b.sub(n_exponent, d_exponent)
    steps = b.intrinsic("smax", b.add(b.sdiv(shift, STEP), 1), 0)
    with b.loop(0, steps, carry=[n_bits, b.intrinsic("smax", shift, 0)]) as loop:
        rest, left = loop.carry
        now = b.intrinsic("smin", left, STEP)
        loop.turn(b.urem(b.shl(rest, now), d_bits), b.sub(left, now))
    value = scale(b, b.cast("uitofp", loop.results[0], "double"), b.sub(d_exponent, 1075))
    result = b.select(b.fcmp("olt", n, d), n, value)
    b.ret(b.select(b.and_(b.fcmp("olt", n, INF), b.fcmp("ogt", d, 0.0)), result, NAN))


def significand(b: FunctionBuilder, x: V) -> tuple[V, V]:
    """Integers m and e with x = m 2**(e - 1075)."""
    bits = to_bits(b, x)
    exponent, fraction = b.lshr(bits, DOUBLE_BITS), b.and_(bits, (1 << DOUBLE_BITS) - 1)
    normal = b.icmp("ugt", exponent, 0)
    return b.select(normal, b.or_(fraction, 1 << DOUBLE_BITS), fraction), b.intrinsic("umax", exponent, 1)


def remainder(b: FunctionBuilder, x: V, y: V) -> V:
    """Python's and NumPy's remainder: it has the sign of y."""
    return signed_remainder(b, fmod(b, x, y), y)


def signed_remainder(b: FunctionBuilder, rest: V, y: V) -> V:
    moved = b.select(other_sign(b, rest, y), b.fadd(rest, y), rest)
    return b.select(b.fcmp("oeq", rest, 0.0), copysign(b, rest, y), moved)


def other_sign(b: FunctionBuilder, rest: V, y: V) -> V:
    """Mask: `rest` is not zero and has not the sign of y."""
    return b.and_(b.fcmp("one", rest, 0.0), b.icmp("ne", b.fcmp("olt", rest, 0.0), b.fcmp("olt", y, 0.0)))


def floor_divide(b: FunctionBuilder, x: V, y: V) -> V:
    """NumPy's x // y: from the exact remainder, so that it agrees with it."""
    rest = fmod(b, x, y)
    quotient = b.fdiv(b.fsub(x, rest), y)
    quotient = b.select(other_sign(b, rest, y), b.fsub(quotient, 1.0), quotient)
    floor = b.intrinsic("floor", quotient)
    rounded = b.select(b.fcmp("ogt", b.fsub(quotient, floor), 0.5), b.fadd(floor, 1.0), floor)
    plain = b.fdiv(x, y)
    result = b.select(b.fcmp("oeq", quotient, 0.0), copysign(b, constant(x, 0.0), plain), rounded)
    return b.select(b.fcmp("oeq", y, 0.0), plain, result)


def nextafter(b: FunctionBuilder, x: V, y: V) -> V:
    """The number next to x on the way to y."""
    bits = to_bits(b, x)
    away = b.icmp("eq", b.fcmp("olt", x, y), b.fcmp("ogt", x, 0.0))
    moved = from_bits(b, b.select(away, b.add(bits, 1), b.sub(bits, 1)))
    smallest = copysign(b, from_bits(b, b.or_(b.and_(bits, 0), 1)), y)
    result = b.select(b.fcmp("oeq", x, 0.0), smallest, moved)
    result = b.select(b.fcmp("oeq", x, y), y, result)
    return b.select(b.fcmp("uno", x, y), b.fadd(x, y), result)
