"""Arithmetic: add sub mul div and their kin, signs and rounding, minima and maxima, powers."""

from collections.abc import Sequence

import numpy as np

from pullback.errors import TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import (
    Algebra,
    Array,
    Bilinear,
    Custom,
    Linear,
    OpDef,
    Partials,
    RunRegion,
    Scalar,
    Types,
)
from pullback.ir.ops.common import (
    FLOAT,
    INEXACT,
    NUMBER,
    STEP,
    batch_elementwise,
    elementwise,
    elementwise_infer,
    masking,
    regular,
    singular,
    to_real,
)
from pullback.ir.ops.strong import STRONG_MUL
from pullback.ir.types import TensorType


def _binary(name: str) -> Scalar:
    return Scalar(lambda s, op, x, y: s.binary(name, x, y))


ADD = elementwise(
    "add",
    2,
    NUMBER,
    np.add,
    Linear(lambda f, op, ct: (ct, ct)),
    "x + y. Integers wrap around.",
    lower=_binary("add"),
    algebra=Algebra(commutative=True, associative=True, identity=-0.0),
)
SUB = elementwise(
    "sub",
    2,
    NUMBER,
    np.subtract,
    Linear(lambda f, op, ct: (ct, -ct)),
    "x - y.",
    numpy=("subtract",),
    lower=_binary("sub"),
    algebra=Algebra(identity=0.0),
)
MUL = elementwise(
    "mul",
    2,
    NUMBER,
    np.multiply,
    Bilinear(lambda f, op, ct, y: ct * y, lambda f, op, ct, x: ct * x),
    "x * y.",
    numpy=("multiply",),
    lower=_binary("mul"),
    algebra=Algebra(commutative=True, associative=True, identity=1.0),
)
DIV = elementwise(
    "div",
    2,
    INEXACT,
    np.true_divide,
    singular(lambda f, op, out, x, y: 1.0 / y, lambda f, op, out, x, y: -out / y),
    "x / y, floating or complex. x/0 is infinite or NaN, and so is its derivative.",
    numpy=("true_divide", "divide"),
    lower=_binary("div"),
    algebra=Algebra(identity=1.0),
)
FLOOR_DIVIDE = elementwise(
    "floor_divide", 2, "iuf", np.floor_divide, STEP, "floor(x / y) with NumPy's corrections; an integer x // 0 is 0."
)
MOD = elementwise(
    "mod",
    2,
    "iuf",
    np.remainder,
    singular(lambda f, op, out, x, y: f.full_like(x, 1), lambda f, op, out, x, y: -f.floor_divide(x, y)),
    "The remainder with the sign of the divisor. Derivative 1 for the dividend, -floor(x/y) for the divisor.",
    numpy=("remainder", "mod"),
)
FMOD = elementwise(
    "fmod",
    2,
    "iuf",
    np.fmod,
    singular(lambda f, op, out, x, y: f.full_like(x, 1), lambda f, op, out, x, y: -f.trunc(x / y)),
    "The remainder with the sign of the dividend. Derivative 1 for the dividend, -trunc(x/y) for the divisor.",
)
NEG = elementwise(
    "neg",
    1,
    NUMBER,
    np.negative,
    Linear(lambda f, op, ct: (-ct,)),
    "-x.",
    numpy=("negative",),
    algebra=Algebra(involutive=True),
)


def _abs_vjp(
    f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: Sequence[Expr | None]
) -> tuple[Expr | None]:
    (x,), (out,), (ct,) = args, outs, cts
    if ct is None:
        return (None,)
    if x.type.is_complex:
        unit = _unit(f, x, out)
        return (f.complex(_either_zero(f, f.real(unit), ct), -_either_zero(f, f.imag(unit), ct)),)
    return (f.strong_mul(_direction(f, x), ct),)


def _abs_jvp(
    f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: Sequence[Expr | None]
) -> tuple[Expr | None]:
    (x,), (out,), (tan,) = args, outs, tans
    if tan is None:
        return (None,)
    if x.type.is_complex:
        unit = _unit(f, x, out)
        return (_either_zero(f, f.real(unit), f.real(tan)) + _either_zero(f, f.imag(unit), f.imag(tan)),)
    return (f.strong_mul(_direction(f, x), tan),)


