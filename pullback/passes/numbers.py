"""Whether two functions compute the same numbers: both interpreted on sample data (``PULLBACK=check=numbers``)."""

from __future__ import annotations  # their names would load numpy.random

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from pullback.errors import NumericalError, PullbackError
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.opdef import Array
from pullback.ir.ops.control import GuardFailedError
from pullback.ir.types import TensorType
from pullback.passes.tolerance import disagreement, evaluate_with_tolerance

ROUNDINGS = 64
"""How many roundings of the largest number in a result two results may differ by."""
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.0, -3.0, 1e-320)


class NumbersError(PullbackError, AssertionError):
    """Two functions that should agree do not; the message has the result, the element and both values."""


def sample(type: TensorType, rng: np.random.Generator) -> Array:
    """Numbers of moderate size; integers small enough to index short axes."""
    shape = type.shape
    if type.dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if type.dtype.kind in "iu":
        return np.asarray(rng.integers(0, 3, shape)).astype(type.dtype)
    real = rng.normal(size=shape)
    return np.asarray(real + 1j * rng.normal(size=shape) if type.is_complex else real).astype(type.dtype)


def sample_special(type: TensorType, rng: np.random.Generator) -> Array:
    """Numbers among which are NaN, infinities, both zeros, a denormal."""
    if type.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(rng.choice(SPECIAL, type.shape)).astype(type.dtype)
    if type.dtype.kind == "c":
        array = np.empty(type.shape, type.dtype)
        array.real, array.imag = (sample_special(type.with_dtype(array.real.dtype), rng) for _ in range(2))
        return array
    return sample(type, rng)


def sample_arguments(function: Function) -> Iterator[list[Array]]:
    """Two sets of arguments, the same in every process: moderate and special numbers."""
    seed = zlib.crc32(" ".join(map(str, function.param_types)).encode())
    for draw in (sample, sample_special):
        rng = np.random.default_rng(seed)
        yield [draw(t, rng) for t in function.param_types]


def check_numbers(before: Function, after: Function) -> None:
    """Interpret both on sample arguments.

    Raises
    ------
    NumbersError : a result differs by more than roundings account for (`tolerance`), or only one of them fails.
    """
    for arguments in sample_arguments(before):
        problem = _difference(before, after, arguments)
        if problem:
            raise NumbersError(problem)


def _difference(before: Function, after: Function, arguments: Sequence[Array]) -> str:
    """What differs, in words. That both are stopped by one and the same guard or check is no difference."""
    try:
        expected = evaluate_with_tolerance(before, arguments)
    except (GuardFailedError, NumericalError) as error:
        return _stopped_otherwise(after, arguments, str(error))
    try:
        return disagreement(expected, interpret(after, arguments))
    except (GuardFailedError, NumericalError) as error:
        return f"after the pass the function fails on sample data: {error}"


def _stopped_otherwise(after: Function, arguments: Sequence[Array], reason: str) -> str:
    try:
        interpret(after, arguments)
    except (GuardFailedError, NumericalError) as error:
        return "" if str(error) == reason else f"the function failed with {reason!r} before the pass, {error} after it"
    return f"before the pass the function failed on sample data: {reason}"


def agree(x: Array, y: Array, roundings: int = ROUNDINGS) -> bool:
    """Equal up to some roundings of the largest number of `x`; NaN agrees with NaN, infinities with themselves."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind not in "fc":
        return bool((x == y).all())
    if x.dtype.kind == "c":
        return agree(x.real, y.real, roundings) and agree(x.imag, y.imag, roundings)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    finite = np.isfinite(wide_x)
    if not bool((finite == np.isfinite(wide_y)).all()):
        return False
    if not np.array_equal(wide_x[~finite], wide_y[~finite], equal_nan=True):
        return False
    if not finite.any():
        return True
    size = max(float(np.abs(wide_x[finite]).max()), float(np.finfo(x.dtype).tiny))
    with np.errstate(over="ignore"):
        difference = np.abs(wide_x[finite] - wide_y[finite]).max()
    return bool(difference <= roundings * float(np.finfo(x.dtype).eps) * size)


def identical(x: Array, y: Array) -> bool:
    """Equal bit for bit; any NaN is like any other."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind == "c":
        return identical(x.real, y.real) and identical(x.imag, y.imag)
    if x.dtype.kind != "f":
        return bool((x == y).all())
    same = (x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)
    return bool(same.all())
