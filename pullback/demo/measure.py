"""What the demo says of a gradient: does it agree with differences, how long it takes, what the passes did."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback import driver
from pullback.api.settings import current_options
from pullback.demo.digits import Array
from pullback.demo.models import Model, Parameters
from pullback.record import record

DIRECTIONS = 5
STEP = 1e-2


@record(frozen=True)
class Times:
    """Medians of one call, in seconds."""

    compiled: float
    by_hand: float


@record(frozen=True)
class Ops:
    """How many operations a program has: as it was differentiated, after the passes, and what is run in the end."""

    differentiated: int
    optimised: int
    kernels: int
    others: int


def ops_before_after(gradient_function: Any, *arguments: Any) -> Ops:
    """Count the operations of a function made by pullback, for these arguments, before and after the passes."""
    options = current_options()
    program = pb.lower(gradient_function, *arguments).function
    optimised = driver.optimised(program, options)
    planned = [op.opdef.name for op in driver.planned(optimised, options).function.ops]
    kernels = planned.count("kernel")
    return Ops(len(program.ops), len(optimised.ops), kernels, len(planned) - kernels)


def disagreement(
    model: Model, gradient: Parameters, parameters: Parameters, batch: tuple[Array, Array], rng: np.random.Generator
) -> float:
    """Return the largest relative difference to central differences of the plain loss, over random directions."""
    worst = 0.0
    for _ in range(DIRECTIONS):
        direction = {name: rng.standard_normal(value.shape) for name, value in parameters.items()}
        length = np.sqrt(sum(np.sum(value**2) for value in direction.values()))
        direction = {name: value / length for name, value in direction.items()}
        expected = _slope(model, parameters, direction, batch)
        found = sum(float(np.sum(gradient[name] * direction[name])) for name in direction)
        size = np.sqrt(sum(float(np.sum(value**2)) for value in gradient.values()) / length**2)
        worst = max(worst, abs(found - expected) / max(abs(expected), size))
    return worst


def _slope(model: Model, parameters: Parameters, direction: Parameters, batch: tuple[Array, Array]) -> float:
    """Return the slope along a direction: central differences at h, h/2, h/4, extrapolated to h = 0."""

    def difference(step: float) -> float:
        ahead, behind = (
            model.loss({name: parameters[name] + sign * step * direction[name] for name in parameters}, *batch)
            for sign in (1.0, -1.0)
        )
        return float(ahead - behind) / (2.0 * step)

    wide, middle, narrow = difference(STEP), difference(STEP / 2), difference(STEP / 4)
    first, second = (4 * middle - wide) / 3, (4 * narrow - middle) / 3
    return (16 * second - first) / 15


def alternate(compiled: Callable[[], Any], by_hand: Callable[[], Any], rounds: int) -> Times:
    """Time two functions in turn, so that whatever else the machine does falls on both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for function, taken in zip((compiled, by_hand), times, strict=True):
            begin = time.perf_counter()
            function()
            taken.append(time.perf_counter() - begin)
    return Times(statistics.median(times[0]), statistics.median(times[1]))
