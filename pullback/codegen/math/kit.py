"""What the math functions are built from: float formats, polynomials, error-free sums and products, scaling.

Everything is generic in the vector width and in the float format: a value's type says both. `fma` must be one
rounding; the reductions and the error-free transformations depend on it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from sys import byteorder
from typing import NamedTuple

from pullback.codegen.llvm import (
    FunctionBuilder,
    Operand,
    V,
    const,
    const_lanes,
    element_of,
    lanes_of,
    suffix_of,
    with_element,
)
from pullback.codegen.math.coefficients import Coefficients
from pullback.codegen.math.pieces import Rows
from pullback.record import record

# Shorter polynomials are not split into even and odd powers.
SHORTEST_TO_SPLIT = 7

INF, NAN = float("inf"), float("nan")


@record(frozen=True)
class Format:
    """A binary float format.

    Attributes
    ----------
    name, integer : LLVM types of the float and of the integer of that size
    bits, mantissa, bias : size, explicit bits of the significand, exponent bias
    round_magic : adding and subtracting it rounds to the nearest integer, which is then in the low bits
    min_normal : smallest normal number
    """

    name: str
    integer: str
    bits: int
    mantissa: int
    bias: int
    round_magic: float
    min_normal: float

    def bits_of(self, number: float) -> int:
        """The number's pattern as an unsigned integer."""
        return int.from_bytes(self.pack(number), byteorder)

    def pack(self, number: float) -> bytes:
        """The number in memory."""
        return struct.pack("=d" if self.bits == 64 else "=f", number)

    @property
    def exponent_mask(self) -> int:
        return self.bits_of(INF)

    @property
    def mantissa_mask(self) -> int:
        return (1 << self.mantissa) - 1

    @property
    def sign_mask(self) -> int:
        return -(1 << (self.bits - 1))


DOUBLE = Format("double", "i64", 64, 52, 1023, 1.5 * 2.0**52, 2.0**-1022)
FLOAT = Format("float", "i32", 32, 23, 127, 1.5 * 2.0**23, 2.0**-126)


def format_of(x: V) -> Format:
    """The float format of a value, scalar or vector."""
    return DOUBLE if element_of(x.type) == "double" else FLOAT


class Pair(NamedTuple):
    """An unevaluated sum `hi + lo` where `lo` is at most about half a unit in the last place of `hi`."""

    hi: V
    lo: V


# --- bits -----------------------------------------------------------------------------------------------------------


def to_bits(b: FunctionBuilder, x: V) -> V:
    """The pattern of a float as an integer."""
    return b.bitcast(x, with_element(x.type, format_of(x).integer))


def from_bits(b: FunctionBuilder, bits: V) -> V:
    """The float with that pattern."""
    return b.bitcast(bits, with_element(bits.type, "double" if element_of(bits.type) == "i64" else "float"))


def sign_bits(b: FunctionBuilder, x: V) -> V:
    """Pattern that holds the sign bit of `x` alone."""
    return b.and_(to_bits(b, x), format_of(x).sign_mask)


def flip_sign(b: FunctionBuilder, x: V, sign: V) -> V:
    """`x`, negated where the sign bit of the pattern `sign` is set (its other bits must be zero)."""
    return from_bits(b, b.xor(to_bits(b, x), sign))


def fabs(b: FunctionBuilder, x: V) -> V:
    return b.intrinsic("fabs", x)


def sqrt(b: FunctionBuilder, x: V) -> V:
    return b.intrinsic("sqrt", x)


def copysign(b: FunctionBuilder, size: V, sign: V) -> V:
    return b.intrinsic("copysign", size, sign)


def is_odd(b: FunctionBuilder, n: V) -> V:
    """Mask: is the integer odd."""
    return b.icmp("ne", b.and_(n, 1), 0)


def constant(x: V, number: float) -> V:
    """A constant of the type of `x`."""
    return const(x.type, number)


# --- comparison -----------------------------------------------------------------------------------------------------


def at_most(b: FunctionBuilder, x: V, limit: float) -> V:
    """The smaller of both; NaN stays NaN."""
    return b.select(b.fcmp("ogt", x, limit), limit, x)


def at_least(b: FunctionBuilder, x: V, limit: float) -> V:
    """The larger of both; NaN stays NaN."""
    return b.select(b.fcmp("olt", x, limit), limit, x)


# --- polynomials ----------------------------------------------------------------------------------------------------


def horner(b: FunctionBuilder, x: V, coefficients: Sequence[Operand]) -> V:
    """Polynomial with the given coefficients, lowest first: one fma each."""
    total: Operand = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = b.fma(x, total, coefficient)
    return total if isinstance(total, V) else constant(x, total)


