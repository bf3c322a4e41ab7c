"""The transforms, on a function small enough to check by hand."""

import numpy as np
from numpy.typing import NDArray

import pullback as pb

Array = NDArray[np.float64]


def rosenbrock(x: Array) -> float:
    """Return Rosenbrock's valley; least, with value 0, where every entry is 1."""
    result: float = np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    return result


def main() -> dict[str, Array]:
    """Print the derivatives of `rosenbrock` at one point and return them."""
    x = np.array([1.2, 0.8, 1.1])
    along = np.array([1.0, 0.0, -1.0])

    value, gradient = pb.value_and_grad(rosenbrock)(x)
    _, slope = pb.jvp(rosenbrock, (x,), (along,))
    _, pull = pb.vjp(rosenbrock, x)
    hessian = pb.hessian(rosenbrock)(x)
    # Transforms nest: the derivative of the gradient along a direction, without the whole Hessian.
    _, curved = pb.jvp(pb.grad(rosenbrock), (x,), (along,))

    found = {
        "value": np.asarray(value),
        "gradient": gradient,
        "slope along (1, 0, -1)": np.asarray(slope),
        "vjp of 2": pull(2.0)[0],
        "hessian": hessian,
        "hessian times (1, 0, -1)": curved,
    }
    for name, numbers in found.items():
        print(f"{name}:\n{numbers}\n")
    return found


if __name__ == "__main__":
    main()
