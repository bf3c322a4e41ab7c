"""Compiled loops: scan, map, while_loop, fori_loop. Names and signatures of `jax.lax`."""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.api.batching import vmap
from pullback.api.blocks import counts_within, keep_every, require_turns, turns_of_count, turns_while
from pullback.api.bodies import array_spec, held, require_function, specs_of, trace_body
from pullback.api.carried import as_dtype, cast, region_of, settled
from pullback.api.compiling import jit
from pullback.api.schedule import Turns, chosen, in_blocks
from pullback.errors import ArgumentError
from pullback.ir.types import I64, tensor_type
from pullback.tracer.entry import emit, inline, is_traced
from pullback.tracer.trace import current
from pullback.tracer.tree import TreeDef, map_leaves


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoint: int | None = None,
    memory_budget: int | None = None,
) -> tuple[Any, Any]:
    """`carry, y = f(carry, x)` over the rows of `xs`, compiled as one loop.

    Parameters
    ----------
    f : takes the carry (any container) and one row of `xs`; gives the next carry, of the same structure and shapes, and
        a row to stack
    init : the first carry
    xs : a container of arrays whose first axes have one length, or None
    length : number of turns; needed only where `xs` is None
    reverse : from the last row to the first
    unroll, _split_transpose : accepted for compatibility; the compiler decides
    checkpoint : reverse mode keeps the carry of every so many turns only, and computes those between once more
    memory_budget : bytes that a call of the gradient may take: what it keeps and works with, the stacked rows, the last
        carry, and the gradients of all operands; only the operands themselves, which exist before, do not count. As few
        turns as possible are computed again

    Returns
    -------
    The last carry, and the stacked rows.

    Raises
    ------
    ArgumentError (TypeError) : the carry changes its structure or shape (the leaf is named with both types), or lengths
    differ.
    BudgetError (ValueError) : the budget cannot be kept; what can is named.
    """
    require_function("scan", "f", f)
    if current() is None:
        again = partial(scan, checkpoint=checkpoint, memory_budget=memory_budget)
        return jit(lambda c, rows: again(f, c, rows, length, reverse))(init, xs)  # type: ignore[no-any-return]
    rows, row_specs, rows_tree = specs_of(xs, "xs")
    turns = _length(rows, rows_tree, length)
    slices = [array_spec(s.type.with_shape(s.type.shape[1:])) for s in row_specs]
    carry, carry_specs, carry_tree = specs_of(init, "init")
    body, types = settled(
        "scan",
        carry_tree,
        [s.type for s in carry_specs],
        lambda specs: trace_body(f, (held(carry_tree, specs), held(rows_tree, slices)), "scan"),
        paired="row",
    )
    region = region_of(body, types)
    attrs = {"carries": len(carry), "scanned": len(rows), "length": turns, "reverse": bool(reverse)}
    operands = [*cast(carry, types), *rows, *body.captured]
    planned = Turns(region, len(carry), len(rows), turns, bool(reverse))
    lengths = chosen(planned, checkpoint, memory_budget) if turns else ()
    results = inline(in_blocks(planned, lengths), operands) if lengths else emit("scan", operands, attrs, (region,))
    return carry_tree.unflatten(results[: len(carry)]), body.tree.children[1].unflatten(results[len(carry) :])


def _length(rows: Sequence[Any], tree: TreeDef, length: Any) -> int:
    found: dict[int, str] = {}
    for row, path in zip(rows, tree.paths(), strict=True):
        if np.ndim(row) == 0:
            raise ArgumentError(f"scan: xs{path} is a scalar; it needs a first axis to run along")
        found.setdefault(np.shape(row)[0], f"xs{path}")
    if length is not None:
        found.setdefault(_whole_number("scan", "length", length), "length")
    if len(found) != 1:
        listed = ", ".join(f"{n} ({where})" for n, where in found.items()) or "none: give xs or length"
        raise ArgumentError(f"scan needs one number of turns, got {listed}")
    return next(iter(found))


