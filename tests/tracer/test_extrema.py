"""Extrema of complex numbers, of signed zeros and of arrays with NaN: values, and gradients of both orders."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from tests.tracer.support import assert_as_numpy

Z = np.array([[1 + 2j, 1 + 3j, -2 + 1j], [1 + 3j, 0.5 - 1j, 1 - 4j]])
NANS = np.array([[2.0, np.nan, 2.0, -1.0], [np.nan, np.nan, np.nan, np.nan], [3.0, 1.0, np.nan, 3.0]])

COMPLEX: dict[str, Callable[[Any], Any]] = {
    "max": np.max,
    "max over an axis": lambda z: np.max(z, axis=1),
    "min keeping axes": lambda z: np.min(z, axis=(0, 1), keepdims=True),
    "max from a number": lambda z: np.max(z, axis=0, initial=1 + 2.5j),
    "max where": lambda z: np.max(z, axis=0, initial=-9, where=z.imag > 0),
    "ptp": lambda z: np.ptp(z, axis=1),
    "nanmax": lambda z: np.nanmax(z, axis=0),
    "maximum": lambda z: np.maximum(z, z[::-1]),
    "fmin": lambda z: np.fmin(z, 1 + 1j),
    "clip": lambda z: np.clip(z, 1 + 1j, 1 + 2.5j),
    "clip above": lambda z: np.clip(z, None, 1 + 2.5j),
    "sort": lambda z: np.sort(z, axis=None),
    "argmax": lambda z: (np.argmax(z), np.argmax(z, axis=1), np.argmin(z, axis=0, keepdims=True)),
    "argsort": lambda z: np.argsort(z, axis=1),
}
POISONED = np.array([[1 + 2j, complex(np.nan, 1), 3], [complex(1, np.nan), 2, complex(np.nan, 5)], [1, 1j, -1]])


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_are_ordered_as_numpy_orders_them(name: str) -> None:
    function = COMPLEX[name]
    assert_as_numpy(function, Z)
    assert_as_numpy(function, POISONED)
    for x in (Z, POISONED, Z.astype(np.complex64)):
        wanted, found = function(x), pullback.jit(function)(x)
        for u, v in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
            np.testing.assert_array_equal(u, v)


def _weighted(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A real loss of x + iy with a curved outer function, so that the second derivative is not zero."""

    def loss(x: Any, y: Any) -> Any:
        result = function(x + 1j * y)
        return np.sum(np.real(result) ** 3 + np.sin(np.imag(result)) * np.real(result))

    return loss


@pytest.mark.parametrize("name", [k for k in COMPLEX if not k.startswith("arg")])
def test_the_chosen_complex_element_gets_the_gradient_to_second_order(name: str) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    loss, step = _weighted(COMPLEX[name]), 1e-5
    direction = rng.normal(size=(2, 3))

    def slope(t: float, u: Any, v: Any) -> Any:
        return pullback.grad(loss, argnums=(0, 1))(u + t * direction, v)

    numeric = (loss(x + step * direction, y) - loss(x - step * direction, y)) / (2 * step)
    np.testing.assert_allclose(np.sum(slope(0.0, x, y)[0] * direction), numeric, rtol=1e-6, atol=1e-8)
    second = pullback.grad(lambda u: np.sum(pullback.grad(loss)(u, y) * direction))(x)
    changed = (slope(step, x, y)[0] - slope(-step, x, y)[0]) / (2 * step)
    np.testing.assert_allclose(second, changed, rtol=1e-5, atol=1e-6)


def test_equal_complex_elements_share_the_gradient() -> None:
    z = np.array([1 + 1j, 2 + 1j, 2 + 1j, 2 + 0j])
    np.testing.assert_allclose(pullback.grad(lambda a: np.real(np.max(a)))(z), [0, 0.5, 0.5, 0])
    half = pullback.grad(lambda a, b: np.sum(np.real(np.maximum(a, b))), argnums=(0, 1))(z[1:2], z[2:3])
    np.testing.assert_allclose(half, ([0.5], [0.5]))
    np.testing.assert_allclose(pullback.grad(lambda a: np.sum(np.real(np.clip(a, 2 + 1j, 3))))(z), [0, 1, 1, 0])


