"""The compiled paths of one function for arguments of one kind: which one to take, and when to trace another."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Protocol

from pullback import driver
from pullback.api.call import Call
from pullback.api.failing import arrays_for, code_error, path_limit_error, retracing_warning, stop_at_nan
from pullback.api.signature import Shape, shape_of_call
from pullback.api.staged import Stage, Staged
from pullback.api.watching import watch_of
from pullback.config import Options
from pullback.errors import PullbackError
from pullback.ir.failures import FIRST_FAILURE
from pullback.ir.interpret import interpret
from pullback.ir.ops.control import GuardFailedError
from pullback.ir.text import print_function
from pullback.record import record
from pullback.runtime.compiled import Compiled, Miss
from pullback.runtime.convert import build_result
from pullback.runtime.once import Once
from pullback.runtime.routes import Branch
from pullback.runtime.watch import Watch
from pullback.tracer.tree import flatten

ROUNDING_TRIES = 8
"""So often a decision is taken otherwise than the interpreter found, because compiled code rounds otherwise."""

STALE_PATHS = 8
"""So often a function is traced again because something outside it has changed, before a warning says so."""

_NONE = object()


class Install(Protocol):
    """`NativeFunction.install`."""

    def __call__(self, compiled: Compiled, key: object, branches: Sequence[Branch], /) -> None: ...


@record(eq=False)
class Path:
    """One compiled path through the function: the Python decisions and the surroundings it rests on, and the code."""

    staged: Staged
    shape: Shape
    compiled: Compiled
    watch: Watch | None

    @cached_property
    def expected(self) -> tuple[int, ...]:
        """What each guard was."""
        return tuple([g.expected for g in self.staged.guards])

    @property
    def is_native(self) -> bool:
        """May the user's calls go to the compiled code without a look at them here."""
        return self.shape.direct and self.shape.built and (self.watch is not None or self.staged.environment.is_empty)

    def is_current(self) -> bool:
        """Are the things outside the function that the trace looked at still the same."""
        if not self._captures_fit():
            return False
        watch = self.watch
        if watch is not None and watch.holds():
            return True
        if watch is not None:
            watch.refresh()  # before the question: what changes behind it is noticed at the next call
        if self.staged.environment.changed() is None:
            return True
        if watch is not None:
            watch.clear()
        return False

    def _captures_fit(self) -> bool:
        """Have the captured arrays still the shapes and dtypes that they were traced with."""
        params = self.staged.function.params[len(self.staged.traced.leaves) :]
        pairs = zip(self.staged.extras, params, strict=True)
        return all(
            e.source.shape == p.type.shape and e.source.dtype.newbyteorder("=") == p.type.dtype for e, p in pairs
        )

    def call(self, call: Call) -> Any:
        """The user's result, or a `Miss` that names this path."""
        outcome = self.compiled.invoke(*(call.args if self.shape.direct else self.values(call)))
        if type(outcome) is Miss and outcome.status == 0:
            outcome = self._call_copied(call)
        return outcome if type(outcome) is Miss else self._user_result(outcome)

    def _user_result(self, outcome: Any) -> Any:
        """The user's structure around what the runtime built."""
        if self.shape.built:
            return outcome
        leaves = iter(outcome)
        outputs = self.staged.outputs
        return self.staged.out_tree.unflatten([o.value if o.kind == "static" else next(leaves) for o in outputs])

    def values(self, call: Call) -> list[Any]:
        """What the parameters of the staged program stand for in this call."""
        given = [call.values[k] for k in self.staged.traced.leaves]
        return given + [extra.source for extra in self.staged.extras]

    def arrays(self, call: Call) -> list[Any]:
        """`values` as arrays of the parameters' types."""
        return arrays_for(self.staged.function, self.values(call))

    def is_of(self, staged: Staged) -> bool:
        """Was it made of the same program, by the same decisions."""
        if self.expected != tuple([g.expected for g in staged.guards]):
            return False
        return print_function(self.staged.function) == print_function(staged.function)

    def interpreted(self, call: Call, title: str) -> Any:
        """The user's result, by the interpreter.

        Raises
        ------
        PullbackError : it does not even take this path for the arguments the path was traced with.
        """
        arrays = self.arrays(call)
        try:
            results = interpret(self.shape.function, [arrays[k] for k in self.shape.order])
        except GuardFailedError as error:
            raise PullbackError(
                f"{title}: {error}, for the very arguments it was traced with; the function gives different results "
                "for equal arguments"
            ) from None
        return self._user_result(build_result(self.shape.signature.result, self.shape.objects, iter(results)))

    def _call_copied(self, call: Call) -> Any:
        """For arrays that native code does not take: other classes, and at the first time strides and byte orders."""
        driver.runtime().take_strided()
        arrays = self.arrays(call)
        status, results = self.compiled.run([arrays[k] for k in self.shape.order])
        if status:
            return Miss(self.compiled, status)
        return build_result(self.shape.signature.result, self.shape.objects, iter(results))


