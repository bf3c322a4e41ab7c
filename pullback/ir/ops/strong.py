"""`strong_mul`: the product in which a zero on the left is final. Differentiation uses it where a masked cotangent
meets a partial that may be infinite or NaN, and where a partial is itself a mask."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op
from pullback.ir.opdef import Custom, OpDef, Scalar
from pullback.ir.ops.common import INEXACT, elementwise

MaybeExprs = Sequence[Expr | None]


def _evaluate(x: Any, y: Any) -> Any:
    return np.where(x == 0, np.zeros_like(x), x * y)


def _vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (x, y), (ct,) = args, cts
    return (None, None) if ct is None else (f.strong_mul(ct, y), f.strong_mul(x, ct))


def _jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    """Bilinear, as the product is: at x = 0 the derivative in x is y, so a zero by value hides no second derivative."""
    (x, y), (tan_x, tan_y) = args, tans
    in_x = None if tan_x is None else f.strong_mul(tan_x, y)
    in_y = None if tan_y is None else f.strong_mul(x, tan_y)
    if in_x is None or in_y is None:
        return (in_x or in_y,)
    return (in_x + in_y,)


def _emit(s: Any, op: Op, x: Any, y: Any) -> Any:
    zero = s.constant(x, 0)
    return s.select(s.compare("equal", x, zero), zero, s.binary("mul", x, y))


STRONG_MUL: OpDef = elementwise(
    "strong_mul",
    2,
    INEXACT,
    _evaluate,
    Custom(_vjp, _jvp),
    "x * y, and 0 wherever x is 0, whatever y is (infinite, NaN). Differentiates as the product.",
    numpy=(),
    lower=Scalar(_emit),
)
