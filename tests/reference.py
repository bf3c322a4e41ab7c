"""Derivatives by finite differences on plain NumPy: the reference that knows nothing of pullback.

Two independent methods, so that each can be checked by the other:

- `gradient`: central differences extrapolated to step zero (Richardson; the table of Ridders, who keeps the entry
  whose neighbours agree best). Works on every function; about 1e-10 relative where the function is smooth.
- `complex_gradient`: the imaginary part of f(x + ih) over h, with a step so small that nothing is lost. Exact to the
  last few bits, but only where the function is written in operations that are analytic and keep a complex dtype.

Arguments are nested tuples, lists and dicts of float arrays and Python floats. Each call of the function gets fresh
copies, since a function may write to its arguments.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[..., Any]

LEVELS = 6
SHRINK = 2.0
FIRST_STEP = 0.02
COMPLEX_STEP = 1e-30


@dataclass(frozen=True)
class Estimate:
    """A derivative and how far the last two extrapolations were apart."""

    value: float
    error: float


def flatten(tree: Any) -> Array:
    """Return the numbers of every float leaf, one after the other; dicts in the order of their sorted keys."""
    leaves = _leaves(tree)
    return np.concatenate([np.ravel(np.asarray(leaf, dtype=np.float64)) for leaf in leaves]) if leaves else np.zeros(0)


def unflatten(tree: Any, numbers: NDArray[Any]) -> Any:
    """Return a fresh tree shaped like `tree` that holds `numbers`, whatever their dtype."""
    rest = iter(np.split(numbers, np.cumsum([np.size(leaf) for leaf in _leaves(tree)])[:-1]))
    return _rebuild(tree, rest)


def copy(argument: Any) -> Any:
    """Return the argument with every array copied."""
    if isinstance(argument, dict):
        return {key: copy(item) for key, item in argument.items()}
    if isinstance(argument, tuple | list):
        return type(argument)(copy(item) for item in argument)
    return np.array(argument) if isinstance(argument, np.ndarray) else argument


def gradient(function: Function, arguments: tuple[Any, ...], argnums: tuple[int, ...] = (0,)) -> tuple[Any, ...]:
    """Return the gradient of a scalar function in the arguments `argnums`, one tree for each."""
    line = _Along(function, arguments, argnums)
    numbers = np.array([line.slope(unit).value for unit in np.eye(line.start.size)])
    return line.as_arguments(numbers)


def complex_gradient(
    function: Function, arguments: tuple[Any, ...], argnums: tuple[int, ...] = (0,)
) -> tuple[Any, ...]:
    """Return what `gradient` does, by complex steps; for functions that are analytic as they are written."""
    line = _Along(function, arguments, argnums)
    numbers = np.array([line.complex_slope(unit) for unit in np.eye(line.start.size)])
    return line.as_arguments(numbers)


def second_derivative(
    function: Function,
    arguments: tuple[Any, ...],
    direction: tuple[Any, ...],
    argnums: tuple[int, ...] = (0,),
    analytic: bool = False,
) -> Estimate:
    """Return d2 f(x + t v) / dt2 at t = 0, the Hessian's quadratic form along v.

    An analytic function needs one difference only (of complex slopes), which gains about four digits.
    """
    line = _Along(function, arguments, argnums)
    v = flatten(direction)
    if analytic:
        return richardson(lambda step: (line.complex_slope(v, step) - line.complex_slope(v, -step)) / (2 * step))
    middle = line.at(0 * v)
    return richardson(lambda step: (line.at(step * v) - 2 * middle + line.at(-step * v)) / step**2)


def richardson(difference: Callable[[float], float], first: float = FIRST_STEP) -> Estimate:
    """Extrapolate to step zero a difference quotient whose error is a series in the square of the step.

    Source: C. J. F. Ridders, "Accurate computation of F'(x) and F'(x) F''(x)", Adv. Eng. Software 4 (1982).
    """
    row = [difference(first)]
    best = Estimate(row[0], np.inf)
    for level in range(1, LEVELS):
        below = [difference(first / SHRINK**level)]
        for order, above in enumerate(row):
            factor = SHRINK ** (2 * (order + 1))
            below.append((factor * below[order] - above) / (factor - 1))
            error = max(abs(below[-1] - below[-2]), abs(below[-1] - above))
            if error <= best.error:
                best = Estimate(below[-1], error)
        row = below
    return best


class _Along:
    """A scalar function seen along straight lines through its arguments."""

    def __init__(self, function: Function, arguments: tuple[Any, ...], argnums: tuple[int, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self.argnums = argnums
        self.active = tuple(arguments[number] for number in argnums)
        self.start = flatten(self.active)

    def as_arguments(self, numbers: NDArray[Any]) -> tuple[Any, ...]:
        moved: tuple[Any, ...] = unflatten(self.active, numbers)
        return moved

    def at(self, shift: NDArray[Any]) -> Any:
        moved = self.as_arguments(self.start + shift)
        changed = dict(zip(self.argnums, moved, strict=True))
        full = [changed[n] if n in changed else copy(argument) for n, argument in enumerate(self.arguments)]
        return self.function(*full)

    def slope(self, direction: Array) -> Estimate:
        scale = max(1.0, float(np.max(np.abs(self.start * direction), initial=0.0)))
        return richardson(
            lambda step: float(self.at(step * direction) - self.at(-step * direction)) / (2 * step), FIRST_STEP * scale
        )

    def complex_slope(self, direction: Array, along: float = 0.0) -> float:
        return float(np.imag(self.at((along + 1j * COMPLEX_STEP) * direction)) / COMPLEX_STEP)


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in _leaves(tree[key])]
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in _leaves(item)]
    return [tree]


def _rebuild(tree: Any, rest: Any) -> Any:
    if isinstance(tree, dict):
        filled = {key: _rebuild(tree[key], rest) for key in sorted(tree)}
        return {key: filled[key] for key in tree}
    if isinstance(tree, tuple | list):
        return type(tree)(_rebuild(item, rest) for item in tree)
    numbers = next(rest)
    return np.reshape(numbers, np.shape(tree)) if isinstance(tree, np.ndarray) else numbers[0].item()
