"""Elementwise ops that are a few instructions: signs, rounding, extrema, bits, tests, integers and their remainders.

Each takes the builder, the dtype and the operands (float or double, scalar or vector).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from pullback.codegen.lane import Lane
from pullback.codegen.llvm import FunctionBuilder, V, const, element_of, with_element
from pullback.ir.types import DType

if TYPE_CHECKING:
    from pullback.codegen.scalars import Scalars

Rule = Callable[..., V]
T = TypeVar("T")

LONGEST_CHAIN = 32
"""Integer powers above this go to `pow`: the error of repeated squaring grows with the exponent."""

_BITS = {"double": "i64", "float": "i32", "half": "i16"}
_SMALLEST = {"double": 5e-324, "float": 1.401298464324817e-45, "half": 5.960464477539063e-08}


def _bits(b: FunctionBuilder, x: V) -> V:
    return b.bitcast(x, with_element(x.type, _BITS[element_of(x.type)]))


def _intrinsic(name: str) -> Rule:
    return lambda b, dtype, x: b.intrinsic(name, x)


def _nan(b: FunctionBuilder, x: V) -> V:
    return b.fcmp("uno", x, x)


# ------------------------------------------------------------------ floating point


def _sign(b: FunctionBuilder, dtype: DType, x: V) -> V:
    """-1, 0, 1 or NaN; the zero is positive."""
    one = b.intrinsic("copysign", const(x.type, 1.0), x)
    zero_or_nan = b.select(_nan(b, x), x, 0.0)
    return b.select(b.fcmp("one", x, 0.0), one, zero_or_nan)


def extremum(b: FunctionBuilder, predicate: str, x: V, y: V) -> V:
    """The larger (`ogt`) or smaller (`olt`) of two floats; NaN if either is; of 0.0 and -0.0 `y`."""
    chosen = b.select(b.fcmp(predicate, x, y), x, y)  # one instruction; `y` where either is NaN
    return b.select(_nan(b, x), x, chosen)


def _numeric_extremum(predicate: str) -> Rule:
    """As `extremum`, but NaN loses, and of 0.0 and -0.0 it is `x`."""

    def rule(b: FunctionBuilder, dtype: DType, x: V, y: V) -> V:
        chosen = b.select(b.fcmp(predicate, y, x), y, x)
        return b.select(_nan(b, x), y, chosen)

    return rule


def _float_clip(b: FunctionBuilder, dtype: DType, x: V, lo: V, hi: V) -> V:
    return extremum(b, "olt", extremum(b, "ogt", x, lo), hi)


def _nextafter(b: FunctionBuilder, dtype: DType, x: V, y: V) -> V:
    """One step in the ordered bit patterns; NaN if either is."""
    bits = _bits(b, x)
    away = b.xor(b.fcmp("olt", x, y), b.fcmp("olt", x, 0.0))
    moved = b.bitcast(b.select(away, b.add(bits, 1), b.sub(bits, 1)), x.type)
    tiny = b.intrinsic("copysign", const(x.type, _SMALLEST[element_of(x.type)]), y)
    result = b.select(b.fcmp("oeq", x, 0.0), tiny, moved)
    result = b.select(b.fcmp("oeq", x, y), y, result)
    return b.select(b.fcmp("uno", x, y), b.fadd(x, y), result)


FLOAT: Mapping[str, Rule] = {
    "neg": lambda b, dtype, x: b.fneg(x),
    "abs": _intrinsic("fabs"),
    "sign": _sign,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "rint": _intrinsic("rint"),
    "trunc": _intrinsic("trunc"),
    "sqrt": _intrinsic("sqrt"),
    "maximum": lambda b, dtype, x, y: extremum(b, "ogt", x, y),
    "minimum": lambda b, dtype, x, y: extremum(b, "olt", x, y),
    "fmax": _numeric_extremum("ogt"),
    "fmin": _numeric_extremum("olt"),
    "clip": _float_clip,
    "copysign": lambda b, dtype, x, y: b.intrinsic("copysign", x, y),
    "nextafter": _nextafter,
}

HALF_ITSELF = frozenset({"nextafter"})
"""Ops of float16 that must see its own bits."""

TESTS: Mapping[str, Callable[[FunctionBuilder, V], V]] = {
    "isnan": _nan,
    "isinf": lambda b, x: b.fcmp("oeq", b.intrinsic("fabs", x), float("inf")),
    "isfinite": lambda b, x: b.fcmp("olt", b.intrinsic("fabs", x), float("inf")),
    "signbit": lambda b, x: b.icmp("slt", _bits(b, x), 0),
}


# ------------------------------------------------------------------ integers


def integer_extremum(b: FunctionBuilder, dtype: DType, larger: bool, x: V, y: V) -> V:
    name = ("s" if dtype.kind == "i" else "u") + ("max" if larger else "min")
    return b.intrinsic(name, x, y)


def _integer_sign(b: FunctionBuilder, dtype: DType, x: V) -> V:
    positive = b.cast("zext", b.icmp("ne", x, 0), element_of(x.type))
    return positive if dtype.kind == "u" else b.select(b.icmp("slt", x, 0), -1, positive)


def _safe_divisor(b: FunctionBuilder, dtype: DType, x: V, y: V) -> V:
    """1 where dividing would trap: by zero, and the lowest number by -1 (whose quotient wraps to itself)."""
    trap = b.icmp("eq", y, 0)
    if dtype.kind == "i":
        lowest = const(x.type, -(1 << (8 * dtype.itemsize - 1)))
        trap = b.or_(trap, b.and_(b.icmp("eq", y, -1), b.icmp("eq", x, lowest)))
    return b.select(trap, 1, y)


def _quotient_and_rest(b: FunctionBuilder, dtype: DType, x: V, y: V) -> tuple[V, V]:
    """Truncated quotient and remainder, 0 where the divisor is 0."""
    safe = _safe_divisor(b, dtype, x, y)
    quotient = b.sdiv(x, safe) if dtype.kind == "i" else b.udiv(x, safe)
    rest = b.sub(x, b.mul(quotient, safe))
    by_zero = b.icmp("eq", y, 0)
    return b.select(by_zero, 0, quotient), b.select(by_zero, 0, rest)


def _apart(b: FunctionBuilder, rest: V, y: V) -> V:
    """Where the remainder has not the divisor's sign."""
    return b.and_(b.icmp("ne", rest, 0), b.icmp("slt", b.xor(rest, y), 0))


