"""Forward mode of loops: the tangents of the carries are carried along, those of rows scanned and stacked along."""

from collections.abc import Sequence

from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs, Region, Value
from pullback.passes.activity import active_values
from pullback.passes.emitter import RuleEmitter
from pullback.passes.facts import Facts
from pullback.passes.loop_view import LoopActivity, LoopView, body_wildness, loop_activity
from pullback.passes.strong_zeros import KINK, Marked
from pullback.passes.structured import Flags, Rules, Site
from pullback.passes.tangents import push_region

MaybeMarked = Marked | None


def push_loop(
    site: Site, operands: Sequence[Value], tans: Sequence[MaybeMarked], wanted: Flags
) -> tuple[tuple[Value, ...], list[MaybeMarked]]:
    """Emit the loop with its tangents: behind the carries those of the carries, and so on."""
    f, view = site.f, LoopView(site.op)
    given, tangents = operands[view.offset :], list(tans[view.offset :])
    flags = [tan is not None for tan in tangents]
    activity = loop_activity(view, flags, view.of_body(wanted), site.rules)
    wildness = body_wildness(view, site.facts, given)
    start = [None if tan is None else tan.zeros for tan in tangents]
    body, marks = _body(view, activity, start, wildness, site.rules)
    regions = (_condition(view, activity), body) if view.is_while else (body,)
    attrs = dict(view.op.attrs)
    passed = list(operands[: view.offset])
    for part, values in zip(("carries", "scanned", "constants"), view.split(range(len(given))), strict=True):
        along = [k for k in values if activity.params[k]]
        passed += [given[k] for k in values]
        for k in along:
            tan = tangents[k]
            passed.append((f.full(given[k].type, 0) if tan is None else tan.expr).value)
        if part in attrs:
            attrs[part] += len(along)
    op = f.b.add(view.op.opdef, passed, Attrs(attrs), regions)
    return _results(site, view, activity, op.results, marks)


def _results(
    site: Site, view: LoopView, activity: LoopActivity, results: Sequence[Value], marks: Sequence[int | None]
) -> tuple[tuple[Value, ...], list[MaybeMarked]]:
    """The results of the new loop taken apart: those of the old one, and tangents."""
    n, extra = view.carries, sum(activity.results[: view.carries])
    stacked = n + extra + (view.first_stacked - n)
    primal = [*results[:n], *results[n + extra : stacked + view.stacked]]
    pushed = iter([*results[n : n + extra], *results[stacked + view.stacked :]])
    tangents: list[MaybeMarked] = [None if mark is None else Marked(site.f.wrap(next(pushed)), mark) for mark in marks]
    return tuple(primal), view.of_op(tangents, None)


def _body(
    view: LoopView, activity: LoopActivity, start: Sequence[int | None], wildness: Sequence[int], rules: Rules
) -> tuple[Region, list[int | None]]:
    """The body with tangents, for marks of the carries' tangents that hold in every turn; the marks of its results'."""
    n = view.carries
    marks = [(KINK if mark is None else mark) if on else None for mark, on in zip(start, activity.params, strict=True)]
    while True:
        region, found = _tangent_body(view, activity, marks, wildness, rules)
        after = list(marks)
        for k in range(n):
            mark, new = marks[k], found[k]
            after[k] = mark if mark is None or new is None else max(mark, new)
        if after == marks:
            return region, [*marks[:n], *found[n:]]
        marks = after


def _tangent_body(
    view: LoopView, activity: LoopActivity, marks: Sequence[int | None], wildness: Sequence[int], rules: Rules
) -> tuple[Region, list[int | None]]:
    f = RuleEmitter(Builder())
    body, n = view.body, view.carries
    arguments: dict[int, Value] = {}
    tangents: list[MaybeMarked] = [None] * len(body.params)
    for numbers in view.split(range(len(body.params))):
        arguments.update((k, f.b.param(body.params[k].type, body.params[k].hint)) for k in numbers)
        for k in numbers:
            mark = marks[k]
            if mark is not None:
                tangents[k] = Marked(f.wrap(f.b.param(body.params[k].type, f"d{body.params[k].hint}")), mark)
    given = [arguments[k] for k in range(len(body.params))]
    facts = Facts(f.b.ops, dict(zip(given, wildness, strict=True)))
    active = active_values(body, activity.params, activity.results, rules)
    outputs, pushed = push_region(f, facts, body, given, tangents, active, rules)
    dense = [
        None if not on else tan or Marked(f.full(r.type, 0), KINK)
        for r, tan, on in zip(body.results, pushed, activity.results, strict=True)
    ]
    tails = [None if tan is None else tan.expr.value for tan in dense]
    carried, stacked = [v for v in tails[:n] if v is not None], [v for v in tails[n:] if v is not None]
    region = f.b.region([*outputs[:n], *carried, *outputs[n:], *stacked])
    return region, [None if tan is None else tan.zeros for tan in dense]


def _condition(view: LoopView, activity: LoopActivity) -> Region:
    """The condition of a `while` does not read tangents."""
    b = Builder()
    old = view.op.regions[0]
    arguments: list[Value] = []
    for numbers in view.split(range(len(old.params))):
        arguments += [b.param(old.params[k].type, old.params[k].hint) for k in numbers]
        for k in numbers:
            if activity.params[k]:
                b.param(old.params[k].type)
    return b.region(b.inline(old, arguments))
