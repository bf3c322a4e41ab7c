"""Reverse mode for the region of a branch or a loop: a function of its parameters and the cotangents of its results."""

from collections.abc import Sequence
from typing import NamedTuple

from pullback.ir.builder import Builder
from pullback.ir.graph import Function, Region, Value
from pullback.passes.activity import active_values
from pullback.passes.emitter import RuleEmitter
from pullback.passes.facts import Facts
from pullback.passes.strong_zeros import CHOICE, KINK, Marked
from pullback.passes.structured import Flags, Rules
from pullback.passes.sweep import ReverseSweep


class RegionVjp(NamedTuple):
    """A region with its gradients.

    function : parameters, cotangents of the wanted results, totals so far -> results, then the cotangents given
    gives : for each parameter, the mark of its cotangent, or None if the function gives none
    """

    function: Function
    gives: tuple[int | None, ...]


def region_vjp(
    region: Region,
    active: Flags,
    marks: Sequence[int | None],
    wildness: Sequence[int],
    rules: Rules,
    dense: Flags = (),
    summed: Flags = (),
) -> RegionVjp:
    """Differentiate a region.

    Parameters
    ----------
    active : which parameters get a cotangent
    marks : for each result, the mark its cotangent has at most, or None if it gets none
    wildness : of the parameters (`facts`)
    dense : parameters whose cotangent is given even where it is zero
    summed : parameters whose cotangent is added to a total so far, a further parameter of the function
    """
    f = RuleEmitter(Builder())
    arguments = [f.b.param(p.type, p.hint) for p in region.params]
    cts: list[Marked | None] = [
        Marked(f.wrap(f.b.param(r.type, f"ct{k}")), mark) if mark is not None else None
        for k, (r, mark) in enumerate(zip(region.results, marks, strict=True))
    ]
    totals: dict[Value, Marked] = {
        p: Marked(f.wrap(f.b.param(p.type, f"sum_{p.hint}")), CHOICE)
        for p, on in zip(region.params, summed, strict=False)
        if on
    }
    facts = Facts(f.b.ops, dict(zip(arguments, wildness, strict=True)))
    values = active_values(region, active, [mark is not None for mark in marks], rules)
    sweep = ReverseSweep(f, facts, region, values, marks, rules)
    outputs = sweep.forward(arguments)
    found = sweep.backward(cts, totals)
    for k, (param, wanted) in enumerate(zip(region.params, dense, strict=False)):
        if wanted and found[k] is None:
            found[k] = Marked(f.full(param.type, 0), KINK)
    gradients = [ct.expr.value for ct in found if ct is not None]
    function = f.b.function("region", [*outputs, *gradients])
    return RegionVjp(function, tuple(None if ct is None else ct.zeros for ct in found))
