"""The native type of function objects: a class of Python methods plus two native fields, made through the C API.

The interpreter calls an instance through the address in its `_vectorcall` field; while that is 0 it uses `__call__`.
`_chain` is a Python object to the interpreter (counted, and seen by the garbage collector like a slot), and a table of
entries to `pb_call`. The type also binds natively, as functions do, and says so (`METHOD_DESCRIPTOR`), so that a method
call on an instance makes no bound method.

Multiple inheritance of layouts, `__slots__` and a class statement cannot give a vectorcall field; a type from a spec
whose base is an ordinary class can, on all supported versions, and the base brings dictionary, weak references and
garbage collection.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, TypeVar

from pullback.runtime.capi import hold_forever
from pullback.runtime.function import NativeFunction

F = TypeVar("F", bound=NativeFunction)

_HAVE_VECTORCALL, _METHOD_DESCRIPTOR, _HAVE_GC = 1 << 11, 1 << 17, 1 << 14
_HAVE_VERSION_TAG = 1 << 18 if sys.version_info < (3, 12) else 0
_SLOT_DESCR_GET, _SLOT_MEMBERS = 54, 72
_T_OBJECT_EX, _T_ULONGLONG, _T_PYSSIZET = 16, 18, 19
_READONLY = 1


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


def native_type(base: type[F], call_address: int, bind_address: int) -> type[F]:
    """A subclass of `base` whose instances are called natively.

    Parameters
    ----------
    base : an ordinary class, `NativeFunction` or derived from it
    call_address, bind_address : of `pb_call` and `pb_bind`
    """
    fields = base.__basicsize__
    members = (_Member * 4)(
        _Member(b"__vectorcalloffset__", _T_PYSSIZET, fields, _READONLY, None),
        _Member(b"_vectorcall", _T_ULONGLONG, fields, 0, None),
        _Member(b"_chain", _T_OBJECT_EX, fields + 8, 0, None),
        _Member(),
    )
    slots = (_Slot * 3)(
        _Slot(_SLOT_MEMBERS, ctypes.cast(members, ctypes.c_void_p)), _Slot(_SLOT_DESCR_GET, bind_address), _Slot()
    )
    flags = _HAVE_VECTORCALL | _METHOD_DESCRIPTOR | _HAVE_VERSION_TAG
    name = f"{base.__module__}.{base.__qualname__}".encode()
    spec = _Spec(name, fields + 16, 0, flags, slots)
    hold_forever((members, name))
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec), ctypes.py_object)
    make = prototype(("PyType_FromSpecWithBases", ctypes.pythonapi))
    made: Any = make(ctypes.byref(spec), (base,))
    made._call_address = call_address
    return made  # type: ignore[no-any-return]


def is_native(cls: type) -> bool:
    """Did the interpreter accept what `native_type` asked for."""
    wanted = _HAVE_VECTORCALL | _HAVE_GC
    return cls.__flags__ & wanted == wanted
