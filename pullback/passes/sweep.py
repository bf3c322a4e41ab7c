"""The reverse walk over one region: the primal ops, then the cotangents from the results back to the parameters."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Location, Op, Region, Value
from pullback.ir.opdef import Bilinear, Custom, Linear, Partials, Structured
from pullback.passes.cotangents import Cotangents, is_part
from pullback.passes.facts import Facts
from pullback.passes.marks import predict_marks
from pullback.passes.strong_zeros import KINK, Marked, guard_dot, pull_partial, spread, times
from pullback.passes.structured import Flags, Rules, Site

MaybeMarked = Marked | None


class Step(NamedTuple):
    """An active op of the region, the op it became, and what a structured rule saved for its backward part."""

    old: Op
    new: Op | None
    operands: tuple[Value, ...]
    saved: Any


class ReverseSweep:
    """Emits a region's ops with `forward`, then their adjoints with `backward`.

    Parameters
    ----------
    f : where both are emitted
    region : of another function; its ops are copied
    facts : of `f`'s builder
    active : the values of `region` that get a cotangent (`activity.active_values`)
    marks : of the cotangents that the region's results will get (`strong_zeros`), at most; None for none
    """

    def __init__(
        self, f: Emitter, facts: Facts, region: Region, active: set[Value], marks: Sequence[int | None], rules: Rules
    ) -> None:
        self._f = f
        self._region = region
        self._active = active
        self._rules = rules
        self._facts = facts
        self._steps: list[Step] = []
        self._result_marks = marks
        self._marks: dict[Value, int] = {}

    def forward(self, arguments: Sequence[Value]) -> list[Value]:
        """Emit the primal ops on `arguments`; what the region's results have become."""
        if _has_structured(self._region):
            self._predict(arguments)
        env: dict[Value, Value] = dict(zip(self._region.params, arguments, strict=True))
        for op in self._region.ops:
            operands = tuple([env[v] for v in op.operands])
            active = not self._active.isdisjoint(op.results)
            if active and isinstance(op.opdef.derivative, Structured):
                results = self._augment(op, operands)
            else:
                new = self._f.b.copy(op, operands)
                results = new.results
                if active:
                    self._steps.append(Step(op, new, operands, None))
            env.update(zip(op.results, results, strict=True))
        return [env[v] for v in self._region.results]

    def _predict(self, arguments: Sequence[Value]) -> None:
        wildness = {p: self._facts.wildness(a) for p, a in zip(self._region.params, arguments, strict=True)}
        facts = Facts(self._region.ops, wildness)
        self._marks = predict_marks(self._region, self._active, self._result_marks, facts, self._rules)

    def _augment(self, op: Op, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        self._f.b.loc = op.loc
        marks = [self._marks.get(r, KINK) if r in self._active else None for r in op.results]
        results, saved = self._rules[op.name].augment(self._site(op), operands, self._flags(op.operands), marks)
        self._f.b.loc = None
        self._steps.append(Step(op, None, operands, saved))
        return results

    def _site(self, op: Op) -> Site:
        return Site(self._f, self._facts, op, self._rules)

    def _flags(self, values: Sequence[Value]) -> Flags:
        return [v in self._active for v in values]

    def backward(
        self, cts: Sequence[MaybeMarked], so_far: Mapping[Value, Marked] = MappingProxyType({})
    ) -> list[MaybeMarked]:
        """Emit the adjoint.

        Parameters
        ----------
        cts : one cotangent (or None) for each result of the region
        so_far : totals that the cotangents of some parameters are added to

        Returns
        -------
        One cotangent for each parameter; None also where nothing was added to a total.
        """
        totals = Cotangents(self._f)
        for param, total in so_far.items():
            totals.add(param, total)
        for value, ct in zip(self._region.results, cts, strict=True):
            if ct is not None and value in self._active:
                totals.add(value, ct)
        while self._steps:
            step = self._steps.pop()
            taken = [totals.take(r) for r in step.old.results]
            if any(ct is not None for ct in taken):
                self._f.b.loc = adjoint_location(step.old.loc)
                self._pull(step, taken, totals)
        self._f.b.loc = None
        found = [totals.take(p) for p in self._region.params]
        return [
            None if p in so_far and ct == so_far[p] else ct for p, ct in zip(self._region.params, found, strict=True)
        ]

    def _pull(self, step: Step, cts: Sequence[MaybeMarked], totals: Cotangents) -> None:
        old = step.old
        if is_part(old) and cts[0] is not None and step.new is not None:
            totals.add_part(old.operands[0], step.new, cts[0])
            return
        active = self._flags(old.operands)
        pulled: Sequence[MaybeMarked]
        if step.new is None:
            pulled = self._rules[old.name].pull(self._site(old), step.operands, step.saved, cts)
        else:
            pulled = pull(self._f, self._facts, step.new, active, cts)
        for operand, on, ct in zip(old.operands, active, pulled, strict=True):
            if on and ct is not None:
                totals.add(operand, ct)


def _has_structured(region: Region) -> bool:
    return any(isinstance(op.opdef.derivative, Structured) for op in region.ops)


def adjoint_location(loc: Location | None) -> Location | None:
    return None if loc is None else loc.with_note("adjoint")


# ------------------------------------------------------------------ one op


def pull(f: Emitter, facts: Facts, op: Op, active: Flags, cts: Sequence[MaybeMarked]) -> Sequence[MaybeMarked]:
    """The cotangents of the operands of `op`, an op without regions in the graph that `f` builds."""
    rule = op.opdef.derivative
    if isinstance(rule, Partials):
        (ct,) = cts
        assert ct is not None
        return _pull_partials(f, facts, op, rule, active, ct)
    if isinstance(rule, Bilinear):
        (ct,) = cts
        assert ct is not None
        return _pull_bilinear(f, facts, op, rule, active, ct)
    start = len(f.b.ops)
    given = [None if ct is None else ct.expr for ct in cts]
    if isinstance(rule, Linear):
        assert given[0] is not None
        pulled: Sequence[Expr | None] = rule.transpose(f, op, given[0])
    else:
        assert isinstance(rule, Custom), f"{op.name} is active but {rule} has no transpose"
        pulled = rule.vjp(f, op, _wrap(f, op.operands), _wrap(f, op.results), given)
    return _marked(facts, op, f.b.ops[start:], cts, pulled)


def _pull_partials(f: Emitter, facts: Facts, op: Op, rule: Partials, active: Flags, ct: Marked) -> list[MaybeMarked]:
    operands, (out,) = _wrap(f, op.operands), _wrap(f, op.results)
    return [
        pull_partial(f, facts, op, k, ct, partial(f, op, out, *operands), k in rule.masks) if on and partial else None
        for k, (partial, on) in enumerate(zip(rule.partials, active, strict=True))
    ]


def _pull_bilinear(f: Emitter, facts: Facts, op: Op, rule: Bilinear, active: Flags, ct: Marked) -> list[MaybeMarked]:
    x, y = _wrap(f, op.operands)
    if op.name == "mul":
        return [times(f, facts, ct, y) if active[0] else None, times(f, facts, ct, x) if active[1] else None]
    pulled: list[MaybeMarked] = [None, None]
    if active[0]:
        pulled[0] = Marked(rule.transpose_lhs(f, op, ct.expr, guard_dot(f, facts, op, ct, 0, y)), ct.zeros)
    if active[1]:
        pulled[1] = Marked(rule.transpose_rhs(f, op, ct.expr, guard_dot(f, facts, op, ct, 1, x)), ct.zeros)
    return pulled


def _marked(
    facts: Facts, op: Op, emitted: Sequence[Op], given: Sequence[MaybeMarked], derived: Sequence[Expr | None]
) -> list[MaybeMarked]:
    marks = {g.expr.value: g.zeros for g in given if g is not None}
    spread(facts, op, emitted, marks)
    return [None if d is None else Marked(d, marks.get(d.value, 0)) for d in derived]


def _wrap(f: Emitter, values: Sequence[Value]) -> list[Expr]:
    return [f.wrap(v) for v in values]
