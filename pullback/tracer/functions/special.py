"""Ufuncs of scipy.special, matched by name: scipy is never imported."""

import math
from typing import Any

import numpy as np

from pullback.tracer.functions import bessel, inverses
from pullback.tracer.functions.common import array, contents, finish, full, static_array
from pullback.tracer.functions.elementwise import direct
from pullback.tracer.patching import Finder
from pullback.tracer.trace import Content, active
from pullback.tracer.ufuncs import Call, Rule

SQRT_HALF = math.sqrt(0.5)


def _safe(call: Call, condition: Content, x: Content, instead: float) -> Content:
    """`x` where the condition does not hold, a harmless number where it does."""
    return call.op("select", condition, call.number(instead), x)


def _expit(call: Call) -> Content:
    """1 / (1 + exp(-x)), from the side on which the exponential is small."""
    (x,) = call.wides()
    f, one = call.op, call.number(1.0)
    small = f("exp", f("neg", f("abs", x)))
    share = f("div", one, f("add", one, small))
    positive = f("greater_equal", x, call.number(0.0))
    return f("select", positive, share, f("mul", small, share))


def _log_expit(call: Call) -> Content:
    """min(x, 0) - log1p(exp(-|x|))."""
    (x,) = call.wides()
    f = call.op
    tail = f("log1p", f("exp", f("neg", f("abs", x))))
    return f("sub", f("minimum", x, call.number(0.0)), tail)


def _logit(call: Call) -> Content:
    (p,) = call.wides()
    f = call.op
    return f("sub", f("log", p), f("log1p", f("neg", p)))


def _ndtr(call: Call) -> Content:
    (x,) = call.wides()
    f = call.op
    return f("mul", f("erfc", f("mul", x, call.number(-SQRT_HALF))), call.number(0.5))


def _xlogy(call: Call) -> Content:
    return _times_log(call, "log")


def _xlog1py(call: Call) -> Content:
    return _times_log(call, "log1p")


def _times_log(call: Call, log: str) -> Content:
    """x * log(y), 0 where x is 0 and y is a number."""
    x, y = call.wides()
    f = call.op
    zero = f("bitwise_and", f("equal", x, call.number(0.0)), f("invert", f("isnan", y)))
    product = f("mul", x, f(log, _safe(call, zero, y, 1.0)))
    return f("select", zero, call.number(0.0), product)


def _entr(call: Call) -> Content:
    """-x log(x); 0 at 0, -inf below."""
    (x,) = call.wides()
    f, zero = call.op, call.number(0.0)
    positive = f("greater", x, zero)
    value = f("neg", f("mul", x, f("log", f("select", positive, x, call.number(1.0)))))
    rest = f("select", f("less", x, zero), call.number(-math.inf), f("select", f("isnan", x), x, zero))
    return f("select", positive, value, rest)


def _rel_entr(call: Call) -> Content:
    return _relative(call, plus_difference=False)


def _kl_div(call: Call) -> Content:
    return _relative(call, plus_difference=True)


def _relative(call: Call, plus_difference: bool) -> Content:
    """x log(x/y), and for kl_div - x + y; at x = 0 that is 0 (y); elsewhere infinite."""
    x, y = call.wides()
    f, zero, one = call.op, call.number(0.0), call.number(1.0)
    both = f("bitwise_and", f("greater", x, zero), f("greater", y, zero))
    safe_x, safe_y = f("select", both, x, one), f("select", both, y, one)
    value = f("mul", safe_x, f("log", f("div", safe_x, safe_y)))
    at_zero = zero
    if plus_difference:
        value = f("add", f("sub", value, safe_x), safe_y)
        at_zero = y
    edge = f("bitwise_and", f("equal", x, zero), f("greater_equal", y, zero))
    nan = f("bitwise_or", f("isnan", x), f("isnan", y))
    rest = f("select", edge, at_zero, f("select", nan, f("add", x, y), call.number(math.inf)))
    return f("select", both, value, rest)


def _psi_family(call: Call) -> Content:
    return call.op("digamma", call.wide(0))


def _loggamma(call: Call) -> Content:
    """NaN below 0: there the logarithm is complex."""
    (x,) = call.wides()
    return call.op("select", call.op("less", x, call.number(0.0)), call.number(math.nan), call.op("lgamma", x))


