"""Rules of arithmetic: identities, signs, powers, constants, minima and maxima."""

import math

import numpy as np

from pullback.ir.graph import Op, Value
from pullback.ir.ops import ALL_OPS
from pullback.ir.types import DType
from pullback.passes.rules.record import Number, Rewriter, Rule, case, is_constant, made_by, number, same_number

_IDENTITY = {op.name: op.algebra.identity for op in ALL_OPS if op.algebra.identity is not None}
_INTEGER_IDENTITY: dict[str, int] = {
    "add": 0, "sub": 0, "mul": 1, "floor_divide": 1,
    "bitwise_or": 0, "bitwise_xor": 0, "left_shift": 0, "right_shift": 0,
}  # fmt: skip
_COMMUTATIVE = tuple(op.name for op in ALL_OPS if op.algebra.commutative)
_ORDER_SHOWS = frozenset({"maximum", "minimum", "fmax", "fmin"})  # of 0.0 and -0.0 NumPy gives one by position
_IDEMPOTENT_BINARY = tuple(op.name for op in ALL_OPS if op.algebra.idempotent and op.arity == 2)
_ROUNDING = ("floor", "ceil", "rint", "trunc")


def _kind(op: Op) -> str:
    return op.results[0].type.dtype.kind


# ------------------------------------------------------------------ identities


