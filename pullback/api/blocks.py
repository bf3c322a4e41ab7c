"""Loops whose number of turns is known only when they run, and which of their states reverse mode keeps.

A loop in blocks is a loop over checkpoints, each of which holds a loop of so many turns, or again of blocks: reverse
mode keeps the states between the blocks of one level on a tape, and runs each block once more. `counts` says of each
level, the outermost first, how many blocks (at the end: turns) one block above has at most; 0 is any number. A budget
is shared among the levels, so the number of turns that fit is the product of what each level's share holds.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.api.bodies import (
    Body,
    all_captured,
    array_spec,
    captured_types,
    converted,
    describe_leaves,
    held,
    joint_region,
    specs_of,
    trace_body,
)
from pullback.api.carried import cast, region_of, settled
from pullback.api.checkpointing import checkpoint as checkpointed
from pullback.api.needs import of_gradient
from pullback.errors import ArgumentError, BudgetError
from pullback.ir.types import I64, tensor_type
from pullback.tracer.entry import emit
from pullback.tracer.operands import content_of
from pullback.tracer.trace import active
from pullback.tracer.tree import LEAF

Counts = tuple[int, ...]

MOST_TURNS = 100_000
"""Turns for which a budget should be enough: as long as it is not, there is one level more."""
DEEPEST = 5
"""Levels that are tried; each but the first computes the loop once more."""
MOST_BLOCKS = 1 << 20
"""Of one level, however little each takes."""
COUNTER = tensor_type(I64, ())


def keep_every(what: str, turns: int | None) -> Counts:
    """The levels for `checkpoint=turns`."""
    if turns is None:
        return (0,)
    if turns < 1:
        raise ArgumentError(f"{what}: checkpoint must be a positive number of turns, got {turns}")
    return 0, int(turns)


# ------------------------------------------------------------------ as long as a condition holds


def turns_while(holds: Callable[[Any], Any], step: Callable[[Any], Any], value: Any, counts: Counts) -> Any:
    """`while holds(value): value = step(value)`, in blocks; it stops when the outermost level has its most."""
    most, inner = counts[0], counts[1:]
    block = checkpointed(lambda inside: turns_while(holds, step, inside, inner)) if inner else step
    if not most:
        return _emit_while(holds, block, value, 0)

    def goes_on(counted: Any) -> Any:
        return np.less(counted[0], most) & holds(counted[1])

    return _emit_while(goes_on, lambda counted: (counted[0] + 1, block(counted[1])), (0, value), most)[1]


def _emit_while(holds: Callable[[Any], Any], step: Callable[[Any], Any], value: Any, most: int) -> Any:
    carry, specs, tree = specs_of(value, "init_val")
    body, types = settled(
        "while_loop", tree, [s.type for s in specs], lambda s: trace_body(step, (held(tree, s),), "while_loop")
    )
    condition = trace_body(holds, (held(tree, [array_spec(t) for t in types]),), "while_loop")
    _require_flag(condition)
    bodies = [condition, body]
    captured = captured_types(bodies)
    regions = (
        joint_region(condition, types, captured, 0),
        converted(joint_region(body, types, captured, len(condition.captured)), types),
    )
    operands = [*cast(carry, types), *all_captured(bodies)]
    results = emit("while", operands, {"carries": len(carry), "most": most}, regions)
    return tree.unflatten(results[: len(carry)])


def _require_flag(condition: Body) -> None:
    if condition.tree != LEAF or condition.types[0] != tensor_type(np.dtype(np.bool_), ()):
        found = describe_leaves(condition.tree, condition.types)
        raise ArgumentError(f"while_loop: {condition.name} must give one bool, it gives {found}")


# ------------------------------------------------------------------ a number of times


def turns_of_count(count: Any, step: Callable[[Any, Any], Any], indexed: tuple[Any, Any], counts: Counts) -> Any:
    """`count` times `value = step(i, value)`, from the pair `indexed` of the first i and value on, in blocks."""
    return _counted(count, step, indexed, [prod(counts[k:]) for k in range(1, len(counts))])[1]


def _counted(count: Any, step: Callable[[Any, Any], Any], indexed: Any, sizes: Sequence[int]) -> Any:
    """As pairs; a block of the outermost level has `sizes[0]` turns."""
    if not sizes:
        return _emit_counted(count, step, indexed)
    size, inner = sizes[0], sizes[1:]
    run = checkpointed(lambda turns, inside: _counted(turns, step, inside, inner))

    def block(number: Any, inside: Any) -> Any:
        return run(np.minimum(count - number * size, size), inside)

    zero = np.asarray(0, I64)
    return _emit_counted((count + (size - 1)) // size, block, (zero, indexed))[1]


def _emit_counted(count: Any, step: Callable[[Any, Any], Any], indexed: Any) -> Any:
    start, value = indexed
    carry, specs, tree = specs_of(value, "init_val")
    index = array_spec(COUNTER)
    name = getattr(step, "__name__", "body_fun")
    body, types = settled(
        "fori_loop",
        tree,
        [s.type for s in specs],
        lambda s: trace_body(lambda i, v: (i + 1, step(i, v)), (held(LEAF, [index]), held(tree, s)), "fori_loop", name),
        paired="index",
    )
    attrs = {"carries": len(carry) + 1, "scanned": 0, "length": -1, "reverse": False}
    region = region_of(body, [COUNTER, *types])
    operands = [count, *cast([start], [COUNTER]), *cast(carry, types), *body.captured]
    results = emit("scan", operands, attrs, (region,))
    return results[0], tree.unflatten(results[1 : len(carry) + 1])


# ------------------------------------------------------------------ within a budget


def counts_within(
    run: Callable[[Any, Counts], Any], value: Any, what: str, checkpoint: int | None, budget: int
) -> Counts:
    """The levels such that the gradient of the loop takes no more than `budget` bytes, as long as they hold all turns.

    Parameters
    ----------
    run : makes the loop for a first value and levels

    Raises
    ------
    BudgetError : no number of levels leaves room for one turn.
    """
    if checkpoint is not None:
        raise ArgumentError(f"{what}: give checkpoint or memory_budget, not both")
    _, specs, tree = specs_of(value, "init_val")
    best: Counts = ()
    least = 0
    for levels in range(2, DEEPEST + 1):
        traced = trace_body(lambda v, n=levels: run(v, (2,) * n), (held(tree, specs),), what)
        needs = of_gradient(traced.traced.function)
        shares = [needs.taped.get(level, 0) for level in range(levels)]
        least = min(least, needs.fixed + sum(shares)) if least else needs.fixed + sum(shares)
        share = (budget - needs.fixed) // levels
        counts = tuple([min(share // max(taped, 1), MOST_BLOCKS) for taped in shares])
        if share > 0 and prod(counts) > prod(best or (0,)):
            best = counts
        if prod(best or (0,)) >= MOST_TURNS:
            break
    if not best:
        raise BudgetError(f"{what}: memory_budget={budget} bytes are not enough for one turn; the least is {least}")
    return best


def require_turns(enough: Any, budget: int, counts: Counts) -> None:
    """A check, when called, that the levels held all turns."""
    trace = active()
    message = (
        f"memory_budget={budget} bytes are enough for {prod(counts)} turns of this loop, and it makes more: raise it"
    )
    trace.check(content_of(trace, enough), message)
