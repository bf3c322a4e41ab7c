"""log and log1p: `x = 2**k m` with m between sqrt(1/2) and sqrt(2), and atanh of (m - 1) / (m + 1)."""

from __future__ import annotations

from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import coefficients as c
from pullback.codegen.math.kit import (
    INF,
    NAN,
    Pair,
    constant,
    copysign,
    fast_two_sum,
    format_of,
    from_bits,
    helper,
    horner,
    name_of,
    patch_rare,
    polynomial,
    to_bits,
    two_product,
    two_sum,
)
from pullback.record import record

SQRT_HALF = 0.7071067811865476

# log(2) = hi + lo, where hi has so few bits that a product with an exponent is exact.
LN2 = {
    "double": (float.fromhex("0x1.62e42fefa38p-1"), float.fromhex("0x1.ef35793c7673p-45")),
    "float": (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20")),
}


@record(frozen=True)
class Split:
    """x = 2**k m. `raw` is the integer that holds k plus the bias."""

    k: V
    m: V
    raw: V

    def shifted(self, b: FunctionBuilder, power: V) -> Split:
        """The same times 2**power."""
        return Split(b.fadd(self.k, power), self.m, self.raw)


def split(b: FunctionBuilder, x: V) -> Split:
    """Exponent and significand of a positive normal number, the significand around 1."""
    fmt = format_of(x)
    low = fmt.bits_of(SQRT_HALF)
    shifted = b.add(to_bits(b, x), fmt.bits_of(1.0) - low)
    raw = b.lshr(shifted, fmt.mantissa)
    m = from_bits(b, b.add(b.and_(shifted, fmt.mantissa_mask), low))
    whole = 2.0**fmt.mantissa
    k = b.fsub(from_bits(b, b.or_(raw, fmt.bits_of(whole))), whole + fmt.bias)
    return Split(k, m, raw)


def normalised(b: FunctionBuilder, x: V) -> tuple[V, V]:
    """Subnormal numbers scaled up to normal ones, and the power of two (0 or negative) to add to the exponent."""
    fmt = format_of(x)
    small = b.fcmp("olt", x, fmt.min_normal)
    power = fmt.mantissa + 2
    return b.select(small, b.fmul(x, 2.0**power), x), b.select(small, constant(x, -float(power)), constant(x, 0.0))


def log_correction(b: FunctionBuilder, f: V, more: V | None) -> V:
    """f - log(1 + f) - more: f**2/2 - s (f**2/2 + R) with s = f / (2 + f)."""
    s = b.fdiv(f, b.fadd(f, 2.0))
    z = b.fmul(s, s)
    half_square = b.fmul(b.fmul(f, 0.5), f)
    tail = b.fma(z, polynomial(b, z, c.LOG_TAIL), half_square)
    return b.fsub(half_square, b.fmul(s, tail) if more is None else b.fma(s, tail, more))


def log_of_parts(b: FunctionBuilder, k: V, f: V, f_lo: V | None) -> V:
    """k log(2) + log(1 + f + f_lo); k log(2) and f are added without error."""
    hi, lo = LN2[format_of(f).name]
    correction = log_correction(b, f, b.fmul(k, lo))
    total = fast_two_sum(b, b.fmul(k, hi), f)
    rest = total.lo if f_lo is None else b.fadd(total.lo, f_lo)
    return b.fadd(total.hi, b.fsub(rest, correction))


# 2 / log(2) and a third of it, each as a sum of two
LOG2_FIRST = (2.8853900817779268, 4.0710547481862066e-17)
LOG2_SECOND = (0.9617966939259756, 5.0577616648125907e-17)


def log2_pair(b: FunctionBuilder, parts: Split) -> Pair:
    """log2(x) of doubles with about 68 good bits.

    s = (m - 1) / (m + 1) is kept as a pair through the first two terms of 2 atanh(s) / log(2); the others are small
    enough for one number.
    """
    f = b.fsub(parts.m, 1.0)
    below = fast_two_sum(b, constant(f, 2.0), f)
    inverse = b.rfdiv(1.0, below.hi)
    s = b.fmul(f, inverse)
    s_lo = b.fmul(inverse, b.fma(b.fneg(s), below.lo, b.fma(b.fneg(s), below.hi, f)))
    z = two_product(b, s, s)
    z_lo = b.fma(b.fmul(s, 2.0), s_lo, z.lo)
    factor_lo = b.fma(z.hi, polynomial(b, z.hi, c.LOG2_THIRD), LOG2_SECOND[1])
    factor = fast_two_sum(b, constant(s, LOG2_SECOND[0]), factor_lo)
    cube = two_product(b, z.hi, factor.hi)
    cube_lo = b.fma(z.hi, factor.lo, b.fma(z_lo, factor.hi, cube.lo))
    first = fast_two_sum(b, constant(s, LOG2_FIRST[0]), cube.hi)
    first_lo = b.fadd(first.lo, b.fadd(cube_lo, LOG2_FIRST[1]))
    product = two_product(b, s, first.hi)
    product_lo = b.fma(s, first_lo, b.fma(s_lo, first.hi, product.lo))
    total = fast_two_sum(b, parts.k, product.hi)
    return fast_two_sum(b, total.hi, b.fadd(total.lo, product_lo))


def log2_short(b: FunctionBuilder, parts: Split) -> V:
    """log2(x) of doubles with 37 good bits, for what becomes a float."""
    f = b.fsub(parts.m, 1.0)
    s = b.fdiv(f, b.fadd(f, 2.0))
    z = b.fmul(s, s)
    series = horner(b, z, (LOG2_FIRST[0], LOG2_SECOND[0], *c.LOG2_SHORT["double"]))
    return b.fma(s, series, parts.k)


def patch_log_ends(b: FunctionBuilder, x: V, result: V) -> V:
    """-inf at zero, NaN below it, inf and NaN kept."""
    result = b.select(b.fcmp("olt", x, INF), result, x)
    ends = b.select(b.fcmp("oeq", x, 0.0), constant(x, -INF), constant(x, NAN))
    return b.select(b.fcmp("ole", x, 0.0), ends, result)


def log(b: FunctionBuilder, x: V) -> V:
    parts = split(b, x)
    common = log_of_parts(b, parts.k, b.fsub(parts.m, 1.0), None)
    (result,) = patch_rare(
        b, is_rare(b, x), [common], lambda: [helper(b, name_of("log.any", x.type), x.type, [x], write_log)]
    )
    return result


def is_rare(b: FunctionBuilder, x: V) -> V:
    """Mask: not a positive normal number."""
    fmt = format_of(x)
    low = fmt.bits_of(fmt.min_normal)
    return b.icmp("uge", b.sub(to_bits(b, x), low), fmt.exponent_mask - low)


def write_log(b: FunctionBuilder) -> None:
    """log for any argument."""
    (x,) = b.params
    normal, power = normalised(b, x)
    parts = split(b, normal)
    result = log_of_parts(b, b.fadd(parts.k, power), b.fsub(parts.m, 1.0), None)
    b.ret(patch_log_ends(b, x, result))


def split_sum(b: FunctionBuilder, x: Pair) -> tuple[V, V, V]:
    """k, f and f_lo with hi + lo = (1 + f + f_lo) 2**k, for positive normal `hi`."""
    fmt = format_of(x.hi)
    parts = split(b, x.hi)
    # 2**-k; what a number near the largest has lost is nothing
    exponent = b.intrinsic("smax", b.rsub(2 * fmt.bias, parts.raw), 0)
    lost = b.fmul(x.lo, from_bits(b, b.shl(exponent, fmt.mantissa)))
    f = fast_two_sum(b, b.fsub(parts.m, 1.0), lost)
    return parts.k, f.hi, f.lo


def log_of_pair(b: FunctionBuilder, x: Pair, doublings: V | None) -> V:
    """log((hi + lo) 2**doublings) for positive normal `hi`; accurate near 1 if `lo` is accurate."""
    k, f, f_lo = split_sum(b, x)
    return log_of_parts(b, k if doublings is None else b.fadd(k, doublings), f, f_lo)


def log1p(b: FunctionBuilder, x: V) -> V:
    """log(1 + x): the bits that 1 + x loses are scaled and carried along."""
    common = copysign(b, log_of_pair(b, two_sum(b, constant(x, 1.0), x), None), x)
    usual = b.and_(b.fcmp("ogt", x, -1.0), b.fcmp("olt", x, INF))
    (result,) = patch_rare(b, b.not_(usual), [common], lambda: [patch_log1p_ends(b, x, common)])
    return result


def log2(b: FunctionBuilder, x: V) -> V:
    return log_in_base(b, x, TWO)


def log10(b: FunctionBuilder, x: V) -> V:
    return log_in_base(b, x, TEN)


@record(frozen=True)
class Base:
    """Constants of a logarithm: 1 / log(base), and log(2) / log(base) with a short first part, as sums of two."""

    name: str
    inverse: dict[str, tuple[float, float]]
    of_two: dict[str, tuple[float, float]]


TWO = Base(
    "log2",
    {
        "double": (float.fromhex("0x1.71547652b82fep+0"), float.fromhex("0x1.777d0ffda0d24p-56")),
        "float": (float.fromhex("0x1.715476p+0"), float.fromhex("0x1.4ae0bep-26")),
    },
    {"double": (1.0, 0.0), "float": (1.0, 0.0)},
)
TEN = Base(
    "log10",
    {
        "double": (float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57")),
        "float": (float.fromhex("0x1.bcb7b2p-2"), float.fromhex("-0x1.5b235ep-27")),
    },
    {
        "double": (float.fromhex("0x1.34413509f7p-2"), float.fromhex("0x1.3fde623e2566bp-43")),
        "float": (float.fromhex("0x1.3440p-2"), float.fromhex("0x1.3509f8p-18")),
    },
)


def log_in_base(b: FunctionBuilder, x: V, base: Base) -> V:
    common = log_of_positive(b, x, base, None)

    def any_argument(inner: FunctionBuilder) -> None:
        (y,) = inner.params
        normal, power = normalised(inner, y)
        inner.ret(patch_log_ends(inner, y, log_of_positive(inner, normal, base, power)))

    name = name_of(f"{base.name}.any", x.type)
    (result,) = patch_rare(b, is_rare(b, x), [common], lambda: [helper(b, name, x.type, [x], any_argument)])
    return result


def log_of_positive(b: FunctionBuilder, x: V, base: Base, power: V | None) -> V:
    """The logarithm of a positive normal number times 2**power, exact for powers of two in base 2."""
    parts = split(b, x)
    k = parts.k if power is None else b.fadd(parts.k, power)
    return in_base(b, k, b.fsub(parts.m, 1.0), None, base)


def in_base(b: FunctionBuilder, k: V, f: V, f_lo: V | None, base: Base) -> V:
    """The logarithm of (1 + f + f_lo) 2**k."""
    name = format_of(f).name
    (scale_hi, scale_lo), (two_hi, two_lo) = base.inverse[name], base.of_two[name]
    correction = log_correction(b, f, None)
    log = fast_two_sum(b, f, b.fneg(correction) if f_lo is None else b.fsub(f_lo, correction))
    product = two_product(b, log.hi, constant(f, scale_hi))
    total = fast_two_sum(b, b.fmul(k, two_hi), product.hi)
    rest = b.fma(log.hi, scale_lo, b.fma(log.lo, scale_hi, product.lo))
    return b.fadd(total.hi, b.fadd(total.lo, b.fma(k, two_lo, rest)))


def log_pair_of_positive(b: FunctionBuilder, x: V, power: V | None = None) -> Pair:
    """log of positive normal numbers times 2**power with some bits more than one number has."""
    parts = split(b, x)
    k = parts.k if power is None else b.fadd(parts.k, power)
    hi, lo = LN2[format_of(x).name]
    f = b.fsub(parts.m, 1.0)
    correction = log_correction(b, f, b.fmul(k, lo))
    total = fast_two_sum(b, b.fmul(k, hi), f)
    return fast_two_sum(b, total.hi, b.fsub(total.lo, correction))


def log2_of_1p(b: FunctionBuilder, x: V) -> V:
    """log2(1 + x) for 0 <= x <= 1 or NaN."""
    parts = split_sum(b, two_sum(b, constant(x, 1.0), x))
    return b.select(b.fcmp("uno", x, x), x, in_base(b, *parts, TWO))


def patch_log1p_ends(b: FunctionBuilder, x: V, result: V) -> V:
    """-inf at -1, NaN below it, inf and NaN kept."""
    result = b.select(b.fcmp("olt", x, INF), result, x)
    ends = b.select(b.fcmp("oeq", x, -1.0), constant(x, -INF), constant(x, NAN))
    return b.select(b.fcmp("ole", x, -1.0), ends, result)
