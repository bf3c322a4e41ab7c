"""Differentiation and batching of `if`: each branch is transformed, and the branches are made to give the same
types again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pullback.errors import UnsupportedError
from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function, Op, Region, Value
from pullback.ir.types import TensorType
from pullback.passes.activity import active_values, needed_values, reached_values
from pullback.passes.batching import batch_region, row_params, with_rows
from pullback.passes.emitter import RuleEmitter
from pullback.passes.facts import Facts
from pullback.passes.marks import predict_marks
from pullback.passes.partition import Partition, partition
from pullback.passes.region_vjp import RegionVjp, region_vjp
from pullback.passes.strong_zeros import KINK, NONE, Marked
from pullback.passes.structured import Flags, Rules, Site
from pullback.passes.tangents import push_region
from pullback.passes.tapes import is_tape
from pullback.record import record

MaybeMarked = Marked | None


class Branch(NamedTuple):
    """One differentiated branch.

    parts : its forward and backward part
    gives : for each operand of the branch, the mark of the cotangent that the backward part gives, or None
    slots : for each residual, the result of the forward `if` that it is; None for one that is an operand
    """

    parts: Partition
    gives: tuple[int | None, ...]
    slots: tuple[int | None, ...]


class Saved(NamedTuple):
    """What the backward part of an `if` needs: the branches, all results of the forward one, which get a cotangent."""

    branches: tuple[Branch, ...]
    results: tuple[Value, ...]
    wanted: tuple[bool, ...]


@record(frozen=True)
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

    def marks(self, op: Op, results: Sequence[int | None], facts: Facts, rules: Rules) -> Sequence[int]:
        worst = [NONE] * len(op.operands)
        wildness = [facts.wildness(v) for v in op.operands[1:]]
        wanted = [mark is not None for mark in results]
        for region in op.regions:
            active = active_values(region, [True] * len(region.params), wanted, rules)
            inside = Facts(region.ops, dict(zip(region.params, wildness, strict=True)))
            found = predict_marks(region, active, results, inside, rules)
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
            made = region_vjp(region, active[1:], marks, wildness, site.rules)
            parts = _split(region, made)
            branches.append(Branch(parts, made.gives, _assign(parts, len(op.results), shared)))
        regions = tuple(_forward_region(branch, op, shared) for branch in branches)
        new = site.f.b.add(op.opdef, operands, op.attrs, regions)
        count = len(op.results)
        wanted = tuple(mark is not None for mark in marks)
        return new.results[:count], Saved(tuple(branches), new.results, wanted)

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
        marks = [_worse(column) for column in zip(*(branch.gives for branch in saved.branches), strict=True)]
        gives = [mark is not None for mark in marks]
        slots = sorted({slot for branch in saved.branches for slot in branch.slots if slot is not None})
        kept = [*(arguments[k] for k in used), *(saved.results[slot] for slot in slots)]
        regions = tuple(
            _backward_region(branch, used, slots, [*kept, *given], gives, arguments) for branch in saved.branches
        )
        new = f.b.add(op.opdef, [operands[0], *kept, *given], op.attrs, regions)
        gradients = iter(new.results)
        return [None, *(None if mark is None else Marked(f.wrap(next(gradients)), mark) for mark in marks)]

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
        have = _either([_batched_results(op, region, batched[1:], rules, size) for region in op.regions])
        regions = tuple(_batched_region(op, region, batched[1:], have, size, rules) for region in op.regions)
        new = f.b.add(op.opdef, [a.value for a in args], op.attrs, regions)
        return [f.wrap(r) for r in new.results], list(have)


def _worse(marks: Sequence[int | None]) -> int | None:
    """The mark of a cotangent that comes from one of the branches, zeros from one that gives none."""
    if all(mark is None for mark in marks):
        return None
    return max(KINK if mark is None else mark for mark in marks)


def _either(flags: Sequence[Flags]) -> tuple[bool, ...]:
    return tuple(any(column) for column in zip(*flags, strict=True))


# ------------------------------------------------------------------ reverse mode


def _split(region: Region, made: RegionVjp) -> Partition:
    """A differentiated branch, split into what needs no cotangent and what does. Operands cost nothing to keep."""
    function, inputs, outputs = made.function, len(region.params), len(region.results)
    return partition(
        function,
        [k < inputs for k in range(len(function.params))],
        known_results=[k < outputs for k in range(len(function.results))],
        cost=lambda value: 0 if value.op is None else value.type.nbytes,
    )


def _assign(parts: Partition, outputs: int, shared: list[TensorType]) -> tuple[int | None, ...]:
    """For each residual that is not an operand a result of the forward `if`.

    That is an output, or one of the further results that the branches share; `shared`, their types, grows where none
    that fits is free.
    """
    at_hand = {v: k for k, v in enumerate(parts.known.results[:outputs])}
    free = list(range(len(shared)))
    slots: list[int | None] = []
    for value, param in zip(parts.known.results[outputs:], parts.from_param, strict=True):
        if param is not None or value in at_hand:
            slots.append(None if param is not None else at_hand[value])
            continue
        # two tapes do not share a place: where rows of a batch differ, both branches are run
        slot = next((k for k in free if shared[k] == value.type and value.type.is_inexact), len(shared))
        if slot == len(shared):
            shared.append(value.type)
        else:
            free.remove(slot)
        slots.append(outputs + slot)
    return tuple(slots)


def _forward_region(branch: Branch, op: Op, shared: Sequence[TensorType]) -> Region:
    """The branch's outputs, then its residuals in the shared places, and zeros in the places of the other branch."""
    f = RuleEmitter(Builder())
    known: Function = branch.parts.known
    outputs = len(op.results)
    results = f.b.inline(known.body, [f.b.param(p.type, p.hint) for p in known.params])
    places = dict(zip(branch.slots, results[outputs:], strict=True))
    filled = [places.get(k) or f.full(type, 0).value for k, type in enumerate(shared, outputs)]
    return f.b.region([*results[:outputs], *filled])


