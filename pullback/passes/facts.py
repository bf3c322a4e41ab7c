"""What is known about the numbers of values while a region is being built: constants, finite values, wild ones.

Read lazily: only a masked cotangent that meets a partial asks, so functions without masks never pay.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from pullback.ir.graph import Op, Value
from pullback.ir.opdef import Array, Custom, Partials, Scalar

# How a value may come to be infinite or NaN. The order matters: an op is as wild as its wildest operand.
FINITE = 0  # never
TAME = 1  # where an input is, or by overflow of products and sums
WILD = 2  # at finite inputs: behind log, division, exp, ..., or a constant that holds one

NEAR = 4  # ops that are looked through for a number: a sum of two broadcast constants, and one more

# finite partials, but values that overflow early
_EARLY_OVERFLOW = frozenset({"exp", "exp2", "expm1", "sinh", "cosh", "tan"})
# infinite at a finite point, but slower than any power: what is flat at infinity need not be flat behind them
LOGARITHMIC = frozenset(
    {"log", "log2", "log10", "log1p", "arctanh", "logit", "gammaln", "erfinv", "erfcinv", "ndtri", "logaddexp"}
)
# results are elements of operands (or zeros, or their negatives): as finite as those
_MOVES = frozenset(
    {
        "broadcast", "reshape", "transpose", "slice", "reverse", "pad", "concatenate", "update", "select",
        "gather", "scatter", "neg", "abs", "sign", "conj", "real", "imag", "complex", "copysign", "maximum",
        "minimum", "fmax", "fmin", "clip", "clamp", "max", "min", "nanmax", "nanmin", "sort", "cummax",
        "cummin", "stop_gradient", "sin", "cos", "tanh", "arctan", "erf", "erfc", "expit", "ndtr",
    }
)  # fmt: skip
# what a rule makes of a cotangent besides multiplying it: as slow as what went in
_CARRY_SLOW = frozenset(
    {
        "add", "sub", "neg", "mul", "strong_mul", "broadcast", "reshape", "transpose", "sum", "slice", "reverse",
        "pad", "concatenate", "update", "select", "scatter_add", "cast", "real", "imag", "complex",
    }
)  # fmt: skip


class Facts:
    """Facts about the results of `ops`, a list that may still grow. `params` is how wild other values may be, if not
    just tame.
    """

    def __init__(self, ops: Sequence[Op], params: Mapping[Value, int] = MappingProxyType({})) -> None:
        self._ops = ops
        self._seen = 0
        self._wildness: dict[Value, int] = dict(params)
        self._lowest: dict[Value, float] = {}
        self._poles: set[Value] = set()
        self._logarithmic: set[Value] = set()
        self._slow: set[Value] = set()

    def has_pole(self, value: Value) -> bool:
        """Whether it may be infinite at finite inputs by a division, or because a constant is."""
        self._advance()
        return value in self._poles

    def is_logarithmic(self, value: Value) -> bool:
        """Whether a logarithm, or something that grows as slowly, went into it."""
        self._advance()
        return value in self._logarithmic

    def is_slow(self, value: Value) -> bool:
        """Whether it is a cotangent that may be infinite, but only as a logarithm is (see `set_slow`)."""
        if not self._slow:
            return False
        self._advance()
        return value in self._slow

    def set_slow(self, value: Value, slow: bool) -> None:
        """Say of a cotangent whether it came through x log(x) at 0, and nothing steep since."""
        self._advance()
        (self._slow.add if slow else self._slow.discard)(value)

    def wildness(self, value: Value) -> int:
        self._advance()
        return self._wildness.get(value, TAME)

    def _advance(self) -> None:
        ops = self._ops
        while self._seen < len(ops):
            op = ops[self._seen]
            self._seen += 1
            self._learn_lowest(op)
            level = self._level(op)
            for result in op.results:
                self._wildness[result] = level if result.type.is_inexact else FINITE
            if level == WILD:
                self._learn_infinities(op)
            if self._slow and op.name in _CARRY_SLOW and not self._slow.isdisjoint(op.operands):
                self._slow.update(op.results)

    def _learn_infinities(self, op: Op) -> None:
        if op.name in LOGARITHMIC or not self._logarithmic.isdisjoint(op.operands):
            self._logarithmic.update(op.results)
        if self._makes_pole(op) or not self._poles.isdisjoint(op.operands):
            self._poles.update(op.results)

    def _makes_pole(self, op: Op) -> bool:
        match op.name:
            case "constant":
                return True
            case "div":
                return not self._is_away_from_zero(op.operands[1])
            case "integer_pow":
                return bool(op.attrs["n"] < 0)
            case _:
                return False

    def _learn_lowest(self, op: Op) -> None:
        """A number that no element of the result is below (NaN apart), where there is one worth knowing."""
        if len(op.results) != 1 or not op.results[0].type.is_float:
            return
        low = self._lowest_of(op)
        if low is not None:
            self._lowest[op.results[0]] = low

    def _lowest_of(self, op: Op) -> float | None:
        number = known_number(op.results[0])
        if number is not None and number.dtype.kind == "f":
            return float(number)
        lows = [self._lowest.get(v) for v in op.operands]
        match op.name:
            case "exp" | "exp2" | "abs" | "sqrt" | "cosh" | "hypot":
                return 0.0
            case "mul" if op.operands[0] is op.operands[1]:
                return 0.0
            case "integer_pow" if op.attrs["n"] % 2 == 0:
                return 0.0
            case "add" | "maximum":
                known = [low for low in lows if low is not None]
                if op.name == "maximum":
                    return max(known, default=None)
                return sum(known) if len(known) == 2 else None
            case "mul" | "div" | "sum" | "max" | "cumsum":
                return 0.0 if all(low is not None and low >= 0 for low in lows) else None
            case "broadcast" | "reshape" | "transpose" | "slice" | "reverse" | "gather":
                return lows[0]
            case _:
                return None

    def _level(self, op: Op) -> int:
        number = known_number(op.results[0]) if op.results else None
        if number is not None:
            return FINITE if np.isfinite(number) else WILD
        if op.name == "constant":
            return FINITE if np.isfinite(op.attrs["value"].array).all() else WILD
        magnitudes = op.operands[:1] if op.name == "copysign" else op.operands
        sources = [self._wildness.get(v, TAME) for v in magnitudes if v.type.is_inexact]
        worst = max(sources, default=FINITE)
        if op.name in _MOVES or op.name == "iota" or (op.name == "cast" and not sources):
            return worst
        if op.name == "div" and self._is_away_from_zero(op.operands[1]):
            return max(sources[0], TAME)  # the divisor may be infinite, the quotient is not
        if op.name in ("log", "log2", "log10") and self._lowest.get(op.operands[0], 0.0) > 0:
            return max(worst, TAME)
        if op.name == "sqrt" and self._lowest.get(op.operands[0], -1.0) >= 0:
            return max(worst, TAME)
        wild = op.name in _EARLY_OVERFLOW or _has_singular_partial(op) or bool(op.regions)
        return WILD if wild else max(worst, TAME)

    def _is_away_from_zero(self, value: Value) -> bool:
        number = known_number(value)
        return bool(number != 0) if number is not None else self._lowest.get(value, 0.0) > 0


def known_number(value: Value, depth: int = NEAR) -> Array | None:
    """The number (as a 0-d array) that every element of `value` is, where a few ops show that."""
    op = value.op
    if op is None or depth == 0:
        return None
    if op.name == "constant":
        array = op.attrs["value"].array
        return array.reshape(()) if array.size == 1 else None
    if op.name in ("broadcast", "reshape"):
        return known_number(op.operands[0], depth - 1)
    if not isinstance(op.opdef.lower, Scalar):
        return None
    known: list[Array] = []
    for operand in op.operands:
        number = known_number(operand, depth - 1)
        if number is None:
            return None
        known.append(number)
    with np.errstate(all="ignore"):
        (result,) = op.opdef.evaluate(op, known, _no_regions)
    return np.asarray(result)


def _has_singular_partial(op: Op) -> bool:
    match op.opdef.derivative:
        case Partials() as rule:
            return any(rule.is_singular(op, k) for k in range(len(op.operands)))
        case Custom() as rule:
            return rule.singular
        case _:
            return False


def _no_regions(*_: object) -> tuple[Array, ...]:
    raise AssertionError("a scalar op has no regions")
