"""stop_gradient, once the last derivative has been taken."""

from pullback.ir.graph import Function, Region
from pullback.passes.base import Context, Rebuild, map_regions, with_body
from pullback.record import record


@record(frozen=True)
class Detach:
    """Replaces `stop_gradient(x)` by x, inside regions too.

    Only differentiation reads it, so this is the first pass after the last derivative and never comes before one. One
    walk.
    """

    name: str = "detach"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, _detach(function.body, ctx))


def _detach(region: Region, ctx: Context) -> Region:
    new = Rebuild()
    for op in region.ops:
        current = new.current(op, map_regions(op, lambda inner: _detach(inner, ctx)))
        if op.opdef.name == "stop_gradient" and ctx.tally.may("detach"):
            new.replace(op, current.operands)
        else:
            new.keep(op, current)
    return new.region(region)
