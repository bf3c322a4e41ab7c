"""The table of math functions: what each is called, how exact it is, and what emits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import erf, exp, log, trig

Emitter = Callable[..., V]


@dataclass(frozen=True)
class MathFunction:
    """A math function.

    Attributes
    ----------
    name : NumPy's or SciPy's
    arity : number of arguments
    emit : `emit(b, *args)` places it inline; any width, float32 and float64
    ulp : bound of the error in units in the last place, for float64 and float32, checked by tests against mpmath
    numpy : the function whose special values it has, as `module.name`
    """

    name: str
    arity: int
    emit: Emitter
    ulp: tuple[float, float]
    numpy: str


FUNCTIONS = (
    MathFunction("exp", 1, exp.exp, (1.0, 1.0), "numpy.exp"),
    MathFunction("exp2", 1, exp.exp2, (1.0, 1.0), "numpy.exp2"),
    MathFunction("expm1", 1, exp.expm1, (1.0, 1.0), "numpy.expm1"),
    MathFunction("log", 1, log.log, (1.0, 1.0), "numpy.log"),
    MathFunction("log1p", 1, log.log1p, (1.0, 1.0), "numpy.log1p"),
    MathFunction("tanh", 1, exp.tanh, (1.0, 1.05), "numpy.tanh"),
    MathFunction("sin", 1, trig.sin, (1.0, 1.0), "numpy.sin"),
    MathFunction("cos", 1, trig.cos, (1.0, 1.0), "numpy.cos"),
    MathFunction("tan", 1, trig.tan, (1.0, 1.0), "numpy.tan"),
    MathFunction("erf", 1, erf.erf, (1.0, 1.0), "scipy.special.erf"),
)

MATH: Mapping[str, MathFunction] = MappingProxyType({function.name: function for function in FUNCTIONS})


def emit(b: FunctionBuilder, name: str, args: Sequence[V], **static: int) -> V:
    """Place the function `name` inline.

    Parameters
    ----------
    args : values of one type: `double` or `float` or a vector of them
    static : compile-time arguments, such as `n` of polygamma

    Raises
    ------
    KeyError : there is no such function
    """
    return MATH[name].emit(b, *args, **static)
