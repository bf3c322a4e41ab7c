"""erfinv, erfcinv, ndtri: a polynomial around the middle, pieces in sqrt(-log(q)) for the tails q."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import inverse_erf_pieces as pieces
from pullback.codegen.math import special_coefficients as c
from pullback.codegen.math.kit import (
    INF,
    NAN,
    Pair,
    constant,
    copysign,
    fabs,
    fast_two_sum,
    in_double,
    pieces_pair,
    polynomial,
    quarter_of_octave,
    sqrt_pair,
    two_product,
)
from pullback.codegen.math.log import log_pair_of_positive, normalised

HALF_SQRT_PI = (float.fromhex("0x1.c5bf891b4ef6bp-1"), float.fromhex("-0x1.618f13eb7ca89p-55"))
SQRT_TWO = (float.fromhex("0x1.6a09e667f3bcdp+0"), float.fromhex("-0x1.bdd3413b26456p-54"))
FIRST_ROW = 2  # of the pieces: quarters of octaves from 3/4, not from 1/2


def erfinv(b: FunctionBuilder, x: V) -> V:
    return in_double(b, erfinv_of_double, x)


def erfinv_of_double(b: FunctionBuilder, y: V) -> V:
    size = fabs(b, y)
    near = b.fcmp("ole", size, 0.5)
    tail = total(b, tail_value(b, b.select(near, 0.5, b.rfsub(1.0, size))))
    tail = b.select(b.fcmp("oeq", size, 1.0), INF, tail)
    middle = b.fadd(total(b, central(b, b.select(near, y, 0.5))), 0.0)  # +0 at both zeros, as SciPy has it
    value = b.select(near, middle, copysign(b, tail, y))
    return b.select(b.fcmp("ule", size, 1.0), b.select(b.fcmp("uno", y, y), y, value), NAN)


def erfcinv(b: FunctionBuilder, x: V) -> V:
    return in_double(b, erfcinv_of_double, x)


def erfcinv_of_double(b: FunctionBuilder, q: V) -> V:
    middle = b.fneg(b.fsub(q, 1.0))  # -0 in the middle, as SciPy has it
    return total(b, from_tail(b, q, b.rfsub(2.0, q), middle))


def ndtri(b: FunctionBuilder, x: V) -> V:
    return in_double(b, ndtri_of_double, x)


def ndtri_of_double(b: FunctionBuilder, p: V) -> V:
    """-sqrt(2) erfcinv(2 p)."""
    double, upper = b.fmul(p, 2.0), b.fmul(b.rfsub(1.0, p), 2.0)
    value = from_tail(b, double, upper, b.rfsub(1.0, double))
    product = two_product(b, value.hi, constant(p, -SQRT_TWO[0]))
    lo = b.fma(value.lo, -SQRT_TWO[0], b.fma(value.hi, -SQRT_TWO[1], product.lo))
    return b.select(b.fcmp("olt", fabs(b, value.hi), INF), b.fadd(product.hi, lo), product.hi)


def from_tail(b: FunctionBuilder, q: V, upper: V, middle: V) -> Pair:
    """erfcinv(q), of q, 2 - q and 1 - q (exact where they are used); inf at 0, -inf at 2, NaN outside."""
    near = b.fcmp("ole", fabs(b, middle), 0.5)
    lower = b.fcmp("olt", q, 1.0)
    smaller = b.select(lower, q, upper)
    tail = tail_value(b, b.select(near, 0.5, smaller))
    inside = central(b, b.select(near, middle, 0.5))
    hi = b.select(near, inside.hi, b.select(lower, tail.hi, b.fneg(tail.hi)))
    lo = b.select(near, inside.lo, b.select(lower, tail.lo, b.fneg(tail.lo)))
    end = b.fcmp("oeq", smaller, 0.0)
    hi = b.select(end, b.select(lower, constant(q, INF), constant(q, -INF)), hi)
    hi = b.select(b.fcmp("oge", smaller, 0.0), hi, NAN)
    return Pair(hi, b.select(end, 0.0, lo))


def total(b: FunctionBuilder, x: Pair) -> V:
    return b.fadd(x.hi, x.lo)


def central(b: FunctionBuilder, y: V) -> Pair:
    """erfinv(y) for |y| <= 1/2."""
    z = b.fmul(y, y)
    lead = two_product(b, y, constant(y, HALF_SQRT_PI[0]))
    tail = b.fma(y, HALF_SQRT_PI[1], lead.lo)
    rest = b.fma(b.fmul(y, z), polynomial(b, z, c.ERFINV_TAIL), tail)
    return Pair(lead.hi, b.select(b.fcmp("oeq", y, 0.0), y, rest))


def tail_value(b: FunctionBuilder, q: V) -> Pair:
    """erfcinv(q) for 0 < q <= 1/2."""
    normal, power = normalised(b, q)
    logarithm = log_pair_of_positive(b, normal, power)
    s = sqrt_pair(b, Pair(b.fneg(logarithm.hi), b.fneg(logarithm.lo)))
    index = b.sub(quarter_of_octave(b, s.hi, -1), FIRST_ROW)
    value = pieces_pair(b, pieces.ERFCINV["double"], index, s.hi)
    return fast_two_sum(b, value.hi, b.fadd(value.lo, s.lo))  # the derivative is within 8 % of 1
