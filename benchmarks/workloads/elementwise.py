"""Long element-by-element work that ends in a sum."""

from typing import Any

import numpy

from ..workload import Library, Workload, in_float32
from .calls import rosenbrock


def chain(library: Library, x: Any) -> Any:
    np, special = library.np, library.special
    return np.sum(special.erf(np.sin(np.tanh(np.log(np.exp(x) + 1.5)))))


def redundant(library: Library, x: Any) -> Any:
    """The same subexpressions over and over, as code written from a formula sheet has them."""
    np = library.np
    total = np.sin(x) * np.exp(-x * x)
    for power in (1.0, 2.0, 3.0, 4.0, 5.0):
        total = total + power * (np.sin(x) * np.exp(-x * x)) / (1.0 + np.exp(-x * x)) + np.sin(x) ** 2
    return np.sum(total)


def black_scholes(library: Library, spot: Any, strike: Any, years: Any, rate: Any, volatility: Any) -> Any:
    """The price of European calls; its gradient is delta, theta, rho and vega."""
    np, special = library.np, library.special
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    d2 = d1 - spread
    root = 0.7071067811865476
    first, second = 0.5 * (1.0 + special.erf(d1 * root)), 0.5 * (1.0 + special.erf(d2 * root))
    return np.sum(spot * first - strike * np.exp(-rate * years) * second)


def pairwise_energy(library: Library, positions: Any, masses: Any) -> Any:
    """Gravity between all pairs of bodies, softened at short range."""
    np = library.np
    apart = positions[:, None, :] - positions[None, :, :]
    distance = np.sqrt(np.sum(apart**2, axis=2) + 1e-2)
    return -0.5 * np.sum(masses[:, None] * masses[None, :] / distance)


def _chain(size: int, name: str, quick: bool) -> Workload:
    return Workload(f"chain-{name}", "elementwise", chain, lambda rng: (rng.standard_normal(size),), quick=quick)


def _options(rng: numpy.random.Generator) -> tuple[Any, ...]:
    n = 1_000_000
    spot, strike = rng.uniform(80, 120, n), rng.uniform(80, 120, n)
    return spot, strike, rng.uniform(0.2, 2.0, n), rng.uniform(0.0, 0.05, n), rng.uniform(0.1, 0.5, n)


CHAIN_1E6 = _chain(1_000_000, "1e6", quick=False)
REDUNDANT = Workload(
    "redundant-1e6", "elementwise", redundant, lambda rng: (rng.standard_normal(1_000_000),), quick=False
)
ROSENBROCK_1E6 = Workload(
    "rosenbrock-1e6", "elementwise", rosenbrock, lambda rng: (rng.standard_normal(1_000_000),), quick=False
)
PAIRWISE = Workload(
    "pairwise-1000",
    "elementwise",
    pairwise_energy,
    lambda rng: (rng.standard_normal((1000, 3)), rng.uniform(0.5, 1.5, 1000)),
    quick=False,
)
BLACK_SCHOLES = Workload(
    "black-scholes-1e6", "elementwise", black_scholes, _options, argnums=(0, 2, 3, 4), quick=False
)

WORKLOADS = (
    _chain(10_000, "1e4", quick=True),
    CHAIN_1E6,
    in_float32(CHAIN_1E6),
    _chain(10_000_000, "1e7", quick=False),
    REDUNDANT,
    in_float32(REDUNDANT),
    BLACK_SCHOLES,
    in_float32(BLACK_SCHOLES),
    Workload("rosenbrock-1e3", "elementwise", rosenbrock, lambda rng: (rng.standard_normal(1_000),)),
    ROSENBROCK_1E6,
    in_float32(ROSENBROCK_1E6),
    PAIRWISE,
    in_float32(PAIRWISE),
)
