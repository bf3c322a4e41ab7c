"""NumPy's own ufuncs: which op, or which few, each one is.

A rule sees the operands in the dtypes of NumPy's loop (`Call`). Several ufuncs are compositions; they have no op.
"""

import math
from typing import Any

import numpy as np

from pullback.ir.graph import Value
from pullback.ir.types import BOOL
from pullback.tracer.convert import decide_array
from pullback.tracer.trace import Content
from pullback.tracer.ufuncs import Call, Direct, Rule

# Beyond this an integer power is computed by `pow`, whose rounding is then the better one.
LARGEST_INTEGER_POWER = 1024


direct = Direct  # the op of that name on the broadcast operands


def _for_bool(boolean: str, other: str) -> Rule:
    """One op for booleans, another for numbers: NumPy adds booleans with `or`, multiplies them with `and`."""
    return Direct(other, "iufc", Direct(boolean))


def _same(call: Call) -> Content:
    return call.wide(0)


def _absolute(call: Call) -> Content:
    (x,) = call.wides()
    return x if call.dtype.kind in "bu" else call.op("abs", x)


def _unless_integer(name: str) -> Rule:
    """Rounding leaves integers and booleans as they are."""
    return lambda call: call.wide(0) if call.dtype.kind in "biu" else call.op(name, call.wide(0))


def _conjugate(call: Call) -> Content:
    return call.op("conj", call.wide(0)) if call.dtype.kind == "c" else call.wide(0)


def _float_test(name: str, otherwise: bool) -> Rule:
    """isnan and its kin: the same for every integer."""

    def rule(call: Call) -> Content:
        return call.op(name, call.wide(0)) if call.dtype.kind in "fc" else call.number(otherwise, BOOL)

    return rule


def _sign(call: Call) -> Content:
    (x,) = call.wides()
    if call.dtype.kind != "u":
        return call.op("sign", x)
    return call.op("minimum", x, call.number(1))


def _square(call: Call) -> Content:
    return call.op("integer_pow", call.wide(0), n=2)


def _reciprocal(call: Call) -> Content:
    one, (x,) = call.number(1), call.wides()
    zero = call.op("equal", x, call.number(0))
    if call.dtype.kind == "c":  # NumPy's division knows of zero divisors, its reciprocal does not
        return call.op("select", zero, call.number(complex(np.nan, np.nan)), call.op("div", one, x))
    if call.dtype.kind not in "iu":
        return call.op("div", one, x)
    with np.errstate(all="ignore"):
        of_zero = np.reciprocal(np.zeros((), call.dtype))
    rest = call.op("select", zero, call.number(of_zero), call.number(0))
    whole = call.op("select", call.op("equal", x, one), one, rest)  # 1/x cut off: 0 but for 1 and -1
    if call.dtype.kind == "u":
        return whole
    minus = call.number(-1)
    return call.op("select", call.op("equal", x, minus), minus, whole)


# ------------------------------------------------------------------ powers


def _power(call: Call) -> Content:
    """Constant exponents become exact powers or roots; integer bases stay integers."""
    exponent = call.constant(1)
    if exponent is not None:
        known = _constant_power(call, exponent)
        if known is not None:
            return known
    if call.dtype.kind in "iu":
        return _integer_power(call)
    return call.op("pow", *call.wides())


def _constant_power(call: Call, exponent: Any) -> Content | None:
    base = call.wide(0)
    if call.dtype.kind == "c":
        if exponent.imag:
            return None
        exponent = exponent.real
    if call.dtype.kind in "iu" and exponent < 0:
        raise call.trace.error(ValueError, "Integers to negative integer powers are not allowed.")
    if exponent == 0.5 and call.dtype.kind == "f" and call.is_single(1):
        return call.op("sqrt", base)
    if abs(exponent) <= LARGEST_INTEGER_POWER and exponent == int(exponent):
        return base if exponent == 1 else call.op("integer_pow", base, n=int(exponent))
    return None


