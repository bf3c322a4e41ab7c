"""Complex numbers as pairs of real lanes.

Quotients follow Smith and square roots split by quadrant, as NumPy does, so that nothing overflows that need not.
The inverse functions are Kahan's ("Branch cuts for complex elementary functions", 1987), with his signs on the cuts.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pullback.codegen.elementary import power_by_squaring
from pullback.codegen.lane import Lane, lane_constant
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.errors import CodegenError
from pullback.ir.types import BOOL, DType, real_dtype

if TYPE_CHECKING:
    from pullback.codegen.scalars import Scalars


class _Real:
    """A real lane with Python's operators, for formulas."""

    __slots__ = ("lane", "s")

    def __init__(self, s: Scalars, lane: Lane) -> None:
        self.s = s
        self.lane = lane

    def _with(self, other: _Real | float) -> Lane:
        return other.lane if isinstance(other, _Real) else self.s.constant(self.lane, other)

    def _two(self, name: str, other: _Real | float) -> _Real:
        return _Real(self.s, self.s.binary(name, self.lane, self._with(other)))

    def __add__(self, other: _Real | float) -> _Real:
        return self._two("add", other)

    def __sub__(self, other: _Real | float) -> _Real:
        return self._two("sub", other)

    def __mul__(self, other: _Real | float) -> _Real:
        return self._two("mul", other)

    def __truediv__(self, other: _Real | float) -> _Real:
        return self._two("div", other)

    def __rsub__(self, other: float) -> _Real:
        return _Real(self.s, self._with(other)) - self

    def __neg__(self) -> _Real:
        return self.call("neg")

    def call(self, name: str, *others: _Real | float) -> _Real:
        return _Real(self.s, self.s.math(name, self.lane, *[self._with(other) for other in others]))

    def test(self, name: str) -> Lane:
        return self.s.math(name, self.lane)

    def compare(self, predicate: str, other: _Real | float) -> Lane:
        return self.s.compare(predicate, self.lane, self._with(other))

    def where(self, pred: Lane, other: _Real | float) -> _Real:
        """`self` where `pred`, else `other`."""
        return _Real(self.s, self.s.select(pred, self.lane, self._with(other)))


Pair = tuple[_Real, _Real]


def _split(s: Scalars, z: Lane) -> Pair:
    part = real_dtype(z.dtype)
    assert z.im is not None
    return _Real(s, Lane(part, z.re)), _Real(s, Lane(part, z.im))


def _join(z: Pair) -> Lane:
    re, im = z
    return Lane(np.result_type(re.lane.dtype, np.complex64), re.lane.re, im.lane.re)


# ------------------------------------------------------------------ arithmetic


def arithmetic(b: FunctionBuilder, name: str, x: Lane, y: Lane) -> Lane:
    """`add sub mul div` of complex numbers."""
    assert x.im is not None
    assert y.im is not None
    match name:
        case "add":
            return Lane(x.dtype, b.fadd(x.re, y.re), b.fadd(x.im, y.im))
        case "sub":
            return Lane(x.dtype, b.fsub(x.re, y.re), b.fsub(x.im, y.im))
        case "mul":
            re = b.fsub(b.fmul(x.re, y.re), b.fmul(x.im, y.im))
            return Lane(x.dtype, re, b.fadd(b.fmul(x.re, y.im), b.fmul(x.im, y.re)))
        case "div":
            return _quotient(b, x.dtype, (x.re, x.im), (y.re, y.im))
    raise CodegenError(f"no instruction for {name} of {x.dtype}")


