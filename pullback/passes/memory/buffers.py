"""Buffers, and the moments at which values are made and read for the last time."""

from collections.abc import Mapping

from pullback.ir.graph import Op, Region, Value
from pullback.ir.plan import Slot

FOREVER = 1 << 60


class Buffer:
    """Memory that one value has, or several one after the other.

    birth, death : the moments between which it holds something
    last : the last moment at which what it holds now is read, as the present region sees it; then it may be overwritten
    frozen : never to be overwritten (an argument, a constant)
    owner : the buffer of a whole array, of which this is the row of a loop's turn
    owned : a result of the op whose region is being walked lives there
    carried : so does a carried value of the loop whose body is being walked, and it may go on elsewhere
    """

    __slots__ = ("birth", "carried", "death", "frozen", "last", "nbytes", "owned", "owner", "slot")

    def __init__(
        self,
        nbytes: int,
        birth: int,
        *,
        frozen: bool = False,
        slot: Slot | None = None,
        owner: "Buffer | None" = None,
    ) -> None:
        self.nbytes = nbytes
        self.birth = birth
        self.death = birth
        self.last = -1
        self.frozen = frozen
        self.slot = slot
        self.owner = owner
        self.owned = False
        self.carried = False

    @property
    def is_row(self) -> bool:
        return self.owner is not None

    def row(self, nbytes: int) -> "Buffer":
        return Buffer(nbytes, self.birth, owner=self)

    def hold(self, until: int) -> None:
        self.last = max(self.last, until)
        self.death = max(self.death, until)


class Moments:
    """A number for each op, in the order in which things happen; an op with regions has one before and one after them.

    start, end : of each op
    last_use : of each value; FOREVER for what the function gives
    """

    __slots__ = ("end", "last_use", "start")

    def __init__(self, body: Region) -> None:
        self.start: dict[Op, int] = {}
        self.end: dict[Op, int] = {}
        self.last_use: dict[Value, int] = {}
        self._number(body, 0)
        self.last_use.update(dict.fromkeys(body.results, FOREVER))

    def _number(self, region: Region, at: int) -> int:
        for op in region.ops:
            self.start[op] = at
            for inner in inner_regions(op):
                at = self._number(inner, at + 1)
            at += 1 if inner_regions(op) else 0
            self.end[op] = at
            self.last_use.update(dict.fromkeys(op.operands, at))
            at += 1
        self.last_use.update(dict.fromkeys(region.results, at))
        return at

    def last(self, value: Value) -> int:
        """The moment of the last use; -1 if there is none."""
        return self.last_use.get(value, -1)


def inner_regions(op: Op) -> tuple[Region, ...]:
    """The regions whose values have buffers: not the body of a kernel."""
    return () if op.name == "kernel" else op.regions


def roots(region: Region) -> Mapping[Value, Value]:
    """For each result of a reshape, the value whose memory it is."""
    found: dict[Value, Value] = {}
    for op in region.ops:
        if op.name == "reshape":
            source = op.operands[0]
            found[op.results[0]] = found.get(source, source)
    return found