def _integer_power(call: Call) -> Content:
    """An integer power of integers whose exponent is traced: squaring, one round for each bit of the exponent."""
    base, exponent = call.wides()
    dtype = call.dtype
    if dtype.kind == "i":
        valid = call.op("greater_equal", exponent, call.number(0))
        call.trace.check(valid, "Integers to negative integer powers are not allowed.")
    one, result = call.number(1), call.number(1)
    for _ in range(dtype.itemsize * 8 - (dtype.kind == "i")):
        odd = call.op("equal", call.op("bitwise_and", exponent, one), one)
        result = call.op("select", odd, call.op("mul", result, base), result)
        base = call.op("mul", base, base)
        exponent = call.op("right_shift", exponent, one)
    return result


# ------------------------------------------------------------------ compositions


def _scaled(factor: float) -> Rule:
    return lambda call: call.op("mul", call.wide(0), call.number(factor))


def _truth(call: Call, x: Content) -> Content:
    return call.op("cast", x, dtype=BOOL) if _dtype(x) != BOOL else x


def _dtype(x: Content) -> Any:
    return x.type.dtype if isinstance(x, Value) else x.dtype


def _logical(name: str) -> Rule:
    return lambda call: call.op(name, *[_truth(call, x) for x in call.wides()])


def _heaviside(call: Call) -> Content:
    x, at_zero = call.wides()
    zero, one = call.number(0.0), call.number(1.0)
    step = call.op("select", call.op("less", x, zero), zero, one)
    known = call.op("select", call.op("equal", x, zero), at_zero, step)
    return call.op("select", call.op("isnan", x), x, known)


def _divmod(call: Call) -> tuple[Content, ...]:
    x, y = call.wides()
    return call.op("floor_divide", x, y), call.op("mod", x, y)


def _modf(call: Call) -> tuple[Content, ...]:
    """Fraction and whole part, both with the sign of x; the fraction of an infinity is 0."""
    (x,) = call.wides()
    whole = call.op("trunc", x)
    rest = call.op("select", call.op("isinf", x), call.number(0.0), call.op("sub", x, whole))
    return call.op("copysign", rest, x), whole


def _ldexp(call: Call) -> Content:
    """x * 2**n, in two halves so that neither power of two overflows before the product does."""
    x, n = call.wides()
    half = call.op("right_shift", n, call.number(1, _dtype(n)))
    for part in (half, call.op("sub", n, half)):
        power = call.op("exp2", call.op("cast", part, dtype=call.result_dtype))
        x = call.op("mul", x, power)
    return x


def _frexp(call: Call) -> tuple[Content, ...]:
    """x = mantissa * 2**exponent with 1/2 <= |mantissa| < 1; the exponent is a step.

    The logarithm may round across a power of two; one comparison puts that right.
    """
    (x,) = call.wides()
    f = call.op
    plain = f("bitwise_and", f("isfinite", x), f("not_equal", x, call.number(0.0)))
    safe = f("select", plain, x, call.number(0.75))
    exponent = f("add", f("floor", f("log2", f("abs", safe))), call.number(1.0))
    half = f("floor", f("mul", exponent, call.number(0.5)))
    scale = [f("exp2", f("neg", part)) for part in (half, f("sub", exponent, half))]
    mantissa = f("mul", f("mul", safe, scale[0]), scale[1])
    size = f("abs", mantissa)
    high, low = f("greater_equal", size, call.number(1.0)), f("less", size, call.number(0.5))
    shift = f("select", high, call.number(1.0), f("select", low, call.number(-1.0), call.number(0.0)))
    mantissa = f("mul", mantissa, f("exp2", f("neg", shift)))
    number = f("select", plain, f("add", exponent, shift), call.number(0.0))
    return f("select", plain, mantissa, x), f("cast", number, dtype=call.types[2])


