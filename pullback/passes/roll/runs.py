"""Where a row of numbers repeats itself: stretches in which each number equals the one a period before."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]

MOST_PERIODS = 256
"""Periods that are tried on one row; those that account for most of it come first."""
OCCURRENCES = 4
"""How far back, in occurrences of the same number, a period may show: what stands k times in a turn shows it k back."""


class Run(NamedTuple):
    """`turns` times `period` numbers from `start` on, all turns alike."""

    start: int
    period: int
    turns: int

    @property
    def stop(self) -> int:
        return self.start + self.period * self.turns


def runs(row: Numbers, least: int, finer: Sequence[Numbers] = ()) -> Iterator[Run]:
    """Maximal repetitions of at least `least` turns, short periods first; a period's multiples come again.

    Parameters
    ----------
    finer : rows for the same things that tell more of them apart, and so show periods that are many times another
    """
    for period in sorted({period for numbers in (row, *finer) for period in _periods(numbers, least)}):
        same = np.concatenate(([False], row[period:] == row[:-period], [False]))
        edges = np.flatnonzero(same[1:] != same[:-1])
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            turns = (stop - start) // period + 1
            if turns >= least:
                yield Run(start, period, turns)


def _periods(row: Numbers, least: int) -> list[int]:
    """Distances between equal numbers, those that occur often enough to be a period."""
    order = np.argsort(row, kind="stable")
    ordered = row[order]
    gaps = []
    for back in range(1, OCCURRENCES + 1):
        equal = ordered[back:] == ordered[:-back]
        gaps.append((order[back:] - order[:-back])[equal])
    found, counts = np.unique(np.concatenate(gaps), return_counts=True)
    often = counts >= least - 1
    found, counts = found[often], counts[often]
    best = np.argsort(-counts, kind="stable")[:MOST_PERIODS]
    periods: list[int] = found[best].tolist()
    return periods
