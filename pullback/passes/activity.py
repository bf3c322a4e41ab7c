"""Activity: which values lie on a differentiable path from an input to an output. All others are never visited."""

from collections.abc import Iterable, Sequence

from pullback.ir.graph import Op, Region, Value
from pullback.ir.opdef import Linear, NotDifferentiable, Partials, Structured
from pullback.passes.structured import Flags, Rules


def active_values(region: Region, params: Flags, results: Flags, rules: Rules) -> set[Value]:
    """Values that depend on a flagged parameter and that a flagged result depends on, both through differentiable
    paths.
    """
    reached = reached_values(region, params, rules)
    return needed_values(region, results, rules, within=reached)


def reached_values(region: Region, params: Flags, rules: Rules) -> set[Value]:
    """Values that depend on a flagged parameter through a differentiable path."""
    reached = {p for p, on in zip(region.params, params, strict=True) if on}
    for op in region.ops:
        if not reached.isdisjoint(op.operands):
            reached.update(_reached_results(op, reached, rules))
    return reached


def needed_values(region: Region, results: Flags, rules: Rules, within: set[Value]) -> set[Value]:
    """Values of `within` that a flagged result depends on through a differentiable path."""
    needed = {r for r, on in zip(region.results, results, strict=True) if on and r in within}
    for op in reversed(region.ops):
        if not needed.isdisjoint(op.results):
            needed.update(v for v in _needed_operands(op, needed, rules) if v in within)
    return needed


def linked_operands(op: Op) -> Sequence[int]:
    """Numbers of the operands that the results of an op without regions depend on differentiably."""
    match op.opdef.derivative:
        case NotDifferentiable():
            return ()
        case Partials(partials=partials):
            return [k for k, partial in enumerate(partials) if partial is not None]
        case Linear(operands=operands) if operands is not None:
            return operands
        case _:
            return range(len(op.operands))


def _reached_results(op: Op, reached: set[Value], rules: Rules) -> list[Value]:
    """Floating and complex results; of loops also tapes (integer handles) of such values."""
    if isinstance(op.opdef.derivative, Structured):
        flags = rules[op.name].reaches(op, [v in reached for v in op.operands], rules)
        return [v for v, on in zip(op.results, flags, strict=True) if on]
    if any(op.operands[k] in reached for k in linked_operands(op)):
        return [v for v in op.results if v.type.is_inexact]
    return []


def _needed_operands(op: Op, needed: set[Value], rules: Rules) -> Iterable[Value]:
    if isinstance(op.opdef.derivative, Structured):
        flags = rules[op.name].needs(op, [r in needed for r in op.results], rules)
        return [v for v, on in zip(op.operands, flags, strict=True) if on]
    return [op.operands[k] for k in linked_operands(op)]

