"""Gradients of every sample of NumPy's functions against central differences of plain NumPy, to second order.

The samples are those whose values are tested in `tests/tracer`. Each is looked at along one line through its arguments;
reverse mode and forward over reverse mode, interpreted, since lowering has its tests.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import pullback
from tests.api.interpreted import interpreted
from tests.tracer import calculation_samples, linalg_samples, structure_samples

FIRST = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # central differences of eighth order
SECOND, MIDDLE = (8 / 5, -1 / 5, 8 / 315, -1 / 560), -205 / 72
STEP, LONG_STEP = 1e-4, 4e-4
CONTINUOUS = (np.dtype(np.float64), np.dtype(np.complex128))

# on a line through these there is no derivative, or NumPy's own choice (of a sign, a phase, an order) jumps
LEFT_OUT = {
    "n2n": "infinite arguments",
    "sortN": "NaN in the result",
    "mediann": "NaN in the result",
    "round": "steps",
    "eigh-c": "phases",
    "eig-real": "signs",
    "eig-pairs": "phases",
    "svd-c": "phases",
    "roots-none": "order",
    "roots-one": "order",
    "roots-zeros": "a leading coefficient of 0",
    "poly-pairs": "roots in pairs are an exact condition",
    "pinvdef": "the rank changes",
    "dets": "the rank changes",
}
ALL = [*structure_samples.SAMPLES, *calculation_samples.SAMPLES, *linalg_samples.SAMPLES]


def leaves(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [leaf for item in result for leaf in leaves(item)]
    return [] if result is None or isinstance(result, str) else [result]


def weighted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A weighted sum of all that `function` returns, of real and imaginary parts."""

    def total(*args: Any) -> Any:
        found: Any = 0.0
        for k, leaf in enumerate(leaves(function(*args))):
            weights = np.cos(np.arange(np.size(leaf)) + k).reshape(np.shape(leaf))
            if np.result_type(leaf).kind in "fc":
                found = found + np.sum(weights * np.real(leaf))
            if np.result_type(leaf).kind == "c":
                found = found + np.sum(np.imag(leaf) * weights[::-1] if np.ndim(leaf) else np.imag(leaf) * 2)
        return found

    return total


def moved(args: Sequence[Any], along: Sequence[Any], step: float) -> list[Any]:
    return [np.array(a) if d is None else np.asarray(a) + step * d for a, d in zip(args, along, strict=True)]


def difference(weights: Sequence[float], value: Callable[[float], float], step: float, sign: float) -> float:
    return sum(w * (value(k * step) + sign * value(-k * step)) for k, w in enumerate(weights, 1))


def paired(gradient: Sequence[Any], along: Sequence[Any]) -> Any:
    directions = [d for d in along if d is not None]
    return sum(np.sum(np.real(g * d)) for g, d in zip(gradient, directions, strict=True))


@pytest.mark.parametrize("sample", [s for s in ALL if s[0] not in LEFT_OUT], ids=lambda s: s[0])
def test_a_sample_has_the_derivatives_that_numpys_values_have(sample: tuple[Any, ...]) -> None:
    _, function, *args = sample
    rng = np.random.default_rng(14)
    shifts = [rng.uniform(-1, 1, np.shape(a)) if np.asarray(a).dtype in CONTINUOUS else None for a in args]
    at = moved(args, shifts, 0.05)  # off the round numbers, where there are kinks; no two elements are close
    along = [None if s is None else rng.uniform(-1, 1, s.shape) for s in shifts]
    numbers = tuple(k for k, d in enumerate(along) if d is not None)
    if not numbers:
        return
    total = weighted(function)

    def value(step: float) -> float:
        with np.errstate(all="ignore"):
            return float(np.real(total(*moved(at, along, step))))

    slope = difference(FIRST, value, STEP, -1.0) / STEP
    bend = (difference(SECOND, value, LONG_STEP, 1.0) + MIDDLE * value(0.0)) / LONG_STEP**2

    gradient = pullback.grad(total, argnums=numbers)
    first = interpreted(gradient, *at)
    for g, k in zip(first, numbers, strict=True):
        assert g.dtype == at[k].dtype
    np.testing.assert_allclose(paired(first, along), slope, rtol=1e-8, atol=1e-8)

    tangents = tuple([along[k].astype(at[k].dtype) for k in numbers])

    def in_direction(*xs: Any) -> Any:
        def pulled(*ys: Any) -> Any:
            changed = dict(zip(numbers, ys, strict=True))
            return gradient(*[changed.get(k, x) for k, x in enumerate(xs)])

        return pullback.jvp(pulled, tuple([xs[k] for k in numbers]), tangents)[1]

    found = paired(interpreted(pullback.jit(in_direction), *at), along)
    np.testing.assert_allclose(found, bend, rtol=1e-5, atol=1e-5 * (1 + abs(value(0.0))))
