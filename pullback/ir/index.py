"""Index arithmetic: how the element at one index is found at another. Used by view ops and by kernels."""

from collections.abc import Sequence
from typing import NamedTuple

from pullback.ir.types import Shape
from pullback.record import record


class Affine(NamedTuple):
    """`offset + sum(coefficient * axis)` over the axes of an index space; `terms` by axis, no zero coefficients."""

    offset: int = 0
    terms: tuple[tuple[int, int], ...] = ()

    def shift(self, amount: int) -> "Affine":
        return Affine(self.offset + amount, self.terms)

    def scale(self, factor: int) -> "Affine":
        if factor == 0:
            return Affine()
        return Affine(self.offset * factor, tuple([(a, c * factor) for a, c in self.terms]))

    def plus(self, other: "Affine") -> "Affine":
        if not self.terms or not other.terms:
            return Affine(self.offset + other.offset, self.terms or other.terms)
        total = dict(self.terms)
        for axis, c in other.terms:
            total[axis] = total.get(axis, 0) + c
        return Affine(self.offset + other.offset, tuple(sorted((a, c) for a, c in total.items() if c)))

    def coefficient(self, axis: int) -> int:
        for a, c in self.terms:
            if a == axis:
                return c
        return 0

    def span(self, space: Shape) -> tuple[int, int]:
        """Smallest and largest value over the index space (which must not be empty)."""
        low = high = self.offset
        for axis, c in self.terms:
            far = c * (space[axis] - 1)
            low, high = low + min(far, 0), high + max(far, 0)
        return low, high

    def __str__(self) -> str:
        parts = [f"{'' if c == 1 else '-' if c == -1 else f'{c}*'}i{a}" for a, c in self.terms]
        if self.offset or not parts:
            parts.append(str(self.offset))
        return "+".join(parts).replace("+-", "-")


def axis_index(axis: int) -> Affine:
    return Affine(0, ((axis, 1),))


def identity_index(ndim: int) -> tuple[Affine, ...]:
    return tuple(axis_index(k) for k in range(ndim))


class Bound(NamedTuple):
    """`low <= index < high`."""

    index: Affine  # type: ignore[assignment]  # the field hides tuple.index, which nobody calls on a bound
    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low}<={self.index}<{self.high}"


@record(frozen=True)
class Access:
    """The element a view op takes from one operand.

    index : one expression for each axis of the operand; or, with `flat`, a single one into its elements in C order.
    bounds : where they do not all hold, this operand gives nothing (another operand, or zero, does).
    """

    operand: int
    index: tuple[Affine, ...]
    bounds: tuple[Bound, ...] = ()
    flat: bool = False


def strides_of(shape: Shape) -> tuple[int, ...]:
    """Element strides of a C-contiguous array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def is_c_order(shape: Shape, strides: Sequence[int]) -> bool:
    """Whether the axes (those longer than 1) come with decreasing strides, as `K` order sees it."""
    last: int | None = None
    for n, s in zip(shape, strides, strict=True):
        if n == 1 or s == 0:
            continue
        if last is not None and abs(s) > last:
            return False
        last = abs(s)
    return True


def memory_order(shape: Shape, strides: Sequence[int], is_contiguous: bool) -> tuple[int, ...] | None:
    """The axes of an array from the slowest to the fastest in memory; None is C order.

    Parameters
    ----------
    is_contiguous : NumPy's flag of C contiguity
    """
    if len(shape) < 2 or is_contiguous or is_c_order(shape, strides):
        return None
    return tuple(sorted(range(len(shape)), key=lambda axis: -abs(strides[axis])))


def flatten_index(index: Sequence[Affine], shape: Shape) -> Affine:
    """The position in C order of the element at `index` of an array of `shape`."""
    flat = Affine()
    for expr, stride in zip(index, strides_of(shape), strict=True):
        flat = flat.plus(expr.scale(stride))
    return flat


def reshape_index(index: Sequence[Affine], shape: Shape, target: Shape) -> tuple[Affine, ...] | None:
    """The index into `target` of the element at `index` of `shape` (same size), where that is affine; else None.

    Axes longer than 1 are taken in runs of equal product, from the left. A run maps when it has one axis of `target`,
    which may be split over several of `shape`. Where there are no elements, any index will do.
    """
    out = [Affine()] * len(target)
    if 0 in shape:
        return tuple(out)
    sources = [k for k, n in enumerate(shape) if n != 1]
    targets = [k for k, n in enumerate(target) if n != 1]
    i = j = 0
    while i < len(sources):
        first, n, m = i, shape[sources[i]], target[targets[j]]
        while n < m:
            i += 1
            n *= shape[sources[i]]
        if n != m:
            return None
        run = sources[first : i + 1]
        out[targets[j]] = flatten_index([index[k] for k in run], tuple([shape[k] for k in run]))
        i, j = i + 1, j + 1
    return tuple(out)


def unflatten_index(flat: Affine, shape: Shape, space: Shape) -> tuple[Affine, ...] | None:
    """The index into `shape` of the element at `flat` in C order, where that is affine over `space`; else None.

    Axis by axis from the last: the terms whose coefficients the axis length divides belong to the axes before it, and
    the rest must stay within the axis. The first axis takes what is left, in range or not (bounds may guard it).
    """
    if 0 in shape:
        return (Affine(),) * len(shape)
    out: list[Affine] = []
    live = [k for k, n in enumerate(shape) if n != 1]
    for k in range(len(shape) - 1, -1, -1):
        n = shape[k]
        if n == 1:
            out.append(Affine())
        elif not live or k == live[0]:
            out.append(flat)
            flat = Affine()
        else:
            outer = tuple([(a, c // n) for a, c in flat.terms if c % n == 0])
            inner = Affine(flat.offset, tuple([(a, c) for a, c in flat.terms if c % n]))
            low, high = inner.span(space)
            carry = low // n
            if high - carry * n >= n:
                return None
            out.append(inner.shift(-carry * n))
            flat = Affine(carry, outer)
    return tuple(reversed(out))
