"""What an argument leaf is: its type, and whether it came as an array, a NumPy scalar or a Python number."""

from typing import Any, NamedTuple

import numpy as np

from pullback.errors import ArgumentError
from pullback.ir.index import memory_order
from pullback.ir.types import DTYPE_NAMES, TensorType, tensor_type
from pullback.tracer.array import PythonType, TracedScalar, TracedValue
from pullback.tracer.cell import element_strides
from pullback.tracer.layout import Order


class Spec(NamedTuple):
    """A traced argument leaf. Hashable, so a tuple of them (with the tree) is the key of a specialisation.

    python : the type of a Python number, which is weak in promotion (NEP 50)
    scalar : a NumPy scalar or a Python number; else an array
    order : memory order of an array that is not in C order; it decides which reshapes are views
    """

    type: TensorType
    python: PythonType | None = None
    scalar: bool = False
    order: Order | None = None


class Static(NamedTuple):
    """An argument leaf that is handed on as it is: a string, a function, a flag object."""

    value: Any


INT64 = np.iinfo(np.int64)


def describe(leaf: Any, where: str = "an argument") -> Spec | Static:
    """What `leaf` is traced as.

    Raises
    ------
    ArgumentError : an array of a dtype or class that cannot be traced; `where` names the argument.
    """
    kind = type(leaf)
    if kind is np.ndarray:
        return _describe_array(leaf, where)
    if kind is float or kind is complex or kind is bool:
        return Spec(_PYTHON_TYPES[kind], kind, True)
    if kind is int:
        return Spec(_PYTHON_TYPES[int], int, True) if INT64.min <= leaf <= INT64.max else Static(leaf)
    if isinstance(leaf, TracedValue):
        return _describe_traced(leaf)
    if isinstance(leaf, np.generic):
        if leaf.dtype not in DTYPE_NAMES:
            return Static(leaf)
        return Spec(tensor_type(leaf.dtype, ()), None, True)
    if isinstance(leaf, np.ndarray):
        _refuse_subclass(leaf, where)
    if hasattr(leaf, "__array__") and hasattr(leaf, "dtype") and not isinstance(leaf, type):
        return _describe_array(np.asarray(leaf), where)
    return Static(leaf)


_PYTHON_TYPES: dict[Any, TensorType] = {
    python: tensor_type(np.dtype(dtype), ())
    for python, dtype in ((float, np.float64), (complex, np.complex128), (bool, np.bool_), (int, np.int64))
}


def _describe_array(array: Any, where: str) -> Spec:
    dtype = array.dtype
    if dtype not in DTYPE_NAMES:
        native = dtype.newbyteorder("=")
        if native not in DTYPE_NAMES:
            names = ", ".join(str(d) for d in DTYPE_NAMES)
            raise ArgumentError(f"{where} has dtype {dtype}, which cannot be traced; convert it to one of {names}")
        dtype = native
    order = memory_order(array.shape, array.strides, array.flags.c_contiguous)
    return Spec(tensor_type(dtype, array.shape), None, False, order)


def _refuse_subclass(leaf: Any, where: str) -> None:
    if isinstance(leaf, np.ma.MaskedArray):
        raise ArgumentError(f"{where} is a masked array; pass its data and mask as two arrays and use np.where")
    raise ArgumentError(f"{where} is a {type(leaf).__name__}, a subclass of ndarray; pass np.asarray(x) instead")


def _describe_traced(leaf: TracedValue) -> Spec:
    type_ = tensor_type(leaf.dtype, leaf.shape)
    if isinstance(leaf, TracedScalar):
        return Spec(type_, leaf.python, True)
    return Spec(type_, None, False, memory_order(leaf.shape, element_strides(leaf), False))