def even_odd(b: FunctionBuilder, x: V, coefficients: Sequence[Operand]) -> V:
    """The same in half the time: even and odd powers apart, for one product more."""
    if len(coefficients) < SHORTEST_TO_SPLIT:
        return horner(b, x, coefficients)
    square = b.fmul(x, x)
    even, odd = (horner(b, square, coefficients[start::2]) for start in (0, 1))
    return b.fma(x, odd, even)


def polynomial(b: FunctionBuilder, x: V, table: Coefficients) -> V:
    """A fitted polynomial in the format of `x`."""
    return even_odd(b, x, table[format_of(x).name])


# --- error-free transformations -------------------------------------------------------------------------------------


def fast_two_sum(b: FunctionBuilder, x: V, y: V) -> Pair:
    """`x + y` exactly, where |x| >= |y| or x is zero."""
    total = b.fadd(x, y)
    return Pair(total, b.fadd(b.fsub(x, total), y))


def two_sum(b: FunctionBuilder, x: V, y: V) -> Pair:
    """`x + y` exactly."""
    total = b.fadd(x, y)
    of_y = b.fsub(total, x)
    of_x = b.fsub(total, of_y)
    return Pair(total, b.fadd(b.fsub(x, of_x), b.fsub(y, of_y)))


def two_product(b: FunctionBuilder, x: V, y: V) -> Pair:
    """`x * y` exactly, barring underflow."""
    product = b.fmul(x, y)
    return Pair(product, b.fma(x, y, b.fneg(product)))


def pair_sum(b: FunctionBuilder, x: Pair, y: Pair) -> Pair:
    """`x + y` to about twice the working precision, barring cancellation."""
    total = two_sum(b, x.hi, y.hi)
    return fast_two_sum(b, total.hi, b.fadd(total.lo, b.fadd(x.lo, y.lo)))


def pair_product(b: FunctionBuilder, x: Pair, y: Pair) -> Pair:
    """`x * y` to about twice the working precision."""
    product = two_product(b, x.hi, y.hi)
    return fast_two_sum(b, product.hi, b.fma(x.hi, y.lo, b.fma(x.lo, y.hi, product.lo)))


def pair_inverse(b: FunctionBuilder, x: Pair) -> Pair:
    """`1 / x` to about twice the working precision."""
    inverse = b.rfdiv(1.0, x.hi)
    rest = b.fma(b.fneg(inverse), x.lo, b.fma(b.fneg(inverse), x.hi, 1.0))
    return Pair(inverse, b.fmul(rest, inverse))


def pair_power(b: FunctionBuilder, x: Pair, n: int) -> Pair:
    """`x**n` for n >= 1 by repeated squaring, to about twice the working precision."""
    result: Pair | None = None
    while True:
        if n & 1:
            result = x if result is None else pair_product(b, result, x)
        n >>= 1
        if not n:
            break
        x = pair_product(b, x, x)
    return result or x


def pair_quotient(b: FunctionBuilder, n: Pair, d: Pair) -> V:
    """`(n.hi + n.lo) / (d.hi + d.lo)` with an error barely above half a unit in the last place."""
    inverse = b.rfdiv(1.0, d.hi)
    quotient = b.fmul(n.hi, inverse)
    rest = b.fadd(b.fma(b.fneg(quotient), d.hi, n.hi), b.fma(b.fneg(quotient), d.lo, n.lo))
    return b.fma(rest, inverse, quotient)


def sqrt_pair(b: FunctionBuilder, x: Pair) -> Pair:
    """Square root of `hi + lo` with twice the working precision; zero gives zero."""
    root = sqrt(b, x.hi)
    half_inverse = b.rfdiv(0.5, at_least(b, root, format_of(root).min_normal))
    return Pair(root, b.fmul(b.fadd(b.fma(b.fneg(root), root, x.hi), x.lo), half_inverse))


# --- scaling by powers of two ---------------------------------------------------------------------------------------


def power_of_two(b: FunctionBuilder, n: V) -> V:
    """2**n for an integer n in the range of normal exponents."""
    fmt = DOUBLE if element_of(n.type) == "i64" else FLOAT
    return from_bits(b, b.shl(b.add(n, fmt.bias), fmt.mantissa))


def scale(b: FunctionBuilder, x: V, n: V) -> V:
    """x * 2**n, n an integer up to twice the normal exponents; rounded once where the result is subnormal."""
    half = b.ashr(n, 1)
    return b.fmul(b.fmul(x, power_of_two(b, half)), power_of_two(b, b.sub(n, half)))


