"""Numba: value and gradient derived and written by hand, in loops, for the workloads where that is bearable.

The rest of the workloads have no row for it.
"""

import importlib
import math
from typing import Any

import numpy as np

from ..workload import Prepared, Workload, gradients_alone, value_and_gradients
from ..workloads.loops import STEPS

numba: Any = importlib.import_module("numba")


def scalar(x: Any) -> Any:
    bell = math.exp(-0.5 * x * x)
    value = math.sin(x) * bell
    return value, (math.cos(x) * bell - x * value,)


def three_vector(x: Any) -> Any:
    value, gradient = 0.0, np.empty_like(x)
    for i in range(x.size):
        sine = math.sin(x[i])
        value += sine * x[i]
        gradient[i] = sine + x[i] * math.cos(x[i])
    return value, (gradient,)


def rosenbrock(x: Any) -> Any:
    value, gradient = 0.0, np.zeros_like(x)
    for i in range(x.size - 1):
        rise, left = x[i + 1] - x[i] * x[i], 1.0 - x[i]
        value += 100.0 * rise * rise + left * left
        gradient[i] -= 400.0 * rise * x[i] + 2.0 * left
        gradient[i + 1] += 200.0 * rise
    return value, (gradient,)


def chain(x: Any) -> Any:
    value, gradient = 0.0, np.empty_like(x)
    for i in numba.prange(x.size):
        grown = math.exp(x[i])
        bent = math.tanh(math.log(grown + 1.5))
        sine = math.sin(bent)
        value += math.erf(sine)
        bell = 1.1283791670955126 * math.exp(-sine * sine)
        gradient[i] = bell * math.cos(bent) * (1.0 - bent * bent) * grown / (grown + 1.5)
    return value, (gradient,)


def black_scholes(spot: Any, strike: Any, years: Any, rate: Any, volatility: Any) -> Any:
    value = 0.0
    delta, theta = np.empty_like(spot), np.empty_like(spot)
    rho, vega = np.empty_like(spot), np.empty_like(spot)
    for i in numba.prange(spot.size):
        root = math.sqrt(years[i])
        spread = volatility[i] * root
        d1 = (math.log(spot[i] / strike[i]) + (rate[i] + 0.5 * volatility[i] ** 2) * years[i]) / spread
        first = 0.5 * (1.0 + math.erf(d1 * 0.7071067811865476))
        second = 0.5 * (1.0 + math.erf((d1 - spread) * 0.7071067811865476))
        paid = strike[i] * math.exp(-rate[i] * years[i]) * second
        density = spot[i] * 0.3989422804014327 * math.exp(-0.5 * d1 * d1)
        value += spot[i] * first - paid
        delta[i], rho[i], vega[i] = first, years[i] * paid, density * root
        theta[i] = 0.5 * density * volatility[i] / root + rate[i] * paid
    return value, (delta, theta, rho, vega)


def pairwise_energy(positions: Any, masses: Any) -> Any:
    value, gradient = 0.0, np.zeros_like(positions)
    for i in numba.prange(masses.size):
        fx, fy, fz = 0.0, 0.0, 0.0
        for j in range(masses.size):
            dx, dy = positions[i, 0] - positions[j, 0], positions[i, 1] - positions[j, 1]
            dz = positions[i, 2] - positions[j, 2]
            square = dx * dx + dy * dy + dz * dz + 1e-2
            energy = masses[i] * masses[j] / math.sqrt(square)
            value -= 0.5 * energy
            fx, fy, fz = fx + energy / square * dx, fy + energy / square * dy, fz + energy / square * dz
        gradient[i, 0], gradient[i, 1], gradient[i, 2] = fx, fy, fz
    return value, (gradient,)


def logistic_regression(weights: Any, inputs: Any, signs: Any) -> Any:
    value, gradient = 0.0, np.zeros_like(weights)
    for i in range(signs.size):
        margin = 0.0
        for j in range(weights.size):
            margin += inputs[i, j] * weights[j]
        small = math.exp(-abs(signs[i] * margin))
        value += math.log1p(small) + max(0.0, -signs[i] * margin)
        share = small / (1.0 + small) if signs[i] * margin > 0.0 else 1.0 / (1.0 + small)
        for j in range(weights.size):
            gradient[j] -= share * signs[i] / signs.size * inputs[i, j]
    return value / signs.size, (gradient,)


@numba.njit  # type: ignore[untyped-decorator]  # numba may not be installed
def _diffuse(u: Any, rate: Any, out: Any) -> None:
    """One step on a square whose surroundings are zero; the adjoint of it is itself."""
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            around = u[i - 1, j] if i > 0 else 0.0
            around += u[i + 1, j] if i + 1 < n else 0.0
            around += u[i, j - 1] if j > 0 else 0.0
            around += u[i, j + 1] if j + 1 < m else 0.0
            out[i, j] = u[i, j] + rate * (around - 4.0 * u[i, j])


def heat(grid: Any, rate: Any) -> Any:
    now, then = grid.copy(), np.empty_like(grid)
    for _ in range(STEPS):
        _diffuse(now, rate, then)
        now, then = then, now
    value = np.sum(now**2)
    now *= 2.0
    for _ in range(STEPS):
        _diffuse(now, rate, then)
        now, then = then, now
    return value, (now,)


@numba.njit  # type: ignore[untyped-decorator]  # numba may not be installed
def _stencil_on_a_torus(u: Any, i: Any, j: Any) -> Any:
    n, m = u.shape
    up, down = u[i - 1 if i > 0 else n - 1], u[i + 1 if i + 1 < n else 0]
    return up[j] + down[j] + u[i, j - 1 if j > 0 else m - 1] + u[i, j + 1 if j + 1 < m else 0] - 4.0 * u[i, j]


def allen_cahn(grid: Any, rate: Any) -> Any:
    n, m = grid.shape
    states = np.empty((STEPS + 1, n, m))
    states[0] = grid
    for t in range(STEPS):
        u = states[t]
        for i in range(n):
            for j in range(m):
                x = u[i, j]
                states[t + 1, i, j] = x + rate * _stencil_on_a_torus(u, i, j) + 0.1 * (x - x * x * x)
    value = np.sum(states[STEPS] ** 4)
    now, then = 4.0 * states[STEPS] ** 3, np.empty_like(grid)
    for t in range(STEPS - 1, -1, -1):
        for i in range(n):
            for j in range(m):
                x = states[t, i, j]
                slope = 1.0 + 0.1 * (1.0 - 3.0 * x * x)
                then[i, j] = slope * now[i, j] + rate * _stencil_on_a_torus(now, i, j)
        now, then = then, now
    return value, (now,)


SERIAL = (scalar, three_vector, rosenbrock, logistic_regression, heat, allen_cahn)
PARALLEL = (chain, black_scholes, pairwise_energy)

# By the name of the workload's function.
BY_HAND: dict[str, Any] = {
    **{function.__name__: numba.njit(function) for function in SERIAL},
    **{function.__name__: numba.njit(parallel=True)(function) for function in PARALLEL},
}


def prepare(workload: Workload, arguments: tuple[Any, ...]) -> Prepared | None:
    function = BY_HAND.get(workload.function.__name__)
    if function is None or workload.float32:
        return None
    return Prepared(function, arguments, value_and_gradients if workload.with_value else _gradients)


def _gradients(result: Any) -> tuple[Any, list[Any]]:
    return gradients_alone(result[1])
