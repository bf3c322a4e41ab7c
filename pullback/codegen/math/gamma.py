"""lgamma, digamma, polygamma, in double precision; floats are computed as doubles and rounded.

Up to 8 a polynomial for each quarter of an octave, of the function without its zeros; from 8 on Stirling's series;
below zero the reflection formulas, which are rare and therefore helper functions.
"""

from __future__ import annotations

import math
from fractions import Fraction

from pullback.codegen.llvm import FunctionBuilder, V, lanes_of
from pullback.codegen.math import coefficients as c
from pullback.codegen.math import pieces
from pullback.codegen.math.kit import (
    DOUBLE,
    INF,
    NAN,
    Pair,
    at_least,
    constant,
    fabs,
    fast_two_sum,
    helper,
    horner,
    in_double,
    is_odd,
    name_of,
    pair_inverse,
    pair_power,
    pair_product,
    pair_sum,
    patch_rare,
    pieces_pair,
    polynomial,
    quarter_of_octave,
    to_bits,
    two_product,
    two_sum,
)
from pullback.codegen.math.log import log, log_pair_of_positive
from pullback.codegen.math.trig import sin_cos_reduced
from pullback.errors import CodegenError

SERIES_FROM = 8.0
HALF_LOG_TWO_PI = (float.fromhex("0x1.d67f1c864beb5p-1"), float.fromhex("-0x1.65b5a1b7ff5dfp-55"))
DIGAMMA_ROOT = (float.fromhex("0x1.762d86356be3fp+0"), float.fromhex("0x1.b86a722197829p-54"))
PI = (float.fromhex("0x1.921fb54442d18p+1"), float.fromhex("0x1.1a62633145c07p-53"))
MOST_DERIVATIVES = 100


def less_one(rows: tuple[tuple[float, ...], ...]) -> list[tuple[float, ...]]:
    """Rows of a piecewise function of x, as rows of the same function of x - 1 (exact)."""
    return [(row[0] - 1.0, *row[1:]) for row in rows]


# --- lgamma ---------------------------------------------------------------------------------------------------------


def lgamma(b: FunctionBuilder, x: V) -> V:
    """log |gamma(x)|; inf at 0, -1, -2, ... and at both infinities."""
    return in_double(b, lgamma_of_double, x)


def lgamma_of_double(b: FunctionBuilder, x: V) -> V:
    common = lgamma_of_positive(b, x)
    rare = b.not_(b.and_(b.fcmp("ogt", x, DOUBLE.min_normal), b.fcmp("olt", x, INF)))
    (result,) = patch_rare(
        b, rare, [common], lambda: [helper(b, name_of("lgamma.any", x.type), x.type, [x], write_lgamma)]
    )
    return result


def lgamma_of_positive(b: FunctionBuilder, x: V) -> V:
    """For normal positive x. Below 1/2: lgamma(x + 1) - log(x)."""
    small, large = b.fcmp("olt", x, 0.5), b.fcmp("oge", x, SERIES_FROM)
    log_x = log_pair_of_positive(b, x)
    middle = lgamma_below_eight(b, x, small)
    lo = b.fsub(middle.lo, log_x.lo)
    with_log = two_sum(b, middle.hi, b.fneg(log_x.hi))
    middle = Pair(b.select(small, with_log.hi, middle.hi), b.select(small, b.fadd(with_log.lo, lo), middle.lo))
    series = stirling(b, x, log_x)
    hi, lo = (b.select(large, ours, others) for ours, others in zip(series, middle, strict=True))
    return b.select(b.fcmp("oeq", hi, INF), hi, b.fadd(hi, lo))


def lgamma_below_eight(b: FunctionBuilder, x: V, small: V) -> Pair:
    """lgamma(x), or lgamma(x + 1) where `small`, as (x - 1) (x - 2) times a positive function."""
    index = quarter_of_octave(b, b.select(small, b.fadd(x, 1.0), x), -1)
    one_less = b.select(small, x, b.fsub(x, 1.0))
    two_less = fast_two_sum(b, constant(x, -1.0), one_less)
    factor = pieces_pair(b, less_one(pieces.LGAMMA["double"]), index, one_less)
    product = two_product(b, one_less, two_less.hi)
    product = Pair(product.hi, b.fma(one_less, two_less.lo, product.lo))
    return pair_product(b, product, factor)


