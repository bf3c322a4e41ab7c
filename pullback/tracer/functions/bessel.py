"""Bessel functions of orders 0 and 1.

Modified ones (`i0`, `i1`) are series. Up to |x| = 20 the power series in x**2 / 4 (all terms positive, so no
cancellation, and even or odd exactly, so smooth at 0); beyond, Hankel's asymptotic series, whose smallest term is then
below 1e-17.

The others are Bessel's integrals up to |x| = 25, J_2k(x) = mean of cos(2k t) cos(x sin t), by the midpoint rule, which
converges faster than any power (the error is J_144); beyond, Hankel's series again. Y_0 is Neumann's series of the
J_2k, summed into the weights of the same rule. Sums of smooth terms, so derivatives of every order come out right.
"""

import math
from typing import Any

import numpy as np

from pullback.tracer.operands import broadcast
from pullback.tracer.trace import Content
from pullback.tracer.ufuncs import Call, Rule

SWITCH = 20.0
POWER_TERMS = 52
ASYMPTOTIC_TERMS = 36


def _power_coefficients(order: int) -> list[float]:
    """1 / (k! (k + order)!)"""
    return [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(POWER_TERMS)]


def _asymptotic_coefficients(order: int) -> list[float]:
    """Of 1/x: product over j of ((2j - 1)**2 - 4 order**2) / (8 j)."""
    found = [1.0]
    for j in range(1, ASYMPTOTIC_TERMS):
        found.append(found[-1] * ((2 * j - 1) ** 2 - 4 * order**2) / (8 * j))
    return found


