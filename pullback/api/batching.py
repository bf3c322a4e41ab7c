"""vmap: a function of one example becomes a function of many."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pullback.api.call import Call
from pullback.api.function import make_transformed
from pullback.api.programs import moved_axes
from pullback.api.staged import Staged, trace_call
from pullback.errors import ArgumentError
from pullback.tracer.arguments import Spec
from pullback.tracer.entry import Output
from pullback.tracer.tree import TreeDef, flatten

Axes = Any  # an int, None, or a container of those that is a prefix of the arguments


def vmap(fun: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0, axis_size: int | None = None) -> Any:
    """Apply `fun` to each row along an axis of its arguments, in one compiled function.

    Parameters
    ----------
    in_axes : the axis of each positional argument that holds the rows (a number for all, or a tuple with one entry for
        each argument; an entry may be a container like the argument); None: the argument is shared by all rows. Keyword
        arguments have their rows along axis 0
    out_axes : where the rows go in the results, in the same way; None for results that are the same for all rows
    axis_size : number of rows, needed only if all of `in_axes` is None

    Raises
    ------
    ArgumentError (TypeError) : when called, if an axis does not exist or the arguments have different numbers of rows.
    """

    def stage(call: Call) -> Staged:
        return _stage(fun, call, in_axes, out_axes, axis_size)

    axes = (in_axes, out_axes, axis_size)
    return make_transformed(fun, stage, "vmap", parameters=axes, remake=(vmap, (fun, *axes), {}))


def _stage(fun: Callable[..., Any], call: Call, in_axes: Axes, out_axes: Axes, axis_size: int | None) -> Staged:
    axes = _argument_axes(call, in_axes)
    size = _row_count(call, axes, axis_size)
    rows = [_row_spec(leaf, a) for leaf, a in zip(call.leaves, axes, strict=True)]
    values = [_first_row(v, a, size) for v, a in zip(call.values, axes, strict=True)]
    inner = replace(call, leaves=tuple(rows), values=values)
    traced = trace_call(fun, inner, with_values=size > 0)
    outputs = [o for o in traced.outputs if o.kind != "static"]
    places = _output_axes(traced.out_tree, traced.outputs, out_axes)
    param_axes = [axes[k] for k in traced.leaves] + [None] * len(traced.extras)
    by_result: list[int | None] = [0] * len(traced.function.results)
    for output, axis in zip(outputs, places, strict=True):
        by_result[output.index] = axis
    function = moved_axes(traced.function, size, param_axes, by_result)
    wide = tuple([_wide_output(o, by_result) for o in traced.outputs])
    return Staged(function, wide, traced.out_tree, traced)


def _wide_output(output: Output, axes: Sequence[int | None]) -> Output:
    if output.kind == "static" or axes[output.index] is None:
        return output
    return Output("array", output.index)


def _argument_axes(call: Call, in_axes: Axes) -> list[int | None]:
    """The axis of each leaf, counted from the front."""
    args_tree, kwargs_tree = call.tree.children
    per_argument = in_axes
    if not isinstance(in_axes, tuple | list):
        per_argument = (in_axes,) * len(args_tree.children)
    if len(per_argument) != len(args_tree.children):
        raise ArgumentError(f"in_axes has {len(per_argument)} entries for {len(args_tree.children)} arguments")
    axes: list[int | None] = []
    for spec, tree in zip(per_argument, args_tree.children, strict=True):
        axes += _prefix(spec, tree, "in_axes")
    axes += [0] * kwargs_tree.size
    return [_front(a, leaf, k, call) for k, (a, leaf) in enumerate(zip(axes, call.leaves, strict=True))]


def _front(axis: int | None, leaf: Any, number: int, call: Call) -> int | None:
    if not isinstance(leaf, Spec) or axis is None:
        return None
    ndim = leaf.type.ndim
    if not -ndim <= axis < ndim:
        raise ArgumentError(
            f"vmap: argument {call.tree.paths()[number]} has type {leaf.type}, which has no axis {axis}; give None in "
            "in_axes for an argument that all rows share"
        )
    return axis % ndim


def _prefix(spec: Axes, tree: TreeDef, what: str) -> list[int | None]:
    """`spec` spread over the leaves of `tree`: a number or None stands for a whole subtree."""
    if spec is None or isinstance(spec, int):
        return [spec] * tree.size
    parts, found = _children(spec), []
    if len(parts) != len(tree.children):
        raise ArgumentError(f"{what}: {spec!r} does not fit the structure {tree!r}")
    for part, child in zip(parts, tree.children, strict=True):
        found += _prefix(part, child, what)
    return found


def _children(spec: Any) -> list[Any]:
    if isinstance(spec, dict):
        return [spec[k] for k in sorted(spec)]
    if isinstance(spec, tuple | list):
        return list(spec)
    leaves, _ = flatten(spec)
    return leaves


def _row_count(call: Call, axes: Sequence[int | None], axis_size: int | None) -> int:
    sizes: dict[int, str] = {}
    for k, (leaf, axis) in enumerate(zip(call.leaves, axes, strict=True)):
        if isinstance(leaf, Spec) and axis is not None:
            sizes.setdefault(leaf.type.shape[axis], f"argument {call.tree.paths()[k]} of type {leaf.type}")
    if axis_size is not None:
        sizes.setdefault(axis_size, "axis_size")
    if not sizes:
        raise ArgumentError("vmap needs an argument with rows, or axis_size: every entry of in_axes is None")
    if len(sizes) > 1:
        found = " and ".join(f"{n} rows in {where}" for n, where in sizes.items())
        raise ArgumentError(f"vmap: the arguments have different numbers of rows: {found}")
    return next(iter(sizes))


def _row_spec(leaf: Any, axis: int | None) -> Any:
    if axis is None:
        return leaf
    shape = leaf.type.shape
    return Spec(leaf.type.with_shape(shape[:axis] + shape[axis + 1 :]))


def _first_row(value: Any, axis: int | None, size: int) -> Any:
    """The value that a Python branch sees; branches on rows are refused later, those on shared values are right."""
    if axis is None or size == 0:
        return value
    return value[(slice(None),) * axis + (0,)]


def _output_axes(tree: TreeDef, outputs: Sequence[Output], out_axes: Axes) -> list[int | None]:
    axes = _prefix(out_axes, tree, "out_axes")
    return [a for a, o in zip(axes, outputs, strict=True) if o.kind != "static"]
