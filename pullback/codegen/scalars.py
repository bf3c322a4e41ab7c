"""What a scalar op may ask of the code generator (`ir.opdef.ScalarBuilder`), over vectors of lanes.

Real numbers and bools are handled here, complex numbers in `complexes`, conversions in `casts`, transcendental
functions in `math`. float16 is computed in float32 and rounded once for each op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.codegen import complexes, elementary
from pullback.codegen.casts import cast_lane, narrow_half, widen_half
from pullback.codegen.lane import F16, Lane, lane_constant
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.math import MATH, MathCalls, Shared
from pullback.errors import CodegenError
from pullback.ir.types import BOOL, F32, DType, complex_dtype

# predicate -> LLVM's for floats, signed and unsigned integers
_PREDICATES = {
    "equal": ("oeq", "eq", "eq"),
    "not_equal": ("une", "ne", "ne"),
    "less": ("olt", "slt", "ult"),
    "less_equal": ("ole", "sle", "ule"),
    "greater": ("ogt", "sgt", "ugt"),
    "greater_equal": ("oge", "sge", "uge"),
}

_FLOAT_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER_BINARY = {"add": "add", "sub": "sub", "mul": "mul"}


class Scalars:
    """Emits scalar ops into one function; operands of an op have the same number of lanes.

    shared : what math functions may share in the present straight piece of code; None: nothing
    flags : LLVM's words for what real sums and products of floats are allowed
    """

    __slots__ = ("b", "flags", "library", "shared")

    def __init__(self, b: FunctionBuilder, library: MathCalls, shared: Shared | None = None, flags: str = "") -> None:
        self.b = b
        self.library = library
        self.shared = shared
        self.flags = flags

    # ---------------------------------------------------------------- the protocol

    def binary(self, name: str, x: Lane, y: Lane) -> Lane:
        """`add sub mul div` by dtype; integers wrap."""
        if x.im is not None:
            return complexes.arithmetic(self.b, name, x, y)
        if x.dtype == F16:
            return self._in_float(lambda u, v: self.binary(name, u, v), x, y)
        names = _FLOAT_BINARY if x.dtype.kind == "f" else _INTEGER_BINARY
        if name not in names or x.dtype == BOOL:
            raise CodegenError(f"no instruction for {name} of {x.dtype}")
        operation: Callable[..., V] = getattr(self.b, names[name])
        if x.dtype.kind == "f" and self.flags:
            return Lane(x.dtype, operation(x.re, y.re, self.flags))
        return Lane(x.dtype, operation(x.re, y.re))

    def multiply_add(self, x: Lane, y: Lane, z: Lane) -> Lane:
        """x * y + z inside a sum of products, where floats may be rounded once."""
        if x.dtype.kind == "f" and x.dtype != F16:
            return Lane(x.dtype, self.b.fma(x.re, y.re, z.re))
        return self.binary("add", self.binary("mul", x, y), z)

    def compare(self, predicate: str, x: Lane, y: Lane) -> Lane:
        """Ordered comparison; NaN is unequal to all. Complex numbers are ordered by real, then imaginary part."""
        if x.im is not None:
            return complexes.compare(self, predicate, x, y)
        floating, signed, unsigned = _PREDICATES[predicate]
        if x.dtype.kind == "f":
            u, v = (self._widened(x), self._widened(y)) if x.dtype == F16 else (x, y)
            return Lane(BOOL, self.b.fcmp(floating, u.re, v.re))
        return Lane(BOOL, self.b.icmp(signed if x.dtype.kind == "i" else unsigned, x.re, y.re))

    def select(self, pred: Lane, x: Lane, y: Lane) -> Lane:
        parts = [self.b.select(pred.re, u, v) for u, v in zip(x.parts, y.parts, strict=True)]
        return Lane(x.dtype, *parts)

    def cast(self, x: Lane, dtype: DType) -> Lane:
        """NumPy's astype; complex to real drops the imaginary part."""
        return cast_lane(self.b, x, np.dtype(dtype))

    def constant(self, like: Lane, number: object) -> Lane:
        """`number` in the dtype and width of `like`."""
        return lane_constant(like.dtype, number, like.lanes)

    def math(self, name: str, *args: Lane, n: int | None = None) -> Lane:
        """Any other elementwise op, by its name in the IR."""
        x = args[0]
        if name == "stop_gradient":
            return x
        if name == "complex":
            re, im = (self._widened(arg) if arg.dtype == F16 else arg for arg in args)
            return Lane(complex_dtype(re.dtype), re.re, im.re)
        if x.im is not None:
            return complexes.math(self, name, args, n)
        if name in elementary.TESTS:
            wide = self._widened(x) if x.dtype == F16 else x
            return Lane(BOOL, elementary.TESTS[name](self.b, wide.re))
        if x.dtype == F16 and name not in elementary.HALF_ITSELF:
            return self._in_float(lambda *wide: self.math(name, *wide, n=n), *args)
        return Lane(x.dtype, self._real(name, x.dtype, args, n))

    # ---------------------------------------------------------------- real numbers

    def _real(self, name: str, dtype: DType, args: tuple[Lane, ...], n: int | None) -> V:
        values = tuple(arg.re for arg in args)
        if name == "integer_pow":
            return elementary.integer_pow(self, dtype, values[0], n or 0)
        table = {"f": elementary.FLOAT, "b": elementary.BITS}.get(dtype.kind, elementary.INTEGER)
        if name in table:
            return table[name](self.b, dtype, *values)
        if dtype.kind != "f" or name not in MATH:
            raise CodegenError(f"{name} has no meaning for {dtype}")
        static = {} if n is None else {"n": n}
        return self.library.emit(self.b, name, values, self.shared, **static)

    # ---------------------------------------------------------------- float16

    def _widened(self, x: Lane) -> Lane:
        return Lane(F32, widen_half(self.b, x.re))

    def _in_float(self, compute: Callable[..., Any], *args: Lane) -> Lane:
        """float16 in float32, rounded once: innocuous for + - * / sqrt, since 24 >= 2 * 11 + 2 bits."""
        result: Lane = compute(*[self._widened(x) for x in args])
        return Lane(F16, narrow_half(self.b, result.re)) if result.dtype == F32 else result
