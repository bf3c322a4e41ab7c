"""Where is Halley's comet, and how does that depend on its orbit? Through a loop that ends when it has converged.

Orbit: semi-major axis 17.834 astronomical units, eccentricity 0.96714, perihelion on 9 February 1986.
"""

import numpy as np
from numpy.typing import NDArray

import pullback as pb

Array = NDArray[np.float64]

AXIS, ECCENTRICITY = 17.834, 0.96714


def distance(years: float, axis: float, eccentricity: float) -> float:
    """Return the distance from the sun, in astronomical units, so many years after the perihelion.

    Kepler's equation, E - e sin E = M, is solved by Newton's iteration; `while` and `if` look at the numbers
    themselves, and each way through them is compiled when it is first taken.
    """
    anomaly = 2.0 * np.pi * years / axis**1.5
    eccentric = anomaly if eccentricity < 0.8 else np.pi + 0.0 * anomaly
    error = eccentric - eccentricity * np.sin(eccentric) - anomaly
    while abs(error) > 1e-13:
        eccentric = eccentric - error / (1.0 - eccentricity * np.cos(eccentric))
        error = eccentric - eccentricity * np.sin(eccentric) - anomaly
    result: float = axis * (1.0 - eccentricity * np.cos(eccentric))
    return result


def main() -> Array:
    """Print the distance and its sensitivities in some years, and return them."""
    sensitivity = pb.value_and_grad(distance, argnums=(0, 1, 2))
    rows = []
    for year in (1.0, 10.0, 24.0, 37.8):
        value, slopes = sensitivity(year, AXIS, ECCENTRICITY)
        rows.append([year, value, *slopes])
        print(
            f"{1986.1 + year:.1f}: {value:6.3f} au, {slopes[0]:+.3f} au a year, "
            f"{slopes[1]:+.3f} au per au of axis, {slopes[2]:+.2f} au per unit of eccentricity"
        )
    return np.array(rows)


if __name__ == "__main__":
    main()
