"""Reverse mode of loops: the body is run with its residuals stacked, the adjoint is a scan the other way over them.

A loop whose number of turns is not static stacks on tapes, and its adjoint is a scan of run-time length. What the
residuals are is chosen as everywhere (`partition`): scanned operands and constants cost nothing, the carries and what
is computed from them cost their bytes in each turn. What depends on constants only is computed once, before the loop.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Function, Op, Region, Value
from pullback.ir.opdef import Reduce, Scalar, View
from pullback.ir.ops import OPS
from pullback.ir.types import TensorType, tensor_type
from pullback.passes.emitter import RuleEmitter
from pullback.passes.loop_products import Product, over_turns, summed_products
from pullback.passes.loop_view import LoopActivity, LoopView, body_wildness, loop_activity
from pullback.passes.partition import Partition, extract, partition
from pullback.passes.region_vjp import RegionVjp, region_vjp
from pullback.passes.strong_zeros import KINK, NONE, Marked
from pullback.passes.structured import Flags, Rules, Site
from pullback.record import record

SMALL_STATE = 512
"""Carried values of up to so many bytes live in registers; what is stacked of them is written in any case."""

MaybeMarked = Marked | None
COUNTER = tensor_type(np.dtype(np.int64))


class Source(NamedTuple):
    """Where the adjoint loop finds a residual.

    kind : `constant`, `scanned` and `result` (what the body stacks anyway) number what the loop has; `stacked` numbers
        what was stacked for the adjoint.
    """

    kind: str
    number: int


@record(frozen=True)
class LoopSaved:
    """What the adjoint of a loop needs.

    parts : a turn, split into what needs no cotangent and what does
    sources : of the residuals of the second part
    tables : for each kind of source, the values that it numbers
    turns : how many there were, if that is not static
    """

    view: LoopView
    activity: LoopActivity
    made: RegionVjp
    parts: Partition
    sources: tuple[Source, ...]
    tables: Mapping[str, Sequence[Value]]
    turns: Value | None


# ------------------------------------------------------------------ forwards


def augment_loop(
    site: Site, operands: Sequence[Value], active: Flags, marks: Sequence[int | None]
) -> tuple[tuple[Value, ...], LoopSaved]:
    """Emit the loop with its residuals stacked behind what it stacks already."""
    view = LoopView(site.op)
    given = operands[view.offset :]
    body_marks = view.of_body(marks)
    wanted = [mark is not None for mark in body_marks]
    activity = loop_activity(view, active[view.offset :], wanted, site.rules)
    made = _body_vjp(view, activity, body_marks, body_wildness(view, site.facts, given), site.rules)
    outside = _split_off_constants(view, made)
    _, scanned, constants = view.split(list(given))
    hoisted = site.f.b.inline(outside.known.body, constants)
    parts = _split_turn(view, outside.unknown, len(hoisted))
    sources = _sources(view, parts, len(hoisted))
    op = _emit_forward(site.f, view, operands, hoisted, parts, sources)
    new = sum(source.kind == "stacked" for source in sources)
    first = len(op.results) - new - view.stacked
    tables = {
        "constant": hoisted,
        "scanned": scanned,
        "result": op.results[first : first + view.stacked],
        "stacked": op.results[first + view.stacked :],
    }
    turns = operands[0] if view.offset else op.results[view.carries] if view.is_dynamic else None
    saved = LoopSaved(view, activity, made, parts, tuple(sources), tables, turns)
    return tuple(op.results[: len(site.op.results)]), saved


def _body_vjp(
    view: LoopView, activity: LoopActivity, marks: Sequence[int | None], wildness: Sequence[int], rules: Rules
) -> RegionVjp:
    """The body with its gradients, for marks of the carries' cotangents that hold in every turn."""
    n = view.carries
    dense = [on and k < n for k, on in enumerate(activity.params)]
    summed = [on and k >= n + view.scanned for k, on in enumerate(activity.params)]
    # a carry that gets no cotangent from outside starts with zeros
    current = [
        (KINK if mark is None and k < n else mark or NONE) if on else None
        for k, (mark, on) in enumerate(zip(marks, activity.results, strict=True))
    ]
    while True:
        made = region_vjp(view.body, activity.params, current, wildness, rules, dense, summed)
        after = [max(old, made.gives[k] or NONE) if k < n and old is not None else old for k, old in enumerate(current)]
        if after == current:
            return made
        current = after


