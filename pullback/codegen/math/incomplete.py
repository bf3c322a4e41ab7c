"""gammainc and gammaincc and their derivatives in the first argument.

With D = x**a exp(-x) / gamma(a + 1): for x < 1 and x < a P is D times a power series, else Q is a D times a continued
fraction; either is run downwards, from where it makes no difference. For large a P = a D J for x < a and Q = a D J for
x >= a, where J is the integral of exp((a - x) w - x (exp(w) - 1 - w)) over w < 0 or w > 0. All are power series in a
small change of a and carried as such (`Series`), so that a derivative of any order is one of its coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pullback.codegen.llvm import FunctionBuilder, V, lanes_of
from pullback.codegen.math import coefficients as c
from pullback.codegen.math.exp import exp, exp2_of_pair, expm1
from pullback.codegen.math.gamma import digamma_of_positive, lgamma_below_eight, zeta_times_factorial
from pullback.codegen.math.gamma_function import LOG2_E, stirling_power
from pullback.codegen.math.kit import (
    DOUBLE,
    INF,
    NAN,
    Pair,
    at_least,
    at_most,
    constant,
    fabs,
    in_double,
    polynomial,
    sqrt,
    two_product,
    two_sum,
)
from pullback.codegen.math.log import log, log2_pair, log_correction, normalised, split
from pullback.codegen.math.quadrature import half_line
from pullback.errors import CodegenError

Series: TypeAlias = list[V]

HIGHEST = 8
TERMS = 19  # of a power series for x <= 1
LARGE = 2000.0  # above it sums and fractions are too long
PAIRS_UP_TO = 1000.0  # up to this a the exponent of D is a pair; above, it is small or D is
MOST_EXPONENT = 1100.0
SPARE = 64  # powers of two
TAYLOR = tuple(1 / math.factorial(k + 2) for k in range(18))  # (exp(w) - 1 - w) / w**2


def gammainc(b: FunctionBuilder, a: V, x: V, n: int) -> V:
    """The regularised lower incomplete gamma function, or its n-th derivative in a."""
    return in_double_of_two(b, a, x, n, lower=True)


def gammaincc(b: FunctionBuilder, a: V, x: V, n: int) -> V:
    """1 - gammainc(a, x), or its n-th derivative in a."""
    return in_double_of_two(b, a, x, n, lower=False)


def in_double_of_two(b: FunctionBuilder, a: V, x: V, n: int, lower: bool) -> V:
    """
    Raises
    ------
    CodegenError : n is out of range
    """
    if not 0 <= n <= HIGHEST:
        name = "gammainc" if lower else "gammaincc"
        raise CodegenError(f"{name} can be differentiated {HIGHEST} times in its first argument, found n = {n}")
    return in_double(b, lambda inner, u, v: incomplete(inner, u, v, n, lower), a, x)


def incomplete(b: FunctionBuilder, a: V, x: V, n: int, lower: bool) -> V:
    inside = b.and_(b.fcmp("oge", a, 0.0), b.fcmp("ogt", x, 0.0))
    inside = b.and_(inside, b.and_(b.fcmp("olt", a, INF), b.fcmp("olt", x, INF)))
    point = Point(b, b.select(inside, a, 1.0), b.select(inside, x, 1.0), n)
    small, upper = b.fcmp("olt", point.x, 1.0), b.fcmp("oge", point.x, point.a)
    is_lower = b.or_(small, b.not_(upper))
    large = b.and_(b.fcmp("ogt", point.a, LARGE), b.not_(small))
    moderate = b.not_(large)
    series = by_series(point, b.and_(is_lower, moderate))
    fraction = by_fraction(point, b.and_(b.not_(is_lower), moderate))
    value = b.select(large, by_integral(point, large, upper), b.select(is_lower, series, fraction))
    if n:
        value = b.select(is_lower, value, b.fneg(value)) if lower else b.select(is_lower, b.fneg(value), value)
    else:
        other = b.rfsub(1.0, value)
        value = b.select(is_lower, value, other) if lower else b.select(is_lower, other, value)
        if not lower:
            value = b.select(b.and_(small, b.fcmp("olt", point.a, 1.0)), upper_near_zero(point), value)
    return b.select(inside, value, ends(b, a, x, n, lower))


def ends(b: FunctionBuilder, a: V, x: V, n: int, lower: bool) -> V:
    """Where an argument is infinite or x is 0."""
    none, all_ = (0.0, 0.0) if n else (0.0, 1.0) if lower else (1.0, 0.0)
    empty = b.and_(b.fcmp("oeq", x, 0.0), b.fcmp("ogt", a, 0.0))
    empty = b.or_(empty, b.and_(b.fcmp("oeq", a, INF), b.and_(b.fcmp("oge", x, 0.0), b.fcmp("olt", x, INF))))
    full = b.and_(b.fcmp("oeq", x, INF), b.and_(b.fcmp("oge", a, 0.0), b.fcmp("olt", a, INF)))
    return b.select(empty, none, b.select(full, constant(x, all_), constant(x, NAN)))


class Point:
    """a and x, and what the branches share, made once."""

    def __init__(self, b: FunctionBuilder, a: V, x: V, n: int) -> None:
        self.b, self.a, self.x, self.n = b, a, x, n
        self.zero = constant(a, 0.0)
        self.delta = b.fdiv(b.fsub(x, a), at_least(b, a, DOUBLE.min_normal))
        near = b.and_(b.fcmp("ogt", self.delta, -0.29), b.fcmp("olt", self.delta, 0.41))
        self.near = near
        self.correction = log_correction(b, b.select(near, self.delta, 0.0), None)
        self.log_ratio = b.select(
            near, b.fsub(self.delta, self.correction), log(b, b.select(near, 1.0, self._quotient()))
        )
        self.density = self._density()

    def _quotient(self) -> V:
        """x / a, not so small that its logarithm is infinite."""
        b = self.b
        return at_least(b, b.fdiv(self.x, at_least(b, self.a, 0.5)), DOUBLE.min_normal)

    def _density(self) -> Series:
        """D at a + e as a power series in e."""
        b = self.b
        value = b.select(b.fcmp("ole", self.a, PAIRS_UP_TO), self._density_by_pairs(), self._density_of_large())
        if not self.n:
            return [value]
        exponent = [self.zero, self._log_slope()]
        for k in range(2, self.n + 1):
            bounded = at_least(b, self.a, 0.0)
            derivative = zeta_times_factorial(b, bounded, k - 1, True)
            exponent.append(b.fmul(derivative, -1.0 / math.factorial(k)))
        return [b.fmul(value, factor) for factor in exp_of_series(b, exponent)]

    def _density_by_pairs(self) -> V:
        b = self.b
        a = at_most(b, self.a, PAIRS_UP_TO)
        power, product = stirling_power(b, a, first=1)
        normal, doublings = normalised(b, self.x)
        log2 = log2_pair(b, split(b, normal).shifted(b, doublings))
        lead = two_product(b, log2.hi, a)
        less = two_product(b, self.x, constant(a, -LOG2_E[0]))
        total, rest = two_sum(b, lead.hi, less.hi), b.fma(log2.lo, a, b.fadd(lead.lo, less.lo))
        rest = b.fadd(b.fma(self.x, -LOG2_E[1], rest), b.fsub(total.lo, power.lo))
        # below 8 a large product follows, which must not come too late for a number that is nearly 0
        shifted = b.fcmp("olt", a, 8.0)
        whole = two_sum(b, total.hi, b.fneg(power.hi))
        raised = two_sum(b, whole.hi, b.select(shifted, constant(a, float(SPARE)), 0.0))
        whole = Pair(raised.hi, b.fadd(whole.lo, raised.lo))
        inside = b.fcmp("ogt", whole.hi, -MOST_EXPONENT)
        bounded = Pair(b.select(inside, whole.hi, -MOST_EXPONENT), b.select(inside, b.fadd(whole.lo, rest), 0.0))
        value = exp2_of_pair(b, bounded)
        return b.select(shifted, b.fmul(value, b.fmul(product.hi, 2.0**-SPARE)), b.fdiv(value, at_least(b, a, 8.0)))

    def _density_of_large(self) -> V:
        """exp(-a (d - log(1 + d))) / sqrt(2 pi a) by Stirling's series, with d = (x - a) / a."""
        b = self.b
        a = at_least(b, self.a, PAIRS_UP_TO)
        fall = b.select(self.near, self.correction, b.fsub(self.delta, self.log_ratio))
        inverse = b.rfdiv(1.0, a)
        series = b.fmul(inverse, polynomial(b, b.fmul(inverse, inverse), c.LGAMMA_TAIL))
        value = exp(b, b.fneg(b.fma(a, fall, series)))
        return b.fdiv(value, sqrt(b, b.fmul(a, 2.0 * math.pi)))

    def _log_slope(self) -> V:
        """log(x) - digamma(a + 1), which from 8 on is log(x / a) - 1 / (2 a) + ..."""
        b = self.b
        usual = b.fsub(log(b, self.x), digamma_of_positive(b, b.fadd(self.a, 1.0)))
        inverse = b.rfdiv(1.0, at_least(b, self.a, 8.0))
        series = b.fmul(inverse, polynomial(b, b.fmul(inverse, inverse), c.DIGAMMA_TAIL))
        large = b.fma(inverse, b.fadd(series, -0.5), self.log_ratio)
        return b.select(b.fcmp("oge", self.a, 8.0), large, usual)


