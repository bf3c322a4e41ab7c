"""Which results an op can write over which of its operands."""

from collections.abc import Iterator

from pullback.ir.graph import Op
from pullback.ir.kernel import Load

WRITES_A_PART = frozenset({"update", "scatter", "scatter_add"})
"""Ops that change a part of their first operand: without a copy, if they may write over it."""


def overwritable(op: Op) -> Iterator[tuple[int, int]]:
    """Pairs (operand, result): the op never reads of that operand what it has written of that result."""
    if op.name in WRITES_A_PART:
        yield 0, 0
    elif op.name == "kernel":
        yield from _kernel_pairs(op)


def _kernel_pairs(op: Op) -> Iterator[tuple[int, int]]:
    """Operands read only at the very element that is written."""
    loads: dict[int, list[Load]] = {}
    for load in op.attrs["loads"]:
        loads.setdefault(load.operand, []).append(load)
    computed = {inner.attrs["operand"] for inner in op.regions[0].ops if inner.name == "load_at"}
    for number, places in loads.items():
        if len(places) > 1 or places[0].bounds or number in computed:
            continue
        type = op.operands[number].type
        for k, store in enumerate(op.attrs["stores"]):
            same = store.type.dtype == type.dtype and store.type.size == type.size
            if store.kind == "store" and same and store.at == places[0].at:
                yield number, k
