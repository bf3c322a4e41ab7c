"""Compiled control flow: cond, switch, while_loop, fori_loop, scan, map, associative_scan. Names and signatures of
`jax.lax`."""

from collections.abc import Callable, Sequence
from functools import partial
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
    promoted,
    specs_of,
    trace_body,
)
from pullback.api.compiling import jit
from pullback.api.schedule import Turns, chosen, in_blocks
from pullback.errors import ArgumentError
from pullback.ir.graph import Region
from pullback.ir.types import DType, TensorType, tensor_type
from pullback.tracer.entry import emit, inline, is_traced
from pullback.tracer.trace import current
from pullback.tracer.tree import TreeDef, map_leaves

INT64 = np.dtype(np.int64)


def _compiled(function: Callable[..., Any], *arguments: Any) -> Any:
    """Outside of a trace: compile the one operation and run it."""
    return jit(function)(*arguments)


# ------------------------------------------------------------------ cond, switch


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """`true_fun(*operands)` if `pred` else `false_fun(*operands)`, decided when the compiled function runs.

    Both are traced; both must give the same structure, shapes and dtypes. Only the one taken runs, forwards and
    backwards.

    Raises
    ------
    ArgumentError (TypeError) : the predicate is no scalar bool or number; the two give different things (both are
    named).
    """
    if current() is None:
        return _compiled(lambda p, args: cond(p, true_fun, false_fun, *args), pred, operands)
    if np.shape(pred) != ():
        raise ArgumentError(f"cond needs a scalar predicate, got shape {np.shape(pred)}; for arrays use np.where")
    leaves, specs, tree = specs_of(operands, "operand")
    given = tree.unflatten([held(_leaf_tree(), [s]) for s in specs]) if specs else ()
    bodies = [trace_body(f, given, "cond") for f in (true_fun, false_fun)]
    types = _same_results("cond", bodies)
    flag = pred if getattr(pred, "dtype", None) == np.bool_ or isinstance(pred, bool) else np.not_equal(pred, 0)
    captured = captured_types(bodies)
    arguments = [s.type for s in specs]
    regions = _joint(bodies, arguments, captured, types)
    results = emit("if", [flag, *leaves, *all_captured(bodies)], {}, regions)
    return bodies[0].tree.unflatten(results)


def _leaf_tree() -> TreeDef:
    return TreeDef("leaf")


def _joint(
    bodies: Sequence[Body], arguments: Sequence[TensorType], captured: Sequence[TensorType], types: Sequence[TensorType]
) -> tuple[Region, ...]:
    regions, at = [], 0
    for body in bodies:
        regions.append(converted(joint_region(body, arguments, captured, at), types))
        at += len(body.captured)
    return tuple(regions)


def _same_results(what: str, bodies: Sequence[Body]) -> list[TensorType]:
    first = bodies[0]
    types = list(first.types)
    for body in bodies[1:]:
        if body.tree != first.tree or [t.shape for t in body.types] != [t.shape for t in first.types]:
            raise ArgumentError(
                f"{what}: the branches give different things: {first.name} gives "
                f"{describe_leaves(first.tree, first.types)}; {body.name} gives "
                f"{describe_leaves(body.tree, body.types)}"
            )
        types = promoted(types, body.types)
    return types


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index out of range takes the nearest branch."""
    functions = list(branches)
    if not functions:
        raise ArgumentError("switch needs at least one branch")
    if len(functions) == 1:
        return functions[0](*operands)
    half = len(functions) // 2
    return cond(
        np.less(index, half),
        lambda i, *args: switch(i, functions[:half], *args),
        lambda i, *args: switch(i - half, functions[half:], *args),
        index,
        *operands,
    )


# ------------------------------------------------------------------ scan, map


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
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
    unroll : accepted for compatibility; the compiler decides
    checkpoint : reverse mode keeps the carry of every so many turns only, and computes those between once more
    memory_budget : reverse mode keeps so much only that its gradient needs no more bytes, beside its operands, results
        and their gradients; as few turns as possible are computed again

    Returns
    -------
    The last carry, and the stacked rows.

    Raises
    ------
    ArgumentError (TypeError) : the carry changes its structure or shape (the leaf is named with both types), or lengths
    differ; the budget cannot be kept (what can is named).
    """
    if current() is None:
        again = partial(scan, checkpoint=checkpoint, memory_budget=memory_budget)
        return _compiled(lambda c, rows: again(f, c, rows, length, reverse), init, xs)  # type: ignore[no-any-return]
    rows, row_specs, rows_tree = specs_of(xs, "xs")
    turns = _length(rows, rows_tree, length)
    slices = [array_spec(s.type.with_shape(s.type.shape[1:])) for s in row_specs]
    carry, carry_specs, carry_tree = specs_of(init, "init")
    body, types = _carried(
        "scan",
        carry_tree,
        [s.type for s in carry_specs],
        lambda specs: trace_body(f, (held(carry_tree, specs), held(rows_tree, slices)), "scan"),
        pair=True,
    )
    region = _selected(body, types)
    attrs = {"carries": len(carry), "scanned": len(rows), "length": turns, "reverse": bool(reverse)}
    operands = [*_cast(carry, types), *rows, *body.captured]
    planned = Turns(region, len(carry), len(rows), turns, bool(reverse))
    lengths = chosen(planned, checkpoint, memory_budget) if turns else ()
    results = inline(in_blocks(planned, lengths), operands) if lengths else emit("scan", operands, attrs, (region,))
    return carry_tree.unflatten(results[: len(carry)]), body.tree.children[1].unflatten(results[len(carry) :])


