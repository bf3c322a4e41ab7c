"""What a function can see outside itself: closures, defaults, globals, the functions it calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pullback.tracer.trace import Trace


def unwrapped(fn: Any) -> Any:
    """The Python function behind partials, bound methods and decorators."""
    for _ in range(100):
        inner = getattr(fn, "__wrapped__", None) or getattr(fn, "__func__", None) or getattr(fn, "func", None)
        if inner is None:
            break
        fn = inner
    return fn


@dataclass(frozen=True)
class Environment:
    namespaces: tuple[dict[str, Any], ...]

    @contextmanager
    def no_randomness(self, state: Trace) -> Iterator[None]:
        yield


def environment_of(fn: Any) -> Environment:
    space = getattr(unwrapped(fn), "__globals__", None)
    return Environment(() if space is None else (space,))
