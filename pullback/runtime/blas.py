"""The BLAS and LAPACK that NumPy itself uses, through their function pointers.

NumPy's wheels bring an OpenBLAS whose names have a prefix and a suffix (`scipy_cblas_dgemm64_`, `scipy_dpotrf_64_`),
other builds link plain names. What NumPy's linear algebra module is linked with is found by asking the dynamic linker
for names as that module sees them, so nothing is loaded that was not loaded before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from pullback.record import record

_SPELLINGS = (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", ""))
"""Prefixes and suffixes, the likeliest first. A suffix of 64 means 64-bit integers."""

_PROBE = "cblas_dgemm"


@record(frozen=True, slots=True)
class Blas:
    """Where the routines are.

    Names are logical: `cblas_dgemm` is the C interface of a BLAS routine, `lapack_dpotrf` the Fortran interface of a
    LAPACK routine (all arguments by address), `openblas_set_num_threads` one of OpenBLAS about itself.

    Attributes
    ----------
    int_bytes : size of its integers, 8 or 4; 0 if there is no library
    prefix, suffix : around each name
    """

    int_bytes: int
    prefix: str = ""
    suffix: str = ""

    @staticmethod
    def find() -> Blas:
        """The library behind NumPy's linear algebra; one without routines if there is none that is known."""
        for prefix, suffix in _SPELLINGS:
            candidate = Blas(8 if suffix else 4, prefix, suffix)
            if candidate.address(_PROBE):
                return candidate
        return Blas(0)

    def __bool__(self) -> bool:
        return self.int_bytes != 0

    def address(self, name: str) -> int | None:
        """The address of a routine, or None."""
        kind, _, routine = name.partition("_")
        if kind == "cblas":
            return self._exported(f"{self.prefix}{name}{self.suffix}")
        if kind == "openblas":
            return self._exported(f"{self.prefix}{name}{self.suffix}")
        if kind == "lapack":
            return self._exported(f"{self.prefix}{routine}_{self.suffix}")
        return None

    def symbols(self, names: Iterable[str]) -> dict[str, int]:
        """Addresses of those of the routines that are there."""
        found = {name: self.address(name) for name in names}
        return {name: address for name, address in found.items() if address}

    @property
    def has_thread_control(self) -> bool:
        """Can it be told how many threads to use."""
        names = ("openblas_get_num_threads", "openblas_set_num_threads")
        return all(self.address(name) is not None for name in names)

    @property
    def threads(self) -> int | None:
        """How many threads an OpenBLAS may use; None: it cannot be asked."""
        address = self._exported(f"{self.prefix}openblas_get_num_threads{self.suffix}")
        return ctypes.CFUNCTYPE(ctypes.c_int)(address)() if address else None

    def set_threads(self, count: int) -> bool:
        """Set that number; False: it cannot be set."""
        address = self._exported(f"{self.prefix}openblas_set_num_threads{self.suffix}")
        if address:
            setter: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_int)(address)
            setter(count)
        return bool(address)

    def _exported(self, name: str) -> int | None:
        if not self.int_bytes:
            return None
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(_linear_algebra(), name))
        except ValueError:
            return None


@cache
def _linear_algebra() -> ctypes.CDLL:
    """NumPy's module once more, which gives a handle to it and to all it depends on."""
    return ctypes.CDLL(np.linalg._umath_linalg.__file__)
