"""NumPy's functions where its protocols do not reach: traced values inside lists, or in arguments nobody asks about.

`np.linalg.norm([x, y])` and `np.interp(a, b, c, left=x)` never come to `__array_ufunc__` or `__array_function__`: NumPy
looks at the arguments themselves, and only at those its dispatchers name. A trace in which a traced value was about to
become a plain number is therefore run again with NumPy's functions replaced by objects that look everywhere. Not from
the start, because `f is np.tanh` would be false of them.
"""

import sys
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from pullback.tracer.array import TracedValue
from pullback.tracer.dispatch import Dispatch
from pullback.tracer.operands import holds
from pullback.tracer.patching import Row, plain_copy
from pullback.tracer.trace import current

Answer = Callable[[tuple[Any, ...], dict[str, Any]], Any]

SPACES = (np, np.linalg, np.fft)
SOUGHT = (TracedValue, FunctionType, MethodType)
"""Traced values; and functions, as `np.piecewise` takes them, which may return some."""


class Searching:
    """A NumPy function that answers as the tracer does wherever a traced value is among its arguments.

    It passes for the function in comparisons, as a key and in `isinstance`.
    """

    __slots__ = ("__wrapped__", "_answer")

    def __init__(self, original: Any, answer: Answer) -> None:
        self.__wrapped__ = original
        self._answer = answer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current() is not None and holds((*args, *kwargs.values()), SOUGHT):
            result = self._answer(args, kwargs)
            if result is not NotImplemented:
                return result
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __eq__(self, other: object) -> bool:
        return self.__wrapped__ is (other.__wrapped__ if isinstance(other, Searching) else other)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    @property  # type: ignore[misc]  # the stubs have a plain attribute; `isinstance` asks for it either way
    def __class__(self) -> Any:
        return type(self.__wrapped__)


class SearchingUfunc(Searching):
    """The same for a ufunc and its methods."""

    __slots__ = ("_methods",)

    def __init__(self, original: Any, answer: Answer, methods: dict[str, Searching]) -> None:
        super().__init__(original, answer)
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self.__wrapped__, name)


def rows(dispatch: Dispatch, replaced: Iterable[Row]) -> list[Row]:
    """What is put in the place of NumPy's functions, except those `replaced` already."""
    taken = {(id(owner), name) for owner, name, _ in replaced}
    found: list[Row] = []
    for space in SPACES:
        for name, value in vars(space).items():
            if (id(space), name) not in taken and not name.startswith("_"):
                searching = _searching(dispatch, value)
                if searching is not None:
                    found.append((space, name, searching))
    return found


def _searching(dispatch: Dispatch, value: Any) -> Searching | None:
    tables = dispatch.tables
    if isinstance(value, np.ufunc):
        if value not in tables.ufuncs and value not in tables.gufuncs:
            return None
        methods = {
            name: Searching(getattr(value, name), _ufunc_answer(dispatch, value, name)) for name in tables.ufunc_methods
        }
        return SearchingUfunc(value, _ufunc_answer(dispatch, value, "__call__"), methods)
    if callable(value) and not isinstance(value, type) and value in tables.functions:
        return Searching(value, lambda args, kwargs: dispatch.function(value, _types(args, kwargs), args, kwargs))
    return None


def _ufunc_answer(dispatch: Dispatch, ufunc: Any, method: str) -> Answer:
    return lambda args, kwargs: dispatch.ufunc(ufunc, method, args, kwargs)


def _types(args: tuple[Any, ...], kwargs: dict[str, Any]) -> set[type]:
    return {type(a) for a in (*args, *kwargs.values()) if hasattr(type(a), "__array_function__")}


def tracer_rows() -> list[Row]:
    """The tracer's own modules compare functions with `is`: they keep NumPy as it is."""
    plain = plain_copy(np)
    for space in SPACES[1:]:
        setattr(plain, space.__name__.rpartition(".")[2], plain_copy(space))
    package = __name__.split(".functions")[0]
    return [
        (module, name, plain)
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith(package)
        for name, value in list(vars(module).items())
        if value is np
    ]
