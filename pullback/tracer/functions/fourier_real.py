"""Transforms of real numbers, an even number of them: by a complex transform of half the length.

The numbers at even and at odd places are the real and imaginary parts of z. With Z the transform of z, m = n / 2 and
w = exp(-2 pi i / n), the transform of the whole is, for k = 0..m (Z[m] is Z[0]):

    X[k] = (Z[k] + conj Z[m-k]) / 2 - i w**k (Z[k] - conj Z[m-k]) / 2
"""

import numpy as np

from pullback.tracer.functions.common import concat, slice_axis
from pullback.tracer.operands import broadcast
from pullback.tracer.trace import Content, Trace, dtype_of, shape_of

SHORTEST = 8
"""Of fewer numbers the complex transform of the whole is as fast."""

Pair = tuple[Content, Content]


def is_halved(n: int) -> bool:
    """Is a transform of this length done by one of half the length."""
    return n >= SHORTEST and n % 2 == 0


def forward(trace: Trace, x: Content, factor: float) -> Content:
    """The non-negative frequencies along the last axis of real `x`, times `factor`."""
    n, last = shape_of(x)[-1], len(shape_of(x)) - 1
    even, odd = (slice_axis(trace, x, last, start, n, 2) for start in (0, 1))
    z = trace.apply("fft", trace.apply("complex", even, odd), inverse=False)
    wrapped = concat(trace, [z, slice_axis(trace, z, last, 0, 1)], last)
    total, apart = _with_mirrored(trace, _parts(trace, wrapped), _mirrored(trace, _parts(trace, wrapped)))
    cosine, sine = _half_turn(n // 2, 0.5 * factor)
    turned = _product(trace, apart, (-sine, -cosine))
    re, im = (_scaled(trace, part, 0.5 * factor) for part in total)
    return trace.apply("complex", trace.apply("add", re, turned[0]), trace.apply("add", im, turned[1]))


def backward(trace: Trace, half: Content, factor: float) -> Content:
    """Real numbers, twice as many as there are steps between the frequencies `half`, times `factor`. The imaginary
    parts of the first and the last frequency, which real numbers do not have, are not looked at."""
    shape, last = shape_of(half), len(shape_of(half)) - 1
    m = shape[-1] - 1
    re, im = _parts(trace, half)
    ends = ((*(0 for _ in shape[:-1]), 1),) * 2
    none = (0,) * len(shape)
    im = trace.apply("pad", slice_axis(trace, im, last, 1, m), low=ends[0], high=ends[1], interior=none)
    first = (slice_axis(trace, re, last, 0, m), slice_axis(trace, im, last, 0, m))
    second = (slice_axis(trace, re, last, 1, m + 1), slice_axis(trace, im, last, 1, m + 1))
    total, apart = _with_mirrored(trace, first, _mirrored(trace, second))
    cosine, sine = _half_turn(m, 1.0)
    turned = _product(trace, apart, (-sine[:m], cosine[:m]))
    z = trace.apply("complex", *[trace.apply("add", *parts) for parts in zip(total, turned, strict=True)])
    pair = _parts(trace, trace.apply("fft", z, inverse=True))
    columns = [trace.apply("reshape", part, shape=(*shape[:-1], m, 1)) for part in pair]
    whole = trace.apply("reshape", concat(trace, columns, last + 1), shape=(*shape[:-1], 2 * m))
    return whole if factor == 1.0 else _scaled(trace, whole, factor)


def _half_turn(m: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of pi k / m for k = 0..m, times `factor`; exact where they are 0 or 1."""
    k = np.arange(m + 1)
    near = np.minimum(k, m - k)
    sine, cosine = np.sin(np.pi * near / m), np.sin(np.pi * (m - 2 * near) / (2 * m))
    return np.where(2 * k > m, -cosine, cosine) * factor, sine * factor


def _parts(trace: Trace, z: Content) -> Pair:
    return trace.apply("real", z), trace.apply("imag", z)


def _mirrored(trace: Trace, z: Pair) -> Pair:
    """The parts in the opposite order along the last axis."""
    last = len(shape_of(z[0])) - 1
    re, im = (trace.apply("reverse", part, axes=(last,)) for part in z)
    return re, im


def _with_mirrored(trace: Trace, z: Pair, mirrored: Pair) -> tuple[Pair, Pair]:
    """z + conj(mirrored) and z - conj(mirrored)."""
    (re, im), (other_re, other_im) = z, mirrored
    total = trace.apply("add", re, other_re), trace.apply("sub", im, other_im)
    return total, (trace.apply("sub", re, other_re), trace.apply("add", im, other_im))


def _product(trace: Trace, z: Pair, row: tuple[np.ndarray, np.ndarray]) -> Pair:
    """z times a row of constants, given by its parts."""
    (x, y), (re, im) = z, row
    products = [[_times(trace, part, factor) for factor in (re, im)] for part in (x, y)]
    return trace.apply("sub", products[0][0], products[1][1]), trace.apply("add", products[0][1], products[1][0])


def _times(trace: Trace, x: Content, row: np.ndarray) -> Content:
    return trace.apply("mul", x, broadcast(trace, row.astype(dtype_of(x)), shape_of(x)))


def _scaled(trace: Trace, x: Content, factor: float) -> Content:
    return trace.apply("mul", x, trace.full(dtype_of(x), shape_of(x), factor))
