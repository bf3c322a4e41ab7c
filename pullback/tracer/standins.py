"""Traced arrays in the place of the arrays a function finds outside itself.

`y = X.copy(); y[0] = x` on a global or closure array makes a plain array, which cannot take a traced value. NumPy has
no protocol for the methods of an array, so a trace that failed on such an assignment is run again with a copy of the
function: the same code, but with globals and closure variables that give a traced, read-only array where an array is
looked up, and with an `np.ndarray` that makes traced ones. Functions that it calls by those names are copied too. What
the copies rebind is handed back afterwards.
"""

import functools
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy import ndarray

from pullback.ir.types import DTYPE_NAMES
from pullback.tracer.functions.creation import ndarray as make_ndarray
from pullback.tracer.functions.lists import Searching
from pullback.tracer.location import is_library_file
from pullback.tracer.operands import as_array
from pullback.tracer.patching import plain_copy
from pullback.tracer.reach import is_library_class


class StandIns:
    """What stands for what was found outside; each thing has one stand-in for the whole trace."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}  # by identity; the entry keeps the original alive
        self._spaces: list[tuple[dict[str, Any], _Globals]] = []
        self._objects: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = []
        self._cells: list[tuple[CellType, Any, CellType]] = []
        self._containers: list[tuple[Any, Any, Any]] = []
        self._numpy = plain_copy(np)
        vars(self._numpy)["ndarray"] = _ARRAY_TYPE

    def of(self, value: Any) -> Any:
        """The stand-in of `value`, or `value` itself where there is no need for one."""
        kind = type(value)
        if value is np or value is ndarray:
            return self._numpy if value is np else _ARRAY_TYPE
        if kind is ndarray:
            return self._kept(value, as_array(value)) if value.dtype in DTYPE_NAMES else value
        if kind is FunctionType:
            return value if is_library_file(value.__code__.co_filename) else self._function(value)
        if kind is MethodType:
            return MethodType(self.of(value.__func__), self._object(value.__self__))
        if kind is functools.partial:
            keywords = {k: self.of(v) for k, v in value.keywords.items()}
            return functools.partial(self.of(value.func), *[self.of(a) for a in value.args], **keywords)
        if kind is tuple:
            parts = tuple([self.of(part) for part in value])
            return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
        if kind is list or kind is dict:
            return self._container(value)
        if kind is ModuleType:
            return value if is_library_file(getattr(value, "__file__", None) or "") else self._module(value)
        return self._object(value)

    def hand_back(self) -> None:
        """Give names and attributes that the copies have bound anew to the originals."""
        for real, space in self._spaces:
            real.update({name: value for name, value in space.items() if value is not space.found.get(name)})
        for real, found, own in self._objects:
            real.update({name: value for name, value in own.items() if value is not found.get(name)})
        for cell, content, copy in self._cells:
            _rebind(cell, content, copy)
        for container, found_items, items in self._containers:
            _write_back(container, found_items, items)

    def _kept(self, original: Any, made: Any) -> Any:
        return self._made.setdefault(id(original), (original, made))[1]

    def _function(self, fn: FunctionType) -> Any:
        known = self._made.get(id(fn))
        if known is not None:
            return known[1]
        cells = tuple([CellType() if _is_replaced(cell) else cell for cell in fn.__closure__ or ()])
        copy = FunctionType(fn.__code__, self._space(fn.__globals__), fn.__name__, None, cells or None)
        self._kept(fn, copy)  # before the closure, which may hold the function itself
        copy.__defaults__ = None if fn.__defaults__ is None else tuple([self.of(d) for d in fn.__defaults__])
        if fn.__kwdefaults__ is not None:
            copy.__kwdefaults__ = {name: self.of(default) for name, default in fn.__kwdefaults__.items()}
        copy.__dict__.update(fn.__dict__)
        for old, new in zip(fn.__closure__ or (), cells, strict=True):
            if new is not old:
                new.cell_contents = found = self.of(old.cell_contents)
                self._cells.append((old, found, new))
        return copy

    def _container(self, value: Any) -> Any:
        """A copy of a list or dictionary whose parts have stand-ins; others stay, as do those that hold themselves."""
        known = self._made.get(id(value))
        if known is not None:
            return known[1]
        self._made[id(value)] = (value, value)  # it may hold itself
        keys = list(value) if isinstance(value, dict) else range(len(value))
        parts = {k: self.of(value[k]) for k in keys}
        if all(parts[k] is value[k] for k in keys):
            return value
        made = parts if isinstance(value, dict) else list(parts.values())
        self._containers.append((value, made.copy(), made))
        self._made[id(value)] = (value, made)
        return made

    def _module(self, value: ModuleType) -> ModuleType:
        """A copy of a module of the user's whose names have stand-ins."""
        known = self._made.get(id(value))
        if known is not None:
            return known[1]  # type: ignore[no-any-return]
        copy: ModuleType = self._kept(value, plain_copy(value))
        found = {name: self.of(v) for name, v in vars(copy).items()}
        vars(copy).update(found)
        self._objects.append((vars(value), found, vars(copy)))
        return copy

    def _space(self, real: dict[str, Any]) -> "_Globals":
        known = self._made.get(id(real))
        if known is None:
            space = _Globals(real, self)
            self._spaces.append((real, space))
            return self._kept(real, space)  # type: ignore[no-any-return]
        return known[1]  # type: ignore[no-any-return]

    def _object(self, value: Any) -> Any:
        """A copy of an object that has arrays for attributes; objects of libraries, and those without any, stay."""
        own = getattr(value, "__dict__", None)
        known = self._made.get(id(value))
        if known is not None:
            return known[1]
        if type(own) is not dict or isinstance(value, type | ModuleType) or is_library_class(type(value)):
            return value
        if not any(type(v) is ndarray for v in own.values()):
            return value
        made = {name: self.of(v) if type(v) is ndarray else v for name, v in own.items()}
        copy = object.__new__(type(value))
        copy.__dict__.update(made)
        self._objects.append((own, made, copy.__dict__))
        return self._kept(value, copy)


