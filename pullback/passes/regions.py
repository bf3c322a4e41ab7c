"""Regions with fewer parameters and results: what branches and loops share when they are pruned."""

from collections.abc import Mapping, Sequence

from pullback.ir.builder import Builder
from pullback.ir.graph import Region, Value
from pullback.passes.base import use_counts
from pullback.passes.fold import known


def with_fewer_params(region: Region, kept: Sequence[int], instead: Mapping[int, int | Value]) -> Region:
    """`region` with the parameters `kept`, in that order.

    What reads another parameter k reads `instead[k]` now: one of the kept parameters, by its number in the old
    region, or a constant of the surrounding region, which is copied inside. Parameters in neither must not be read.
    """
    b = Builder()
    arguments = list(region.params)
    for k in kept:
        arguments[k] = b.param(region.params[k].type, region.params[k].hint)
    reads = use_counts(region)
    for k, other in instead.items():
        if isinstance(other, int):
            arguments[k] = arguments[other]
        elif region.params[k] in reads:
            arguments[k] = _copy_constant(b, other)
    return b.region(b.inline(region, arguments))


def copied(region: Region) -> Region:
    """The region again, with values of its own, those of regions inside included."""
    b = Builder()
    env = {p: b.param(p.type, p.hint) for p in region.params}
    for op in region.ops:
        regions = tuple([copied(inner) for inner in op.regions])
        new = b.copy(op, [env[v] for v in op.operands], regions)
        env.update(zip(op.results, new.results, strict=True))
    return b.region([env[v] for v in region.results])


def _copy_constant(b: Builder, value: Value) -> Value:
    """A constant, or a broadcast one, emitted once more."""
    op = value.op
    assert op is not None
    return b.copy(op, [_copy_constant(b, v) for v in op.operands]).results[0]


def sort_operands(
    operands: Sequence[Value], read: Sequence[bool]
) -> tuple[list[int], dict[int, int | Value]]:
    """Which operands of an op with regions have to be passed, and what stands for the others that are read.

    A constant is copied inside; an operand passed before is not passed twice; what is not `read` is left out.
    """
    kept: list[int] = []
    instead: dict[int, int | Value] = {}
    first: dict[Value, int] = {}
    for k, operand in enumerate(operands):
        if not read[k]:
            continue
        if operand in first:
            instead[k] = first[operand]
        elif known(operand) is not None:
            instead[k] = operand
        else:
            first[operand] = k
            kept.append(k)
    return kept, instead
