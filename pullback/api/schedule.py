"""Which states of a long loop reverse mode keeps: loops in blocks, each block a checkpoint, blocks of blocks."""

from collections.abc import Sequence
from typing import Any

from pullback.api.needs import of_gradient
from pullback.errors import ArgumentError, BudgetError
from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Function, Region
from pullback.ir.ops import OPS
from pullback.passes.regions import copied
from pullback.record import record

DEEPEST = 5
"""Levels of blocks that are tried; each computes the loop once more."""

NEAR = 2.0
"""A length of blocks that fits is taken in place of the best one within this factor."""

Parts = tuple[list[Expr], list[Expr], list[Expr]]


@record(frozen=True)
class Turns:
    """A scan that is not emitted yet.

    body : takes carries, rows, constants; gives the next carries, then rows to stack
    """

    body: Region
    carries: int
    scanned: int
    length: int
    backwards: bool

    def split(self, values: Sequence[Expr]) -> Parts:
        first, second = self.carries, self.carries + self.scanned
        return list(values[:first]), list(values[first:second]), list(values[second:])


def in_blocks(turns: Turns, lengths: Sequence[int]) -> Function:
    """The scan as a function of its operands; blocks of `lengths[0]` turns consist of blocks of `lengths[1]`, ..."""
    f = Emitter(Builder(), OPS)
    values = []
    for k, param in enumerate(turns.body.params):
        scanned = turns.carries <= k < turns.carries + turns.scanned
        shape = (turns.length, *param.type.shape) if scanned else param.type.shape
        values.append(f.wrap(f.b.param(param.type.with_shape(shape), param.hint)))
    results = _emit(f, turns, turns.split(values), turns.length, tuple(lengths))
    return f.b.function("blocks", [r.value for r in results])


def _emit(f: Emitter, turns: Turns, parts: Parts, length: int, lengths: tuple[int, ...]) -> list[Expr]:
    """So many turns: the last carries, then the stacked rows."""
    lengths = tuple([k for k in lengths if k < length])
    carry, rows, constants = parts
    if not lengths:
        return _scan(f, turns, copied(turns.body), parts, length)
    size = lengths[0]
    count, left = divmod(length, size)
    cut = left if turns.backwards else length - left
    main = [_rows(f, x, *((cut, length) if turns.backwards else (0, cut))) for x in rows]
    rest = [_rows(f, x, *((0, cut) if turns.backwards else (cut, length))) for x in rows]
    wide = [f.reshape_to(x, (count, size, *x.shape[1:])) for x in main]
    block = _block(turns, [x.value.type.with_shape(x.shape[1:]) for x in wide], size, lengths[1:])
    results = _scan(f, turns, block, (carry, wide, constants), count)
    carry = results[: turns.carries]
    stacked = [f.reshape_to(y, (count * size, *y.shape[2:])) for y in results[turns.carries :]]
    if left:
        results = _emit(f, turns, (carry, rest, constants), left, lengths[1:])
        carry = results[: turns.carries]
        pairs = zip(stacked, results[turns.carries :], strict=True)
        stacked = [f.concatenate(*((y, x) if turns.backwards else (x, y)), axis=0) for x, y in pairs]
    return [*carry, *stacked]


def _scan(f: Emitter, turns: Turns, body: Region, parts: Parts, length: int) -> list[Expr]:
    attrs = Attrs(carries=turns.carries, scanned=turns.scanned, length=length, reverse=turns.backwards)
    op = f.b.add(OPS["scan"], [x.value for part in parts for x in part], attrs, (body,))
    return [f.wrap(r) for r in op.results]


def _block(turns: Turns, rows: Sequence[Any], size: int, lengths: tuple[int, ...]) -> Region:
    """The body of the loop over blocks: a checkpoint that holds the loop over a block."""
    params = list(turns.body.params)
    params[turns.carries : turns.carries + turns.scanned] = []
    types = [p.type for p in params]
    types[turns.carries : turns.carries] = rows
    inner, outer = Emitter(Builder(), OPS), Builder()
    values = [inner.wrap(inner.b.param(t)) for t in types]
    results = _emit(inner, turns, turns.split(values), size, lengths)
    region = inner.b.region([r.value for r in results])
    op = outer.add(OPS["checkpoint"], [outer.param(t) for t in types], Attrs(again=False), (region,))
    return outer.region(op.results)


def _rows(f: Emitter, x: Expr, start: int, stop: int) -> Expr:
    if (start, stop) == (0, x.shape[0]):
        return x
    others = x.shape[1:]
    return f.slice(x, start=(start, *(0 for _ in others)), stop=(stop, *others), step=(1,) * x.ndim)


# ------------------------------------------------------------------ within a budget


def lengths_within(turns: Turns, budget: int) -> tuple[int, ...]:
    """Lengths of blocks such that a call of the scan's gradient takes no more than `budget` bytes beside its operands:
    the fewest levels that do, of equal shares. The memory plan says what each takes.

    Raises
    ------
    BudgetError : it takes more, whatever is kept.
    """
    whole = of_gradient(in_blocks(turns, ()))
    if whole.fixed <= budget:
        return ()
    carry = float(max(1, sum(p.type.nbytes for p in turns.body.params[: turns.carries])))
    kept = max(1.0, (whole.fixed - whole.given) / turns.length)
    least = whole.fixed
    for levels in range(2, DEEPEST + 1):
        lengths = _equal_shares(turns.length, carry, kept, levels)
        needed = of_gradient(in_blocks(turns, lengths)).fixed
        if needed <= budget:
            return lengths
        least = min(least, needed)
    raise BudgetError(
        f"scan: memory_budget={budget} bytes are not enough for {turns.length} turns that carry {int(carry)} bytes; "
        f"the least found to do is {least}, of which its results, their gradients and those of its operands are "
        f"{whole.given} however it is computed"
    )


def _equal_shares(length: int, carry: float, kept: float, levels: int) -> tuple[int, ...]:
    """Lengths with which each level of states, and the innermost turns, take the same number of bytes."""
    share = (length * carry ** (levels - 1) * kept) ** (1 / levels)
    size = share / kept
    lengths = [size]
    for _ in range(levels - 2):
        lengths.append(lengths[-1] * share / carry)
    found = [length]
    for wanted in reversed(lengths):
        found.append(_near_divisor(found[-1], wanted))
    return tuple([k for k in dict.fromkeys(found) if k < length])


def _near_divisor(length: int, wanted: float) -> int:
    """A length near the wanted one that leaves nothing over, if there is one: what is left over costs a copy."""
    divisors = [k for k in range(1, length + 1) if length % k == 0]
    best = min(divisors, key=lambda k: max(k / wanted, wanted / k))
    return best if max(best / wanted, wanted / best) <= NEAR else max(1, round(wanted))


def chosen(turns: Turns, checkpoint: int | None, memory_budget: int | None) -> tuple[int, ...]:
    """Lengths of blocks for what the user asked for."""
    if checkpoint is not None and memory_budget is not None:
        raise ArgumentError("scan: give checkpoint or memory_budget, not both")
    if checkpoint is not None:
        if checkpoint < 1:
            raise ArgumentError(f"scan: checkpoint must be a positive number of turns, got {checkpoint}")
        return (int(checkpoint),)
    if memory_budget is not None:
        return lengths_within(turns, int(memory_budget))
    return ()
