"""What a benchmark is: one function, written once for every library that has NumPy's names."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np


class Library(NamedTuple):
    """The names a workload may use: NumPy's, those of `scipy.special`, and a loop: `carry, rows = scan(step, carry, xs,
    length)` as `jax.lax.scan`."""

    np: Any
    special: Any
    scan: Any


# (library, *arguments) to one number
Function = Callable[..., Any]
Maker = Callable[[np.random.Generator], tuple[Any, ...]]


@dataclass(frozen=True)
class Workload:
    """A scalar function and arguments of one size. Adding a workload is one of these in one of the tables.

    Attributes
    ----------
    name : as `--only` finds it; the size is part of it
    group : what the tables and plots put together
    function : takes a `Library` first, then the arguments
    arguments : makes them from a random generator, in float64; Python floats stay Python floats
    argnums : the arguments (not counting the library) whose gradient is taken
    with_value : time the value and the gradient together; if not, the gradient alone
    quick : small enough for `--quick`
    kinks : the arguments sit on kinks (ties), so that finite differences do not apply
    float32 : the arguments are converted, and tolerances widened
    unrolled : a Python loop of many steps, which JAX compiles for minutes
    """

    name: str
    group: str
    function: Function
    arguments: Maker
    argnums: tuple[int, ...] = (0,)
    with_value: bool = True
    quick: bool = True
    kinks: bool = False
    float32: bool = False
    unrolled: bool = False

    def sample(self) -> tuple[Any, ...]:
        """Return the arguments, the same in every run."""
        made = self.arguments(np.random.default_rng(0))
        return tuple(_in_float32(argument) for argument in made) if self.float32 else made

    @property
    def differentiated(self) -> int | tuple[int, ...]:
        """Return `argnums` as a user would write it: one number for one argument."""
        return self.argnums if len(self.argnums) > 1 else self.argnums[0]

    def bind(self, library: Library) -> Callable[..., Any]:
        """Return the function of the arguments alone."""
        function = self.function

        def bound(*arguments: Any) -> Any:
            return function(library, *arguments)

        bound.__name__ = bound.__qualname__ = function.__name__
        return bound


def in_float32(workload: Workload) -> Workload:
    """Return the same work on single-precision arguments."""
    return replace(workload, name=f"{workload.name}-f32", float32=True)


def _in_float32(argument: Any) -> Any:
    floating = isinstance(argument, np.ndarray) and argument.dtype == np.float64
    return argument.astype(np.float32) if floating else argument


@dataclass(frozen=True)
class Prepared:
    """A workload made ready in one system: calling `function(*arguments)` is what is timed.

    `numbers` turns the result into NumPy: the value (None where a system gives none) and a list of gradients
    (empty for a system that only runs forward).
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    numbers: Callable[[Any], tuple[Any, list[Any]]]


def value_and_gradients(result: Any) -> tuple[Any, list[Any]]:
    """Read the result of a `value_and_grad` function over one argument or a tuple of them."""
    value, gradients = result
    return value, gradients_alone(gradients)[1]


def gradients_alone(result: Any) -> tuple[Any, list[Any]]:
    """Read the result of a `grad` function over one argument or a tuple of them."""
    return None, [np.asarray(gradient) for gradient in (result if isinstance(result, tuple) else (result,))]
