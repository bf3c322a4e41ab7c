"""Special functions: sigmoids, entropies, the normal distribution, gamma and Bessel functions.

Most families are closed under differentiation once the order is an attribute: `n` is the order of a Bessel function, or
how often the function has been differentiated or integrated, and the derivative is the same op of the next order.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.errors import TypeRuleError
from pullback.ir import special_bessel, special_entropy, special_error, special_gamma
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Array, Derivative, OpDef, Partial, RunRegion, Scalar, Types
from pullback.ir.ops.common import (
    FLOAT,
    batch_elementwise,
    elementwise,
    elementwise_infer,
    pointwise,
    regular,
    singular,
    words,
)
from pullback.ir.types import TensorType

# the highest orders that the native code has
HIGHEST_ORDER = 104
HIGHEST_ORDER_OF_I = 34
HIGHEST_DERIVATIVE = 8  # of gammainc in its first argument

SQRT_HALF = math.sqrt(0.5)
SQRT_PI = math.sqrt(math.pi)
SQRT_TWO_PI = math.sqrt(2.0 * math.pi)


def _plain(name: str, arity: int, function: Callable[..., Any], derivative: Derivative, doc: str) -> OpDef:
    return elementwise(name, arity, FLOAT, function, derivative, doc)


def _ordered(
    name: str, function: Callable[..., Array], derivative: Derivative, doc: str, highest: int, arity: int = 1
) -> OpDef:
    """The record of an elementwise op with a constant order `n` from 0 to `highest`, which `function` takes first."""
    infer_type = elementwise_infer(name, arity, FLOAT)

    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
        if not 0 <= attrs["n"] <= highest:
            raise TypeRuleError(f"{name} needs an order 0 <= n <= {highest}, found n = {attrs['n']} for {words(types)}")
        return infer_type(types, attrs, regions)

    def evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
        return pointwise(lambda *xs: function(op.attrs["n"], *xs))(op, args, run)

    return OpDef(
        name=name,
        arity=arity,
        attrs={"n": "int"},
        infer=infer,
        evaluate=evaluate,
        numpy=(name,),
        derivative=derivative,
        batch=batch_elementwise,
        lower=Scalar(lambda s, op, *xs: s.math(name, *xs, n=op.attrs["n"])),
        algebra=PLAIN,
        doc=doc,
    )


def _of_order(op: Op) -> int:
    n: int = op.attrs["n"]
    return n


# ------------------------------------------------------------------ sigmoids and entropies

EXPIT = _plain(
    "expit",
    1,
    special_entropy.expit,
    regular(lambda f, op, out, x: out * f.expit(-x)),
    "1 / (1 + exp(-x)), the logistic function.",
)
LOG_EXPIT = _plain(
    "log_expit",
    1,
    special_entropy.log_expit,
    regular(lambda f, op, out, x: f.expit(-x)),
    "log(expit(x)), exact far below 0.",
)


def _zero_factor(f: Emitter, x: Expr, quotient: Expr) -> Expr:
    """x times something is constant in the something where x is 0."""
    return f.select(x.eq(0.0), f.zeros_like(x), quotient)


XLOGY = _plain(
    "xlogy",
    2,
    special_entropy.xlogy,
    singular(lambda f, op, out, x, y: f.log(y), lambda f, op, out, x, y: _zero_factor(f, x, x / y)),
    "x log(y), 0 where x is 0 and y a number. The derivatives are log(y), also where x is 0 (-inf at y = 0), and x / y "
    "(0 where x is 0).",
)
XLOG1PY = _plain(
    "xlog1py",
    2,
    special_entropy.xlog1py,
    singular(lambda f, op, out, x, y: f.log1p(y), lambda f, op, out, x, y: _zero_factor(f, x, x / (1.0 + y))),
    "x log(1 + y), 0 where x is 0 and y a number. Derivatives as those of xlogy.",
)
ENTR = _plain(
    "entr",
    1,
    special_entropy.entr,
    singular(lambda f, op, out, x: -1.0 - f.log(x)),
    "-x log(x); 0 at 0, where the derivative is inf, and -inf below, where it is NaN.",
)


def _ratio(f: Emitter, x: Expr, y: Expr) -> Expr:
    """x / y, for 1 where both are 0: of the subgradients there, the one that treats both alike."""
    nothing = x.eq(0.0) & y.eq(0.0)
    one = f.full_like(x, 1.0)
    return f.select(nothing, one, x / f.select(nothing, one, y))


def _log_ratio(f: Emitter, x: Expr, y: Expr) -> Expr:
    """The logarithm, with all its digits where x and y are close."""
    ratio = _ratio(f, x, y)
    near = (ratio > 0.5) & (ratio < 2.0)
    one = f.full_like(x, 1.0)
    difference = f.select(near, x - y, f.zeros_like(x)) / f.select(near & y.ne(0.0), y, one)
    return f.select(near, f.log1p(difference), f.log(f.select(near, one, ratio)))


REL_ENTR = _plain(
    "rel_entr",
    2,
    special_entropy.rel_entr,
    singular(
        lambda f, op, out, x, y: 1.0 + _log_ratio(f, x, y),
        lambda f, op, out, x, y: -_ratio(f, x, y),
    ),
    "x log(x / y); 0 where x is 0 and y is not negative, inf where either is negative. The derivatives are "
    "1 + log(x / y) and -x / y; where both are 0 the quotient is taken for 1.",
)
KL_DIV = _plain(
    "kl_div",
    2,
    special_entropy.kl_div,
    singular(
        lambda f, op, out, x, y: _log_ratio(f, x, y),
        lambda f, op, out, x, y: 1.0 - _ratio(f, x, y),
    ),
    "x log(x / y) - x + y; y where x is 0 and y is not negative, inf where either is negative. The derivatives are "
    "log(x / y) and 1 - x / y; where both are 0 the quotient is taken for 1.",
)

# ------------------------------------------------------------------ the normal distribution

ERFCX = _ordered(
    "erfcx",
    special_error.erfcx,
    regular(lambda f, op, out, x: -2.0 * (_of_order(op) + 1) * f.erfcx(x, n=_of_order(op) + 1)),
    "exp(x**2) times erfc(x) (n = 0) or times its n-th repeated integral: what the derivatives of erfcx are made of, "
    "without cancellation.",
    HIGHEST_ORDER,
)


def _density(f: Emitter, x: Expr) -> Expr:
    return f.exp(-0.5 * (x * x)) * (1.0 / SQRT_TWO_PI)


NDTR = _plain(
    "ndtr",
    1,
    special_error.ndtr,
    regular(lambda f, op, out, x: _density(f, x)),
    "The distribution function of the normal distribution, erfc(-x / sqrt(2)) / 2.",
)
LOG_NDTR = _plain(
    "log_ndtr",
    1,
    special_error.log_ndtr,
    regular(lambda f, op, out, x: (2.0 / SQRT_TWO_PI) / f.erfcx(x * -SQRT_HALF, n=0)),
    "log(ndtr(x)), exact far below 0. Its derivatives are too: they are made of erfcx, not of differences.",
)
ERFINV = _plain(
    "erfinv",
    1,
    special_error.erfinv,
    singular(lambda f, op, out, x: f.exp(out * out) * (SQRT_PI / 2.0)),
    "The inverse of erf. -inf and inf at -1 and 1, where the derivative is inf; NaN outside.",
)


def _over_tail(f: Emitter, scaled: Expr, tail: Expr) -> Expr:
    """scaled / tail, and inf, not 0 / 0, where nothing is left of the tail."""
    return f.select(tail.eq(0.0), f.full_like(scaled, 1.0), scaled) / tail


ERFCINV = _plain(
    "erfcinv",
    1,
    special_error.erfcinv,
    singular(lambda f, op, out, x: _over_tail(f, f.erfcx(out, n=0), x) * (-SQRT_PI / 2.0)),
    "The inverse of erfc. inf and -inf at 0 and 2; NaN outside.",
)


def _ndtri_partial(f: Emitter, op: Op, out: Expr, x: Expr) -> Expr:
    """1 / density, where ndtr(-|out|) = sqrt(pi / 2) density erfcx(|out| / sqrt(2)) is the tail on the side of out."""
    lower = x < 0.5
    tail = f.select(lower, x, 1.0 - x)
    scaled = f.erfcx(f.select(lower, -out, out) * SQRT_HALF, n=0)
    return _over_tail(f, scaled, tail) * (SQRT_TWO_PI / 2.0)


NDTRI = _plain(
    "ndtri",
    1,
    special_error.ndtri,
    singular(_ndtri_partial),
    "The inverse of ndtr, the normal quantile. -inf and inf at 0 and 1; NaN outside.",
)

# ------------------------------------------------------------------ gamma functions

GAMMA = _plain(
    "gamma",
    1,
    special_gamma.gamma,
    singular(lambda f, op, out, x: out * f.digamma(x)),
    "The gamma function; inf and -inf at 0 and -0, NaN at -1, -2, ...",
)


def _incomplete_in_x(f: Emitter, op: Op, out: Expr, a: Expr, x: Expr) -> Expr:
    """The n-th derivative in a of x**(a - 1) exp(-x) / gamma(a)."""
    density = _gamma_density(f, a, x)
    factors = _density_factors(f, a, x, _of_order(op))
    return density if factors is None else density * factors


def _gamma_density(f: Emitter, a: Expr, x: Expr) -> Expr:
    """x**(a - 1) exp(-x) / gamma(a): one exponential, and the power itself at 0, where it has derivatives and the
    logarithm has none."""
    at_zero = f.pow(x, a - 1.0) * f.exp(-x - f.lgamma(a))
    return f.select(x.eq(0.0), at_zero, f.exp(f.xlogy(a - 1.0, x) - x - f.lgamma(a)))


def _density_factors(f: Emitter, a: Expr, x: Expr, n: int) -> Expr | None:
    """The n-th derivative in a of x**a / gamma(a), divided by it; None for 1.

    The logarithm has the derivatives log(x) - digamma(a), -polygamma(1, a), ...; from those of a logarithm the ones of
    the function follow: f(k + 1) = sum of binomial(k, j) l(j + 1) f(k - j).
    """
    slopes: list[Expr] = []
    found: list[Expr | None] = [None]
    for k in range(n):
        slopes.append(-f.polygamma(a, n=k) if k else f.log(x) - f.digamma(a))
        total: Expr | None = None
        for j, slope in enumerate(slopes):
            other = found[k - j]
            term = slope if other is None else slope * other
            term = term * float(math.comb(k, j)) if 0 < j < k else term
            total = term if total is None else total + term
        found.append(total)
    return found[n]


def _upper_in_x(f: Emitter, op: Op, out: Expr, a: Expr, x: Expr) -> Expr:
    return -_incomplete_in_x(f, op, out, a, x)


GAMMAINC = _ordered(
    "gammainc",
    special_gamma.gammainc,
    singular(lambda f, op, out, a, x: f.gammainc(a, x, n=_of_order(op) + 1), _incomplete_in_x),
    "The regularised lower incomplete gamma function of a and x (n = 0), or its n-th derivative in a, up to the 8th. "
    "NaN where either is negative.",
    HIGHEST_DERIVATIVE,
    arity=2,
)
GAMMAINCC = _ordered(
    "gammaincc",
    special_gamma.gammaincc,
    singular(lambda f, op, out, a, x: f.gammaincc(a, x, n=_of_order(op) + 1), _upper_in_x),
    "1 - gammainc(a, x), exact where it is small (n = 0), or its n-th derivative in a.",
    HIGHEST_DERIVATIVE,
    arity=2,
)
EXPREL = _ordered(
    "exprel",
    special_gamma.exprel,
    regular(lambda f, op, out, x: f.exprel(x, n=_of_order(op) + 1)),
    "(exp(x) - 1) / x, 1 at 0 (n = 0), or its n-th derivative: the integral of t**n exp(x t) over 0 < t < 1.",
    HIGHEST_ORDER,
)

# ------------------------------------------------------------------ Bessel functions


def _neighbours(name: str, before: float, after: float, first: float) -> Partial:
    """before * f(n - 1) + after * f(n + 1), or first * f(1) for the order 0."""

    def partial(f: Emitter, op: Op, out: Expr, x: Expr) -> Expr:
        n = _of_order(op)
        if not n:
            return first * f.op(name, x, n=1)
        return before * f.op(name, x, n=n - 1) + after * f.op(name, x, n=n + 1)

    return partial


def _scaled(rule: Partial, size: Callable[[Emitter, Expr], Expr | None]) -> Partial:
    """The rule of a function that has been multiplied with exp(-|x|) or exp(x)."""

    def partial(f: Emitter, op: Op, out: Expr, x: Expr) -> Expr:
        factor = size(f, x)
        return rule(f, op, out, x) + (out if factor is None else factor * out)

    return partial


JV = _ordered(
    "jv",
    special_bessel.jv,
    regular(_neighbours("jv", 0.5, -0.5, -1.0)),
    "The Bessel function of the first kind, of constant integer order n; NaN at both infinities, as SciPy has it.",
    HIGHEST_ORDER,
)
YV = _ordered(
    "yv",
    special_bessel.yv,
    singular(_neighbours("yv", 0.5, -0.5, -1.0)),
    "The Bessel function of the second kind, of constant integer order n; -inf at 0, NaN below and at inf.",
    HIGHEST_ORDER,
)
IV = _ordered(
    "iv",
    special_bessel.iv,
    regular(_neighbours("iv", 0.5, 0.5, 1.0)),
    "The modified Bessel function of the first kind, of constant integer order n; NaN at both infinities.",
    HIGHEST_ORDER_OF_I,
)
IVE = _ordered(
    "ive",
    special_bessel.ive,
    regular(_scaled(_neighbours("ive", 0.5, 0.5, 1.0), lambda f, x: -f.sign(x))),
    "exp(-|x|) iv(n, x). At 0 the derivative of |x| is taken for 0.",
    HIGHEST_ORDER_OF_I,
)
KV = _ordered(
    "kv",
    special_bessel.kv,
    singular(_neighbours("kv", -0.5, -0.5, -1.0)),
    "The modified Bessel function of the second kind, of constant integer order n; inf at 0, NaN below.",
    HIGHEST_ORDER,
)
KVE = _ordered(
    "kve",
    special_bessel.kve,
    singular(_scaled(_neighbours("kve", -0.5, -0.5, -1.0), lambda f, x: None)),
    "exp(x) kv(n, x).",
    HIGHEST_ORDER,
)

SPECIAL = (
    EXPIT,
    LOG_EXPIT,
    XLOGY,
    XLOG1PY,
    ENTR,
    REL_ENTR,
    KL_DIV,
    ERFCX,
    NDTR,
    LOG_NDTR,
    ERFINV,
    ERFCINV,
    NDTRI,
    GAMMA,
    GAMMAINC,
    GAMMAINCC,
    EXPREL,
    JV,
    YV,
    IV,
    IVE,
    KV,
    KVE,
)