def _decided(call: Call) -> Content:
    """Number theory on integers: the operands are guarded, the result is a constant."""
    fixed = [decide_array(call.trace, c) for c in call.contents]
    return np.broadcast_to(np.asarray(call.ufunc(*fixed)), call.shape).copy()


def _spacing(call: Call) -> Content:
    (x,) = call.wides()
    size = call.op("abs", x)
    if call.dtype == np.float16:  # NumPy's goes upwards there, and has no sign
        gap = call.op("sub", call.op("nextafter", x, call.number(np.inf)), x)
        return call.op("select", call.op("isinf", x), call.number(np.nan), gap)
    gap = call.op("sub", call.op("nextafter", size, call.number(np.inf)), size)
    return call.op("select", call.op("equal", x, call.number(0)), gap, call.op("copysign", gap, x))


def _comparison(name: str, strict: str | None = None) -> Rule:
    """A comparison; complex numbers are ordered lexicographically, int64 and uint64 by their true values."""

    def rule(call: Call) -> Content:
        x, y = call.wides()
        if call.types[0] != call.types[1]:
            return _compare_mixed(call, name, x, y)
        if call.dtype.kind != "c" or strict is None:
            return call.op(name, x, y)
        return _lexicographic(call, name, strict, x, y)

    return Direct(name, "biuf" if strict is not None else "biufc", rule)


def _lexicographic(call: Call, name: str, strict: str, x: Content, y: Content) -> Content:
    """By real parts, at a tie by imaginary parts; false where NumPy's comparison meets NaN."""
    (xr, xi), (yr, yi) = [(call.op("real", z), call.op("imag", z)) for z in (x, y)]
    tied = call.op("bitwise_and", call.op("equal", xr, yr), call.op(name, xi, yi))
    nan = call.op("bitwise_or", call.op("isnan", xi), call.op("isnan", yi))
    first = call.op("bitwise_and", call.op(strict, xr, yr), call.op("invert", nan))
    return call.op("bitwise_or", first, tied)


def _compare_mixed(call: Call, name: str, x: Content, y: Content) -> Content:
    """int64 beside uint64: as unsigned numbers, unless the signed one is negative, which decides alone."""
    signed_first = call.types[0].kind == "i"
    signed = x if signed_first else y
    negative = call.op("less", signed, call.number(0, _dtype(signed)))
    wide = [call.op("cast", z, dtype=np.dtype(np.uint64)) if _dtype(z).kind == "i" else z for z in (x, y)]
    sample = (-1, 0) if signed_first else (0, -1)
    decided = bool(getattr(np, name)(*sample))
    return call.op("select", negative, call.number(decided, BOOL), call.op(name, *wide))


def _extremum(name: str, order: str) -> Rule:
    """maximum and its kin; complex numbers are ordered lexicographically, of equal ones the first, half each."""

    def rule(call: Call) -> Content:
        x, y = call.wides()
        if call.dtype.kind != "c":  # of equal zeros NumPy gives the second, but of float16 and from fmax the first
            return call.op(name, y, x) if call.dtype == np.float16 and name[0] == "m" else call.op(name, x, y)
        first = _lexicographic(call, order + "_equal", order, x, y)
        nan = call.op("isnan", x if name in ("maximum", "minimum") else y)
        chosen = call.op("select", call.op("bitwise_or", first, nan), x, y)
        tied = call.op("complex", *[call.op("fmax", call.op(p, x), call.op(p, y)) for p in ("real", "imag")])
        return call.op("select", call.op("equal", x, y), tied, chosen)

    return rule


def _rint(call: Call) -> Content:
    x = call.wide(0)
    if call.dtype.kind != "c":
        return call.op("rint", x)
    return call.op("complex", *[call.op("rint", call.op(part, x)) for part in ("real", "imag")])


def _bitwise_count(call: Call) -> Content:
    """Number of set bits of |x|, bit by bit."""
    x = _absolute(call)
    dtype = call.dtype
    one, total = call.number(1), call.number(0, call.result_dtype)
    for bit in range(dtype.itemsize * 8):
        set_ = call.op("bitwise_and", call.op("right_shift", x, call.number(bit)), one)
        total = call.op("add", total, call.op("cast", set_, dtype=call.result_dtype))
    return total


