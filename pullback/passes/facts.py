"""What is known about the numbers of values while a region is being built: constants, finite values, wild ones.

Read lazily: only a masked cotangent that meets a partial asks, so functions without masks never pay.
"""

import numpy as np

from pullback.ir.builder import Builder
from pullback.ir.graph import Op, Value
from pullback.ir.opdef import Array, Partials, Scalar

# How a value may come to be infinite or NaN. The order matters: an op is as wild as its wildest operand.
FINITE = 0  # never
TAME = 1  # where an input is, or by overflow of products and sums
WILD = 2  # at finite inputs: behind log, division, exp, ..., or a constant that holds one

# finite partials, but values that overflow early
_EARLY_OVERFLOW = frozenset({"exp", "exp2", "expm1", "sinh", "cosh", "tan"})
# results are elements of operands (or zeros, or their negatives): as finite as those
_MOVES = frozenset(
    {
        "broadcast", "reshape", "transpose", "slice", "reverse", "pad", "concatenate", "update", "select", "gather", "scatter",
        "neg", "abs", "sign", "conj", "real", "imag", "complex", "copysign", "maximum", "minimum", "fmax", "fmin", "clip",
        "max", "min", "sort", "cummax", "cummin", "stop_gradient", "sin", "cos", "tanh", "arctan", "erf", "erfc",
    }
)  # fmt: skip


class Facts:
    """Facts about the values of the region that `builder` builds. `params` is how wild its parameters are taken to be."""

    def __init__(self, builder: Builder, params: int = TAME) -> None:
        self._builder = builder
        self._params = params
        self._seen = 0
        self._wildness: dict[Value, int] = {}
        self._numbers: dict[Value, Array] = {}

    def wildness(self, value: Value) -> int:
        self._advance()
        return self._wildness.get(value, self._params)

    def number(self, value: Value) -> Array | None:
        """The number (as a 0-d array) that every element of `value` is, where that is known."""
        self._advance()
        return self._numbers.get(value)

    def is_number(self, value: Value, number: float) -> bool:
        known = self.number(value)
        return known is not None and bool(known == number)

    def _advance(self) -> None:
        ops = self._builder.ops
        while self._seen < len(ops):
            op = ops[self._seen]
            self._seen += 1
            self._learn_number(op)
            self._learn_wildness(op)

    def _learn_number(self, op: Op) -> None:
        if op.name == "constant":
            array = op.attrs["value"].array
            if array.size == 1:
                self._numbers[op.results[0]] = array.reshape(())
            return
        known = [self._numbers[v] for v in op.operands if v in self._numbers]
        if not known or len(known) < len(op.operands):
            return
        if op.name in ("broadcast", "reshape"):
            self._numbers[op.results[0]] = known[0]
        elif isinstance(op.opdef.lower, Scalar):
            with np.errstate(all="ignore"):
                (result,) = op.opdef.evaluate(op, known, _no_regions)
            self._numbers[op.results[0]] = np.asarray(result)

    def _learn_wildness(self, op: Op) -> None:
        level = self._level(op)
        for result in op.results:
            self._wildness[result] = level if result.type.is_inexact else FINITE

    def _level(self, op: Op) -> int:
        if op.results and op.results[0] in self._numbers:
            return FINITE if np.isfinite(self._numbers[op.results[0]]) else WILD
        if op.name == "constant":
            return FINITE if np.isfinite(op.attrs["value"].array).all() else WILD
        sources = [self._wildness.get(v, self._params) for v in op.operands if v.type.is_inexact]
        worst = max(sources, default=FINITE)
        if op.name in _MOVES or op.name == "iota" or (op.name == "cast" and not sources):
            return worst
        if op.name == "div" and self._safe_divisor(op.operands[1]):
            return max(worst, TAME)
        return WILD if op.name in _EARLY_OVERFLOW or _has_singular_partial(op) or op.regions else max(worst, TAME)

    def _safe_divisor(self, value: Value) -> bool:
        number = self._numbers.get(value)
        return number is not None and bool(np.isfinite(number)) and bool(number != 0)


def _has_singular_partial(op: Op) -> bool:
    match op.opdef.derivative:
        case Partials() as rule:
            return any(rule.is_singular(op, k) for k in range(len(op.operands)))
        case _:
            return bool(getattr(op.opdef.derivative, "singular", False))


def _no_regions(*_: object) -> tuple[Array, ...]:
    raise AssertionError("a scalar op has no regions")

