"""Is it a 3 or an 8? Logistic regression on handwritten digits, by Newton's method with the exact Hessian."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pullback as pb
from pullback.demo.digits import load_digits

Array = NDArray[np.float64]

DECAY = 1e-3


def loss(weights: Array, images: Array, signs: Array) -> Any:
    """Return the mean logistic loss and a small decay; the last weight is the bias."""
    margins = signs * (images @ weights[:-1] + weights[-1])
    return np.mean(np.logaddexp(0.0, -margins)) + 0.5 * DECAY * np.sum(weights**2)


def main() -> tuple[float, Array]:
    """Train, print the steps, return the accuracy on held-out digits and the last gradient."""
    digits = load_digits(np.random.default_rng(0))
    images, signs = _three_or_eight(digits.images, digits.targets.argmax(axis=1))
    gradient, hessian = pb.grad(loss), pb.hessian(loss)
    weights = np.zeros(images.shape[1] + 1)
    for step in range(12):
        slope = gradient(weights, images, signs)
        print(f"step {step}: loss {loss(weights, images, signs):.8f}, largest slope {np.abs(slope).max():.1e}")
        if np.abs(slope).max() < 1e-12:
            break
        weights = weights - np.linalg.solve(hessian(weights, images, signs), slope)
    held_out, truth = _three_or_eight(digits.held_out_images, digits.held_out_labels)
    accuracy = float(np.mean(np.sign(held_out @ weights[:-1] + weights[-1]) == truth))
    print(f"{accuracy:.1%} of {len(truth)} held-out digits are told apart")
    return accuracy, gradient(weights, images, signs)


def _three_or_eight(images: Array, labels: NDArray[np.intp]) -> tuple[Array, Array]:
    chosen = (labels == 3) | (labels == 8)
    return images[chosen], np.where(labels[chosen] == 3, 1.0, -1.0)


if __name__ == "__main__":
    main()
