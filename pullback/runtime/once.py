"""Build a value once though many threads ask for it at the same time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_IN_BUILD: ContextVar[bool] = ContextVar("pullback_in_build", default=False)


class _Build:
    """A value that some thread of some process is building."""

    __slots__ = ("done", "pid")

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.done = threading.Event()


class Once:
    """One thread builds the value of a key, the others wait for it.

    There is no lock that a fork could copy in its locked state: builds of the parent are told by their process id and
    begun anew in the child. A thread that is itself building something never waits, it builds a second copy, so threads
    cannot wait for one another in a circle.
    """

    __slots__ = ("_builds",)

    def __init__(self) -> None:
        self._builds: dict[Any, _Build] = {}

    def get(self, key: Any, find: Callable[[], T | None], build: Callable[[], T]) -> T:
        """What `find` returns, or else what `build` returns, which must be there for `find` afterwards.

        An error of `build` goes to the caller whose thread ran it; the others then try themselves.
        """
        while True:
            value = find()
            if value is not None:
                return value
            own = _Build()
            present = self._builds.setdefault(key, own)
            if present is own:
                return self._run(key, own, build)
            if present.pid != own.pid:
                self._forget(key, present)
            elif _IN_BUILD.get():
                return build()
            else:
                present.done.wait()

    def _run(self, key: Any, own: _Build, build: Callable[[], T]) -> T:
        token = _IN_BUILD.set(True)
        try:
            return build()
        finally:
            _IN_BUILD.reset(token)
            self._forget(key, own)
            own.done.set()

    def _forget(self, key: Any, build: _Build) -> None:
        if self._builds.get(key) is build:
            self._builds.pop(key, None)