def _either_zero(f: Emitter, weight: Expr, ct: Expr) -> Expr:
    """weight * ct, 0 wherever one of them is, even if the other is infinite or NaN."""
    dead = ct.eq(0.0) & ~f.isfinite(weight)
    return f.strong_mul(f.select(dead, f.zeros_like(weight), weight), ct)


def _direction(f: Emitter, x: Expr) -> Expr:
    """The sign of x, finite for NaN too, so that it can be a mask."""
    return f.select(x.eq(0.0), f.zeros_like(x), f.copysign(f.full_like(x, 1.0), x))


def _unit(f: Emitter, z: Expr, modulus: Expr) -> Expr:
    """z / |z|, 0 at 0; the quotient is taken of a safe modulus so that no order of derivative meets 0/0."""
    zero = modulus.eq(0.0)
    safe = f.select(zero, f.full_like(modulus, 1.0), modulus)
    return f.complex(f.real(z) / safe, f.imag(z) / safe)


ABS = elementwise(
    "abs",
    1,
    NUMBER,
    np.abs,
    Custom(_abs_vjp, _abs_jvp),
    "|x|; of complex numbers the modulus. Derivative 0 at 0.",
    numpy=("absolute", "fabs"),
    result=to_real,
)


def _sign_vjp(
    f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: Sequence[Expr | None]
) -> tuple[Expr | None]:
    (z,), (unit,), (ct,) = args, outs, cts
    if ct is None or not z.type.is_complex:
        return (None,)
    turn = _over_modulus(f, f.imag(f.strong_mul(ct, unit)), z)
    return (f.complex(f.strong_mul(turn, f.imag(unit)), f.strong_mul(turn, f.real(unit))),)


def _sign_jvp(
    f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: Sequence[Expr | None]
) -> tuple[Expr | None]:
    (z,), (unit,), (tan,) = args, outs, tans
    if tan is None or not z.type.is_complex:
        return (None,)
    turn = _over_modulus(f, f.imag(f.strong_mul(tan, f.conj(unit))), z)
    return (f.complex(f.strong_mul(-turn, f.imag(unit)), f.strong_mul(turn, f.real(unit))),)


def _over_modulus(f: Emitter, x: Expr, z: Expr) -> Expr:
    """x / |z|, 0 where z is 0."""
    modulus = f.abs(z)
    zero = modulus.eq(0.0)
    safe = f.select(zero, f.full_like(modulus, 1.0), modulus)
    return f.select(zero, f.zeros_like(x), f.strong_mul(x, 1.0 / safe))


SIGN = elementwise(
    "sign",
    1,
    NUMBER,
    np.sign,
    Custom(_sign_vjp, _sign_jvp),
    "-1, 0 or 1, with derivative 0; NaN stays. For complex z it is z/|z|, 0 at 0, whose derivative turns along the "
    "circle.",
)
FLOOR = elementwise(
    "floor", 1, FLOAT, np.floor, STEP, "Largest integer not above x. Derivative 0.", algebra=Algebra(idempotent=True)
)
CEIL = elementwise(
    "ceil", 1, FLOAT, np.ceil, STEP, "Smallest integer not below x. Derivative 0.", algebra=Algebra(idempotent=True)
)
RINT = elementwise(
    "rint", 1, FLOAT, np.rint, STEP, "Nearest integer, halves to even. Derivative 0.", algebra=Algebra(idempotent=True)
)
TRUNC = elementwise(
    "trunc",
    1,
    FLOAT,
    np.trunc,
    STEP,
    "x without its fraction. Derivative 0.",
    numpy=("trunc", "fix"),
    algebra=Algebra(idempotent=True),
)


COPYSIGN = elementwise(
    "copysign",
    2,
    FLOAT,
    np.copysign,
    masking(lambda f, op, out, x, y: _direction(f, x) * f.copysign(f.full_like(x, 1.0), y), None),
    "|x| with the sign of y. Derivative in x is the product of the signs, 0 at 0.",
)
NEXTAFTER = elementwise(
    "nextafter",
    2,
    FLOAT,
    np.nextafter,
    regular(lambda f, op, out, x, y: f.full_like(x, 1.0), None),
    "The next number from x towards y. Derivative 1 in x.",
)


# ------------------------------------------------------------------ powers


