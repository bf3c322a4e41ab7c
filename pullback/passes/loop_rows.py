"""Products of scanned rows with matrices that stay the same: one large product before the loop."""

import math
from collections.abc import Sequence

from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs, Function, Op, Region, Value
from pullback.ir.ops import OPS
from pullback.ir.ops.products import free_axes
from pullback.passes.base import Context, Rebuild, map_regions, with_body
from pullback.record import record

ROOM = 4
"""The products of all turns may take so many times the bytes that the loop scans and stacks anyway."""

LEAST = 256
"""Multiplications of a turn from which on a product is worth a row of its own in memory."""


@record(frozen=True)
class BatchProducts:
    """Takes `row @ W` out of a `scan` of static length, where the row is scanned and W the same in all turns.

    One product over all rows runs at the speed of large products, and its rows are scanned. Views between are taken
    along. Only where what it makes is small next to what the loop scans and stacks anyway, and the turns go through no
    batch axes. Never changes what else a turn computes. One walk.
    """

    name: str = "batch"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, _batched(function.body, ctx))


def _batched(region: Region, ctx: Context) -> Region:
    if not any(op.regions for op in region.ops):
        return region
    new = Rebuild()
    for op in region.ops:
        current = new.current(op, map_regions(op, lambda inner: _batched(inner, ctx)))
        if op.name == "scan" and op.attrs["length"] > 1:
            current = _Rows(current).loop(new, ctx)
        new.keep(op, current)
    return new.region(region)


class _Rows:
    """One loop.

    rows, fixed : values of the body that are views of rows, and of what is the same in each turn
    outside : what these are for all turns, or outside the loop; made when it is first wanted
    """

    def __init__(self, op: Op) -> None:
        self.op = op
        (self.body,) = op.regions
        self.turns: int = op.attrs["length"]
        first = op.attrs["carries"]
        self.first_constant = first + op.attrs["scanned"]
        self.rows = set(self.body.params[first : self.first_constant])
        self.fixed = set(self.body.params[self.first_constant :])
        self.outside = dict(zip(self.body.params[first:], op.operands[first:], strict=True))
        moved = [*op.operands[first : self.first_constant], *op.results[first:]]
        self.room = ROOM * sum(v.type.nbytes for v in moved)

    def loop(self, new: Rebuild, ctx: Context) -> Op:
        """The loop without the products that are emitted before it; the same if there are none."""
        b = Builder(self.op.loc)
        instead: dict[Value, Value] = {}
        for op in self.body.ops:
            if op.name in ("reshape", "transpose"):
                for known in (self.rows, self.fixed):
                    if op.operands[0] in known:
                        known.update(op.results)
            elif op.name == "constant":
                self.fixed.update(op.results)
            elif op.name == "dot_general" and self._is_worth_it(op) and ctx.tally.may("batch"):
                self.room -= self.turns * op.results[0].type.nbytes
                instead[op.results[0]] = self._product(b, op)
        if not instead:
            return self.op
        new.ops.extend(b.ops)
        return self._without(instead)

    def _is_worth_it(self, op: Op) -> bool:
        x, y = op.operands
        (xc, yc), (xb, _) = op.attrs["contract"], op.attrs["batch"]
        out = op.results[0].type
        if xb or self.turns * out.nbytes > self.room:
            return False
        if out.size * math.prod(x.type.shape[a] for a in xc) < LEAST:
            return False
        if x in self.rows and y in self.fixed:
            return True
        # rows of the right operand come first in the product of all, so one side must have nothing but what is summed
        swapped = not free_axes(x.type.ndim, xc) or not free_axes(y.type.ndim, yc)
        return x in self.fixed and y in self.rows and swapped

    def _product(self, b: Builder, op: Op) -> Value:
        x, y = op.operands
        xc, yc = op.attrs["contract"][0], op.attrs["contract"][1]
        if x not in self.rows:
            (x, xc), (y, yc) = (y, yc), (x, xc)
        contract = (tuple(a + 1 for a in xc), yc)
        operands = [self._outside(b, x), self._outside(b, y)]
        return b.add(op.opdef, operands, Attrs(contract=contract, batch=((), ())), loc=op.loc).results[0]

    def _outside(self, b: Builder, value: Value) -> Value:
        """The value outside the loop; of a row, all rows."""
        chain = []
        while value not in self.outside:
            op = value.op
            assert op is not None
            chain.append(op)
            if not op.operands:
                break
            value = op.operands[0]
        for op in reversed(chain):
            source = [self.outside[v] for v in op.operands]
            attrs = _for_all_turns(op, self.turns) if op.results[0] in self.rows else op.attrs
            self.outside[op.results[0]] = b.add(op.opdef, source, attrs, loc=op.loc).results[0]
            value = op.results[0]
        return self.outside[value]

    def _without(self, instead: dict[Value, Value]) -> Op:
        """The loop that scans the products."""
        b = Builder()
        old, k = self.body.params, self.first_constant
        env = {p: b.param(p.type, p.hint) for p in old[:k]}
        env.update((v, b.param(v.type, v.hint)) for v in instead)
        env.update((p, b.param(p.type, p.hint)) for p in old[k:])
        for op in self.body.ops:
            if not op.results or op.results[0] not in instead:
                env.update(zip(op.results, b.copy(op, [env[v] for v in op.operands]).results, strict=True))
        body = b.region([env[v] for v in self.body.results])
        operands = (*self.op.operands[:k], *instead.values(), *self.op.operands[k:])
        attrs = Attrs({**self.op.attrs, "scanned": self.op.attrs["scanned"] + len(instead)})
        return Op(OPS["scan"], operands, attrs, tuple([r.type for r in self.op.results]), (body,), self.op.loc)


def _for_all_turns(op: Op, turns: int) -> Attrs:
    """The attributes of a view of a row, for all rows at once."""
    if op.name == "reshape":
        return Attrs(shape=(turns, *op.attrs["shape"]))
    perm: Sequence[int] = op.attrs["perm"]
    return Attrs(perm=(0, *(a + 1 for a in perm)))