def _backward_region(
    branch: Branch,
    used: Sequence[int],
    slots: Sequence[int],
    passed: Sequence[Value],
    gives: Flags,
    arguments: Sequence[Value],
) -> Region:
    """Operands `used`, results `slots`, cotangents -> the cotangents that either branch gives."""
    f = RuleEmitter(Builder())
    params = [f.b.param(v.type) for v in passed]
    operands = dict(zip(used, params, strict=False))
    results = dict(zip(slots, params[len(used) :], strict=False))
    residuals = [
        operands[param] if slot is None and param is not None else results[slot or 0]
        for param, slot in zip(branch.parts.from_param, branch.slots, strict=True)
    ]
    cts = params[len(used) + len(slots) :]
    own = iter(f.b.inline(branch.parts.unknown.body, [*residuals, *cts]))
    gradients = [
        f.full(argument.type, 0).value if mine is None else next(own)
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
    facts = Facts(f.b.ops, dict(zip(arguments, wildness, strict=True)))
    outputs, pushed = push_region(f, facts, region, arguments, tangents, active, rules)
    tails = [
        (f.full(r.type, 0) if tan is None else tan.expr).value
        for r, tan, on in zip(region.results, pushed, present, strict=True)
        if on
    ]
    return f.b.region([*outputs, *tails]), [KINK if tan is None else tan.zeros for tan in pushed]


# ------------------------------------------------------------------ batching


def _batched_results(op: Op, region: Region, batched: Flags, rules: Rules, size: int) -> list[bool]:
    f = RuleEmitter(Builder())
    return batch_region(f, region, row_params(f, op, region, batched, size), batched, size, rules)[1]


def _batched_region(op: Op, region: Region, batched: Flags, have: Flags, size: int, rules: Rules) -> Region:
    f = RuleEmitter(Builder())
    results, found = batch_region(f, region, row_params(f, op, region, batched, size), batched, size, rules)
    wide = [
        with_rows(f, r, mine, size) if on and not is_tape(old) else r
        for r, mine, on, old in zip(results, found, have, op.results, strict=True)
    ]
    return f.b.region([r.value for r in wide])


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
        sides.append(list(zip(results, have, strict=True)))
    chosen = [
        _made_tape(op, k, x, y) if is_tape(op.results[k]) else (_chosen(f, pred, x, y, size), True)
        for k, (x, y) in enumerate(zip(*sides, strict=True))
    ]
    return [x for x, _ in chosen], [has for _, has in chosen]


def _chosen(f: Emitter, pred: Expr, x: tuple[Expr, bool], y: tuple[Expr, bool], size: int) -> Expr:
    wide, other = with_rows(f, *x, size), with_rows(f, *y, size)
    return f.select(f.broadcast_to(pred, wide.shape, (0,)), wide, other)


def _made_tape(op: Op, number: int, x: tuple[Expr, bool], y: tuple[Expr, bool]) -> tuple[Expr, bool]:
    """The tape of the branch that makes one; the other gives a tape of zeros, which nobody reads."""
    then, other = (is_tape(region.results[number]) for region in op.regions)
    if then and other:
        raise UnsupportedError(f"tapes of both branches share a result of the if at {op.loc}: it cannot be batched")
    return x if then else y
