"""Are the numbers right? Asked of every system before it is timed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .workload import Workload

STEP = 1e-4


@dataclass(frozen=True)
class Tolerance:
    """Relative to the value, to the largest entry of each gradient, and to the slope along a direction."""

    value: float
    gradient: float
    slope: float


DOUBLE = Tolerance(value=1e-9, gradient=1e-7, slope=1e-5)
SINGLE = Tolerance(value=1e-3, gradient=2e-3, slope=1e-2)


class Judge:
    """Compares with NumPy's value, with differences of it along one random direction, and with the first gradient."""

    def __init__(self, workload: Workload, forward: Callable[..., Any]) -> None:
        self.tolerance = SINGLE if workload.float32 else DOUBLE
        self.argnums = workload.argnums
        # In double precision also for float32: the reference should be the better one.
        arguments = tuple(_in_float64(argument) for argument in workload.sample())
        self.value = float(forward(*arguments))
        rng = np.random.default_rng(1)
        self.direction = [rng.standard_normal(np.shape(arguments[number])) for number in workload.argnums]
        self.slope = None if workload.kinks else self._slope(forward, arguments)
        self.first: Sequence[Any] | None = None

    def fault(self, value: Any, gradients: Sequence[Any]) -> str:
        """Return what is wrong with a result, or an empty text."""
        bound = self.tolerance
        if value is not None and not _near(float(value), self.value, bound.value):
            return f"value {float(value):.10g}, NumPy has {self.value:.10g}"
        if not gradients:
            return ""
        along = sum(float(np.sum(g * d, dtype=np.float64)) for g, d in zip(gradients, self.direction, strict=True))
        if self.slope is not None and not _near(along, self.slope, bound.slope):
            return f"slope {along:.10g} along a direction, differences give {self.slope:.10g}"
        if self.first is None:
            self.first = gradients
        return self._unlike(gradients)

    def _unlike(self, gradients: Sequence[Any]) -> str:
        assert self.first is not None
        for number, found, expected in zip(self.argnums, gradients, self.first, strict=True):
            if np.shape(found) != np.shape(expected):
                return f"gradient {number} has shape {np.shape(found)}, not {np.shape(expected)}"
            off, size = float(np.max(np.abs(found - expected))), float(np.max(np.abs(expected)))
            if not off <= self.tolerance.gradient * size:
                return f"gradient {number} is {off / size:.1e} of its largest entry from the first system's"
        return ""

    def _slope(self, forward: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
        """Central differences with two steps, extrapolated."""

        def difference(step: float) -> float:
            values = [float(forward(*self._moved(arguments, signed))) for signed in (step, -step)]
            return (values[0] - values[1]) / (2.0 * step)

        return (4.0 * difference(STEP) - difference(2.0 * STEP)) / 3.0

    def _moved(self, arguments: tuple[Any, ...], step: float) -> list[Any]:
        moved = list(arguments)
        for number, direction in zip(self.argnums, self.direction, strict=True):
            moved[number] = arguments[number] + step * direction
        return moved


def _near(found: float, expected: float, relative: float) -> bool:
    return abs(found - expected) <= relative * max(abs(expected), 1e-3)


def _in_float64(argument: Any) -> Any:
    single = isinstance(argument, np.ndarray) and argument.dtype == np.float32
    return argument.astype(np.float64) if single else argument