def _split_off_constants(view: LoopView, made: RegionVjp) -> Partition:
    """First what depends on the constant operands only, then the rest."""
    function = made.function
    first, last = view.carries + view.scanned, len(view.body.params)
    known = [first <= k < last for k in range(len(function.params))]
    return partition(function, known, known_results=[False] * len(function.results), may_go_first=_may_leave)


def _may_leave(op: Op) -> bool:
    """Whether an op may be computed though the loop makes no turn: it cannot fail."""
    return isinstance(op.opdef.lower, Scalar | View | Reduce) or op.name in ("dot_general", "constant", "iota")


def _split_turn(view: LoopView, function: Function, hoisted: int) -> Partition:
    """A turn split into what needs no cotangent and what does."""
    inputs, outputs = hoisted + view.carries + view.scanned, len(view.body.results)
    number = {p: k for k, p in enumerate(function.params)}

    def cost(value: Value) -> int:
        """Bytes; of equals the carried value itself, which may live in its row and is not written once more."""
        k = number.get(value)
        if k is None:
            return value.type.nbytes
        carried = hoisted <= k < hoisted + view.carries
        return max(1, value.type.nbytes - (value.type.nbytes > SMALL_STATE)) if carried else 0

    return partition(
        function,
        [k < inputs for k in range(len(function.params))],
        known_results=[k < outputs for k in range(len(function.results))],
        cost=cost,
    )


def _sources(view: LoopView, parts: Partition, hoisted: int) -> list[Source]:
    """Constants, scanned operands and what is stacked anyway are at hand; all else is stacked."""
    outputs = len(view.body.results)
    results = parts.known.results
    at_hand = {v: k for k, v in enumerate(results[view.carries : outputs])}
    sources, stacked = [], 0
    first = hoisted + view.carries
    for value, param in zip(results[outputs:], parts.from_param, strict=True):
        if param is not None and param < hoisted:
            sources.append(Source("constant", param))
        elif param is not None and param >= first:
            sources.append(Source("scanned", param - first))
        elif value in at_hand:
            sources.append(Source("result", at_hand[value]))
        else:
            sources.append(Source("stacked", stacked))
            stacked += 1
    return sources


def _is_counted(view: LoopView, sources: Sequence[Source]) -> bool:
    """Whether a counter must be carried: a `while` that tapes nothing does not say how many turns it made."""
    return view.is_while and not view.stacked and all(source.kind != "stacked" for source in sources)


def _emit_forward(
    f: Emitter,
    view: LoopView,
    operands: Sequence[Value],
    hoisted: Sequence[Value],
    parts: Partition,
    sources: Sequence[Source],
) -> Op:
    """The loop that stacks its residuals too. Its constants are the old ones and what was hoisted."""
    counted = _is_counted(view, sources)
    carries, scanned, constants = view.split(list(operands[view.offset :]))
    start = [f.constant(0, COUNTER.dtype).value] if counted else []
    body = _forward_body(view, [*constants, *hoisted], parts, sources, counted)
    regions = (_condition(view, hoisted, counted), body) if view.is_while else (body,)
    attrs = Attrs({**view.op.attrs, "carries": view.carries + len(start)})
    passed = [*operands[: view.offset], *carries, *start, *scanned, *constants, *hoisted]
    return f.b.add(view.op.opdef, passed, attrs, regions)


