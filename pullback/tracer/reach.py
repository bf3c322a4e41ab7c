"""What a function can reach by name, without running it: globals, closure variables, defaults, attributes, items.

The walk follows functions, objects and containers, each once. Of an object only those attributes count that some code
on the way mentions by name, so that a counter next to the weights does not matter; where code asks for attributes by
other means (`getattr`, `vars`), all of them count.
"""

import functools
import operator
import sys
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from pullback.tracer.location import is_library_file
from pullback.tracer.outside import (
    MISSING,
    Attributes,
    Container,
    Definition,
    Name,
    Referent,
    Variable,
    is_number_array,
    own_attribute,
    parts_of,
)

LIMIT = 2000
"""So many objects are looked at; what lies beyond is deep in data structures."""

_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), np.generic)
_CONTAINERS = (list, tuple, dict, set, frozenset, deque, MappingProxyType, bytearray, memoryview)
_BY_OTHER_MEANS = frozenset(
    {"getattr", "vars", "__dict__", "eval", "exec", "attrgetter", "asdict", "astuple", "fields"}
)


_ALL_GLOBALS = frozenset({"globals", "eval", "exec"})
_HOLDS_THINGS = ("__call__", "__getitem__", "__iter__", "__array__")

_WHEN_MADE = frozenset({"__init__", "__new__", "__post_init__", "__init_subclass__", "__del__", "__repr__"})


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


class Reach:
    """A walk over functions, containers and objects; each once, breadth first.

    Attributes
    ----------
    namespaces : global namespaces of the functions
    names, definitions, containers, references : what was found, to be compared later
    arrays : the arrays among it, by label
    generators : random generators among it
    """

    def __init__(self) -> None:
        self.namespaces: dict[int, dict[str, Any]] = {}
        self.names: dict[tuple[int, str], Name] = {}
        self.definitions: list[Definition] = []
        self.containers: list[Container] = []
        self.references: list[Variable | Referent] = []
        self.arrays: list[tuple[str, np.ndarray[Any, Any]]] = []
        self.generators: list[Any] = []
        self._mentioned: set[str] = set()
        self._things: list[tuple[str, Any]] = []
        self._seen: dict[int, Any] = {}
        self._pending: deque[tuple[str, Any]] = deque()

    def visit(self, label: str, value: Any) -> None:
        if id(value) not in self._seen and len(self._seen) < LIMIT and not isinstance(value, _IMMUTABLE):
            self._seen[id(value)] = value
            self._pending.append((label, value))

    def run(self) -> None:
        """Until nothing new is found: code found late may mention attributes of objects found early."""
        known = -1
        while self._pending or known != len(self._mentioned):
            while self._pending:
                self._look(*self._pending.popleft())
            known = len(self._mentioned)
            for label, thing in list(self._things):
                for name in self._relevant(thing):
                    self.visit(f"{label}.{name}", own_attribute(thing, name))

    def attributes(self) -> Iterator[Attributes]:
        """The attributes that count, of all objects found."""
        for label, thing in self._things:
            names = tuple(self._relevant(thing))
            if names:
                values = tuple([own_attribute(thing, name) for name in names])
                yield Attributes(label, thing, names, values, type(thing))

    # ------------------------------------------------------------------ one thing

    def _look(self, label: str, value: Any) -> None:
        if value is MISSING:
            return
        if issubclass(type(value), np.ndarray):  # not a traced array of an enclosing trace, which passes for one
            self._array(label, value)
        elif isinstance(value, ContextVar | weakref.ref):
            self._reference(label, value)
        elif isinstance(value, operator.attrgetter | operator.methodcaller):
            self._getter(label, value)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, MethodType):
            self.visit(label, value.__func__)
            self.visit(f"{type(value.__self__).__name__} object", value.__self__)
        elif isinstance(value, _CONTAINERS) or is_number_array(value):
            self._container(label, value)
        elif _is_generator(value):
            self.generators.append(value)
        elif not _is_library_thing(value):
            self._thing(label, value)

    def _array(self, label: str, value: np.ndarray[Any, Any]) -> None:
        """Of a subclass, the plain array it is besides; of a masked one, the mask too."""
        if value.dtype.hasobject:
            self._container(label, value)
            return
        self.arrays.append((label, value if type(value) is np.ndarray else np.asarray(value)))
        if isinstance(value, np.ma.MaskedArray):
            self.visit(label, np.ma.getmaskarray(value) if value.mask is np.ma.nomask else value.mask)

    def _reference(self, label: str, value: Any) -> None:
        if isinstance(value, ContextVar):
            now = value.get(MISSING)
            self.references.append(Variable(label, value, now))
        else:
            now = value()
            self.references.append(Referent(label, value, now is not None))
        self.visit(label, now)

    def _getter(self, label: str, value: Any) -> None:
        """It asks for attributes that no code mentions."""
        _, arguments = value.__reduce__()[:2]
        for argument in arguments:
            if isinstance(argument, str):
                self._mentioned.update(argument.split("."))
            self.visit(label, argument)

    def _function(self, fn: FunctionType) -> None:
        wrapped = getattr(fn, "__wrapped__", None)
        if wrapped is not None:
            self.visit(fn.__name__, wrapped)
        if is_library_file(fn.__code__.co_filename):
            return
        self.definitions.append(Definition.of(fn))
        space = fn.__globals__
        self.namespaces[id(space)] = space
        mentioned = {name: None for code in _codes(fn.__code__) for name in code.co_names}
        self._mentioned.update(mentioned)
        if "random" in mentioned:
            np.random  # noqa: B018  # loads NumPy's random module, whose functions are then replaced for the trace
        for name in list(space) if mentioned.keys() & _ALL_GLOBALS else mentioned:
            if name in space:
                self._name(f"global {name!r}", space, name, space[name])
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            try:
                self._name(f"closure variable {name!r}", cell, name, cell.cell_contents)
            except ValueError:  # not yet bound
                continue
        for value in (*(fn.__defaults__ or ()), fn.__kwdefaults__):
            self.visit(f"a default of {fn.__name__}", value)

    def _name(self, label: str, holder: Any, name: str, value: Any) -> None:
        if not isinstance(value, ModuleType):
            self.names.setdefault((id(holder), name), Name(label, holder, name, value))
        self.visit(label, value)

    def _container(self, label: str, value: Any) -> None:
        parts = parts_of(value)
        if not isinstance(value, tuple | frozenset):
            self.containers.append(Container(label, value, parts))
        for part in parts:
            self.visit(label, part)

    def _thing(self, label: str, value: Any) -> None:
        """An object, a class or a module: its attributes are looked at when it is known which are mentioned."""
        for part in _functions_inside(value):
            self.visit(label, part)
        if type(value).__module__.startswith("pullback."):
            return  # one of our own functions: what it wraps is all that matters
        if isinstance(value, type):
            label = f"class {value.__name__}"
        elif isinstance(value, ModuleType):
            label = f"module {value.__name__}"
        else:
            label = f"{type(value).__name__} object"
        self._things.append((label, value))
        for cls in _classes(value):
            self.visit(cls.__name__, cls)

    def _relevant(self, thing: Any) -> Iterable[str]:
        """Names of the attributes of an object that count."""
        space = getattr(thing, "__dict__", {})
        classes = _classes(thing)
        own = {*space, *[name for cls in classes for name in _slot_names(cls)]}
        by_other_means = self._mentioned & _BY_OTHER_MEANS or _is_used_by_its_library(thing)
        if by_other_means and not isinstance(thing, type | ModuleType):
            return sorted(own)
        hiding = {name for name in self._mentioned - own if _could_hide(classes, name)}
        special = {n for n, v in space.items() if n.startswith("__") and isinstance(v, FunctionType)} - _WHEN_MADE
        return sorted(self._mentioned & own | hiding | (special if isinstance(thing, type) else set()))


