"""NumPy 2's type rules (NEP 50), asked of NumPy itself and remembered."""

from functools import lru_cache
from typing import Any

import numpy as np

from pullback.ir.types import BOOL, DType

# How one operand takes part in promotion: a dtype, or the Python type of a number that takes the others' dtype.
Key = DType | type[int] | type[float] | type[complex]
PythonNumber = bool | int | float | complex


@lru_cache(maxsize=16384)
def ufunc_types(
    ufunc: np.ufunc, keys: tuple[Key, ...], dtype: DType | None = None, casting: str = "same_kind"
) -> tuple[DType, ...]:
    """The dtypes in which `ufunc` takes and gives its operands.

    Raises
    ------
    TypeError : NumPy has no loop for these dtypes.
    """
    if all(isinstance(k, type) for k in keys):  # Python numbers alone count with their default dtypes
        keys = tuple([default_dtype(k) for k in keys])  # type: ignore[arg-type]
    types: Any = (*keys, *(None,) * ufunc.nout)
    if dtype is None:
        return ufunc.resolve_dtypes(types, casting=casting)  # type: ignore[arg-type]
    signature: Any = (*(None,) * ufunc.nin, *(dtype,) * ufunc.nout)
    return ufunc.resolve_dtypes(types, signature=signature, casting=casting)  # type: ignore[arg-type]


@lru_cache(maxsize=4096)
def common_dtype(keys: tuple[Key, ...]) -> DType:
    """`np.result_type` of operands; Python numbers by type."""
    return np.result_type(*[_EXAMPLES.get(k, k) for k in keys])


_EXAMPLES: dict[Any, Any] = {int: 1, float: 1.0, complex: 1j}


def default_dtype(python: type) -> DType:
    """The dtype of a Python number that met nothing else."""
    return BOOL if python is bool else np.result_type(_EXAMPLES[python])


def sum_dtype(dtype: DType) -> DType:
    """What `sum`, `prod` and their running forms accumulate in: integers at least as wide as a pointer."""
    if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize < 8):
        return np.dtype(np.int_)
    if dtype.kind == "u" and dtype.itemsize < 8:
        return np.dtype(np.uint)
    return dtype


def inexact_dtype(dtype: DType) -> DType:
    """float64 for integers and booleans, else itself: the dtype of means and transcendental functions."""
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def python_result(name: str, x: type, y: type) -> type:
    """The Python type of an operator between two Python numbers."""
    rank = (bool, int, float, complex)
    wide = rank[max(rank.index(x), rank.index(y))]
    if name in ("bitwise_and", "bitwise_or", "bitwise_xor") and wide is bool:
        return bool
    if name in ("true_divide", "divide") and wide in (bool, int):
        return float
    return int if wide is bool else wide