def _quotient(b: FunctionBuilder, dtype: DType, x: tuple[V, V], y: tuple[V, V]) -> Lane:
    """Smith's quotient: scaled by the larger part of the divisor; a divisor of 0 gives x/0 part by part."""
    size_re, size_im = b.intrinsic("fabs", y[0]), b.intrinsic("fabs", y[1])
    by_re = b.fcmp("oge", size_re, size_im)
    large, small = b.select(by_re, y[0], y[1]), b.select(by_re, y[1], y[0])
    ratio = b.fdiv(small, large)
    scale = b.rfdiv(1.0, b.fadd(large, b.fmul(small, ratio)))
    first, second = b.select(by_re, x[0], x[1]), b.select(by_re, x[1], x[0])
    re = b.fmul(b.fadd(first, b.fmul(second, ratio)), scale)
    cross = b.fsub(second, b.fmul(first, ratio))
    im = b.fmul(b.select(by_re, cross, b.fneg(cross)), scale)
    zero = b.and_(b.fcmp("oeq", size_re, 0.0), b.fcmp("oeq", size_im, 0.0))
    return Lane(
        dtype, b.select(zero, b.fdiv(x[0], size_re), re), b.select(zero, b.fdiv(x[1], size_re), im)
    )


def compare(s: Scalars, predicate: str, x: Lane, y: Lane) -> Lane:
    """Equality of both parts; order by the real, then by the imaginary part, NaN in either below nothing."""
    b = s.b
    (xr, xi), (yr, yi) = _split(s, x), _split(s, y)
    if predicate == "equal":
        return _logic(b, "and_", xr.compare("equal", yr), xi.compare("equal", yi))
    if predicate == "not_equal":
        return _logic(b, "or_", xr.compare("not_equal", yr), xi.compare("not_equal", yi))
    strict = predicate.removesuffix("_equal")
    known = Lane(BOOL, b.fcmp("ord", xi.lane.re, yi.lane.re))
    first = _logic(b, "and_", xr.compare(strict, yr), known)
    tie = _logic(b, "and_", xr.compare("equal", yr), xi.compare(predicate, yi))
    return _logic(b, "or_", first, tie)


def _logic(b: FunctionBuilder, name: str, x: Lane, y: Lane) -> Lane:
    operation: Callable[[V, V], V] = getattr(b, name)
    return Lane(BOOL, operation(x.re, y.re))


# ------------------------------------------------------------------ functions


def _log_modulus(x: _Real, y: _Real) -> _Real:
    """log |x + iy|; near the unit circle through log1p, where the plain logarithm would cancel."""
    modulus = x.call("hypot", y)
    ax, ay = x.call("abs"), y.call("abs")
    large, small = ax.call("fmax", ay), ax.call("fmin", ay)
    near = ((large - 1.0) * (large + 1.0) + small * small).call("log1p") * 0.5
    s = x.s
    close = _logic(s.b, "and_", modulus.compare("greater", 0.7), modulus.compare("less", 1.4))
    return near.where(close, modulus.call("log"))


def _log(s: Scalars, z: Pair) -> Pair:
    x, y = z
    return _log_modulus(x, y), y.call("arctan2", x)


def _exp(s: Scalars, z: Pair) -> Pair:
    """e^x (cos y + i sin y); a zero imaginary part stays zero, also beside an infinite modulus."""
    x, y = z
    size = x.call("exp")
    real_axis = y.compare("equal", 0.0)
    return size.where(real_axis, size * y.call("cos")), y.where(real_axis, size * y.call("sin"))


def _sqrt(s: Scalars, z: Pair) -> Pair:
    """The root with a non-negative real part; the cut is the negative real axis, on the side of the zero's sign."""
    x, y = z
    ax = x.call("abs")
    root = ((x.call("hypot", y) * 0.5) + (ax * 0.5)).call("sqrt")
    zero = root.compare("equal", 0.0)
    other = (y * 0.5) / root.where(s.math("invert", zero), 1.0)
    right = x.compare("greater_equal", 0.0)
    re = root.where(right, other.call("abs"))
    im = other.where(right, root.call("copysign", y))
    infinite = y.test("isinf")
    return y.call("abs").where(infinite, re), y.where(infinite, y.where(zero, im))


def _sinh(s: Scalars, z: Pair) -> Pair:
    x, y = z
    return x.call("sinh") * y.call("cos"), x.call("cosh") * y.call("sin")


def _cosh(s: Scalars, z: Pair) -> Pair:
    x, y = z
    return x.call("cosh") * y.call("cos"), x.call("sinh") * y.call("sin")