def _horner(call: Call, coefficients: list[float], x: Content) -> Content:
    total: Content = call.number(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = call.op("add", call.op("mul", total, x), call.number(c))
    return total


def _modified(order: int, scaled: bool) -> Rule:
    """I_order(x), or exp(-|x|) I_order(x)."""
    near_terms, far_terms = _power_coefficients(order), _asymptotic_coefficients(order)

    def rule(call: Call) -> Content:
        (x,) = call.wides()
        f = call.op
        size = f("abs", x)
        is_near = f("less_equal", size, call.number(SWITCH))
        small = f("select", is_near, x, call.number(1.0))
        near = _horner(call, near_terms, f("mul", f("mul", small, small), call.number(0.25)))
        if order:
            near = f("mul", near, f("mul", small, call.number(0.5)))
        large = f("select", is_near, call.number(SWITCH), size)
        series = _horner(call, far_terms, f("div", call.number(1.0), large))
        far = f("div", series, f("sqrt", f("mul", large, call.number(2 * math.pi))))
        if order:
            far = f("copysign", far, x)
        if scaled:
            near = f("mul", near, f("exp", f("neg", size)))
        else:
            half = f("exp", f("mul", large, call.number(0.5)))  # in halves, so that it overflows no sooner than it must
            far = f("mul", f("mul", far, half), half)
        value = f("select", is_near, near, far)
        return f("select", f("isnan", x), x, value)

    return rule


# ------------------------------------------------------------------ J and Y

TURN = 25.0
NODES = 72  # on (0, pi); the half on (0, pi/2) serves, by symmetry
ORDERS = 34
EULER = 0.57721566490153286061


def _midpoints() -> list[float]:
    return [math.pi * (j + 0.5) / NODES for j in range(NODES // 2)]


def _mean_weights() -> list[float]:
    """Weights of J_0."""
    return [2.0 / NODES] * (NODES // 2)


def _neumann_weights() -> list[float]:
    """Weights of -(4 / pi) * sum over k of (-1)**k J_2k / k."""
    return [
        -(4 / math.pi) * (2.0 / NODES) * sum((-1) ** k * math.cos(2 * k * t) / k for k in range(1, ORDERS + 1))
        for t in _midpoints()
    ]


def _integral(call: Call, x: Content, weights: list[float], order: int) -> Content:
    """sum of weights cos(x sin t), or its negative derivative, sum of weights sin t sin(x sin t)."""
    sines = np.array([math.sin(t) for t in _midpoints()])
    factors = np.array(weights) * (sines if order else 1.0)
    trace, shape = call.trace, (*call.shape, NODES // 2)
    column = trace.apply("reshape", x, shape=(*call.shape, 1))
    lines = [broadcast(trace, c.astype(call.dtype), shape) for c in (sines, factors)]
    angle = trace.apply("mul", broadcast(trace, column, shape), lines[0])
    wave = trace.apply("sin" if order else "cos", angle)
    return trace.apply("sum", trace.apply("mul", wave, lines[1]), axes=(len(shape) - 1,))


def _hankel(call: Call, x: Content, order: int, second: bool) -> Content:
    """sqrt(2 / (pi x)) (P cos(phase) - Q sin(phase)), or for Y (P sin + Q cos); P and Q alternate in 1/x."""
    f = call.op
    terms = [-c if order == 0 and k % 2 else c for k, c in enumerate(_hankel_coefficients(order))]
    inverse = f("div", call.number(1.0), x)
    square = f("neg", f("mul", inverse, inverse))
    p = _horner(call, terms[0::2], square)
    q = f("mul", _horner(call, terms[1::2], square), inverse)
    phase = f("sub", x, call.number((2 * order + 1) * math.pi / 4))
    cos, sin = f("cos", phase), f("sin", phase)
    first = f("add", f("mul", p, sin), f("mul", q, cos)) if second else f("sub", f("mul", p, cos), f("mul", q, sin))
    return f("mul", first, f("sqrt", f("div", call.number(2 / math.pi), x)))


def _hankel_coefficients(order: int) -> list[float]:
    """|product over j of (4 order**2 - (2j - 1)**2) / (8 j)| with the sign pattern of order 1."""
    found = [1.0]
    for j in range(1, 24):
        found.append(found[-1] * (4 * order**2 - (2 * j - 1) ** 2) / (8 * j))
    if order == 0:  # all factors are negative; the caller puts the alternation back
        return [abs(c) for c in found]
    return found


def _split(call: Call) -> tuple[Content, Content, Content]:
    """Whether |x| is on the near side; x there (else 1), |x| beyond (else the turn)."""
    x = call.wide(0)
    size = call.op("abs", x)
    is_near = call.op("less_equal", size, call.number(TURN))
    near = call.op("select", is_near, x, call.number(1.0))
    return is_near, near, call.op("select", is_near, call.number(TURN), size)


def _first_kind(order: int) -> Rule:
    weights = _mean_weights()

    def rule(call: Call) -> Content:
        is_near, near, far = _split(call)
        beyond = _hankel(call, far, order, False)
        if order:
            beyond = call.op("mul", beyond, call.op("sign", call.wide(0)))
        return call.op("select", is_near, _integral(call, near, weights, order), beyond)

    return rule


def _second_kind(order: int) -> Rule:
    """Y_0 = (2/pi) (log(x/2) + gamma) J_0 + Neumann's series; Y_1 is its negative derivative. -inf at 0, NaN below."""
    weights, mean = _neumann_weights(), _mean_weights()

    def rule(call: Call) -> Content:
        x = call.wide(0)
        f, zero = call.op, call.number(0.0)
        is_near, near, far = _split(call)
        safe = f("select", f("greater", near, zero), near, call.number(1.0))
        log = f("add", f("log", f("mul", safe, call.number(0.5))), call.number(EULER))
        value = f("mul", f("mul", log, _integral(call, safe, mean, order)), call.number(2 / math.pi))
        if order:
            pole = f("div", _integral(call, safe, mean, 0), safe)
            value = f("sub", value, f("mul", pole, call.number(2 / math.pi)))
        value = f("add", value, _integral(call, safe, weights, order))
        inside = f("select", is_near, value, _hankel(call, far, order, True))
        edge = f("select", f("equal", x, zero), call.number(-math.inf), call.number(math.nan))
        return f("select", f("greater", x, zero), inside, edge)

    return rule


RULES: dict[Any, Rule] = {
    "i0": _modified(0, False),
    "i1": _modified(1, False),
    "i0e": _modified(0, True),
    "i1e": _modified(1, True),
    "j0": _first_kind(0),
    "j1": _first_kind(1),
    "y0": _second_kind(0),
    "y1": _second_kind(1),
}
