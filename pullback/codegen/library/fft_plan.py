"""How a transform is done: as columns of a matrix twice, with factors in between, or as a convolution.

A length n = n1 * n2 is a matrix of n1 rows and n2 columns. The columns are transformed, W of them at a time in the
lanes of vectors; every element is multiplied by a root of unity; the matrix is transposed and its columns are
transformed again. All arithmetic is on whole vectors then, whatever the length, and a step works on one block of
columns, which is near. The short transforms go through their factors by Stockham's method, from one buffer to another
and in order.

A length with a large prime factor is a convolution of a longer one without (Bluestein's method).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.record import record

Array = np.ndarray[Any, Any]

WRITTEN_OUT = (8, 4, 2, 3, 5, 7)
"""Radices whose butterflies are straight code; larger odd ones, up to `LARGEST`, are loops."""

LARGEST = 127

_BUTTERFLY: Mapping[int, float] = {2: 4, 3: 14, 4: 16, 5: 34, 7: 66, 8: 56}
"""Vector instructions of one butterfly, without loads, stores and factors."""

_MOVE, _FACTOR = 4.0, 4.0
NEAR_LENGTH = 128
"""Two columns of so many pairs of 64-byte vectors fit a cache of 32 KiB."""

_EDGE = 30.0
"""Instructions for each element of a column outside of the passes: reading, factors, transposition, writing."""


@record(frozen=True)
class Pass:
    """One step of Stockham's method: butterflies of `radix` on elements `stride * count` apart, `count` factors."""

    radix: int
    count: int
    stride: int


@record(frozen=True)
class Split:
    """A length as a matrix: `rows` rows and `columns` columns."""

    rows: int
    columns: int


@lru_cache(maxsize=4096)
def radices_of(n: int) -> tuple[int, ...] | None:
    """The radices of a length, the largest powers of two first; None if there is a prime factor above `LARGEST`."""
    power = (n & -n).bit_length() - 1
    n >>= power
    found, factor = [], 3
    while n > 1 and factor <= LARGEST:
        while n % factor == 0:
            found.append(factor)
            n //= factor
        factor += 2
    if n > 1:
        return None
    eights, rest = divmod(power, 3)
    if rest == 1 and eights:  # 16 is 4 times 4
        return (*(8,) * (eights - 1), 4, 4, *found)
    return (*(8,) * eights, *((2, 4)[rest - 1 : rest]), *found)


def passes_of(n: int) -> tuple[Pass, ...]:
    """The passes of a length that has radices."""
    passes, stride = [], 1
    for radix in radices_of(n) or ():
        n //= radix
        passes.append(Pass(radix, n, stride))
        stride *= radix
    return tuple(passes)


def _butterfly_cost(radix: int) -> float:
    return _BUTTERFLY.get(radix, 20 + 8 * (radix // 2) + 6 * (radix // 2) ** 2)


@lru_cache(maxsize=4096)
def column_cost(n: int) -> float:
    """Instructions for a vector of columns; moves cost more where two buffers do not fit the nearest cache."""
    move = _MOVE * max(1.0, 1 + math.log2(max(1, n) / NEAR_LENGTH))
    return sum(
        p.count * p.stride * (_butterfly_cost(p.radix) + p.radix * move + (p.radix - 1) * _FACTOR * (p.count > 1))
        for p in passes_of(n)
    )


def split_cost(split: Split, lanes: int) -> float:
    """Instructions for a transform."""
    n1, n2 = split.rows, split.columns
    first = -(-n2 // lanes) * (column_cost(n1) + _EDGE * n1)
    return first + -(-n1 // lanes) * (column_cost(n2) + _EDGE / 2 * n2)


@lru_cache(maxsize=256)
def best_split(n: int, lanes: int) -> Split:
    """The cheapest matrix of a length that has radices."""
    near = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    splits = [Split(rows, n // rows) for d in near for rows in (d, n // d)]
    return min(splits, key=lambda split: split_cost(split, lanes))


_SMOOTH = (1, 3, 5, 7, 9, 15, 21, 25, 27, 35, 45, 49, 63, 75)


@lru_cache(maxsize=256)
def convolution_length(n: int, lanes: int) -> int:
    """The length, at least 2 n - 1, at which a convolution is cheapest: a power of two times a small odd number."""
    least = 2 * n - 1
    lengths = [odd << max(0, (-(-least // odd) - 1).bit_length()) for odd in _SMOOTH]
    return min(lengths, key=lambda m: split_cost(best_split(m, lanes), lanes))


def is_direct(n: int, lanes: int, together: int) -> bool:
    """Is a length transformed by its own factors, rather than as a convolution; `together` lines are done at once."""
    if radices_of(n) is None:
        return False
    own = column_cost(n) / together if together > 1 else split_cost(best_split(n, lanes), lanes)
    length = convolution_length(n, lanes)
    return own <= 2 * split_cost(best_split(length, lanes), lanes) + _EDGE * (n + length) / lanes


# ------------------------------------------------------------------ roots of unity


def unit_roots(numbers: Array, n: int) -> Array:
    """exp(-2 pi i t / n) for each t, rounded once: the angle is taken from the nearest eighth of a turn."""
    t = np.asarray(numbers, np.int64) % n
    turned = 8 * t
    octant = turned // n
    odd = octant % 2
    rest = np.where(odd == 1, (octant + 1) * n - turned, turned - octant * n).astype(np.longdouble)
    angle = rest / np.longdouble(n) * (np.arctan(np.longdouble(1)))
    cos, sin = np.cos(angle), np.sin(angle)
    quarter = (octant + 1) // 2 % 4
    sin = np.where(odd == 1, -sin, sin)
    re = np.choose(quarter, [cos, -sin, -cos, sin])
    im = np.choose(quarter, [sin, cos, -sin, -cos])
    return re.astype(np.float64) - 1j * im.astype(np.float64)


def pass_factors(step: Pass) -> Array:
    """The factors of a pass: for each number below `count`, one for every output of the butterfly."""
    p, k = np.arange(step.count)[:, None], np.arange(step.radix)[None, :]
    return unit_roots(p * k, step.radix * step.count)


def chirp(n: int) -> Array:
    """exp(-pi i j**2 / n) for j below n."""
    numbers = np.arange(n, dtype=np.int64)
    return unit_roots(numbers * numbers % (2 * n), 2 * n)


def convolution_kernel(n: int, length: int) -> Array:
    """The transform of the conjugate chirp, of both signs of j, divided by the length; in extended precision where
    there is one."""
    wave = chirp(n).conj()
    around = np.zeros(length, np.clongdouble)
    around[:n] = wave
    around[length - n + 1 :] = wave[:0:-1]
    return np.asarray(np.fft.fft(around) / length)