# --- power series in a small change of a ----------------------------------------------------------------------------


def exp_of_series(b: FunctionBuilder, exponent: Series) -> Series:
    """exp of a series without constant term: k f(k) = sum of j exponent(j) f(k - j)."""
    found = [constant(exponent[0], 1.0)]
    for k in range(1, len(exponent)):
        total = b.fmul(exponent[k], float(k))
        for j in range(1, k):
            total = b.fma(b.fmul(exponent[j], float(j)), found[k - j], total)
        found.append(b.fmul(total, 1.0 / k))
    return found


def coefficient(b: FunctionBuilder, one: Sequence[V], other: Sequence[V], n: int) -> V:
    """Coefficient number n of a product."""
    total = b.fmul(one[0], other[n])
    for k in range(1, n + 1):
        total = b.fma(one[k], other[n - k], total)
    return total


def steps(b: FunctionBuilder, where: V, count: V) -> V:
    """The largest count of the lanes `where`, as an integer; 0 where there are none."""
    return b.cast("fptosi", b.reduce("fmax", b.select(where, count, 0.0)), "i64")


def downwards(b: FunctionBuilder, count: V, like: V, start: Series, step: Callable[[V, Series], Series]) -> Series:
    """`step(k, state)` for k = count, ..., 1."""
    with b.loop(0, count, carry=start) as loop:
        k = b.cast("sitofp", b.sub(count, loop.index), "double")
        loop.turn(*step(b.splat(k, lanes_of(like.type)), list(loop.carry)))
    return list(loop.results)


