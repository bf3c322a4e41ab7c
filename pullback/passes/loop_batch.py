"""Batching of loops: rows of the batch go through the turns together.

Where the number of turns differs from row to row, the loop runs as long as any row does; a row that is done keeps its
carries and stacks zeros, so what it computes meanwhile is never seen.
"""

from collections.abc import Sequence

import numpy as np

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region, Value
from pullback.ir.types import tensor_type
from pullback.passes.batching import batch_region, row_params, with_rows
from pullback.passes.emitter import RuleEmitter
from pullback.passes.loop_view import LoopView
from pullback.passes.structured import Flags, Rules
from pullback.passes.tapes import is_tape, tape_params
from pullback.record import record

COUNTER = np.dtype(np.int64)


@record(frozen=True)
class _Batched:
    """How a loop is batched.

    flags, results : which parameters and results of the body have the batch axis
    ragged : rows may differ in their number of turns
    where : whether a mask of rows whose checks count is passed along
    """

    view: LoopView
    size: int
    rules: Rules
    flags: tuple[bool, ...]
    results: tuple[bool, ...]
    ragged: bool
    where: bool

    @property
    def counts(self) -> bool:
        """Whether each row counts its own turns."""
        return self.ragged and (not self.view.is_while or self.view.stacked > 0)


def batch_loop(
    f: Emitter, op: Op, args: Sequence[Expr], batched: Flags, size: int, rules: Rules, where: Expr | None
) -> tuple[list[Expr], list[bool]]:
    """Emit the loop over a leading axis of its carries, rows and constants."""
    view = LoopView(op)
    plan = _plan(view, args[: view.offset], batched, size, rules, where)
    given = args[view.offset :]
    carries, scanned, constants = view.split(
        [
            _argument(f, view, k, x, has, plan)
            for k, (x, has) in enumerate(zip(given, batched[view.offset :], strict=True))
        ]
    )
    head: list[Expr] = list(args[: view.offset])
    start: list[Expr] = []
    if plan.ragged and view.offset:
        (counts,) = head
        total = f.max(counts, axes=(0,), ties="equal") if size else f.full(tensor_type(COUNTER), 0)
        head = [total]
        start = [total - 1 if op.attrs["reverse"] else f.full(total.type, 0)]
        constants.append(counts)
    elif plan.counts:
        start = [f.full(tensor_type(COUNTER, (size,)), 0)]
    if where is not None:
        constants.append(where)
    attrs = Attrs({**op.attrs, "carries": view.carries + len(start)})
    regions = (_condition(plan), _body(plan)) if view.is_while else (_body(plan),)
    passed = [x.value for x in (*head, *carries, *start, *scanned, *constants)]
    new = f.b.add(op.opdef, passed, attrs, regions)
    return _results(f, plan, [f.wrap(r) for r in new.results], len(start))


def _results(f: Emitter, plan: _Batched, results: Sequence[Expr], extra: int) -> tuple[list[Expr], list[bool]]:
    view, n = plan.view, plan.view.carries
    stacked = results[len(results) - view.stacked :] if view.stacked else []
    if not view.is_dynamic:  # [turns, batch, ...] -> [batch, turns, ...]
        wide = [has and not is_tape(old) for has, old in zip(plan.results[n:], view.body.results[n:], strict=True)]
        stacked = [_exchanged(f, x) if has else x for x, has in zip(stacked, wide, strict=True)]
    turns: list[Expr] = []
    if view.first_stacked > n:
        turns = [results[n]] if not plan.counts else [results[n : n + extra][0]]
    have = [*plan.results[:n], *([plan.counts] * len(turns)), *plan.results[n:]]
    return [*results[:n], *turns, *stacked], have


def _exchanged(f: Emitter, x: Expr) -> Expr:
    return f.permute(x, (1, 0, *range(2, x.ndim)))


def _argument(f: Emitter, view: LoopView, k: int, x: Expr, has: bool, plan: _Batched) -> Expr:
    if k < view.carries:
        return with_rows(f, x, has, plan.size) if plan.flags[k] else x
    if has and k < view.carries + view.scanned and not view.is_dynamic and not tape_params(view.body)[k]:
        return _exchanged(f, x)
    return x


# ------------------------------------------------------------------ which values have the axis


def _plan(
    view: LoopView, count: Sequence[Expr], batched: Flags, size: int, rules: Rules, where: Expr | None
) -> _Batched:
    flags = list(batched[view.offset :])
    n = view.carries
    ragged = bool(view.offset) and batched[0]
    while True:
        ragged = ragged or (view.is_while and _trial(view.op, view.op.regions[0], flags, size, rules)[0])
        if ragged:
            flags[:n] = [True] * n
        results = _trial(view.op, view.body, flags, size, rules)
        after = [a or b for a, b in zip(flags[:n], results[:n], strict=True)]
        if after == flags[:n]:
            break
        flags[:n] = after
    stacked = [True] * view.stacked if ragged else results[n:]
    return _Batched(view, size, rules, tuple(flags), (*after, *stacked), ragged, where is not None)


