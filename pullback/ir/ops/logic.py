"""Comparisons, bits, selection, casts, the parts of complex numbers, stop_gradient."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import (
    PLAIN,
    Algebra,
    Array,
    Linear,
    NotDifferentiable,
    OpDef,
    RunRegion,
    Scalar,
    Types,
)
from pullback.ir.ops.common import (
    ANY,
    FLOAT,
    INEXACT,
    NOT_REAL,
    batch_elementwise,
    check_arity,
    elementwise,
    to_bool,
    to_real,
    words,
)
from pullback.ir.types import TensorType, complex_dtype

COMPARISON = "comparisons are piecewise constant"


def _comparison(name: str, function: Callable[..., Any], doc: str, commutative: bool = False) -> OpDef:
    return elementwise(
        name,
        2,
        ANY,
        function,
        NotDifferentiable(COMPARISON),
        doc,
        result=to_bool,
        lower=Scalar(lambda s, op, x, y: s.compare(name, x, y)),
        algebra=Algebra(commutative=commutative),
    )


EQUAL = _comparison("equal", np.equal, "x == y; NaN equals nothing, 0.0 equals -0.0.", True)
NOT_EQUAL = _comparison("not_equal", np.not_equal, "x != y; true if either is NaN.", True)
LESS = _comparison("less", np.less, "x < y; false if either is NaN.")
LESS_EQUAL = _comparison("less_equal", np.less_equal, "x <= y; false if either is NaN.")
GREATER = _comparison("greater", np.greater, "x > y; false if either is NaN.")
GREATER_EQUAL = _comparison("greater_equal", np.greater_equal, "x >= y; false if either is NaN.")


def _bits(name: str, function: Callable[..., Any], doc: str, kinds: str = "biu", algebra: Algebra = PLAIN) -> OpDef:
    return elementwise(name, 2, kinds, function, NOT_REAL, doc, algebra=algebra)


_LATTICE = Algebra(commutative=True, associative=True, idempotent=True)
BITWISE_AND = _bits("bitwise_and", np.bitwise_and, "Bit by bit; logical for bool.", algebra=_LATTICE)
BITWISE_OR = _bits("bitwise_or", np.bitwise_or, "Bit by bit; logical for bool.", algebra=_LATTICE)
BITWISE_XOR = _bits(
    "bitwise_xor", np.bitwise_xor, "Bit by bit; logical for bool.", algebra=Algebra(commutative=True, associative=True)
)
LEFT_SHIFT = _bits("left_shift", np.left_shift, "x * 2**y, bits shifted out lost; 0 for y at or above the width.", "iu")
RIGHT_SHIFT = _bits(
    "right_shift", np.right_shift, "x // 2**y; sign bits shifted in; y at or above the width gives 0 or -1.", "iu"
)
INVERT = elementwise(
    "invert", 1, "biu", np.invert, NOT_REAL, "All bits flipped; not for bool.", algebra=Algebra(involutive=True)
)


def _test(name: str, function: Callable[..., Any], kinds: str, doc: str) -> OpDef:
    return elementwise(name, 1, kinds, function, NotDifferentiable(COMPARISON), doc, result=to_bool)


ISNAN = _test("isnan", np.isnan, INEXACT, "True where x is NaN (in either part).")
ISINF = _test("isinf", np.isinf, INEXACT, "True where x is infinite (in either part).")
ISFINITE = _test("isfinite", np.isfinite, INEXACT, "True where x is neither infinite nor NaN.")
SIGNBIT = _test("signbit", np.signbit, FLOAT, "True where the sign bit is set (also for -0.0).")


# ------------------------------------------------------------------ selection


def _select_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("select", types, 3)
    pred, x, y = types
    if pred.dtype.kind != "b" or x.dtype != y.dtype:
        raise TypeRuleError(f"select needs a bool predicate and two operands of one dtype, got {words(types)}")
    if not pred.shape == x.shape == y.shape:
        raise ShapeError(f"select needs operands of one shape, got {words(types)}")
    return (x,)


def _select_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr | None, ...]:
    pred, zero = f.wrap(op.operands[0]), f.zeros_like(ct)
    return None, f.select(pred, ct, zero), f.select(pred, zero, ct)


SELECT = OpDef(
    name="select",
    arity=3,
    attrs={},
    infer=_select_infer,
    evaluate=lambda op, args, run: (np.asarray(np.where(*args)),),
    numpy=(),
    derivative=Linear(_select_transpose, operands=(1, 2)),
    batch=batch_elementwise,
    lower=Scalar(lambda s, op, p, x, y: s.select(p, x, y)),
    algebra=PLAIN,
    doc="x where the predicate holds, else y. The operand that is not chosen contributes nothing, not even NaN.",
)


# ------------------------------------------------------------------ casts and complex parts


def _cast_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("cast", types, 1)
    return (types[0].with_dtype(attrs["dtype"]),)


def _cast_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    x, dtype = args[0], op.attrs["dtype"]
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    return (np.asarray(x).astype(dtype),)


def _cast_transpose(f: Emitter, op: Op, ct: Expr) -> tuple[Expr | None, ...]:
    source = op.operands[0].type
    if not source.is_inexact:
        return (None,)
    if ct.type.is_complex and not source.is_complex:
        ct = f.real(ct)
    return (f.astype(ct, source.dtype),)


CAST = OpDef(
    name="cast",
    arity=1,
    attrs={"dtype": "dtype"},
    infer=_cast_infer,
    evaluate=_cast_evaluate,
    numpy=(),
    derivative=Linear(_cast_transpose),
    batch=batch_elementwise,
    lower=Scalar(lambda s, op, x: s.cast(x, op.attrs["dtype"])),
    algebra=PLAIN,
    doc="Conversion as `astype`; complex to real keeps the real part. Derivative: the cotangent converted back; 0 "
    "through integers.",
)

REAL = elementwise(
    "real",
    1,
    "c",
    np.real,
    Linear(lambda f, op, ct: (f.complex(ct, f.zeros_like(ct)),)),
    "The real part.",
    result=to_real,
)
IMAG = elementwise(
    "imag",
    1,
    "c",
    np.imag,
    Linear(lambda f, op, ct: (f.complex(f.zeros_like(ct), -ct),)),
    "The imaginary part. With the gradient dL/dx - i dL/dy its transpose is -i times the cotangent.",
    result=to_real,
)
CONJ = elementwise(
    "conj",
    1,
    "c",
    np.conj,
    Linear(lambda f, op, ct: (f.conj(ct),)),
    "The complex conjugate.",
    numpy=("conjugate",),
    algebra=Algebra(involutive=True),
)


def _make_complex(x: Array, y: Array) -> Array:
    z = np.empty(np.shape(x), complex_dtype(np.asarray(x).dtype))
    z.real, z.imag = x, y
    return z


COMPLEX = elementwise(
    "complex",
    2,
    FLOAT,
    _make_complex,
    Linear(lambda f, op, ct: (f.real(ct), -f.imag(ct))),
    "x + iy from two real parts, float32 or float64.",
    numpy=(),
    result=lambda t: t.with_dtype(complex_dtype(t.dtype)),
)

STOP_GRADIENT = elementwise(
    "stop_gradient",
    1,
    ANY,
    lambda x: x,
    NotDifferentiable("stopped by the user"),
    "x itself, taken as a constant by differentiation.",
    numpy=(),
)

LOGIC = (
    EQUAL,
    NOT_EQUAL,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    BITWISE_AND,
    BITWISE_OR,
    BITWISE_XOR,
    LEFT_SHIFT,
    RIGHT_SHIFT,
    INVERT,
    ISNAN,
    ISINF,
    ISFINITE,
    SIGNBIT,
    SELECT,
    CAST,
    REAL,
    IMAG,
    CONJ,
    COMPLEX,
    STOP_GRADIENT,
)
