"""`numpy.fft` as compositions of one transform along the last axis."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.ir.types import DType, complex_dtype, real_dtype
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions import fourier_real
from pullback.tracer.functions.common import (
    array,
    axis_number,
    concat,
    contents,
    finish,
    move_back,
    move_last,
    slice_axis,
)
from pullback.tracer.operands import cast
from pullback.tracer.trace import Content, Trace, active, dtype_of, shape_of


def _complex(dtype: DType) -> DType:
    """complex64 for float32 (and float16), complex128 for what is wider and for integers."""
    if dtype.kind in "biu":
        return np.dtype(np.complex128)
    return complex_dtype(np.dtype(np.float32) if dtype == np.float16 else dtype)


def _resized(trace: Trace, x: Content, n: int) -> Content:
    """The last axis cut, or filled up with zeros, to length n."""
    shape = shape_of(x)
    axis, own = len(shape) - 1, shape[-1]
    if n < own:
        return slice_axis(trace, x, axis, 0, n)
    if n == own:
        return x
    none = (0,) * len(shape)
    return trace.apply("pad", x, low=none, high=(*none[:-1], n - own), interior=none)


def _scale(n: int, norm: Any, inverse: bool) -> float:
    """What NumPy's `norm` divides by."""
    if norm == "ortho":
        return float(1 / np.sqrt(n))
    if norm not in (None, "backward", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    scaled = (norm == "forward") != inverse
    return 1 / n if scaled else 1.0


def _transform(trace: Trace, x: Content, inverse: bool, factor: float) -> Content:
    result = trace.apply("fft", x, inverse=inverse)
    if factor == 1.0:
        return result
    return trace.apply("mul", result, trace.full(dtype_of(result), shape_of(result), factor))


def _points(n: Any, own: int) -> int:
    count = own if n is None else operator.index(n)
    if count < 1:
        raise active().error(ValueError, f"Invalid number of FFT data points ({count}) specified.")
    return count


def _along(name: str, inverse: bool) -> Callable[..., Any]:
    """fft and ifft."""

    def transform(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        trace, (x,) = contents(a)
        number = axis_number(trace, axis, len(shape_of(x)))
        x = move_last(trace, cast(trace, x, _complex(dtype_of(x))), number)
        count = _points(n, shape_of(x)[-1])
        result = _transform(trace, _resized(trace, x, count), inverse, _scale(count, norm, inverse))
        return finish(move_back(trace, result, number), out, f"np.fft.{name}")

    return transform


fft = _along("fft", False)
ifft = _along("ifft", True)


def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The non-negative frequencies of real input."""
    x = array(a)
    if x.dtype.kind == "c":
        raise active().error(TypeError, "np.fft.rfft takes real numbers; use np.fft.fft for complex ones")
    trace, (content,) = contents(x)
    number = axis_number(trace, axis, x.ndim)
    count = _points(n, x.shape[number])
    scale = _scale(count, norm, False)
    line = _resized(trace, move_last(trace, cast(trace, content, real_dtype(_complex(x.dtype))), number), count)
    if fourier_real.is_halved(count):
        half = fourier_real.forward(trace, line, scale)
    else:
        whole = _transform(trace, cast(trace, line, _complex(x.dtype)), False, scale)
        half = slice_axis(trace, whole, x.ndim - 1, 0, count // 2 + 1)
    return finish(move_back(trace, half, number), out, "np.fft.rfft")


def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Real output from the non-negative frequencies; the others are their conjugates."""
    trace, (x,) = contents(a)
    number = axis_number(trace, axis, len(shape_of(x)))
    narrow = dtype_of(x) == np.float16  # NumPy rounds back to it here, and only here
    x = move_last(trace, cast(trace, x, _complex(dtype_of(x))), number)
    count = _points(n, 2 * (shape_of(x)[-1] - 1))
    half = _resized(trace, x, count // 2 + 1)
    scale = _scale(count, norm, True)
    real = (
        fourier_real.backward(trace, half, scale)
        if fourier_real.is_halved(count)
        else _whole(trace, half, count, scale)
    )
    return finish(
        move_back(trace, cast(trace, real, np.dtype(np.float16)) if narrow else real, number), out, "np.fft.irfft"
    )


def _whole(trace: Trace, half: Content, count: int, scale: float) -> Content:
    """Real numbers from the non-negative frequencies, with the others written out."""
    last = len(shape_of(half)) - 1
    mirrored = slice_axis(trace, half, last, 1, (count - 1) // 2 + 1)
    parts = [half]
    if shape_of(mirrored)[last]:
        parts.append(trace.apply("conj", trace.apply("reverse", mirrored, axes=(last,))))
    return trace.apply("real", _transform(trace, concat(trace, parts, last), True, scale))


def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    x = array(a)
    count = 2 * (x.shape[axis] - 1) if n is None else n
    return irfft(np.conjugate(x), count, axis, _swapped(norm), out)


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return finish(contents(np.conjugate(rfft(a, n, axis, _swapped(norm))))[1][0], out, "np.fft.ihfft")


def _swapped(norm: Any) -> Any:
    return {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}.get(norm, norm)


# ------------------------------------------------------------------ several axes


def _axes(x: Any, s: Any, axes: Any) -> tuple[list[int], list[Any]]:
    """Axes and lengths; -1 and None leave a length as it is."""
    trace = active()
    if axes is None:
        numbers = list(range(x.ndim)) if s is None else list(range(x.ndim - len(s), x.ndim))
    else:
        numbers = [axis_number(trace, k, x.ndim) for k in axes]
    lengths = [None] * len(numbers) if s is None else [None if n in (None, -1) else n for n in s]
    if len(lengths) != len(numbers):
        raise ValueError("Shape and axes have different lengths.")
    return numbers, lengths


def _several(one: Callable[..., Any], default: Any) -> Callable[..., Any]:
    def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        x = array(a)
        numbers, lengths = _axes(x, s, axes)
        for k, n in zip(reversed(numbers), reversed(lengths), strict=True):
            x = one(x, n, k, norm)
        return x if out is None else finish(contents(x)[1][0], out, "np.fft")

    return transform


def _several_real(default: Any) -> Callable[..., Any]:
    def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        x = array(a)
        numbers, lengths = _axes(x, s, axes)
        x = rfft(x, lengths[-1], numbers[-1], norm)
        for k, n in zip(reversed(numbers[:-1]), reversed(lengths[:-1]), strict=True):
            x = fft(x, n, k, norm)
        return x if out is None else finish(contents(x)[1][0], out, "np.fft")

    return transform


def _several_inverse_real(default: Any) -> Callable[..., Any]:
    def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        x = array(a)
        numbers, lengths = _axes(x, s, axes)
        for k, n in zip(numbers[:-1], lengths[:-1], strict=True):
            x = ifft(x, n, k, norm)
        x = irfft(x, lengths[-1], numbers[-1], norm)
        return x if out is None else finish(contents(x)[1][0], out, "np.fft")

    return transform


def _shifted(forward: bool) -> Callable[..., Any]:
    def shift(x: Any, axes: Any = None) -> Any:
        a = array(x)
        numbers: Sequence[int] = range(a.ndim) if axes is None else (axes if isinstance(axes, tuple | list) else [axes])
        by = [a.shape[k] // 2 if forward else -(a.shape[k] // 2) for k in numbers]
        return np.roll(a, by, tuple(numbers))

    return shift


FUNCTIONS: dict[Any, Entry] = {
    np.fft.fft: Entry(fft),
    np.fft.ifft: Entry(ifft),
    np.fft.rfft: Entry(rfft),
    np.fft.irfft: Entry(irfft),
    np.fft.hfft: Entry(hfft),
    np.fft.ihfft: Entry(ihfft),
    np.fft.fft2: Entry(_several(fft, (-2, -1))),
    np.fft.ifft2: Entry(_several(ifft, (-2, -1))),
    np.fft.fftn: Entry(_several(fft, None)),
    np.fft.ifftn: Entry(_several(ifft, None)),
    np.fft.rfft2: Entry(_several_real((-2, -1))),
    np.fft.irfft2: Entry(_several_inverse_real((-2, -1))),
    np.fft.rfftn: Entry(_several_real(None)),
    np.fft.irfftn: Entry(_several_inverse_real(None)),
    np.fft.fftshift: Entry(_shifted(True)),
    np.fft.ifftshift: Entry(_shifted(False)),
}
