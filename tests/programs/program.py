"""What one row of the program tables says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
# What a program returns: a NumPy float when it runs plainly, a traced value under pullback.
Scalar = Any
Maker = Callable[[np.random.Generator], tuple[Any, ...]]


@dataclass(frozen=True)
class Program:
    """A scalar function as a scientist would write it, and arguments to try it on.

    Attributes
    ----------
    function : plain NumPy, returns one number
    arguments : makes the arguments, small and away from kinks, from a random generator
    argnums : the arguments to differentiate in; the rest are data
    smooth : twice differentiable around the arguments, so that second differences mean something
    analytic : written in operations that keep a complex dtype, so that a complex step applies
    """

    function: Callable[..., Any]
    arguments: Maker
    argnums: tuple[int, ...] = (0,)
    smooth: bool = True
    analytic: bool = False

    @property
    def name(self) -> str:
        return str(self.function.__name__)

    def sample(self, seed: int = 0) -> tuple[Any, ...]:
        return self.arguments(np.random.default_rng(seed))