def _selected(body: Body, carries: Sequence[TensorType]) -> Region:
    """The region giving exactly the output leaves in order, carries cast to their types."""
    region = body.region
    results = tuple([region.results[o.index] for o in body.outputs()])
    return converted(Region(region.params, region.ops, results), carries)


def _length(rows: Sequence[Any], tree: TreeDef, length: int | None) -> int:
    found: dict[int, str] = {}
    for row, path in zip(rows, tree.paths(), strict=True):
        if np.ndim(row) == 0:
            raise ArgumentError(f"scan: xs{path} is a scalar; it needs a first axis to run along")
        found.setdefault(np.shape(row)[0], f"xs{path}")
    if length is not None:
        found.setdefault(int(length), "length")
    if len(found) != 1:
        listed = ", ".join(f"{n} ({where})" for n, where in found.items()) or "none: give xs or length"
        raise ArgumentError(f"scan needs one number of turns, got {listed}")
    return next(iter(found))


def _cast(values: Sequence[Any], types: Sequence[TensorType]) -> list[Any]:
    return [_as_dtype(v, t.dtype) for v, t in zip(values, types, strict=True)]


def _as_dtype(value: Any, dtype: DType) -> Any:
    """A traced value or an array, converted where it has another dtype; a Python number becomes an array."""
    if not hasattr(value, "astype"):
        return np.asarray(value, dtype)
    return value if value.dtype == dtype else value.astype(dtype)


def _carried(
    what: str,
    tree: TreeDef,
    types: list[TensorType],
    make: Callable[[Sequence[Any]], Body],
    pair: bool,
) -> tuple[Body, list[TensorType]]:
    """Trace the body until its carry keeps its types: a float that starts as an integer is promoted, a shape may not
    change."""
    for _ in range(4):
        body = make([array_spec(t) for t in types])
        found_tree = body.tree
        if pair:
            if found_tree.kind != "tuple" or len(found_tree.children) != 2:
                raise ArgumentError(f"{what}: {body.name} must give a pair (carry, row), it gives {found_tree!r}")
            found_tree = found_tree.children[0]
        if found_tree != tree:
            raise ArgumentError(f"{what}: the carry starts as {tree!r}, {body.name} gives {found_tree!r}")
        given = list(body.types[: tree.size])
        for path, old, new in zip(tree.paths(), types, given, strict=True):
            if old.shape != new.shape:
                raise ArgumentError(
                    f"{what}: the carry{path} has type {old}, {body.name} gives {new}; a compiled loop carries one "
                    "shape"
                )
        wide = promoted(types, given)
        if wide == types:
            return body, types
        types = wide
    raise ArgumentError(f"{what}: the types of the carry do not settle: {describe_leaves(tree, types)}")


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """`f` applied to each row of `xs`, one after the other in a compiled loop (`vmap` does all rows at once)."""
    return scan(lambda _, x: ((), f(x)), (), xs)[1]