def _pow_in_base(f: Emitter, op: Op, out: Expr, x: Expr, y: Expr) -> Expr:
    return f.select(y.eq(0.0), f.zeros_like(x), y * f.pow(x, y - 1.0))


def _pow_in_exponent(f: Emitter, op: Op, out: Expr, x: Expr, y: Expr) -> Expr:
    zero = x.eq(0.0)
    log = f.log(f.select(zero, f.full_like(x, 1.0), x))
    flat = zero & (~(y < 0.0) if not x.type.is_complex else zero)
    return f.select(flat, f.zeros_like(x), f.select(zero, f.full_like(x, -np.inf), out * log))


POW = elementwise(
    "pow",
    2,
    INEXACT,
    np.power,
    singular(_pow_in_base, _pow_in_exponent),
    "x**y. Derivative in x is 0 where y is 0 (also at x = 0); in y it is 0 where x is 0 and y is not negative.",
    numpy=("power", "float_power"),
)


def _integer_pow_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    if attrs["n"] < 0 and types[0].dtype.kind in "iu":
        raise TypeRuleError(
            f"integer_pow: integers to negative powers are not allowed, got {types[0]} and n = {attrs['n']}"
        )
    return _number_type(types, attrs, regions)


_number_type = elementwise_infer("integer_pow", 1, NUMBER)


def _integer_pow_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    (x,) = args
    # uint64 to a signed power would be a float.
    exponent = np.asarray(op.attrs["n"]).astype({"u": np.uint64, "i": np.int64}.get(x.dtype.kind, x.dtype))
    return (np.asarray(np.power(x, exponent), dtype=x.dtype),)


def _integer_pow_partial(f: Emitter, op: Op, out: Expr, x: Expr) -> Expr:
    n = op.attrs["n"]
    if n == 0:
        return f.zeros_like(x)
    if n == 1:
        return f.full_like(x, 1)
    if n == 2:
        return x * 2.0
    return f.integer_pow(x, n=n - 1) * float(n)


INTEGER_POW = OpDef(
    name="integer_pow",
    arity=1,
    attrs={"n": "int"},
    infer=_integer_pow_infer,
    evaluate=_integer_pow_evaluate,
    numpy=(),
    derivative=Partials((_integer_pow_partial,), lambda op: (op.attrs["n"] < 0,)),
    batch=batch_elementwise,
    lower=Scalar(lambda s, op, x: s.math("integer_pow", x, n=op.attrs["n"])),
    algebra=Algebra(),
    doc="x**n for a fixed integer n, any sign of x, no logarithm taken. n = 0 gives 1 with derivative 0, also at 0.",
)

HYPOT = elementwise(
    "hypot",
    2,
    FLOAT,
    np.hypot,
    masking(
        lambda f, op, out, x, y: _unit_part(f, out, x),
        lambda f, op, out, x, y: _unit_part(f, out, y),
    ),
    "sqrt(x*x + y*y) without overflow. Derivative 0 at (0, 0).",
)


def _unit_part(f: Emitter, out: Expr, x: Expr) -> Expr:
    zero = out.eq(0.0)
    return x / f.select(zero, f.full_like(out, 1.0), out)


ARCTAN2 = elementwise(
    "arctan2",
    2,
    FLOAT,
    np.arctan2,
    regular(
        lambda f, op, out, y, x: _over_radius(f, x, x, y),
        lambda f, op, out, y, x: -_over_radius(f, y, x, y),
    ),
    "The angle of the point (x, y): arctan2(y, x). Derivatives 0 at (0, 0).",
)


def _over_radius(f: Emitter, part: Expr, x: Expr, y: Expr) -> Expr:
    """part / (x*x + y*y), divided twice by the radius so that nothing overflows; 0 at the origin."""
    radius = f.hypot(x, y)
    safe = f.select(radius.eq(0.0), f.full_like(radius, 1.0), radius)
    return part / safe / safe


ARITHMETIC = (
    ADD,
    SUB,
    MUL,
    DIV,
    FLOOR_DIVIDE,
    MOD,
    FMOD,
    NEG,
    ABS,
    SIGN,
    FLOOR,
    CEIL,
    RINT,
    TRUNC,
    COPYSIGN,
    NEXTAFTER,
    POW,
    INTEGER_POW,
    HYPOT,
    ARCTAN2,
    STRONG_MUL,
)
