"""Ahead of the reverse walk: how structural zeros may come into the cotangent of each value, at most.

The walk itself finds the marks as it emits (`strong_zeros`). An op with regions is differentiated before the walk comes
to it, so it asks here; the answer may be higher than what the walk finds, never lower.
"""

from collections.abc import Sequence

from pullback.ir.graph import Op, Region, Value
from pullback.ir.opdef import Bilinear, Partials, Structured
from pullback.passes.cotangents import tiled_axis
from pullback.passes.facts import Facts
from pullback.passes.strong_zeros import CHOICE, CHOICES, KINK, NONE, flat_mark
from pullback.passes.structured import Rules

# Their transposes put no zeros among the elements of a cotangent.
TRANSPARENT = frozenset(
    {"add", "sub", "neg", "cast", "conj", "real", "imag", "complex", "broadcast", "reshape", "transpose", "reverse"}
    | {"pad", "concatenate", "sum", "cumsum", "dot_general", "fft"}
)


def predict_marks(
    region: Region, active: set[Value], results: Sequence[int | None], facts: Facts, rules: Rules
) -> dict[Value, int]:
    """Upper bounds of the marks of the cotangents of `active` values, given those of the results (None: no cotangent).

    `facts` are those of the region's ops.
    """
    marks: dict[Value, int] = {}
    for value, mark in zip(region.results, results, strict=True):
        if mark is not None:
            marks[value] = max(marks.get(value, NONE), mark)
    tiles = _tiling_slices(region, active)
    for op in reversed(region.ops):
        if active.isdisjoint(op.results):
            continue
        # an active result whose cotangent nobody gives gets a tensor of zeros
        given = [marks.get(r, KINK if r in active else None) for r in op.results]
        for value, mark in zip(op.operands, _operand_marks(op, given, tiles, facts, rules), strict=True):
            if value in active:
                marks[value] = max(marks.get(value, NONE), mark)
    return marks


def _operand_marks(op: Op, results: Sequence[int | None], tiles: set[Op], facts: Facts, rules: Rules) -> Sequence[int]:
    if isinstance(op.opdef.derivative, Structured):
        return rules[op.name].marks(op, results, facts, rules)
    mark = max(max(mark or NONE for mark in results), _introduced(op, tiles))
    return [max(mark, flat_mark(facts, op, k)) for k in range(len(op.operands))]


def _introduced(op: Op, tiles: set[Op]) -> int:
    if op.name in CHOICES:
        return CHOICE
    match op.opdef.derivative:
        case Partials(masks=()) | Bilinear():
            return NONE
        case _:
            return NONE if op.name in TRANSPARENT or op in tiles else KINK


def _tiling_slices(region: Region, active: set[Value]) -> set[Op]:
    """Slices whose cotangents will be concatenated: those of a value that nothing else reads."""
    slices: dict[Value, list[Op]] = {}
    others: set[Value] = set(region.results)
    for op in region.ops:
        if op.name == "slice":
            slices.setdefault(op.operands[0], []).append(op)
        elif not active.isdisjoint(op.results):
            others.update(op.operands)
    return {op for v, ops in slices.items() if v not in others and tiled_axis(ops, v) is not None for op in ops}
