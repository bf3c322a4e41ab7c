"""Python functions of `numpy.polynomial`, run on traced coefficients.

They are ordinary Python that calls `np.array` and `np.asarray`. Inside a trace each is run with a `np` whose creation
functions take traced values; everything else of it is NumPy's own code.
"""

import sys
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from pullback.tracer.functions.common import array
from pullback.tracer.functions.creation import CREATORS
from pullback.tracer.patching import Finder, Row

FAMILIES = ("polynomial", "chebyshev", "legendre", "laguerre", "hermite", "hermite_e")
UTILITIES = "numpy.polynomial.polyutils"


class _TracingNumPy:
    """The numpy module with the creation functions of the tracer."""

    def __getattr__(self, name: str) -> Any:
        return CREATORS.get(name) or getattr(np, name)


def _namespace(module: ModuleType) -> dict[str, Any]:
    """The module's globals with `np` and its own functions replaced."""
    space = dict(vars(module))
    space["np"] = _TracingNumPy()
    for name, value in vars(module).items():
        plain = getattr(value, "__wrapped__", value)
        if isinstance(plain, FunctionType) and plain.__module__ == module.__name__:
            space[name] = _cloned(space, plain)
    if "pu" in space:
        space["pu"] = _Utilities(_namespace(sys.modules[UTILITIES]))
    return space


class _Utilities:
    """Attribute access to a cloned namespace."""

    def __init__(self, space: dict[str, Any]) -> None:
        self._space = space

    def __getattr__(self, name: str) -> Any:
        return self._space[name]


def _cloned(space: dict[str, Any], function: FunctionType) -> FunctionType:
    clone = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    clone.__kwdefaults__ = function.__kwdefaults__
    return clone


# roots go through eigenvalues of a companion matrix, Gauss rules through those of a fixed one
_LEFT_OUT = ("roots", "gauss", "companion", "weight")


def _family(module: ModuleType) -> list[Row]:
    """The public functions of a family, each with its clone."""
    space = _namespace(module)
    return [
        (module, name, space[name])
        for name in module.__all__
        if isinstance(space[name], FunctionType) and not name.endswith(_LEFT_OUT)
    ]


def _evaluation(module: ModuleType) -> list[Row]:
    """Calling a polynomial object."""
    utilities = sys.modules[UTILITIES]

    def call(self: Any, arg: Any) -> Any:
        offset, scale = utilities.mapparms(self.domain, self.window)
        return self._val(offset + scale * array(arg), self.coef)

    return [(module.ABCPolyBase, "__call__", call)]


FINDERS: tuple[Finder, ...] = (
    *[(f"numpy.polynomial.{family}", _family) for family in FAMILIES],
    ("numpy.polynomial._polybase", _evaluation),
)
