"""The discrete Fourier transform along the last axis. All of numpy.fft is a composition of it."""

from collections.abc import Sequence

import numpy as np

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Array, Library, Linear, OpDef, RunRegion, Types
from pullback.ir.ops.common import check_arity
from pullback.ir.types import TensorType


def _infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("fft", types, 1)
    (x,) = types
    if not x.is_complex:
        raise TypeRuleError(f"fft needs a complex operand, got {x}")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ShapeError(f"fft needs at least one element along the last axis, got {x}")
    return (x,)


def _evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    (x,) = args
    y = np.fft.ifft(x, norm="forward") if op.attrs["inverse"] else np.fft.fft(x)
    return (np.asarray(y, dtype=x.dtype),)


def _batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    return (f.fft(args[0], inverse=op.attrs["inverse"]),)


FFT = OpDef(
    name="fft",
    arity=1,
    attrs={"inverse": "bool"},
    infer=_infer,
    evaluate=_evaluate,
    numpy=(),
    derivative=Linear(lambda f, op, ct: (f.fft(ct, inverse=op.attrs["inverse"]),)),
    batch=_batch,
    lower=Library("fft"),
    algebra=PLAIN,
    doc="sum over k of x[k] exp(-2 pi i j k / n) along the last axis, exp(+2 pi i ...) with `inverse`; never scaled. "
    "The matrix of the transform is symmetric, so it is its own transpose.",
)

FOURIER = (FFT,)
