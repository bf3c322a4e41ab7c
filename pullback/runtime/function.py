"""The object that `grad(f)` and its like return: called natively once compiled, by Python until then."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MethodType
from typing import Any, Generic, NoReturn, Protocol, Self, TypeAlias, TypeVar

from pullback.errors import ArgumentError
from pullback.runtime.compiled import Compiled, Miss
from pullback.runtime.once import Once
from pullback.runtime.routes import NO_ROUTES, Branch, Family, compiled_of, route_table, starting_at

CHAIN_LENGTH = 32
"""For so many kinds of arguments the compiled code of a function is tried natively."""

SPECIALISATION_LIMIT = 128
"""So many compiled signatures of a function are kept; the least recently used one goes."""


class Dispatch(Protocol):
    """What a function object calls when no compiled entry takes the arguments.

    It finds or makes the specialisation for them, installs it, calls it, and returns the result.

    `miss` is None when the arguments fitted no entry; else it says which specialisation they fitted and why that gave
    up: a guard (`status > 0`) or an error of the kernel (`status < 0`).
    """

    def __call__(
        self, function: NativeFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any], miss: Miss | None, /
    ) -> Any: ...


Key: TypeAlias = Hashable
T = TypeVar("T")


class Specialisations(Generic[T]):
    """What was compiled for one function, by whatever key the dispatcher uses; bounded.

    Each step is a single operation on a dictionary, so threads need no lock.
    """

    __slots__ = ("_clock", "_items", "_limit", "_once", "_used")

    def __init__(self, limit: int = SPECIALISATION_LIMIT) -> None:
        self._limit = limit
        self._items: dict[Key, T] = {}
        self._used: dict[Key, int] = {}
        self._clock = itertools.count()
        self._once = Once()

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: Key) -> bool:
        return key in self._items

    def get(self, key: Key) -> T | None:
        """The specialisation of that key, which counts as used now."""
        found = self._items.get(key)
        if found is not None:
            self._used[key] = next(self._clock)
        return found

    def put(self, key: Key, compiled: T) -> None:
        """Add or replace; the least recently used one may go."""
        self._used[key] = next(self._clock)
        self._items[key] = compiled
        while len(self._items) > self._limit:
            self.drop(min(self._used.copy(), key=lambda known: self._used.get(known, 0)))

    def drop(self, key: Key) -> None:
        """Forget one, if it is there."""
        self._items.pop(key, None)
        self._used.pop(key, None)

    def items(self) -> list[tuple[Key, T]]:
        """All of them, at this moment."""
        return list(self._items.items())

    def get_or_build(self, key: Key, build: Callable[[], T]) -> T:
        """The specialisation of that key; one thread builds it, others that ask meanwhile wait for it."""

        def build_and_put() -> T:
            compiled = build()
            self.put(key, compiled)
            return compiled

        return self._once.get(key, lambda: self.get(key), build_and_put)


class NativeFunction:
    """A callable whose compiled signatures are called natively.

    This class is the whole behaviour, in Python. `native_type` derives from it the type whose instances also have two
    native fields, `_vectorcall` (what the interpreter calls, if not 0) and `_chain`; instances of the class itself call
    their specialisations through ctypes.

    Parameters
    ----------
    dispatch : called when no compiled entry takes the arguments
    wrapped : the user's function, if there is one; name, module and docstring are taken from it
    limit : bound on `specialisations`
    """

    _call_address = 0
    _vectorcall: int
    _chain: tuple[bytes, tuple[Family, ...]]

    def __init__(
        self, dispatch: Dispatch, wrapped: Callable[..., Any] | None = None, limit: int = SPECIALISATION_LIMIT
    ) -> None:
        self._dispatch = dispatch
        self._chain = (NO_ROUTES, ())
        self.specialisations: Specialisations[Any] = Specialisations(limit)
        if wrapped is not None:
            self.__wrapped__ = wrapped
            self.__name__ = getattr(wrapped, "__name__", type(wrapped).__name__)
            self.__qualname__ = getattr(wrapped, "__qualname__", self.__name__)
            self.__module__ = getattr(wrapped, "__module__", None) or type(self).__module__
            self.__doc__ = getattr(wrapped, "__doc__", None)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._call_address:
            return self._dispatch(self, args, kwargs, None)
        first = None
        for compiled in self.installed:
            outcome = compiled.call(args, kwargs)
            if type(outcome) is not Miss:
                return outcome
            if outcome.status and first is None:
                first = outcome
            if outcome.status < 0:
                break
        return self._dispatch(self, args, kwargs, first)

    def _native_miss(self, entry: int, status: int, /, *args: Any, **kwargs: Any) -> Any:
        """Native code calls this with the address of the entry that fitted but gave up, and its status; or 0, 0."""
        miss = None
        if status:
            miss = next((Miss(known, status) for known in self.installed if known.entry == entry), None)
        return self._dispatch(self, args, kwargs, miss)

    def install(self, compiled: Compiled, key: object = None, branches: Sequence[Branch] = ()) -> None:
        """Try `compiled` natively from now on, before all others.

        Parameters
        ----------
        key : of the kind of arguments that it is for; without one it stands alone
        branches : all paths for these arguments, `compiled` among them. They take the place of what was installed under
            the key; the arguments not installed for longest may drop out
        """
        if self._call_address and not compiled.entry:
            return
        table, families = self._chain
        own = Family(compiled if key is None else key, tuple(branches) or (Branch(compiled),))
        if not self._call_address:  # no table is read, they are tried in this order
            own = Family(own.key, tuple(sorted(own.branches, key=lambda branch: branch.compiled is not compiled)))
        known = next((family for family in families if family.key == own.key), None)
        if known is not None and _same_branches(known, own):
            own = known
        chosen = (own, *(family for family in families if family is not known))[:CHAIN_LENGTH]
        if chosen == families:
            table = starting_at(table, compiled_of(families).index(compiled))
        else:
            table = route_table(chosen, compiled)
        self._chain = (table, chosen)
        if self._call_address:
            self._vectorcall = self._call_address

    def uninstall_all(self) -> None:
        """Forget every compiled signature."""
        if self._call_address:
            self._vectorcall = 0
        self._chain = (NO_ROUTES, ())
        for key, _ in self.specialisations.items():
            self.specialisations.drop(key)

    @property
    def installed(self) -> tuple[Compiled, ...]:
        """What is tried natively: the kinds of arguments in the order of their last `install`."""
        return compiled_of(self._chain[1])

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        name = getattr(self, "__qualname__", None)
        return f"<pullback function {name}>" if name else f"<pullback function at {id(self):#x}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise ArgumentError(
            f"{self!r} cannot be pickled: its code belongs to this process; pickle the Python function and transform "
            "it again where it is loaded"
        )


def _same_branches(one: Family, other: Family) -> bool:
    return [branch.compiled for branch in one.branches] == [branch.compiled for branch in other.branches]
