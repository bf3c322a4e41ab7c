"""Programs that trace to thousands of ops: how the time to the first result grows with their length.

Rolling into loops is switched off for them, so that every op reaches the code generator.
"""

from collections.abc import Callable
from typing import Any

import numpy

from .workload import Library, Workload
from .workloads.calls import scalar
from .workloads.loops import LSTM_64, plain

GROUP = "compile"
SHORT_STEPS = 23


def _chain(steps: int, name: str, quick: bool) -> Workload:
    """Elementwise ops one after the other, no two turns alike."""
    choices = numpy.random.default_rng(1).integers(0, 7, steps // 2)
    factors = numpy.random.default_rng(2).uniform(0.8, 1.2, steps // 2)

    def function(library: Library, x: Any) -> Any:
        np = library.np
        steps_of: tuple[Callable[[Any], Any], ...] = (
            np.sin, np.tanh, np.cos, np.arctan, np.square, np.exp, lambda x: x - 0.5
        )  # fmt: skip
        for choice, factor in zip(choices, factors, strict=True):
            x = np.tanh(x) if choice == 5 else x  # lest exp overflow
            x = steps_of[choice](x) * float(factor)
        return np.sum(x)

    return Workload(f"first-call-chain-{name}", GROUP, function, lambda rng: (rng.random(100),), quick=quick)


def _recurrence(library: Library, matrix: Any, inputs: Any) -> Any:
    """A thousand turns of a small recurrent network."""
    np = library.np
    state = inputs[0] * 0.0
    for k in range(inputs.shape[0]):
        state = np.tanh(matrix @ state + inputs[k])
    return np.sum(state**2)


def _determinant(library: Library, matrix: Any) -> Any:
    """By minors along the first row, and their minors."""
    np = library.np
    n = matrix.shape[0]
    if n == 1:
        return matrix[0, 0]
    total = 0.0
    for j in range(n):
        minor = np.concatenate([matrix[1:, :j], matrix[1:, j + 1 :]], axis=1)
        total = total + (-1.0) ** j * matrix[0, j] * _determinant(library, minor)
    return total


def _short_lstm() -> Workload:
    """A few turns of an LSTM, as a Python loop."""

    def arguments(rng: numpy.random.Generator) -> tuple[Any, ...]:
        *weights, inputs, targets = LSTM_64.arguments(rng)
        return (*weights, inputs[:SHORT_STEPS], targets[:SHORT_STEPS])

    loop = plain(LSTM_64)
    return Workload("first-call-lstm-23", GROUP, loop.function, arguments, argnums=loop.argnums, quick=False)


LONG_TRACES = (
    _chain(1000, "1e3", quick=True),
    _chain(2000, "2e3", quick=False),
    _chain(10_000, "1e4", quick=False),
    Workload(
        "first-call-recurrence-1000", GROUP, _recurrence,
        lambda rng: (rng.standard_normal((4, 4)), rng.standard_normal((1000, 4))), argnums=(0, 1), quick=False,
    ),
    _short_lstm(),
    Workload("first-call-det-6", GROUP, _determinant, lambda rng: (rng.standard_normal((6, 6)),), quick=False),
)  # fmt: skip

FIRST_CALL_SCALAR = Workload("first-call-scalar", GROUP, scalar, lambda rng: (0.7,), with_value=False)
