"""`strong_mul`: the product in which a zero on the left is final. Differentiation uses it where a masked cotangent
meets a partial that may be infinite or NaN, and where a partial is itself a mask."""

from typing import Any

import numpy as np

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op
from pullback.ir.opdef import OpDef, Partials, Scalar
from pullback.ir.ops.common import INEXACT, elementwise


def _evaluate(x: Any, y: Any) -> Any:
    return np.where(x == 0, np.zeros_like(x), x * y)


def _in_factor(f: Emitter, op: Op, out: Expr, x: Expr, y: Expr) -> Expr:
    return f.select(x.eq(0.0) & ~f.isfinite(y), f.zeros_like(y), y)


def _emit(s: Any, op: Op, x: Any, y: Any) -> Any:
    zero = s.constant(x, 0)
    return s.select(s.compare("equal", x, zero), zero, s.binary("mul", x, y))


STRONG_MUL: OpDef = elementwise(
    "strong_mul",
    2,
    INEXACT,
    _evaluate,
    Partials((_in_factor, lambda f, op, out, x, y: x), lambda op: (False, False), masks=(0, 1)),
    "x * y, and 0 wherever x is 0, whatever y is (infinite, NaN). Differentiates as the product: at x = 0 the "
    "derivative in x is y, so a zero by value hides no second derivative; it is 0 where y is infinite or NaN.",
    numpy=(),
    lower=Scalar(_emit),
)
