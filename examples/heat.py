"""How well does each part of a rod conduct? Found from the temperature at one end while the other is heated.

The simulation writes its arrays in place, as such programs do: views of neighbours, `+=` on slices, a record filled
step by step. The gradient runs back through all of it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import pullback as pb

Array = NDArray[np.float64]

CELLS, STEPS = 12, 60
TRUTH = np.where(np.arange(CELLS - 1) < 6, 0.45, 0.2)


def record(conductivity: Array) -> Array:
    """Return the temperature of the last cell after each step; the first cell is held at 1."""
    temperature = np.zeros(CELLS)
    temperature[0] = 1.0
    seen = np.empty(STEPS)
    for step in range(STEPS):
        flow = conductivity * (temperature[:-1] - temperature[1:])
        temperature[1:] += flow
        temperature[1:-1] -= flow[1:]
        seen[step] = temperature[-1]
    return seen


def misfit(logarithms: Array, measured: Array) -> Any:
    """Return the squared errors of the record, and a weak wish for a smooth rod."""
    error = record(np.exp(logarithms)) - measured
    return 1e4 * np.sum(error**2) + 1e-3 * np.sum(np.diff(logarithms) ** 2)


def main() -> Array:
    """Find the conductivities, print them beside the true ones, and return them."""
    measured = record(TRUTH)
    start = np.full(CELLS - 1, np.log(0.3))
    fit = minimize(pb.value_and_grad(misfit), start, args=(measured,), jac=True, method="BFGS")
    found: Array = np.exp(fit.x)
    print(f"squared error {misfit(start, measured):.3f} before, {fit.fun:.2e} after {fit.nfev} gradients")
    for cell, (value, true) in enumerate(zip(found, TRUTH, strict=True)):
        print(f"between cells {cell:2} and {cell + 1:2}: found {value:.3f}, true {true:.3f}")
    return found


if __name__ == "__main__":
    main()