def by_series(p: Point, where: V) -> V:
    """P = D (1 + x / (a + 1) (1 + x / (a + 2) (1 + ...))), of x < 1 and x < a."""
    b, n = p.b, p.n
    a, x = b.select(where, p.a, 1.0), b.select(where, p.x, 0.5)

    def step(k: V, total: Series) -> Series:
        inverse = b.rfdiv(1.0, b.fadd(a, k))
        found: Series = []
        for term in total:
            above = b.fmul(x, term)
            found.append(b.fmul(b.fsub(above, found[-1]) if found else above, inverse))
        found[0] = b.fadd(found[0], 1.0)
        return found

    growing = b.select(b.fcmp("olt", x, 1.0), 1.0, a)  # where x < 1 the length does not depend on a, which may be huge
    count = steps(b, where, b.fma(sqrt(b, growing), 9.0, constant(a, 20.0)))
    total = downwards(b, count, a, [constant(a, 1.0), *[p.zero] * n], step)
    return b.fmul(coefficient(b, p.density, total, n), float(math.factorial(n)))


def by_fraction(p: Point, where: V) -> V:
    """Q = a D / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)), of x >= 1 and x >= a."""
    b, n = p.b, p.n
    a, x = b.select(where, p.a, 1.0), b.select(where, p.x, 2.0)
    minus_one = [constant(a, -1.0)] if n else []
    base = b.fsub(x, a)

    def step(k: V, below: Series) -> Series:
        above = [b.fmul(k, b.fsub(k, a)), *([b.fneg(k)] if n else [])]
        found = [b.fneg(part) for part in quotient(b, above, below)]
        found[0] = b.fadd(b.fma(k, 2.0, b.fadd(base, -1.0)), found[0])
        return [found[0], *[b.fadd(part, one) for part, one in zip(found[1:2], minus_one, strict=True)], *found[2:]]

    length = b.fma(sqrt(b, a), 4.0, b.fadd(b.rfdiv(110.0, x), 15.0))
    count = steps(b, where, length)
    last = b.fma(b.splat(b.cast("sitofp", count, "double"), lanes_of(a.type)), 2.0, b.fadd(base, 1.0))
    start = [last, *minus_one, *[p.zero] * (n - 1)]
    return times_a(p, quotient(b, [constant(a, 1.0)], downwards(b, count, a, start, step)))


