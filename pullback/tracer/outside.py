"""Records of what lies outside a traced function, each of which can say whether it is still what it was."""

import math
import sys
import weakref
import zlib
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import replace
from types import FunctionType, MappingProxyType, MemberDescriptorType
from typing import Any, Protocol

import numpy as np

from pullback.record import record

MISSING = object()


class Fact(Protocol):
    """Something that a traced program rests on."""

    @property
    def label(self) -> str: ...

    def is_same(self) -> bool: ...


@record(frozen=True)
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
        return is_equal(self.current(), self.value)

    def current(self) -> Any:
        """What it is bound to now."""
        if isinstance(self.holder, dict):
            return self.holder.get(self.name, MISSING)
        try:
            return self.holder.cell_contents
        except ValueError:  # an empty cell
            return MISSING

    def undo(self) -> None:
        """Bind it to what it was bound to."""
        if isinstance(self.holder, dict):
            _put(self.holder, self.name, self.value)
        elif self.value is MISSING:
            del self.holder.cell_contents
        else:
            self.holder.cell_contents = self.value


@record(frozen=True)
class Definition:
    """A Python function seen through a name: its code and defaults, which a reload or an assignment may exchange."""

    label: str
    function: FunctionType
    parts: tuple[Any, ...]

    @classmethod
    def of(cls, function: FunctionType) -> "Definition":
        return cls(f"the function {function.__name__!r}", function, _parts_of_function(function))

    def is_same(self) -> bool:
        return all(x is y for x, y in zip(_parts_of_function(self.function), self.parts, strict=True))


def _parts_of_function(function: FunctionType) -> tuple[Any, ...]:
    return function.__code__, function.__defaults__, function.__kwdefaults__


@record(frozen=True)
class Container:
    """A list, dict, set, buffer or array of objects seen through a name, with the parts it had."""

    label: str
    value: Any
    parts: tuple[Any, ...]

    def is_same(self) -> bool:
        now = parts_of(self.value)
        return len(now) == len(self.parts) and all(map(is_equal, now, self.parts))

    def undo(self) -> None:
        """Fill it with the parts it had. Buffers hold no traced values, and stay as they are."""
        if isinstance(self.value, dict):
            self.value.clear()
            self.value.update(zip(self.parts[::2], self.parts[1::2], strict=True))
        elif isinstance(self.value, list | deque):
            self.value.clear()
            self.value.extend(self.parts)
        elif isinstance(self.value, set):
            self.value.clear()
            self.value.update(self.parts)


@record(frozen=True)
class Attributes:
    """Attributes of an object, class or module seen through a name: those that the function's code mentions.

    names, values : what the object itself held; MISSING where an attribute would hide one of its class
    kind : its class, which an assignment may exchange
    """

    label: str
    thing: Any
    names: tuple[str, ...]
    values: tuple[Any, ...]
    kind: type

    def is_same(self) -> bool:
        return type(self.thing) is self.kind and all(map(is_equal, self.current(), self.values))

    def current(self) -> Iterator[Any]:
        """What they are now."""
        return (own_attribute(self.thing, name) for name in self.names)

    def undo(self) -> None:
        """Give it the attributes it had; those of classes and slots, which few functions change, stay as they are."""
        space = getattr(self.thing, "__dict__", None)
        if isinstance(space, dict):
            for name, value in zip(self.names, self.values, strict=True):
                if slot_of(self.thing, name) is None:
                    _put(space, name, value)

    def settled(self) -> "Attributes":
        """Those that have not changed since."""
        kept = [(n, v) for n, v, now in zip(self.names, self.values, self.current(), strict=True) if is_equal(v, now)]
        return replace(self, names=tuple([n for n, _ in kept]), values=tuple([v for _, v in kept]))


@record(frozen=True)
class Variable:
    """A context variable seen through a name."""

    label: str
    variable: ContextVar[Any]
    value: Any

    def is_same(self) -> bool:
        return is_equal(self.variable.get(MISSING), self.value)


@record(frozen=True)
class Referent:
    """What a weak reference refers to. It never becomes another object, but it may go."""

    label: str
    reference: weakref.ref[Any]
    alive: bool

    def is_same(self) -> bool:
        return (self.reference() is not None) == self.alive


@record(frozen=True)
class Content:
    """An array out of which a number was taken, with its elements at the time."""

    label: str
    array: np.ndarray[Any, Any]
    copy: np.ndarray[Any, Any]

    def is_same(self) -> bool:
        now, then = self.array, self.copy
        if now.shape != then.shape or now.dtype != then.dtype:
            return False
        return bool(np.array_equal(_bits(now), _bits(then)))


def _put(space: dict[str, Any], name: str, value: Any) -> None:
    """Bind a name, or unbind it if there was none."""
    if value is MISSING:
        space.pop(name, None)
    else:
        space[name] = value


def fingerprint(array: np.ndarray[Any, Any]) -> int:
    """A number that tells arrays of other elements apart."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data) if array.nbytes else 0


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint64 if flat.itemsize % 8 == 0 else np.uint8)


def parts_of(value: Any) -> tuple[Any, ...]:
    """What a container holds; of memory without objects, its bytes."""
    if isinstance(value, np.ndarray):
        return tuple(value.reshape(-1).tolist())
    if isinstance(value, memoryview | bytearray) or is_number_array(value):
        return (bytes(value),)
    if isinstance(value, dict | MappingProxyType):
        return tuple([x for pair in value.items() for x in pair])
    return tuple(value)


def is_number_array(value: Any) -> bool:
    """Whether it is one of Python's own arrays of numbers."""
    module = sys.modules.get("array")
    return module is not None and isinstance(value, module.array)


def own_attribute(thing: Any, name: str) -> Any:
    """An attribute kept in the object itself: in its dictionary or in a slot; MISSING if it is not."""
    space = getattr(thing, "__dict__", None)
    if space is not None and name in space:
        return space[name]
    slot = slot_of(thing, name)
    try:
        return MISSING if slot is None else slot.__get__(thing)
    except AttributeError:  # an empty slot
        return MISSING


def slot_of(thing: Any, name: str) -> MemberDescriptorType | None:
    """The descriptor of a slot (``__slots__``) of that name."""
    found = getattr(type(thing), name, None)
    return found if isinstance(found, MemberDescriptorType) else None


def is_equal(x: Any, y: Any) -> bool:
    """The same object, or an equal number or text."""
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if isinstance(x, np.generic):
        return bool(x.dtype == y.dtype) and x.tobytes() == y.tobytes()
    if isinstance(x, float):
        return bool(x == y) and math.copysign(1.0, x) == math.copysign(1.0, y)
    return isinstance(x, int | str | bytes) and bool(x == y)