def round_to_integer(b: FunctionBuilder, x: V, factor: float) -> tuple[V, V]:
    """The integer nearest to `x * factor`, as a float and as an integer; it must be below 2**(mantissa - 2)."""
    fmt = format_of(x)
    shifted = b.fma(x, factor, fmt.round_magic)
    integer = b.sub(to_bits(b, shifted), fmt.bits_of(fmt.round_magic))
    return b.fsub(shifted, fmt.round_magic), integer


class Exponent(NamedTuple):
    """An integer n ready to scale by: `biased` has n plus twice the exponent bias in its low bits."""

    n: V
    biased: V


def round_to_exponent(b: FunctionBuilder, x: V, factor: float) -> Exponent:
    """The integer nearest to `x * factor`, which must be within twice the normal exponents."""
    fmt = format_of(x)
    magic = fmt.round_magic + 2 * fmt.bias
    shifted = b.fadd(x, magic) if factor == 1.0 else b.fma(x, factor, magic)
    return Exponent(b.fsub(shifted, magic), to_bits(b, shifted))


def scale_by(b: FunctionBuilder, x: V, exponent: Exponent) -> V:
    """x * 2**n, rounded once where the result is subnormal: in two factors, either of them a normal number."""
    fmt = format_of(x)
    half = b.lshr(exponent.biased, 1)
    rest = b.sub(exponent.biased, half)
    first, second = (from_bits(b, b.shl(part, fmt.mantissa)) for part in (half, rest))
    return b.fmul(b.fmul(x, first), second)


# --- tables ---------------------------------------------------------------------------------------------------------


def lookup(b: FunctionBuilder, rows: Sequence[Sequence[float]], index: V, x: V) -> list[V]:
    """Row `index` of a small table of numbers, lane by lane: one value of the type of `x` for each column.

    The index (integers of the size of the floats) must be within the rows; that of a NaN may be anything. With
    AVX-512 a column is one or two registers and looking up is one permutation; elsewhere each lane loads from memory.
    """
    lanes = lanes_of(x.type)
    if lanes * format_of(x).bits > 512:
        half = lanes // 2
        lower, upper = (
            lookup(b, rows, *(b.shuffle(v, v, range(start, start + half)) for v in (index, x))) for start in (0, half)
        )
        return [b.shuffle(low, high, range(lanes)) for low, high in zip(lower, upper, strict=True)]
    if "avx512f" in b.module.features and lanes * format_of(x).bits == 512 and len(rows) <= 2 * lanes:
        return [_permute(b, [row[i] for row in rows], index, x) for i in range(len(rows[0]))]
    return _load_rows(b, rows, index, x)


def odd_pieces(b: FunctionBuilder, rows: Rows, index: V, x: V, first: V) -> V:
    """A piecewise odd function at x >= 0: value + t q(t), or x + x q(x**2) where the mask `first` is set."""
    centre, value, *q = lookup(b, rows[format_of(x).name], index, x)
    t = b.fsub(x, centre)
    argument = b.select(first, b.fmul(t, t), t)
    return b.fma(t, even_odd(b, argument, q), b.select(first, t, value))


def pieces_pair(b: FunctionBuilder, rows: Sequence[Sequence[float]], index: V, x: V) -> Pair:
    """A piecewise function as a pair: value + t q(t), where value + t q(0) is added without error."""
    centre, value, slope, *q = lookup(b, rows, index, x)
    t = b.fsub(x, centre)
    linear = two_product(b, t, slope)
    total = fast_two_sum(b, value, linear.hi)
    rest = b.fma(b.fmul(t, t), even_odd(b, t, q), linear.lo)
    return fast_two_sum(b, total.hi, b.fadd(total.lo, rest))


def quarter_of_octave(b: FunctionBuilder, x: V, first: int) -> V:
    """Number of the quarter of an octave that x is in, counted from 2**first."""
    fmt = format_of(x)
    quarters = b.lshr(to_bits(b, x), fmt.mantissa - 2)
    return b.sub(quarters, fmt.bits_of(2.0**first) >> (fmt.mantissa - 2))


def _permute(b: FunctionBuilder, column: Sequence[float], index: V, x: V) -> V:
    lanes, element = lanes_of(x.type), element_of(x.type)
    first = const_lanes(element, _padded(column[:lanes], lanes))
    short = "df" if element == "double" else "sf"
    if len(column) <= lanes:
        name = f"llvm.x86.avx512.permvar.{short}.512"
        b.module.declare(name, x.type, [x.type, index.type])
        return b.call(x.type, name, [first, index])
    second = const_lanes(element, _padded(column[lanes:], lanes))
    name = f"llvm.x86.avx512.vpermi2var.p{short[0]}.512"
    b.module.declare(name, x.type, [x.type, index.type, x.type])
    return b.call(x.type, name, [first, index, second])


def _padded(numbers: Sequence[float], size: int) -> list[float]:
    return [*numbers, *[0.0] * (size - len(numbers))]