def _forward_body(
    view: LoopView, constants: Sequence[Value], parts: Partition, sources: Sequence[Source], counted: bool
) -> Region:
    f = RuleEmitter(Builder())
    old_carries, old_scanned, old_constants = view.split(view.body.params)
    carries = [f.b.param(p.type, p.hint) for p in old_carries]
    counter = f.b.param(COUNTER, "turn") if counted else None
    scanned = [f.b.param(p.type, p.hint) for p in old_scanned]
    hoisted = [f.b.param(v.type, v.hint) for v in constants][len(old_constants) :]
    results = f.b.inline(parts.known.body, [*hoisted, *carries, *scanned])
    outputs, residuals = results[: len(view.body.results)], results[len(view.body.results) :]
    turn = [(f.wrap(counter) + 1).value] if counter is not None else []
    kept = [v for v, source in zip(residuals, sources, strict=True) if source.kind == "stacked"]
    return f.b.region([*outputs[: view.carries], *turn, *outputs[view.carries :], *kept])


def _condition(view: LoopView, hoisted: Sequence[Value], counted: bool) -> Region:
    """The condition of a `while`, which takes all that the body takes."""
    b = Builder()
    old = view.op.regions[0]
    carries = [b.param(p.type, p.hint) for p in old.params[: view.carries]]
    if counted:
        b.param(COUNTER, "turn")
    constants = [b.param(p.type, p.hint) for p in old.params[view.carries :]]
    for value in hoisted:
        b.param(value.type, value.hint)
    return b.region(b.inline(old, [*carries, *constants]))


# ------------------------------------------------------------------ backwards


def pull_loop(site: Site, operands: Sequence[Value], saved: LoopSaved, cts: Sequence[MaybeMarked]) -> list[MaybeMarked]:
    """Emit the adjoint: a scan from the last turn to the first."""
    adjoint = _Adjoint(site.f, saved, operands[saved.view.offset :], saved.view.of_body(cts))
    return [None] * saved.view.offset + adjoint.emit()


