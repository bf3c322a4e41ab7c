"""Elementary functions of scipy.special that are a few ops: logit, powers of Box and Cox, losses, degrees.

Where the function is smooth the parts meet in a `select`, never in `abs` or `minimum`, whose derivatives at the kink
would be wrong for the whole.
"""

import math
from typing import Any

from pullback.tracer.functions.elementwise import direct
from pullback.tracer.functions.special_call import Maths, real
from pullback.tracer.trace import Content
from pullback.tracer.ufuncs import Call, Rule

DEGREE = math.pi / 180


def _logit(call: Call) -> Content:
    """2 artanh(2 p - 1) around the middle, log(p) - log(1 - p) elsewhere."""
    (p,), m = call.wides(), Maths(call)
    middle = m.inside(p, 0.25, 0.75)
    near = m.arctanh(m.select(middle, m.sub(m.mul(p, 2.0), 1.0), 0.0))
    far = m.select(middle, 0.125, p)
    return m.select(middle, m.mul(near, 2.0), m.sub(m.log(far), m.log1p(m.neg(far))))


def _exp10(call: Call) -> Content:
    return call.op("pow", call.number(10.0), call.wide(0))


def _cosm1(call: Call) -> Content:
    """cos(x) - 1 = -2 sin(x / 2)**2."""
    m = Maths(call)
    sine = m.sin(m.mul(call.wide(0), 0.5))
    return m.mul(m.mul(sine, sine), -2.0)


def _powm1(call: Call) -> Content:
    """x**y - 1, for positive x by expm1."""
    (x, y), m = call.wides(), Maths(call)
    positive = m.greater(x, 0.0)
    by_log = m.expm1(m.mul(y, m.log(m.select(positive, x, 1.0))))
    return m.select(positive, by_log, m.sub(m.pow(m.select(positive, 1.0, x), y), 1.0))


# ------------------------------------------------------------------ Box and Cox


def _boxcox(call: Call) -> Content:
    x, power = call.wides()
    return _transformed(Maths(call), x, power, "log", x)


def _boxcox1p(call: Call) -> Content:
    x, power = call.wides()
    m = Maths(call)
    return _transformed(m, x, power, "log1p", m.add(x, 1.0))


def _transformed(m: Maths, x: Content, power: Content, log: str, base: Content) -> Content:
    """(base**power - 1) / power = log(base) exprel(power log(base)), smooth in the power; at base 0 by the power."""
    zero = m.equal(base, 0.0)
    safe = m.select(zero, 1.0, x)
    logarithm = getattr(m, log)(safe)
    usual = m.mul(logarithm, m.exprel(m.mul(power, logarithm), n=0))
    exponent = m.select(zero, power, 1.0)
    at_zero = m.div(m.sub(m.pow(m.select(zero, base, 1.0), exponent), 1.0), exponent)
    return m.select(zero, m.select(m.equal(power, 0.0), -math.inf, at_zero), usual)


def _inv_boxcox(call: Call) -> Content:
    return Maths(call).exp(_inverse_exponent(call))


def _inv_boxcox1p(call: Call) -> Content:
    return Maths(call).expm1(_inverse_exponent(call))


def _inverse_exponent(call: Call) -> Content:
    """log(1 + power y) / power; by a series where power y is small, so smooth at 0."""
    (y, power), m = call.wides(), Maths(call)
    z = m.mul(power, y)
    small = m.inside(z, -0.1, 0.1)
    series = m.poly([(-1) ** k / (k + 1) for k in range(18)], m.select(small, z, 0.0))
    far = m.div(m.log1p(m.select(small, 1.0, z)), m.select(small, 1.0, power))
    return m.select(small, m.mul(y, series), far)


# ------------------------------------------------------------------ losses


def _huber(call: Call) -> Content:
    """r**2 / 2 up to |r| = delta, linear beyond; inf for a negative delta."""
    (delta, r), m = call.wides(), Maths(call)
    size = m.abs(r)
    linear = m.mul(delta, m.sub(size, m.mul(delta, 0.5)))
    value = m.select(m.less_equal(size, delta), m.mul(m.mul(r, r), 0.5), linear)
    return m.select(m.less(delta, 0.0), math.inf, value)