def _gamma(call: Call) -> Content:
    """exp(lgamma) with the sign of gamma, which alternates between the negative integers; a pole at 0 and below."""
    (x,) = call.wides()
    f, zero = call.op, call.number(0.0)
    size = f("exp", f("lgamma", x))
    floor = f("floor", x)
    odd = f("not_equal", f("mod", floor, call.number(2.0)), zero)
    negative = f("less", x, zero)
    signed = f("select", f("bitwise_and", negative, odd), f("neg", size), size)
    pole = f("bitwise_and", negative, f("equal", floor, x))
    at_zero = f("select", f("equal", x, zero), f("copysign", call.number(math.inf), x), signed)
    return f("select", pole, call.number(math.nan), at_zero)


def _beta(call: Call) -> Content:
    return call.op("exp", _betaln(call))


def _betaln(call: Call) -> Content:
    x, y = call.wides()
    f = call.op
    return f("sub", f("add", f("lgamma", x), f("lgamma", y)), f("lgamma", f("add", x, y)))


def _exp10(call: Call) -> Content:
    return call.op("pow", call.number(10.0), call.wide(0))


def _log_ndtr(call: Call) -> Content:
    """log(erfc(-x / sqrt(2)) / 2); far below zero by the asymptotic series of the tail."""
    (x,) = call.wides()
    f = call.op
    low = f("less", x, call.number(-14.0))
    usual = f("log", f("mul", f("erfc", f("mul", _safe(call, low, x, 0.0), call.number(-SQRT_HALF))), call.number(0.5)))
    far = f("select", low, x, call.number(-20.0))
    inverse = f("div", call.number(1.0), f("mul", far, far))
    series: Content = call.number(0.0)
    for k in reversed(range(1, 9)):  # 1 - 1/x^2 + 3/x^4 - 15/x^6 + ...
        series = f("mul", f("mul", inverse, call.number(-(2.0 * k - 1.0))), f("add", call.number(1.0), series))
    tail = f("log1p", series)
    square = f("mul", f("mul", far, far), call.number(-0.5))
    scale = f("log", f("mul", f("neg", far), call.number(math.sqrt(2 * math.pi))))
    return f("select", low, f("add", f("sub", square, scale), tail), usual)


def _sindg(name: str) -> Rule:
    return lambda call: call.op(name, call.op("mul", call.wide(0), call.number(math.pi / 180)))


# ------------------------------------------------------------------ functions of scipy.special that are no ufuncs


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma, n constant."""
    order = static_array(active(), n, "scipy.special.polygamma: the order")
    a = array(x)
    a = a if a.dtype.kind == "f" else a.astype(np.float64)
    if order.ndim:
        orders = np.broadcast_to(order, np.broadcast_shapes(order.shape, a.shape))
        wide = np.broadcast_to(a, orders.shape)
        flat = [polygamma(int(k), v) for k, v in zip(orders.reshape(-1), np.ravel(wide), strict=True)]
        return np.reshape(np.stack(flat), orders.shape)
    trace, (content,) = contents(a)
    if int(order) == 0:
        return finish(trace.apply("digamma", content))
    return finish(trace.apply("polygamma", content, n=int(order)))


def multigammaln(a: Any, d: Any) -> Any:
    """log of the multivariate gamma function: a sum of d shifted log gammas."""
    x, count = array(a) * 1.0, int(d)
    trace, (content,) = contents(x)
    total = finish(trace.apply("mul", content, full(trace, content, 0.0)))
    for k in range(count):
        shifted = contents(x - k / 2)[1][0]
        total = total + finish(trace.apply("lgamma", shifted))
    return total + count * (count - 1) * 0.25 * math.log(math.pi)


FINDERS: tuple[Finder, ...] = (
    ("scipy.special", lambda m: [(m, "polygamma", polygamma), (m, "multigammaln", multigammaln)]),
)

RULES: dict[Any, Rule] = {
    **bessel.RULES,
    **inverses.RULES,
    "erf": direct("erf"),
    "erfc": direct("erfc"),
    "gammaln": direct("lgamma"),
    "loggamma": _loggamma,
    "psi": _psi_family,
    "digamma": _psi_family,
    "gamma": _gamma,
    "beta": _beta,
    "betaln": _betaln,
    "expit": _expit,
    "log_expit": _log_expit,
    "logit": _logit,
    "ndtr": _ndtr,
    "log_ndtr": _log_ndtr,
    "xlogy": _xlogy,
    "xlog1py": _xlog1py,
    "entr": _entr,
    "rel_entr": _rel_entr,
    "kl_div": _kl_div,
    "exp2": direct("exp2"),
    "exp10": _exp10,
    "expm1": direct("expm1"),
    "log1p": direct("log1p"),
    "cbrt": direct("cbrt"),
    "sindg": _sindg("sin"),
    "cosdg": _sindg("cos"),
    "tandg": _sindg("tan"),
}