def _load_rows(b: FunctionBuilder, rows: Sequence[Sequence[float]], index: V, x: V) -> list[V]:
    """Load as many numbers of a row at once as there are lanes, and transpose."""
    fmt, lanes, width = format_of(x), lanes_of(x.type), len(rows[0])
    padded = -(-width // lanes) * lanes
    data = b"".join(fmt.pack(number) for row in rows for number in _padded(row, padded))
    table = b.module.constant(data)
    inside = b.mul(b.intrinsic("umin", index, len(rows) - 1), padded)  # that of a NaN is anything
    starts = [b.extract(inside, lane) for lane in range(lanes)] if lanes > 1 else [inside]
    places = [b.gep(fmt.name, table, start) for start in starts]
    columns: list[V] = []
    for first in range(0, padded, lanes):
        parts = [b.load(x.type, b.gep(fmt.name, place, first), fmt.bits // 8) for place in places]
        columns += transposed(b, parts)
    return columns[:width]


def transposed(b: FunctionBuilder, rows: Sequence[V]) -> list[V]:
    """Columns of a square of vectors, by exchanging blocks of 1, 2, 4, ... lanes between pairs of rows."""
    columns, size, block = list(rows), len(rows), 1
    while block < size:
        low = [lane if not lane & block else size + lane - block for lane in range(size)]
        high = [lane + block if not lane & block else size + lane for lane in range(size)]
        for i in range(size):
            if not i & block:
                one, other = columns[i], columns[i + block]
                columns[i], columns[i + block] = b.shuffle(one, other, low), b.shuffle(one, other, high)
        block *= 2
    return columns


# --- rare cases -----------------------------------------------------------------------------------------------------


def patch_rare(b: FunctionBuilder, mask: V, values: Sequence[V], slow: Callable[[], Sequence[V]]) -> tuple[V, ...]:
    """`values`, or what `slow` emits in their place if any lane of `mask` is set; that is expected to be rare.

    `slow` is given all lanes and must be right for all of them. It should call a helper function: what is emitted
    here stands in every place where the math function is used.
    """
    weights = b.module.metadata('!{!"branch_weights", i32 1, i32 100000}')
    rare, joined, before = b.new_label("rare"), b.new_label("joined"), b.current
    b.condbr(b.any(mask), rare, joined, f", !prof {weights}")
    b.label(rare)
    replaced = slow()
    after = b.current
    b.br(joined)
    b.label(joined)
    return tuple(
        b.phi(common.type, [(common, before), (special, after)]).value
        for common, special in zip(values, replaced, strict=True)
    )


def helper(
    b: FunctionBuilder, name: str, result: str, args: Sequence[V], build: Callable[[FunctionBuilder], None]
) -> V:
    """Call an internal function of the module, which `build` writes (its arguments are `params`) on first use."""
    if name not in b.module.functions:
        params = [(arg.type, f"x{i}") for i, arg in enumerate(args)]
        # optnone: such code is slow by nature, and compiling it well would take longer than running it
        build(b.module.function(name, result, params, "internal", "noinline optnone cold memory(none)"))
    return b.call(result, name, args)


def lane_by_lane(
    b: FunctionBuilder, args: Sequence[V], results: Sequence[str], body: Callable[..., Sequence[V]]
) -> list[V]:
    """Vectors of the element types `results`, of which `body(*scalars)` emits one lane; through memory.

    For rare cases: little code, and no speed.
    """
    lanes = lanes_of(args[0].type)
    sources = [(b.alloca(arg.type), element_of(arg.type)) for arg in args]
    targets = [(b.alloca(with_element(args[0].type, type_)), type_) for type_ in results]
    for arg, (source, _) in zip(args, sources, strict=True):
        b.store(arg, source, 64)
    with b.loop(0, lanes) as loop:
        scalars = [b.load(type_, b.gep(type_, source, loop.index), 4) for source, type_ in sources]
        for part, (target, type_) in zip(body(*scalars), targets, strict=True):
            b.store(part, b.gep(type_, target, loop.index), 4)
    return [b.load(with_element(args[0].type, type_), target, 64) for target, type_ in targets]


def name_of(function: str, type_: str) -> str:
    """Name of a helper function for arguments of that type: `pb.pow.v8f64`."""
    return f"pb.{function}.{suffix_of(type_)}"


def in_double(b: FunctionBuilder, function: Callable[..., V], *args: V) -> V:
    """`function` of doubles, whatever the arguments are."""
    wide = with_element(args[0].type, "double")
    if args[0].type == wide:
        return function(b, *args)
    result = function(b, *[b.cast("fpext", x, wide) for x in args])
    return b.cast("fptrunc", result, with_element(wide, "float"))
