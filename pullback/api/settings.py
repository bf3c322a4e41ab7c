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
    """The options in force in this context."""
    return _OPTIONS.get() or _from_environment()


@contextmanager
def options(**changes: Any) -> Iterator[Options]:
    """Change options for a block: ``with pullback.options(ties="all", time=True): g = pullback.grad(f)``.

    The keys are those of the ``PULLBACK`` variable; text is read as there. In force in this thread or task only.

    A function takes the options of the block in which it is *made* (by `grad`, `jit`, ...) and keeps them, wherever it
    is called: its compiled code is entered without asking for options. What makes and calls in one step (`vjp`, `jvp`,
    `scan` outside of a function, ...) takes those of the block it stands in. ``threads`` belongs to the process and can
    be set by the variable only.

    Raises
    ------
    OptionError : an unknown key or a bad value; the message lists the keys.
    """
    with in_force(current_options().override(**changes)) as changed:
        yield changed


@contextmanager
def in_force(chosen: Options) -> Iterator[Options]:
    """Exactly these options for a block."""
    token = _OPTIONS.set(chosen)
    try:
        yield chosen
    finally:
        _OPTIONS.reset(token)
