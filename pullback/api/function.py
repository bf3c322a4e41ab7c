"""The callable that transforms return: compiled for each kind of arguments it meets, traced inside other traces."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback import driver
from pullback.api.call import Argnum, Call, leaf_ranges, make_call
from pullback.api.settings import current_options
from pullback.api.signature import Shape, shape_of_call
from pullback.api.staged import Stage, Staged
from pullback.config import Options
from pullback.errors import IndexRangeError, NumericalError, PathLimitError, PullbackError
from pullback.runtime.compiled import Compiled, Miss
from pullback.runtime.convert import build_result
from pullback.runtime.function import NativeFunction
from pullback.runtime.once import Once
from pullback.tracer.entry import constant_of, inline
from pullback.tracer.trace import current
from pullback.tracer.tree import flatten


@dataclass(eq=False)
class Path:
    """One compiled path through the function: the Python decisions it rests on, and the code."""

    staged: Staged
    shape: Shape
    compiled: Compiled
    expected: tuple[int, ...]
    log: driver.Log

    def call(self, call: Call) -> Any:
        """The user's result, or a `Miss` that names this path."""
        args = call.args if self.shape.direct else self._flat(call)
        outcome = self.compiled.invoke(*args)
        if type(outcome) is Miss and outcome.status == 0:
            outcome = self._call_copied(call)
        if type(outcome) is Miss or self.shape.built:
            return outcome
        leaves = iter(outcome)
        outputs = self.staged.outputs
        return self.staged.out_tree.unflatten([o.value if o.kind == "static" else next(leaves) for o in outputs])

    def _flat(self, call: Call) -> list[Any]:
        values = [call.values[k] for k in self.staged.traced.leaves]
        return values + [extra.source for extra in self.staged.extras]

    def _call_copied(self, call: Call) -> Any:
        """For arrays that native code does not take as they are (strided, read from another byte order): copied."""
        values = _in_signature_order(call, self.shape) if self.shape.direct else self._flat(call)
        specs = self.shape.signature.arg_leaves()
        arrays = [np.asarray(v).astype(s.type.dtype, copy=False) for v, s in zip(values, specs, strict=True)]
        status, results = self.compiled.run(arrays)
        if status:
            return Miss(self.compiled, status)
        return build_result(self.shape.signature.result, self.shape.objects, iter(results))


def _in_signature_order(call: Call, shape: Shape) -> list[Any]:
    """Traced leaves in the order of a direct signature: dictionaries in the order they were written, not sorted."""
    found: list[Any] = []
    _walk_written(call.tree.children[0], call.values, call.leaves, 0, found)
    return found


def _walk_written(tree: Any, values: Sequence[Any], leaves: Sequence[Any], at: int, found: list[Any]) -> None:
    if tree.kind == "leaf":
        if hasattr(leaves[at], "type"):
            found.append(values[at])
        return
    starts = []
    for child in tree.children:
        starts.append(at)
        at += child.size
    places = tree.order if tree.kind == "dict" else range(len(tree.children))
    for k in places:
        _walk_written(tree.children[k], values, leaves, starts[k], found)


@dataclass(eq=False)
class Specialisation:
    """All paths of one function for arguments of one key."""

    function: "Transformed"
    options: Options
    paths: list[Path] = field(default_factory=list)

    def call(self, call: Call, miss: Miss | None) -> Any:
        """Take the path that fits, or trace a new one."""
        path = self._path_of(miss) or (self.paths[0] if self.paths else None)
        outcome: Any = miss if path is not None and miss is not None and miss.status else None
        tried: set[int] = set()
        while path is not None:
            if outcome is None:
                outcome = path.call(call)
            if type(outcome) is not Miss:
                return self._taken(path, outcome)
            if outcome.status < 0:
                raise check_error(path, -outcome.status)
            tried.add(id(path))
            path = self._other_path(path, outcome.status - 1, tried)
            outcome = None
        path = self._add_path(call)
        outcome = path.call(call)
        if type(outcome) is Miss:
            if outcome.status < 0:
                raise check_error(path, -outcome.status)
            raise PullbackError(
                f"{self.function!r}: guard {outcome.status} does not hold for the very arguments it was traced with; "
                "the function gives different results for equal arguments"
            )
        return self._taken(path, outcome)

    def _path_of(self, miss: Miss | None) -> Path | None:
        if miss is None:
            return None
        return next((p for p in self.paths if p.compiled is miss.compiled), None)

    def _taken(self, path: Path, outcome: Any) -> Any:
        if self.paths[0] is not path:
            self.paths.remove(path)
            self.paths.insert(0, path)
        if path.shape.direct and path.shape.built:
            self.function.install(path.compiled)
        return outcome

    def _other_path(self, path: Path, guard: int, tried: set[int]) -> Path | None:
        """A path that agrees up to `guard` and differs there: the tree of decisions, walked from the last agreed
        one."""
        agreed = path.expected[:guard]
        for other in self.paths:
            if id(other) in tried or other.expected[:guard] != agreed or len(other.expected) <= guard:
                continue
            if other.expected[guard] != path.expected[guard]:
                return other
        return None

    def _add_path(self, call: Call) -> Path:
        if len(self.paths) >= self.options.paths:
            raise path_limit_error(self.function, self.paths, self.options.paths)
        path = compile_path(self.function.stage(call), call, self.options, repr(self.function))
        self.paths.insert(0, path)
        return path


