"""The gamma family of scipy.special made of gamma, lgamma and elementary functions."""

import math
from typing import Any

from pullback.tracer.functions.special_call import Maths, real
from pullback.tracer.trace import Content
from pullback.tracer.ufuncs import Call, Rule

BY_GAMMA = 30.0  # products of three gammas of such numbers do not overflow, nor do their squares
LARGE = 10.0
LONGEST_PRODUCT = 20
# B(2k) / (2k (2k - 1)): Stirling's series
STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400]


def _loggamma(call: Call) -> Content:
    """NaN below 0: there the logarithm is complex."""
    (x,), m = call.wides(), Maths(call)
    return m.select(m.less(x, 0.0), math.nan, m.lgamma(x))


def _gammasgn(call: Call) -> Content:
    """The sign of gamma, NaN at -1, -2, ..."""
    (x,), m = call.wides(), Maths(call)
    value = m.select(m.equal(x, 0.0), m.copysign(1.0, x), _sign(m, x))
    pole = m.both(m.less(x, 0.0), m.equal(m.floor(x), x))
    return m.select(pole, math.nan, m.select(m.isnan(x), x, value))


def _sign(m: Maths, x: Content) -> Content:
    """1, but -1 between -1 and 0, -3 and -2, ..."""
    odd = m.not_equal(m.mod(m.floor(x), 2.0), 0.0)
    return m.select(m.both(m.less(x, 0.0), odd), -1.0, 1.0)


def _rgamma(call: Call) -> Content:
    return reciprocal_gamma(Maths(call), call.wide(0))


def reciprocal_gamma(m: Maths, x: Content) -> Content:
    """1 / gamma(x), which has no poles.

    x / gamma(x + 1) around 0, -x sin(pi x) gamma(-x) / pi below; so derivatives hold at the zeros 0, -1, -2, ... too.
    """
    low, middle = m.less(x, -0.5), m.less(x, 0.5)
    minus = m.neg(x)
    value = m.gamma(m.select(low, minus, m.select(middle, m.add(x, 1.0), x)))
    reflected = m.product(_sine_of_turns(m, m.select(low, x, 0.0)), minus, 1 / math.pi)
    return m.select(low, m.mul(reflected, value), m.div(m.select(middle, x, 1.0), value))


def _sine_of_turns(m: Maths, x: Content) -> Content:
    """sin(pi x), exact zeros at integers."""
    whole = m.rint(x)
    sine = m.sin(m.mul(m.sub(x, whole), math.pi))
    return m.select(m.not_equal(m.mod(whole, 2.0), 0.0), m.neg(sine), sine)


# ------------------------------------------------------------------ beta


def _betaln(call: Call) -> Content:
    x, y = call.wides()
    return log_beta(Maths(call), x, y)


def log_beta(m: Maths, x: Content, y: Content) -> Content:
    """log |beta(x, y)|; where the larger number is large, lgamma(a) - lgamma(a + b) is taken as one."""
    ordered = m.greater_equal(x, y)
    a, b = m.select(ordered, x, y), m.select(ordered, y, x)
    large = m.both(m.greater_equal(a, LARGE), m.greater_equal(b, 0.0))
    usual = m.sub(m.add(m.lgamma(x), m.lgamma(y)), m.lgamma(m.select(large, 1.0, m.add(x, y))))
    return m.select(large, m.add(m.lgamma(b), log_gamma_drop(m, large, a, b)), usual)


def log_gamma_drop(m: Maths, where: Content, a: Content, b: Content) -> Content:
    """lgamma(a) - lgamma(a + b) for a >= 10 and b >= 0 (which holds in `where`), by Stirling's formula."""
    a, b = m.select(where, a, LARGE), m.select(where, b, 0.0)
    whole = m.add(a, b)
    lead = m.mul(m.sub(0.5, a), m.log1p(m.div(b, a)))
    fall = m.mul(b, m.sub(1.0, m.log(whole)))
    return m.total(lead, fall, _stirling(m, a), m.neg(_stirling(m, whole)))


