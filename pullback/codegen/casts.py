"""Conversions between dtypes, as NumPy's `astype`."""

from __future__ import annotations

import numpy as np

from pullback.codegen.lane import F16, Lane, element_type, vector_of
from pullback.codegen.llvm import FunctionBuilder, V, const, element_of, with_element
from pullback.ir.types import BOOL, F32, F64, I64, DType, real_dtype

U64 = np.dtype(np.uint64)


def cast_lane(b: FunctionBuilder, x: Lane, dtype: DType) -> Lane:
    """`x` in `dtype`; complex to real drops the imaginary part."""
    if x.dtype == dtype:
        return x
    if dtype == BOOL:
        return Lane(BOOL, _nonzero(b, x))
    if dtype.kind == "c":
        part = real_dtype(dtype)
        im = const(vector_of(part, x.lanes), 0) if x.im is None else _real(b, x.im, real_dtype(x.dtype), part)
        return Lane(dtype, _real(b, x.re, real_dtype(x.dtype), part), im)
    return Lane(dtype, _real(b, x.re, real_dtype(x.dtype), dtype))


def widen_half(b: FunctionBuilder, x: V) -> V:
    """float16 to float32, exact."""
    return b.cast("fpext", x, "float")


def narrow_half(b: FunctionBuilder, x: V) -> V:
    """float32 to float16, rounded."""
    return b.cast("fptrunc", x, "half")


def double_to_half(b: FunctionBuilder, x: V) -> V:
    """float64 to float16, rounded once: by way of a float32 rounded to odd, which keeps the second rounding honest.

    No processor converts directly, and LLVM would call a library function for each lane.
    """
    near = b.cast("fptrunc", x, "float")
    back = b.cast("fpext", near, "double")
    bits = b.bitcast(near, with_element(x.type, "i32"))
    too_far = b.fcmp("ogt", b.intrinsic("fabs", back), b.intrinsic("fabs", x))
    inexact = b.fcmp("one", back, x)
    toward_zero = b.sub(bits, b.cast("zext", too_far, "i32"))
    odd = b.or_(toward_zero, b.cast("zext", inexact, "i32"))
    return narrow_half(b, b.bitcast(odd, near.type))


def _nonzero(b: FunctionBuilder, x: Lane) -> V:
    if x.dtype.kind in "iu":
        return b.icmp("ne", x.re, 0)
    parts = [widen_half(b, x.re)] if x.dtype == F16 else x.parts
    tests = [b.fcmp("une", part, 0.0) for part in parts]
    return tests[0] if len(tests) == 1 else b.or_(tests[0], tests[1])


def _real(b: FunctionBuilder, x: V, source: DType, target: DType) -> V:
    if source == target:
        return x
    if source.kind == "f":
        return _from_float(b, x, source, target)
    if target.kind == "f":
        return _integer_to_float(b, x, source, target)
    if source.itemsize == target.itemsize and source != BOOL:
        return x
    if source.itemsize > target.itemsize:
        return b.cast("trunc", x, element_type(target))
    return b.cast("sext" if source.kind == "i" else "zext", x, element_type(target))


def _from_float(b: FunctionBuilder, x: V, source: DType, target: DType) -> V:
    if target.kind == "f":
        if target == F16:
            return double_to_half(b, x) if source == F64 else narrow_half(b, x)
        return b.cast("fpext" if source.itemsize < target.itemsize else "fptrunc", x, element_type(target))
    if source == F16:
        x = widen_half(b, x)
    if target == U64:
        return _float_to_u64(b, x)
    if target.kind == "i":
        return _float_to_signed(b, x, target)
    return b.cast("trunc", _float_to_signed(b, x, I64), element_type(target))


def _float_to_signed(b: FunctionBuilder, x: V, target: DType) -> V:
    """Truncation; what does not fit gives what the processor gives, and small types wrap, as in NumPy's C code."""
    wide = "i64" if target.itemsize == 8 else "i32"
    number = b.cast("fptosi", x, wide)
    return number if element_type(target) == wide else b.cast("trunc", number, element_type(target))


def _float_to_u64(b: FunctionBuilder, x: V) -> V:
    half_range = 2.0**63
    high = b.fcmp("oge", x, half_range)
    low = b.cast("fptosi", b.select(high, b.fsub(x, half_range), x), "i64")
    return b.xor(low, b.select(high, const(low.type, -(1 << 63)), const(low.type, 0)))


def _integer_to_float(b: FunctionBuilder, x: V, source: DType, target: DType) -> V:
    kind = "sitofp" if source.kind == "i" else "uitofp"
    if target == F16:  # exact in float32 wherever float16 is finite
        return narrow_half(b, b.cast(kind, x, element_of(vector_of(F32, 1))))
    return b.cast(kind, x, element_type(target))