RULES: dict[np.ufunc, Rule] = {
    np.add: _for_bool("bitwise_or", "add"),
    np.subtract: direct("sub"),
    np.multiply: _for_bool("bitwise_and", "mul"),
    np.true_divide: direct("div"),
    np.floor_divide: direct("floor_divide"),
    np.remainder: direct("mod"),
    np.fmod: direct("fmod"),
    np.divmod: _divmod,
    np.negative: direct("neg"),
    np.positive: _same,
    np.power: _power,
    np.float_power: _power,
    np.square: _square,
    np.reciprocal: _reciprocal,
    np.absolute: _absolute,
    np.fabs: direct("abs"),
    np.sign: _sign,
    np.conjugate: _conjugate,
    np.floor: _unless_integer("floor"),
    np.ceil: _unless_integer("ceil"),
    np.trunc: _unless_integer("trunc"),
    np.rint: _rint,
    np.exp: direct("exp"),
    np.exp2: direct("exp2"),
    np.expm1: direct("expm1"),
    np.log: direct("log"),
    np.log2: direct("log2"),
    np.log10: direct("log10"),
    np.log1p: direct("log1p"),
    np.sqrt: direct("sqrt"),
    np.cbrt: direct("cbrt"),
    np.sin: direct("sin"),
    np.cos: direct("cos"),
    np.tan: direct("tan"),
    np.arcsin: direct("arcsin"),
    np.arccos: direct("arccos"),
    np.arctan: direct("arctan"),
    np.sinh: direct("sinh"),
    np.cosh: direct("cosh"),
    np.tanh: direct("tanh"),
    np.arcsinh: direct("arcsinh"),
    np.arccosh: direct("arccosh"),
    np.arctanh: direct("arctanh"),
    np.deg2rad: _scaled(math.pi / 180),
    np.radians: _scaled(math.pi / 180),
    np.rad2deg: _scaled(180 / math.pi),
    np.degrees: _scaled(180 / math.pi),
    np.arctan2: direct("arctan2"),
    np.hypot: direct("hypot"),
    np.logaddexp: direct("logaddexp"),
    np.logaddexp2: direct("logaddexp2"),
    np.maximum: _extremum("maximum", "greater"),
    np.minimum: _extremum("minimum", "less"),
    np.fmax: _extremum("fmax", "greater"),
    np.fmin: _extremum("fmin", "less"),
    np.copysign: direct("copysign"),
    np.nextafter: direct("nextafter"),
    np.spacing: _spacing,
    np.heaviside: _heaviside,
    np.modf: _modf,
    np.ldexp: _ldexp,
    np.isnan: _float_test("isnan", False),
    np.isinf: _float_test("isinf", False),
    np.isfinite: _float_test("isfinite", True),
    np.signbit: direct("signbit"),
    np.equal: _comparison("equal"),
    np.not_equal: _comparison("not_equal"),
    np.less: _comparison("less", "less"),
    np.less_equal: _comparison("less_equal", "less"),
    np.greater: _comparison("greater", "greater"),
    np.greater_equal: _comparison("greater_equal", "greater"),
    np.logical_and: _logical("bitwise_and"),
    np.logical_or: _logical("bitwise_or"),
    np.logical_xor: _logical("bitwise_xor"),
    np.logical_not: _logical("invert"),
    np.bitwise_and: direct("bitwise_and"),
    np.bitwise_or: direct("bitwise_or"),
    np.bitwise_xor: direct("bitwise_xor"),
    np.invert: direct("invert"),
    np.left_shift: direct("left_shift"),
    np.right_shift: direct("right_shift"),
    np.bitwise_count: _bitwise_count,
    np.frexp: _frexp,
    np.gcd: _decided,
    np.lcm: _decided,
}