def _trial(op: Op, region: Region, flags: Flags, size: int, rules: Rules) -> list[bool]:
    """Which results of a region have the batch axis."""
    f = RuleEmitter(Builder())
    return batch_region(f, region, row_params(f, op, region, flags, size), flags, size, rules)[1]


# ------------------------------------------------------------------ regions


class _Params:
    """The parameters of a batched region, in the order of the new loop: carries, counter, scanned, constants, mask."""

    def __init__(self, f: Emitter, plan: _Batched, region: Region) -> None:
        self.f = f
        view, size = plan.view, plan.size
        handles = tape_params(view.body)
        carries, scanned, constants = view.split(list(zip(region.params, plan.flags, handles, strict=True)))

        def make(params: Sequence[tuple[Value, bool, bool]]) -> list[Expr]:
            return [
                f.wrap(f.b.param(p.type.with_shape((size, *p.type.shape)) if has and not handle else p.type, p.hint))
                for p, has, handle in params
            ]

        self.carries = make(carries)
        self.counter = None
        if plan.counts:
            shape = (size,) if view.is_while else ()
            self.counter = f.wrap(f.b.param(tensor_type(COUNTER, shape), "turn"))
        self.scanned = make(scanned)
        self.constants = make(constants)
        ragged_scan = plan.ragged and not view.is_while
        self.limits = f.wrap(f.b.param(tensor_type(COUNTER, (size,)), "turns")) if ragged_scan else None
        self.where = f.wrap(f.b.param(tensor_type(np.dtype(np.bool_), (size,)), "where")) if plan.where else None

    def arguments(self) -> list[Expr]:
        return [*self.carries, *self.scanned, *self.constants]


def _condition(plan: _Batched) -> Region:
    """True as long as it is for any row."""
    f = RuleEmitter(Builder())
    region = plan.view.op.regions[0]
    params = _Params(f, plan, region)
    rows = _running(f, plan, params)
    if rows is None:
        (pred,), _ = batch_region(f, region, params.arguments(), plan.flags, plan.size, plan.rules, params.where)
        if params.where is not None:  # a loop that no row wants might never end
            pred = pred & f.any(params.where, axes=(0,))
        return f.b.region([pred.value])
    return f.b.region([f.any(rows, axes=(0,)).value])


def _running(f: Emitter, plan: _Batched, params: _Params) -> Expr | None:
    """Which rows take part in this turn; None if all do."""
    if not plan.ragged:
        return None
    if params.limits is not None and params.counter is not None:
        rows = f.broadcast_to(params.counter, (plan.size,), ()) < params.limits
    else:
        region = plan.view.op.regions[0]
        (pred,), (has,) = batch_region(f, region, params.arguments(), plan.flags, plan.size, plan.rules, params.where)
        rows = with_rows(f, pred, has, plan.size)
    return rows if params.where is None else rows & params.where


def _body(plan: _Batched) -> Region:
    f = RuleEmitter(Builder())
    view, n = plan.view, plan.view.carries
    params = _Params(f, plan, view.body)
    rows = _running(f, plan, params)
    where = params.where if rows is None else rows
    results, have = batch_region(f, view.body, params.arguments(), plan.flags, plan.size, plan.rules, where)
    wide = [
        with_rows(f, x, mine, plan.size) if on and not is_tape(old) else x
        for x, mine, on, old in zip(results, have, plan.results, view.body.results, strict=True)
    ]
    if rows is not None:
        wide[:n] = [_choose(f, rows, new, old) for new, old in zip(wide[:n], params.carries, strict=True)]
        wide[n:] = [
            x if is_tape(old) else _choose(f, rows, x, f.zeros_like(x))
            for x, old in zip(wide[n:], view.body.results[n:], strict=True)
        ]
    turn = [] if params.counter is None else [_next_turn(f, plan, params.counter, rows).value]
    return f.b.region([*(x.value for x in wide[:n]), *turn, *(x.value for x in wide[n:])])


def _next_turn(f: Emitter, plan: _Batched, counter: Expr, rows: Expr | None) -> Expr:
    if plan.view.is_while and rows is not None:
        return counter + f.astype(rows, COUNTER)
    return counter - 1 if plan.view.op.attrs["reverse"] else counter + 1


def _choose(f: Emitter, rows: Expr, x: Expr, y: Expr) -> Expr:
    return f.select(f.broadcast_to(rows, x.shape, (0,)), x, y)
