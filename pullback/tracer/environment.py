"""What a function can see outside itself, and whether that is still what it was when the function was traced.

Numbers, lists, attributes and functions from outside are constants of the traced program, so a compiled function is
only right while they stay the same. Arrays are read anew at each call (as extra parameters) unless a number was taken
out of one; then their contents must stay the same too.
"""

import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from pullback.errors import UnsupportedError
from pullback.tracer.location import is_internal_file
from pullback.tracer.trace import Trace

LIMIT = 2000  # objects looked at; what lies beyond is deep in data structures
_MISSING = object()
_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), type, np.generic)
_LIBRARIES = tuple({sys.prefix, sys.base_prefix})


@dataclass(frozen=True)
class Name:
    """A name bound outside the function: in a namespace (a dict) or a closure cell.

    label : how a message calls it
    value : what it was bound to
    """

    label: str
    holder: Any
    name: str
    value: Any

    def is_same(self) -> bool:
        return _is_equal(self.current(), self.value)

    def current(self) -> Any:
        """What it is bound to now."""
        if isinstance(self.holder, dict):
            return self.holder.get(self.name, _MISSING)
        try:
            return self.holder.cell_contents
        except ValueError:  # an empty cell
            return _MISSING


@dataclass(frozen=True)
class Container:
    """A list, dict, set or object seen through a name, with the parts it had."""

    label: str
    value: Any
    parts: tuple[Any, ...]

    def is_same(self) -> bool:
        now = _parts(self.value)
        if len(now) != len(self.parts):
            return False
        return all(_is_equal(a, b) for a, b in zip(now, self.parts, strict=True))


@dataclass(frozen=True)
class Content:
    """An array out of which a number was taken, with its elements at the time."""

    label: str
    array: np.ndarray[Any, Any]
    copy: np.ndarray[Any, Any]

    def is_same(self) -> bool:
        now, then = self.array, self.copy
        return now.shape == then.shape and now.dtype == then.dtype and now.tobytes() == then.tobytes()


