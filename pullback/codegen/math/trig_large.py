"""Reduction of huge angles (Payne and Hanek): the few bits of 2/pi that matter for x, times x, in integers.

Called for vectors in which some |x| is beyond the reach of the fast reduction; such angles are rare, so the lanes are
done one by one.
"""

from __future__ import annotations

from itertools import pairwise

from pullback.codegen.llvm import FunctionBuilder, V, const, with_element
from pullback.codegen.math.kit import (
    Pair,
    fast_two_sum,
    format_of,
    helper,
    lane_by_lane,
    name_of,
    to_bits,
    two_product,
    two_sum,
)

# floor(2/pi * 2**1216): the bits that any double can need
TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561"
    "B7246E3A424DD2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484"
    "E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B"
    "3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB",
    16,
)
WORD_BYTES = 8
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
LEAST = 1.0  # smaller angles have no window of 2/pi; they compute with this
REDUCED = "{ double, double, i64 }"


def reduce_large(b: FunctionBuilder, x: V) -> tuple[V, V, V]:
    """r as hi and lo, and the quadrant, of every lane; right for x >= 1, NaN and infinity."""
    fields = (x.type, x.type, with_element(x.type, format_of(x).integer))
    reduced = helper(b, name_of("reduce_large", x.type), f"{{ {', '.join(fields)} }}", [x], write_lanes)
    hi, lo, quadrant = (b.extract_value(reduced, i, field) for i, field in enumerate(fields))
    return hi, lo, quadrant


def write_lanes(b: FunctionBuilder) -> None:
    """Do lane after lane in double precision."""
    (x,) = b.params
    fmt = format_of(x)
    b.ret_struct(*lane_by_lane(b, [x], (fmt.name, fmt.name, fmt.integer), lambda item: reduce_lane(b, item)))


def reduce_lane(b: FunctionBuilder, x: V) -> tuple[V, V, V]:
    """hi, lo and quadrant of one angle, in its own format."""
    short = x.type == "float"
    wide = b.cast("fpext", x, "double") if short else x
    reduced = helper(b, "pb.reduce_large", REDUCED, [wide], write_scalar)
    hi, lo, quadrant = (b.extract_value(reduced, i, t) for i, t in enumerate(("double", "double", "i64")))
    if not short:
        return hi, lo, quadrant
    rounded = b.cast("fptrunc", hi, "float")
    rest = b.fadd(b.fsub(hi, b.cast("fpext", rounded, "double")), lo)
    return rounded, b.cast("fptrunc", rest, "float"), b.cast("trunc", quadrant, "i32")


def write_scalar(b: FunctionBuilder) -> None:
    """One double: x = m 2**e; x 2/pi modulo 4 from 192 bits of 2/pi, the first of weight 2**1 beside m."""
    (x,) = b.params
    bits = to_bits(b, b.select(b.fcmp("ogt", x, LEAST), x, LEAST))
    m = b.or_(b.and_(bits, (1 << 52) - 1), 1 << 52)
    position = b.sub(b.lshr(bits, 52), 1075 - 62)  # e + 62: the bit of weight 2**(1 - e), behind one word of zeros
    words = window(b, position, 3)
    fraction = top_of_product(b, m, words)
    # 2 bits of integer, 126 of fraction; to the nearest integer
    quadrant = b.cast("trunc", b.add(b.lshr(fraction, 126), b.and_(b.lshr(fraction, 125), 1)), "i64")
    r = times_half_pi(b, b.shl(fraction, 2))
    nan_or_zero = b.fsub(x, x)  # NaN for infinity, too
    b.ret_struct(b.fadd(r.hi, nan_or_zero), r.lo, quadrant)


def window(b: FunctionBuilder, position: V, count: int) -> list[V]:
    """`count` words of 2/pi that begin at the given bit; bit 64 is the first behind the point."""
    words = TWO_OVER_PI.to_bytes(1216 // 8, "big")
    numbers = [0] + [int.from_bytes(words[i : i + WORD_BYTES], "big") for i in range(0, len(words), WORD_BYTES)]
    table = b.module.words(numbers)
    first, shift = b.lshr(position, 6), b.and_(position, 63)
    found = [b.load("i64", b.gep("i64", table, b.add(first, i)), WORD_BYTES) for i in range(count + 1)]
    return [b.intrinsic("fshl", high, low, shift) for high, low in pairwise(found)]


def top_of_product(b: FunctionBuilder, m: V, words: list[V]) -> V:
    """The upper 128 of the lower 192 bits of m times the three words, as i128."""
    wide = b.cast("zext", m, "i128")
    high, middle, low = (b.mul(wide, b.cast("zext", word, "i128")) for word in words)
    return b.add(b.add(b.shl(high, 64), middle), b.lshr(low, 64))


def times_half_pi(b: FunctionBuilder, turn: V) -> Pair:
    """pi/2 times a signed fraction of 128 bits."""
    high, low = b.cast("trunc", b.ashr(turn, 64), "i64"), b.cast("trunc", turn, "i64")
    upper = b.cast("sitofp", b.and_(high, -1024), "double")
    middle = b.cast("sitofp", b.and_(high, 1023), "double")
    whole = two_sum(b, upper, middle)  # all exact: high has 64 bits
    rest = b.fma(b.cast("uitofp", low, "double"), 2.0**-64, whole.lo)
    value = fast_two_sum(b, whole.hi, rest)
    hi, lo = (b.fmul(part, 2.0**-64) for part in value)
    product = two_product(b, hi, const("double", HALF_PI[0]))
    return fast_two_sum(b, product.hi, b.fma(hi, HALF_PI[1], b.fma(lo, HALF_PI[0], product.lo)))
