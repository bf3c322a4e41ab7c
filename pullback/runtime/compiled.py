"""A compiled signature in memory: its addresses, and the ways to call it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from pullback.codegen.object import CompiledObject
from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.types import TensorType, tensor_type
from pullback.record import record
from pullback.runtime.convert import Array, MisfitError, build_result, canonical, read_arguments
from pullback.runtime.watch import Watch

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_ARENA_ALIGN = 64


class Loaded(Protocol):
    """Object code in memory; it lives as long as this object."""

    def address(self, name: str) -> int:
        """Where an exported symbol is."""


@record(frozen=True, slots=True)
class Miss:
    """Why compiled code returned no result.

    Attributes
    ----------
    compiled : the specialisation
    status : 0: the arguments do not fit it; k > 0: guard k was not as traced; negative: the kernel's error number
    """

    compiled: Compiled
    status: int


@record(eq=False)
class Compiled:
    """One compiled signature, loaded.

    Attributes
    ----------
    spec : what was loaded
    loaded : the code; it is freed with this object
    objects : the Python objects of the signature's slots
    entry : address of the native entry, 0 if there is none or it must not be used
    watch : the words that the entry compares; None if the signature is not watched
    make_invoker : makes the native function that only tries this specialisation; None: there are no native functions
    """

    spec: CompiledObject
    loaded: Loaded
    objects: tuple[object, ...]
    entry: int
    watch: Watch | None = None
    make_invoker: Callable[[Compiled], Callable[..., Any]] | None = field(repr=False, default=None)

    @cached_property
    def invoke(self) -> Callable[..., Any]:
        """`invoke(*args, **kwargs)`: the result, or a `Miss`. Native where that is possible."""
        if self.entry and self.make_invoker is not None:
            return self.make_invoker(self)
        return lambda *args, **kwargs: self.call(args, kwargs)

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any] = MappingProxyType({})) -> Any:
        """The result, or a `Miss`; through ctypes."""
        if self.watch is not None and not self.watch.holds():
            return Miss(self, 0)
        try:
            arrays = read_arguments(self.spec.signature, self.objects, args, kwargs)
        except MisfitError:
            return Miss(self, 0)
        status, results = self._call_kernel(arrays)
        if status:
            return Miss(self, status)
        return build_result(self.spec.signature.result, self.objects, iter(results))

    def run(self, arrays: Sequence[Any]) -> tuple[int, list[Array]]:
        """Call the kernel on flat arrays.

        Parameters
        ----------
        arrays : one for each argument of the kernel, of its dtype and shape; any layout, numbers may stand for scalars

        Returns
        -------
        The status and the kernel's results, fresh; they are garbage unless the status is 0.

        Raises
        ------
        TypeRuleError, ShapeError : number, dtype or shape of the arrays is not the kernel's
        """
        wanted = self.spec.signature.arg_leaves()
        if len(arrays) != len(wanted):
            raise TypeRuleError(f"the kernel takes {len(wanted)} arrays, found {len(arrays)}")
        pairs = zip(arrays, wanted, strict=True)
        return self._call_kernel([_as_argument(array, spec.type, place) for place, (array, spec) in enumerate(pairs)])

    def _call_kernel(self, arrays: list[Array]) -> tuple[int, list[Array]]:
        results = [np.empty(spec.type.shape, spec.type.dtype) for spec in self.spec.signature.result_leaves()]
        scratch = np.empty(self.spec.arena_bytes + _ARENA_ALIGN, np.uint8) if self.spec.arena_bytes else None
        arena = 0 if scratch is None else -(-_data(scratch) // _ARENA_ALIGN) * _ARENA_ALIGN
        status = self._kernel(_pointers(arrays), _pointers(results), arena)
        return int(status), results

    @cached_property
    def _kernel(self) -> Callable[..., int]:
        kernel: Callable[..., int] = _KERNEL(self.loaded.address(self.spec.kernel))
        return kernel


def _pointers(arrays: list[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*[_data(array) for array in arrays])


def _data(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]  # half the cost of `array.ctypes.data`
    return address


def _as_argument(given: Any, type_: TensorType, place: int) -> Array:
    array = canonical(np.asarray(given))
    if array.dtype != type_.dtype:
        found = f"{array.dtype}{list(array.shape)}"
        raise TypeRuleError(f"argument {place} of the kernel is {type_}, found an array of {found}")
    if array.shape != type_.shape:
        raise ShapeError(f"argument {place} of the kernel is {type_}, found {tensor_type(array.dtype, array.shape)}")
    return array
