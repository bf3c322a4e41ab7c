"""Long loops: a Kalman filter, recurrent networks, grids that change step by step.

Each is written with `library.scan`; those called `plain` are the same with a Python loop, as NumPy programs are.
"""

import inspect
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy

from ..stepping import python_scan
from ..workload import Function, Library, Maker, Workload

STEPS = 100


def kalman(library: Library, transition: Any, spread: Any, blur: Any, seen: Any, observe: Any) -> Any:
    """The log-likelihood of measurements, but for a constant.

    Shapes: `transition` (n, n); `spread` (n,) and `blur` (m,), logarithms of variances; `seen` (steps, m); `observe`
    (m, n).
    """
    np = library.np
    moved, measured = np.diag(np.exp(spread)), np.diag(np.exp(blur))

    def step(carry: Any, z: Any) -> Any:
        mean, covariance = carry
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + moved
        error = z - observe @ mean
        across = observe @ covariance
        scatter = across @ observe.T + measured
        gain = np.linalg.solve(scatter, across).T
        likelihood = error @ np.linalg.solve(scatter, error) + np.linalg.slogdet(scatter)[1]
        return (mean + gain @ error, covariance - gain @ across), likelihood

    start = (transition[0] * 0.0, moved)
    _, likelihoods = library.scan(step, start, seen, seen.shape[0])
    return -0.5 * np.sum(likelihoods)


def lstm(library: Library, inner: Any, outer: Any, bias: Any, read: Any, inputs: Any, targets: Any) -> Any:
    """Squared errors of what is read from the hidden state.

    Shapes: `inner` (h, 4 h), `outer` (k, 4 h), `bias` (4 h,), `read` (h,), `inputs` (steps, ..., k), `targets` (steps,
    ...).
    """
    np = library.np
    width = read.shape[0]

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-x))

    def step(carry: Any, row: Any) -> Any:
        hidden, cell = carry
        x, target = row
        gates = hidden @ inner + x @ outer + bias
        keep, write, show = (sigmoid(gates[..., k * width : (k + 1) * width]) for k in range(3))
        cell = keep * cell + write * np.tanh(gates[..., 3 * width :])
        hidden = show * np.tanh(cell)
        return (hidden, cell), np.sum((hidden @ read - target) ** 2)

    start = (inputs[0] @ outer)[..., :width] * 0.0
    _, errors = library.scan(step, (start, start), (inputs, targets), inputs.shape[0])
    return np.sum(errors)


def heat(library: Library, grid: Any, rate: Any) -> Any:
    """Diffusion on a square whose surroundings are kept at zero."""
    np = library.np

    def step(u: Any, _: Any) -> Any:
        wide = np.pad(u, 1)
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        return u + rate * (around - 4.0 * u), None

    last, _ = library.scan(step, grid, None, STEPS)
    return np.sum(last**2)


def allen_cahn(library: Library, grid: Any, rate: Any) -> Any:
    """Two phases part on a torus."""
    np = library.np

    def step(u: Any, _: Any) -> Any:
        around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
        return u + rate * (around - 4.0 * u) + 0.1 * (u - u**3), None

    last, _ = library.scan(step, grid, None, STEPS)
    return np.sum(last**4)


def filled(library: Library, record: Any, rate: Any) -> Any:
    """A carried array, written one element a turn: the time of the gradient must grow as the length does."""
    np = library.np

    def step(y: Any, i: Any) -> Any:
        y[i + 1] = np.sin(y[i]) * rate + y[i + 1]
        return y, None

    last, _ = library.scan(step, np.copy(record), np.arange(record.shape[0] - 1), record.shape[0] - 1)
    return np.sum(last**2)


def steps(library: Library, x: Any, scale: Any) -> Any:
    """Many steps of a small state, one number of each of which is seen."""
    np = library.np

    def step(y: Any, _: Any) -> Any:
        return y + 0.01 * np.sin(y * scale), y[0]

    last, seen = library.scan(step, x, None, 10_000)
    return np.sum(last**2) + np.sum(seen**2)


