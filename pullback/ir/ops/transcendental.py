"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions, special functions."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.ir import special
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op
from pullback.ir.opdef import PLAIN, Algebra, Array, OpDef, Partial, Partials, RunRegion, Scalar
from pullback.ir.ops.common import (
    FLOAT,
    INEXACT,
    batch_elementwise,
    elementwise,
    elementwise_infer,
    regular,
    singular,
)

LN2 = math.log(2.0)
LN10 = math.log(10.0)
TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


def _smooth(name: str, function: Callable[..., Any], partial: Partial, doc: str, kinds: str = INEXACT) -> OpDef:
    return elementwise(name, 1, kinds, function, regular(partial), doc)


def _corner(name: str, function: Callable[..., Any], partial: Partial, doc: str, kinds: str = INEXACT) -> OpDef:
    """A function whose derivative is infinite or undefined somewhere at a finite point."""
    return elementwise(name, 1, kinds, function, singular(partial), doc)


EXP = _smooth("exp", np.exp, lambda f, op, out, x: out, "e**x.")
EXP2 = _smooth("exp2", np.exp2, lambda f, op, out, x: out * LN2, "2**x.")
EXPM1 = _smooth("expm1", np.expm1, lambda f, op, out, x: f.exp(x), "e**x - 1, exact near 0.")
LOG = _corner(
    "log", np.log, lambda f, op, out, x: 1.0 / x, "Natural logarithm; -inf at 0, where the derivative is inf."
)
LOG2 = _corner("log2", np.log2, lambda f, op, out, x: (1.0 / LN2) / x, "Logarithm to base 2.")
LOG10 = _corner("log10", np.log10, lambda f, op, out, x: (1.0 / LN10) / x, "Logarithm to base 10.")
LOG1P = _corner("log1p", np.log1p, lambda f, op, out, x: 1.0 / (1.0 + x), "log(1 + x), exact near 0.")
SQRT = _corner("sqrt", np.sqrt, lambda f, op, out, x: 0.5 / out, "Square root. Derivative inf at 0.")
CBRT = _corner(
    "cbrt",
    np.cbrt,
    lambda f, op, out, x: (1.0 / 3.0) / (out * out),
    "Cube root, also of negative numbers. Derivative inf at 0.",
    FLOAT,
)

SIN = _smooth("sin", np.sin, lambda f, op, out, x: f.cos(x), "Sine of x radians.")
COS = _smooth("cos", np.cos, lambda f, op, out, x: -f.sin(x), "Cosine of x radians.")
TAN = _smooth("tan", np.tan, lambda f, op, out, x: 1.0 + out * out, "Tangent of x radians.")
ARCSIN = _corner(
    "arcsin",
    np.arcsin,
    lambda f, op, out, x: 1.0 / f.sqrt((1.0 - x) * (1.0 + x)),
    "Inverse sine. Derivative inf at -1 and 1.",
)
ARCCOS = _corner(
    "arccos",
    np.arccos,
    lambda f, op, out, x: -1.0 / f.sqrt((1.0 - x) * (1.0 + x)),
    "Inverse cosine. Derivative -inf at -1 and 1.",
)
ARCTAN = _smooth("arctan", np.arctan, lambda f, op, out, x: 1.0 / (1.0 + x * x), "Inverse tangent.")
SINH = _smooth("sinh", np.sinh, lambda f, op, out, x: f.cosh(x), "Hyperbolic sine.")
COSH = _smooth("cosh", np.cosh, lambda f, op, out, x: f.sinh(x), "Hyperbolic cosine.")
TANH = _smooth("tanh", np.tanh, lambda f, op, out, x: (1.0 - out) * (1.0 + out), "Hyperbolic tangent.")


def _arcsinh_partial(f: Emitter, op: Op, out: Expr, x: Expr) -> Expr:
    if x.type.is_complex:
        return 1.0 / f.sqrt(1.0 + x * x)
    return 1.0 / f.hypot(x, f.full_like(x, 1.0))  # hypot: x*x would overflow from 1e154 on


