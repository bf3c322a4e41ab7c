"""Differentiation and batching of `checkpoint`: the adjoint is a region that computes the primal again, and pulls."""

from collections.abc import Sequence

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Value
from pullback.passes.activity import active_values, needed_values, reached_values
from pullback.passes.batching import batch_region, row_params
from pullback.passes.emitter import RuleEmitter
from pullback.passes.facts import Facts
from pullback.passes.marks import predict_marks
from pullback.passes.partition import extract
from pullback.passes.region_vjp import region_vjp
from pullback.passes.regions import copied
from pullback.passes.strong_zeros import KINK, Marked
from pullback.passes.structured import Flags, Rules, Site
from pullback.passes.tangents import push_region
from pullback.record import record

MaybeMarked = Marked | None


@record(frozen=True)
class Checkpoint:
    """The rule of `checkpoint`."""

    def reaches(self, op: Op, operands: Flags, rules: Rules) -> tuple[bool, ...]:
        (region,) = op.regions
        reached = reached_values(region, operands, rules)
        return tuple([r in reached for r in region.results])

    def needs(self, op: Op, results: Flags, rules: Rules) -> tuple[bool, ...]:
        (region,) = op.regions
        within = reached_values(region, [True] * len(region.params), rules)
        needed = needed_values(region, results, rules, within)
        return tuple([p in needed for p in region.params])

    # -------------------------------------------------------------- reverse mode

    def marks(self, op: Op, results: Sequence[int | None], facts: Facts, rules: Rules) -> Sequence[int]:
        (region,) = op.regions
        wanted = [mark is not None for mark in results]
        active = active_values(region, [True] * len(region.params), wanted, rules)
        wildness = {p: facts.wildness(v) for p, v in zip(region.params, op.operands, strict=True)}
        found = predict_marks(region, active, results, Facts(region.ops, wildness), rules)
        return [found.get(p, KINK) for p in region.params]

    def augment(
        self, site: Site, operands: Sequence[Value], active: Flags, marks: Sequence[int | None]
    ) -> tuple[tuple[Value, ...], Flags]:
        return site.f.b.copy(site.op, operands).results, active

    def pull(
        self, site: Site, operands: Sequence[Value], active: Flags, cts: Sequence[MaybeMarked]
    ) -> list[MaybeMarked]:
        region = copied(site.op.regions[0])
        marks = [None if ct is None else ct.zeros for ct in cts]
        wildness = [site.facts.wildness(v) for v in operands]
        made = region_vjp(region, active, marks, wildness, site.rules)
        function, outputs = made.function, len(region.results)
        adjoint = extract(function, function.params, function.results[outputs:])
        given = [ct.expr.value for ct in cts if ct is not None]
        new = site.f.b.add(site.op.opdef, [*operands, *given], Attrs(again=True), (adjoint.body,))
        gradients = iter(new.results)
        return [None if mark is None else Marked(site.f.wrap(next(gradients)), mark) for mark in made.gives]

    # -------------------------------------------------------------- forward mode

    def push(
        self, site: Site, operands: Sequence[Value], tans: Sequence[MaybeMarked], wanted: Flags
    ) -> tuple[tuple[Value, ...], list[MaybeMarked]]:
        (region,) = site.op.regions
        f = RuleEmitter(Builder())
        arguments = [f.b.param(p.type, p.hint) for p in region.params]
        tangents: list[MaybeMarked] = [
            Marked(f.wrap(f.b.param(p.type, f"d{p.hint}")), tan.zeros) if tan is not None else None
            for p, tan in zip(region.params, tans, strict=True)
        ]
        active = active_values(region, [tan is not None for tan in tans], wanted, site.rules)
        wildness = dict(zip(arguments, map(site.facts.wildness, operands), strict=True))
        outputs, pushed = push_region(f, Facts(f.b.ops, wildness), region, arguments, tangents, active, site.rules)
        inner = f.b.region([*outputs, *(tan.expr.value for tan in pushed if tan is not None)])
        given = [tan.expr.value for tan in tans if tan is not None]
        new = site.f.b.add(site.op.opdef, [*operands, *given], site.op.attrs, (inner,))
        behind = iter(new.results[len(outputs) :])
        marked = [None if tan is None else Marked(site.f.wrap(next(behind)), tan.zeros) for tan in pushed]
        return new.results[: len(outputs)], marked

    # -------------------------------------------------------------- batching

    def batch(
        self, f: Emitter, op: Op, args: Sequence[Expr], batched: Flags, size: int, rules: Rules, where: Expr | None
    ) -> tuple[list[Expr], list[bool]]:
        (region,) = op.regions
        inner = RuleEmitter(Builder())
        params = row_params(inner, op, region, batched, size)
        mask = None if where is None else inner.wrap(inner.b.param(where.value.type, "where"))
        results, have = batch_region(inner, region, params, batched, size, rules, mask)
        given = [*(a.value for a in args), *([] if where is None else [where.value])]
        new = f.b.add(op.opdef, given, op.attrs, (inner.b.region([r.value for r in results]),))
        return [f.wrap(r) for r in new.results], have