def within(budget: int, workload: Workload) -> Workload:
    """Return the workload with a memory budget for its loop, in libraries whose loops take one."""

    def bounded(library: Library, *arguments: Any) -> Any:
        if "memory_budget" in inspect.signature(library.scan).parameters:
            library = library._replace(scan=partial(library.scan, memory_budget=budget))
        return workload.function(library, *arguments)

    bounded.__name__ = f"bounded_{workload.function.__name__}"
    return replace(workload, name=f"{workload.name}-in-{budget // 1000}kB", function=bounded)


def filled_apart(library: Library, record: Any, rate: Any) -> Any:
    """As `filled`, with two arrays that change roles each turn, each written at two places."""
    np = library.np
    length = record.shape[0]

    def step(carry: Any, i: Any) -> Any:
        y, z = carry
        y[i + 1] = np.sin(z[i]) * rate + y[i + 1]
        y[length - 1 - i] = y[length - 1 - i] * 0.5
        return (z, y), None

    (last, other), _ = library.scan(step, (np.copy(record), record * 0.5), np.arange(length - 1), length - 1)
    return np.sum(last**2) + np.sum(other)


def plain(workload: Workload) -> Workload:
    """Return the workload with its loop in plain Python, in every library."""

    def unrolled(library: Library, *arguments: Any) -> Any:
        return workload.function(library._replace(scan=python_scan(library.np)), *arguments)

    unrolled.__name__ = f"plain_{workload.function.__name__}"
    return replace(workload, name=f"{workload.name}-plain", function=unrolled, quick=False, unrolled=True)


def _kalman(rng: numpy.random.Generator) -> tuple[Any, ...]:
    transition = numpy.eye(4) * 0.9 + 0.05 * rng.standard_normal((4, 4))
    return transition, rng.standard_normal(4), rng.standard_normal(2), rng.standard_normal((1000, 2)), OBSERVE


OBSERVE = numpy.array([[1.0, 0.0, 0.3, 0.0], [0.0, 1.0, 0.0, 0.3]])


def _lstm(steps: int, batch: tuple[int, ...], width: int) -> Maker:
    def arguments(rng: numpy.random.Generator) -> tuple[Any, ...]:
        inner, outer = (rng.standard_normal((width, 4 * width)) / math.sqrt(width) for _ in range(2))
        inputs, targets = rng.standard_normal((steps, *batch, width)), rng.standard_normal((steps, *batch))
        return inner, outer, rng.standard_normal(4 * width), rng.standard_normal(width), inputs, targets

    return arguments


def _grid(rng: numpy.random.Generator) -> tuple[Any, ...]:
    return rng.standard_normal((128, 128)), 0.1


def _filled(length: int, name: str = "filled", function: Function = filled) -> Workload:
    return Workload(f"{name}-{length}", "loops", function, lambda rng: (rng.standard_normal(length), 0.9))


LSTM_64 = Workload("lstm-100x16x64", "loops", lstm, _lstm(100, (16,), 64), argnums=(0, 1, 2, 3), quick=False)
HEAT = Workload("heat-128x100", "loops", heat, _grid)
ALLEN_CAHN = Workload("allen-cahn-128x100", "loops", allen_cahn, _grid)

STEPPING = Workload(
    "steps-10000x100",
    "loops",
    steps,
    lambda rng: (rng.standard_normal(100), rng.uniform(0.5, 2.0, 100)),
    argnums=(0, 1),
    quick=False,
)

WORKLOADS = (
    Workload("kalman-1000", "loops", kalman, _kalman, argnums=(0, 1, 2)),
    Workload("lstm-1000x16", "loops", lstm, _lstm(1000, (), 16), argnums=(0, 1, 2, 3)),
    LSTM_64,
    HEAT,
    ALLEN_CAHN,
    _filled(20_000),
    _filled(80_000),
    _filled(20_000, "filled-apart", filled_apart),
    _filled(80_000, "filled-apart", filled_apart),
    STEPPING,
    within(1_000_000, STEPPING),
    within(250_000, STEPPING),
    *map(plain, (LSTM_64, HEAT, ALLEN_CAHN)),
)
