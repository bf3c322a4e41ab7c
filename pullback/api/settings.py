"""The options in force: those of the PULLBACK variable, changed for a block by `pullback.options(...)`."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from pullback.config import Options

_OPTIONS: ContextVar[Options | None] = ContextVar("pullback options", default=None)


@lru_cache(maxsize=1)
def _from_environment() -> Options:
    return Options.from_env()


def current_options() -> Options:
    """The options that a compilation in this context uses."""
    return _OPTIONS.get() or _from_environment()


@contextmanager
def options(**changes: Any) -> Iterator[Options]:
    """Change options for a block: ``with pullback.options(verify="each", time=True): ...``.

    The keys are those of the ``PULLBACK`` variable; text is read as there. Functions that are compiled inside use them,
    in this thread or task only.

    Raises
    ------
    OptionError : an unknown key or a bad value; the message lists the keys.
    """
    changed = current_options().override(**changes)
    token = _OPTIONS.set(changed)
    try:
        yield changed
    finally:
        _OPTIONS.reset(token)
