"""Losses of models: logistic regression, a multi-layer perceptron, a Gaussian mixture."""

import math
from pathlib import Path
from typing import Any

import numpy

from ..workload import Library, Workload, in_float32

DATA = Path(__file__).resolve().parent.parent / "data"


def logistic_regression(library: Library, weights: Any, inputs: Any, signs: Any) -> Any:
    np = library.np
    return np.mean(np.logaddexp(0.0, -signs * (inputs @ weights)))


def mlp(library: Library, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, inputs: Any, targets: Any) -> Any:
    np = library.np
    hidden = np.tanh(inputs @ w1 + b1)
    hidden = np.tanh(hidden @ w2 + b2)
    scores = hidden @ w3 + b3
    shifted = scores - np.max(scores, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(shifted), axis=1)) - np.sum(targets * shifted, axis=1))


def gaussian_mixture(
    library: Library, weights: Any, means: Any, factors: Any, points: Any, places: Any, lower: Any, prior: Any
) -> Any:
    """ADBench's objective: the log-likelihood of a mixture, and a Wishart prior.

    Shapes: `weights` (K,), `means` (K, D), `factors` (K, D (D + 1) / 2): the inverse factors of the covariances, first
    the logarithms of the diagonal, then the triangle below it column by column; `points` (N, D). `places` and `lower`,
    both (D, D), say which column of `factors` an entry comes from, and where there is one.
    """
    np = library.np
    count, dimensions = points.shape
    gamma, degrees, constant = prior
    log_diagonal = factors[:, :dimensions]
    diagonal = np.exp(log_diagonal)
    triangle = factors[:, places] * lower
    logarithms = np.sum(log_diagonal, axis=1)
    apart = points[:, None, :] - means[None, :, :]
    scaled = diagonal * apart + np.einsum("kij,nkj->nki", triangle, apart)
    each = weights + logarithms - 0.5 * np.sum(scaled**2, axis=2)
    peak = np.max(each, axis=1, keepdims=True)
    likelihood = np.sum(np.log(np.sum(np.exp(each - peak), axis=1)) + peak[:, 0])
    likelihood = likelihood - count * np.log(np.sum(np.exp(weights)))
    squares = np.sum(diagonal**2) + np.sum(factors[:, dimensions:] ** 2)
    return likelihood + 0.5 * gamma**2 * squares - degrees * np.sum(logarithms) + constant


def read_mixture(name: str) -> tuple[Any, ...]:
    """Read one of ADBench's files: sizes, weights, means, factors, points, then the two numbers of the prior."""
    numbers = iter((DATA / name).read_text().split())
    dimensions, parts, count = (int(next(numbers)) for _ in range(3))

    def take(*shape: int) -> Any:
        return numpy.array([float(next(numbers)) for _ in range(math.prod(shape))]).reshape(shape)

    weights, means = take(parts), take(parts, dimensions)
    factors, points = take(parts, dimensions * (dimensions + 1) // 2), take(count, dimensions)
    gamma, extra = take(2)
    places, lower = _triangle(dimensions)
    prior = (float(gamma), float(extra), _constant(parts, dimensions, count, float(gamma), float(extra)))
    return weights, means, factors, points, places, lower, prior


def _large_mixture(rng: numpy.random.Generator) -> tuple[Any, ...]:
    """Return a mixture of the same kind as the files', too large to keep as one."""
    parts, dimensions, count = 100, 64, 1000
    _, _, _, _, _, _, (gamma, extra, _) = read_mixture("gmm_d10_K10.txt")
    places, lower = _triangle(dimensions)
    prior = (gamma, extra, _constant(parts, dimensions, count, gamma, extra))
    sizes = ((parts,), (parts, dimensions), (parts, dimensions * (dimensions + 1) // 2), (count, dimensions))
    weights, means, factors, points = (rng.standard_normal(size) for size in sizes)
    return weights, means, 0.1 * factors, points, places, lower, prior


def _triangle(dimensions: int) -> tuple[Any, Any]:
    columns, rows = numpy.triu_indices(dimensions, 1)
    places, lower = numpy.zeros((dimensions, dimensions), dtype=int), numpy.zeros((dimensions, dimensions))
    places[rows, columns] = dimensions + numpy.arange(len(rows))
    lower[rows, columns] = 1.0
    return places, lower


def _constant(parts: int, dimensions: int, count: int, gamma: float, extra: float) -> float:
    degrees = dimensions + extra + 1.0
    log_gamma = 0.25 * dimensions * (dimensions - 1) * math.log(math.pi)
    log_gamma += sum(math.lgamma(0.5 * (degrees - index)) for index in range(dimensions))
    wishart = degrees * dimensions * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma
    return -0.5 * count * dimensions * math.log(2.0 * math.pi) - parts * wishart


def _logistic(rows: int, columns: int) -> Workload:
    def arguments(rng: numpy.random.Generator) -> tuple[Any, ...]:
        signs = numpy.where(rng.random(rows) < 0.5, -1.0, 1.0)
        return rng.standard_normal(columns), rng.standard_normal((rows, columns)), signs

    return Workload(f"logistic-{rows}x{columns}", "learning", logistic_regression, arguments)


def _mlp(batch: int, width: int, quick: bool) -> Workload:
    def arguments(rng: numpy.random.Generator) -> tuple[Any, ...]:
        shapes = ((width, width), (width,), (width, width), (width,), (width, 10), (10,))
        layers = (rng.standard_normal(shape) / math.sqrt(width) for shape in shapes)
        return *layers, rng.standard_normal((batch, width)), numpy.eye(10)[rng.integers(0, 10, batch)]

    return Workload(f"mlp-{batch}x{width}", "learning", mlp, arguments, argnums=(0, 1, 2, 3, 4, 5), quick=quick)


LOGISTIC = _logistic(10_000, 100)
MLP_128 = _mlp(128, 256, quick=True)

WORKLOADS = (
    _logistic(100, 10),
    LOGISTIC,
    in_float32(LOGISTIC),
    _mlp(32, 64, quick=True),
    MLP_128,
    in_float32(MLP_128),
    _mlp(1024, 1024, quick=False),
    Workload(
        "gmm-1000-d10-k10",
        "learning",
        gaussian_mixture,
        lambda rng: read_mixture("gmm_d10_K10.txt"),
        argnums=(0, 1, 2),
    ),
    Workload(
        "gmm-1000-d64-k100", "learning", gaussian_mixture, _large_mixture, argnums=(0, 1, 2), quick=False
    ),
)
