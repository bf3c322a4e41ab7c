"""Programs made of programs: what the transforms do to IR beyond the passes."""

from collections.abc import Callable, Sequence

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function, Value
from pullback.ir.ops import OPS
from pullback.passes.batch import batch
from pullback.passes.forward import forward
from pullback.passes.reverse import reverse


class Program:
    """A function under construction."""

    def __init__(self, like: Function) -> None:
        self.b = Builder()
        self.f = Emitter(self.b, OPS)
        self._name, self._source = like.name, like.source

    def params(self, function: Function) -> list[Value]:
        return [self.b.param(p.type, p.hint) for p in function.params]

    def call(self, function: Function, arguments: Sequence[Value]) -> list[Value]:
        return self.b.inline(function.body, arguments)

    def done(self, suffix: str, results: Sequence[Value]) -> Function:
        return self.b.function(f"{self._name}.{suffix}", results, "traced", self._source)


def only_results(function: Function, numbers: Sequence[int]) -> Function:
    """The function with some of its results."""
    program = Program(function)
    results = program.call(function, program.params(function))
    return program.b.function(function.name, [results[k] for k in numbers], function.stage, function.source)


def basis(f: Emitter, like: Value, at: int, total: int) -> Expr:
    """Rows of unit vectors of the space of `like`, placed from row `at` on among `total` rows; shape (total,
    *shape)."""
    size = like.type.size
    shape = (total, size)
    rows = f.arange_like(shape, 0)
    columns = f.arange_like(shape, 1)
    hit = rows.eq(columns + at) if at else rows.eq(columns)
    return f.reshape_to(f.astype(hit, like.type.dtype), (total, *like.type.shape))


def jacobian_rows(function: Function, output: int, wrt: Sequence[int]) -> Function:
    """All vector-Jacobian products of one result with unit cotangents, in one batched sweep.

    Results: for each of `wrt` an array of shape (size of the result, *shape of the parameter).
    """
    swept = reverse(only_results(function, [output]), wrt, with_outputs=False)
    size = function.results[output].type.size
    program = Program(function)
    params = program.params(function)
    if size == 0:
        empty = [
            program.f.full(function.params[k].type.with_shape((0, *function.params[k].type.shape)), 0) for k in wrt
        ]
        return program.done("jacobian", [e.value for e in empty])
    flags = [False] * len(params) + [True]
    batched, _ = batch(swept, flags, size)
    seeds = basis(program.f, function.results[output], 0, size)
    return program.done("jacobian", program.call(batched, [*params, seeds.value]))


def jacobian_columns(function: Function, wrt: int) -> Function:
    """All Jacobian-vector products with unit tangents of one parameter, in one batched sweep.

    Results: for each inexact result an array of shape (size of the parameter, *shape of the result).
    """
    swept = forward(function, [wrt], with_outputs=False)
    param = function.params[wrt]
    program = Program(function)
    params = program.params(function)
    if param.type.size == 0:
        inexact = [r for r in function.results if r.type.is_inexact]
        empty = [program.f.full(r.type.with_shape((0, *r.type.shape)), 0) for r in inexact]
        return program.done("jacobian", [e.value for e in empty])
    flags = [False] * len(params) + [True]
    batched, _ = batch(swept, flags, param.type.size)
    seeds = basis(program.f, param, 0, param.type.size)
    return program.done("jacobian", program.call(batched, [*params, seeds.value]))


def first_axis_last(f: Emitter, x: Expr) -> Expr:
    return f.permute(x, (*range(1, x.ndim), 0))


def moved_axes(
    function: Function, size: int, in_axes: Sequence[int | None], out_axes: Sequence[int | None]
) -> Function:
    """`function` over `size` rows along the given axes of parameters and results; None: shared by all rows.

    Raises
    ------
    ValueError : a result with out axis None depends on the row.
    """
    batched, have = batch(function, [a is not None for a in in_axes], size, all_results=False)
    program = Program(function)
    arguments = []
    for inner, axis in zip(batched.params, in_axes, strict=True):
        if axis is None:
            arguments.append(program.b.param(inner.type, inner.hint))
            continue
        shape = inner.type.shape[1:]
        outer = program.b.param(inner.type.with_shape((*shape[:axis], size, *shape[axis:])), inner.hint)
        moved = program.f.permute(program.f.wrap(outer), (axis, *(k for k in range(len(shape) + 1) if k != axis)))
        arguments.append(moved.value)
    results = []
    for k, (value, axis) in enumerate(zip(program.call(batched, arguments), out_axes, strict=True)):
        results.append(_placed(program.f, program.f.wrap(value), have[k], size, axis, k).value)
    return program.done("vmap", results)


def _placed(f: Emitter, x: Expr, has_rows: bool, size: int, axis: int | None, number: int) -> Expr:
    if axis is None:
        if has_rows:
            raise ValueError(f"out_axes is None for result {number}, but it differs from row to row")
        return x
    if not has_rows:
        x = f.broadcast_to(x, (size, *x.shape))
    at = axis + x.ndim if axis < 0 else axis
    order = [*range(1, at + 1), 0, *range(at + 1, x.ndim)]
    return f.permute(x, order)


def with_results(function: Function, suffix: str, change: Callable[[Emitter, list[Expr]], list[Expr]]) -> Function:
    """The function with other results, computed from its own."""
    program = Program(function)
    results = program.call(function, program.params(function))
    changed = change(program.f, [program.f.wrap(r) for r in results])
    return program.done(suffix, [c.value for c in changed])


def merged(functions: Sequence[Function]) -> Function:
    """Functions of the same parameters as one, their results one after the other."""
    program = Program(functions[0])
    params = program.params(functions[0])
    results = [value for function in functions for value in program.call(function, params)]
    return program.b.function(functions[0].name, results, "traced", functions[0].source)
