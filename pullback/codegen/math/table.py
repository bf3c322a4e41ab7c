"""The table of math functions: what each is called, how exact it is, and what emits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.lazy import LazyModule
from pullback.record import record

Emitter = Callable[..., V]


@record(frozen=True)
class MathFunction:
    """A math function.

    Attributes
    ----------
    name : NumPy's or SciPy's
    arity : number of arguments
    place : module of this folder, and function in it, that emits it
    ulp : bound of the error in units in the last place, for float64 and float32, checked by tests against mpmath; of
        the result, but of the terms where those may cancel: lgamma, digamma and polygamma below zero, logaddexp,
        kl_div; of 0.8 / sqrt(|x|) for jv from 8 on and yv. Of functions with an order `n` for the order 0
    numpy : the function whose special values it has, as `module.name`
    """

    name: str
    arity: int
    place: str
    ulp: tuple[float, float]
    numpy: str

    @property
    def emit(self) -> Emitter:
        """`emit(b, *args)` places it inline; any width, float32 and float64."""
        module, _, function = self.place.partition(".")
        found: Emitter = getattr(_MODULES[module], function)
        return found


_NAMES = (
    "arc",
    "bessel",
    "bessel_modified",
    "entropy",
    "erf",
    "exp",
    "exprel",
    "gamma",
    "gamma_function",
    "hyperbolic",
    "incomplete",
    "inverse_erf",
    "log",
    "logistic",
    "logsum",
    "modulo",
    "normal",
    "pow",
    "roots",
    "trig",
)
_MODULES = {name: LazyModule(f"pullback.codegen.math.{name}") for name in _NAMES}
"""Imported when first used: few programs use more than two of them."""

FUNCTIONS = (
    MathFunction("exp", 1, "exp.exp", (1.0, 1.0), "numpy.exp"),
    MathFunction("exp2", 1, "exp.exp2", (1.0, 1.0), "numpy.exp2"),
    MathFunction("expm1", 1, "exp.expm1", (1.0, 1.0), "numpy.expm1"),
    MathFunction("log", 1, "log.log", (1.0, 1.0), "numpy.log"),
    MathFunction("log1p", 1, "log.log1p", (1.0, 1.0), "numpy.log1p"),
    MathFunction("tanh", 1, "hyperbolic.tanh", (1.0, 1.0), "numpy.tanh"),
    MathFunction("sin", 1, "trig.sin", (1.0, 1.0), "numpy.sin"),
    MathFunction("cos", 1, "trig.cos", (1.0, 1.0), "numpy.cos"),
    MathFunction("tan", 1, "trig.tan", (1.0, 1.0), "numpy.tan"),
    MathFunction("log2", 1, "log.log2", (1.0, 1.0), "numpy.log2"),
    MathFunction("log10", 1, "log.log10", (1.0, 1.0), "numpy.log10"),
    MathFunction("pow", 2, "pow.pow", (1.0, 1.0), "numpy.power"),
    MathFunction("cbrt", 1, "roots.cbrt", (1.0, 1.0), "numpy.cbrt"),
    MathFunction("hypot", 2, "roots.hypot", (1.0, 1.0), "numpy.hypot"),
    MathFunction("sinh", 1, "hyperbolic.sinh", (1.0, 1.0), "numpy.sinh"),
    MathFunction("cosh", 1, "hyperbolic.cosh", (1.0, 1.0), "numpy.cosh"),
    MathFunction("arcsinh", 1, "hyperbolic.arcsinh", (1.1, 1.1), "numpy.arcsinh"),
    MathFunction("arccosh", 1, "hyperbolic.arccosh", (1.1, 1.1), "numpy.arccosh"),
    MathFunction("arctanh", 1, "hyperbolic.arctanh", (1.1, 1.1), "numpy.arctanh"),
    MathFunction("arcsin", 1, "arc.arcsin", (1.0, 1.0), "numpy.arcsin"),
    MathFunction("arccos", 1, "arc.arccos", (1.0, 1.0), "numpy.arccos"),
    MathFunction("arctan", 1, "arc.arctan", (1.0, 1.0), "numpy.arctan"),
    MathFunction("arctan2", 2, "arc.arctan2", (1.0, 1.0), "numpy.arctan2"),
    MathFunction("fmod", 2, "modulo.fmod", (0.0, 0.0), "numpy.fmod"),
    MathFunction("mod", 2, "modulo.remainder", (0.5, 0.5), "numpy.remainder"),
    MathFunction("floor_divide", 2, "modulo.floor_divide", (1.0, 1.0), "numpy.floor_divide"),
    MathFunction("nextafter", 2, "modulo.nextafter", (0.0, 0.0), "numpy.nextafter"),
    MathFunction("erf", 1, "erf.erf", (1.0, 1.0), "scipy.special.erf"),
    MathFunction("erfc", 1, "erf.erfc", (1.0, 1.0), "scipy.special.erfc"),
    MathFunction("lgamma", 1, "gamma.lgamma", (1.0, 1.0), "scipy.special.gammaln"),
    MathFunction("digamma", 1, "gamma.digamma", (1.0, 1.0), "scipy.special.psi"),
    MathFunction("polygamma", 1, "gamma.polygamma", (1.0, 1.0), "scipy.special.polygamma"),
    MathFunction("logaddexp", 2, "logsum.logaddexp", (2.0, 2.0), "numpy.logaddexp"),
    MathFunction("logaddexp2", 2, "logsum.logaddexp2", (2.0, 2.0), "numpy.logaddexp2"),
    MathFunction("expit", 1, "logistic.expit", (1.0, 1.0), "scipy.special.expit"),
    MathFunction("log_expit", 1, "logistic.log_expit", (1.5, 1.5), "scipy.special.log_expit"),
    MathFunction("xlogy", 2, "entropy.xlogy", (1.5, 1.5), "scipy.special.xlogy"),
    MathFunction("xlog1py", 2, "entropy.xlog1py", (1.5, 1.5), "scipy.special.xlog1py"),
    MathFunction("entr", 1, "entropy.entr", (1.5, 1.5), "scipy.special.entr"),
    MathFunction("rel_entr", 2, "entropy.rel_entr", (2.0, 2.0), "scipy.special.rel_entr"),
    MathFunction("kl_div", 2, "entropy.kl_div", (2.0, 2.0), "scipy.special.kl_div"),
    MathFunction("erfcx", 1, "normal.erfcx", (1.5, 1.0), "scipy.special.erfcx"),
    MathFunction("ndtr", 1, "normal.ndtr", (1.0, 1.0), "scipy.special.ndtr"),
    MathFunction("log_ndtr", 1, "normal.log_ndtr", (1.5, 1.0), "scipy.special.log_ndtr"),
    MathFunction("erfinv", 1, "inverse_erf.erfinv", (1.0, 1.0), "scipy.special.erfinv"),
    MathFunction("erfcinv", 1, "inverse_erf.erfcinv", (1.0, 1.0), "scipy.special.erfcinv"),
    MathFunction("ndtri", 1, "inverse_erf.ndtri", (1.0, 1.0), "scipy.special.ndtri"),
    MathFunction("gamma", 1, "gamma_function.gamma", (2.0, 1.0), "scipy.special.gamma"),
    MathFunction("gammainc", 2, "incomplete.gammainc", (4.0, 1.0), "scipy.special.gammainc"),
    MathFunction("gammaincc", 2, "incomplete.gammaincc", (8.0, 1.0), "scipy.special.gammaincc"),
    MathFunction("exprel", 1, "exprel.exprel", (2.0, 1.0), "scipy.special.exprel"),
    MathFunction("jv", 1, "bessel.jv", (4.0, 1.5), "scipy.special.jv"),
    MathFunction("yv", 1, "bessel.yv", (4.0, 1.5), "scipy.special.yv"),
    MathFunction("iv", 1, "bessel_modified.iv", (1.5, 1.0), "scipy.special.iv"),
    MathFunction("ive", 1, "bessel_modified.ive", (1.0, 1.0), "scipy.special.ive"),
    MathFunction("kv", 1, "bessel_modified.kv", (2.5, 1.0), "scipy.special.kv"),
    MathFunction("kve", 1, "bessel_modified.kve", (2.5, 1.0), "scipy.special.kve"),
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
