"""About how much work a call of a program is: for decisions that need the order of magnitude alone."""

import math

from pullback.ir.graph import Function, Op, Region
from pullback.ir.opdef import Library

UNKNOWN_TURNS = 1000
"""So often a loop is taken to turn whose number of turns is known only when it runs."""


def work_of(function: Function) -> int:
    """How many elements are computed, about; of matrix operations, how many products."""
    total = 0
    pending: list[tuple[Region, int]] = [(function.body, 1)]
    while pending:
        region, times = pending.pop()
        for op in region.ops:
            if op.name == "kernel":
                total += times * math.prod(op.attrs["space"])
            elif op.regions:
                pending += [(inner, times * _turns(op)) for inner in op.regions]
            else:
                total += times * _elements(op)
    return total


def _turns(op: Op) -> int:
    """How often the regions of an op run."""
    length = op.attrs.get("length", op.attrs.get("count"))
    if length is None:
        return UNKNOWN_TURNS if op.name == "while" else 1
    return int(length) if length >= 0 else UNKNOWN_TURNS


def _elements(op: Op) -> int:
    size = max([v.type.size for v in (*op.operands, *op.results)], default=0)
    if op.name == "dot_general":
        (contracted, _), lhs = op.attrs["contract"], op.operands[0].type
        return int(op.results[0].type.size * math.prod(lhs.shape[axis] for axis in contracted))
    if isinstance(op.opdef.lower, Library):
        return size * max([v.type.shape[-1] for v in op.operands if v.type.ndim > 1], default=1)
    return size
