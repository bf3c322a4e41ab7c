"""cbrt and hypot."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V, const, with_element
from pullback.codegen.math import coefficients as c
from pullback.codegen.math.kit import (
    INF,
    constant,
    copysign,
    fabs,
    format_of,
    from_bits,
    polynomial,
    sqrt,
    to_bits,
    two_product,
)
from pullback.record import record


def cbrt(b: FunctionBuilder, x: V) -> V:
    """x = m 2**(3 k), m between 1/2 and 4: a polynomial for m**(-1/3), two steps, and one correction of m y**2."""
    fmt = format_of(x)
    size = fabs(b, x)
    small = b.fcmp("olt", size, fmt.min_normal)
    scaled = 3 * (fmt.mantissa // 3 + 1)
    bits = to_bits(b, b.select(small, b.fmul(size, 2.0**scaled), size))
    # k is a third of the exponent to the nearest. Division by 3 is multiplication by 2**16 / 3, of a positive number.
    thirds = fmt.bias // 3 + 1
    positive = b.add(b.lshr(bits, fmt.mantissa), 3 * thirds - fmt.bias + 1)
    k = b.sub(b.lshr(b.mul(positive, 21846), 16), thirds)
    m = from_bits(b, b.sub(bits, b.shl(b.mul(k, 3), fmt.mantissa)))
    root = cbrt_of_reduced(b, m)
    up = with_element(x.type, fmt.integer)
    k = b.sub(k, b.select(small, const(up, scaled // 3), 0))
    result = from_bits(b, b.add(to_bits(b, root), b.shl(k, fmt.mantissa)))
    usual = b.and_(b.fcmp("ogt", size, 0.0), b.fcmp("olt", size, INF))
    return b.select(usual, copysign(b, result, x), x)


def cbrt_of_reduced(b: FunctionBuilder, m: V) -> V:
    y = polynomial(b, m, c.INVERSE_CUBE_ROOT)
    for _ in range(1 if format_of(m).name == "float" else 2):
        rest = b.fma(b.fmul(b.fneg(m), y), b.fmul(y, y), 1.0)
        y = b.fma(b.fmul(y, rest), b.fma(rest, 2.0 / 9.0, 1.0 / 3.0), y)
    square = b.fmul(y, y)
    root = b.fmul(m, square)
    power = two_product(b, root, root)
    lost = b.fma(b.fneg(root), power.lo, b.fma(b.fneg(root), power.hi, m))
    return b.fma(lost, b.fmul(square, 1.0 / 3.0), root)


@record(frozen=True)
class Span:
    """Exponents of numbers that can be squared, and by how much to scale others."""

    high: int
    down: int
    low: int
    up: int


SPANS = {"double": Span(500, -600, -500, 700), "float": Span(50, -75, -50, 100)}


def hypot(b: FunctionBuilder, x: V, y: V) -> V:
    """sqrt(x**2 + y**2), scaled where a square would overflow or vanish."""
    span = SPANS[format_of(x).name]
    one, other = fabs(b, x), fabs(b, y)
    greater = b.fcmp("ogt", one, other)
    large, small = b.select(greater, one, other), b.select(greater, other, one)
    high, low = b.fcmp("ogt", large, 2.0**span.high), b.fcmp("olt", large, 2.0**span.low)
    there = b.select(high, constant(x, 2.0**span.down), b.select(low, constant(x, 2.0**span.up), 1.0))
    back = b.select(high, constant(x, 2.0**-span.down), b.select(low, constant(x, 2.0**-span.up), 1.0))
    large, small = b.fmul(large, there), b.fmul(small, there)
    root = b.fmul(sqrt(b, b.fma(large, large, b.fmul(small, small))), back)
    infinite = b.or_(b.fcmp("oeq", one, INF), b.fcmp("oeq", other, INF))
    return b.select(infinite, INF, root)
