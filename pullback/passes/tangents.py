"""The forward walk over one region: each op is followed by the tangents of its results."""

from collections.abc import Sequence

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op, Region, Value
from pullback.ir.opdef import Bilinear, Custom, Linear, Partials, Structured
from pullback.passes.facts import Facts
from pullback.passes.strong_zeros import Marked, guard_dot_tangent, plus, push_partial, spread, times
from pullback.passes.structured import Rules, Site

MaybeMarked = Marked | None
Pushed = tuple[list[Value], list[MaybeMarked]]


def push_region(
    f: Emitter,
    facts: Facts,
    region: Region,
    arguments: Sequence[Value],
    tangents: Sequence[MaybeMarked],
    active: set[Value],
    rules: Rules,
) -> Pushed:
    """Emit a region's ops and the tangents of its `active` values.

    Returns what the results have become, and their tangents (None where there is none).
    """
    outer = f.b.loc
    env: dict[Value, Value] = dict(zip(region.params, arguments, strict=True))
    tans: dict[Value, Marked] = {}
    _set_tangents(tans, region.params, tangents, active)
    for op in region.ops:
        operands = [env[v] for v in op.operands]
        if active.isdisjoint(op.results):
            env.update(zip(op.results, f.b.copy(op, operands).results, strict=True))
            continue
        given = [tans.get(v) for v in op.operands]
        if isinstance(op.opdef.derivative, Structured):
            f.b.loc = op.loc
            wanted = [r in active for r in op.results]
            results, pushed = rules[op.name].push(Site(f, facts, op, rules), operands, given, wanted)
        else:
            new = f.b.copy(op, operands)
            f.b.loc = None if op.loc is None else op.loc.with_note("tangent")
            results, pushed = new.results, push(f, facts, new, given)
        env.update(zip(op.results, results, strict=True))
        _set_tangents(tans, op.results, pushed, active)
    f.b.loc = outer
    return [env[v] for v in region.results], [tans.get(v) for v in region.results]


def _set_tangents(
    table: dict[Value, Marked], values: Sequence[Value], tangents: Sequence[MaybeMarked], active: set[Value]
) -> None:
    for value, tangent in zip(values, tangents, strict=True):
        if tangent is not None and value in active:
            table[value] = tangent


# ------------------------------------------------------------------ one op


def push(f: Emitter, facts: Facts, op: Op, tans: Sequence[MaybeMarked]) -> list[MaybeMarked]:
    """The tangents of the results of `op`, an op without regions in the graph that `f` builds."""
    if all(tan is None for tan in tans):
        return [None] * len(op.results)
    match op.opdef.derivative:
        case Partials() as rule:
            return [_push_partials(f, facts, op, rule, tans)]
        case Bilinear():
            return [_push_bilinear(f, facts, op, tans)]
        case Linear() as rule:
            return _push_linear(f, facts, op, rule, tans)
        case Custom() as rule:
            start = len(f.b.ops)
            given = [None if tan is None else tan.expr for tan in tans]
            pushed = rule.jvp(f, op, _wrap(f, op.operands), _wrap(f, op.results), given)
            return _marked(facts, op, f.b.ops[start:], tans, pushed)
        case rule:
            raise AssertionError(f"{op.name} is active but {rule} has no tangent")


def _push_partials(f: Emitter, facts: Facts, op: Op, rule: Partials, tans: Sequence[MaybeMarked]) -> MaybeMarked:
    operands, (out,) = _wrap(f, op.operands), _wrap(f, op.results)
    total: MaybeMarked = None
    for k, (partial, tan) in enumerate(zip(rule.partials, tans, strict=True)):
        if tan is not None and partial is not None:
            term = push_partial(f, facts, op, k, tan, partial(f, op, out, *operands), k in rule.masks)
            total = total if term is None else plus(total, term)
    return total


def _push_bilinear(f: Emitter, facts: Facts, op: Op, tans: Sequence[MaybeMarked]) -> MaybeMarked:
    x, y = _wrap(f, op.operands)
    total: MaybeMarked = None
    for number, (tan, other) in enumerate(((tans[0], y), (tans[1], x))):
        if tan is None:
            continue
        if op.name == "mul":
            term = times(f, facts, tan, other)
        else:
            safe = guard_dot_tangent(f, facts, op, tan, number, other)
            pair = (tan.expr, safe) if number == 0 else (safe, tan.expr)
            term = Marked(f.op(op.name, *pair, **op.attrs), tan.zeros)
        total = total if term is None else plus(total, term)
    return total


def _push_linear(f: Emitter, facts: Facts, op: Op, rule: Linear, tans: Sequence[MaybeMarked]) -> list[MaybeMarked]:
    """The op itself on the tangents; an absent one is left out of a sum, elsewhere it is a tensor of zeros."""
    if op.name in ("add", "sub") and None in tans:
        x, y = tans
        return [x if y is None else y if op.name == "add" else Marked(-y.expr, y.zeros)]
    start = len(f.b.ops)
    args = [_linear_operand(f, rule, k, v, tan) for k, (v, tan) in enumerate(zip(op.operands, tans, strict=True))]
    results = f.ops_of(op.name, *args, **op.attrs)
    return _marked(facts, op, f.b.ops[start:], tans, results)


def _linear_operand(f: Emitter, rule: Linear, number: int, value: Value, tan: MaybeMarked) -> Expr:
    linear = number in rule.operands if rule.operands is not None else value.type.is_inexact
    if not linear:
        return f.wrap(value)
    return tan.expr if tan is not None else f.full(value.type, 0)


def _marked(
    facts: Facts, op: Op, emitted: Sequence[Op], given: Sequence[MaybeMarked], derived: Sequence[Expr | None]
) -> list[MaybeMarked]:
    marks = {g.expr.value: g.zeros for g in given if g is not None}
    spread(facts, op, emitted, marks)
    return [None if d is None else Marked(d, marks.get(d.value, 0)) for d in derived]


def _wrap(f: Emitter, values: Sequence[Value]) -> list[Expr]:
    return [f.wrap(v) for v in values]
