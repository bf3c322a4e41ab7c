"""The handwritten digits: reading them, and holding some out."""

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from pullback.record import record

Array = NDArray[np.float64]

CLASSES = 10
HELD_OUT = 360


@record(frozen=True)
class Digits:
    """Images as rows of 64 numbers around zero; targets as rows with a one at the label.

    The held-out images are drawn at random from the same writers as the rest.
    """

    images: Array
    targets: Array
    held_out_images: Array
    held_out_labels: NDArray[np.intp]


def load_digits(rng: np.random.Generator) -> Digits:
    """Read the 1,797 digits that come with the package and hold 360 of them out at random."""
    with files("pullback.demo").joinpath("data/digits.npz").open("rb") as file, np.load(file) as arrays:
        images = arrays["pixels"] / 16.0 - 0.3
        labels = arrays["labels"].astype(np.intp)
    order = rng.permutation(len(images))
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
    return Digits(images[rest], np.eye(CLASSES)[labels[rest]], images[held_out], labels[held_out])
