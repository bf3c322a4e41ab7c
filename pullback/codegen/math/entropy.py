"""Products with logarithms that are 0 where the factor is 0: xlogy, xlog1py, entr, rel_entr, kl_div."""

from __future__ import annotations

from collections.abc import Callable

from pullback.codegen.llvm import FunctionBuilder, Operand, V
from pullback.codegen.math.kit import (
    INF,
    NAN,
    Pair,
    constant,
    format_of,
    helper,
    name_of,
    patch_rare,
    two_sum,
)
from pullback.codegen.math.log import log, log1p, log_of_pair


def xlogy(b: FunctionBuilder, x: V, y: V) -> V:
    """x log(y)."""
    return product(b, x, y, log)


def xlog1py(b: FunctionBuilder, x: V, y: V) -> V:
    """x log(1 + y)."""
    return product(b, x, y, log1p)


def product(b: FunctionBuilder, x: V, y: V, logarithm: Callable[[FunctionBuilder, V], V]) -> V:
    """The product, and 0 where x is 0 and y a number; there no logarithm is taken, so that it meets no rare case."""
    zero = b.and_(b.fcmp("oeq", x, 0.0), b.fcmp("ord", y, y))
    return b.select(zero, 0.0, b.fmul(x, logarithm(b, b.select(zero, 1.0, y))))


def entr(b: FunctionBuilder, x: V) -> V:
    """-x log(x); -inf below 0."""
    positive = b.fcmp("ogt", x, 0.0)
    value = b.fneg(b.fmul(x, log(b, b.select(positive, x, 1.0))))
    rest = b.select(b.fcmp("olt", x, 0.0), constant(x, -INF), b.fadd(x, 0.0))
    return b.select(positive, value, rest)


def rel_entr(b: FunctionBuilder, x: V, y: V) -> V:
    """x log(x / y) for x > 0 and y > 0, 0 for x = 0 and y >= 0, else inf."""
    both, u, v = inside(b, x, y)
    return with_ends(b, x, y, both, b.fmul(u, log_of_quotient(b, u, v)), 0.0)


def kl_div(b: FunctionBuilder, x: V, y: V) -> V:
    """x log(x / y) - x + y for x > 0 and y > 0, y for x = 0 and y >= 0, else inf."""
    both, u, v = inside(b, x, y)
    difference = two_sum(b, v, b.fneg(u))
    value = b.fadd(b.fma(u, log_of_quotient(b, u, v), difference.hi), difference.lo)
    value = b.select(b.fcmp("ult", difference.hi, INF), value, INF)
    return with_ends(b, x, y, both, value, y)


def inside(b: FunctionBuilder, x: V, y: V) -> tuple[V, V, V]:
    """Where both are positive; the two there, and 1 elsewhere."""
    both = b.and_(b.fcmp("ogt", x, 0.0), b.fcmp("ogt", y, 0.0))
    return both, b.select(both, x, 1.0), b.select(both, y, 1.0)


def with_ends(b: FunctionBuilder, x: V, y: V, both: V, value: V, at_zero: Operand) -> V:
    edge = b.and_(b.fcmp("oeq", x, 0.0), b.fcmp("oge", y, 0.0))
    result = b.select(both, value, INF)
    result = b.select(edge, at_zero, result)
    return b.select(b.fcmp("uno", x, y), NAN, result)


def log_of_quotient(b: FunctionBuilder, x: V, y: V) -> V:
    """log(x / y) for positive x and y, accurate also where they are close."""
    common, usual = log_of_near(b, x, y)

    def write(inner: FunctionBuilder) -> None:
        """Small or large ones scaled; by two logarithms where they are far apart."""
        u, v = inner.params
        fmt = format_of(u)
        power = 2.0 ** (fmt.bias // 2)
        small, large = (inner.and_(inner.fcmp(p, u, 1.0), inner.fcmp(p, v, 1.0)) for p in ("olt", "ogt"))
        factor = inner.select(small, constant(u, power), inner.select(large, constant(u, 1.0 / power), 1.0))
        scaled, fits = log_of_near(inner, inner.fmul(u, factor), inner.fmul(v, factor))
        inner.ret(inner.select(fits, scaled, inner.fsub(log(inner, u), log(inner, v))))

    (result,) = patch_rare(
        b, b.not_(usual), [common], lambda: [helper(b, name_of("log_quotient.any", x.type), x.type, [x, y], write)]
    )
    return result


def log_of_near(b: FunctionBuilder, x: V, y: V) -> tuple[V, V]:
    """log(x / y), and where nothing overflows or underflows on the way, so that it holds."""
    size = 0.85 * format_of(x).bias
    low, high = 2.0**-size, 2.0**size
    quotient = b.fdiv(x, y)
    rest = b.fdiv(b.fma(b.fneg(quotient), y, x), y)
    usual = b.and_(b.fcmp("ogt", quotient, low), b.fcmp("olt", quotient, high))
    for value in (x, y):
        usual = b.and_(usual, b.and_(b.fcmp("ogt", value, low), b.fcmp("olt", value, high)))
    return log_of_pair(b, Pair(quotient, rest), None), usual
