"""jacrev, jacfwd, jacobian, hessian: all derivatives of array-valued functions, by batched sweeps in one compiled
function."""

from collections.abc import Callable, Sequence
from typing import Any

from pullback.api.call import Argnum, Argnums, Call, as_argnums, locate
from pullback.api.function import make_transformed, positions
from pullback.api.gradients import argument_tree, check_argument, differentiable
from pullback.api.programs import first_axis_last, jacobian_columns, jacobian_rows, merged, with_results
from pullback.api.staged import Leaf, Staged, shaped, trace_call
from pullback.errors import ArgumentError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.tracer.entry import Output, Traced


def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    static_argnums: Argnums = (),
) -> Any:
    """The Jacobian by reverse mode: one backward sweep for each element of the output, all of them in one batch.

    Returns
    -------
    A function that gives, for output of shape (m, ...) and argument of shape (n, ...), an array (m, ..., n, ...).
    Containers of outputs and arguments give containers of such arrays: the output's outside, the argument's inside.

    Raises
    ------
    ArgumentError (TypeError) : when called, if the argument is an integer, or the output has no floating leaf.
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, static_argnums, "jacrev")


def jacfwd(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    static_argnums: Argnums = (),
) -> Any:
    """The Jacobian by forward mode: one sweep for each element of the argument. Result as of `jacrev`."""
    return _jacobian(fun, argnums, has_aux, holomorphic, static_argnums, "jacfwd")


def jacobian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    static_argnums: Argnums = (),
) -> Any:
    """The Jacobian, by whichever mode needs fewer sweeps. Result as of `jacrev`."""
    return _jacobian(fun, argnums, has_aux, holomorphic, static_argnums, "jacobian")


def hessian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    static_argnums: Argnums = (),
) -> Any:
    """Second derivatives: forward mode over reverse mode, (output..., argument..., argument...)."""
    inner = jacrev(fun, argnums, has_aux, holomorphic, static_argnums=static_argnums)
    return jacfwd(inner, argnums, has_aux, holomorphic, static_argnums=static_argnums)


def _jacobian(
    fun: Callable[..., Any], argnums: Argnums, has_aux: bool, holomorphic: bool, statics: Argnums, kind: str
) -> Any:
    wanted = as_argnums(argnums)

    def stage(call: Call) -> Staged:
        return _stage(fun, call, wanted, isinstance(argnums, tuple | list), has_aux, holomorphic, kind)

    fixed = frozenset(as_argnums(statics, "static_argnums"))
    parameters = (wanted, isinstance(argnums, tuple | list), has_aux, holomorphic)
    make = {"jacrev": jacrev, "jacfwd": jacfwd}.get(kind, jacobian)
    again = (make, (fun, argnums, has_aux, holomorphic), {"static_argnums": statics})
    return make_transformed(fun, stage, kind, fixed, parameters, again)


def _stage(
    fun: Callable[..., Any],
    call: Call,
    argnums: Sequence[Argnum],
    as_tuple: bool,
    has_aux: bool,
    holomorphic: bool,
    kind: str,
) -> Staged:
    located = locate(fun, call, argnums)
    spans = positions(call, located)
    for argnum, span in zip(argnums, spans, strict=True):
        check_argument(fun, call, argnum, span, holomorphic)
    traced = trace_call(fun, call)
    main, aux = _split(fun, traced, has_aux)
    _check_outputs(fun, traced, main, holomorphic)
    params = {leaf: k for k, leaf in enumerate(traced.leaves)}
    leaves = [k for span in spans for k in span if differentiable(call.leaves[k])]
    wrt = [params[k] for k in leaves]
    numbers = [o.index for o in main if _has_derivative(traced.function, o)]
    functions = _sweeps(traced.function, numbers, wrt, _mode(traced.function, numbers, wrt, kind))
    function = merged([*functions, traced.function] if has_aux else functions)
    blocks = {(n, leaf): i * len(leaves) + j for i, n in enumerate(numbers) for j, leaf in enumerate(leaves)}
    shift = len(numbers) * len(leaves)
    columns = []
    for output in main:
        parts = tuple(
            argument_tree(call, argument).unflatten(
                [_block(blocks, output, leaf) if leaf in leaves else None for leaf in span]
            )
            for argument, span in zip(located, spans, strict=True)
        )
        columns.append(parts if as_tuple else parts[0])
    tree = traced.out_tree.children[0] if has_aux else traced.out_tree
    result: Any = tree.unflatten(columns)
    if has_aux:
        rest = [Leaf(o if o.kind == "static" else o._replace(index=o.index + shift)) for o in aux]
        result = (result, traced.out_tree.children[1].unflatten(rest))
    outputs, out_tree = shaped(result)
    return Staged(function, outputs, out_tree, traced)


def _block(blocks: dict[tuple[int, int], int], output: Output, leaf: int) -> Any:
    number = blocks.get((output.index, leaf))
    return None if output.kind == "static" or number is None else Leaf(Output("array", number))


def _has_derivative(function: Function, output: Output) -> bool:
    return output.kind != "static" and function.results[output.index].type.is_inexact


def _split(fun: Callable[..., Any], traced: Traced, has_aux: bool) -> tuple[Sequence[Output], Sequence[Output]]:
    if not has_aux:
        return traced.outputs, ()
    tree = traced.out_tree
    if tree.kind != "tuple" or len(tree.children) != 2:
        raise ArgumentError(f"with has_aux=True {_name(fun)} must give a pair (output, aux), it gives {tree!r}")
    count = tree.children[0].size
    return traced.outputs[:count], traced.outputs[count:]


def _check_outputs(fun: Callable[..., Any], traced: Traced, outputs: Sequence[Output], holomorphic: bool) -> None:
    types = [traced.function.results[o.index].type for o in outputs if _has_derivative(traced.function, o)]
    if not types:
        raise ArgumentError(
            f"{_name(fun)} gives no floating or complex array, so it has no Jacobian; cast its output to float"
        )
    if any(t.is_complex for t in types) and not holomorphic:
        raise ArgumentError(
            f"{_name(fun)} gives complex values; differentiate np.real and np.imag of them, or pass holomorphic=True"
        )


def _mode(function: Function, numbers: Sequence[int], wrt: Sequence[int], kind: str) -> str:
    if kind != "jacobian":
        return kind
    rows = sum(function.results[n].type.size for n in numbers)
    columns = sum(function.params[k].type.size for k in wrt)
    return "jacfwd" if 2 * columns < rows else "jacrev"


def _sweeps(function: Function, numbers: Sequence[int], wrt: Sequence[int], mode: str) -> list[Function]:
    """For each output and argument one block, in that order, of shape (output..., argument...)."""
    if mode == "jacrev":
        return [_rows(function, n, wrt) for n in numbers]
    columns = [_columns(function, k, numbers) for k in wrt]
    program = merged(columns)
    order = [j * len(numbers) + i for i in range(len(numbers)) for j in range(len(wrt))]
    return [with_results(program, "jacobian", lambda f, results: [results[k] for k in order])]


def _rows(function: Function, number: int, wrt: Sequence[int]) -> Function:
    shape = function.results[number].type.shape
    shapes = [(*shape, *function.params[k].type.shape) for k in wrt]

    def shaped_blocks(f: Emitter, results: list[Expr]) -> list[Expr]:
        return [f.reshape_to(r, s) for r, s in zip(results, shapes, strict=True)]

    return with_results(jacobian_rows(function, number, wrt), "rows", shaped_blocks)


def _columns(function: Function, param: int, numbers: Sequence[int]) -> Function:
    inexact = [k for k, r in enumerate(function.results) if r.type.is_inexact]
    places = [inexact.index(n) for n in numbers]
    tail = function.params[param].type.shape

    def shaped_blocks(f: Emitter, results: list[Expr]) -> list[Expr]:
        moved = [first_axis_last(f, results[k]) for k in places]
        return [f.reshape_to(m, (*m.shape[:-1], *tail)) for m in moved]

    return with_results(jacobian_columns(function, param), "columns", shaped_blocks)


def _name(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__name__", "the function")
