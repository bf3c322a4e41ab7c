"""What a pass is, what it is given, and how it rebuilds a region.

A graph does not change once built, so a pass makes a new function. What a pass leaves as it was is *shared* with the
old function: an op whose operands did not change is the same object in both, and a pass that finds nothing to do
returns the very function it was given. That makes "nothing changed" a test of identity, and passes over large
functions cheap.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

from pullback.config import Options
from pullback.ir.graph import Function, Op, Region, Value, walk
from pullback.record import record


class Tally:
    """Counts rewrites by name while passes run. With a limit it refuses them once so many were made (for bisecting)."""

    __slots__ = ("counts", "left")

    counts: dict[str, int]
    left: int | None

    def __init__(self, limit: int | None = None) -> None:
        self.counts = {}
        self.left = limit

    def may(self, name: str) -> bool:
        """Whether one more rewrite may be made; if so it is counted under `name`."""
        if self.left is not None:
            if self.left == 0:
                return False
            self.left -= 1
        self.counts[name] = self.counts.get(name, 0) + 1
        return True

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@record(frozen=True)
class Context:
    """What passes are given beside the function: the options, and the tally they report rewrites to."""

    options: Options = field(default_factory=Options)
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def of(cls, options: Options) -> "Context":
        return cls(options, Tally(options.limit))


class Pass(Protocol):
    """A small frozen object. Its docstring is its contract: what it changes, what it never changes, its cost.

    `run` gives a new function of the same parameters and results, or the same object if there was nothing to do. It
    asks `ctx.tally.may(name)` before each rewrite. Run on its own result it has little or nothing left to do.
    """

    @property
    def name(self) -> str: ...

    def run(self, function: Function, ctx: Context) -> Function: ...


def doc_of(step: Pass) -> str:
    """The contract of a pass: the docstring of its class."""
    return (type(step).__doc__ or "").strip()


# ------------------------------------------------------------------ rebuilding


def with_operands(op: Op, operands: tuple[Value, ...], regions: tuple[Region, ...]) -> Op:
    """`op` once more, on other operands of the same types."""
    new = Op(op.opdef, operands, op.attrs, tuple([r.type for r in op.results]), regions, op.loc)
    for old, fresh in zip(op.results, new.results, strict=True):
        fresh.hint = old.hint
    return new


class Rebuild:
    """A region on its way to a new one: the ops emitted so far, and what old values have become."""

    __slots__ = ("changed", "env", "ops")

    changed: bool
    env: dict[Value, Value]
    ops: list[Op]

    def __init__(self) -> None:
        self.changed = False
        self.env = {}
        self.ops = []

    def current(self, op: Op, regions: tuple[Region, ...] | None = None) -> Op:
        """`op` on what its operands have become: `op` itself if nothing of it changed. Not emitted yet."""
        env = self.env
        if regions is None:
            regions = op.regions
        if env:
            for operand in op.operands:
                if operand in env:
                    return with_operands(op, tuple([env.get(v, v) for v in op.operands]), regions)
        return op if regions is op.regions else with_operands(op, op.operands, regions)

    def keep(self, op: Op, current: Op) -> None:
        """Emit `current`, which stands for `op` of the old region."""
        self.ops.append(current)
        if current is not op:
            self.changed = True
            self.env.update(zip(op.results, current.results, strict=True))

    def replace(self, op: Op, values: Sequence[Value]) -> None:
        """Let `values` stand for the results of `op`, which is not emitted."""
        self.changed = True
        self.env.update(zip(op.results, values, strict=True))

    def value(self, old: Value) -> Value:
        return self.env.get(old, old)

    def region(self, old: Region) -> Region:
        """The new region; the old object if no op was left out, added or changed."""
        if not self.changed and len(self.ops) == len(old.ops):
            return old
        return Region(old.params, tuple(self.ops), tuple([self.env.get(v, v) for v in old.results]))


def map_regions(op: Op, change: Callable[[Region], Region]) -> tuple[Region, ...]:
    """The regions of `op` after `change`; the same tuple if none of them changed."""
    if not op.regions:
        return op.regions
    new = tuple([change(region) for region in op.regions])
    return op.regions if all(a is b for a, b in zip(new, op.regions, strict=True)) else new


def with_body(function: Function, body: Region) -> Function:
    return function if body is function.body else replace(function, body=body)


# ------------------------------------------------------------------ questions about ops


def has_effect(op: Op) -> bool:
    """Whether `op`, or an op in one of its regions, must stay whatever reads it."""
    if op.opdef.effect:
        return True
    return bool(op.regions) and any(inner.opdef.effect for region in op.regions for inner in walk(region))


def count_ops(function: Function) -> int:
    """Ops of a function, those in its regions included."""
    ops = function.ops
    return sum(1 for _ in walk(function.body)) if any(op.regions for op in ops) else len(ops)


def use_counts(region: Region) -> dict[Value, int]:
    """How often each value is read in `region`, as an operand or as a result."""
    counts: dict[Value, int] = {}
    for op in region.ops:
        for operand in op.operands:
            counts[operand] = counts.get(operand, 0) + 1
    for result in region.results:
        counts[result] = counts.get(result, 0) + 1
    return counts


def difference(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """What a tally counted between two moments."""
    return {name: n - before.get(name, 0) for name, n in after.items() if n != before.get(name, 0)}
