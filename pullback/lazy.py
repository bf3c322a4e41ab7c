"""Modules that are imported when they are first needed, so that ``import pullback`` stays cheap."""

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile. Imports, traces and passes make many objects that stay, and nothing to collect;
    looking through all of them again and again takes a quarter to a half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def importing() -> Iterator[None]:
    """`uncollected`, and what was made meanwhile counts as old: the next collection of young objects would look through
    all of a package, for nothing, and take a tenth of the time that importing it took."""
    with uncollected():
        yield
        if gc.get_freeze_count() == 0:  # else somebody has frozen objects, which must stay so
            gc.freeze()
            gc.unfreeze()


class LazyModule:
    """Stands for a module, and imports it when an attribute is first asked for.

    LLVM and the code generator, for example, are not loaded by a process that finds everything in its disk cache.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        with importing():
            module = importlib.import_module(self._name)
        found = getattr(module, attribute)
        self.__dict__[attribute] = found
        return found

    def __repr__(self) -> str:
        return f"<lazy module {self._name}>"
