"""Bessel functions J and Y of integer order.

Orders 0 and 1: below 8 pieces (of Y without its logarithm and its pole), from 8 on Hankel's form, where the error is
relative to 1 / sqrt(x). Higher orders of Y by recurrence; of J too where x is beyond n, below by the power series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import bessel_pieces as pieces
from pullback.codegen.math import special_coefficients as c
from pullback.codegen.math.kit import (
    DOUBLE,
    NAN,
    Pair,
    at_most,
    constant,
    copysign,
    fabs,
    fast_two_sum,
    in_double,
    pair_product,
    pieces_pair,
    polynomial,
    sqrt,
    to_bits,
    two_product,
    two_sum,
)
from pullback.codegen.math.log import log
from pullback.codegen.math.pieces import Rows
from pullback.codegen.math.trig import sin_cos
from pullback.errors import CodegenError

TURN = 8.0
PIECES_PER_UNIT = 2.0
PIECES = 16
TWO_OVER_PI = 2.0 / math.pi
HIGHEST_ORDER = 104
TERM = 2.0**-60  # terms below it do not count

J_ROWS = (pieces.J0, pieces.J1)
Y_ROWS = (pieces.Y0_SMOOTH, pieces.Y1_SMOOTH)


def check_order(name: str, n: int, highest: int = HIGHEST_ORDER) -> None:
    """
    Raises
    ------
    CodegenError : the order is out of range
    """
    if not 0 <= n <= highest:
        raise CodegenError(f"{name} needs an order 0 <= n <= {highest}, found n = {n}")


def jv(b: FunctionBuilder, x: V, n: int) -> V:
    """The Bessel function of the first kind, of order n; NaN at both infinities."""
    check_order("jv", n)
    return in_double(b, lambda inner, wide: jv_of_double(inner, wide, n), x)


def yv(b: FunctionBuilder, x: V, n: int) -> V:
    """The Bessel function of the second kind, of order n; -inf at 0, NaN below and at inf."""
    check_order("yv", n)
    return in_double(b, lambda inner, wide: yv_of_double(inner, wide, n), x)


def jv_of_double(b: FunctionBuilder, x: V, n: int) -> V:
    size = fabs(b, x)
    values = first_kind(b, size, (n,) if n < 2 else (0, 1))
    value = values[-1]
    if n > 1:
        limit = max(3.0, float(n))
        above = b.select(b.fcmp("ogt", size, limit), size, limit)
        value = upward(b, values[0], values[1], above, n)
        series = paired_series(b, at_most(b, size, limit), n, limit)
        value = b.select(b.fcmp("ole", size, limit), series, value)
        value = b.select(b.fcmp("uno", x, x), x, value)
    if n % 2:
        return b.select(b.fcmp("oeq", x, 0.0), copysign(b, constant(x, 0.0), x) if n == 1 else 0.0, odd(b, value, x))
    return value


def odd(b: FunctionBuilder, value: V, x: V) -> V:
    return b.select(b.fcmp("olt", x, 0.0), b.fneg(value), value)


def upward(b: FunctionBuilder, first: V, second: V, x: V, n: int) -> V:
    """The order n from 0 and 1: f(k + 1) = 2 k / x f(k) - f(k - 1)."""
    twice = b.rfdiv(2.0, x)
    for k in range(1, n):
        first, second = second, b.fma(b.fmul(twice, float(k)), second, b.fneg(first))
    return second


def yv_of_double(b: FunctionBuilder, x: V, n: int) -> V:
    positive = b.fcmp("ogt", x, 0.0)
    safe = b.select(positive, x, 1.0)
    values = second_kind(b, safe, (n,) if n < 2 else (0, 1))
    value = values[-1]
    if n > 1:
        value = upward(b, values[0], values[1], safe, n)
        value = b.select(b.fcmp("ord", value, value), value, -math.inf)  # inf - inf
    edge = b.select(b.fcmp("oeq", x, 0.0), constant(x, -math.inf), constant(x, NAN))
    value = b.select(b.fcmp("oeq", x, math.inf), NAN, value)
    return b.select(positive, value, edge)


# --- orders 0 and 1 -------------------------------------------------------------------------------------------------


def first_kind(b: FunctionBuilder, x: V, orders: Sequence[int]) -> list[V]:
    """J of orders 0 or 1 at x >= 0."""
    near = b.fcmp("olt", x, TURN)
    inside = b.select(near, x, 0.0)
    outside = Hankel(b, b.select(near, TURN, x))
    return [b.select(near, piece(b, J_ROWS[n], inside), outside.first(n)) for n in orders]


def second_kind(b: FunctionBuilder, x: V, orders: Sequence[int]) -> list[V]:
    """Y of orders 0 or 1 at x > 0."""
    near = b.fcmp("olt", x, TURN)
    inside = b.select(near, x, 1.0)
    outside = Hankel(b, b.select(near, TURN, x))
    logarithm = log(b, inside)
    found = []
    for n in orders:
        scaled = b.fmul(logarithm, TWO_OVER_PI)
        value = b.fma(scaled, piece(b, J_ROWS[n], inside), piece(b, Y_ROWS[n], inside))
        if n:
            value = b.fsub(value, b.rfdiv(TWO_OVER_PI, inside))
        found.append(b.select(near, value, outside.second(n)))
    return found


def piece(b: FunctionBuilder, rows: Rows, x: V) -> V:
    """A function in pieces of 1/2 at 0 <= x < 8."""
    shifted = b.fadd(b.fma(x, PIECES_PER_UNIT, -0.5), DOUBLE.round_magic)
    index = b.sub(to_bits(b, shifted), DOUBLE.bits_of(DOUBLE.round_magic))
    index = b.intrinsic("umin", index, PIECES - 1)
    value = pieces_pair(b, rows["double"], index, x)
    return b.fadd(value.hi, value.lo)


class Hankel:
    """sqrt(2 / (pi x)) (P cos(x - ...) -+ Q sin(x - ...)) for x >= 8; what both orders share is made once."""

    def __init__(self, b: FunctionBuilder, x: V) -> None:
        self.b = b
        self.inverse = b.rfdiv(1.0, x)
        self.square = b.fmul(self.inverse, self.inverse)
        sine, cosine = sin_cos(b, x)
        self.plus, self.minus = b.fadd(cosine, sine), b.fsub(sine, cosine)
        self.size = sqrt(b, b.rfdiv(1.0 / math.pi, x))

    def parts(self, n: int) -> tuple[V, V]:
        b = self.b
        tail, slope = ((c.HANKEL_P0, c.HANKEL_Q0), (c.HANKEL_P1, c.HANKEL_Q1))[n]
        p = b.fma(self.square, polynomial(b, self.square, tail), constant(self.square, 1.0))
        return p, b.fmul(self.inverse, polynomial(b, self.square, slope))

    def first(self, n: int) -> V:
        (p, q), b = self.parts(n), self.b
        if n:
            return b.fmul(self.size, b.fma(p, self.minus, b.fmul(q, self.plus)))
        return b.fmul(self.size, b.fma(p, self.plus, b.fneg(b.fmul(q, self.minus))))

    def second(self, n: int) -> V:
        (p, q), b = self.parts(n), self.b
        if n:
            return b.fmul(self.size, b.fma(q, self.minus, b.fneg(b.fmul(p, self.plus))))
        return b.fmul(self.size, b.fma(p, self.minus, b.fmul(q, self.plus)))


# --- power series ---------------------------------------------------------------------------------------------------


def series_length(n: int, limit: float) -> int:
    """Number of terms of sum (x / 2)**(2 k) / (k! (n + 1)...(n + k)) for x up to `limit`."""
    term, k = 1.0, 0
    while term > TERM or k * (n + k) < limit * limit / 4:
        k += 1
        term *= limit * limit / 4 / (k * (n + k))
    return k


def lead(b: FunctionBuilder, x: V, n: int) -> V:
    """(x / 2)**n / n!, in factors that neither overflow nor underflow before the product does."""
    half = b.fmul(x, 0.5)
    value = constant(x, 1.0)
    for k in range(1, n + 1):
        value = b.fmul(value, b.fmul(half, 1.0 / k))
    return value


def paired_series(b: FunctionBuilder, x: V, n: int, limit: float) -> V:
    """J_n(x), in pairs: the terms cancel."""
    square = two_product(b, x, b.fmul(x, -0.25))
    z = Pair(square.hi, square.lo)
    total = Pair(constant(x, 1.0), constant(x, 0.0))
    for k in range(series_length(n, limit), 0, -1):
        factor = divided(b, pair_product(b, total, z), float(k * (n + k)))
        lead_one = two_sum(b, constant(x, 1.0), factor.hi)
        total = fast_two_sum(b, lead_one.hi, b.fadd(lead_one.lo, factor.lo))
    return b.fmul(lead(b, x, n), total.hi)


def divided(b: FunctionBuilder, x: Pair, number: float) -> Pair:
    """x / number."""
    quotient = b.fdiv(x.hi, number)
    rest = b.fadd(b.fma(b.fneg(quotient), number, x.hi), x.lo)
    return Pair(quotient, b.fdiv(rest, number))
