"""erf: one polynomial for each of 16 intervals."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import coefficients as c
from pullback.codegen.math.kit import at_least, at_most, copysign, fabs, format_of, horner, lookup, to_bits

INTERVALS_PER_UNIT = 2.95  # of ERF_INTERVALS in tools/fit_table.py
FIRST_ENDS = 2.5 / INTERVALS_PER_UNIT
ONE_FROM = 5.93


def erf(b: FunctionBuilder, x: V) -> V:
    fmt = format_of(x)
    size = at_most(b, fabs(b, x), ONE_FROM)
    shifted = b.fma(at_least(b, size, 0.7), INTERVALS_PER_UNIT, fmt.round_magic - 2.0)
    index = b.sub(to_bits(b, shifted), fmt.bits_of(fmt.round_magic))
    centre, value, *q = lookup(b, c.ERF[fmt.name], index, x)
    t = b.fsub(size, centre)
    first = b.fcmp("olt", size, FIRST_ENDS)
    argument = b.select(first, b.fmul(t, t), t)
    return copysign(b, b.fma(t, horner(b, argument, q), b.select(first, t, value)), x)
