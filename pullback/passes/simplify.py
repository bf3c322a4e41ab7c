"""The rewriting engine, and the pass that drives the rule tables."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.ir.graph import Attrs, Function, Location, Op, Region, Value
from pullback.ir.opdef import Array
from pullback.ir.ops import OPS
from pullback.ir.types import TensorType
from pullback.passes.base import Context, Rebuild, map_regions, use_counts, with_body
from pullback.passes.fold import broadcast_ops, constant_ops, folded
from pullback.passes.rules import ALL_RULES
from pullback.passes.rules.record import Number, Rule
from pullback.passes.rules.written import Chains
from pullback.record import record

DEEPEST = 32
"""How deep rules may rewrite what rules emit. It bounds the stack, and any loop of rules."""

Table = Mapping[str, tuple[Rule, ...]]


@lru_cache(maxsize=64)
def rules_by_op(rules: tuple[Rule, ...], fast: bool, skip: tuple[str, ...]) -> Table:
    """For each op name the rules to try, in order; `fast` ones on request only."""
    table: dict[str, list[Rule]] = {}
    for rule in rules:
        if (rule.kind != "fast" or fast) and rule.name not in skip:
            for name in rule.ops:
                table.setdefault(name, []).append(rule)
    return {name: tuple(found) for name, found in table.items()}


class _Walk:
    """One region on its way through the rules; the `Rewriter` that rules are given.

    Operands are rewritten before the ops that read them, and what a rule emits is rewritten at once, so one forward
    walk reaches the end: no op is looked at again.
    """

    __slots__ = ("chains", "ctx", "depth", "loc", "new", "table", "uses")

    def __init__(self, table: Table, ctx: Context, uses: dict[Value, int]) -> None:
        self.table = table
        self.ctx = ctx
        self.uses = uses
        self.new = Rebuild()
        self.chains = Chains()
        self.depth = 0
        self.loc: Location | None = None

    def walk(self, region: Region) -> Region:
        new, table = self.new, self.table
        for op in region.ops:
            regions = map_regions(op, lambda inner: rewrite_region(inner, self.table, self.ctx))
            current = new.current(op, regions)
            mark = len(new.ops)
            value = self.rewritten(current) if op.opdef.name in table else None
            if value is None:
                new.keep(op, current)
            else:
                new.replace(op, (value,))
                if len(new.ops) > mark and value.op is new.ops[-1] and not value.hint:
                    value.hint = op.results[0].hint
            if value is not None:
                self.forget_uses(current)
                self.carry_uses(op, (value,))
            elif current is not op:
                self.carry_uses(op, current.results)
        return new.region(region)

    def carry_uses(self, op: Op, values: tuple[Value, ...]) -> None:
        """The readers of the old results will read the new ones."""
        uses = self.uses
        for old, value in zip(op.results, values, strict=True):
            uses[value] = uses.get(value, 0) + uses.get(old, 0)

    def forget_uses(self, op: Op) -> None:
        """`op` is not emitted after all."""
        for operand in op.operands:
            self.uses[operand] -= 1

    def rewritten(self, op: Op) -> Value | None:
        """What stands for `op` after the first rule that applies (and all that follow from it); None if none does."""
        rules = self.table.get(op.opdef.name, ())
        if not rules or self.depth >= DEEPEST:
            return None
        ops = self.new.ops
        mark, outer = len(ops), self.loc
        self.depth += 1
        self.loc = op.loc
        try:
            for rule in rules:
                value = rule.rewrite(self, op)
                if value is not None:
                    if self.ctx.tally.may(rule.name):
                        return value
                    del ops[mark:]
        finally:
            self.depth -= 1
            self.loc = outer
        return None

    # -------------------------------------------------------------- what rules may ask for

    def emit(self, name: str, *operands: Value, **attrs: Any) -> Value:
        opdef, frozen = OPS[name], Attrs(attrs)
        op = Op(opdef, operands, frozen, opdef.infer([v.type for v in operands], frozen, ()), (), self.loc)
        constants = folded(op)
        if constants is not None:
            return self.append_all(constants[0])
        value = self.rewritten(op)
        if value is not None:
            return value
        self.append(op)
        return op.results[0]

    def append(self, op: Op) -> None:
        uses = self.uses
        for operand in op.operands:
            uses[operand] = uses.get(operand, 0) + 1
        self.new.ops.append(op)

    def append_all(self, ops: list[Op]) -> Value:
        for op in ops:
            self.append(op)
        return ops[-1].results[0]

    def constant(self, array: Array | np.generic) -> Value:
        return self.append_all(constant_ops(np.asarray(array), self.loc))

    def full(self, type: TensorType, number: Number) -> Value:
        return self.append_all(broadcast_ops(np.asarray(number).astype(type.dtype), type.shape, self.loc))

    def used_once(self, value: Value) -> bool:
        return self.uses.get(value, 0) <= 1


def rewrite_region(region: Region, table: Table, ctx: Context) -> Region:
    """`region`, and the regions in it, after the rules of `table`."""
    return _Walk(table, ctx, use_counts(region)).walk(region)


@record(frozen=True)
class Simplify:
    """Applies the rewrite rules of `passes.rules`: the exact ones, and the `fast` ones if that option is set.

    What a rule emits is folded if it is constant and simplified in turn. The right side of a rule never costs more than
    the left. Ops that nothing reads any more are left to `dce`. One walk, near-linear.
    """

    name: str = "simplify"
    rules: tuple[Rule, ...] = ALL_RULES

    def run(self, function: Function, ctx: Context) -> Function:
        table = rules_by_op(self.rules, ctx.options.fast, ctx.options.skip)
        return with_body(function, rewrite_region(function.body, table, ctx))
