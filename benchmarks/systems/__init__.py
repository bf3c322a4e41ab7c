"""The systems compared, one module each, imported only when it is asked for and its package is there.

Each of those modules gets its package by `importlib.import_module`, which has no types: so a type check says the same
whether the package is installed or not.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..workload import Prepared, Workload


@dataclass(frozen=True)
class System:
    """A row of the table below.

    Attributes
    ----------
    module : of this folder; it imports its package at its top
    prepare : the module's function from a workload and NumPy arguments to a `Prepared`, or to None for no such version
    only_calls : worth timing on small calls only
    what : exactly what is timed
    """

    name: str
    module: str
    prepare: str
    what: str
    only_calls: bool = False

    def load(self) -> Callable[[Workload, tuple[Any, ...]], Prepared | None] | None:
        """Return its `prepare` function, or None where its package is not installed."""
        try:
            module = importlib.import_module(f"{__name__}.{self.module}")
        except ModuleNotFoundError:
            return None
        prepare: Callable[[Workload, tuple[Any, ...]], Prepared | None] = getattr(module, self.prepare)
        return prepare


SYSTEMS = (
    System("pullback", "with_pullback", "prepare", "value_and_grad of the NumPy function, NumPy arrays in and out"),
    System("numpy", "with_numpy", "prepare", "the function alone, forward, no gradient"),
    System(
        "jax",
        "with_jax",
        "prepare",
        "jit(value_and_grad), 64 bit on, JAX arrays in, waits until all results are ready (JAX arrays)",
    ),
    System(
        "jax+numpy",
        "with_jax",
        "prepare_with_numpy",
        "the same with NumPy arrays in and out, as a program around it in NumPy or SciPy needs it",
        only_calls=True,
    ),
    System("torch", "with_torch", "prepare", "eager mode and torch.autograd.grad, tensors in and out"),
    System("autograd", "with_autograd", "prepare", "autograd.value_and_grad, NumPy arrays in and out"),
    System("numba", "with_numba", "prepare", "value and gradient written by hand, njit; only where somebody wrote it"),
)
