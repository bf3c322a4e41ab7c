"""Offsets in one block of memory for buffers with lifetimes: best fit, near-linear."""

import heapq
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT = 64


class Interval(NamedTuple):
    """A buffer in need of memory from moment `birth` to moment `death`, both included."""

    birth: int
    death: int
    nbytes: int


def aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def arrange(intervals: Sequence[Interval]) -> tuple[list[int], int]:
    """An offset for each interval, a multiple of 64, and the size of the whole. Intervals that meet do not overlap."""
    offsets = [0] * len(intervals)
    block = _Block()
    ends: list[tuple[int, int]] = []  # a heap of (death, number)
    for number in sorted(range(len(intervals)), key=lambda k: (intervals[k].birth, -intervals[k].nbytes)):
        birth, death, nbytes = intervals[number]
        if not nbytes:
            continue  # takes no room, and must not be a hole of no size beside another
        while ends and ends[0][0] < birth:
            _, old = heapq.heappop(ends)
            block.free(offsets[old], aligned(intervals[old].nbytes))
        offsets[number] = block.take(aligned(nbytes))
        heapq.heappush(ends, (death, number))
    return offsets, block.size


class _Block:
    """Free holes by size and by place; neighbours are joined."""

    def __init__(self) -> None:
        self.size = 0
        self._holes: list[tuple[int, int]] = []  # (size, start), sorted
        self._starts: dict[int, int] = {}  # start -> size
        self._stops: dict[int, int] = {}  # stop -> size

    def take(self, nbytes: int) -> int:
        k = bisect_left(self._holes, (nbytes, -1))
        if k < len(self._holes):
            size, start = self._holes[k]
            self._remove(size, start)
            if size > nbytes:
                self._add(size - nbytes, start + nbytes)
            return start
        return self._grow(nbytes)

    def _grow(self, nbytes: int) -> int:
        """Take from the end, beginning in the last hole if that touches it."""
        last = self._stops.get(self.size)
        start = self.size
        if last is not None:
            start -= last
            self._remove(last, start)
        self.size = start + nbytes
        return start

    def free(self, start: int, nbytes: int) -> None:
        before, behind = self._stops.get(start), self._starts.get(start + nbytes)
        if before is not None:
            self._remove(before, start - before)
            start, nbytes = start - before, nbytes + before
        if behind is not None:
            self._remove(behind, start + nbytes)
            nbytes += behind
        self._add(nbytes, start)

    def _add(self, size: int, start: int) -> None:
        insort(self._holes, (size, start))
        self._starts[start] = size
        self._stops[start + size] = size

    def _remove(self, size: int, start: int) -> None:
        del self._holes[bisect_left(self._holes, (size, start))]
        del self._starts[start]
        del self._stops[start + size]
