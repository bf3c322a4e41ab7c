"""While a trace runs, NumPy's creation functions give arrays that can take traced values.

NumPy has no protocol for `np.zeros` and its like, so these attributes of the numpy module (and names bound to them in
the user's modules and closures) are replaced by wrappers. A wrapper asks whether a trace runs in its own context:
other threads, and NumPy and pullback themselves, get the original. Everything is put back when the last trace ends.

Compiled modules (the generators of `numpy.random`, SciPy) leave no frame to be asked about and take what they get for
an ndarray, some without looking. Their own name for numpy means a copy of the module without replacements meanwhile.
"""

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from types import CellType, ModuleType
from typing import Any

import numpy as np

from pullback.tracer.location import is_internal_file
from pullback.tracer.trace import current

Row = tuple[Any, str, Any]  # owner, attribute, replacement
Finder = tuple[str, Callable[[ModuleType], list[Row]]]  # module name, what to replace once it is loaded


def wrapper(original: Any, traced: Callable[..., Any]) -> Any:
    """`original`, except when called from the user's code inside a trace."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current() is None or is_internal_file(sys._getframe(1).f_code.co_filename):
            return original(*args, **kwargs)
        return traced(*args, **kwargs)

    call.traced = traced  # type: ignore[attr-defined]
    return call


class Switch:
    """An object used by subscript (`np.r_`, `np.mgrid`): outside a trace the original answers, inside the other."""

    __slots__ = ("_original", "_traced")

    def __init__(self, original: Any, traced: Any) -> None:
        self._original = original
        self._traced = traced

    def __getitem__(self, key: Any) -> Any:
        inside = current() is not None and not is_internal_file(sys._getframe(1).f_code.co_filename)
        return (self._traced if inside else self._original)[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __len__(self) -> int:
        return len(self._original)


class Patcher:
    """Replaces attributes of namespaces, counted: put back when nobody needs them any more.

    fixed : (namespace, name, replacement) of what is always replaced
    finders : for modules that the user may have imported or not, what to replace in them
    elsewhere : replaced too, but not where the user's own modules have a name for the same object
    """

    def __init__(self, fixed: Iterable[Row], finders: Iterable[Finder] = (), elsewhere: Iterable[Row] = ()) -> None:
        self._lock = threading.RLock()
        self._finders = list(finders)
        self._fixed = tuple(fixed)
        self._by_id = {id(getattr(owner, name)): new for owner, name, new in self._fixed}
        rows = (*self._fixed, *elsewhere)
        self._originals = [(owner, name, getattr(owner, name), new) for owner, name, new in rows]
        self._plain = plain_numpy()
        self._modules_seen = 0
        self._count = 0
        self._spaces: dict[int, tuple[dict[str, Any], int, dict[str, Any]]] = {}
        self._cells: dict[int, tuple[CellType, int, Any]] = {}

    @contextmanager
    def active(self, spaces: Iterable[dict[str, Any]] = (), cells: Iterable[CellType] = ()) -> Iterator[None]:
        """Replacements in force; `spaces` are the global namespaces of the user's functions, `cells` the variables of
        their closures."""
        taken = list({id(s): s for s in spaces}.values())
        held: list[CellType] = []
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._find_optional()
                for owner, name, _, new in self._originals:
                    setattr(owner, name, new)
            for space in taken:
                self._enter(space)
            held += [cell for cell in {id(c): c for c in cells}.values() if self._enter_cell(cell)]
        try:
            yield
        finally:
            with self._lock:
                for space in taken:
                    self._leave(space)
                for cell in held:
                    self._leave_cell(cell)
                self._count -= 1
                if self._count == 0:
                    for owner, name, original, _ in self._originals:
                        setattr(owner, name, original)

    def replacement(self, original: Any) -> Any:
        """What is put in the place of `original`, or `original` itself."""
        return self._by_id.get(id(original), original)

    def traced(self, fn: Any) -> Any:
        """What stands for `fn` inside a trace, where it is one of the replaced functions itself."""
        return getattr(self._by_id.get(id(fn)), "traced", fn)

    def _find_optional(self) -> None:
        """Take in the modules that have been imported since."""
        for finder in list(self._finders):
            module = sys.modules.get(finder[0])
            if module is None:
                continue
            self._finders.remove(finder)
            for owner, name, traced in finder[1](module):
                original = getattr(owner, name)
                new = wrapper(original, traced)
                self._by_id[id(original)] = new
                self._originals.append((owner, name, original, new))
        if len(sys.modules) != self._modules_seen:
            self._modules_seen = len(sys.modules)
            known = {id(owner) for owner, _, original, _ in self._originals if original is np}
            self._originals += [
                (module, name, np, self._plain) for module, name in compiled_users() if id(module) not in known
            ]

    def _enter(self, space: dict[str, Any]) -> None:
        known = self._spaces.get(id(space))
        if known is not None:
            self._spaces[id(space)] = (space, known[1] + 1, known[2])
            return
        saved = {name: value for name, value in list(space.items()) if id(value) in self._by_id}
        for name, value in saved.items():
            space[name] = self._by_id[id(value)]
        self._spaces[id(space)] = (space, 1, saved)

    def _leave(self, space: dict[str, Any]) -> None:
        _, count, saved = self._spaces[id(space)]
        if count > 1:
            self._spaces[id(space)] = (space, count - 1, saved)
            return
        del self._spaces[id(space)]
        for name, value in saved.items():
            if space.get(name) is self._by_id[id(value)]:
                space[name] = value

    def _enter_cell(self, cell: CellType) -> bool:
        """Whether the variable holds a function that is replaced."""
        known = self._cells.get(id(cell))
        original = cell.cell_contents if known is None else known[2]
        new = self._by_id.get(id(original))
        if new is None:
            return False
        self._cells[id(cell)] = (cell, 1 if known is None else known[1] + 1, original)
        cell.cell_contents = new
        return True

    def _leave_cell(self, cell: CellType) -> None:
        _, count, original = self._cells[id(cell)]
        if count > 1:
            self._cells[id(cell)] = (cell, count - 1, original)
            return
        del self._cells[id(cell)]
        if cell.cell_contents is self._by_id[id(original)]:
            cell.cell_contents = original


def plain_numpy() -> ModuleType:
    """The numpy module as it is now, under whatever replacements come later."""
    return plain_copy(np)


def plain_copy(module: ModuleType) -> ModuleType:
    """A module with all the names of `module`; what it loads only when asked comes from there."""
    plain = ModuleType(module.__name__)
    vars(plain).update(vars(module))
    vars(plain)["__getattr__"] = functools.partial(getattr, module)
    return plain


def compiled_users() -> list[tuple[ModuleType, str]]:
    """The compiled modules that have imported numpy, and their names for it."""
    suffixes = tuple(EXTENSION_SUFFIXES)
    return [
        (module, name)
        for module in list(sys.modules.values())
        if isinstance(module, ModuleType) and str(vars(module).get("__file__")).endswith(suffixes)
        for name, value in list(vars(module).items())
        if value is np
    ]


def wrappers(owner: Any, replacements: Mapping[str, Callable[..., Any]]) -> list[tuple[Any, str, Any]]:
    """The rows of a `Patcher` for functions of one module; names that this NumPy does not have are left out."""
    return [
        (owner, name, wrapper(getattr(owner, name), traced))
        for name, traced in replacements.items()
        if hasattr(owner, name)
    ]
