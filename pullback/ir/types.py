"""Types of values: a dtype and a static shape, compared by content."""

import math
import re
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.errors import ParseError

DType = np.dtype[Any]
Shape = tuple[int, ...]

DTYPE_NAMES: dict[DType, str] = {
    np.dtype(kind): name
    for kind, name in [
        (np.bool_, "bool"),
        (np.int8, "i8"),
        (np.int16, "i16"),
        (np.int32, "i32"),
        (np.int64, "i64"),
        (np.uint8, "u8"),
        (np.uint16, "u16"),
        (np.uint32, "u32"),
        (np.uint64, "u64"),
        (np.float16, "f16"),
        (np.float32, "f32"),
        (np.float64, "f64"),
        (np.complex64, "c64"),
        (np.complex128, "c128"),
    ]
}
DTYPES_BY_NAME: dict[str, DType] = {name: dtype for dtype, name in DTYPE_NAMES.items()}

BOOL = np.dtype(np.bool_)
I64 = np.dtype(np.int64)
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)


class TensorType:
    """dtype and shape of a value; use `tensor_type` to make one (equal types are mostly the same object)."""

    __slots__ = ("_hash", "dtype", "shape", "size")

    dtype: DType
    shape: Shape
    size: int

    def __init__(self, dtype: DType, shape: Shape) -> None:
        self.dtype = dtype
        self.shape = shape
        self.size = math.prod(shape)
        self._hash = hash((dtype, shape))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    @property
    def is_inexact(self) -> bool:
        """Floating or complex: the dtypes that carry a gradient."""
        return self.dtype.kind in "fc"

    def with_shape(self, shape: Shape) -> "TensorType":
        return tensor_type(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> "TensorType":
        return tensor_type(dtype, self.shape)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, TensorType) and self.dtype == other.dtype and self.shape == other.shape

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{DTYPE_NAMES[self.dtype]}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"TensorType({self})"


@lru_cache(maxsize=65536)
def tensor_type(dtype: DType, shape: Shape = ()) -> TensorType:
    """The type of `dtype` and `shape`; memoised, so making one costs a dictionary lookup."""
    return TensorType(np.dtype(dtype), shape)


_TYPE = re.compile(r"\s*([a-z]\w*)\s*(?:\[([\d,\s]*)\])?\s*$")


def parse_type(text: str) -> TensorType:
    """Read `f64[4,3]`; a bare dtype is a scalar."""
    match = _TYPE.match(text)
    if match is None or match[1] not in DTYPES_BY_NAME:
        raise ParseError(
            f"not a type: {text!r}; expected a dtype ({', '.join(DTYPES_BY_NAME)}) and a shape, as f64[4,3]"
        )
    dims = [d for d in (match[2] or "").split(",") if d.strip()]
    return tensor_type(DTYPES_BY_NAME[match[1]], tuple(int(d) for d in dims))


def real_dtype(dtype: DType) -> DType:
    """The dtype of the real part: float32 for complex64, float64 for complex128, else itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def complex_dtype(dtype: DType) -> DType:
    """The complex dtype whose parts are `dtype`; complex itself stays."""
    return dtype if dtype.kind == "c" else np.result_type(dtype, np.complex64)