def stirling(b: FunctionBuilder, x: V, log_x: Pair) -> Pair:
    """(x - 1/2) log(x) - x + log(2 pi) / 2 + a series in 1/x, for x >= 8."""
    inverse = b.rfdiv(1.0, x)
    series = b.fmul(inverse, polynomial(b, b.fmul(inverse, inverse), c.LGAMMA_TAIL))
    # x (log(x) - 1) first, so that nothing overflows before the result does
    less = fast_two_sum(b, log_x.hi, constant(x, -1.0))
    product = two_product(b, x, less.hi)
    lo = b.fma(x, b.fadd(less.lo, log_x.lo), product.lo)
    rest = b.fma(log_x.hi, -0.5, HALF_LOG_TWO_PI[0])
    total = fast_two_sum(b, product.hi, rest)
    return Pair(total.hi, b.fadd(total.lo, b.fadd(lo, series)))


def write_lgamma(b: FunctionBuilder) -> None:
    """lgamma of any double: log(pi / |x sin(pi x)|) - lgamma(|x|) for x < 0."""
    (x,) = b.params
    size = fabs(b, x)
    positive = lgamma_of_positive(b, at_least(b, size, DOUBLE.min_normal))
    tiny = b.fcmp("olt", size, 2.0**-100)  # log(gamma(x)) is -log |x| there
    sine, _ = sin_cos_of_turns(b, size)
    argument = b.select(tiny, size, b.fmul(b.fmul(size, fabs(b, sine)), 1.0 / math.pi))
    minus_log = b.fneg(log(b, argument))
    reflected = b.select(b.fcmp("oeq", argument, 0.0), INF, b.fsub(minus_log, positive))
    result = b.select(b.fcmp("olt", x, 0.0), reflected, positive)
    result = b.select(tiny, minus_log, result)
    b.ret(b.select(b.fcmp("oeq", size, INF), INF, result))


def sin_cos_of_turns(b: FunctionBuilder, x: V) -> tuple[V, V]:
    """Sine and cosine of pi x, up to a common sign; exact zeros at integers and halves."""
    rest = b.fsub(x, b.intrinsic("rint", x))
    shifted = b.fma(rest, 2.0, DOUBLE.round_magic)
    quarter = b.fma(b.fsub(shifted, DOUBLE.round_magic), -0.5, rest)
    r = two_product(b, quarter, constant(x, PI[0]))
    sine, cosine = sin_cos_reduced(b, Pair(r.hi, b.fma(quarter, PI[1], r.lo)))
    one, other = b.fadd(sine.hi, sine.lo), b.fadd(cosine.hi, cosine.lo)
    odd, negative = is_odd(b, to_bits(b, shifted)), b.fcmp("olt", rest, 0.0)
    # sin(pi/2 + r) = cos(r), cos(pi/2 + r) = -sin(r); for -pi/2 both change sign
    swapped = b.select(negative, one, b.fneg(one))
    return b.select(odd, b.select(negative, b.fneg(other), other), one), b.select(odd, swapped, other)


# --- digamma --------------------------------------------------------------------------------------------------------


def digamma(b: FunctionBuilder, x: V) -> V:
    """Derivative of lgamma. NaN at -1, -2, ...; -inf at +0 and +inf at -0."""
    return in_double(b, digamma_of_double, x)


def digamma_of_double(b: FunctionBuilder, x: V) -> V:
    common = digamma_of_positive(b, x)
    rare = b.not_(b.and_(b.fcmp("ogt", x, 0.0), b.fcmp("olt", x, INF)))
    (result,) = patch_rare(
        b, rare, [common], lambda: [helper(b, name_of("digamma.any", x.type), x.type, [x], write_digamma)]
    )
    return result


