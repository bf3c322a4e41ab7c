"""fft: the discrete Fourier transform along the last axis, of any length, in generated code.

`fft_plan` chooses how, `fft_steps` and `fft_radix` have the transforms of lengths with small factors, `fft_convolution`
those of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pullback.codegen.fill import copy
from pullback.codegen.library.batches import Site, Work, site_of
from pullback.codegen.library.fft_convolution import Convolution
from pullback.codegen.library.fft_plan import best_split, convolution_length, is_direct
from pullback.codegen.library.fft_steps import Line, LineEmitter
from pullback.codegen.llvm import FunctionBuilder, V
from pullback.codegen.program import Frame, Program
from pullback.ir.graph import Op
from pullback.ir.types import DType, TensorType, real_dtype

TOGETHER_BELOW = 128
"""Lines shorter than this are transformed as many at a time as a vector has lanes: the buffers then fit the nearest
cache. Measured, it halves the time at 64 elements and takes a fifth of it at 8."""

SHARED_FROM = 1 << 15
"""A single line is shared among threads from so many elements on (about 100 us)."""

SHARES = 8


def lower_fft(frame: Frame, op: Op) -> None:
    """Transform every line."""
    site = site_of(frame, op)
    type_, inverse = site.types[0], op.attrs["inverse"]
    n = type_.shape[-1]
    if type_.size == 0 or n == 1:
        copy(frame.b, site.pointers[1], site.pointers[0], type_.nbytes, type_.dtype.itemsize)
        return
    lanes = frame.program.e.target.lanes(real_dtype(type_.dtype).itemsize)
    count = type_.size // n
    together = n < TOGETHER_BELOW and count >= lanes and is_direct(n, lanes, lanes)
    if together:
        _several(site, _line(type_.dtype, n, lanes, inverse), count)
    elif is_direct(n, lanes, 1):
        _direct(site, _line(type_.dtype, n, lanes, inverse), count)
    else:
        _by_convolution(site, n, lanes, inverse, count)


def _line(dtype: DType, n: int, lanes: int, inverse: bool) -> Line:
    return Line(dtype, n, best_split(n, lanes), lanes, inverse)


def _ns(n: int) -> float:
    """Estimated time of a line in one thread."""
    return 0.3 * n * math.log2(n)


def _shares(frame: Frame, n: int, count: int) -> int:
    """Into how many shares for threads a single line is cut."""
    return SHARES if count == 1 and n >= SHARED_FROM and not frame.serial else 1


def _direct(site: Site, line: Line, count: int) -> None:
    """Line by line."""
    shares = _shares(site.frame, line.n, count)

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> None:
        source, target = pointers
        LineEmitter(program, line).emit_line(b, source, target, scratch, shares)

    scratch = LineEmitter(site.frame.program, line).line_scratch(shares)
    site.run(1, Work(("fft", line, shares), scratch, _ns(line.n) if count > 1 else 0.0), member)


def _several(site: Site, line: Line, count: int) -> None:
    """As many lines as lanes at a time. If their number is no multiple of that, the last ones are done once more with
    others before them."""
    lanes, b = line.lanes, site.frame.b

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> None:
        b.call("void", LineEmitter(program, line).lines_function(), [*pointers, scratch])

    work = Work(("ffts", line), line.lines_scratch, _ns(line.n) * lanes)
    for groups, first in ((count // lanes, 0), (1 if count % lanes else 0, count - lanes)):
        type_ = TensorType(line.dtype, (groups, lanes * line.n))
        offset = first * line.n * line.dtype.itemsize
        pointers = tuple(b.gep("i8", p, offset, flags="") if offset else p for p in site.pointers)
        replace(site, types=(type_, type_), pointers=pointers).run(1, work, member)


def _by_convolution(site: Site, n: int, lanes: int, inverse: bool, count: int) -> None:
    """Line by line, each as a convolution."""
    frame, (type_, _) = site.frame, site.types
    length = convolution_length(n, lanes)
    line = _line(type_.dtype, length, lanes, False)
    shares = _shares(frame, length, count)
    convolution = Convolution(n, LineEmitter(frame.program, line), inverse)

    def member(program: Program, b: FunctionBuilder, pointers: Sequence[V], scratch: V) -> None:
        source, target, *tables = pointers
        wave, kernel = tables or convolution.constants(b)
        convolution.emit_line(b, source, target, (wave, kernel), scratch, shares)

    ns = 3 * _ns(length) if count > 1 else 0.0
    work = Work(("fft.convolution", line, n, inverse, shares), convolution.scratch(shares), ns)
    if convolution.has_tables:
        site.run(1, work, member)
        return
    sizes = (*convolution.table_sizes, convolution.tables_scratch())
    with frame.scratch(sum(sizes)) as space:
        wave = space
        kernel, scratch = (frame.b.gep("i8", space, sum(sizes[:k])) for k in (1, 2))
        name = frame.program.routine(("fft tables", line, n), "fft.tables", 3, convolution.emit_tables)
        frame.b.call("void", name, [wave, kernel, scratch])
        replace(site, shared=(wave, kernel)).run(1, work, member)


FFT: Mapping[str, Callable[[Frame, Op], None]] = {"fft": lower_fft}