ARCSINH = _smooth("arcsinh", np.arcsinh, _arcsinh_partial, "Inverse hyperbolic sine.")
ARCCOSH = _corner(
    "arccosh",
    np.arccosh,
    lambda f, op, out, x: 1.0 / (f.sqrt(x - 1.0) * f.sqrt(x + 1.0)),
    "Inverse hyperbolic cosine. Derivative inf at 1.",
)
ARCTANH = _corner(
    "arctanh",
    np.arctanh,
    lambda f, op, out, x: 1.0 / ((1.0 - x) * (1.0 + x)),
    "Inverse hyperbolic tangent. Derivative inf at -1 and 1.",
)

ERF = _smooth("erf", special.erf, lambda f, op, out, x: TWO_OVER_SQRT_PI * f.exp(-(x * x)), "Error function.", FLOAT)
ERFC = _smooth(
    "erfc",
    special.erfc,
    lambda f, op, out, x: -TWO_OVER_SQRT_PI * f.exp(-(x * x)),
    "1 - erf(x), exact for large x.",
    FLOAT,
)
LGAMMA = elementwise(
    "lgamma",
    1,
    FLOAT,
    special.lgamma,
    singular(lambda f, op, out, x: f.digamma(x)),
    "log |gamma(x)|; inf at 0, -1, -2, ...",
    numpy=("gammaln",),
)
DIGAMMA = elementwise(
    "digamma",
    1,
    FLOAT,
    special.digamma,
    singular(lambda f, op, out, x: f.polygamma(x, n=1)),
    "The derivative of lgamma; poles at 0, -1, -2, ...",
    numpy=("digamma", "psi"),
)


def _polygamma_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    return (np.asarray(special.polygamma(op.attrs["n"], args[0]), dtype=op.results[0].type.dtype),)


POLYGAMMA = OpDef(
    name="polygamma",
    arity=1,
    attrs={"n": "int"},
    infer=elementwise_infer("polygamma", 1, FLOAT),
    evaluate=_polygamma_evaluate,
    numpy=(),
    derivative=Partials((lambda f, op, out, x: f.polygamma(x, n=op.attrs["n"] + 1),), lambda op: (True,)),
    batch=batch_elementwise,
    lower=Scalar(lambda s, op, x: s.math("polygamma", x, n=op.attrs["n"])),
    algebra=PLAIN,
    doc="The n-th derivative of digamma, n >= 1.",
)


def _share(f: Emitter, out: Expr, x: Expr, y: Expr, power: Callable[[Expr], Expr]) -> Expr:
    """The weight of x in logaddexp: exp(x - out), with the infinities told apart."""
    even = f.select(x.eq(y), f.full_like(x, 0.5), f.astype(x.eq(np.inf), x.dtype))
    weight = f.select(out.eq(np.inf), even, power(x - out))
    return f.select(out.eq(-np.inf), f.zeros_like(x), weight)


LOGADDEXP = elementwise(
    "logaddexp",
    2,
    FLOAT,
    np.logaddexp,
    regular(
        lambda f, op, out, x, y: _share(f, out, x, y, f.exp),
        lambda f, op, out, x, y: _share(f, out, y, x, f.exp),
    ),
    "log(exp(x) + exp(y)) without overflow. An operand of -inf has derivative 0, also where both are -inf.",
    algebra=Algebra(commutative=True),
)
LOGADDEXP2 = elementwise(
    "logaddexp2",
    2,
    FLOAT,
    np.logaddexp2,
    regular(
        lambda f, op, out, x, y: _share(f, out, x, y, f.exp2),
        lambda f, op, out, x, y: _share(f, out, y, x, f.exp2),
    ),
    "log2(2**x + 2**y) without overflow; corners as logaddexp.",
    algebra=Algebra(commutative=True),
)

TRANSCENDENTAL = (
    EXP,
    EXP2,
    EXPM1,
    LOG,
    LOG2,
    LOG10,
    LOG1P,
    SQRT,
    CBRT,
    SIN,
    COS,
    TAN,
    ARCSIN,
    ARCCOS,
    ARCTAN,
    SINH,
    COSH,
    TANH,
    ARCSINH,
    ARCCOSH,
    ARCTANH,
    ERF,
    ERFC,
    LGAMMA,
    DIGAMMA,
    POLYGAMMA,
    LOGADDEXP,
    LOGADDEXP2,
)