def test_nanmax_shares_among_numbers_and_gives_nothing_where_there_are_none() -> None:
    def loss(x: Any) -> Any:
        top = np.nanmax(x, axis=1)
        return np.sum(np.where(np.isnan(top), 0.0, top**2))

    wanted = [[2, 0, 2, 0], [0, 0, 0, 0], [3, 0, 0, 3]]
    np.testing.assert_allclose(pullback.grad(loss)(NANS), wanted)
    first = pullback.jvp(lambda x: np.nanmin(x, axis=1), (NANS,), (np.ones_like(NANS),))[1]
    np.testing.assert_allclose(first, [1, 0, 1])
    hessian = pullback.hessian(lambda x: np.nanmax(x) ** 2)(np.array([1.0, np.nan, 3.0]))
    np.testing.assert_allclose(hessian, np.diag([0, 0, 2.0]))


def test_clip_at_its_bounds_passes_the_gradient_and_keeps_the_sign_of_zero() -> None:
    x = np.array([-0.0, 0.0, -1.0, 2.0, 3.0])
    for function in (lambda a: np.clip(a, 0, 2), lambda a: np.clip(a, 0.0, None), lambda a: np.clip(a, -0.0 * a, 2.0)):
        np.testing.assert_array_equal(np.signbit(pullback.jit(function)(x)), np.signbit(function(x)))
    gradient = pullback.grad(lambda a: np.sum(np.clip(a, 0, 2) * np.arange(5.0)))(x)
    np.testing.assert_allclose(gradient, [0, 1, 0, 3, 0])
    nan = np.clip(x, np.nan, 1.0)
    np.testing.assert_array_equal(pullback.jit(lambda a, low: np.clip(a, low, 1.0))(x, np.nan), nan)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_of_signed_zeros_the_native_code_gives_numpys(dtype: str) -> None:
    rng = np.random.default_rng(0)
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "max": lambda a, b: np.max(a, axis=0),
        "min": lambda a, b: np.min(a, axis=1),
        "maximum": np.maximum,
        "minimum": lambda a, b: np.minimum(a, -0.0),
        "nanmax": lambda a, b: np.nanmax(a[:, :3], axis=1),
    }
    for shape in ((3, 3), (5, 3), (40, 9)):
        a, b = [np.where(rng.random(shape) < 0.5, 0.0, -0.0).astype(dtype) for _ in range(2)]
        for name, function in functions.items():
            if name in ("min", "nanmax") and shape[0] == 40:
                continue  # there NumPy's own choice depends on the width of its vectors
            found, wanted = pullback.jit(function)(a, b), function(a, b)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted), f"{name} of {dtype} {shape}")


def test_sorting_downwards_is_stable_and_differentiable() -> None:
    from pullback.tracer.functions.sorting import argsort, sort

    x = np.array([3.0, 1.0, np.nan, 2.0, 1.0])
    assert_as_numpy(lambda a: a[np.argsort(-a, kind="stable")], x)
    down = pullback.jit(lambda a: (sort(a, descending=True), argsort(a, descending=True)))(x)
    np.testing.assert_array_equal(down[0], [3, 2, 1, 1, np.nan])
    np.testing.assert_array_equal(down[1], [0, 3, 1, 4, 2])
    weights = np.arange(4.0)
    gradient = pullback.grad(lambda a: np.sum(sort(a, descending=True) * weights))(np.array([0.5, 2.0, -1.0, 3.0]))
    np.testing.assert_array_equal(gradient, [2, 1, 3, 0])
    np.testing.assert_array_equal(
        pullback.jit(lambda a: sort(a, descending=True))(np.array([1, 3, 2], "u1")), [3, 2, 1]
    )
    z = pullback.jit(lambda a: sort(a, descending=True))(np.array([1 + 1j, 2, 1 + 2j]))
    np.testing.assert_array_equal(z, [2, 1 + 2j, 1 + 1j])
