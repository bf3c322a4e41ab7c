"""Strong zeros: a cotangent (or tangent) that is structurally zero stays zero whatever it is multiplied by.

Each cotangent travels with a mark that says whether some of its elements may be structural zeros: the branch that
`where` did not select, an entry that a maximum did not pick, what a slice cut away, a value overwritten before it was
used. Where a marked cotangent meets a partial that is not known to be finite, the product is `strong_mul`; everywhere
else it is `mul`. Marks are worked out by looking at the ops that a rule emits for the cotangent, so a new op needs no
entry here.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op, Value
from pullback.ir.opdef import Partials
from pullback.ir.types import TensorType
from pullback.passes.facts import FINITE, LOGARITHMIC, TAME, WILD, Facts, known_number
from pullback.passes.tapes import add_tapes

# How structural zeros may have come into a cotangent; the order matters.
NONE = 0
FAR = 1  # where an operand overflowed: of interest only until the walk comes to what overflowed
KINK = 2  # by a kink, a slice, a seed, so in most programs
CHOICE = 3  # by a selection that the user wrote to leave elements out

SATURATING = frozenset({"tanh", "arctan", "erf", "erfc", "erfcx", "expit", "log_expit", "ndtr", "log_ndtr"})
STEEP = frozenset({"tanh", "erf", "erfc", "ndtr"})  # flat even behind a logarithm
CHOICES = frozenset({"select", "gather", "scatter"})
# x log(y) and its kin: a partial, by op and operand, that is infinite only as a logarithm is, and at a zero of the op.
# Whatever else is 0 there wins, since x log(x) goes to 0.
SLOW = frozenset({("entr", 0), ("xlogy", 0), ("xlog1py", 0), ("rel_entr", 0), ("kl_div", 0)})


class Marked(NamedTuple):
    """A cotangent or tangent and how structural zeros may have come into it."""

    expr: Expr
    zeros: int = NONE


def plus(a: Marked | None, b: Marked) -> Marked:
    """The sum."""
    if a is None:
        return b
    total = a.expr + b.expr if a.expr.type.is_inexact else add_tapes(a.expr.f, a.expr, b.expr)
    return Marked(total, _sum_mark(total.type, (a.zeros, b.zeros)))


def _sum_mark(type: TensorType, zeros: Sequence[int]) -> int:
    """Of a sum: an element is structurally zero only if it is in all of them. The parts of complex numbers come from
    different terms, one of which may be zero without a mark."""
    return max(zeros) if type.is_complex else min(zeros)


def times(f: Emitter, facts: Facts, ct: Marked, factor: Expr) -> Marked:
    """`ct * factor`; a product with a known 1 or -1 is not emitted. A factor of 0 is: 0 * inf must show as NaN."""
    number = known_number(factor.value)
    if number is not None and number in (1, -1):
        return ct if number == 1 else Marked(-ct.expr, ct.zeros)
    if (number is None or number == 0) and facts.is_slow(ct.expr.value):
        return times_mask(f, facts, ct, factor, introduced=NONE)
    if ct.zeros and facts.wildness(factor.value) >= (WILD if ct.zeros == FAR else TAME):
        return Marked(f.op("strong_mul", ct.expr, factor), ct.zeros)
    return Marked(ct.expr * factor, ct.zeros)


def saturates(facts: Facts, op: Op, operand: int) -> bool:
    """Whether the partial is zero because an operand has overflowed to infinity: 1 / (1 + exp(x)) far out.

    There the derivative of the whole is zero too, so that zero must survive the infinite partial of what overflowed.
    Only ops are named whose derivative falls faster than their operand grows; log is none. Of exponentials only those
    count that a division or a constant may have sent far out (a masked score of -inf over a temperature), not those
    that may just overflow. Behind a logarithm most are not flat, x = exp(log(x)) for one: see `pull_partial`.
    """
    value = op.operands[operand]
    match op.name:
        case "div":
            flat = operand == 1
        case "integer_pow":
            flat = bool(op.attrs["n"] < 0)
        case "exp" | "exp2":
            flat = facts.has_pole(value)
        case _:
            flat = op.name in SATURATING
    return flat and facts.wildness(value) == WILD


def flat_mark(facts: Facts, op: Op, operand: int) -> int:
    """The mark that an elementwise op gives to the cotangent of an operand because it may be flat there."""
    if not saturates(facts, op, operand):
        return NONE
    return KINK if op.name in STEEP and facts.is_logarithmic(op.operands[operand]) else FAR


def times_partial(f: Emitter, facts: Facts, ct: Marked, partial: Expr) -> Marked | None:
    """`ct * partial`, absent where the partial is known to be 0 (as that of x**0 is)."""
    number = known_number(partial.value)
    return None if number is not None and number == 0 else times(f, facts, ct, partial)


def times_mask(f: Emitter, facts: Facts, ct: Marked, mask: Expr, introduced: int = KINK) -> Marked:
    """`mask * ct` for a partial that is 0 where an operand was not picked: there the product is 0 for any `ct`.

    Where `ct` is structurally zero it is 0 for any mask.
    """
    if ct.zeros > FAR and facts.wildness(mask.value) != FINITE:
        mask = f.select(ct.expr.eq(0.0) & ~f.isfinite(mask), f.zeros_like(mask), mask)
    return Marked(f.op("strong_mul", mask, ct.expr), max(ct.zeros, introduced))


def _times_known_mask(f: Emitter, facts: Facts, ct: Marked, mask: Expr, introduced: int = KINK) -> Marked | None:
    """As `times_mask`, absent where the mask is known to be 0."""
    if known_number(mask.value) is not None:
        return times_partial(f, facts, ct, mask)
    return times_mask(f, facts, ct, mask, introduced)


def pull_partial(f: Emitter, facts: Facts, op: Op, number: int, ct: Marked, partial: Expr, mask: bool) -> Marked | None:
    """The cotangent of operand `number` of an elementwise op, by its partial."""
    if mask:
        return _times_known_mask(f, facts, ct, partial)
    if ct.zeros == FAR and op.name in LOGARITHMIC:
        ct = Marked(ct.expr)
    term = times_partial(f, facts, ct, partial)
    if term is None:
        return None
    if (op.name, number) in SLOW:
        facts.set_slow(term.expr.value, True)
    elif op.name != "div" and _is_singular(op, number):  # a quotient that is 0 has a divisor that is not
        facts.set_slow(term.expr.value, False)
    if term.zeros == FAR and facts.wildness(op.operands[number]) != WILD:
        return Marked(term.expr, NONE)
    return term if term.zeros else Marked(term.expr, flat_mark(facts, op, number))


def push_partial(
    f: Emitter, facts: Facts, op: Op, number: int, tan: Marked, partial: Expr, mask: bool
) -> Marked | None:
    """What operand `number` of an elementwise op adds to the tangent of its result."""
    if mask:
        return _times_known_mask(f, facts, tan, partial)
    if saturates(facts, op, number) and (op.name in STEEP or not facts.is_logarithmic(op.operands[number])):
        return _times_known_mask(f, facts, tan, partial, introduced=NONE)
    if (op.name, number) in SLOW:
        return Marked(f.op("strong_mul", tan.expr, partial), tan.zeros)
    return times_partial(f, facts, tan, partial)


def _is_singular(op: Op, number: int) -> bool:
    rule = op.opdef.derivative
    return isinstance(rule, Partials) and rule.is_singular(op, number)


def spread(facts: Facts, op: Op, emitted: Sequence[Op], marks: dict[Value, int]) -> None:
    """Carry the marks of the cotangents in `marks` through the ops that the rule of `op` has emitted, into `marks`."""
    introduced = CHOICE if op.name in CHOICES else KINK
    for new in emitted:
        carried = [marks.get(v) for v in new.operands]
        if any(c is not None for c in carried):
            mark = _mark(facts, new, carried, introduced)
            marks.update((r, mark) for r in new.results if r.type.is_inexact)


def _mark(facts: Facts, op: Op, carried: Sequence[int | None], introduced: int) -> int:
    known = [c for c in carried if c is not None]
    match op.name:
        case "add" | "sub":
            return _sum_mark(op.results[0].type, known)
        case "complex":
            return min(known)
        case "pad":
            return introduced if op.results[0].type.size != op.operands[0].type.size else known[0]
        case "select" | "update" | "scatter" | "concatenate":
            values = op.operands[1:] if op.name == "select" else op.operands
            added = any(c is None and v.type.is_inexact for v, c in zip(values, carried[-len(values) :], strict=True))
            return max(*known, introduced) if added else max(known)
        case "scatter_add" if carried[0] is None:
            return introduced
        case "scatter_add":
            return known[0]
        case "strong_mul" if carried[0] is None:
            return max(known[0], introduced)
        case _:
            return max(known)


# ------------------------------------------------------------------ matrix products


def guard_dot(f: Emitter, facts: Facts, op: Op, ct: Marked, number: int, other: Expr) -> Expr:
    """The operand that `ct` is multiplied with in a product of matrices, without the entries that only meet zeros of
    `ct`.

    A product mixes a row's structural zeros with the numbers behind them by addition, so the guard works on whole
    rows: a row (or column) of `other` is cleared where it is not finite and all of the cotangent that meets it is
    zero.

    Parameters
    ----------
    op : the `dot_general` to be differentiated
    ct : its cotangent, or the tangent of the operand that is not `other`
    number : which operand of `op` the result belongs to in reverse mode (`other` is the other one)
    """
    wildness = facts.wildness(other.value)
    if ct.zeros <= FAR or wildness == FINITE or (wildness == TAME and ct.zeros < CHOICE):
        return other
    dead = _dead_rows(f, op, ct.expr, 1 - number, other)
    zero = f.zeros_like(other)
    return f.select(dead & ~f.isfinite(other), zero, other)


def guard_dot_tangent(f: Emitter, facts: Facts, op: Op, tan: Marked, number: int, other: Expr) -> Expr:
    """As `guard_dot`, in forward mode: `tan` is the tangent of operand `number`, `other` the other operand."""
    wildness = facts.wildness(other.value)
    if tan.zeros <= FAR or wildness == FINITE or (wildness == TAME and tan.zeros < CHOICE):
        return other
    contract, batch = op.attrs["contract"], op.attrs["batch"]
    kept = (*batch[number], *contract[number])
    free = tuple(k for k in range(tan.expr.ndim) if k not in kept)
    dead = f.all(tan.expr.eq(0.0), axes=free) if free else tan.expr.eq(0.0)
    axes = sorted(kept)
    target = [(*batch[1 - number], *contract[1 - number])[kept.index(a)] for a in axes]
    wide = _spread_over(f, dead, target, other)
    return f.select(wide & ~f.isfinite(other), f.zeros_like(other), other)


def _dead_rows(f: Emitter, op: Op, ct: Expr, side: int, other: Expr) -> Expr:
    """Where operand number `side` (whose values are `other`) meets only zeros of the result's cotangent, in its shape.

    The result's axes are batch, free axes of the left operand, free axes of the right one.
    """
    contract, batch = op.attrs["contract"], op.attrs["batch"]
    free = [
        [k for k in range(v.type.ndim) if k not in contract[s] and k not in batch[s]] for s, v in enumerate(op.operands)
    ]
    n_batch, n_left = len(batch[0]), len(free[0])
    mine = range(n_batch, n_batch + n_left) if side == 0 else range(n_batch + n_left, ct.ndim)
    gone = tuple(k for k in range(n_batch, ct.ndim) if k not in mine)
    zero = ct.eq(0.0)
    dead = f.all(zero, axes=gone) if gone else zero
    return _spread_over(f, dead, [*batch[side], *free[side]], other)


def _spread_over(f: Emitter, x: Expr, dims: Sequence[int], like: Expr) -> Expr:
    """`x` broadcast to the shape of `like`, its axis k as axis dims[k]."""
    order = sorted(range(len(dims)), key=lambda k: dims[k])
    return f.broadcast_to(f.permute(x, order), like.shape, [dims[k] for k in order])
