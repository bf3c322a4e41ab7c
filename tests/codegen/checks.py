"""Comparing native results with the interpreter's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.ops import OPS
from pullback.ir.types import TensorType, real_dtype
from tests.native import Native, compile_plan, simple_plan

Array = np.ndarray[Any, Any]


def build(types: Sequence[TensorType], program: Callable[..., Expr | Sequence[Expr]], name: str = "test") -> Function:
    """A function of the IR from a Python function of an emitter and its parameters."""
    builder = Builder()
    f = Emitter(builder, OPS)
    results = program(f, *[f.wrap(builder.param(t)) for t in types])
    listed = [results] if isinstance(results, Expr) else list(results)
    return builder.function(name, [r.value for r in listed])


def compiled(function: Function, stack_below: int = 0) -> Native:
    """Machine code of an unfused function."""
    return compile_plan(simple_plan(function, stack_below))


def assert_native_agrees(function: Function, args: Sequence[object], ulp: float = 0, stack_below: int = 0) -> None:
    """Native and interpreter give the same, within some units in the last place."""
    found = compiled(function, stack_below)(*args)
    with np.errstate(all="ignore"):
        expected = interpret(function, args)
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        assert_close(x, np.asarray(y), ulp, f"result {k} of {function.name}")


def assert_close(found: Array, expected: Array, ulp: float, what: str = "") -> None:
    """Equal dtype, shape, NaN, infinities; numbers within `ulp` units in the last place (complex: of the modulus)."""
    assert found.dtype == expected.dtype, (what, found.dtype, expected.dtype)
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected, what)
        return
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    finite = np.isfinite(found) & np.isfinite(expected)
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        size = np.where(finite, np.abs(expected.astype(wide)), 0)
        unit = np.spacing(size.astype(real_dtype(found.dtype))).astype(np.float64)
        apart = np.where(finite, np.abs(found.astype(wide) - expected.astype(wide)), np.inf) / unit
    bad = ~(same | (apart <= ulp))
    if bad.any():
        at = np.argwhere(bad)[0]
        place = tuple(int(k) for k in at)
        raise AssertionError(
            f"{what}: {int(bad.sum())} of {bad.size} differ, first at {place}: "
            f"{found[place]!r}, expected {expected[place]!r} ({apart[place]:.2f} ulp)"
        )
