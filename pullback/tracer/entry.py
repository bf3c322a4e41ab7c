"""`trace`: run a Python function on traced arguments and return its program; `inline`: put a program into a trace."""

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple
from typing import Literal as OneOf

import numpy as np

from pullback.errors import (
    ArgumentError,
    ConcretizationError,
    LostGradientError,
    OutsideWriteError,
    PullbackError,
    ReadOnlyError,
)
from pullback.ir.graph import Attrs, Function, Location, Op, Region, Value
from pullback.ir.interpret import interpret
from pullback.ir.types import DTYPE_NAMES, tensor_type
from pullback.record import record
from pullback.tracer.arguments import Spec, Static, describe
from pullback.tracer.array import PythonType, TracedArray, TracedScalar, TracedValue, new_array, new_scalar
from pullback.tracer.cell import Cell, content_in, read
from pullback.tracer.elsewhere import refused_elsewhere
from pullback.tracer.environment import Environment, environment_of
from pullback.tracer.evaluate import present
from pullback.tracer.functions.table import DISPATCH, PATCHER, SEARCHING
from pullback.tracer.operands import PYTHON_NUMBERS, content_of
from pullback.tracer.reach import unwrapped
from pullback.tracer.segments import with_checkpoints
from pullback.tracer.standins import StandIns
from pullback.tracer.trace import (
    Array,
    Check,
    Content,
    Guard,
    OuterArray,
    OuterValue,
    Trace,
    active,
    current,
    dtype_of,
    running,
    shape_of,
)
from pullback.tracer.tree import TreeDef, flatten


class Output(NamedTuple):
    """One leaf of what the function returned.

    kind : `array`, `scalar` (a NumPy scalar), `python` (a number of type `python`): result number `index` of the
        program; `static`: the object `value` itself, such as a string
    """

    kind: OneOf["array", "scalar", "python", "static"]
    index: int = -1  # type: ignore[assignment]  # hides tuple.index, which nobody asks of it
    python: PythonType | None = None
    value: Any = None


class Extra(NamedTuple):
    """A parameter behind the arguments.

    source : a traced value of an enclosing trace, or a NumPy array to be read anew at each call
    constant : an array made by the function itself, too large for the program text; it never changes
    """

    source: TracedValue | Array
    constant: bool = False

    @property
    def is_outer(self) -> bool:
        """Whether it is a value of an enclosing trace."""
        return isinstance(self.source, TracedValue)


@record(frozen=True)
class Traced:
    """A traced function.

    function : the program; its parameters are the traced argument leaves in order, then one for each of `extras`
    leaves : for each argument parameter the number of its leaf
    outputs, out_tree : what was returned
    guards : Python decisions the program rests on; guard k is op `guard` with index k
    checks : conditions that must hold at each call, by code
    written : numbers of the leaves that the function wrote to (in its own copy)
    watched : whether a number taken from captured data is part of the program, so that its content must not change
    environment : what the function can see outside itself; `environment.changed()` is None while the program is right
    caught : whether the function went on after a check that did not hold
    """

    function: Function
    leaves: tuple[int, ...]
    extras: tuple[Extra, ...]
    outputs: tuple[Output, ...]
    out_tree: TreeDef
    guards: tuple[Guard, ...]
    checks: tuple[Check, ...]
    written: tuple[int, ...]
    watched: bool
    environment: Environment
    caught: bool = False


def trace(
    fn: Callable[..., Any],
    tree: TreeDef,
    leaves: Sequence[Spec | Static],
    values: Sequence[Any] | None = None,
    *,
    names: Sequence[str] = (),
    ties: str = "equal",
    patch: bool = True,
    choices: Sequence[tuple[int, int]] = (),
    careful: bool = False,
) -> Traced:
    """Run `fn` once on traced arguments.

    Parameters
    ----------
    fn : called as fn(*args, **kwargs)
    tree : structure of `(args, kwargs)`
    leaves : what each leaf of it is traced as (`describe`)
    values : the present leaves, for Python branches: arrays, numbers, or traced values of an enclosing trace; None
        traces for types alone, and a branch is an error
    names : name hints of the leaves
    ties : how reduce-max and -min share a gradient among equal elements: `equal`, `all`, `first`
    patch : let NumPy's creation functions give traceable arrays meanwhile
    choices : truths to decide otherwise than the numbers say: number of the guard, and what it is to be
    careful : let a check that does not hold raise where it stands, so that `fn` may catch it

    Raises
    ------
    PullbackError : of many kinds, with the user's line; errors of `fn` itself pass through.
    """
    environment = environment_of(fn, [leaf.value for leaf in leaves if isinstance(leaf, Static)])
    run = functools.partial(_traced, fn, environment, tree, leaves, values, names, ties, patch, choices, careful)
    try:
        return run(search=False)
    except (LostGradientError, ConcretizationError, OutsideWriteError) as error:
        if not patch:
            raise
        first: PullbackError = error
    # lost inside a list, perhaps (see `functions.lists`), or in a copy of an array from outside (see `standins`)
    environment.undo()  # a counter that was advanced, a list that was appended to
    try:
        return run(search=True)
    except ReadOnlyError:
        raise first from None  # it is the array from outside itself that is written to