def quotient(b: FunctionBuilder, above: Series, below: Series) -> Series:
    """The quotient of two series, as long as the second."""
    inverse = b.rfdiv(1.0, below[0])
    found: Series = []
    for k in range(len(below)):
        rest = above[k] if k < len(above) else constant(inverse, 0.0)
        for j, part in enumerate(found):
            rest = b.fma(b.fneg(part), below[k - j], rest)
        found.append(b.fmul(rest, inverse))
    return found


def times_a(p: Point, parts: Series) -> V:
    """The n-th derivative of a D times `parts`."""
    b, n = p.b, p.n
    result = b.fmul(p.a, coefficient(b, p.density, parts, n))
    if n:
        result = b.fadd(result, coefficient(b, p.density, parts, n - 1))
    return b.fmul(result, float(math.factorial(n)))


def by_integral(p: Point, where: V, upper: V) -> V:
    """a D J for large a: the upper part where `upper`, else the lower one."""
    b = p.b
    a, x = b.select(where, p.a, 1.0), b.select(where, p.x, 1.0)
    apart = fabs(b, b.fsub(x, a))

    def integrand(v: V) -> list[V]:
        w = b.select(upper, v, b.fneg(v))
        value = exp(b, b.fneg(b.fma(x, exp_beyond_linear(b, w), b.fmul(apart, v))))
        values = [value]
        for _ in range(p.n):
            values.append(b.fmul(values[-1], w))
        return values

    scale = b.rfdiv(1.0, b.fadd(apart, sqrt(b, x)))
    integrals = half_line(b, scale, p.n + 1, integrand, b.any(where))
    return times_a(p, [b.fmul(value, 1.0 / math.factorial(k)) for k, value in enumerate(integrals)])


def exp_beyond_linear(b: FunctionBuilder, w: V) -> V:
    """exp(w) - 1 - w."""
    small = b.fcmp("ole", fabs(b, w), 1.0)
    inside = b.select(small, w, 0.0)
    near = b.fmul(b.fmul(inside, inside), polynomial(b, inside, {"double": TAYLOR}))
    return b.select(small, near, b.fsub(b.fsub(exp(b, w), 1.0), w))


def upper_near_zero(p: Point) -> V:
    """Q for a < 1 and x < 1, exact where it is small: 1 - x**a / gamma(a + 1) (1 + a sum of (-x)**k / ((a + k) k!))."""
    b, a, x = p.b, at_most(p.b, p.a, 1.0), at_most(p.b, p.x, 1.0)
    whole = constant(a, 0.0)
    for k in range(TERMS, 0, -1):
        term = b.rfdiv(1.0, b.fmul(b.fadd(a, float(k)), float(math.factorial(k))))
        whole = b.fmul(b.fadd(term, whole), b.fneg(x))
    log_gamma = lgamma_below_eight(b, a, b.fcmp("oge", a, 0.0))
    exponent = b.fsub(b.fma(a, log(b, x), b.fneg(log_gamma.hi)), log_gamma.lo)
    rest = expm1(b, exponent)
    return b.fneg(b.fma(b.fmul(b.fadd(rest, 1.0), a), whole, rest))
