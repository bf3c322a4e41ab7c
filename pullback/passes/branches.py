"""Dead branches: known predicates, results nobody reads, operands nobody needs, checks that always hold."""

from pullback.ir.graph import Function, Op, Region, Value
from pullback.passes.base import Context, Rebuild, map_regions, use_counts, with_body, with_operands
from pullback.passes.dce import sweep
from pullback.passes.dissolve import inlined
from pullback.passes.fold import known
from pullback.passes.regions import sort_operands, with_fewer_params
from pullback.record import record


@record(frozen=True)
class PruneBranches:
    """Makes `if`, and the adjoint of a `checkpoint`, as small as it can be.

    A constant predicate: the branch taken is inlined. Otherwise: results that nothing reads are dropped with what
    only they needed; a result that both branches pass through is the operand itself; operands that no branch reads,
    or that are passed twice, are dropped; constants move inside. A guard or check on a constant that holds is
    dropped: it has no effect. Never moves work out of a branch. One walk.
    """

    name: str = "branches"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, _prune(function.body, ctx))


def _prune(region: Region, ctx: Context) -> Region:
    if not any(op.regions or op.opdef.effect for op in region.ops):
        return region
    new, uses = Rebuild(), use_counts(region)
    for op in region.ops:
        current = new.current(op, map_regions(op, lambda inner: _prune(inner, ctx)))
        if _always_holds(current) and ctx.tally.may("check-holds"):
            new.changed = True
        elif op.opdef.name not in ("if", "checkpoint"):
            new.keep(op, current)
        else:
            _prune_if(new, op, current, [uses.get(r, 0) > 0 for r in op.results], ctx)
    return new.region(region)


def _always_holds(op: Op) -> bool:
    if op.opdef.name not in ("guard", "check"):
        return False
    array = known(op.operands[0])
    if array is None:
        return False
    return bool(array.all()) if op.opdef.name == "check" else int(array) == op.attrs["expected"]


def _prune_if(new: Rebuild, old: Op, op: Op, is_read: list[bool], ctx: Context) -> None:
    pred = known(op.operands[0]) if op.opdef.name == "if" else None
    if pred is not None and ctx.tally.may("known-branch"):
        new.replace(old, inlined(new, op.regions[0 if bool(pred) else 1], op.operands[1:]))
        return
    passed = [_passed_through(op, k) for k in range(len(op.results))]
    wanted = [k for k, read in enumerate(is_read) if read and passed[k] is None]
    if len(wanted) < len(op.results) and ctx.tally.may("branch-results"):
        op = _with_results(op, wanted, ctx)
        for number, value in enumerate(passed):
            if value is not None:
                new.env[old.results[number]] = value
    else:
        wanted = list(range(len(op.results)))
    op = _with_operands(op, ctx)
    new.ops.append(op)
    new.changed = new.changed or op is not old
    for k, result in zip(wanted, op.results, strict=True):
        if result is not old.results[k]:
            new.env[old.results[k]] = result


def _first(op: Op) -> int:
    """The operand that the first parameter of the regions stands for."""
    return 1 if op.opdef.name == "if" else 0


def _passed_through(op: Op, number: int) -> Value | None:
    """The operand that result `number` is, whichever branch is taken."""
    found = set()
    for region in op.regions:
        value = region.results[number]
        if value.op is not None:
            return None
        found.add(op.operands[value.index + _first(op)])
    return found.pop() if len(found) == 1 else None


def _with_results(op: Op, wanted: list[int], ctx: Context) -> Op:
    """The op with some results only; what only the others needed is swept out of the branches."""
    regions = []
    for region in op.regions:
        fewer = Region(region.params, region.ops, tuple([region.results[k] for k in wanted]))
        regions.append(sweep(fewer, ctx))
    types = tuple([op.results[k].type for k in wanted])
    return Op(op.opdef, op.operands, op.attrs, types, tuple(regions), op.loc)


def _with_operands(op: Op, ctx: Context) -> Op:
    """The op with the operands only that a branch reads, each once, constants moved inside."""
    pred, given = op.operands[: _first(op)], op.operands[_first(op) :]
    reads = [use_counts(region) for region in op.regions]
    read = [
        any(region.params[k] in counts for region, counts in zip(op.regions, reads, strict=True))
        for k in range(len(given))
    ]
    kept, instead = sort_operands(given, read)
    if len(kept) == len(given) or not ctx.tally.may("branch-operands"):
        return op
    regions = tuple([with_fewer_params(region, kept, instead) for region in op.regions])
    return with_operands(op, (*pred, *(given[k] for k in kept)), regions)
