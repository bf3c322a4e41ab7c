"""Loops with less to carry: without carries, rows and operands that nobody reads, or that never change."""

from collections.abc import Sequence
from dataclasses import field

from pullback.ir.graph import Attrs, Function, Op, Region, Value
from pullback.ir.ops import OPS
from pullback.passes.base import Context, Rebuild, has_effect, map_regions, use_counts, with_body
from pullback.passes.dce import sweep
from pullback.passes.regions import sort_operands, with_fewer_params
from pullback.record import record


@record(frozen=True)
class PruneLoops:
    """Makes `scan` and `while` carry, read and stack only what is needed.

    A carry is needed if its last value is read, or something that is needed in a turn (the condition of a `while`
    included) reads it: a cycle of carries that only feed one another goes. A carry that each turn hands on as it is
    becomes a constant operand. A scanned operand whose rows are all the same becomes a constant operand. A stacked
    result that is a scanned row, or a constant operand, is that operand outside. Constant operands are passed once,
    constants move inside. Never changes what a turn computes, or how many there are. One walk.
    """

    name: str = "loops"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, _prune(function.body, ctx))


def _prune(region: Region, ctx: Context) -> Region:
    if not any(op.regions for op in region.ops):
        return region
    new, uses = Rebuild(), use_counts(region)
    for op in region.ops:
        current = new.current(op, map_regions(op, lambda inner: _prune(inner, ctx)))
        if op.opdef.name not in ("scan", "while"):
            new.keep(op, current)
            continue
        plan = _Plan(current, [uses.get(r, 0) > 0 for r in op.results])
        if plan.saves and ctx.tally.may("loops"):
            plan.emit(new, op, ctx)
        else:
            new.keep(op, current)
    return new.region(region)


def _needed(body: Region, roots: Sequence[Value], carries: int) -> set[Value]:
    """Values of the body that `roots` and its effects depend on, in this turn or an earlier one."""
    stack = [*roots, *(v for op in body.ops if has_effect(op) for v in op.operands)]
    seen: set[Value] = set()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.op is not None:
            stack.extend(value.op.operands)
        elif value.index < carries:
            stack.append(body.results[value.index])
    return seen


def _row_of(operand: Value) -> Op | None:
    """The broadcast that makes all rows of a scanned operand the same."""
    op = operand.op
    return op if op is not None and op.opdef.name == "broadcast" and 0 not in op.attrs["dims"] else None


