"""Operands for elementwise ops: random numbers and, for floats, the special ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.ir.types import DTYPE_NAMES, DType

Array = np.ndarray[Any, Any]

FLOATS = tuple(np.dtype(t) for t in (np.float16, np.float32, np.float64))
INTEGERS = tuple(dtype for dtype in DTYPE_NAMES if dtype.kind in "iu")
COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))
ALL = tuple(DTYPE_NAMES)

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 1e-3, 50.0, -50.0, np.inf, -np.inf, np.nan)


def operands(dtype: DType, count: int, size: int = 0, seed: int = 0, special: bool = True) -> list[Array]:
    """`count` arrays of one length; special numbers meet each other in all pairs (unless `size` is given)."""
    rng = np.random.default_rng(seed)
    arrays = [_random(dtype, size or 37, rng) for _ in range(count)]
    if special and not size and dtype.kind in "fiu":
        pairs = _special(dtype)
        grid = np.meshgrid(*[pairs] * min(count, 2), indexing="ij")
        extra = [g.reshape(-1) for g in grid]
        extra += [rng.permutation(extra[0]) for _ in range(count - len(extra))]
        arrays = [np.concatenate([a, e]).astype(dtype) for a, e in zip(arrays, extra, strict=True)]
    return arrays


def _special(dtype: DType) -> Array:
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        return np.array([*_SPECIAL, limits.max, limits.tiny, limits.smallest_subnormal], dtype)
    bounds = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, 63, bounds.min, bounds.max], dtype)


def _random(dtype: DType, size: int, rng: np.random.Generator) -> Array:
    if dtype.kind == "b":
        return rng.random(size) < 0.5
    if dtype.kind in "iu":
        low = -20 if dtype.kind == "i" else 0
        return rng.integers(low, 21, size).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(size) * 2 + 2j * rng.standard_normal(size)).astype(dtype)
    return (rng.standard_normal(size) * 3).astype(dtype)
