"""A quadrature rule for smooth functions on the half line that decay at least like exp(-u): double exponential.

With u = exp(t - exp(-t)) the integrand falls off doubly exponentially on both sides of t = 0 (below because u does,
above because the function does), and the trapezoidal rule in t converges faster than any power of its step.
"""

import math
from functools import cache

STEP = 1 / 16
FIRST, LAST = -58, 68  # in steps: u from 1e-18 to 69


@cache
def half_line() -> tuple[tuple[float, float], ...]:
    """Nodes and weights: the integral of f over u > 0 is the sum of weight * f(node), to rounding.

    Tested for exp(-u), u**4 exp(-u - u**2) and what lies between; the scale of f must be brought near 1 by the caller.
    """
    rows = []
    for k in range(FIRST, LAST + 1):
        t = k * STEP
        u = math.exp(t - math.exp(-t))
        rows.append((u, STEP * u * (1.0 + math.exp(-t))))
    return tuple(rows)