def compile_path(staged: Staged, call: Call, options: Options, title: str) -> Path:
    """Staged program to loaded code."""
    log = driver.Log()
    shape = shape_of_call(call, staged)
    made = driver.compiled(shape.function, shape.signature, options, log)
    compiled = driver.loaded(made, shape.objects, log)
    driver.trace_report(log, title, options)
    return Path(staged, shape, compiled, tuple([g.expected for g in staged.guards]), log)


# ------------------------------------------------------------------ errors of compiled code


def check_error(path: Path, code: int) -> Exception:
    """The error that a failed check stands for."""
    checks = path.staged.checks
    known = next((c for c in checks if c.code == code), None)
    if known is None:
        return NumericalError(f"a factorisation or solve failed (code {code}): the matrix is singular or not definite")
    kind = IndexRangeError if "index" in known.message else NumericalError
    return kind(f"{known.message} (at {known.loc})" if known.loc else known.message)


def path_limit_error(function: Any, paths: Sequence[Path], limit: int) -> PathLimitError:
    """Names the line whose decision varies most."""
    counts: dict[Any, set[int]] = {}
    for path in paths:
        for guard in path.staged.guards:
            counts.setdefault(guard.loc, set()).add(guard.expected)
    loc = max(counts, key=lambda at: len(counts[at]), default=None)
    return PathLimitError(
        f"{function!r} took more than {limit} different Python paths for arguments of one type; the decision at {loc} "
        f"had {len(counts.get(loc, ()))} different outcomes. Write it with pullback.cond or pullback.while_loop (or "
        "np.where), or raise the bound with PULLBACK=paths=N"
    )


# ------------------------------------------------------------------ the callable


class Transformed(NativeFunction):
    """A function made by `grad`, `jit` and the like.

    Called with arrays it runs compiled code, made once for each combination of argument types and structure. Called
    while another function is being traced it becomes a part of that trace.
    """

    def __init__(
        self, wrapped: Callable[..., Any], stage: Stage, kind: str, statics: frozenset[Argnum] = frozenset()
    ) -> None:
        super().__init__(dispatch, wrapped)
        self.stage = stage
        self.kind = kind
        self.statics = statics
        self.table: dict[Any, Specialisation] = {}
        self.once = Once()

    def __repr__(self) -> str:
        return f"<pullback {self.kind}({getattr(self, '__name__', '?')})>"

    def call_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        return make_call(args, kwargs, self.statics)


def make_transformed(
    wrapped: Callable[..., Any], stage: Stage, kind: str, statics: frozenset[Argnum] = frozenset()
) -> Transformed:
    """A new callable, of the native type where the interpreter allows it."""
    if not callable(wrapped):
        raise TypeError(f"{kind} needs a function, got {type(wrapped).__name__}")
    made: Transformed = driver.runtime().function_type(Transformed)(wrapped, stage, kind, statics)
    return made


def dispatch(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], miss: Miss | None) -> Any:
    """Called when no compiled entry takes the arguments."""
    if current() is not None:
        return trace_inside(function, args, kwargs)
    call = function.call_of(args, kwargs)
    return specialisation(function, call).call(call, miss)


SPECIALISATIONS = 128


def specialisation(function: Any, call: Call) -> Specialisation:
    """The entry of the function's table for this key; the oldest drops out beyond the bound."""
    options = current_options()
    key = (call.key, options)
    table: dict[Any, Specialisation] = function.table
    found = table.get(key)
    if found is not None:
        return found

    def build() -> Specialisation:
        made = Specialisation(function, options)
        table[key] = made
        while len(table) > SPECIALISATIONS:
            table.pop(next(iter(table)), None)
        return made

    built: Specialisation = function.once.get(key, lambda: table.get(key), build)
    return built


def trace_inside(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The call as part of the trace that runs: stage it, and put the program there."""
    call = function.call_of(args, kwargs)
    staged = function.stage(call)
    results = inline(staged.function, call.traced_values(), staged.extras, staged.outputs)
    leaves = [o.value if o.kind == "static" else constant_of(results[o.index]) for o in staged.outputs]
    return staged.out_tree.unflatten(leaves)


def positions(call: Call, located: Sequence[Argnum]) -> list[range]:
    """The leaf numbers of each located argument."""
    positional, keyword = leaf_ranges(call)
    return [positional[a] if isinstance(a, int) else keyword[a] for a in located]


def leaves_of(x: Any) -> list[Any]:
    return flatten(x)[0]
