"""Ops that are a function of their own: products, sorts, scans, scatters, factorisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pullback.codegen.library.extremes import lower_arg_extreme
from pullback.codegen.library.products import lower_dot_general
from pullback.codegen.library.scans import lower_running
from pullback.codegen.library.scatter import lower_gather, lower_scatter
from pullback.codegen.library.sorting import lower_sort
from pullback.codegen.library.sources import lower_constant
from pullback.codegen.program import Frame
from pullback.ir.graph import Op
from pullback.ir.ops.fourier import FOURIER
from pullback.ir.ops.linalg import LINALG
from pullback.lazy import LazyModule

fft, lapack = LazyModule("pullback.codegen.library.fft"), LazyModule("pullback.codegen.library.lapack")


def _lower_fourier(frame: Frame, op: Op) -> None:
    fft.FFT[op.name](frame, op)


def _lower_linalg(frame: Frame, op: Op) -> None:
    lapack.LAPACK[op.name](frame, op)


LIBRARY: Mapping[str, Callable[[Frame, Op], None]] = {
    "argmax": lower_arg_extreme,
    "argmin": lower_arg_extreme,
    "constant": lower_constant,
    "cummax": lower_running,
    "cummin": lower_running,
    "cumprod": lower_running,
    "cumsum": lower_running,
    "dot_general": lower_dot_general,
    "gather": lower_gather,
    "scatter": lower_scatter,
    "scatter_add": lower_scatter,
    "sort": lower_sort,
    **{opdef.name: _lower_fourier for opdef in FOURIER},
    **{opdef.name: _lower_linalg for opdef in LINALG},
}
