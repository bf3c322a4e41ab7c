"""Where a math function is tested: arguments drawn at random, and what is right there."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from mpmath import mpf

Points = Callable[[np.random.Generator, int], np.ndarray]


def between(lo: float, hi: float) -> Points:
    return lambda rng, count: rng.uniform(lo, hi, count)


def sizes(lo: float, hi: float, signed: bool = True) -> Points:
    """Numbers from 2**lo to 2**hi, evenly by exponent."""

    def points(rng: np.random.Generator, count: int) -> np.ndarray:
        return 2.0 ** rng.uniform(lo, hi, count) * (rng.choice([-1.0, 1.0], count) if signed else 1.0)

    return points


def around(centre: float, lo: float, hi: float) -> Points:
    """`centre` plus and minus numbers of all sizes."""
    return lambda rng, count: centre + sizes(lo, hi)(rng, count)


def subnormal(rng: np.random.Generator, count: int) -> np.ndarray:
    """Subnormal as a float, and below 2**-1022 every second one."""
    small = rng.integers(1, 2**52, count).view(np.float64)
    return np.where(np.arange(count) % 2, small, 2.0 ** rng.uniform(-149, -126, count))


def half_turns(rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers next to multiples of pi/2."""
    return np.nextafter(rng.integers(1, 10**6, count) * (np.pi / 2), rng.choice([-np.inf, np.inf], count))


@dataclass(frozen=True)
class Case:
    """Points are drawn for each argument, `count` of each kind; errors are beside the result, or what is larger."""

    reference: Callable[..., mpf]
    points: tuple[tuple[Points, ...], ...]
    beside: Callable[..., float] = field(default=lambda *args: 0.0)
    static: dict[str, int] = field(default_factory=dict)
    count: int = 250


def one(reference: Callable[[mpf], mpf], *points: Points) -> Case:
    return Case(reference, tuple((p,) for p in points))