def _stirling(m: Maths, a: Content) -> Content:
    inverse = m.div(1.0, a)
    return m.mul(inverse, m.poly(STIRLING, m.mul(inverse, inverse)))


def _beta(call: Call) -> Content:
    """By gammas where these are moderate, else by the logarithm."""
    (x, y), m = call.wides(), Maths(call)
    whole = m.add(x, y)
    moderate = m.both(*[m.inside(v, -BY_GAMMA, BY_GAMMA) for v in (x, y, whole)])
    gammas = [m.gamma(m.select(moderate, v, 1.0)) for v in (x, y)]
    direct = m.product(*gammas, reciprocal_gamma(m, m.select(moderate, whole, 1.0)))
    far = m.mul(_signs(m, x, y, whole), m.exp(log_beta(m, m.select(moderate, 1.0, x), m.select(moderate, 1.0, y))))
    return m.select(moderate, direct, far)


def _signs(m: Maths, *xs: Content) -> Content:
    return m.product(*[_sign(m, x) for x in xs])


# ------------------------------------------------------------------ binomial coefficients and Pochhammer's symbol


def _binom(call: Call) -> Content:
    """gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)); a polynomial in n for a constant small whole k."""
    (n, k), m = call.wides(), Maths(call)
    whole = _small_whole(call.constant(1))
    if whole is not None:
        return m.product(1.0, *[m.div(m.add(n, float(i - whole)), float(i)) for i in range(1, whole + 1)])
    one, other, sum_ = m.add(k, 1.0), m.add(m.sub(n, k), 1.0), m.add(n, 1.0)
    moderate = m.both(*[m.inside(v, -BY_GAMMA, BY_GAMMA) for v in (one, other, sum_)])
    safe = [m.select(moderate, v, 1.0) for v in (one, other, sum_)]
    direct = m.product(m.gamma(safe[2]), reciprocal_gamma(m, safe[0]), reciprocal_gamma(m, safe[1]))
    log = log_beta(m, m.select(moderate, 1.0, other), m.select(moderate, 1.0, one))
    far = m.div(m.mul(_signs(m, one, other, sum_), m.exp(m.neg(log))), m.select(moderate, 1.0, sum_))
    return m.select(moderate, direct, far)


def _small_whole(number: Any) -> int | None:
    """The number as an int from 0 to LONGEST_PRODUCT, or None."""
    if number is None or not 0 <= number <= LONGEST_PRODUCT or number != int(number):
        return None
    return int(number)


def _poch(call: Call) -> Content:
    """gamma(z + m) / gamma(z); a polynomial in z for a constant small whole m."""
    (z, count), m = call.wides(), Maths(call)
    whole = _small_whole(call.constant(1))
    if whole is not None:
        return m.product(1.0, *[m.add(z, float(i)) for i in range(whole)])
    top = m.add(z, count)
    moderate = m.both(m.inside(z, -BY_GAMMA, BY_GAMMA), m.inside(top, -BY_GAMMA, BY_GAMMA))
    direct = m.mul(m.gamma(m.select(moderate, top, 1.0)), reciprocal_gamma(m, m.select(moderate, z, 1.0)))
    large = m.both(m.greater_equal(z, LARGE), m.greater_equal(count, 0.0))
    plain = m.bitwise_or(moderate, large)
    usual = m.sub(m.lgamma(m.select(plain, 1.0, top)), m.lgamma(m.select(plain, 1.0, z)))
    log = m.select(large, m.neg(log_gamma_drop(m, large, z, count)), usual)
    far = m.mul(_signs(m, z, top), m.exp(m.select(moderate, 0.0, log)))
    return m.select(moderate, direct, far)


RULES: dict[Any, Rule] = {
    "loggamma": real(_loggamma),
    "gammasgn": real(_gammasgn),
    "rgamma": real(_rgamma),
    "beta": real(_beta),
    "betaln": real(_betaln),
    "binom": real(_binom),
    "poch": real(_poch),
}