def _rebind(cell: CellType, found: Any, own: CellType) -> None:
    """What `nonlocal` has bound a copied closure variable to, for the original."""
    try:
        if own.cell_contents is not found:
            cell.cell_contents = own.cell_contents
    except ValueError:  # deleted
        del cell.cell_contents


def _write_back(real: Any, found: Any, own: Any) -> None:
    """What a copy of a list or dictionary holds that it did not at first, into the original."""
    if isinstance(real, dict):
        for key in found.keys() - own.keys():
            real.pop(key, None)
        real.update({key: value for key, value in own.items() if key not in found or value is not found[key]})
    elif len(own) != len(found) or any(new is not old for new, old in zip(own, found, strict=True)):
        originals = {id(old): value for old, value in zip(found, real, strict=True)}
        real[:] = [originals.get(id(new), new) for new in own]


class _Globals(dict[str, Any]):
    """The global names of a module, arrays and functions among them replaced when they are looked up.

    found : what the names were when the copy was made
    """

    def __init__(self, real: dict[str, Any], stand_ins: StandIns) -> None:
        super().__init__(real)
        self.found = dict(real)
        self._stand_ins = stand_ins

    def __getitem__(self, name: str) -> Any:
        return self._stand_ins.of(super().__getitem__(name))


class _ArrayType(Searching):
    """`np.ndarray` called by the user for an array; in `isinstance`, as a base or a type it is NumPy's."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._answer(args, kwargs)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.__wrapped__)

    def __subclasscheck__(self, cls: type) -> bool:
        return issubclass(cls, self.__wrapped__)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (self.__wrapped__,)

    def __getitem__(self, key: Any) -> Any:
        return self.__wrapped__[key]

    def __or__(self, other: Any) -> Any:
        return self.__wrapped__ | other

    def __ror__(self, other: Any) -> Any:
        return other | self.__wrapped__


_ARRAY_TYPE = _ArrayType(ndarray, lambda args, kwargs: make_ndarray(*args, **kwargs))


_NEVER_REPLACED = (bool, int, float, complex, str, bytes, type(None), np.generic, set)


def _is_replaced(cell: CellType) -> bool:
    """Whether a closure variable may need a stand-in."""
    try:
        return not isinstance(cell.cell_contents, _NEVER_REPLACED)
    except ValueError:  # not bound yet
        return False
