"""The two models: their losses in plain NumPy, and the gradients a person would derive from them by hand.

pullback is given the losses and nothing else. The hand-written gradients are there to be compared with.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback.demo.digits import CLASSES
from pullback.record import record

Array = NDArray[np.float64]
Parameters = dict[str, Array]

PIXELS = 64
WIDTH = 256
DECAY = 1e-4


def scores_of_network(parameters: Parameters, images: Array) -> Array:
    """Return one score for each class: a hidden layer with the activation x * sigmoid(x), and a linear one."""
    hidden = images @ parameters["w1"] + parameters["b1"]
    active = hidden / (1.0 + np.exp(-hidden))
    scores: Array = active @ parameters["w2"] + parameters["b2"]
    return scores


def scores_of_regression(parameters: Parameters, images: Array) -> Array:
    """Return one score for each class, linear in the pixels."""
    scores: Array = images @ parameters["w"] + parameters["b"]
    return scores


def cross_entropy(scores: Array, targets: Array) -> Any:
    """Return the mean of -log(probability of the right class), the probabilities being the softmax of the scores."""
    shifted = scores - np.max(scores, axis=1, keepdims=True)
    log_total = np.log(np.sum(np.exp(shifted), axis=1))
    return np.mean(log_total - np.sum(targets * shifted, axis=1))


def network_loss(parameters: Parameters, images: Array, targets: Array) -> Any:
    """Return what the network is trained to make small: cross entropy and a small weight decay."""
    weights = np.sum(parameters["w1"] ** 2) + np.sum(parameters["w2"] ** 2)
    return cross_entropy(scores_of_network(parameters, images), targets) + 0.5 * DECAY * weights


def regression_loss(parameters: Parameters, images: Array, targets: Array) -> Any:
    """Return what the logistic regression is trained to make small."""
    decay = 0.5 * DECAY * np.sum(parameters["w"] ** 2)
    return cross_entropy(scores_of_regression(parameters, images), targets) + decay


def network_by_hand(parameters: Parameters, images: Array, targets: Array) -> tuple[Any, Parameters]:
    """Return `network_loss` and its gradient, derived on paper; each intermediate is computed once."""
    w1, w2 = parameters["w1"], parameters["w2"]
    hidden = images @ w1 + parameters["b1"]
    sigmoid = 1.0 / (1.0 + np.exp(-hidden))
    active = hidden * sigmoid
    entropy, error = _entropy_by_hand(active @ w2 + parameters["b2"], targets)
    slope = (error @ w2.T) * (sigmoid * (1.0 + hidden * (1.0 - sigmoid)))
    gradient = {
        "w1": images.T @ slope + DECAY * w1,
        "b1": slope.sum(axis=0),
        "w2": active.T @ error + DECAY * w2,
        "b2": error.sum(axis=0),
    }
    return entropy + 0.5 * DECAY * (np.vdot(w1, w1) + np.vdot(w2, w2)), gradient


def regression_by_hand(parameters: Parameters, images: Array, targets: Array) -> tuple[Any, Parameters]:
    """Return `regression_loss` and its gradient, derived on paper."""
    w = parameters["w"]
    entropy, error = _entropy_by_hand(scores_of_regression(parameters, images), targets)
    return entropy + 0.5 * DECAY * np.vdot(w, w), {"w": images.T @ error + DECAY * w, "b": error.sum(axis=0)}


def _entropy_by_hand(scores: Array, targets: Array) -> tuple[Any, Array]:
    """Return the cross entropy and its gradient in the scores."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    totals = exponentials.sum(axis=1, keepdims=True)
    entropy = (np.log(totals).sum() - np.vdot(targets, shifted)) / len(targets)
    error: Array = (exponentials / totals - targets) / len(targets)
    return entropy, error


def new_network(rng: np.random.Generator) -> Parameters:
    """Return random weights of a size that keeps the spread of the signals through the layers."""
    return {
        "w1": rng.standard_normal((PIXELS, WIDTH)) * np.sqrt(2.0 / PIXELS),
        "b1": np.zeros(WIDTH),
        "w2": rng.standard_normal((WIDTH, CLASSES)) * np.sqrt(1.0 / WIDTH),
        "b2": np.zeros(CLASSES),
    }


def new_regression(rng: np.random.Generator) -> Parameters:
    """Return small random weights."""
    return {"w": 0.01 * rng.standard_normal((PIXELS, CLASSES)), "b": np.zeros(CLASSES)}


@record(frozen=True)
class Model:
    """A model and how to train it.

    Attributes
    ----------
    noise : spread of the random numbers added to the pixels of each batch, against overfitting; 0 for none
    rate : the first learning rate, lowered to zero along half a cosine
    """

    name: str
    loss: Callable[[Parameters, Array, Array], Any]
    scores: Callable[[Parameters, Array], Array]
    by_hand: Callable[[Parameters, Array, Array], tuple[Any, Parameters]]
    new_parameters: Callable[[np.random.Generator], Parameters]
    epochs: int
    rate: float
    noise: float


MODELS = (
    Model(
        name="network",
        loss=network_loss,
        scores=scores_of_network,
        by_hand=network_by_hand,
        new_parameters=new_network,
        epochs=40,
        rate=1e-2,
        noise=0.3,
    ),
    Model(
        name="logistic regression",
        loss=regression_loss,
        scores=scores_of_regression,
        by_hand=regression_by_hand,
        new_parameters=new_regression,
        epochs=40,
        rate=2e-2,
        noise=0.0,
    ),
)
