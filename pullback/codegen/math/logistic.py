"""expit and log_expit."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math.exp import LIMITS, exp_pair
from pullback.codegen.math.kit import (
    Pair,
    at_most,
    constant,
    fabs,
    fast_two_sum,
    format_of,
    pair_quotient,
    scale_by,
)
from pullback.codegen.math.log import log_of_pair


def expit(b: FunctionBuilder, x: V) -> V:
    """exp(min(x, 0)) / (1 + exp(-|x|))."""
    power = exp_of_minus_size(b, x)
    negative = b.fcmp("olt", x, 0.0)
    above = Pair(b.select(negative, power.hi, 1.0), b.select(negative, power.lo, 0.0))
    return pair_quotient(b, above, one_plus(b, power))


def log_expit(b: FunctionBuilder, x: V) -> V:
    """min(x, 0) - log(1 + exp(-|x|))."""
    tail = log_of_pair(b, one_plus(b, exp_of_minus_size(b, x)), None)
    return b.fsub(b.select(b.fcmp("olt", x, 0.0), x, -0.0), tail)


def exp_of_minus_size(b: FunctionBuilder, x: V) -> Pair:
    """exp(-|x|)."""
    size = at_most(b, fabs(b, x), -LIMITS[format_of(x).name].lowest)
    power, exponent = exp_pair(b, Pair(b.fneg(size), constant(x, 0.0)))
    return Pair(scale_by(b, power.hi, exponent), scale_by(b, power.lo, exponent))


def one_plus(b: FunctionBuilder, x: Pair) -> Pair:
    """1 + x for 0 <= x <= 1."""
    total = fast_two_sum(b, constant(x.hi, 1.0), x.hi)
    return Pair(total.hi, b.fadd(total.lo, x.lo))