def _identity(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    found = number(y)
    if found is None:
        return None
    kind = _kind(op)
    if kind == "f" and op.name in _IDENTITY:
        return x if same_number(found, _IDENTITY[op.name]) else None
    if kind in "iu" and op.name in _INTEGER_IDENTITY:
        return x if found == _INTEGER_IDENTITY[op.name] else None
    return x if kind == "b" and op.name in ("bitwise_or", "bitwise_xor") and found is False else None


def _all_ones(op: Op) -> Number:
    dtype = op.results[0].type.dtype
    return True if dtype.kind == "b" else np.array(-1).astype(dtype).item()


def _and_identity(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    return x if number(y) == _all_ones(op) else None


def _absorbing(r: Rewriter, op: Op) -> Value | None:
    _, y = op.operands
    found = number(y)
    if found is None or _kind(op) not in "biu":
        return None
    absorbs = _all_ones(op) if op.name == "bitwise_or" else 0
    return y if found == absorbs else None


def _same_operands(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    return x if x is y else None


def _cancel(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    return r.full(x.type, 0) if x is y and x.type.dtype.kind in "biu" else None


# ------------------------------------------------------------------ constants go right


def _constant_right(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    if not is_constant(x) or is_constant(y) or (op.name in _ORDER_SHOWS and x.type.dtype.kind == "f"):
        return None
    return r.emit(op.name, y, x)


def _collect_constants(r: Rewriter, op: Op) -> Value | None:
    """(x op c) op d -> x op (c op d)."""
    x, d = op.operands
    inner = made_by(x, op.name)
    if inner is None or not is_constant(d) or not is_constant(inner.operands[1]):
        return None
    return r.emit(op.name, inner.operands[0], r.emit(op.name, inner.operands[1], d))


def _collect_doublings(r: Rewriter, op: Op) -> Value | None:
    x, d = op.operands
    inner, factor = made_by(x, "mul"), number(d)
    scale = number(inner.operands[1]) if inner is not None else None
    if inner is None or not isinstance(factor, float) or not isinstance(scale, float) or not abs(factor) >= 1.0:
        return None
    if not 1.0 <= scale < math.inf or math.frexp(scale)[0] != 0.5:
        return None
    product = float(np.float64(scale * factor).astype(x.type.dtype))
    if not math.isfinite(product):
        return None
    return r.emit("mul", inner.operands[0], r.full(x.type, product))


def _collect_integers(r: Rewriter, op: Op) -> Value | None:
    return _collect_constants(r, op) if _kind(op) in "biu" else None


def _collect_floats(r: Rewriter, op: Op) -> Value | None:
    return _collect_constants(r, op) if _kind(op) in "fc" else None


# ------------------------------------------------------------------ division, powers, rounding


def _power_of_two_reciprocal(value: float, dtype: DType) -> float | None:
    """1 / value where that is exact, finite and no denormal in `dtype`."""
    if value == 0.0 or not math.isfinite(value) or math.frexp(value)[0] not in (0.5, -0.5):
        return None
    with np.errstate(all="ignore"):
        inverse = float(np.float64(1.0 / value).astype(dtype))
    return inverse if math.isfinite(inverse) and abs(inverse) >= float(np.finfo(dtype).tiny) else None


def _div_by_power_of_two(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    found = number(y)
    if _kind(op) != "f" or not isinstance(found, float):
        return None
    inverse = _power_of_two_reciprocal(found, x.type.dtype)
    return r.emit("mul", x, r.full(x.type, inverse)) if inverse is not None else None


def _div_by_constant(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    found = number(y)
    if _kind(op) != "f" or not isinstance(found, float) or found == 0.0:
        return None
    return r.emit("mul", x, r.emit("div", r.full(y.type, 1.0), y))


MOST_MULTIPLICATIONS = 64


def _pow_to_integer(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    found = number(y)
    if not isinstance(found, float) or not found.is_integer() or abs(found) > MOST_MULTIPLICATIONS:
        return None
    return r.emit("integer_pow", x, n=int(found))


def _first_power(r: Rewriter, op: Op) -> Value | None:
    return op.operands[0] if op.attrs["n"] == 1 and _kind(op) != "c" else None


def _zeroth_power(r: Rewriter, op: Op) -> Value | None:
    return r.full(op.results[0].type, 1) if op.attrs["n"] == 0 and _kind(op) != "c" else None


def _rounded_again(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return x if x.op is not None and x.op.name in _ROUNDING else None


# ------------------------------------------------------------------ minima and maxima


def _bounded_by_infinity(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    neutral = -math.inf if op.name == "maximum" else math.inf
    return x if _kind(op) == "f" and same_number(number(y), neutral) else None


def _zero_added(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    return x if _kind(op) == "f" and number(y) == 0.0 else None


# ------------------------------------------------------------------ products in which a zero is final


def _strong_of_constant(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    found = number(x)
    if found is None:
        return None
    return r.full(op.results[0].type, 0) if found == 0 else r.emit("mul", y, x)


def _strong_of_mask(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    inner = made_by(x, "cast")
    if inner is None or inner.operands[0].type.dtype.kind != "b" or _kind(op) != "f":
        return None
    return r.emit("select", inner.operands[0], y, r.full(y.type, 0))


F, H, I, U, B, Z = "f64[7]", "f32[7]", "i32[7]", "u8[7]", "bool[7]", "c128[7]"

ARITHMETIC: tuple[Rule, ...] = (
    Rule(
        "constant-right",
        "c op x -> x op c",
        _COMMUTATIVE,
        _constant_right,
        "op commutes. Not for maximum and its kin of floats: of 0.0 and -0.0 they give one by position.",
        (
            case(lambda f, x: 2.0 * x, F),
            case(lambda f, x: 3 + x, I),
            case(lambda f, x: f.maximum(f.full_like(x, 3), x), I),
        ),
        (case(lambda f, x: f.maximum(f.full_like(x, 0.0), x), F), case(lambda f, x: 2.0 - x, F)),
    ),
    Rule(
        "identity",
        "x op e -> x",
        tuple(sorted({*_IDENTITY, *_INTEGER_IDENTITY})),
        _identity,
        "e is the right identity: -0.0 of add (0.0 would turn -0.0 into 0.0), 0.0 of sub, 1 of mul and div. Not for "
        "complex numbers, whose products mix the parts: (inf+0j)*1 has a NaN.",
        (
            case(lambda f, x: x + -0.0, F),
            case(lambda f, x: x - 0.0, F),
            case(lambda f, x: x * 1.0, H),
            case(lambda f, x: x / 1.0, F),
            case(lambda f, x: x + 0, I),
            case(lambda f, x: f.floor_divide(x, f.full_like(x, 1)), U),
            case(lambda f, x: x | f.full_like(x, False), B),
            case(lambda f, x: f.left_shift(x, f.full_like(x, 0)), I),
        ),
        (
            case(lambda f, x: x + 0.0, F),
            case(lambda f, x: x - -0.0, F),
            case(lambda f, x: x * 1.0, Z),
            case(lambda f, x: f.floor_divide(x, f.full_like(x, 1.0)), F),
        ),
    ),
    Rule(
        "and-identity",
        "x & 1...1 -> x",
        ("bitwise_and",),
        _and_identity,
        "bits",
        (
            case(lambda f, x: x & f.full_like(x, True), B),
            case(lambda f, x: x & f.full_like(x, -1), I),
            case(lambda f, x: x & f.full_like(x, 255), U),
        ),
        (case(lambda f, x: x & f.full_like(x, 1), I),),
    ),
    Rule(
        "absorbing",
        "x * 0, x & 0, x | 1...1 -> the constant",
        ("mul", "bitwise_and", "bitwise_or"),
        _absorbing,
        "Integers and bools only: 0.0 * x is NaN for infinite or NaN x, and keeps the sign of x.",
        (
            case(lambda f, x: x * 0, I),
            case(lambda f, x: x & f.full_like(x, 0), U),
            case(lambda f, x: x | f.full_like(x, True), B),
        ),
        (case(lambda f, x: x * 0.0, F),),
    ),
    Rule(
        "idempotent",
        "x op x -> x",
        _IDEMPOTENT_BINARY,
        _same_operands,
        "Either operand is the answer, NaN and zeros included.",
        (case(lambda f, x: f.maximum(x, x), F), case(lambda f, x: f.fmin(x, x), F), case(lambda f, x: x & x, B)),
        (case(lambda f, x, y: f.maximum(x, y), F, F),),
    ),
    Rule(
        "cancel",
        "x - x, x ^ x -> 0",
        ("sub", "bitwise_xor"),
        _cancel,
        "Integers and bools only: of an infinite or NaN x the difference is NaN.",
        (case(lambda f, x: x - x, I), case(lambda f, x: x ^ x, B)),
        (case(lambda f, x: x - x, F),),
    ),
    Rule(
        "collect-doublings",
        "(x * 2**k) * c -> x * (2**k * c), for k >= 0 and |c| >= 1",
        ("mul",),
        _collect_doublings,
        "The doubling is exact, and where it overflows so does the product. A smaller c could have brought that back.",
        (case(lambda f, x: (x * 2.0) * 100.0, F), case(lambda f, x: (x * 4.0) * -3.0, H)),
        (
            case(lambda f, x: (x * 2.0) * 0.01, F),
            case(lambda f, x: (x * 0.5) * 3.0, F),
            case(lambda f, x: (x * 3.0) * 2.0, F),
            case(lambda f, x: (x * 2.0**1000) * 2.0**1000, F),
        ),
    ),
    Rule(
        "collect-integers",
        "(x op c) op d -> x op (c op d)",
        ("add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"),
        _collect_integers,
        "Modular arithmetic and bits are associative; rounding is not.",
        (case(lambda f, x: (x + 3) + 4, I), case(lambda f, x: (x * 3) * 100, U)),
        (case(lambda f, x: (x + 3.0) + 4.0, F),),
    ),
    Rule(
        "div-by-power-of-two",
        "x / 2**k -> x * 2**-k",
        ("div",),
        _div_by_power_of_two,
        "Both are the same real number rounded once. The factor must be exact: neither infinite nor denormal.",
        (case(lambda f, x: x / 8.0, F), case(lambda f, x: x / -0.25, H)),
        (case(lambda f, x: x / 3.0, F), case(lambda f, x: x / 2.0**-1074, F), case(lambda f, x: x / 2.0**127, H)),
    ),
    Rule(
        "pow-to-integer",
        "x ** n. -> integer_pow(x, n) up to 64",
        ("pow",),
        _pow_to_integer,
        "The same function; no logarithm is needed.",
        (case(lambda f, x: f.pow(x, f.full_like(x, 3.0)), F), case(lambda f, x: f.pow(x, f.full_like(x, -2.0)), H)),
        (case(lambda f, x: f.pow(x, f.full_like(x, 0.5)), F), case(lambda f, x: f.pow(x, f.full_like(x, 65.0)), F)),
    ),
    Rule(
        "first-power",
        "x ** 1 -> x",
        ("integer_pow",),
        _first_power,
        "NaN and zeros included.",
        (case(lambda f, x: f.integer_pow(x, n=1), F), case(lambda f, x: f.integer_pow(x, n=1), I)),
    ),
    Rule(
        "zeroth-power",
        "x ** 0 -> 1",
        ("integer_pow",),
        _zeroth_power,
        "IEEE's pow: 1 also for NaN and 0.",
        (case(lambda f, x: f.integer_pow(x, n=0), F), case(lambda f, x: f.integer_pow(x, n=0), I)),
    ),
    Rule(
        "rounded-again",
        "floor(ceil(x)) -> ceil(x); any two roundings",
        _ROUNDING,
        _rounded_again,
        "A whole number (or infinity, or NaN) is its own rounding, and -0.0 stays.",
        (case(lambda f, x: f.floor(f.ceil(x)), F), case(lambda f, x: f.rint(f.rint(x)), H)),
    ),
    Rule(
        "bounded-by-infinity",
        "maximum(x, -inf), minimum(x, inf) -> x",
        ("maximum", "minimum"),
        _bounded_by_infinity,
        "NaN wins in both. Not for fmax and fmin, which drop it.",
        (
            case(lambda f, x: f.maximum(x, f.full_like(x, -math.inf)), F),
            case(lambda f, x: f.minimum(x, f.full_like(x, math.inf)), H),
        ),
        (
            case(lambda f, x: f.fmax(x, f.full_like(x, -math.inf)), F),
            case(lambda f, x: f.maximum(x, f.full_like(x, math.inf)), F),
        ),
    ),
    Rule(
        "strong-of-constant",
        "strong_mul(c, y) -> y * c, or 0 if c is 0",
        ("strong_mul",),
        _strong_of_constant,
        "Whether the zero is final is known.",
        (
            case(lambda f, y: f.strong_mul(f.full_like(y, 2.0), y), F),
            case(lambda f, y: f.strong_mul(f.full_like(y, -0.0), y), H),
        ),
    ),
    Rule(
        "strong-of-mask",
        "strong_mul(cast(p), y) -> select(p, y, 0)",
        ("strong_mul",),
        _strong_of_mask,
        "cast(p) is 1 or 0, and 1 * y is y. Not for complex y, whose parts a product mixes.",
        (case(lambda f, p, y: f.strong_mul(f.astype(p, y.dtype), y), B, F),),
        (case(lambda f, p, y: f.strong_mul(f.astype(p, y.dtype), y), B, Z),),
    ),
    Rule(
        "zero-added",
        "x + 0.0 -> x, x - -0.0 -> x",
        ("add", "sub"),
        _zero_added,
        "Turns no -0.0 into 0.0 any more.",
        (case(lambda f, x: x + 0.0, F), case(lambda f, x: x - -0.0, F)),
        kind="fast",
    ),
    Rule(
        "div-by-constant",
        "x / c -> x * (1 / c)",
        ("div",),
        _div_by_constant,
        "Rounds twice: off by one ulp at times.",
        (case(lambda f, x: x / 3.0, F),),
        kind="fast",
    ),
    Rule(
        "collect-floats",
        "(x op c) op d -> x op (c op d)",
        ("add", "mul"),
        _collect_floats,
        "Rounding is not associative, and c op d may overflow where x op c does not.",
        (case(lambda f, x: (x * 3.0) * 5.0, F), case(lambda f, x: (x + 3.0) + 5.0, F)),
        kind="fast",
    ),
)
