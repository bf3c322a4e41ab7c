"""The training loop: batches, Adam, a gradient function from outside."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback.demo.digits import Array, Digits
from pullback.demo.models import Model, Parameters
from pullback.record import record

BATCH = 64

# (parameters, images, targets) to (loss, gradient)
Gradient = Callable[[Parameters, Array, Array], tuple[Any, Parameters]]
# called after each step with the number of steps done, of all steps, and the loss
Watch = Callable[[int, int, float], None]


@record(frozen=True)
class Trained:
    """What training gave; `seconds` is the time of all steps, the first and its compilation not counted."""

    parameters: Parameters
    steps: int
    seconds: float
    first_call: float


class Adam:
    """The optimiser of Kingma and Ba (2015), with the learning rate given at each step."""

    def __init__(self, parameters: Parameters) -> None:
        self.mean = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.square = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.steps = 0

    def step(self, parameters: Parameters, gradient: Parameters, rate: float) -> Parameters:
        """Return the parameters moved against the gradient."""
        self.steps += 1
        rate *= np.sqrt(1.0 - 0.999**self.steps) / (1.0 - 0.9**self.steps)
        moved = {}
        for name, slope in gradient.items():
            self.mean[name] += 0.1 * (slope - self.mean[name])
            self.square[name] += 0.001 * (slope**2 - self.square[name])
            moved[name] = parameters[name] - rate * self.mean[name] / (np.sqrt(self.square[name]) + 1e-8)
        return moved


def batches(model: Model, digits: Digits, epochs: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Yield batches of one size (what is left over of an epoch is dropped, so one compiled function serves all)."""
    count = len(digits.images)
    for _ in range(epochs):
        order = rng.permutation(count)
        for start in range(0, count - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            images = digits.images[chosen]
            if model.noise:
                images = images + model.noise * rng.standard_normal(images.shape)
            yield images, digits.targets[chosen]


def train(
    model: Model, gradient: Gradient, digits: Digits, epochs: int, rng: np.random.Generator, watch: Watch
) -> Trained:
    """Train a model from new parameters and say what it took."""
    parameters = model.new_parameters(rng)
    adam = Adam(parameters)
    steps = epochs * (len(digits.images) // BATCH)
    first_call = begin = 0.0
    for done, (images, targets) in enumerate(batches(model, digits, epochs, rng)):
        called = time.perf_counter()
        loss, slope = gradient(parameters, images, targets)
        if done == 0:
            begin = time.perf_counter()
            first_call = begin - called
        parameters = adam.step(parameters, slope, model.rate * 0.5 * (1.0 + np.cos(np.pi * done / steps)))
        watch(done + 1, steps, float(loss))
    return Trained(parameters, steps, time.perf_counter() - begin, first_call)


def accuracy(model: Model, parameters: Parameters, digits: Digits) -> float:
    """Return the share of the held-out digits that the model reads rightly."""
    read = np.argmax(model.scores(parameters, digits.held_out_images), axis=1)
    return float(np.mean(read == digits.held_out_labels))
