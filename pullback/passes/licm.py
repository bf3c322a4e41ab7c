"""Loop invariants: what is the same in each turn is computed once, before the loop."""

from collections.abc import Mapping

from pullback.ir.builder import Builder
from pullback.ir.graph import Function, Op, Region, Value
from pullback.ir.opdef import Reduce, Scalar, View
from pullback.passes.base import Context, Rebuild, map_regions, with_body
from pullback.record import record

# Beside elementwise ops and reductions: library ops that cannot fail, so that a loop of no turns may compute them.
_SAFE = frozenset({"dot_general", "gather", "scatter", "scatter_add", "sort", "update", "argmax", "argmin",
                   "cumsum", "cumprod", "cummax", "cummin"})  # fmt: skip
_FREE = frozenset({"constant", "iota"})


@record(frozen=True)
class HoistInvariants:
    """Moves out of the regions of `scan` and `while` what depends on their constant operands only.

    The value moved becomes one more constant operand. Views and constants stay inside, as they cost nothing there,
    but go along outside for what is moved. Ops that may fail (a factorisation) stay, as the loop may make no turn.
    Inner loops first, so a value leaves as many loops as it can. One walk.
    """

    name: str = "licm"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, _hoist(function.body, ctx))


def _hoist(region: Region, ctx: Context) -> Region:
    if not any(op.regions for op in region.ops):
        return region
    new = Rebuild()
    for op in region.ops:
        current = new.current(op, map_regions(op, lambda inner: _hoist(inner, ctx)))
        if op.opdef.name in ("scan", "while"):
            current = _out_of_loop(new, current, ctx)
        new.keep(op, current)
    return new.region(region)


def _out_of_loop(new: Rebuild, op: Op, ctx: Context) -> Op:
    """`op` with the invariant ops of its regions emitted before it."""
    first = 1 if op.attrs.get("length", 0) < 0 else 0
    constants = first + op.attrs["carries"] + op.attrs.get("scanned", 0)
    moved: list[Value] = []
    instead: list[dict[Value, int]] = []
    outside: list[Op] = []
    for region in op.regions:
        known = dict(zip(region.params[constants - first :], op.operands[constants:], strict=True))
        instead.append(_move(region, known, outside, moved, ctx))
    if not moved:
        return op
    new.ops.extend(outside)
    tables = list(zip(op.regions, instead, strict=True))
    needed = sorted({number for region, table in tables for number in _read(region, table)})
    extra = [moved[number] for number in needed]
    place = {number: k for k, number in enumerate(needed)}
    regions = tuple([_with_extra(region, extra, table, place) for region, table in tables])
    return Op(op.opdef, (*op.operands, *extra), op.attrs, tuple([r.type for r in op.results]), regions, op.loc)


def _stays(op: Op, instead: Mapping[Value, int]) -> bool:
    return not op.results or op.results[0] not in instead


def _read(region: Region, instead: Mapping[Value, int]) -> set[int]:
    """Numbers of the moved values that what stays in `region` reads."""
    read = [v for op in region.ops if _stays(op, instead) for v in op.operands]
    return {instead[v] for v in [*read, *region.results] if v in instead}


def _move(
    region: Region, known: dict[Value, Value], outside: list[Op], moved: list[Value], ctx: Context
) -> dict[Value, int]:
    """Copy invariant ops to `outside`; for each value that is computed there now, its number in `moved`.

    `known` says what a value of the region is outside. Views are copied only when something that is moved reads them.
    """
    invariant: set[Value] = set(known)
    instead: dict[Value, int] = {}
    for op in region.ops:
        if op.regions or op.opdef.effect or not all(v in invariant for v in op.operands):
            continue
        if op.opdef.name in _FREE or isinstance(op.opdef.lower, View):
            invariant.update(op.results)
        elif _is_safe(op) and op.operands and ctx.tally.may("licm"):
            invariant.update(op.results)
            fresh = _copy_out(op, known, outside)
            for old, value in zip(op.results, fresh.results, strict=True):
                instead[old] = len(moved)
                moved.append(value)
    return instead


def _is_safe(op: Op) -> bool:
    return isinstance(op.opdef.lower, Scalar | Reduce) or op.opdef.name in _SAFE


def _copy_out(op: Op, known: dict[Value, Value], outside: list[Op]) -> Op:
    """`op` emitted outside, after the views and constants it reads."""
    stack = [op]
    while True:
        top = stack[-1]
        missing = [v.op for v in top.operands if v not in known and v.op is not None]
        if missing:
            stack.append(missing[0])
            continue
        types = tuple([r.type for r in top.results])
        fresh = Op(top.opdef, tuple([known[v] for v in top.operands]), top.attrs, types, (), top.loc)
        outside.append(fresh)
        known.update(zip(top.results, fresh.results, strict=True))
        stack.pop()
        if not stack:
            return fresh


def _with_extra(
    region: Region, extra: list[Value], instead: Mapping[Value, int], place: Mapping[int, int]
) -> Region:
    """`region` with one parameter more for each value of `extra`, and without the ops that were moved."""
    b = Builder()
    env: dict[Value, Value] = {p: b.param(p.type, p.hint) for p in region.params}
    added = [b.param(v.type, v.hint) for v in extra]
    env.update((old, added[place[number]]) for old, number in instead.items() if number in place)
    for op in region.ops:
        if _stays(op, instead):
            fresh = b.copy(op, [env[v] for v in op.operands])
            env.update(zip(op.results, fresh.results, strict=True))
    return b.region([env[v] for v in region.results])