def _whole_number(what: str, parameter: str, given: Any) -> int:
    try:
        number = operator.index(given)
    except TypeError:
        number = -1
    if number < 0:
        raise ArgumentError(f"{what}: {parameter} must be an integer that is not negative, got {given!r}")
    return number


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """`f` applied to each row of `xs`, one after the other in a compiled loop (`vmap` does all rows at once).

    Parameters
    ----------
    batch_size : so many rows at once, by `vmap`
    """
    require_function("map", "f", f)
    if batch_size is None:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    size = _whole_number("map", "batch_size", batch_size)
    if size == 0:
        raise ArgumentError("map: batch_size must be positive, got 0")
    rows, _, tree = specs_of(xs, "xs")
    blocks, rest = divmod(_length(rows, tree, None), size)
    full = blocks * size
    many = vmap(f)
    wide = map_leaves(lambda x: np.reshape(x[:full], (blocks, size, *np.shape(x)[1:])), xs)
    mapped = scan(lambda _, x: ((), many(x)), (), wide)[1]
    joined = map_leaves(lambda y: np.reshape(y, (full, *np.shape(y)[2:])), mapped)
    if not rest:
        return joined
    last = many(map_leaves(lambda x: x[full:], xs))
    return map_leaves(lambda y, z: np.concatenate([y, z]), joined, last) if full else last


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    checkpoint: int | None = None,
    memory_budget: int | None = None,
) -> Any:
    """`while cond_fun(value): value = body_fun(value)`, compiled; differentiable in both modes, whatever the number of
    turns.

    Parameters
    ----------
    checkpoint : reverse mode keeps the value of every so many turns only, and computes those between once more
    memory_budget : bytes that a call of the gradient may take, counted as for `scan`. The number of turns is not known
        beforehand: there are so many levels of blocks that 100,000 turns fit, if that is possible

    Raises
    ------
    ArgumentError (TypeError) : the condition is no scalar bool; the value changes structure or shape (the leaf is
    named).
    BudgetError (ValueError) : the budget is not enough for a single turn, or, when called, for as many as are made.
    """
    require_function("while_loop", "cond_fun", cond_fun)
    require_function("while_loop", "body_fun", body_fun)
    if current() is None:
        again = partial(while_loop, checkpoint=checkpoint, memory_budget=memory_budget)
        return jit(lambda value: again(cond_fun, body_fun, value))(init_val)
    if memory_budget is None:
        counts = keep_every("while_loop", checkpoint)
        return turns_while(cond_fun, body_fun, init_val, counts)
    counts = counts_within(
        lambda value, counts: turns_while(cond_fun, body_fun, value, counts),
        init_val,
        "while_loop",
        checkpoint,
        memory_budget,
    )
    last = turns_while(cond_fun, body_fun, init_val, counts)
    require_turns(np.logical_not(cond_fun(last)), memory_budget, counts)
    return last


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    unroll: int | bool | None = None,
    *,
    checkpoint: int | None = None,
    memory_budget: int | None = None,
) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`, compiled; the bounds may be traced.

    Parameters
    ----------
    unroll : accepted for compatibility; the compiler decides
    checkpoint, memory_budget : those of `scan`; where a bound is traced, those of `while_loop`

    Raises
    ------
    ArgumentError (TypeError) : a bound is no integer; the value changes structure or shape (the leaf is named).
    BudgetError (ValueError) : as for `scan` and `while_loop`.
    """
    require_function("fori_loop", "body_fun", body_fun)
    for parameter, bound in (("lower", lower), ("upper", upper)):
        _require_integer(parameter, bound)
    keeping: dict[str, Any] = {"checkpoint": checkpoint, "memory_budget": memory_budget}
    if current() is None:
        if _is_known(lower) and _is_known(upper):
            return jit(lambda value: fori_loop(lower, upper, body_fun, value, **keeping))(init_val)
        return jit(lambda a, b, value: fori_loop(a, b, body_fun, value, **keeping))(lower, upper, init_val)
    if _is_known(lower) and _is_known(upper):
        turns, first = max(int(upper) - int(lower), 0), int(lower)
        (rows,) = emit("iota", [], {"type": tensor_type(I64, (turns,)), "axis": 0})
        return scan(lambda value, i: (body_fun(i + first, value), ()), init_val, rows, length=turns, **keeping)[0]
    start = as_dtype(lower, I64)
    count = np.maximum(as_dtype(upper, I64) - start, 0)
    if memory_budget is None:
        counts = keep_every("fori_loop", checkpoint)
        return turns_of_count(count, body_fun, (start, init_val), counts)
    counts = counts_within(
        lambda value, counts: turns_of_count(value[0], body_fun, value[1:], counts),
        (count, start, init_val),
        "fori_loop",
        checkpoint,
        memory_budget,
    )
    require_turns(np.less_equal(count, int(np.prod(counts, dtype=object))), memory_budget, counts)
    return turns_of_count(count, body_fun, (start, init_val), counts)


def _is_known(bound: Any) -> bool:
    """Whether a bound is a number now: a traced one passes for an int, but must not become a constant."""
    return not is_traced(bound) and isinstance(bound, int | np.integer)


def _require_integer(parameter: str, bound: Any) -> None:
    dtype = getattr(bound, "dtype", None)
    dtype = np.asarray(bound).dtype if dtype is None else dtype
    if dtype.kind not in "biu" or np.shape(bound) != ():
        raise ArgumentError(f"fori_loop: {parameter} must be one integer, got shape {np.shape(bound)} of {dtype}")
