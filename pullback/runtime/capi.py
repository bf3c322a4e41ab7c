"""Addresses in the running process: CPython's and NumPy's C functions and objects, and the C library's.

Everything is looked up when asked for; nothing here runs at import.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.errors import CodegenError
from pullback.ir.types import DTYPE_NAMES

MISS_NAME = sys.intern("_native_miss")
"""The method that native code calls when no compiled entry takes the arguments."""

_ARRAY_API_SLOTS = {"numpy_new_from_descr": 94, "numpy_set_handler": 304}
_ARRAY_TYPE_SLOT = 2
_TP_ALLOC = 47


def peek(address: int, kind: Any = ctypes.c_void_p) -> Any:
    """The C value of `kind` at `address`."""
    return kind.from_address(address).value


def python_address(name: str) -> int | None:
    """Address of a function or datum that the interpreter exports."""
    return _exported(ctypes.pythonapi, name)


def _exported(library: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(library, name))
    except ValueError:
        return None


@lru_cache(maxsize=1)
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def process_address(name: str) -> int | None:
    """Address of a function of the C library, or of any library whose names are global."""
    if sys.platform == "win32":
        return _exported(ctypes.cdll.msvcrt, name)
    return _exported(_process(), name)


@lru_cache(maxsize=1)
def array_api() -> ctypes.Array[ctypes.c_void_p]:
    """NumPy's table of C functions."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    get = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    table = get(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return (ctypes.c_void_p * (max(_ARRAY_API_SLOTS.values()) + 1)).from_address(table)


def array_type_address() -> int | None:
    """What the table says is the array type; the check that the table is what it is taken for."""
    return array_api()[_ARRAY_TYPE_SLOT]


def type_slot(cls: type, slot: int) -> int | None:
    """A function pointer of a type object."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(("PyType_GetSlot", ctypes.pythonapi))
    address: int | None = get(cls, slot)
    return address


def scalar_allocator(scalar_type: type = np.float64) -> int | None:
    """`tp_alloc` of a NumPy scalar type: makes one with its value still to be written. The types share one."""
    return type_slot(scalar_type, _TP_ALLOC)


def hold_forever(thing: object) -> None:
    """Keep an object alive until the process ends: native code or a type object points into it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


@lru_cache(maxsize=1)
def _fixed_symbols() -> dict[str, int | Callable[[], int | None]]:
    table: dict[str, int | Callable[[], int | None]] = {
        "numpy_ndarray": id(np.ndarray),
        "numpy_true": id(np.True_),
        "numpy_false": id(np.False_),
        "numpy_new_scalar": scalar_allocator,
        "pb_miss_name": id(MISS_NAME),
    }
    for dtype in DTYPE_NAMES:
        table[f"numpy_descr_{dtype.name}"] = id(np.dtype(dtype.type))
        table[f"numpy_scalar_{dtype.name}"] = id(dtype.type)
    for name, slot in _ARRAY_API_SLOTS.items():
        table[name] = lambda slot=slot: array_api()[slot]  # type: ignore[misc]
    return table


def symbol_address(name: str) -> int | None:
    """The address behind a symbol's name: of NumPy, CPython, or the C library."""
    if name in _fixed_symbols():
        found = _fixed_symbols()[name]
        return found() if callable(found) else found
    return python_address(name) or process_address(name)


def symbol_addresses(names: Iterable[str], known: Callable[[str], int | None] = symbol_address) -> dict[str, int]:
    """Addresses of all the names.

    Raises
    ------
    CodegenError : one has no address in this process
    """
    found = {name: known(name) for name in names}
    missing = [name for name, address in found.items() if not address]
    if missing:
        raise CodegenError(f"compiled code needs {', '.join(missing)}, which this process does not have")
    return {name: address for name, address in found.items() if address}
