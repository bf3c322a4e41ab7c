"""Predators and prey: four rates and two first numbers of animals, fitted to twenty-one years of furs.

The numbers, in thousands, are pelts of hares and lynxes that the Hudson's Bay Company bought from 1900 to 1920, as
tabulated by E. R. Leigh (1968) from C. G. Hewitt (1921), and used ever since to show this model.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import pullback as pb

Array = NDArray[np.float64]

HARES = np.array([
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1,
    40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
])
LYNXES = np.array([
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4,
    8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
])
STEPS_A_YEAR = 2


def slope(state: Array, rates: Array) -> Array:
    """Return d/dt of the logarithms of hares and lynxes."""
    animals = np.exp(state)
    return np.stack([rates[0] - rates[1] * animals[1], rates[2] * animals[0] - rates[3]])


def misfit(unknowns: Array) -> Any:
    """Return the sum of squared errors of the logarithms; `unknowns` are logarithms, so that all stays positive."""
    rates, state = np.exp(unknowns[:4]), unknowns[4:]
    step = 1.0 / STEPS_A_YEAR
    total = 0.0
    for year in range(len(HARES)):
        total = total + (state[0] - np.log(HARES[year])) ** 2 + (state[1] - np.log(LYNXES[year])) ** 2
        for _ in range(STEPS_A_YEAR):
            first = slope(state, rates)
            second = slope(state + 0.5 * step * first, rates)
            third = slope(state + 0.5 * step * second, rates)
            fourth = slope(state + step * third, rates)
            state = state + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
    return total


def main() -> Array:
    """Fit, print the rates and return them: births, deaths by lynx, births by hare, deaths (a year)."""
    start = np.log([0.5, 0.03, 0.03, 0.8, 30.0, 4.0])
    fit = minimize(pb.value_and_grad(misfit), start, jac=True, method="BFGS", options={"gtol": 1e-6})
    rates: Array = np.exp(fit.x[:4])
    print(f"squared error {misfit(start):.2f} before, {fit.fun:.3f} after {fit.nit} steps ({fit.nfev} gradients)")
    print(f"hares are born at {rates[0]:.3f} a year, lynxes starve at {rates[3]:.3f}")
    print(f"each thousand lynxes take {rates[1]:.4f} of the hares, each thousand hares feed {rates[2]:.4f} lynxes")
    return rates


if __name__ == "__main__":
    main()
