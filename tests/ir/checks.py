"""How derivatives and batches are checked against the interpreter: finite differences along a direction, the adjoint
identity,
the loop over rows. Everything works on IR functions and tuples of arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.passes.forward import forward
from pullback.passes.reverse import reverse

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]

# Central differences of eighth order: f(x + k h) - f(x - k h), k = 1..4. With h = 0.01 the error is some 1e-15 of the
# ninth
# derivative, and rounding some 1e-14 of the function.
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
STEP = 0.01


def inexact_numbers(arrays: Sequence[Any]) -> tuple[int, ...]:
    """Which arrays (or types) are floating or complex."""
    return tuple(k for k, a in enumerate(arrays) if a.dtype.kind in "fc")


def random_like(rng: np.random.Generator, a: Any) -> Array:
    v = rng.uniform(-1, 1, size=a.shape)
    if a.dtype.kind == "c":
        v = v + 1j * rng.uniform(-1, 1, size=a.shape)
    return np.asarray(v, dtype=a.dtype)


def inner(xs: Sequence[Array], ys: Sequence[Array]) -> float:
    """The pairing of cotangents with tangents: the real part of the sum of products, without conjugation."""
    return float(sum(np.real(np.sum(np.asarray(x, complex) * y)) for x, y in zip(xs, ys, strict=True)))


def along(function: Callable[[Arrays], Arrays], at: Arrays, direction: Arrays) -> Arrays:
    """The derivative of `function` at `at` along `direction`, by finite differences."""
    total: list[Any] | None = None
    for k, weight in enumerate(WEIGHTS, 1):
        ahead = function(tuple(x + k * STEP * v for x, v in zip(at, direction, strict=True)))
        behind = function(tuple(x - k * STEP * v for x, v in zip(at, direction, strict=True)))
        part = [weight / STEP * (a - b) for a, b in zip(ahead, behind, strict=True)]
        total = part if total is None else [t + p for t, p in zip(total, part, strict=True)]
    assert total is not None
    return tuple(np.asarray(t) for t in total)


def with_active(arguments: Arrays, numbers: Sequence[int], moved: Arrays) -> Arrays:
    changed = list(arguments)
    for k, x in zip(numbers, moved, strict=True):
        changed[k] = np.asarray(x, dtype=arguments[k].dtype)
    return tuple(changed)


def assert_close(got: Sequence[Array], want: Sequence[Array], tolerance: float, what: str) -> None:
    assert len(got) == len(want), what
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype, f"{what}: dtype {g.dtype}, expected {w.dtype}"
        assert g.shape == w.shape, f"{what}: shape {g.shape}, expected {w.shape}"
        scale = 1.0 + np.max(np.abs(w), initial=0.0, where=np.isfinite(w))
        np.testing.assert_allclose(g, w, rtol=0, atol=tolerance * scale, err_msg=what)


class Point:
    """An IR function at given arguments, with a random tangent for each inexact argument and a cotangent for each
    result.
    """

    def __init__(
        self, fn: Function, arguments: Arrays, seed: int, project: Callable[[int, Array], Array] | None = None
    ) -> None:
        rng = np.random.default_rng(seed)
        self.fn = fn
        self.arguments = arguments
        self.wrt = inexact_numbers(arguments)
        self.outs = inexact_numbers([r.type for r in fn.results])
        self.active = tuple(arguments[k] for k in self.wrt)
        self.tangents = tuple(random_like(rng, x) for x in self.active)
        if project is not None:
            self.tangents = tuple(project(k, v) for k, v in zip(self.wrt, self.tangents, strict=True))
        self.any_tangents = tuple(random_like(rng, x) for x in self.active)
        self.cts = tuple(random_like(rng, fn.results[k].type) for k in self.outs)

    def tangents_as(self, arrays: Arrays) -> Arrays:
        """The tangents in the dtypes of other arguments."""
        return tuple(v.astype(arrays[k].dtype) for k, v in zip(self.wrt, self.tangents, strict=True))

    def value(self, active: Arrays) -> Arrays:
        results = interpret(self.fn, with_active(self.arguments, self.wrt, active))
        return tuple(results[k] for k in self.outs)

    def jvp(self, tangents: Arrays) -> Arrays:
        return interpret(forward(self.fn, self.wrt, with_outputs=False), (*self.arguments, *tangents))

    def vjp(self, cts: Arrays) -> Arrays:
        return interpret(reverse(self.fn, self.wrt, with_outputs=False), (*self.arguments, *cts))


def check_first_order(point: Point, tolerance: float) -> None:
    """Forward mode against finite differences, reverse mode against forward mode."""
    name = point.fn.name
    got = point.jvp(point.tangents)
    assert_close(got, along(point.value, point.active, point.tangents), tolerance, f"jvp of {name}")
    check_adjoint(point, tolerance)


def check_adjoint(point: Point, tolerance: float) -> None:
    pushed, pulled = point.jvp(point.any_tangents), point.vjp(point.cts)
    for gradient, x in zip(pulled, point.active, strict=True):
        assert (gradient.dtype, gradient.shape) == (x.dtype, x.shape)
    left, right = inner(point.cts, pushed), inner(pulled, point.any_tangents)
    size = 1 + sum(float(np.sum(np.abs(a) * np.abs(b))) for a, b in zip(pulled, point.any_tangents, strict=True))
    assert abs(left - right) <= tolerance * size, f"adjoint identity of {point.fn.name}: {left} and {right}"
