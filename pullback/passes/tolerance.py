"""How closely two evaluations of one function must agree, found out by shaking it.

`evaluate_with_tolerance` interprets a function several times, each time with the results of all ops that round (exp,
sums, products of matrices) off by a few roundings. What comes out is how far apart two correct evaluations may be,
element by element; where no op rounds, it is nothing.
"""

from __future__ import annotations  # their names would load numpy.random

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.ir.graph import Function, Op, Value
from pullback.ir.interpret import evaluate_op
from pullback.ir.opdef import Scalar
from pullback.ir.ops import ALL_OPS
from pullback.ir.tape import tape_store

Array = np.ndarray[Any, Any]
ULPS = 16.0
RUNS = 6
EXACT_WORDS = """add sub mul neg abs sign floor ceil rint trunc maximum minimum fmax fmin clip clamp copysign nextafter
    select cast real imag conj complex stop_gradient sqrt strong_mul fmod"""
ROUNDING_WORDS = """sum prod cumsum cumprod scatter_add dot_general cholesky solve triangular_solve slogdet eigh eig
    eigvals svd complement qr fft scan while if"""
ROUNDS_COMPLEX = frozenset({"mul", "abs", "sqrt", "sign", "strong_mul"})
ELEMENTWISE = {op.name for op in ALL_OPS if isinstance(op.lower, Scalar)}
ROUNDS = ELEMENTWISE - set(EXACT_WORDS.split()) | set(ROUNDING_WORDS.split())


class Expected(NamedTuple):
    """A result: its value, how far each element may be off, and which elements may be anything.

    Anything: where a rounding decides whether the element is finite, or the value of an integer or bool.
    """

    value: Array
    tolerance: Array
    loose: Array


def _shaken(op: Op, results: tuple[Array, ...], rng: np.random.Generator) -> tuple[Array, ...]:
    """The results of an op that rounds, each off by up to some units in the last place of the largest.

    The sign of a NaN means nothing, so it is shaken whatever the op.
    """
    rounds = op.name in ROUNDS or (op.name in ROUNDS_COMPLEX and op.operands[0].type.is_complex)
    shaken = [_shake(r, rng) if rounds and r.dtype.kind in "fc" else r for r in results]
    return tuple(_with_any_sign(r, rng) if r.dtype.kind == "f" else r for r in shaken)


def _with_any_sign(x: Array, rng: np.random.Generator) -> Array:
    nan = np.isnan(x)
    if not nan.any():
        return x
    return np.where(nan, np.copysign(x, np.where(rng.random(x.shape) < 0.5, -1, 1)), x).astype(x.dtype)


def _shake(x: Array, rng: np.random.Generator) -> Array:
    if x.size == 0:
        return x
    eps = float(np.finfo(x.dtype).eps)
    finite = np.isfinite(x)
    size = np.abs(x[finite]).max() if finite.any() else 0.0
    noise = ULPS * eps * rng.uniform(-1, 1, x.shape)
    # Relative to each element mostly; sums and products of matrices err relative to the largest.
    scale = np.abs(x) if rng.random() < 0.5 else np.full(x.shape, size)
    with np.errstate(all="ignore"):
        return np.where(finite, x + noise * scale, x).astype(x.dtype)


def _interpret_shaken(function: Function, arguments: Sequence[Array], rng: np.random.Generator | None) -> list[Array]:
    env: dict[Value, Array] = dict(zip(function.params, arguments, strict=True))
    with np.errstate(all="ignore"), tape_store():
        for op in function.ops:
            results = evaluate_op(op, [env[v] for v in op.operands])
            env.update(zip(op.results, results if rng is None else _shaken(op, results, rng), strict=True))
    return [np.asarray(env[v]) for v in function.results]


def evaluate_with_tolerance(function: Function, arguments: Sequence[Array]) -> list[Expected]:
    """The results of `function`, and how far those of another correct evaluation may be from them."""
    values = _interpret_shaken(function, arguments, None)
    results = [Expected(v, np.zeros(v.shape), np.zeros(v.shape, bool)) for v in values]
    for run in range(RUNS):
        others = _interpret_shaken(function, arguments, np.random.default_rng(run))
        for result, other in zip(results, others, strict=True):
            _widen(result, other)
    return [Expected(value, 16 * tolerance, loose) for value, tolerance, loose in results]


def _widen(result: Expected, other: Array) -> None:
    value, tolerance, loose = result
    if value.dtype.kind not in "fc":
        loose |= value != other
        return
    with np.errstate(all="ignore"):
        tolerance[...] = np.fmax(tolerance, np.abs(value - other).astype(np.float64))
        both_nan = np.isnan(value) & np.isnan(other)
        loose |= np.isfinite(value) != np.isfinite(other)
        loose |= ~np.isfinite(value) & (value != other) & ~both_nan


def disagreement(expected: Sequence[Expected], found: Sequence[Array]) -> str:
    """What is wrong with `found`, in words; nothing if it agrees."""
    for number, (result, other) in enumerate(zip(expected, found, strict=True)):
        value, tolerance, loose = result
        if value.dtype != other.dtype or value.shape != other.shape:
            return f"result {number} is {other.dtype}{other.shape}, expected {value.dtype}{value.shape}"
        wrong = ~(_agrees(value, other, tolerance) | loose)
        if wrong.any():
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            return f"result {number} at {at}: {other[at]!r}, expected {value[at]!r} within {tolerance[at]:.3g}"
    return ""


def _agrees(value: Array, other: Array, tolerance: Array) -> Array:
    if value.dtype.kind not in "fc":
        return np.asarray(value == other)
    with np.errstate(all="ignore"):
        agrees = np.abs(value.astype(np.complex128) - other) <= tolerance
        agrees |= (value == other) | (np.isnan(value) & np.isnan(other))
        if value.dtype.kind == "c":  # with one part infinite or NaN, the other part is not compared
            agrees |= ~np.isfinite(value) & ~np.isfinite(other)
    return np.asarray(agrees)
