"""Inverse error functions and the normal quantile, by Newton's method.

A first value good to a few digits, then Newton steps. The last three are part of the program, so that derivatives pass
through them: k steps from the solution itself give every derivative up to order 2**k - 1 exactly.
"""

import math
from collections.abc import Callable
from typing import Any

from pullback.tracer.trace import Content
from pullback.tracer.ufuncs import Call, Rule

STEPS = 3
SQRT2 = math.sqrt(2.0)


def _first_guess(call: Call, q: Content) -> Content:
    """The normal quantile of a tail probability 0 < q <= 1/2 (positive), to three digits.

    Hastings' rational form in sqrt(-2 log q); Abramowitz and Stegun 26.2.23.
    """
    f = call.op
    t = f("sqrt", f("mul", f("log", q), call.number(-2.0)))
    top = _poly(call, (2.515517, 0.802853, 0.010328), t)
    bottom = _poly(call, (1.0, 1.432788, 0.189269, 0.001308), t)
    return f("sub", t, f("div", top, bottom))


def _poly(call: Call, coefficients: tuple[float, ...], x: Content) -> Content:
    total: Content = call.number(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = call.op("add", call.op("mul", total, x), call.number(c))
    return total


def _tail_quantile(call: Call, q: Content) -> Content:
    """x >= 0 with erfc(x / sqrt 2) / 2 = q, for 0 < q <= 1/2: Halley's steps on the logarithm of the tail."""
    f = call.op
    fixed = f("stop_gradient", q)
    x = _first_guess(call, fixed)
    for _ in range(STEPS):
        x = _improved(call, x, fixed)
    x = f("stop_gradient", x)
    for _ in range(STEPS):
        x = _improved(call, x, q)
    return x


def _improved(call: Call, x: Content, q: Content) -> Content:
    """One Newton step for tail(x) = q, with the curvature correction: d = (tail - q) / density."""
    f = call.op
    tail = f("mul", f("erfc", f("mul", x, call.number(1 / SQRT2))), call.number(0.5))
    square = f("mul", f("mul", x, x), call.number(-0.5))
    density = f("mul", f("exp", square), call.number(1 / math.sqrt(2 * math.pi)))
    d = f("div", f("sub", tail, q), density)
    correction = f("add", call.number(1.0), f("mul", f("mul", x, d), call.number(-0.5)))
    return f("add", x, f("div", d, correction))


def _quantile(call: Call, q: Content, upper: Content, low: float, high: float) -> Content:
    """Signed quantile from the smaller tail `q` and its complement; the ends are infinite, beyond them NaN."""
    f, half = call.op, call.number(0.5)
    lower_half = f("less", q, half)
    tail = f("select", lower_half, q, upper)
    zero = call.number(0.0)
    inside = f("bitwise_and", f("greater", tail, zero), f("less_equal", tail, half))
    value = _tail_quantile(call, f("select", inside, tail, call.number(0.25)))
    signed = f("select", lower_half, f("neg", value), value)
    end = f("select", f("equal", q, zero), call.number(low), call.number(high))
    outside = f("select", f("equal", tail, zero), end, call.number(math.nan))
    return f("select", inside, signed, outside)


def _ndtri(call: Call) -> Content:
    (p,) = call.wides()
    return _quantile(call, p, call.op("sub", call.number(1.0), p), -math.inf, math.inf)


def _erfinv(call: Call) -> Content:
    """Near 0 a tail of 1/2 has lost the digits of y, so the steps run on erf itself there."""
    (y,) = call.wides()
    f = call.op
    small = f("less", f("abs", y), call.number(0.5))
    near = _newton_on_erf(call, f("select", small, y, call.number(0.25)))
    away = f("select", small, call.number(0.75), y)
    q = f("mul", f("sub", call.number(1.0), f("neg", away)), call.number(0.5))
    upper = f("mul", f("sub", call.number(1.0), away), call.number(0.5))
    far = f("mul", _quantile(call, q, upper, -math.inf, math.inf), call.number(1 / SQRT2))
    return f("select", small, near, far)


def _newton_on_erf(call: Call, y: Content) -> Content:
    f = call.op
    fixed = f("stop_gradient", y)
    x = f("mul", fixed, call.number(math.sqrt(math.pi) / 2))
    for _ in range(STEPS + 2):
        x = _erf_step(call, x, fixed)
    x = f("stop_gradient", x)
    for _ in range(STEPS):
        x = _erf_step(call, x, y)
    return x


def _erf_step(call: Call, x: Content, y: Content) -> Content:
    f = call.op
    slope = f("mul", f("exp", f("neg", f("mul", x, x))), call.number(2 / math.sqrt(math.pi)))
    d = f("div", f("sub", f("erf", x), y), slope)
    return f("sub", x, f("div", d, f("add", call.number(1.0), f("mul", x, d))))


def _erfcinv(call: Call) -> Content:
    (y,) = call.wides()
    f = call.op
    q = f("mul", y, call.number(0.5))
    upper = f("sub", call.number(1.0), q)
    return f("mul", _quantile(call, q, upper, -math.inf, math.inf), call.number(-1 / SQRT2))


def _in_float64(rule: Callable[[Call], Content]) -> Rule:
    """float32 operands are computed in float64 and rounded once."""

    def widened(call: Call) -> Content:
        if call.dtype.itemsize == 8:
            return rule(call)
        wide = call.in_dtype("f8")
        return call.op("cast", rule(wide), dtype=call.result_dtype)

    return widened


RULES: dict[Any, Rule] = {
    "ndtri": _in_float64(_ndtri),
    "erfinv": _in_float64(_erfinv),
    "erfcinv": _in_float64(_erfcinv),
}
