"""Compiled branches: cond, switch. Names and signatures of `jax.lax`."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.api.bodies import (
    Body,
    all_captured,
    captured_types,
    converted,
    describe_leaves,
    held,
    joint_region,
    promoted,
    require_function,
    shown,
    specs_of,
    trace_body,
)
from pullback.api.compiling import jit
from pullback.errors import ArgumentError
from pullback.ir.graph import Region
from pullback.ir.types import TensorType
from pullback.tracer.arguments import Spec
from pullback.tracer.entry import emit
from pullback.tracer.trace import current
from pullback.tracer.tree import LEAF, TreeDef

_NOT_GIVEN = object()


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """`true_fun(*operands)` if `pred` else `false_fun(*operands)`, decided when the compiled function runs.

    Both are traced; both must give the same structure and shapes. Only the one taken runs, forwards and backwards.

    Parameters
    ----------
    pred : a bool or a real number without axes; other than 0 is true
    operand : the one operand, by name
    operands : containers of arrays and numbers. With an operand for each branch the order is
        `cond(pred, true_operand, true_fun, false_operand, false_fun)`

    Raises
    ------
    ArgumentError (TypeError) : the predicate is no scalar bool or number; the two give different things (both are
    named).
    """
    if operand is not _NOT_GIVEN:
        if operands:
            raise ArgumentError("cond: give its operands by position, or one by the name `operand`, not both")
        operands = (operand,)
    if len(operands) == 2 and callable(false_fun) and callable(operands[1]) and not callable(true_fun):
        return _with_own_operands(pred, (true_fun, false_fun), operands)
    return _chosen("cond", pred, (_named(true_fun, "true_fun"), _named(false_fun, "false_fun")), operands)


def _with_own_operands(pred: Any, first: tuple[Any, Any], second: tuple[Any, Any]) -> Any:
    """Each branch with an operand of its own; the other's is handed in beside it and not read."""
    (true_operand, true_fun), (false_operand, false_fun) = first, second
    branches = (
        _Branch(true_fun.__name__, lambda mine, _: true_fun(mine)),
        _Branch(false_fun.__name__, lambda _, mine: false_fun(mine)),
    )
    return _chosen("cond", pred, branches, (true_operand, false_operand))


class _Branch(NamedTuple):
    """A branch, and what messages call it."""

    name: str
    function: Callable[..., Any]


def _named(function: Any, parameter: str) -> _Branch:
    require_function("cond", parameter, function)
    return _Branch(getattr(function, "__name__", parameter), function)


def _chosen(what: str, pred: Any, branches: Sequence[_Branch], operands: tuple[Any, ...]) -> Any:
    if current() is None:
        return jit(lambda p, args: _chosen(what, p, branches, args))(pred, operands)
    flag = _flag(what, pred)
    leaves, specs, tree = specs_of(operands, "operand")
    return _emit_if(what, flag, leaves, specs, tree, branches)


def _flag(what: str, pred: Any) -> Any:
    """The predicate as a bool.

    Raises
    ------
    ArgumentError : it is no bool or real number, or has axes.
    """
    dtype = getattr(pred, "dtype", None)
    dtype = np.asarray(pred).dtype if dtype is None else dtype
    if dtype.kind not in "biuf":
        raise ArgumentError(f"{what} needs a predicate that is a bool or a real number, got {pred!r}")
    if np.shape(pred) != ():
        raise ArgumentError(f"{what} needs a scalar predicate, got shape {np.shape(pred)}; for arrays use np.where")
    return pred if dtype == np.bool_ else np.not_equal(pred, 0)


def _emit_if(
    what: str, flag: Any, leaves: Sequence[Any], specs: Sequence[Spec], tree: TreeDef, branches: Sequence[_Branch]
) -> Any:
    given = tree.unflatten([held(LEAF, [s]) for s in specs])
    bodies = [trace_body(branch.function, given, what, branch.name) for branch in branches]
    types = _same_results(what, bodies)
    captured = captured_types(bodies)
    regions = _joint(bodies, [s.type for s in specs], captured, types)
    results = emit("if", [flag, *leaves, *all_captured(bodies)], {}, regions)
    return bodies[0].tree.unflatten(results)


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
        if body.tree != first.tree:
            raise ArgumentError(
                f"{what}: the branches give different things: {first.name} gives {shown(first.tree)}; {body.name} "
                f"gives {shown(body.tree)}"
            )
        if [t.shape for t in body.types] != [t.shape for t in first.types]:
            raise ArgumentError(
                f"{what}: the branches give different things: {first.name} gives "
                f"{describe_leaves(first.tree, first.types)}; {body.name} gives "
                f"{describe_leaves(body.tree, body.types)}"
            )
        types = promoted(types, body.types)
    return types


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NOT_GIVEN) -> Any:
    """`branches[index](*operands)`; an index out of range takes the nearest branch.

    Parameters
    ----------
    index : an integer without axes
    operand : the one operand, by name

    Raises
    ------
    ArgumentError (TypeError) : there are no branches; the index is no scalar integer; the branches give different
    things.
    """
    if operand is not _NOT_GIVEN:
        if operands:
            raise ArgumentError("switch: give its operands by position, or one by the name `operand`, not both")
        operands = (operand,)
    functions = list(branches)
    if not functions:
        raise ArgumentError("switch needs at least one branch")
    for number, function in enumerate(functions):
        require_function("switch", f"branches[{number}]", function)
    dtype = getattr(index, "dtype", None)
    dtype = np.asarray(index).dtype if dtype is None else dtype
    if np.shape(index) != () or dtype.kind not in "biu":
        raise ArgumentError(f"switch needs an index that is one integer, got shape {np.shape(index)} of {dtype}")
    if len(functions) == 1:
        return functions[0](*operands)
    named = [_Branch(getattr(f, "__name__", f"branches[{k}]"), f) for k, f in enumerate(functions)]
    return _one_of(index, named, 0, operands)


def _one_of(index: Any, branches: Sequence[_Branch], first: int, operands: tuple[Any, ...]) -> Any:
    """By halves: branch number `first` is the first of these."""
    half = len(branches) // 2
    parts = [_half(branches[:half], first), _half(branches[half:], first + half)]
    return _chosen("switch", np.less(index, first + half), parts, (index, *operands))


def _half(branches: Sequence[_Branch], first: int) -> _Branch:
    if len(branches) == 1:
        only = branches[0]
        return _Branch(only.name, lambda _, *operands: only.function(*operands))
    name = " or ".join(branch.name for branch in branches)
    return _Branch(name, lambda index, *operands: _one_of(index, branches, first, operands))
