"""Which results an op can write over which of its operands."""

from collections.abc import Iterator, Mapping

from pullback.ir.graph import Op
from pullback.ir.kernel import Load

WRITES_A_PART = frozenset({"update", "scatter", "scatter_add"})
"""Ops that change a part of their first operand: without a copy, if they may write over it."""


def overwritable(op: Op) -> Mapping[int, list[int]]:
    """For results, operands of which the op never reads what it has written of that result."""
    if op.name in WRITES_A_PART:
        return {0: [0]}
    found: dict[int, list[int]] = {}
    if op.name == "kernel":
        for number, k in _kernel_pairs(op):
            found.setdefault(k, []).append(number)
    return found


def _kernel_pairs(op: Op) -> Iterator[tuple[int, int]]:
    """Pairs (operand, result): operands read only at the very element that is written."""
    loads: dict[int, list[Load]] = {}
    for load in op.attrs["loads"]:
        loads.setdefault(load.operand, []).append(load)
    computed = {inner.attrs["operand"] for inner in op.regions[0].ops if inner.name == "load_at"}
    written: dict[object, list[int]] = {}
    for k, store in enumerate(op.attrs["stores"]):
        if store.kind == "store":
            written.setdefault((store.type.dtype, store.type.size, store.at), []).append(k)
    for number, places in loads.items():
        if len(places) == 1 and not places[0].bounds and number not in computed:
            type = op.operands[number].type
            for k in written.get((type.dtype, type.size, places[0].at), ()):
                yield number, k
