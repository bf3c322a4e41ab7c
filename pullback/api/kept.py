"""What was compiled for a function, kept as long as the function lives.

`grad(f)(x)` in a loop makes a new callable in each turn, and `vjp(f, x)` too; what they compile belongs to `f`. So it
is kept in an attribute of `f` (together they are garbage like any other cycle), and not in a table here, which would
keep `f` and the data it holds alive for ever. Callables that are no Python functions have no such place: of them, the
last few are remembered.
"""

import weakref
from collections.abc import Callable, Hashable
from functools import lru_cache
from types import FunctionType, MethodType
from typing import Any, TypeVar

from pullback.api.call import Same

T = TypeVar("T")

ATTRIBUTE = "__pullback__"
ITEMS = 64
"""So many transforms of one function are kept."""
OTHERS = 4
"""So many callables that are no Python functions are remembered."""


class Store:
    """Things made for one callable, by what they were made of."""

    __slots__ = ("_items", "_owner")

    def __init__(self, owner: Any) -> None:
        self._owner = weakref.ref(owner) if isinstance(owner, FunctionType) else None
        self._items: dict[Hashable, Any] = {}

    def belongs_to(self, owner: Any) -> bool:
        """Not so for a wrapper that copied the attributes of the function it wraps."""
        return self._owner is not None and self._owner() is owner

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is kept under `key`, or else what `make` gives; the oldest may drop out."""
        if key not in self._items:
            while len(self._items) >= ITEMS:
                self._items.pop(next(iter(self._items)), None)
            made = make()
            return self._items.setdefault(key, made)  # type: ignore[no-any-return]
        return self._items[key]  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """A function that is pickled by value takes nothing compiled along."""
        return Store, (None,)


def store_of(function: Any) -> Store:
    """The store of a callable that is no transform itself."""
    if not isinstance(function, FunctionType):
        return _other_store(identity_of(function))
    found = function.__dict__.get(ATTRIBUTE)
    if not isinstance(found, Store) or not found.belongs_to(function):
        found = Store(function)
        function.__dict__[ATTRIBUTE] = found
    return found


@lru_cache(maxsize=OTHERS)
def _other_store(identity: Hashable) -> Store:
    return Store(None)


def identity_of(function: Any) -> Hashable:
    """Equal for callables that are one and the same, methods of one object among them."""
    if type(function) is MethodType:
        return Same(function.__self__), Same(function.__func__)
    return Same(function)


def is_hashable(thing: object) -> bool:
    """Has it a hash, with all that is in it."""
    try:
        hash(thing)
    except TypeError:
        return False
    return True