def _traced(
    fn: Callable[..., Any],
    environment: Environment,
    tree: TreeDef,
    leaves: Sequence[Spec | Static],
    values: Sequence[Any] | None,
    names: Sequence[str],
    ties: str,
    patch: bool,
    choices: Sequence[tuple[int, int]],
    careful: bool,
    search: bool,
) -> Traced:
    """`trace`; with `search`, NumPy's functions look for traced values, and arrays from outside are traced ones."""
    state = Trace(DISPATCH, parent=current(), name=_name(fn), ties=ties, choices=dict(choices), careful=careful)
    state.reachable.update([id(array) for _, array in environment.arrays])
    patched = PATCHER.active(environment.namespaces, environment.cells) if patch else nullcontext()
    searching = SEARCHING.active(environment.namespaces) if search else nullcontext()
    with running(state), patched, searching, environment.no_randomness(state), environment.no_writes(state):
        arguments = [_argument(state, k, leaf, values, names) for k, leaf in enumerate(leaves)]
        args, kwargs = tree.unflatten(arguments)
        result = (_called_outside if search else _called)(PATCHER.traced(fn), args, kwargs)
        out_leaves, out_tree = flatten(result)
        state.place = _source(fn)
        outputs, results = _outputs(state, out_leaves)
    numbers = tuple([k for k, leaf in enumerate(leaves) if isinstance(leaf, Spec)])
    if state.parent is not None:
        state.parent.checks.extend(state.checks)  # if this becomes a region of an op, they are in its program
    function, guards = state.builder.function(state.name, results, source=_source(fn)), state.guards
    if state.segments:
        function, now = with_checkpoints(function, state.segments)
        guards = [replace(guard, value=now[guard.value]) for guard in guards]
    return Traced(
        function=function,
        leaves=numbers,
        extras=tuple([_extra(e) for e in state.extra]),
        outputs=outputs,
        out_tree=out_tree,
        guards=tuple(guards),
        checks=tuple(state.checks),
        written=tuple([k for k in numbers if arguments[k]._cell.written]),
        watched=state.watch or bool(state.fixed),
        caught=state.caught,
        environment=environment.after_trace(set(state.outer_arrays), state.fixed, state.watch),
    )


def _called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result. NumPy hides an error of ours behind its own when an element cannot be stored: show ours. Where Python
    or a library refuses a traced value, say where."""
    try:
        return fn(*args, **kwargs)
    except PullbackError:
        raise
    except (TypeError, ValueError) as error:
        if isinstance(error.__cause__, PullbackError):
            raise error.__cause__ from None
        named = refused_elsewhere(error)
        if named is None:
            raise
        raise named from error


def _called_outside(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same of a copy of the function that finds traced arrays outside itself."""
    stand_ins = StandIns()
    try:
        return _called(stand_ins.of(fn), args, kwargs)
    finally:
        stand_ins.hand_back()


def _name(fn: Any) -> str:
    name = getattr(fn, "__name__", type(fn).__name__)
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "f"