@dataclass(frozen=True)
class Environment:
    """What a function can see.

    namespaces : global namespaces of the function and of the functions it calls
    names, containers : outside names and what they hold, to be compared before a compiled program is used
    arrays : the arrays among them, by label
    contents : arrays whose elements must be the same too
    generators : random generators among them
    """

    namespaces: tuple[dict[str, Any], ...] = ()
    names: tuple[Name, ...] = ()
    containers: tuple[Container, ...] = ()
    arrays: tuple[tuple[str, np.ndarray[Any, Any]], ...] = ()
    contents: tuple[Content, ...] = ()
    generators: tuple[Any, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the program rests on nothing outside."""
        return not (self.names or self.containers or self.contents)

    def changed(self) -> str | None:
        """The first thing that is not as it was when the function was traced, or None: then the program is right."""
        for group in (self.names, self.containers, self.contents):
            for entry in group:
                if not entry.is_same():
                    return str(entry.label)
        return None

    def after_trace(self, whole: set[int], fixed: set[int], watch: bool) -> "Environment":
        """What a finished trace rests on.

        whole : identities of the arrays that became parameters, so that changes of theirs are seen anyway; the others
            were looked at in ways that leave no mark, and must keep their elements
        fixed : identities of the arrays whose elements shaped the program; with `watch`, every array

        What the function itself changed is left out: a side effect happens when it is traced, not at each call.
        """
        kept = [(label, a) for label, a in self.arrays if watch or id(a) in fixed or id(a) not in whole]
        contents = [Content(label, a, a.copy()) for label, a in kept]
        return replace(
            self,
            names=tuple([n for n in self.names if n.is_same()]),
            containers=tuple([c for c in self.containers if c.is_same()]),
            contents=tuple(contents),
        )

    @contextmanager
    def no_randomness(self, state: Trace) -> Iterator[None]:
        """A random draw while tracing would be the same number in every call: refuse it afterwards."""
        before = self._random_states()
        yield
        after = dict(self._random_states())
        for name, old in before:
            if not _same_state(old, after[name]):
                raise UnsupportedError(
                    f"{state.name!r} draws random numbers from {name} while it is traced; they would be the same in "
                    "every call. Draw outside and pass the numbers as an argument, or make a generator with a fixed "
                    "seed inside"
                )

    def _random_states(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = [("Python's random module", random.getstate())]
        if "numpy.random" in sys.modules:
            found.append(("np.random", np.random.mtrand._rand._bit_generator.state))
            for number, generator in enumerate(self.generators):
                bits = getattr(generator, "bit_generator", None) or generator._bit_generator
                found.append((f"a {type(generator).__name__} from outside" + " (another)" * number, bits.state))
        return found


def _same_state(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_same_state(v, y[k]) for k, v in x.items())
    if isinstance(x, np.ndarray):
        return bool(np.array_equal(x, y))
    return bool(x == y)


# ------------------------------------------------------------------ looking around


def unwrapped(fn: Any) -> Any:
    """The Python function behind partials, bound methods, decorators and callable objects."""
    for _ in range(100):
        inner = getattr(fn, "__wrapped__", None) or getattr(fn, "__func__", None) or getattr(fn, "func", None)
        if inner is None and not isinstance(fn, FunctionType | type) and callable(type(fn)):
            inner = getattr(type(fn).__call__, "__code__", None) and type(fn).__call__
        if inner is None:
            return fn
        fn = inner
    return fn


def environment_of(fn: Any) -> Environment:
    """Everything `fn` can reach by name, without running it."""
    walk = _Walk()
    walk.visit("the function", fn)
    walk.run()
    return Environment(
        namespaces=tuple(walk.namespaces.values()),
        names=tuple(walk.names),
        containers=tuple(walk.containers),
        arrays=tuple(walk.arrays),
        generators=tuple(walk.generators),
    )


class _Walk:
    """A walk over functions, containers and objects; each once, breadth first."""

    def __init__(self) -> None:
        self.namespaces: dict[int, dict[str, Any]] = {}
        self.names: list[Name] = []
        self.containers: list[Container] = []
        self.arrays: list[tuple[str, np.ndarray[Any, Any]]] = []
        self.generators: list[Any] = []
        self._seen: dict[int, Any] = {}
        self._pending: list[tuple[str, Any]] = []

    def visit(self, label: str, value: Any) -> None:
        if id(value) not in self._seen and len(self._seen) < LIMIT and not isinstance(value, _IMMUTABLE):
            self._seen[id(value)] = value
            self._pending.append((label, value))

    def run(self) -> None:
        while self._pending:
            label, value = self._pending.pop(0)
            self._look(label, value)

    def _look(self, label: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            if type(value) is np.ndarray:
                self.arrays.append((label, value))
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, MethodType):
            self.visit(label, value.__func__)
            self.visit(f"{type(value.__self__).__name__} object", value.__self__)
        elif isinstance(value, ModuleType) or (callable(value) and not hasattr(value, "__dict__")):
            return
        elif "numpy.random" in sys.modules and isinstance(value, np.random.Generator | np.random.RandomState):
            self.generators.append(value)
        elif isinstance(value, list | tuple | dict | set | frozenset) or _is_users_object(value):
            self._container(label, value)

    def _function(self, fn: FunctionType) -> None:
        wrapped = getattr(fn, "__wrapped__", None)
        if wrapped is not None:
            self.visit(fn.__name__, wrapped)
        if _is_library_file(fn.__code__.co_filename):
            return
        space = fn.__globals__
        self.namespaces[id(space)] = space
        codes = list(_codes(fn.__code__))
        if any("random" in code.co_names for code in codes):
            np.random  # noqa: B018  # loads NumPy's random module, whose functions are then replaced for the trace
        for name in dict.fromkeys(n for code in codes for n in code.co_names):
            if name in space:
                self._name(f"global {name!r}", space, name, space[name])
        modules = [space[n] for n in fn.__code__.co_names if isinstance(space.get(n), ModuleType)]
        for module in modules:
            self._module(module, codes)
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            try:
                self._name(f"closure variable {name!r}", cell, name, cell.cell_contents)
            except ValueError:  # not yet bound
                continue
        for value in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()):
            self.visit(f"a default of {fn.__name__}", value)

    def _module(self, module: ModuleType, codes: Iterable[CodeType]) -> None:
        """Attributes of the user's own modules that the function names."""
        if _is_library_file(getattr(module, "__file__", None) or ""):
            return
        space = vars(module)
        for name in dict.fromkeys(n for code in codes for n in code.co_names):
            if name in space:
                self._name(f"{module.__name__}.{name}", space, name, space[name])

    def _name(self, label: str, holder: Any, name: str, value: Any) -> None:
        if isinstance(value, ModuleType):
            return
        self.names.append(Name(label, holder, name, value))
        self.visit(label, value)

    def _container(self, label: str, value: Any) -> None:
        parts = _parts(value)
        if not isinstance(value, tuple | frozenset):
            self.containers.append(Container(label, value, parts))
        for part in parts:
            self.visit(label, part)
        inner = getattr(value, "__wrapped__", None)
        if inner is not None:
            self.visit(label, inner)
        if not isinstance(value, list | tuple | dict | set | frozenset):
            for method in vars(type(value)).values():
                if isinstance(method, FunctionType):
                    self.visit(label, method)


def _parts(value: Any) -> tuple[Any, ...]:
    """What a container holds; of an object, its attributes."""
    if isinstance(value, dict):
        return tuple([x for pair in value.items() for x in pair])
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(value)
    return tuple(vars(value).values())


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions defined inside it."""
    pending = [code]
    while pending:
        top = pending.pop()
        yield top
        pending.extend(c for c in top.co_consts if isinstance(c, CodeType))


def _is_users_object(value: Any) -> bool:
    """An instance of a class written by the user, in Python."""
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return False
    module = sys.modules.get(type(value).__module__)
    return hasattr(value, "__wrapped__") or not _is_library_file(getattr(module, "__file__", None) or "")


def _is_library_file(file: str) -> bool:
    return not file or file.startswith("<frozen") or is_internal_file(file) or file.startswith(_LIBRARIES)


def _is_equal(x: Any, y: Any) -> bool:
    """The same object, or an equal number or text."""
    return x is y or (type(x) is type(y) and isinstance(x, int | float | str) and x == y)
