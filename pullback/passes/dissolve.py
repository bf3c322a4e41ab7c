"""Checkpoints dissolve once the last derivative has been taken."""

from pullback.ir.graph import Function, Region, Value
from pullback.passes.base import Context, Rebuild, map_regions, with_body
from pullback.record import record


@record(frozen=True)
class DissolveCheckpoints:
    """Puts the ops of each `checkpoint` into the region around it.

    One that computes something again for an adjoint stays: outside, its ops would be merged with those of the first
    time, and their results kept meanwhile. One walk.
    """

    name: str = "dissolve"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, _dissolve(function.body, ctx))


def _dissolve(region: Region, ctx: Context) -> Region:
    if not any(op.regions for op in region.ops):
        return region
    new = Rebuild()
    for op in region.ops:
        current = new.current(op, map_regions(op, lambda inner: _dissolve(inner, ctx)))
        if op.opdef.name == "checkpoint" and not op.attrs["again"] and ctx.tally.may("dissolve"):
            new.replace(op, inlined(new, current.regions[0], current.operands))
        else:
            new.keep(op, current)
    return new.region(region)


def inlined(new: Rebuild, region: Region, arguments: tuple[Value, ...]) -> list[Value]:
    """Emit the ops of `region`; what its results have become."""
    inner = Rebuild()
    inner.env.update(zip(region.params, arguments, strict=True))
    for op in region.ops:
        inner.keep(op, inner.current(op))
    new.ops.extend(inner.ops)
    return [inner.value(v) for v in region.results]