def _pseudo_huber(call: Call) -> Content:
    """delta**2 (sqrt(1 + (r / delta)**2) - 1), as r**2 / (1 + sqrt(...)); 0 for delta = 0."""
    (delta, r), m = call.wides(), Maths(call)
    positive = m.greater(delta, 0.0)
    ratio = m.div(r, m.select(positive, delta, 1.0))
    value = m.div(m.mul(r, r), m.add(m.sqrt(m.add(m.mul(ratio, ratio), 1.0)), 1.0))
    rest = m.select(m.less(delta, 0.0), math.inf, m.select(m.isnan(delta), delta, 0.0))
    return m.select(positive, value, rest)


# ------------------------------------------------------------------ degrees


def _quadrant(call: Call) -> tuple[Content, Content, Content, Content]:
    """Sine and cosine of the rest within 45 degrees; whether the quadrant is odd, whether it is in the second half."""
    (x,), m = call.wides(), Maths(call)
    quarters = m.rint(m.mul(x, 1 / 90))
    rest = m.mul(m.sub(x, m.mul(quarters, 90.0)), DEGREE)
    turn = m.mod(quarters, 4.0)
    odd = m.not_equal(m.mod(turn, 2.0), 0.0)
    return m.sin(rest), m.cos(rest), odd, turn


def _sindg(call: Call) -> Content:
    m = Maths(call)
    sine, cosine, odd, turn = _quadrant(call)
    value = m.select(odd, cosine, sine)
    return m.select(m.greater_equal(turn, 2.0), m.neg(value), value)


def _cosdg(call: Call) -> Content:
    m = Maths(call)
    sine, cosine, odd, turn = _quadrant(call)
    value = m.select(odd, sine, cosine)
    return m.select(m.inside(turn, 1.0, 2.0), m.neg(value), value)


def _tandg(call: Call) -> Content:
    """Infinite at odd multiples of 90 degrees."""
    m = Maths(call)
    sine, cosine, odd, _ = _quadrant(call)
    pole = m.both(odd, m.equal(sine, 0.0))
    above, below = m.select(odd, m.neg(cosine), sine), m.select(odd, m.select(pole, 1.0, sine), cosine)
    return m.select(pole, math.inf, m.div(above, below))


def _cotdg(call: Call) -> Content:
    """Infinite at multiples of 180 degrees."""
    m = Maths(call)
    sine, cosine, odd, _ = _quadrant(call)
    pole = m.both(m.bitwise_xor(odd, m.equal(sine, sine)), m.equal(sine, 0.0))
    above, below = m.select(odd, m.neg(sine), cosine), m.select(odd, cosine, m.select(pole, 1.0, sine))
    return m.select(pole, math.inf, m.div(above, below))


def _radian(call: Call) -> Content:
    (degrees, minutes, seconds), m = call.wides(), Maths(call)
    whole = m.add(degrees, m.div(m.add(minutes, m.div(seconds, 60.0)), 60.0))
    return m.mul(whole, DEGREE)


RULES: dict[Any, Rule] = {
    "exp2": direct("exp2"),
    "expm1": direct("expm1"),
    "log1p": direct("log1p"),
    "exp10": real(_exp10),
    "logit": real(_logit),
    "cosm1": real(_cosm1),
    "powm1": real(_powm1),
    "boxcox": real(_boxcox),
    "boxcox1p": real(_boxcox1p),
    "inv_boxcox": real(_inv_boxcox),
    "inv_boxcox1p": real(_inv_boxcox1p),
    "huber": real(_huber),
    "pseudo_huber": real(_pseudo_huber),
    "sindg": real(_sindg),
    "cosdg": real(_cosdg),
    "tandg": real(_tandg),
    "cotdg": real(_cotdg),
    "radian": real(_radian),
}