def _integer_floor_divide(b: FunctionBuilder, dtype: DType, x: V, y: V) -> V:
    quotient, rest = _quotient_and_rest(b, dtype, x, y)
    return quotient if dtype.kind == "u" else b.select(_apart(b, rest, y), b.sub(quotient, 1), quotient)


def _integer_mod(b: FunctionBuilder, dtype: DType, x: V, y: V) -> V:
    _, rest = _quotient_and_rest(b, dtype, x, y)
    return rest if dtype.kind == "u" else b.select(_apart(b, rest, y), b.add(rest, y), rest)


def _shift(b: FunctionBuilder, dtype: DType, left: bool, x: V, y: V) -> V:
    """Shifts by the width and more (also by negative counts) push every bit out."""
    width = 8 * dtype.itemsize
    fits = b.icmp("ult", y, width)
    count = b.select(fits, y, width - 1 if not left and dtype.kind == "i" else 0)
    if left:
        return b.select(fits, b.shl(x, count), 0)
    return b.ashr(x, count) if dtype.kind == "i" else b.select(fits, b.lshr(x, count), 0)


def _integer_abs(b: FunctionBuilder, dtype: DType, x: V) -> V:
    return b.select(b.icmp("slt", x, 0), b.rsub(0, x), x) if dtype.kind == "i" else x


def _integer_clip(b: FunctionBuilder, dtype: DType, x: V, lo: V, hi: V) -> V:
    return integer_extremum(b, dtype, False, integer_extremum(b, dtype, True, x, lo), hi)


INTEGER: Mapping[str, Rule] = {
    "neg": lambda b, dtype, x: b.rsub(0, x),
    "abs": _integer_abs,
    "sign": _integer_sign,
    "maximum": lambda b, dtype, x, y: integer_extremum(b, dtype, True, x, y),
    "minimum": lambda b, dtype, x, y: integer_extremum(b, dtype, False, x, y),
    "fmax": lambda b, dtype, x, y: integer_extremum(b, dtype, True, x, y),
    "fmin": lambda b, dtype, x, y: integer_extremum(b, dtype, False, x, y),
    "clip": _integer_clip,
    "floor_divide": _integer_floor_divide,
    "mod": _integer_mod,
    "fmod": lambda b, dtype, x, y: _quotient_and_rest(b, dtype, x, y)[1],
    "bitwise_and": lambda b, dtype, x, y: b.and_(x, y),
    "bitwise_or": lambda b, dtype, x, y: b.or_(x, y),
    "bitwise_xor": lambda b, dtype, x, y: b.xor(x, y),
    "left_shift": lambda b, dtype, x, y: _shift(b, dtype, True, x, y),
    "right_shift": lambda b, dtype, x, y: _shift(b, dtype, False, x, y),
    "invert": lambda b, dtype, x: b.not_(x),
}

BITS: Mapping[str, Rule] = {
    "maximum": lambda b, dtype, x, y: b.or_(x, y),
    "minimum": lambda b, dtype, x, y: b.and_(x, y),
    "fmax": lambda b, dtype, x, y: b.or_(x, y),
    "fmin": lambda b, dtype, x, y: b.and_(x, y),
    "bitwise_and": lambda b, dtype, x, y: b.and_(x, y),
    "bitwise_or": lambda b, dtype, x, y: b.or_(x, y),
    "bitwise_xor": lambda b, dtype, x, y: b.xor(x, y),
    "invert": lambda b, dtype, x: b.not_(x),
}


# ------------------------------------------------------------------ integer powers


def power_by_squaring(x: T, n: int, multiply: Callable[[T, T], T]) -> T:
    """x**n for n >= 1 by squaring."""
    result: T | None = None
    while True:
        if n & 1:
            result = x if result is None else multiply(result, x)
        n >>= 1
        if not n:
            assert result is not None
            return result
        x = multiply(x, x)


def integer_pow(s: Scalars, dtype: DType, x: V, n: int) -> V:
    """x**n; a negative power is a power of the reciprocal, so that nothing overflows on the way."""
    b = s.b
    if n == 0:
        return const(x.type, 1)
    if dtype.kind != "f":
        return power_by_squaring(x, n, b.mul)
    if abs(n) > LONGEST_CHAIN:
        return s.math("pow", Lane(dtype, x), Lane(dtype, const(x.type, float(n)))).re
    return power_by_squaring(x if n > 0 else b.rfdiv(1.0, x), abs(n), b.fmul)