def _source(fn: Any) -> Location | None:
    code = getattr(unwrapped(fn), "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno, code.co_name)


def _argument(
    state: Trace, number: int, leaf: Spec | Static, values: Sequence[Any] | None, names: Sequence[str]
) -> Any:
    if isinstance(leaf, Static):
        return leaf.value
    given = None if values is None else values[number]
    supplier = None if given is None else _supplier(given, leaf)
    hint = names[number] if number < len(names) else f"x{number}"
    param = state.param(leaf.type, hint, supplier)
    if leaf.scalar:
        return new_scalar(state, param, leaf.python)
    return new_array(state, param, leaf.order)


def _supplier(given: Any, leaf: Spec) -> Callable[[], Array]:
    """How the present array of an argument is had; one of an enclosing trace is evaluated there."""
    if isinstance(given, TracedValue):
        content, owner = read(given), given._cell.trace
        if isinstance(content, Value):
            return lambda: present(owner, content)
        fixed = np.array(content)
        return lambda: fixed
    return lambda: np.asarray(given, leaf.type.dtype)


def _extra(extra: OuterValue | OuterArray) -> Extra:
    if isinstance(extra, OuterArray):
        return Extra(extra.array, extra.constant)
    return Extra(TracedArray(Cell(extra.trace, extra.value)))


# ------------------------------------------------------------------ results


def _outputs(state: Trace, leaves: Sequence[Any]) -> tuple[tuple[Output, ...], list[Value]]:
    outputs: list[Output] = []
    results: list[Value] = []
    for leaf in leaves:
        kind, python = _output_kind(leaf)
        if kind == "static":
            outputs.append(Output("static", value=leaf))
        else:
            outputs.append(Output(kind, len(results), python))
            results.append(state.lift(content_of(state, leaf)))
    return tuple(outputs), results


def _output_kind(leaf: Any) -> tuple[OneOf["array", "scalar", "python", "static"], PythonType | None]:
    if isinstance(leaf, TracedScalar):
        return ("python", leaf.python) if leaf.python is not None else ("scalar", None)
    if isinstance(leaf, TracedValue):
        return "array", None
    if hasattr(leaf, "__traced_array__"):
        return "array", None
    kind = type(leaf)
    if kind in PYTHON_NUMBERS:
        return ("static", None) if kind is int and np.asarray(leaf).dtype not in DTYPE_NAMES else ("python", kind)
    if isinstance(leaf, np.generic) and leaf.dtype in DTYPE_NAMES:
        return "scalar", None
    if isinstance(leaf, np.ndarray) and leaf.dtype in DTYPE_NAMES:
        return "array", None
    return "static", None


# ------------------------------------------------------------------ programs into a trace


def inline(
    function: Function, args: Sequence[Any], extras: Sequence[Extra] = (), outputs: Sequence[Output] = ()
) -> list[Any]:
    """Emit `function` into the running trace and return its results as traced values.

    Parameters
    ----------
    args : traced values, arrays or numbers for the argument parameters
    extras : the `extras` of the trace that `function` comes from, for the parameters behind them
    outputs : kinds of the results, where known; else results without axes are NumPy scalars

    On constants alone nothing is emitted: the results are constants.
    """
    state = active()
    contents = [content_of(state, a) for a in args]
    contents += [_extra_content(state, e) for e in extras]
    contents = [_fit(state, c, p) for c, p in zip(contents, function.params, strict=True)]
    if not any(isinstance(c, Value) for c in contents):
        results: list[Content] = [np.array(r) for r in interpret(function, contents)]
    else:
        results = list(_inline_region(state, function.body, [state.lift(c) for c in contents]))
    return [_wrap_output(state, r, _kind_of(outputs, k)) for k, r in enumerate(results)]


def _extra_content(state: Trace, extra: Extra) -> Content:
    if isinstance(extra.source, TracedValue):
        return content_in(state, extra.source)
    return state.capture_array(extra.source, extra.constant)


def _fit(state: Trace, content: Content, param: Value) -> Content:
    if shape_of(content) != param.type.shape:
        found = tensor_type(dtype_of(content), shape_of(content))
        raise ArgumentError(f"parameter {param.hint} has type {param.type}, got {found}")
    return content if dtype_of(content) == param.type.dtype else state.apply("cast", content, dtype=param.type.dtype)


def _inline_region(state: Trace, region: Region, arguments: Sequence[Value]) -> Sequence[Value]:
    """Copy the ops; guards and checks get numbers of this trace."""
    env: dict[Value, Value] = dict(zip(region.params, arguments, strict=True))
    for op in region.ops:
        operands = [env[v] for v in op.operands]
        if op.name == "guard":
            state.guard(operands[0], op.attrs["expected"])
        elif op.name == "check":
            state.check(operands[0], op.attrs["message"])
        else:
            new = state.builder.copy(op, operands)
            if state.settled.issuperset(operands):
                state.settled.update(new.results)
            env.update(zip(op.results, new.results, strict=True))
    return [env[v] for v in region.results]


def _kind_of(outputs: Sequence[Output], number: int) -> Output | None:
    return next((o for o in outputs if o.index == number), None)


def _wrap_output(state: Trace, content: Content, output: Output | None) -> TracedValue:
    if shape_of(content) != () or (output is not None and output.kind == "array"):
        return new_array(state, content)
    return new_scalar(state, content, None if output is None else output.python)


def emit(
    name: str, operands: Sequence[Any], attrs: dict[str, Any] | None = None, regions: tuple[Region, ...] = ()
) -> list[Any]:
    """Emit any op into the running trace; operands are traced values, arrays or numbers of the types the op takes."""
    state = active()
    values = [state.lift(content_of(state, x)) for x in operands]
    op: Op = state.emit(name, values, Attrs(attrs or {}), regions)
    return [_wrap_output(state, r, None) for r in op.results]


def is_traced(x: Any) -> bool:
    """Whether `x` is a traced value that depends on an argument of a running trace."""
    return isinstance(x, TracedValue) and isinstance(x._cell.content, Value)


def constant_of(x: Any) -> Any:
    """The plain array or number that a constant of a trace stands for; anything else as it is."""
    if isinstance(x, TracedScalar) and not is_traced(x):
        number = np.array(read(x))[()]
        return number if x.python is None else x.python(number)
    if isinstance(x, TracedValue) and not is_traced(x):
        return np.array(read(x))
    return x


__all__ = [
    "Extra",
    "Output",
    "Spec",
    "Static",
    "Traced",
    "constant_of",
    "describe",
    "emit",
    "inline",
    "is_traced",
    "trace",
]