class _Adjoint:
    """The adjoint scan.

    It carries the cotangents of the carries and the totals of the constants, scans the cotangents of what the loop
    stacked and the residuals of each turn, and stacks the cotangents of what the loop scanned.

    carried, totalled, rows : parameters of the body, by number, whose cotangents are carried, totalled, stacked
    stacked : results of the body, by number, whose cotangents are scanned
    products : of the parameters whose totals are sums of products, computed behind the loop from rows of `factors`
    """

    def __init__(self, f: Emitter, saved: LoopSaved, operands: Sequence[Value], cts: Sequence[MaybeMarked]) -> None:
        self.f = f
        self.saved = saved
        self.view = view = saved.view
        self.operands = operands
        self.cts = cts
        n, given = view.carries, saved.activity.results
        self.carried = [k for k in range(n) if given[k]]
        self.stacked = [k for k in range(n, len(given)) if given[k]]
        self.rows = [k for k in range(n, n + view.scanned) if saved.made.gives[k] is not None]
        self.residuals = sorted({s for s in saved.sources if s.kind != "constant"})
        self.constants = sorted({s for s in saved.sources if s.kind == "constant"})
        totalled = [k for k in range(n + view.scanned, len(operands)) if saved.activity.params[k]]
        params = saved.parts.unknown.params
        self.totals = dict(zip(totalled, params[len(params) - len(totalled) :], strict=True))
        given_numbers = [k for k, mark in enumerate(saved.made.gives) if mark is not None]
        self.gradients = {**self.totals, **dict(zip(given_numbers, saved.parts.unknown.results, strict=True))}
        self.source_of = dict(zip(params, saved.sources, strict=False))
        self.products = {} if view.is_dynamic else self._products()
        self.totalled = [k for k in totalled if k not in self.products]
        self.factors = self._factors()

    def _products(self) -> dict[int, list[Product]]:
        found = {}
        for k, total in self.totals.items():
            products = summed_products(total, self.gradients[k])
            if products is not None and not any(self._is_constant(v) for p in products for v in p.dot.operands):
                found[k] = products
        return found

    def _is_constant(self, value: Value) -> bool:
        source = self.source_of.get(value)
        return source is not None and source.kind == "constant"

    def _factors(self) -> list[Value]:
        """Factors of products that are not stacked yet."""
        factors = dict.fromkeys(v for products in self.products.values() for p in products for v in p.dot.operands)
        return [v for v in factors if v not in self.source_of]

    def emit(self) -> list[MaybeMarked]:
        """Emit the scan; the cotangents of the loop's operands."""
        view, tables = self.view, self.saved.tables
        start = [*map(self._dense, self.carried), *(self.f.full(self.operands[k].type, 0).value for k in self.totalled)]
        scanned = [*map(self._dense, self.stacked), *(tables[s.kind][s.number] for s in self.residuals)]
        constants = [tables[s.kind][s.number] for s in self.constants]
        attrs = Attrs(
            carries=len(start),
            scanned=len(scanned),
            length=-1 if view.is_dynamic else view.op.attrs["length"],
            reverse=view.is_while or not view.op.attrs["reverse"],
        )
        turns = [self.saved.turns] if self.saved.turns is not None else []
        region = self._region([v.type for v in constants])
        op = self.f.b.add(OPS["scan"], [*turns, *start, *scanned, *constants], attrs, (region,))
        return self._cotangents(op)

    def _dense(self, k: int) -> Value:
        """The cotangent of result k of the body; a tape of zeros has the handle 0."""
        ct = self.cts[k]
        type = self.view.of_body(self.view.op.results)[k].type
        return (self.f.full(type, 0) if ct is None else ct.expr).value

    def _region(self, constant_types: Sequence[TensorType]) -> Region:
        b = Builder()
        saved, body = self.saved, self.view.body
        cts = {k: b.param(body.results[k].type, f"ct{k}") for k in self.carried}
        totals = [b.param(self.operands[k].type, f"sum{k}") for k in self.totalled]
        cts.update((k, b.param(body.results[k].type, f"ct{k}")) for k in self.stacked)
        types = dict(zip(saved.sources, saved.parts.residuals, strict=True))
        values = {s: b.param(types[s]) for s in self.residuals}
        values.update((s, b.param(t)) for s, t in zip(self.constants, constant_types, strict=True))
        passed = [*(values[s] for s in saved.sources), *(cts[k] for k in sorted(cts)), *totals]
        return b.region(b.inline(self._turn().body, passed))

    def _turn(self) -> Function:
        """What one turn computes: cotangents that are carried, totals, rows, factors."""
        unknown = self.saved.parts.unknown
        first = len(unknown.params) - len(self.totals)
        params = [*unknown.params[:first], *(self.totals[k] for k in self.totalled)]
        wanted = [self.gradients[k] for k in (*self.carried, *self.totalled, *self.rows)]
        return extract(unknown, params, [*wanted, *self.factors])

    def _cotangents(self, op: Op) -> list[MaybeMarked]:
        cts: list[MaybeMarked] = [None] * len(self.operands)
        results = iter(op.results)
        for k in (*self.carried, *self.totalled, *self.rows):
            cts[k] = self._marked(k, next(results))
        stacked = {factor: self.f.wrap(next(results)) for factor in self.factors}
        for k, products in self.products.items():
            cts[k] = self._marked(k, self._sum(products, stacked).value)
        return cts

    def _marked(self, k: int, value: Value) -> MaybeMarked:
        mark = self.saved.made.gives[k]
        if mark is None:
            return None
        outer = self.cts[k] if k < self.view.carries else None
        least = KINK if self.view.is_dynamic else NONE  # without a turn there are only zeros
        return Marked(self.f.wrap(value), max(mark, least, NONE if outer is None else outer.zeros))

    def _sum(self, products: Sequence[Product], stacked: Mapping[Value, Expr]) -> Expr:
        terms = [over_turns(self.f, p, *(self._all_turns(v, stacked) for v in p.dot.operands)) for p in products]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def _all_turns(self, value: Value, stacked: Mapping[Value, Expr]) -> Expr:
        if value in stacked:
            return stacked[value]
        source = self.source_of[value]
        return self.f.wrap(self.saved.tables[source.kind][source.number])