def _tanh(s: Scalars, z: Pair) -> Pair:
    """Kahan's form: with t = tan y, beta = 1 + t*t, u = sinh x; saturated from |x| = 20 on."""
    x, y = z
    limited = x.call("minimum", 20.0).call("maximum", -20.0)
    t, u = y.call("tan"), limited.call("sinh")
    beta = t * t + 1.0
    rho = (u * u + 1.0).call("sqrt")
    below = beta * u * u + 1.0
    pole = t.test("isinf")
    re = (rho / u).where(pole, beta * rho * u / below)
    im = (1.0 - (t - t + 1.0)).where(pole, t / below)
    far = x.call("abs").compare("greater", 20.0)
    one = _Real(s, s.constant(x.lane, 1.0)).call("copysign", x)
    return one.where(far, re), im


def _times_i(z: Pair) -> Pair:
    return -z[1], z[0]


def _over_i(z: Pair) -> Pair:
    return z[1], -z[0]


def _rotated(rule: Callable[[Scalars, Pair], Pair]) -> Callable[[Scalars, Pair], Pair]:
    """f(z) = g(iz) / i: sin from sinh, tan from tanh, arcsin from arcsinh, arctan from arctanh."""
    return lambda s, z: _over_i(rule(s, _times_i(z)))


def _arctanh(s: Scalars, z: Pair) -> Pair:
    """Real part log1p(4x / ((1-x)^2 + y^2)) / 4, odd in x; imaginary part from the two angles."""
    x, y = z
    size = x.call("abs")
    gap = 1.0 - size
    quarter = ((size * 4.0) / (gap * gap + y * y)).call("log1p") * 0.25
    angle = (y * 2.0).call("arctan2", gap * (size + 1.0) - y * y) * 0.5
    return quarter.call("copysign", x), angle


def _minus_root(s: Scalars, z: Pair) -> Pair:
    return _sqrt(s, (1.0 - z[0], -z[1]))


def _plus_root(s: Scalars, z: Pair) -> Pair:
    return _sqrt(s, (z[0] + 1.0, z[1]))


def _arcsin(s: Scalars, z: Pair) -> Pair:
    (a, b), (c, d) = _minus_root(s, z), _plus_root(s, z)
    return z[0].call("arctan2", a * c - b * d), (a * d - b * c).call("arcsinh")


def _arccos(s: Scalars, z: Pair) -> Pair:
    (a, b), (c, d) = _minus_root(s, z), _plus_root(s, z)
    return a.call("arctan2", c) * 2.0, (c * b - d * a).call("arcsinh")


def _arccosh(s: Scalars, z: Pair) -> Pair:
    (a, b), (c, d) = _sqrt(s, (z[0] - 1.0, z[1])), _plus_root(s, z)
    return (a * c + b * d).call("arcsinh"), b.call("arctan2", c) * 2.0


def _arcsinh(s: Scalars, z: Pair) -> Pair:
    return _over_i(_arcsin(s, _times_i(z)))


def _scaled(rule: Callable[[Scalars, Pair], Pair], inner: float, outer: float) -> Callable[[Scalars, Pair], Pair]:
    def scaled(s: Scalars, z: Pair) -> Pair:
        re, im = rule(s, (z[0] * inner, z[1] * inner) if inner != 1.0 else z)
        return (re * outer, im * outer) if outer != 1.0 else (re, im)

    return scaled


def _expm1(s: Scalars, z: Pair) -> Pair:
    """expm1(x) cos y - 2 sin(y/2)^2: exact near 0."""
    x, y = z
    half = (y * 0.5).call("sin")
    return x.call("expm1") * y.call("cos") - half * half * 2.0, x.call("exp") * y.call("sin")


def _log1p(s: Scalars, z: Pair) -> Pair:
    """log1p(x (2 + x) + y^2) / 2 near 0, else log(1 + z)."""
    x, y = z
    near = (x * (x + 2.0) + y * y).call("log1p") * 0.5
    close = (x.call("abs") + y.call("abs")).compare("less", 0.5)
    shifted = x + 1.0
    return near.where(close, _log_modulus(shifted, y)), y.call("arctan2", shifted)