def _is_generator(value: Any) -> bool:
    """A random generator of NumPy or of Python; one made without a seed at each call (`SystemRandom`) has no state."""
    if "numpy.random" in sys.modules and isinstance(value, np.random.Generator | np.random.RandomState):
        return True
    python = sys.modules.get("random")
    return python is not None and isinstance(value, python.Random) and not isinstance(value, python.SystemRandom)


def _classes(thing: Any) -> tuple[type, ...]:
    """Where attributes are looked up that are not in the object itself."""
    return thing.__mro__[1:] if isinstance(thing, type) else type(thing).__mro__


def _is_used_by_its_library(thing: Any) -> bool:
    """Whether code that is not looked at gives out what `thing` holds: a `UserDict`, a polynomial, an interpolator."""
    return is_library_class(type(thing)) and any(hasattr(type(thing), name) for name in _HOLDS_THINGS)


def _could_hide(classes: Iterable[type], name: str) -> bool:
    """Whether the object inherits an attribute of that name which one of its own would hide."""
    for cls in classes:
        if name in cls.__dict__:
            return not hasattr(type(cls.__dict__[name]), "__set__")
    return False


def _functions_inside(value: Any) -> Iterable[Any]:
    """Functions and their arguments in wrappers of all kinds."""
    if isinstance(value, functools.partial):
        return value.func, *value.args, *value.keywords.values()
    if isinstance(value, property):
        return (value.fget,)
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    found = [getattr(value, "__wrapped__", None)]
    if not isinstance(value, type | ModuleType) and is_library_class(type(value)):
        found += [x for x in getattr(value, "__dict__", {}).values() if isinstance(x, FunctionType | MethodType)]
    return found


def _slot_names(cls: type) -> Iterable[str]:
    names = cls.__dict__.get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions defined inside it."""
    pending = [code]
    while pending:
        top = pending.pop()
        yield top
        pending.extend(c for c in top.co_consts if isinstance(c, CodeType))


def _is_library_thing(value: Any) -> bool:
    """A module or class of a library, or an object whose attributes are out of sight."""
    if isinstance(value, ModuleType):
        made_here = getattr(value, "__spec__", None) is None
        return is_library_file(getattr(value, "__file__", None) or ("<made at run time>" if made_here else ""))
    if isinstance(value, type):
        return is_library_class(value)
    if isinstance(value, property | staticmethod | classmethod | functools.partial):
        return False
    return not hasattr(value, "__dict__") and not any(_slot_names(cls) for cls in type(value).__mro__)


def is_library_class(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return cls.__module__ != "__main__" and is_library_file(getattr(module, "__file__", None) or "")