@record
class _Plan:
    """What a loop keeps. Operands, and parameters of its regions, are numbered without the run-time count of a scan."""

    op: Op
    is_read: list[bool]
    head: tuple[Value, ...] = field(init=False)
    operands: tuple[Value, ...] = field(init=False)
    carries: int = field(init=False)
    scanned: int = field(init=False)
    static: bool = field(init=False)
    kept_carries: list[int] = field(init=False)
    kept_rows: list[int] = field(init=False)
    kept_stacked: list[int] = field(init=False)
    constants: list[int] = field(init=False)
    read: set[int] = field(init=False)

    def __post_init__(self) -> None:
        op = self.op
        dynamic = op.attrs.get("length", 0) < 0
        self.head, self.operands = (op.operands[:1], op.operands[1:]) if dynamic else ((), op.operands)
        self.carries, self.scanned = op.attrs["carries"], op.attrs.get("scanned", 0)
        self.static = op.opdef.name == "scan" and not dynamic
        self._choose()

    @property
    def body(self) -> Region:
        return self.op.regions[-1]

    @property
    def first_stacked(self) -> int:
        """The number of the first stacked result of the op; before it a `while` gives the number of turns."""
        taped = len(self.body.results) > self.carries
        return self.carries + (1 if self.op.opdef.name == "while" and taped else 0)

    def _choose(self) -> None:
        body, n, first = self.body, self.carries, self.first_stacked
        stacked = range(len(body.results) - n)
        self.kept_stacked = [k for k in stacked if self.is_read[first + k] and not self._outside(k)]
        if first > n and self.is_read[n] and not self.kept_stacked:
            self.kept_stacked = [0]  # without a tape there would be no number of turns
        in_condition = [p for region in self.op.regions[:-1] for p in use_counts(region) if p.op is None]
        same = [v is p for v, p in zip(body.results[:n], body.params[:n], strict=True)]
        roots = [body.results[k] for k in range(n) if self.is_read[k] and not same[k]]
        roots += [body.results[n + k] for k in self.kept_stacked]
        roots += [body.results[p.index] for p in in_condition if p.index < n]
        needed = _needed(body, roots, n)
        self.read = {p.index for p in in_condition} | {k for k, p in enumerate(body.params) if p in needed}
        alive = [k for k in range(n) if k in self.read or self.is_read[k]]
        self.kept_carries = [k for k in alive if not same[k]]
        rows = [k for k in range(n, n + self.scanned) if k in self.read]
        repeated = [k for k in rows if self.static and _row_of(self.operands[k]) is not None]
        self.kept_rows = [k for k in rows if k not in repeated]
        unchanged = [k for k in alive if k not in self.kept_carries]
        self.constants = [*range(n + self.scanned, len(self.operands)), *unchanged, *repeated]

    def _outside(self, stacked: int) -> bool:
        """Whether a stacked result can be said without the loop."""
        value = self.body.results[self.carries + stacked]
        return self.static and value.op is None and value.index >= self.carries

    @property
    def saves(self) -> bool:
        old_stacked = len(self.body.results) - self.carries
        kept = len(self.kept_carries), len(self.kept_rows), len(self.kept_stacked)
        if kept != (self.carries, self.scanned, old_stacked):
            return True
        first = self.carries + self.scanned
        constants = self.operands[first:]
        passed, _ = sort_operands(constants, [first + k in self.read for k in range(len(constants))])
        return len(passed) < len(constants)

    # -------------------------------------------------------------- the new loop

    def emit(self, new: Rebuild, old: Op, ctx: Context) -> None:
        """Emit the smaller loop, and say what the results of the old one have become."""
        values = [self._constant_operand(new, k) for k in self.constants]
        passed, instead = sort_operands(values, [k in self.read for k in self.constants])
        number = self.constants
        kept = [*self.kept_carries, *self.kept_rows, *(number[k] for k in passed)]
        other = {number[k]: number[v] if isinstance(v, int) else v for k, v in instead.items()}
        regions = tuple([self._region(region, kept, other, ctx) for region in self.op.regions])
        operands = [self.operands[k] for k in kept[: len(self.kept_carries) + len(self.kept_rows)]]
        attrs = {**self.op.attrs, "carries": len(self.kept_carries)}
        if "scanned" in attrs:
            attrs["scanned"] = len(self.kept_rows)
        wanted = self._wanted_results()
        types = tuple([self.op.results[k].type for k in wanted])
        operands = [*self.head, *operands, *(values[k] for k in passed)]
        loop = Op(self.op.opdef, tuple(operands), Attrs(attrs), types, regions, self.op.loc)
        new.ops.append(loop)
        new.changed = True
        new.env.update(zip([old.results[k] for k in wanted], loop.results, strict=True))
        self._results_outside(new, old)

    def _constant_operand(self, new: Rebuild, k: int) -> Value:
        broadcast = _row_of(self.operands[k])
        if not self.carries <= k < self.carries + self.scanned or broadcast is None:
            return self.operands[k]
        dims, shape = broadcast.attrs["dims"], broadcast.attrs["shape"]
        (x,) = broadcast.operands
        if shape[1:] == x.type.shape:
            return x
        attrs = Attrs(dims=tuple([d - 1 for d in dims]), shape=shape[1:])
        row = Op(OPS["broadcast"], (x,), attrs, (x.type.with_shape(shape[1:]),), (), self.op.loc)
        new.ops.append(row)
        return row.results[0]

    def _region(self, region: Region, kept: list[int], instead: dict[int, int | Value], ctx: Context) -> Region:
        results = region.results
        if region is self.body:
            stacked = [results[self.carries + k] for k in self.kept_stacked]
            results = (*(results[k] for k in self.kept_carries), *stacked)
        return with_fewer_params(sweep(Region(region.params, region.ops, results), ctx), kept, instead)

    def _wanted_results(self) -> list[int]:
        first = self.first_stacked
        turns = [self.carries] if first > self.carries and self.kept_stacked else []
        return [*self.kept_carries, *turns, *(first + k for k in self.kept_stacked)]

    def _results_outside(self, new: Rebuild, old: Op) -> None:
        """Carries that never change are their first value; stacked rows of operands are the operands."""
        for k in range(self.carries):
            if self.is_read[k] and k not in self.kept_carries:
                new.env[old.results[k]] = self.operands[k]
        for k in range(len(self.body.results) - self.carries):
            result = old.results[self.first_stacked + k]
            if not self.is_read[self.first_stacked + k] or k in self.kept_stacked:
                continue
            number = self.body.results[self.carries + k].index
            operand = self.operands[number]
            if number >= self.carries + self.scanned:
                operand = self._stacked(new, operand, result)
            new.env[result] = operand

    def _stacked(self, new: Rebuild, operand: Value, result: Value) -> Value:
        shape = result.type.shape
        attrs = Attrs(dims=tuple(range(1, len(shape))), shape=shape)
        copies = Op(OPS["broadcast"], (operand,), attrs, (result.type,), (), self.op.loc)
        new.ops.append(copies)
        return copies.results[0]
