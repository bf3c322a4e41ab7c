"""Where bounds change along a level: the loop is cut there, so that in each piece they are known.

At most three pieces: the longest, in which each bound of one level is decided, and what lies before and behind it,
where bounds that still vary become masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pullback.codegen.nest import Nest
from pullback.ir.index import Bound

_MOST_WEIGHT = 600
"""Cuts multiply the code; a body heavier than this over the number of pieces is not cut on outer levels."""


def holds_statically(bound: Bound, ranges: Sequence[tuple[int, int]]) -> bool | None:
    """Whether the bound holds for all indices in `ranges` (True), for none (False), or for some (None)."""
    low = high = bound.index.offset
    for level, coefficient in bound.index.terms:
        start, stop = ranges[level]
        ends = (coefficient * start, coefficient * (stop - 1))
        low, high = low + min(ends), high + max(ends)
    if bound.low <= low and high < bound.high:
        return True
    return False if high < bound.low or low >= bound.high else None


def all_bounds(nest: Nest) -> Iterator[Bound]:
    """Every bound in the nest."""
    for load in nest.loads:
        yield from load.bounds
    for bounds in nest.bounds.values():
        yield from bounds


def level_segments(nest: Nest, level: int) -> list[tuple[int, int]]:
    """The pieces of a level in order, not empty, covering it."""
    size = nest.sizes[level]
    cuts = sorted({0, size, *(cut for bound in all_bounds(nest) for cut in _cuts(bound, level) if 0 < cut < size)})
    pieces = list(pairwise(cuts))
    if len(pieces) <= 1 or (level != nest.vector and nest.spec.weight * 3 > _MOST_WEIGHT):
        return [(0, size)]
    start, stop = max(pieces, key=lambda piece: piece[1] - piece[0])
    return [piece for piece in ((0, start), (start, stop), (stop, size)) if piece[0] < piece[1]]


def _cuts(bound: Bound, level: int) -> Iterator[int]:
    """Indices of `level` at which the bound begins or ceases to hold."""
    if len(bound.index.terms) != 1 or bound.index.terms[0][0] != level:
        return
    (_, coefficient), offset = bound.index.terms[0], bound.index.offset
    for threshold in (bound.low, bound.high):
        # index at which offset + coefficient * index crosses the threshold
        distance = threshold - offset
        yield -(-distance // coefficient) if coefficient > 0 else (-distance) // -coefficient + 1
