"""The batching walk over one region: each op that meets a batched value is replaced by what its `batch` rule emits."""

from collections.abc import Sequence

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op, Region, Value
from pullback.ir.opdef import Structured
from pullback.passes.structured import Flags, Rules
from pullback.passes.tapes import tape_params


def batch_region(
    f: Emitter,
    region: Region,
    arguments: Sequence[Expr],
    batched: Flags,
    size: int,
    rules: Rules,
    where: Expr | None = None,
) -> tuple[list[Expr], list[bool]]:
    """Emit a region over a leading axis of `size`.

    Parameters
    ----------
    arguments : one for each parameter, with the batch axis first where `batched` says so
    where : bool[size]; rows outside it are computed but not used, so their checks do not count

    Returns
    -------
    The results, and which of them have the batch axis.
    """
    env: dict[Value, Expr] = dict(zip(region.params, arguments, strict=True))
    rows: set[Value] = {p for p, has in zip(region.params, batched, strict=True) if has}
    outer = f.b.loc
    for op in region.ops:
        args = [env[v] for v in op.operands]
        flags = [v in rows for v in op.operands]
        f.b.loc = op.loc
        results, have = _batch_op(f, op, args, flags, size, rules, where)
        env.update(zip(op.results, results, strict=True))
        rows.update(r for r, has in zip(op.results, have, strict=True) if has)
    f.b.loc = outer
    return [env[v] for v in region.results], [v in rows for v in region.results]


def _batch_op(
    f: Emitter, op: Op, args: Sequence[Expr], batched: Flags, size: int, rules: Rules, where: Expr | None
) -> tuple[Sequence[Expr], Sequence[bool]]:
    if op.name == "check" and where is not None:
        return _check_rows(f, op, args[0], batched[0], where)
    if not any(batched) and (where is None or not op.regions):
        new = f.b.copy(op, [a.value for a in args])
        return [f.wrap(r) for r in new.results], [False] * len(new.results)
    if isinstance(op.opdef.derivative, Structured):
        return rules[op.name].batch(f, op, args, batched, size, rules, where)
    results = op.opdef.batch(f, op, args, batched)
    return results, [True] * len(results)


def _check_rows(f: Emitter, op: Op, pred: Expr, batched: bool, where: Expr) -> tuple[list[Expr], list[bool]]:
    (size,) = where.shape
    wide = pred if batched else f.broadcast_to(pred, (size, *pred.shape))
    f.b.add(op.opdef, [(wide | f.broadcast_to(~where, wide.shape, (0,))).value], op.attrs)
    return [], []


def with_rows(f: Emitter, x: Expr, has: bool, size: int) -> Expr:
    """`x` with a leading axis of `size`: as it is, or copied along a new one."""
    return x if has else f.broadcast_to(x, (size, *x.shape), range(1, x.ndim + 1))


def row_params(f: Emitter, op: Op, region: Region, batched: Flags, size: int) -> list[Expr]:
    """Parameters like those of a region of `op`, with the axis where `batched` says so.

    A handle has no axis itself: its tape's records have.
    """
    handles = [any(column) for column in zip(*(tape_params(r) for r in op.regions), strict=True)]
    return [
        f.wrap(f.b.param(p.type.with_shape((size, *p.type.shape)) if has and not handle else p.type, p.hint))
        for p, has, handle in zip(region.params, batched, handles, strict=True)
    ]