def digamma_of_positive(b: FunctionBuilder, x: V) -> V:
    """Below 1: digamma(x + 1) - 1/x; up to 8: x less the root, times a positive function; then the series."""
    small, large = b.fcmp("olt", x, 1.0), b.fcmp("oge", x, SERIES_FROM)
    inverse = pair_inverse(b, Pair(x, constant(x, 0.0)))
    index = quarter_of_octave(b, b.select(small, b.fadd(x, 1.0), x), 0)
    one_less = b.select(small, x, b.fsub(x, 1.0))
    distance = two_sum(b, one_less, constant(x, 1.0 - DIGAMMA_ROOT[0]))
    distance = Pair(distance.hi, b.fsub(distance.lo, DIGAMMA_ROOT[1]))
    middle = pair_product(b, distance, pieces_pair(b, less_one(pieces.DIGAMMA["double"]), index, one_less))
    lower = two_sum(b, middle.hi, b.fneg(inverse.hi))
    lower_lo = b.fadd(lower.lo, b.fsub(middle.lo, inverse.lo))
    z = b.fmul(inverse.hi, inverse.hi)
    series = b.fma(z, polynomial(b, z, c.DIGAMMA_TAIL), b.fmul(inverse.hi, 0.5))
    log_x = log_pair_of_positive(b, x)
    hi = b.select(large, log_x.hi, b.select(small, lower.hi, middle.hi))
    lo = b.select(large, b.fsub(log_x.lo, series), b.select(small, lower_lo, middle.lo))
    return b.select(b.fcmp("olt", x, 2.0**-60), b.fneg(inverse.hi), b.fadd(hi, lo))


def write_digamma(b: FunctionBuilder) -> None:
    """digamma of any double: digamma(-x) - 1/x - pi cot(pi x) for x < 0."""
    (x,) = b.params
    size = fabs(b, x)
    positive = digamma_of_positive(b, size)
    sine, cosine = sin_cos_of_turns(b, size)
    cotangent = b.select(b.fcmp("oeq", sine, 0.0), NAN, b.fdiv(b.fmul(cosine, math.pi), sine))
    reflected = b.fadd(b.fadd(positive, b.rfdiv(1.0, size)), cotangent)
    result = b.select(b.fcmp("olt", x, 0.0), reflected, b.select(b.fcmp("oeq", x, INF), INF, positive))
    b.ret(b.select(b.fcmp("olt", size, 2.0**-60), b.rfdiv(-1.0, x), result))


# --- polygamma ------------------------------------------------------------------------------------------------------

# B(2k) / (2k)!
BERNOULLI = tuple(
    numerator / denominator / math.factorial(2 * k + 2)
    for k, (numerator, denominator) in enumerate(
        [
            (1, 6),
            (-1, 30),
            (1, 42),
            (-1, 30),
            (5, 66),
            (-691, 2730),
            (7, 6),
            (-3617, 510),
            (43867, 798),
            (-174611, 330),
        ]
    )
)


def polygamma(b: FunctionBuilder, x: V, n: int) -> V:
    """The n-th derivative of digamma, 1 <= n <= 100: (-1)**(n + 1) n! zeta(n + 1, x).

    At 0, -1, -2, ...: inf for odd n, where both sides agree, and NaN for even n.

    Raises
    ------
    CodegenError : n is out of range
    """
    if not 1 <= n <= MOST_DERIVATIVES:
        raise CodegenError(f"polygamma(n, x) needs 1 <= n <= {MOST_DERIVATIVES}, found n = {n}")
    return in_double(b, lambda inner, wide: polygamma_of_double(inner, wide, n), x)


def polygamma_of_double(b: FunctionBuilder, x: V, n: int) -> V:
    common = zeta_times_factorial(b, x, n, False)
    usual = b.and_(b.fcmp("ogt", x, 0.0), b.fcmp("olt", x, INF))

    def write(inner: FunctionBuilder) -> None:
        write_polygamma(inner, n)

    name = name_of(f"polygamma_{n}.any", x.type)
    (result,) = patch_rare(b, b.not_(usual), [common], lambda: [helper(b, name, x.type, [x], write)])
    return result