class Specialisation:
    """All paths of one function for arguments of one key.

    Paths are only ever added, or dropped when what they rest on has changed; several threads may call at once, and one
    of them traces what they all lack.

    Parameters
    ----------
    name : of the function, for messages
    """

    def __init__(self, name: str, stage: Stage, options: Options) -> None:
        self.name = name
        self.options = options
        self.paths: list[Path] = []
        self._stage = stage
        self._recent: Path | None = None
        self._version = 0
        self._once = Once()

    def call(self, call: Call, miss: Miss | None, install: Install) -> Any:
        """Take the path that fits, or trace a new one; from then on native code may try the paths, see `install` of
        `NativeFunction`."""
        outcome = self._outcome(call, miss)
        path = self._recent
        if path is not None and path.is_native and self.options.cache != "off" and not self.options.nan:
            fit = [p for p in self.paths if p is path or (p.is_native and p.is_current())]
            if path in fit:  # another thread may have dropped it
                install(path.compiled, self, [Branch(p.compiled, p.expected) for p in fit])
        return outcome

    def _outcome(self, call: Call, miss: Miss | None) -> Any:
        while True:
            version = self._version
            outcome = self._walk(call, miss)
            if outcome is not _NONE:
                return outcome
            miss = None
            built: list[Path] = []
            self._once.get(version, partial(self._newest_after, version), partial(self._build, call, built))
            if built:
                return self._call_new(built[0], call)

    # ------------------------------------------------------------------ compiled paths

    def _walk(self, call: Call, miss: Miss | None) -> Any:
        """The tree of decisions, from the path that was tried last: at the first guard that differs, on with a path
        that differs there."""
        tried: set[int] = set()
        path = self._path_of(miss) if miss is not None else None
        outcome: Any = miss
        if path is None:
            path, outcome = self._first(), None
        while path is not None:
            if outcome is None:
                outcome = path.call(call)
            if type(outcome) is not Miss:
                return self._taken(path, call, outcome)
            if outcome.status < 0:
                return self._after_error(path, call, outcome)
            tried.add(id(path))
            path, outcome = self._other_path(path, outcome.status - 1, tried), None
        return _NONE

    def _path_of(self, miss: Miss) -> Path | None:
        return next((p for p in self.paths if p.compiled is miss.compiled), None)

    def _first(self) -> Path | None:
        recent = self._recent
        if recent is not None and recent.is_current():
            return recent
        return next((p for p in reversed(self.paths) if p.is_current()), None)

    def _other_path(self, path: Path, guard: int, tried: set[int]) -> Path | None:
        """A path that agrees with `path` up to `guard` and differs there."""
        agreed = path.expected[:guard]
        for other in self.paths:
            if id(other) in tried or len(other.expected) <= guard or other.expected[:guard] != agreed:
                continue
            if other.expected[guard] != path.expected[guard] and other.is_current():
                return other
        return None

    def _taken(self, path: Path, call: Call, outcome: Any) -> Any:
        self._recent = path
        if self.options.nan:
            stop_at_nan(path.staged, path.arrays(call), flatten(outcome)[0])
        return outcome

    def _after_error(self, path: Path, call: Call, miss: Miss) -> Any:
        """A check or a library op of the path does not hold. The function may catch that: then the path it takes from
        there is right, and else the error passes through the function as it would without being compiled."""
        for other in [p for p in self.paths if p.staged.traced.caught and p.is_current()]:
            outcome = other.call(call)
            if type(outcome) is not Miss:
                return self._taken(other, call, outcome)
        if miss.status > -FIRST_FAILURE:
            staged = self._stage(replace(call, careful=True))
            if staged.traced.caught:
                other = self._added(staged, call)
                outcome = other.call(call)
                if type(outcome) is not Miss:
                    return self._taken(other, call, outcome)
        raise code_error(path.staged, path.arrays(call), -miss.status)

    # ------------------------------------------------------------------ new paths

    def _newest_after(self, version: int) -> Path | None:
        """The path that another thread has added since, if one has."""
        return self.paths[-1] if self._version != version else None

    def _build(self, call: Call, built: list[Path]) -> Path:
        self._require_room()
        path = self._added(self._stage(call), call)
        built.append(path)
        return path

    def _require_room(self) -> list[Path]:
        """The paths that are current.

        Raises
        ------
        PathLimitError : they are as many as may be.
        """
        current = [p for p in self.paths if p.is_current()]
        if len(current) >= self.options.paths:
            raise path_limit_error(self.name, [p.staged for p in current], self.options.paths)
        return current

    def _added(self, staged: Staged, call: Call) -> Path:
        """The compiled path of a program, with the others from now on; it may be there already."""
        known = next((p for p in self.paths if p.is_current() and p.is_of(staged)), None)
        if known is not None:
            return known
        current = self._require_room()
        path = compile_path(staged, call, self.options, self.name)
        # The oldest of those that rest on something else than what is there now make room. Others may be reading the
        # list, so it is replaced and never changed.
        stale = [p for p in self.paths if p not in current]
        self.paths = [*stale[max(0, len(self.paths) + 1 - self.options.paths) :], *current, path]
        self._version += 1
        if len(stale) == STALE_PATHS:
            warnings.warn(retracing_warning(self.name, stale[-1].staged), RuntimeWarning, stacklevel=1)
        return path

    def _call_new(self, path: Path, call: Call) -> Any:
        outcome = path.call(call)
        if type(outcome) is not Miss:
            return self._taken(path, call, outcome)
        if outcome.status < 0:
            return self._after_error(path, call, outcome)
        outcome = self._rounded_otherwise(path, call, outcome.status - 1)
        return path.interpreted(call, self.name) if outcome is _NONE else outcome

    def _rounded_otherwise(self, path: Path, call: Call, guard: int) -> Any:
        """Compiled code rounds otherwise than the interpreter that decided while tracing, and a truth hangs on it: the
        path on which that guard is what compiled code found. That may happen more than once on the way; `_NONE` where
        this leads nowhere, then the interpreter must do."""
        choices: dict[int, int] = {}
        while guard not in choices and len(choices) < ROUNDING_TRIES:
            choices[guard] = 1 - path.expected[guard]
            with suppress(Exception):  # of the function itself, on a path that the numbers of the interpreter forbid
                staged = self._stage(replace(call, choices=tuple(choices.items())))
                if any(staged.guards[k].expected != wanted for k, wanted in choices.items()):
                    break  # no truth, or one that was not decided by the function itself
                path = self._added(staged, call)
            outcome = path.call(call)
            if type(outcome) is not Miss:
                return self._taken(path, call, outcome)
            if outcome.status < 0:
                break
            guard = outcome.status - 1
        return _NONE


def compile_path(staged: Staged, call: Call, options: Options, title: str) -> Path:
    """Staged program to loaded code."""
    log = driver.Log()
    watch = watch_of(staged.environment)
    shape = shape_of_call(call, staged, watch is not None)
    made = driver.compiled(shape.function, shape.signature, options, log)
    compiled = driver.loaded(made, shape.objects, log, watch, serial=options.threads == 1)
    driver.trace_report(log, title, options)
    return Path(staged, shape, compiled, watch)
