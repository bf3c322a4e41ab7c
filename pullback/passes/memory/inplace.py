"""Which results an op can write over which of its operands, and which it may."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pullback.ir.graph import Op
from pullback.ir.kernel import Load
from pullback.passes.memory.buffers import Buffer

WRITES_A_PART = frozenset({"update", "scatter", "scatter_add"})
"""Ops that change a part of their first operand: without a copy, if they may write over it."""


def overwritable(op: Op) -> Mapping[int, list[int]]:
    """For results, operands of which the op never reads what it has written of that result.

    Results of the same kind and place share one list, so that a kernel of hundreds of operands and results is no square
    of them.
    """
    if op.name in WRITES_A_PART:
        return {0: [0]}
    return _kernel_pairs(op) if op.name == "kernel" else {}


def _kernel_pairs(op: Op) -> dict[int, list[int]]:
    """For results, operands read only at the very element that is written."""
    loads: dict[int, list[Load]] = {}
    for load in op.attrs["loads"]:
        loads.setdefault(load.operand, []).append(load)
    computed = {inner.attrs["operand"] for inner in op.regions[0].ops if inner.name == "load_at"}
    read: dict[object, list[int]] = {}
    for number, places in loads.items():
        if len(places) == 1 and not places[0].bounds and number not in computed:
            type = op.operands[number].type
            read.setdefault((type.dtype, type.size, places[0].at), []).append(number)
    found: dict[int, list[int]] = {}
    for k, store in enumerate(op.attrs["stores"]):
        numbers = read.get((store.type.dtype, store.type.size, store.at))
        if store.kind == "store" and numbers is not None:
            found[k] = numbers
    return found


class Operands:
    """The buffers of one op's operands while its results get theirs.

    at : the moment of the op; what is read behind it is not written over
    taken : the buffers that results have got
    """

    def __init__(self, buffers: Sequence[Buffer], at: int) -> None:
        self.buffers = buffers
        self.taken: set[Buffer] = set()
        self._at = at
        self._counts = Counter(buffers)

    def obstacle(self, number: int, nbytes: int, target: Buffer | None) -> str:
        """Why a result of so many bytes, wanted in `target`, may not be written over an operand; empty if it may."""
        buffer = self.buffers[number]
        if buffer.is_row or buffer.frozen:
            return f"its operand is {_kind(buffer)}"
        if buffer.last > self._at:
            return "its operand is read later"
        if buffer.nbytes != nbytes:
            return "its result has another size"
        if self._counts[buffer] > 1:
            return "another of its operands is the same memory"
        if buffer in self.taken:
            return "another of its results is written there"
        if buffer.owned and target is not None and target is not buffer and target.owned:
            return "its operand is the place of another value that the region gives"
        return ""

    def first_free(self, numbers: list[int], nbytes: int, target: Buffer | None) -> Buffer | None:
        """The first operand of `numbers` that may be written over; leading ones that no result may have are dropped."""
        while numbers and not self._is_left(self.buffers[numbers[0]]):
            numbers.pop(0)
        for number in numbers:
            if not self.obstacle(number, nbytes, target):
                return self.buffers[number]
        return None

    def _is_left(self, buffer: Buffer) -> bool:
        taken = buffer in self.taken or self._counts[buffer] > 1
        return not (taken or buffer.is_row or buffer.frozen or buffer.last > self._at)


def _kind(buffer: Buffer) -> str:
    if buffer.is_row:
        return "the row of a scan"
    return "an argument" if buffer.slot is not None and buffer.slot.space == "arg" else "a constant"