def zeta_times_factorial(b: FunctionBuilder, x: V, n: int, behind_first: bool) -> V:
    """(-1)**(n + 1) n! times the sum of (x + k)**-(n + 1) over k >= 0, or over k >= 1 if `behind_first`.

    Some terms are added, the rest is Euler's and Maclaurin's formula; all are positive, and kept as pairs.
    """
    zero = constant(x, 0.0)
    first = Pair(zero, zero) if behind_first else pair_power(b, pair_inverse(b, Pair(x, zero)), n + 1)
    terms = n + 10
    with b.loop(1, terms, carry=first) as loop:
        so_far, k = Pair(*loop.carry), b.cast("sitofp", loop.index, "double")
        at = two_sum(b, x, b.splat(k, lanes_of(x.type)))
        loop.turn(*pair_sum(b, so_far, pair_power(b, pair_inverse(b, at), n + 1)))
    total = pair_sum(b, Pair(*loop.results), euler_maclaurin(b, two_sum(b, x, constant(x, float(terms))), n))
    sign = 1.0 if n % 2 else -1.0
    factorial = float(math.factorial(n))
    product = two_product(b, total.hi, constant(x, sign * factorial))
    value = b.fadd(product.hi, b.fma(total.lo, sign * factorial, product.lo))
    if behind_first:
        return value
    # Where the first term overflows, the lower parts are NaN.
    rough = b.fmul(plain_power(b, b.rfdiv(1.0, x), n + 1), factorial)
    return b.select(b.fcmp("olt", rough, INF), value, b.fmul(rough, sign))


def plain_power(b: FunctionBuilder, x: V, n: int) -> V:
    """x**n for n >= 1, every product rounded."""
    result = None
    while True:
        if n & 1:
            result = x if result is None else b.fmul(result, x)
        n >>= 1
        if not n:
            return result or x
        x = b.fmul(x, x)


def euler_maclaurin(b: FunctionBuilder, y: Pair, n: int) -> Pair:
    """Sum of (y + k)**-(n + 1) over k >= 0 for large y: y**-n (1/n + 1/(2 y) + ...)."""
    inverse = pair_inverse(b, y)
    coefficients = []
    rising = 1.0
    for k, bernoulli in enumerate(BERNOULLI):
        rising *= (n + 2 * k + 1) * (n + 2 * k if k else 1)
        coefficients.append(bernoulli * rising)
    z = b.fmul(inverse.hi, inverse.hi)
    series = b.fma(horner(b, z, coefficients), z, b.fmul(inverse.hi, 0.5))
    lead = fast_two_sum(b, constant(y.hi, 1.0 / n), series)
    exact = Fraction(1, n) - Fraction(1.0 / n)
    return pair_product(b, pair_power(b, inverse, n), Pair(lead.hi, b.fadd(lead.lo, float(exact))))


def write_polygamma(b: FunctionBuilder, n: int) -> None:
    """polygamma of any double, by reflection for x < 0."""
    (x,) = b.params
    size = fabs(b, x)
    positive = zeta_times_factorial(b, size, n, False)
    mirrored = zeta_times_factorial(b, size, n, True)
    sine, cosine = sin_cos_of_turns(b, x)
    derivative = b.fmul(horner(b, b.fdiv(cosine, sine), cotangent_derivative(n)), math.pi ** (n + 1))
    reflected = b.fsub(mirrored if n % 2 == 0 else b.fneg(mirrored), derivative)
    pole = b.and_(b.fcmp("ole", x, 0.0), b.fcmp("oeq", sine, 0.0))
    result = b.select(b.fcmp("olt", x, 0.0), reflected, positive)
    result = b.select(pole, INF if n % 2 else NAN, result)
    b.ret(b.select(b.fcmp("oeq", x, INF), 0.0 if n % 2 else -0.0, result))


def cotangent_derivative(n: int) -> list[float]:
    """The n-th derivative of cot as a polynomial in cot, lowest coefficient first: p' is -(1 + c**2) dp/dc."""
    p = [0, 1]
    for _ in range(n):
        slope = [k * coefficient for k, coefficient in enumerate(p)][1:]
        p = [-(low + high) for low, high in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return [float(coefficient) for coefficient in p]
