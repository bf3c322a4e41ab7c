"""What `fit_polynomials.py` fits: one row for each polynomial of `pullback/codegen/math`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from mpmath import mp, mpf

mp.dps = 50  # before any constant below is made

Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """One polynomial.

    Attributes
    ----------
    name : of the constant in `coefficients.py`
    formula : what is approximated, on which interval
    function, interval : the same for the computer
    weight : factor that turns an error of the polynomial into a relative error of the function it serves
    double, single : number of coefficients for each dtype; 0: not wanted
    """

    name: str
    formula: str
    function: Function
    interval: tuple[float, float]
    weight: Function
    double: int
    single: int


@dataclass(frozen=True)
class Pieces:
    """A function cut into intervals: on each, value + t q(t) around a centre where the value is nearly exact.

    Attributes
    ----------
    intervals : of x, in order
    first : the fit of the first interval if it is of another form; its row then has centre 0 and value 0
    double, single : number of coefficients of q
    zeros : where the function is zero; the centre of an interval that holds one is there
    beside : the size beside which an error counts; without it that of the function
    """

    name: str
    formula: str
    function: Function
    intervals: tuple[tuple[mpf, mpf], ...]
    first: Fit | None
    double: int
    single: int
    zeros: tuple[mpf, ...] = ()
    beside: Function | None = None

    def around(self, centre: mpf, value: mpf, lo: mpf, hi: mpf) -> Fit:
        """The fit of q on one interval."""

        def quotient(t: mpf) -> mpf:
            return (self.function(centre + t) - value) / t

        def weight(t: mpf) -> mpf:
            return abs(t / (self.beside or self.function)(centre + t))

        return Fit(self.name, self.formula, quotient, (lo - centre, hi - centre), weight, 0, 0)


def series(coefficient: Callable[[int], mpf], x: mpf, terms: int = 60) -> mpf:
    """Sum of coefficient(k) * x**k, for functions that cancel near zero."""
    return mp.fsum(coefficient(k) * x**k for k in range(terms))


def log2_third(z: mpf) -> mpf:
    return series(lambda k: 2 / mp.log(2) / (2 * k + 5), z, 100)


LN2_HALF = 0.3467  # half of log(2), and room for a rounded quotient
QUARTER_PI = 0.7856


def exp_tail(x: mpf) -> mpf:
    return series(lambda k: 1 / mp.factorial(k + 2), x)


def log_tail(z: mpf) -> mpf:
    return series(lambda k: mpf(2) / (2 * k + 3), z, 100)


def sin_tail(z: mpf) -> mpf:
    return series(lambda k: (-1) ** (k + 1) / mp.factorial(2 * k + 3), z)


def cos_tail(z: mpf) -> mpf:
    return series(lambda k: (-1) ** k / mp.factorial(2 * k + 4), z)


def erf_tail(z: mpf) -> mpf:
    root = mp.sqrt(z)
    return mp.erf(root) / root - 1


def erfcx(x: mpf) -> mpf:
    return mp.exp(x * x) * mp.erfc(x)


def octave_quarters(first: int, octaves: int, offset: int = 0) -> tuple[tuple[mpf, mpf], ...]:
    """Four intervals in each octave of x + offset, from 2**first on."""
    edges = [mpf(2) ** (first + k // 4) * (1 + mpf(k % 4) / 4) - offset for k in range(4 * octaves + 1)]
    return tuple(pairwise(edges))


def lgamma_factor(x: mpf) -> mpf:
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def digamma_factor(x: mpf) -> mpf:
    return mp.digamma(x) / (x - DIGAMMA_ROOT)


def lgamma_tail(w: mpf) -> mpf:
    x = 1 / mp.sqrt(w)
    return (mp.loggamma(x) - (x - mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x


def digamma_tail(w: mpf) -> mpf:
    x = 1 / mp.sqrt(w)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) * x * x


DIGAMMA_ROOT = mpf("1.46163214496836234126265954232572132846819620400644629512959840859878644")


def tanh_tail(z: mpf) -> mpf:
    return mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1


# Interval 0 ends at 2.5 / 2.95; from there on x * 2.95 - 2 rounds to the number of the interval.
ERF_INTERVALS = (
    (mpf(0), mpf(2.5) / mpf(2.95)),
    *(((k + 1.5) / mpf(2.95), (k + 2.5) / mpf(2.95)) for k in range(1, 16)),
)

FITS: tuple[Fit | Pieces, ...] = (
    Fit(
        "EXP_TAIL",
        "(exp(x) - 1 - x) / x**2, |x| <= log(2) / 2",
        exp_tail,
        (-LN2_HALF, LN2_HALF),
        lambda x: x * x / mp.exp(x),
        10,
        5,
    ),
    Fit(
        "EXPM1_TAIL",
        "the same for log(3/4) <= x <= log(3/2), accurate relative to exp(x) - 1",
        exp_tail,
        (-0.2878, 0.4056),
        lambda x: abs(x) / (1 + x / 2 + x * x / 6),
        11,
        6,
    ),
    Fit(
        "LOG_TAIL",
        "(2 atanh(s) / s - 2) / z with z = s**2, s = (m - 1) / (m + 1), sqrt(1/2) <= m <= sqrt(2)",
        log_tail,
        (0, 0.02944),
        lambda z: z / 2,
        7,
        4,
    ),
    Fit(
        "LOG2_THIRD",
        "(log2(m) - 2 s (1 + z / 3) / log(2)) / (s z**2) with s and z as above",
        log2_third,
        (0, 0.02944),
        lambda z: z * z / 2.885,
        8,
        0,
    ),
    Fit(
        "LOG2_SHORT",
        "the same for a double that becomes a float",
        log2_third,
        (0, 0.02944),
        lambda z: z * z / 2.885,
        3,
        0,
    ),
    Fit(
        "EXP2_SHORT",
        "(2**x - 1) / x, |x| <= 1/2, for a double that becomes a float",
        lambda x: mp.expm1(x * mp.log(2)) / x,
        (-0.5001, 0.5001),
        lambda x: x * mpf(2) ** -x,
        7,
        0,
    ),
    Fit(
        "SIN_TAIL",
        "(sin(x) / x - 1) / z with z = x**2, |x| <= pi / 4",
        sin_tail,
        (0, QUARTER_PI**2),
        lambda z: z / (1 + z * sin_tail(z)),
        6,
        4,
    ),
    Fit(
        "COS_TAIL",
        "(cos(x) - 1 + z / 2) / z**2 with z = x**2, |x| <= pi / 4",
        cos_tail,
        (0, QUARTER_PI**2),
        lambda z: z * z / mp.cos(mp.sqrt(z)),
        6,
        3,
    ),
    Fit(
        "COSH_TAIL",
        "(cosh(x) - 1 - z / 2) / z**2 with z = x**2, |x| <= log(2) / 2",
        lambda z: series(lambda k: 1 / mp.factorial(2 * k + 4), z),
        (0, LN2_HALF**2),
        lambda z: z * z,
        4,
        2,
    ),
    Fit(
        "SINH_TAIL",
        "(sinh(x) / x - 1) / z with z = x**2, |x| <= log(2) / 2",
        lambda z: series(lambda k: 1 / mp.factorial(2 * k + 3), z),
        (0, LN2_HALF**2),
        lambda z: z,
        5,
        3,
    ),
    Fit(
        "ATAN_TAIL",
        "(atan(x) / x - 1) / z with z = x**2, |x| <= 1/4",
        lambda z: series(lambda k: (-1) ** (k + 1) / mpf(2 * k + 3), z),
        (0, 0.0626),
        lambda z: z,
        8,
        4,
    ),
    Fit(
        "ASIN_TAIL",
        "(asin(x) / x - 1) / z with z = x**2, |x| <= 1/2",
        lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        (1e-12, 0.25),
        lambda z: z,
        12,
        6,
    ),
    Fit(
        "INVERSE_CUBE_ROOT",
        "x**(-1/3), 1/2 <= x <= 4",
        lambda x: x ** (-mpf(1) / 3),
        (0.5, 4),
        lambda x: x ** (mpf(1) / 3),
        7,
        5,
    ),
    Pieces(
        "ERFCX",
        "exp(x**2) erfc(x) for 0 <= x < 30, four intervals in each octave of x + 2",
        erfcx,
        octave_quarters(1, 4, 2),
        None,
        14,
        8,
    ),
    Pieces(
        "ERF",
        "erf(x) for 0 <= x <= 5.93; in the first row x + x q(x**2)",
        mp.erf,
        ERF_INTERVALS,
        Fit("ERF", "", erf_tail, (1e-30, float(ERF_INTERVALS[0][1] ** 2)), lambda z: 1 / (1 + erf_tail(z)), 0, 0),
        12,
        7,
    ),
    Pieces(
        "TANH",
        "tanh(x) for 0 <= x <= 9.1, four intervals in each octave of x + 1; in the first row x + x q(x**2)",
        mp.tanh,
        octave_quarters(0, 4, 1),
        Fit("TANH", "", tanh_tail, (1e-30, 0.0626), lambda z: 1 / (1 + tanh_tail(z)), 0, 0),
        0,
        6,
    ),
    Pieces(
        "LGAMMA",
        "log(gamma(x)) / ((x - 1) (x - 2)) for 1/2 <= x < 8, four intervals in each octave",
        lgamma_factor,
        octave_quarters(-1, 4),
        None,
        14,
        0,
    ),
    Pieces(
        "DIGAMMA",
        "digamma(x) / (x - root) for 1 <= x < 8, four intervals in each octave",
        digamma_factor,
        octave_quarters(0, 3),
        None,
        14,
        0,
    ),
    Fit(
        "LGAMMA_TAIL",
        "x (log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2) with z = x**-2, x >= 8",
        lgamma_tail,
        (1e-9, 0.015626),
        lambda w: mp.sqrt(w) / mp.loggamma(1 / mp.sqrt(w)),
        6,
        0,
    ),
    Fit(
        "DIGAMMA_TAIL",
        "x**2 (log(x) - 1 / (2 x) - digamma(x)) with z = x**-2, x >= 8",
        digamma_tail,
        (1e-9, 0.015626),
        lambda w: w / mp.digamma(1 / mp.sqrt(w)),
        6,
        0,
    ),
)
