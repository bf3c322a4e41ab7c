"""Chains of updates, indexed: who wrote what a slice reads is found without a walk along the chain.

`out[i, j] = ...` in a Python loop leaves one update behind the other, and each later read asks which of them it sees.
Writes are kept by the axes on which they take a single index; of those, a read meets only the ones that have its own
index there. Reading each of n single elements so takes n lookups, not n walks.
"""

from bisect import bisect_right
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace

from pullback.ir.graph import Op, Value
from pullback.passes.rules.lines import Lines, lines_of

Axes = tuple[int, ...]
Place = tuple["Chain", int]


class Chain:
    """Updates, each of the result of the one before; the first one updates `base`."""

    __slots__ = ("_by_axes", "_met", "base", "lines", "updates")

    def __init__(self, base: Value) -> None:
        self.base = base
        self.updates: list[Op] = []
        self.lines: list[Lines] = []
        self._by_axes: dict[Axes, list[int]] = {}  # the single axes of writes -> their numbers
        self._met: dict[tuple[Axes, Axes], _Meeting] = {}

    def append(self, update: Op) -> None:
        lines = lines_of(update)
        self._by_axes.setdefault(_single(lines), []).append(len(self.updates))
        self.updates.append(update)
        self.lines.append(lines)

    def met(self, lines: Lines, count: int) -> Iterator[int]:
        """Numbers below `count` of the writes that may share elements with `lines`, the latest first."""
        read = _single(lines)
        heads: list[tuple[int, int, list[int]]] = []
        for written, numbers in self._by_axes.items():
            meeting = self._met.get((written, read))
            if meeting is None:
                meeting = self._met[written, read] = _Meeting(written, read)
            found = meeting.of(lines, numbers, self.lines)
            at = bisect_right(found, count - 1) - 1
            if at >= 0:
                heads.append((-found[at], at, found))
        heapify(heads)
        while heads:
            number, at, found = heads[0]
            yield -number
            if at:
                heapreplace(heads, (-found[at - 1], at - 1, found))
            else:
                heappop(heads)


class _Meeting:
    """Writes with single indices on some axes, as reads with single indices on some axes see them."""

    __slots__ = ("_axes", "_found", "_seen")

    def __init__(self, written: Axes, read: Axes) -> None:
        self._axes = tuple([a for a in written if a in read])
        self._found: dict[Axes, list[int]] = {}
        self._seen = 0

    def of(self, lines: Lines, numbers: list[int], writes: list[Lines]) -> list[int]:
        """Those of `numbers`, in order, that have the indices of `lines` on the axes that are single in both."""
        axes, found = self._axes, self._found
        for number in numbers[self._seen :]:
            write = writes[number]
            found.setdefault(tuple([write[a].first for a in axes]), []).append(number)
        self._seen = len(numbers)
        return found.get(tuple([lines[a].first for a in axes]), [])


class Chains:
    """The chains of one region, found as they are asked for."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[Value, Place] = {}

    def place(self, value: Value) -> Place | None:
        """The chain that an update's result belongs to, and how many updates of it led there."""
        trail: list[Op] = []
        places = self._places
        while value not in places and value.op is not None and value.op.opdef.name == "update":
            trail.append(value.op)
            value = value.op.operands[0]
        place = places.get(value)
        if trail:
            chain, count = place or (Chain(value), 0)
            if count < len(chain.updates):  # somebody else went on from here
                chain, count = Chain(value), 0
            for update in reversed(trail):
                chain.append(update)
                count += 1
                place = places[update.results[0]] = chain, count
        return place


def _single(lines: Lines) -> Axes:
    return tuple([axis for axis, line in enumerate(lines) if line.count == 1])
