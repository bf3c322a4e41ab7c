"""Is the running interpreter laid out as native code expects? Asked once, when the first function is made.

Native entries read floats, tuples and arrays at fixed offsets. Each offset is compared here with the live interpreter:
objects with known contents are made and looked into. Where anything differs, or where reference counts are not plain
numbers (free-threaded builds), nothing native reads Python objects and the ctypes path serves.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.codegen.object import Layout
from pullback.ir.types import DTYPE_NAMES
from pullback.record import record
from pullback.runtime.capi import array_type_address, peek, scalar_allocator


@record(frozen=True, slots=True)
class LayoutReport:
    """What was found.

    Attributes
    ----------
    layout : the offsets, or None where native code cannot read objects
    reason : why not; empty if it can
    """

    layout: Layout | None
    reason: str = ""


def find_layout(function_fields: int) -> LayoutReport:
    """Look at the interpreter.

    Parameters
    ----------
    function_fields : size of a function object before its native fields
    """
    reason = _unfit_build()
    if reason:
        return LayoutReport(None, reason)
    layout = Layout(
        abi=_abi_name(),
        function_fields=function_fields,
        tuple_items=tuple.__basicsize__,
        bytes_data=bytes.__basicsize__ - 1,
    )
    wrong = first_difference(layout)
    return LayoutReport(None, f"unexpected layout of {wrong}") if wrong else LayoutReport(layout)


def first_difference(layout: Layout) -> str:
    """What is not laid out like that; empty if everything is. Facts build on one another, so the first one ends it."""
    return next((name for name, holds in _facts(layout) if not holds), "")


def _abi_name() -> str:
    implementation = sys.implementation
    return "-".join([implementation.cache_tag or "", np.__version__, sys.platform, platform.machine()])


def _unfit_build() -> str:
    if sys.implementation.name != "cpython":
        return f"the interpreter is {sys.implementation.name}, not CPython"
    if "t" in getattr(sys, "abiflags", "") or (sys.platform == "win32" and sysconfig.get_config_var("Py_GIL_DISABLED")):
        return "the interpreter is free-threaded"
    if hasattr(sys, "gettotalrefcount"):
        return "the interpreter is a debug build"
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return "the platform is not 64-bit little-endian"
    return ""


def _facts(layout: Layout) -> Iterator[tuple[str, bool]]:
    """Names of layouts, and whether each is as expected.

    A pointer is followed only when what is known around it was right. What is looked into is held by a name meanwhile.
    """
    number, pair, items, keyed = complex(2, -3), ("x", 7.5), ["x", 7.5], {1: 2, 3: 4}
    samples = (number, pair, items, keyed, _BYTES, np.zeros(1))
    yield "objects", all(peek(id(x) + layout.object_type) == id(type(x)) for x in samples)
    yield "reference counts", _counts_plainly()
    yield "float", peek(id(pair[1]) + layout.number_value, ctypes.c_double) == pair[1]
    yield "complex", complex(*_words(id(number) + layout.number_value, ctypes.c_double)) == number
    yield "tuple", _size(layout, pair) == 2 and _words(id(pair) + layout.tuple_items) == [id(x) for x in pair]
    yield "list", list.__basicsize__ == _LIST_BYTES and _size(layout, items) == 2
    yield "list items", _words(peek(id(items) + layout.list_items)) == [id(x) for x in items]
    yield "dict", _size(layout, keyed) == 2
    yield "bytes", ctypes.string_at(id(_BYTES) + layout.bytes_data, len(_BYTES)) == _BYTES
    yield "NumPy's function table", array_type_address() == id(np.ndarray)
    yield "numpy.ndarray", all(_array_fits(layout, array) for array in _sample_arrays())
    yield "NumPy scalars", all(_scalar_fits(layout, dtype) for dtype in DTYPE_NAMES if dtype.kind != "b")


_LIST_BYTES = 40
_BYTES = b"\1\2 native bytes \3"


def _words(address: int, kind: Any = ctypes.c_void_p) -> list[Any]:
    """The two words at `address`."""
    return [peek(address, kind), peek(address + 8, kind)]


def _size(layout: Layout, container: object) -> int:
    return int(peek(id(container) + layout.container_size, ctypes.c_ssize_t))


def _counts_plainly() -> bool:
    thing = object()
    before = peek(id(thing), ctypes.c_uint32)
    others = [thing, thing]
    return bool(peek(id(thing), ctypes.c_uint32) == before + len(others))


def _sample_arrays() -> Iterator[np.ndarray[Any, Any]]:
    yield np.arange(6.0).reshape(2, 3)
    yield np.arange(24, dtype=np.int16).reshape(2, 3, 4)[:, ::2, 1]
    yield np.array(1.5, np.float32)
    yield np.zeros((3, 0), np.complex64)
    yield np.arange(3.0).astype(">f8")


def _array_fits(layout: Layout, array: np.ndarray[Any, Any]) -> bool:
    place = id(array)
    dims = peek(place + layout.array_dims)
    descr = peek(place + layout.array_descr)
    return (
        peek(place + layout.array_data) == array.__array_interface__["data"][0]
        and peek(place + layout.array_ndim, ctypes.c_int) == array.ndim
        and peek(place + layout.array_flags, ctypes.c_int) == array.flags.num
        and descr == id(array.dtype)
        and (array.ndim == 0 or peek(place + layout.array_dims + 8) == dims + 8 * array.ndim)  # the strides
        and all(peek(dims + 8 * axis, ctypes.c_ssize_t) == extent for axis, extent in enumerate(array.shape))
        and peek(descr + layout.descr_type_num, ctypes.c_int) == array.dtype.num
        and chr(peek(descr + layout.descr_byteorder, ctypes.c_ubyte)) == array.dtype.byteorder
    )


def _scalar_fits(layout: Layout, dtype: np.dtype[Any]) -> bool:
    scalar = dtype.type(3)
    found = ctypes.string_at(id(scalar) + layout.number_value, dtype.itemsize)
    shared = scalar_allocator(dtype.type) == scalar_allocator()
    return shared and type(scalar) is dtype.type and found == scalar.tobytes()
