"""Ten Gaussians fitted to the thousand points of ADBench's mixture problem, by L-BFGS."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import pullback as pb

Array = NDArray[np.float64]
Parameters = dict[str, Array]

POINTS = Path(__file__).resolve().parent.parent / "benchmarks" / "data" / "gmm_d10_K10.txt"
PARTS = 10


def read_points() -> Array:
    """Return the points: the last lines of the file but one, ten numbers each."""
    lines = POINTS.read_text().splitlines()
    count = int(lines[0].split()[2])
    return np.array([[float(number) for number in line.split()] for line in lines[-count - 1 : -1]])


def loss(parameters: Parameters, points: Array) -> Any:
    """Return minus the mean log-likelihood of points under a mixture with diagonal covariances."""
    weights, means, log_scales = parameters["weights"], parameters["means"], parameters["log_scales"]
    normal = (points[:, None, :] - means) * np.exp(-log_scales)
    each = weights - 0.5 * np.einsum("nkd,nkd->nk", normal, normal) - np.sum(log_scales, axis=1)
    peak = np.max(each, axis=1, keepdims=True)
    likelihood = np.log(np.sum(np.exp(each - peak), axis=1)) + peak[:, 0]
    total = np.log(np.sum(np.exp(weights)))
    # A weak prior keeps a Gaussian from shrinking onto a single point.
    prior = 1e-3 * np.sum(np.exp(-log_scales))
    return total - np.mean(likelihood) + prior + 0.5 * points.shape[1] * np.log(2.0 * np.pi)


def main() -> tuple[float, float]:
    """Fit, print and return the loss before and after."""
    points = read_points()
    start = {
        "weights": np.zeros(PARTS),
        "means": points[:: len(points) // PARTS][:PARTS].copy(),
        "log_scales": np.zeros((PARTS, points.shape[1])),
    }
    gradient = pb.value_and_grad(loss)

    def flat(numbers: Array) -> tuple[float, Array]:
        value, slopes = gradient(_unpack(numbers, start), points)
        return float(value), np.concatenate([slopes[name].ravel() for name in start])

    first = np.concatenate([value.ravel() for value in start.values()])
    fit = minimize(flat, first, jac=True, method="L-BFGS-B", options={"maxiter": 100})
    before, after = flat(first)[0], float(fit.fun)
    print(f"{len(points)} points, {first.size} parameters, {fit.nfev} gradients")
    print(f"minus mean log-likelihood: {before:.4f} before, {after:.4f} after")
    return before, after


def _unpack(numbers: Array, like: Parameters) -> Parameters:
    ends = np.cumsum([value.size for value in like.values()])[:-1]
    parts = np.split(numbers, ends)
    return {name: part.reshape(value.shape) for (name, value), part in zip(like.items(), parts, strict=True)}


if __name__ == "__main__":
    main()