# ------------------------------------------------------------------ while_loop, fori_loop


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """`while cond_fun(value): value = body_fun(value)`, compiled; differentiable in both modes, whatever the number of
    turns.

    Raises
    ------
    ArgumentError (TypeError) : the condition is no scalar bool; the value changes structure or shape (the leaf is
    named).
    """
    if current() is None:
        return _compiled(lambda value: while_loop(cond_fun, body_fun, value), init_val)
    carry, specs, tree = specs_of(init_val, "init_val")
    body, types = _carried(
        "while_loop",
        tree,
        [s.type for s in specs],
        lambda s: trace_body(body_fun, (held(tree, s),), "while_loop"),
        pair=False,
    )
    condition = trace_body(cond_fun, (held(tree, [array_spec(t) for t in types]),), "while_loop")
    if condition.tree.kind != "leaf" or condition.types[0] != tensor_type(np.dtype(np.bool_), ()):
        found = describe_leaves(condition.tree, condition.types)
        raise ArgumentError(f"while_loop: {condition.name} must give one bool, it gives {found}")
    bodies = [condition, body]
    captured = captured_types(bodies)
    regions = (
        joint_region(condition, types, captured, 0),
        converted(joint_region(body, types, captured, len(condition.captured)), types),
    )
    operands = [*_cast(carry, types), *all_captured(bodies)]
    results = emit("while", operands, {"carries": len(carry), "most": 0}, regions)
    return tree.unflatten(results[: len(carry)])


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    unroll: Any = None,
    *,
    checkpoint: int | None = None,
    memory_budget: int | None = None,
) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`, compiled; the bounds may be traced.

    `checkpoint` and `memory_budget` are those of `scan`, for bounds that are Python numbers.
    """
    keeping: dict[str, Any] = {"checkpoint": checkpoint, "memory_budget": memory_budget}
    if _is_known(lower) and _is_known(upper):
        turns = max(int(upper) - int(lower), 0)
        if current() is None:
            return _compiled(lambda value: fori_loop(lower, upper, body_fun, value, **keeping), init_val)
        (rows,) = emit("iota", [], {"type": tensor_type(INT64, (turns,)), "axis": 0})
        first = int(lower)
        return scan(lambda value, i: (body_fun(i + first, value), ()), init_val, rows, length=turns, **keeping)[0]
    if checkpoint is not None or memory_budget is not None:
        raise ArgumentError("fori_loop: checkpoint and memory_budget need bounds that are Python numbers")
    if current() is None:
        return _compiled(lambda a, b, value: fori_loop(a, b, body_fun, value), lower, upper, init_val)
    carry, specs, tree = specs_of(init_val, "init_val")
    index = array_spec(tensor_type(INT64, ()))
    _, types = _carried(
        "fori_loop",
        tree,
        [s.type for s in specs],
        lambda s: trace_body(body_fun, (held(_leaf_tree(), [index]), held(tree, s)), "fori_loop"),
        pair=False,
    )
    counted = trace_body(
        lambda i, v: (i + 1, body_fun(i, v)),
        (held(_leaf_tree(), [index]), held(tree, [array_spec(t) for t in types])),
        "fori_loop",
    )
    start = _as_dtype(lower, INT64)
    count = np.maximum(_as_dtype(upper, INT64) - start, 0)
    attrs = {"carries": len(carry) + 1, "scanned": 0, "length": -1, "reverse": False}
    region = _selected(counted, [tensor_type(INT64, ()), *types])
    results = emit("scan", [count, start, *_cast(carry, types), *counted.captured], attrs, (region,))
    return tree.unflatten(results[1 : len(carry) + 1])


def _is_known(bound: Any) -> bool:
    """Whether a bound is a number now: a traced one passes for an int, but must not become a constant."""
    return not is_traced(bound) and isinstance(bound, int | np.integer)


# ------------------------------------------------------------------ associative_scan


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of an associative operation along `axis`, in a logarithmic number of array operations.

    Parameters
    ----------
    fn : takes two containers like `elems`, with any number of rows along `axis`, and combines them row by row
    """
    if reverse:
        turned = map_leaves(lambda x: np.flip(x, axis), elems)
        return map_leaves(lambda x: np.flip(x, axis), associative_scan(fn, turned, False, axis))
    count = _rows_along(elems, axis)
    if count < 2:
        return elems
    pairs = fn(_every_other(elems, axis, 0, count - 1), _every_other(elems, axis, 1, count))
    odd = associative_scan(fn, pairs, False, axis)
    last = count // 2 - 1 if count % 2 == 0 else count // 2
    even = fn(_rows(odd, axis, 0, last), _every_other(elems, axis, 2, count))
    first = _rows(elems, axis, 0, 1)
    even = map_leaves(lambda a, b: np.concatenate([a, b], axis), first, even)
    return map_leaves(lambda a, b: _interleave(a, b, axis), even, odd)


def _rows_along(elems: Any, axis: int) -> int:
    found: set[int] = set()
    map_leaves(lambda x: found.add(np.shape(x)[axis]), elems)
    if len(found) != 1:
        raise ArgumentError(f"associative_scan: the leaves have different lengths along axis {axis}: {sorted(found)}")
    return found.pop()


def _at(axis: int, part: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, part)


def _rows(elems: Any, axis: int, start: int, stop: int) -> Any:
    return map_leaves(lambda x: x[_at(axis % np.ndim(x), slice(start, stop))], elems)


def _every_other(elems: Any, axis: int, start: int, stop: int) -> Any:
    return map_leaves(lambda x: x[_at(axis % np.ndim(x), slice(start, stop, 2))], elems)


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """even[0], odd[0], even[1], ... along `axis`; `even` may have one row more."""
    axis %= np.ndim(even)
    count = np.shape(odd)[axis]
    pairs = np.stack([even[_at(axis, slice(0, count))], odd], axis + 1)
    shape = np.shape(odd)
    joined = np.reshape(pairs, (*shape[:axis], 2 * count, *shape[axis + 1 :]))
    return np.concatenate([joined, even[_at(axis, slice(count, None))]], axis)