def _sign(s: Scalars, z: Pair) -> Pair:
    """z / |z|. One infinite part decides alone; of two there is no direction."""
    x, y = z
    modulus = x.call("hypot", y)
    apart = s.math("invert", modulus.compare("equal", 0.0))
    safe = modulus.where(apart, 1.0)
    zero = _Real(s, s.constant(x.lane, 0.0))
    far_x, far_y = x.test("isinf"), y.test("isinf")
    only_x = _logic(s.b, "and_", far_x, s.math("invert", far_y))
    only_y = _logic(s.b, "and_", far_y, s.math("invert", far_x))
    re, im = [(part / safe).where(apart, 0.0) for part in (x, y)]
    return zero.where(only_y, x.call("sign").where(only_x, re)), zero.where(only_x, y.call("sign").where(only_y, im))


_FUNCTIONS: Mapping[str, Callable[[Scalars, Pair], Pair]] = {
    "neg": lambda s, z: (-z[0], -z[1]),
    "conj": lambda s, z: (z[0], -z[1]),
    "sign": _sign,
    "sqrt": _sqrt,
    "exp": _exp,
    "exp2": _scaled(_exp, pymath.log(2.0), 1.0),
    "expm1": _expm1,
    "log": _log,
    "log2": _scaled(_log, 1.0, 1.0 / pymath.log(2.0)),
    "log10": _scaled(_log, 1.0, 1.0 / pymath.log(10.0)),
    "log1p": _log1p,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sin": _rotated(_sinh),
    "cos": lambda s, z: _cosh(s, _times_i(z)),
    "tan": _rotated(_tanh),
    "arcsinh": _arcsinh,
    "arcsin": _arcsin,
    "arccos": _arccos,
    "arccosh": _arccosh,
    "arctanh": _arctanh,
    "arctan": _rotated(_arctanh),
}


def math(s: Scalars, name: str, args: tuple[Lane, ...], n: int | None) -> Lane:
    """A function of complex numbers by the op's name."""
    z = args[0]
    x, y = _split(s, z)
    if name in ("real", "imag"):
        return (x if name == "real" else y).lane
    if name == "abs":
        return x.call("hypot", y).lane
    if name in ("isnan", "isinf"):
        return _logic(s.b, "or_", x.test(name), y.test(name))
    if name == "isfinite":
        return _logic(s.b, "and_", x.test(name), y.test(name))
    if name == "integer_pow":
        return _integer_pow(s, z, n or 0)
    if name == "pow":
        return _pow(s, z, args[1])
    if name not in _FUNCTIONS:
        raise CodegenError(f"{name} has no meaning for {z.dtype}")
    return _join(_FUNCTIONS[name](s, (x, y)))


def _integer_pow(s: Scalars, z: Lane, n: int) -> Lane:
    one = lane_constant(z.dtype, 1.0, z.lanes)
    if n == 0:
        return one
    power = power_by_squaring(z, abs(n), lambda x, y: s.binary("mul", x, y))
    return power if n > 0 else s.binary("div", one, power)


def _pow(s: Scalars, z: Lane, w: Lane) -> Lane:
    """exp(w log z); z**0 is 1, 0**w is 0 for a positive real part of w, else NaN."""
    u, _ = _split(s, w)
    general = _join(_exp(s, _split(s, s.binary("mul", w, _join(_log(s, _split(s, z)))))))
    zero = lane_constant(z.dtype, 0.0, z.lanes)
    nan = lane_constant(z.dtype, complex(pymath.nan, pymath.nan), z.lanes)
    at_zero = s.select(u.compare("greater", 0.0), zero, nan)
    result = s.select(compare(s, "equal", z, zero), at_zero, general)
    return s.select(compare(s, "equal", w, zero), lane_constant(z.dtype, 1.0, z.lanes), result)
