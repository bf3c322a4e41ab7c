"""grad and value_and_grad."""

from collections.abc import Callable, Sequence
from typing import Any

from pullback.api.call import Argnum, Argnums, Call, as_argnums, locate
from pullback.api.function import make_transformed, positions
from pullback.api.staged import Leaf, Staged, as_container, gradient_output, shaped, trace_call
from pullback.errors import ArgumentError, NonScalarOutputError
from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter
from pullback.ir.graph import Function
from pullback.ir.ops import OPS
from pullback.ir.types import F64
from pullback.passes.reverse import reverse
from pullback.tracer.arguments import Spec
from pullback.tracer.entry import Output, Traced
from pullback.tracer.tree import TreeDef


def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    static_argnums: Argnums = (),
) -> Any:
    """The gradient of a scalar function of NumPy arrays, compiled.

    Parameters
    ----------
    fun : takes arrays, numbers, or containers of them; gives a scalar, or with `has_aux` a pair (scalar, anything)
    argnums : which arguments to differentiate in: a position, a name, or a tuple of those
    holomorphic : differentiate a complex function of complex arguments
    static_argnums : arguments (positions or names) that are not arrays, told apart by value

    Returns
    -------
    A function of the same arguments that gives the gradient: of the shape, dtype and container of the argument (a tuple
    of such for a tuple `argnums`), with `has_aux` a pair (gradient, aux). Integer leaves of a container get None.

    Raises
    ------
    ArgumentError (TypeError) : when called, if an argument to differentiate in is an integer or a bool.
    NonScalarOutputError (TypeError) : when called, if the output is not a scalar.

    Examples
    --------
    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    return _gradient(fun, argnums, has_aux, holomorphic, static_argnums, with_value=False)


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    static_argnums: Argnums = (),
) -> Any:
    """As `grad`, but gives (value, gradient), or ((value, aux), gradient) with `has_aux`."""
    return _gradient(fun, argnums, has_aux, holomorphic, static_argnums, with_value=True)


def _gradient(
    fun: Callable[..., Any], argnums: Argnums, has_aux: bool, holomorphic: bool, statics: Argnums, with_value: bool
) -> Any:
    wanted = as_argnums(argnums)
    if not wanted:
        raise ArgumentError("argnums is empty: name at least one argument to differentiate in")

    def stage(call: Call) -> Staged:
        return stage_gradient(fun, call, wanted, isinstance(argnums, tuple | list), has_aux, holomorphic, with_value)

    kind = "value_and_grad" if with_value else "grad"
    fixed = frozenset(as_argnums(statics, "static_argnums"))
    parameters = (wanted, isinstance(argnums, tuple | list), has_aux, holomorphic)
    again = (value_and_grad if with_value else grad, (fun, argnums, has_aux, holomorphic), {"static_argnums": statics})
    return make_transformed(fun, stage, kind, fixed, parameters, again)


def stage_gradient(
    fun: Callable[..., Any],
    call: Call,
    argnums: Sequence[Argnum],
    as_tuple: bool,
    has_aux: bool,
    holomorphic: bool,
    with_value: bool,
) -> Staged:
    """Trace, differentiate, and describe the result."""
    spans = positions(call, locate(fun, call, argnums))
    for argnum, span in zip(argnums, spans, strict=True):
        check_argument(fun, call, argnum, span, holomorphic)
    traced = trace_call(fun, call)
    value, aux = _split_output(fun, traced, has_aux)
    function = _floating_scalar(fun, traced.function, value, holomorphic)
    params = {leaf: k for k, leaf in enumerate(traced.leaves)}
    leaves = [k for span in spans for k in span if differentiable(call.leaves[k])]
    with_outputs = with_value or has_aux
    function = reverse(function, [params[k] for k in leaves], seed=True, with_outputs=with_outputs)
    first = len(traced.function.results) if with_outputs else 0
    if with_value and value.kind == "static":
        value = Output("scalar", 0)
    gradients = {k: gradient_output(spec(call, k), first + n) for n, k in enumerate(leaves)}
    parts = tuple(
        [
            _gradient_tree(call, argnum, span, gradients)
            for argnum, span in zip(locate(fun, call, argnums), spans, strict=True)
        ]
    )
    result: Any = parts if as_tuple else parts[0]
    if with_value:
        head: Any = Leaf(value)
        result = ((head, aux), result) if has_aux else (head, result)
    elif has_aux:
        result = (result, aux)
    outputs, out_tree = shaped(result)
    return Staged(function, outputs, out_tree, traced)


def spec(call: Call, leaf: int) -> Spec:
    found = call.leaves[leaf]
    assert isinstance(found, Spec)
    return found


def differentiable(leaf: Any) -> bool:
    return isinstance(leaf, Spec) and leaf.type.is_inexact


def argument_tree(call: Call, argument: Argnum) -> TreeDef:
    """The structure of one argument."""
    args, kwargs = call.tree.children
    return args.children[argument] if isinstance(argument, int) else kwargs.children[kwargs.keys.index(argument)]


def _gradient_tree(call: Call, argument: Argnum, span: range, gradients: dict[int, Output]) -> Any:
    tree = argument_tree(call, argument)
    return tree.unflatten([Leaf(gradients[k]) if k in gradients else None for k in span])


def check_argument(fun: Callable[..., Any], call: Call, argnum: Argnum, span: range, holomorphic: bool) -> None:
    """Raise ArgumentError where an argument cannot be differentiated in."""
    name = f"argument {argnum!r} of {getattr(fun, '__name__', 'the function')}"
    floating = [k for k in span if differentiable(call.leaves[k])]
    if not floating:
        kinds = sorted({_kind_of(call, k) for k in span}) or ["nothing"]
        raise ArgumentError(
            f"{name} is {', '.join(kinds)}: only floating and complex values have a gradient. Convert it with "
            "float(x) or x.astype(float), or leave it out of argnums"
        )
    if holomorphic and not all(spec(call, k).type.is_complex for k in floating):
        raise ArgumentError(f"{name} is not complex, as holomorphic=True needs; convert it with x.astype(complex)")


def _kind_of(call: Call, leaf: int) -> str:
    found = call.leaves[leaf]
    if isinstance(found, Spec):
        return f"Python {found.python.__name__}" if found.python else str(found.type)
    return type(found.value).__name__


def _split_output(fun: Callable[..., Any], traced: Traced, has_aux: bool) -> tuple[Output, Any]:
    """The output to differentiate, and the container of the others."""
    name = getattr(fun, "__name__", "the function")
    if not has_aux:
        if traced.out_tree.kind != "leaf":
            raise NonScalarOutputError(
                f"grad needs a scalar output, but {name} gives a container of {traced.out_tree.size} leaves; return "
                "the scalar alone, or (scalar, aux) with has_aux=True; for several outputs use jacobian or vjp"
            )
        return traced.outputs[0], None
    if traced.out_tree.kind != "tuple" or len(traced.out_tree.children) != 2:
        raise ArgumentError(f"with has_aux=True {name} must give a pair (scalar, aux), it gives {traced.out_tree!r}")
    head, rest = traced.out_tree.children
    if head.kind != "leaf":
        raise NonScalarOutputError(
            f"the first output of {name} must be a scalar, it is a container of {head.size} leaves"
        )
    return traced.outputs[0], as_container(traced.outputs[1:], rest)


def _floating_scalar(fun: Callable[..., Any], function: Function, value: Output, holomorphic: bool) -> Function:
    """The function, its first result checked to be a scalar that has a gradient; an integer constant becomes
    floating."""
    name = getattr(fun, "__name__", "the function")
    if value.kind == "static":
        raise NonScalarOutputError(f"grad needs a numeric scalar output, but {name} gives {value.value!r}")
    type_ = function.results[value.index].type
    if type_.shape != ():
        raise NonScalarOutputError(
            f"grad needs a scalar output, but {name} gives an array of shape {type_.shape} ({type_}); use jacobian for "
            "all its derivatives, vjp to weight them, or return np.sum(...)"
        )
    if type_.is_complex and not holomorphic:
        raise NonScalarOutputError(
            f"grad needs a real scalar output, but {name} gives {type_}; take np.real or np.abs of it, or pass "
            "holomorphic=True"
        )
    if holomorphic and not type_.is_complex:
        raise NonScalarOutputError(f"holomorphic=True needs a complex output, but {name} gives {type_}")
    return function if type_.is_inexact else _cast_first(function)


def _cast_first(function: Function) -> Function:
    """An integer or bool result has gradient zero, like the rounding behind it; reverse mode wants it floating."""
    b = Builder()
    params = [b.param(p.type, p.hint) for p in function.params]
    results = b.inline(function.body, params)
    f = Emitter(b, OPS)
    results[0] = f.astype(f.wrap(results[0]), F64).value
    return b.function(function.name, results, function.stage, function.source)
