"""Distribution functions of scipy.special that are incomplete gamma functions."""

import math
from typing import Any

from pullback.tracer.functions.special_call import Maths, real
from pullback.tracer.trace import Content
from pullback.tracer.ufuncs import Call, Rule


def _gamma_distribution(op: str) -> Rule:
    """gdtr(a, b, x): of shape b and rate a."""

    def rule(call: Call) -> Content:
        (rate, shape, x), m = call.wides(), Maths(call)
        return m.select(m.less(x, 0.0), math.nan, getattr(m, op)(shape, m.mul(rate, x), n=0))

    return real(rule)


def _chi_square(op: str, below: float) -> Rule:
    """chdtr(v, x): of v degrees of freedom."""

    def rule(call: Call) -> Content:
        (degrees, x), m = call.wides(), Maths(call)
        negative = m.less(x, 0.0)
        half = m.mul(m.select(negative, 1.0, x), 0.5)
        return m.select(negative, below, getattr(m, op)(m.mul(degrees, 0.5), half, n=0))

    return real(rule)


def _poisson(op: str) -> Rule:
    """pdtr(k, m): of mean m; k counts as its whole part."""

    def rule(call: Call) -> Content:
        (k, mean), m = call.wides(), Maths(call)
        shape = m.add(m.floor(k), 1.0)
        invalid = m.bitwise_or(m.less(k, 0.0), m.less(mean, 0.0))
        return m.select(invalid, math.nan, getattr(m, op)(m.select(invalid, 1.0, shape), mean, n=0))

    return real(rule)


RULES: dict[Any, Rule] = {
    "gdtr": _gamma_distribution("gammainc"),
    "gdtrc": _gamma_distribution("gammaincc"),
    "chdtr": _chi_square("gammainc", math.nan),
    "chdtrc": _chi_square("gammaincc", 1.0),
    "pdtr": _poisson("gammaincc"),
    "pdtrc": _poisson("gammainc"),
}
