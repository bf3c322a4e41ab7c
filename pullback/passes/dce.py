"""Dead code: what nothing reads is not computed."""

from dataclasses import replace

from pullback.ir.graph import Function, Op, Region, Value
from pullback.passes.base import Context, Rebuild, has_effect, map_regions, with_body
from pullback.record import record


@record(frozen=True)
class EliminateDead:
    """Drops ops whose results are not read, in the function and inside regions.

    Effects are roots: guards and checks, and ops with one in a region, stay with all they read. Parameters and results
    stay as they are (those of regions are the business of `branches`). One walk from the end.
    """

    name: str = "dce"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, sweep(function.body, ctx))


def sweep(region: Region, ctx: Context) -> Region:
    live: set[Value] = set(region.results)
    kept: list[Op] = []
    changed = False
    for op in reversed(region.ops):
        if not any(r in live for r in op.results) and not has_effect(op) and ctx.tally.may("dce"):
            changed = True
            continue
        live.update(op.operands)
        kept.append(op)
    if changed:
        region = replace(region, ops=tuple(reversed(kept)))
    return _sweep_inside(region, ctx)


def _sweep_inside(region: Region, ctx: Context) -> Region:
    """`region` with the regions of its ops swept; readers of a changed op read its new results."""
    if not any(op.regions for op in region.ops):
        return region
    new = Rebuild()
    for op in region.ops:
        new.keep(op, new.current(op, map_regions(op, lambda inner: sweep(inner, ctx))))
    return new.region(region)
