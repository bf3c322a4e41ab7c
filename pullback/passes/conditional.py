"""Differentiation and batching of `if`: each branch is transformed, and the branches are made to give the same
types again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function, Op, Region, Value
from pullback.ir.types import TensorType
from pullback.passes.activity import active_values, needed_values, reached_values
from pullback.passes.batching import batch_region, with_rows
from pullback.passes.emitter import RuleEmitter
from pullback.passes.facts import Facts
from pullback.passes.marks import predict_marks
from pullback.passes.partition import Partition, partition
from pullback.passes.strong_zeros import KINK, NONE, Marked
from pullback.passes.structured import Flags, Rules, Site
from pullback.passes.sweep import ReverseSweep
from pullback.passes.tangents import push_region

MaybeMarked = Marked | None


class Branch(NamedTuple):
    """One differentiated branch.

    parts : its forward and backward part
    gives : for each operand of the branch, whether the backward part gives a cotangent for it
    slots : for each residual, its place among the residuals that both branches share; None for one that is an operand
    """

    parts: Partition
    gives: tuple[bool, ...]
    slots: tuple[int | None, ...]


class Saved(NamedTuple):
    """What the backward part of an `if` needs: the branches, the residuals, which results get a cotangent."""

    branches: tuple[Branch, ...]
    residuals: tuple[Value, ...]
    wanted: tuple[bool, ...]


@dataclass(frozen=True)
class Conditional:
    """The rule of `if`. A branch's residuals share places with those of the other of the same type; where it has
    none, zeros.
    """

    def reaches(self, op: Op, operands: Flags, rules: Rules) -> tuple[bool, ...]:
        reached = [reached_values(region, operands[1:], rules) for region in op.regions]
        return _either(
            [[r in values for r in region.results] for region, values in zip(op.regions, reached, strict=True)]
        )

    def needs(self, op: Op, results: Flags, rules: Rules) -> tuple[bool, ...]:
        flags = []
        for region in op.regions:
            within = reached_values(region, [True] * len(region.params), rules)
            needed = needed_values(region, results, rules, within)
            flags.append([p in needed for p in region.params])
        return (False, *_either(flags))

    # -------------------------------------------------------------- reverse mode

    def marks(self, op: Op, results: Sequence[int], rules: Rules) -> Sequence[int]:
        worst = [NONE] * len(op.operands)
        for region in op.regions:
            active = active_values(region, [True] * len(region.params), [True] * len(results), rules)
            found = predict_marks(region, active, results, rules)
            for k, param in enumerate(region.params, 1):
                worst[k] = max(worst[k], found.get(param, KINK), KINK if param not in active else NONE)
        return worst

    def augment(
        self, site: Site, operands: Sequence[Value], active: Flags, marks: Sequence[int | None]
    ) -> tuple[tuple[Value, ...], Saved]:
        op = site.op
        wildness = [site.facts.wildness(v) for v in operands[1:]]
        shared: list[TensorType] = []
        branches = []
        for region in op.regions:
            parts, gives = _differentiate(op, region, active[1:], marks, wildness, site.rules)
            branches.append(Branch(parts, gives, _assign(parts, shared)))
        regions = tuple(_forward_region(branch, op, shared) for branch in branches)
        new = site.f.b.add(op.opdef, operands, op.attrs, regions)
        count = len(op.results)
        wanted = tuple(mark is not None for mark in marks)
        return new.results[:count], Saved(tuple(branches), new.results[count:], wanted)

    def pull(
        self, site: Site, operands: Sequence[Value], saved: Saved, cts: Sequence[MaybeMarked]
    ) -> list[MaybeMarked]:
        f, op = site.f, site.op
        given = [
            (f.full(r.type, 0) if ct is None else ct.expr).value
            for r, ct, on in zip(op.results, cts, saved.wanted, strict=True)
            if on
        ]
        arguments = operands[1:]
        used = sorted({k for branch in saved.branches for k in branch.parts.from_param if k is not None})
        gives = _either([branch.gives for branch in saved.branches])
        passed = [*(arguments[k] for k in used), *saved.residuals, *given]
        count = len(saved.residuals)
        regions = tuple(_backward_region(b, passed, used, count, gives, arguments) for b in saved.branches)
        new = f.b.add(op.opdef, [operands[0], *passed], op.attrs, regions)
        gradients = iter(new.results)
        marks = self.marks(op, [NONE if ct is None else ct.zeros for ct in cts], site.rules)[1:]
        return [
            None,
            *(Marked(f.wrap(next(gradients)), mark) if on else None for on, mark in zip(gives, marks, strict=True)),
        ]

    # -------------------------------------------------------------- forward mode

    def push(
        self, site: Site, operands: Sequence[Value], tans: Sequence[MaybeMarked], wanted: Flags
    ) -> tuple[tuple[Value, ...], list[MaybeMarked]]:
        f, op = site.f, site.op
        reached = self.reaches(op, [False, *(tan is not None for tan in tans[1:])], site.rules)
        present = [flag and on for flag, on in zip(reached, wanted, strict=True)]
        wildness = [site.facts.wildness(v) for v in operands[1:]]
        sides = [_tangent_region(region, tans[1:], present, wildness, site.rules) for region in op.regions]
        given = [tan.expr.value for tan in tans[1:] if tan is not None]
        new = f.b.add(op.opdef, [*operands, *given], op.attrs, tuple(region for region, _ in sides))
        count = len(op.results)
        pushed = iter(new.results[count:])
        marks = [max(column) for column in zip(*(marks for _, marks in sides), strict=True)]
        tangents = [Marked(f.wrap(next(pushed)), mark) if on else None for on, mark in zip(present, marks, strict=True)]
        return new.results[:count], tangents

    # -------------------------------------------------------------- batching

    def batch(
        self, f: Emitter, op: Op, args: Sequence[Expr], batched: Flags, size: int, rules: Rules, where: Expr | None
    ) -> tuple[list[Expr], list[bool]]:
        if batched[0] or where is not None:
            return _both_branches(f, op, args, batched, size, rules, where)
        have = _either([_batched_results(region, batched[1:], rules, size) for region in op.regions])
        regions = tuple(_batched_region(region, batched[1:], have, size, rules) for region in op.regions)
        new = f.b.add(op.opdef, [a.value for a in args], op.attrs, regions)
        return [f.wrap(r) for r in new.results], list(have)


def _either(flags: Sequence[Flags]) -> tuple[bool, ...]:
    return tuple(any(column) for column in zip(*flags, strict=True))


# ------------------------------------------------------------------ reverse mode


def _differentiate(
    op: Op,
    region: Region,
    active: Flags,
    marks: Sequence[int | None],
    wildness: Sequence[int],
    rules: Rules,
) -> tuple[Partition, tuple[bool, ...]]:
    """One branch with its gradients, split into what needs no cotangent and what does."""
    f = RuleEmitter(Builder())
    arguments = [f.b.param(p.type, p.hint) for p in region.params]
    cts: list[MaybeMarked] = [
        Marked(f.wrap(f.b.param(r.type, f"ct{k}")), mark) if mark is not None else None
        for k, (r, mark) in enumerate(zip(region.results, marks, strict=True))
    ]
    facts = Facts(f.b, dict(zip(arguments, wildness, strict=True)))
    values = active_values(region, active, [mark is not None for mark in marks], rules)
    sweep = ReverseSweep(f, facts, region, values, [mark or NONE for mark in marks], rules)
    outputs = sweep.forward(arguments)
    totals = sweep.backward(cts)
    gradients = [total.expr.value for total in totals if total is not None]
    branch = f.b.function(op.name, [*outputs, *gradients])
    inputs, late = len(arguments), len(branch.params) - len(arguments)
    parts = partition(
        branch,
        [True] * inputs + [False] * late,
        known_results=[True] * len(outputs) + [False] * len(gradients),
        cost=lambda value: 0 if value.op is None else value.type.nbytes,
    )
    return parts, tuple(total is not None for total in totals)


def _assign(parts: Partition, shared: list[TensorType]) -> tuple[int | None, ...]:
    """A place in `shared` for each residual that is not an operand; `shared` grows where no free place has its type."""
    free = list(range(len(shared)))
    slots: list[int | None] = []
    for type, param in zip(parts.residuals, parts.from_param, strict=True):
        if param is not None:
            slots.append(None)
            continue
        slot = next((k for k in free if shared[k] == type), len(shared))
        if slot == len(shared):
            shared.append(type)
        else:
            free.remove(slot)
        slots.append(slot)
    return tuple(slots)


def _forward_region(branch: Branch, op: Op, shared: Sequence[TensorType]) -> Region:
    """The branch's outputs, then what it puts into the shared places: its residuals, zeros in the places of the
    other branch.
    """
    f = RuleEmitter(Builder())
    known: Function = branch.parts.known
    arguments = [f.b.param(p.type, p.hint) for p in known.params]
    results = f.b.inline(known.body, arguments)
    outputs, residuals = results[: len(op.results)], results[len(op.results) :]
    places = {slot: value for slot, value in zip(branch.slots, residuals, strict=True) if slot is not None}
    filled = [places[k] if k in places else f.full(type, 0).value for k, type in enumerate(shared)]
    return f.b.region([*outputs, *filled])


def _backward_region(
    branch: Branch, passed: Sequence[Value], used: Sequence[int], count: int, gives: Flags, arguments: Sequence[Value]
) -> Region:
    """Operands that are residuals, shared residuals, cotangents -> the cotangents that either branch gives."""
    f = RuleEmitter(Builder())
    params = [f.b.param(v.type) for v in passed]
    operands = dict(zip(used, params, strict=False))
    shared, cts = params[len(used) : len(used) + count], params[len(used) + count :]
    residuals = [
        operands[param] if param is not None else shared[slot or 0]
        for param, slot in zip(branch.parts.from_param, branch.slots, strict=True)
    ]
    own = iter(f.b.inline(branch.parts.unknown.body, [*residuals, *cts]))
    gradients = [
        next(own) if mine else f.full(argument.type, 0).value
        for mine, on, argument in zip(branch.gives, gives, arguments, strict=True)
        if on
    ]
    return f.b.region(gradients)


# ------------------------------------------------------------------ forward mode


def _tangent_region(
    region: Region, tans: Sequence[MaybeMarked], present: Flags, wildness: Sequence[int], rules: Rules
) -> tuple[Region, list[int]]:
    """A branch with its tangents behind its results, and the marks of the tangents."""
    f = RuleEmitter(Builder())
    arguments = [f.b.param(p.type, p.hint) for p in region.params]
    tangents: list[MaybeMarked] = [
        Marked(f.wrap(f.b.param(p.type, f"d{p.hint}")), tan.zeros) if tan is not None else None
        for p, tan in zip(region.params, tans, strict=True)
    ]
    active = active_values(region, [tan is not None for tan in tans], present, rules)
    facts = Facts(f.b, dict(zip(arguments, wildness, strict=True)))
    outputs, pushed = push_region(f, facts, region, arguments, tangents, active, rules)
    tails = [
        (f.full(r.type, 0) if tan is None else tan.expr).value
        for r, tan, on in zip(region.results, pushed, present, strict=True)
        if on
    ]
    return f.b.region([*outputs, *tails]), [KINK if tan is None else tan.zeros for tan in pushed]


# ------------------------------------------------------------------ batching


def _batched_results(region: Region, batched: Flags, rules: Rules, size: int) -> list[bool]:
    f = RuleEmitter(Builder())
    arguments = [_row_param(f, p, has, size) for p, has in zip(region.params, batched, strict=True)]
    return batch_region(f, region, arguments, batched, size, rules)[1]


def _batched_region(region: Region, batched: Flags, have: Flags, size: int, rules: Rules) -> Region:
    f = RuleEmitter(Builder())
    arguments = [_row_param(f, p, has, size) for p, has in zip(region.params, batched, strict=True)]
    results, found = batch_region(f, region, arguments, batched, size, rules)
    wide = [with_rows(f, r, mine, size) if on else r for r, mine, on in zip(results, found, have, strict=True)]
    return f.b.region([r.value for r in wide])


def _row_param(f: Emitter, param: Value, has: bool, size: int) -> Expr:
    type = param.type.with_shape((size, *param.type.shape)) if has else param.type
    return f.wrap(f.b.param(type, param.hint))


def _both_branches(
    f: Emitter, op: Op, args: Sequence[Expr], batched: Flags, size: int, rules: Rules, where: Expr | None
) -> tuple[list[Expr], list[bool]]:
    """Rows take different branches: both are computed for all rows, and each row selects; checks count in their
    rows only.
    """
    pred = with_rows(f, args[0], batched[0], size)
    sides = []
    for region, rows in zip(op.regions, (pred, ~pred), strict=True):
        inside = rows if where is None else rows & where
        results, have = batch_region(f, region, args[1:], batched[1:], size, rules, inside)
        sides.append([with_rows(f, r, has, size) for r, has in zip(results, have, strict=True)])
    chosen = [f.select(f.broadcast_to(pred, x.shape, (0,)), x, y) for x, y in zip(*sides, strict=True)]
    return chosen, [True] * len(chosen)
