"""Compiled math functions over arrays, and errors in units in the last place."""

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from mpmath import mp, mpf

from pullback.codegen.math import MATH
from pullback.codegen.math.standalone import elementwise_module
from pullback.codegen.target import LoadedObject, compile_module, host_target, load_object

ELEMENTS = {np.dtype("f8"): "double", np.dtype("f4"): "float"}


class Kernel:
    """`kernel(x, ...)`: a function of `MATH` compiled for one dtype and vector width."""

    def __init__(self, name: str, dtype: str, lanes: int, **static: int) -> None:
        self.dtype, self.lanes = np.dtype(dtype), lanes
        function = MATH[name]
        module = elementwise_module(function, ELEMENTS[self.dtype], lanes, host_target(), **static)
        self._object: LoadedObject = load_object(compile_module(str(module), host_target()), ["apply"])
        arguments = [ctypes.c_void_p, ctypes.c_int64] + [ctypes.c_void_p] * function.arity
        self._call = ctypes.CFUNCTYPE(None, *arguments)(self._object.address("apply"))

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        count = len(arrays[0])
        padded = -count % self.lanes
        inputs = [np.concatenate([x, np.ones(padded, self.dtype)]).astype(self.dtype) for x in arrays]
        out = np.empty(count + padded, self.dtype)
        self._call(out.ctypes.data, out.size, *(x.ctypes.data for x in inputs))
        return out[:count]


def exact_values(reference: Callable[..., mpf], arrays: Sequence[np.ndarray]) -> list[mpf]:
    """The reference at each point, in 40 digits."""
    with mp.workdps(40):
        return [reference(*(mpf(float(x)) for x in point)) for point in zip(*arrays, strict=True)]


def error_in_ulp(got: float, exact: mpf, dtype: np.dtype, at_least: float = 0.0) -> float:
    """|got - exact| in units in the last place of `exact`, or of `at_least` if that is larger."""
    info = np.finfo(dtype)
    with mp.workdps(40):
        size = max(abs(exact), mpf(at_least))
        if size > mpf(float(info.max)):
            return 0.0 if abs(got) == np.inf and (got > 0) == (exact > 0) else np.inf
        if not np.isfinite(got):
            return 0.0 if np.isinf(got) and size > mpf(float(info.max)) * (1 - mpf(2) ** -info.nmant) else np.inf
        exponent = max(int(mp.frexp(size)[1]) if size else -(10**6), info.minexp + 1)
        return float(abs(mpf(float(got)) - exact) / mpf(2) ** (exponent - info.nmant - 1))
