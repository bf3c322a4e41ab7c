"""Which line of the user's file is running: the first frame outside pullback and NumPy."""

import functools
import linecache
import os
import sys
from types import CodeType

import numpy as np

from pullback.ir.graph import Location

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
STANDARD = os.path.dirname(os.__file__) + os.sep
INSTALLED = ("/site-packages/", "/dist-packages/", "\\site-packages\\")
_EXAMPLES = _PACKAGE + "demo" + os.sep  # programs written as a user writes them


@functools.cache
def is_internal_file(file: str) -> bool:
    """Whether `file` belongs to pullback or NumPy, whose lines mean nothing to the user."""
    if file.startswith(_PACKAGE):
        return not file.startswith(_EXAMPLES)
    return file.startswith((_NUMPY, "<__array_function__"))


def is_library_file(file: str) -> bool:
    """Whether `file` belongs to the standard library or to an installed package."""
    if not file or file.startswith("<frozen") or is_internal_file(file):
        return True
    return file.startswith(STANDARD) or any(part in file for part in INSTALLED)


class Locator:
    """Finds the user's line; remembers each place, so that a line is decoded once.

    Code objects are known by their identity, and kept alive so that it stays theirs.
    """

    __slots__ = ("_internal", "_kept", "_places")

    _internal: set[int]
    _kept: list[CodeType]
    _places: dict[tuple[int, int], Location]

    def __init__(self) -> None:
        self._internal = set()
        self._kept = []
        self._places = {}

    def here(self, depth: int = 1) -> Location | None:
        """The nearest line outside pullback and NumPy among the callers of the caller."""
        frame = sys._getframe(depth)
        internal = self._internal
        while frame is not None:
            code = frame.f_code
            if id(code) not in internal:
                place = self._places.get((id(code), frame.f_lasti))
                if place is not None:
                    return place
                self._kept.append(code)
                if not is_internal_file(code.co_filename):
                    place = Location(code.co_filename, frame.f_lineno or 0, code.co_name)
                    self._places[id(code), frame.f_lasti] = place
                    return place
                internal.add(id(code))
            frame = frame.f_back  # type: ignore[assignment]
        return None

    def users(self, depth: int = 1) -> Location | None:
        """For an error: the nearest line outside all libraries, or that of `here` where there is none."""
        frame = sys._getframe(depth)
        while frame is not None:
            code = frame.f_code
            if not is_library_file(code.co_filename):
                return Location(code.co_filename, frame.f_lineno or 0, code.co_name)
            frame = frame.f_back  # type: ignore[assignment]
        return self.here(depth + 1)


def describe(place: Location | None) -> str:
    """`at FILE:LINE in FUNCTION: source text`, for the end of an error message; empty when nothing is known."""
    if place is None:
        return ""
    text = linecache.getline(place.file, place.line).strip()
    where = f"{place.file}:{place.line}" + (f" in {place.function}" if place.function else "")
    return f"\n  at {where}" + (f": {text}" if text else "")
