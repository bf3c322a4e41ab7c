"""`record`: `dataclasses.dataclass`, five times faster.

The standard one compiles up to six methods for each class, which takes half a millisecond; a hundred classes were half
of what importing this package took. Here only the constructor is compiled, the other methods are made of shared ones.
What comes out is a dataclass: `fields`, `replace` and pattern matching work, and type checkers take it for one.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["record"]


def _record(cls: Any = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True) -> Any:
    """A decorator for classes of annotated fields. The arguments mean what they mean for `dataclass`."""
    if cls is None:
        return lambda given: _record(given, frozen=frozen, slots=slots, eq=eq)
    written = set(vars(cls))
    made = dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    own = fields(made)
    methods: dict[str, Any] = {"__init__": _constructor(made, own, frozen), "__repr__": _repr}
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    if eq:
        compared = [f.name for f in own if f.compare]
        get = attrgetter(*compared) if compared else type
        methods |= {"__eq__": _equal(get), "__hash__": _hash(get) if frozen else None}
    for name, method in methods.items():
        if name not in written:
            setattr(made, name, method)
    return made


def _constructor(cls: Any, own: tuple[Field[Any], ...], frozen: bool) -> Any:
    """`__init__`, compiled, for it runs often."""
    known: dict[str, Any] = {"MISSING": MISSING, "put": object.__setattr__}
    head, body = ["self"], []
    for f in own:
        name, value = f.name, f.name
        if f.default_factory is not MISSING:
            known[f"make_{name}"] = f.default_factory
            default = " = MISSING"
            value = f"make_{name}() if {name} is MISSING else {name}" if f.init else f"make_{name}()"
        else:
            known[f"default_{name}"] = f.default
            default = f" = default_{name}" if f.default is not MISSING else ""
        if f.init:
            head.append(name + default)
        if f.init or f.default_factory is not MISSING:
            body.append(f"put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(head)}):\n  {'; '.join(body) or 'pass'}", known)
    known["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return known["__init__"]


def _repr(self: Any) -> str:
    parts = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _refuse(self: Any, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__qualname__}")


def _equal(get: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def equal(self: Any, other: Any) -> Any:
        return get(self) == get(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(get: Callable[[Any], Any]) -> Callable[[Any], int]:
    def hashed(self: Any) -> int:
        return hash(get(self))

    return hashed


if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    record = _record
