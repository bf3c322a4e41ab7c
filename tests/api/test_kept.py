"""What is compiled is kept for the next call: products with Jacobians, and transforms made anew for each call."""

import functools
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError


class Traces:
    """A function that counts how often it runs."""

    def __init__(self) -> None:
        self.count = 0

    def wave(self, x: Any) -> Any:
        self.count += 1
        return np.sum(np.sin(x) * x) if np.sum(x) > 0 else np.sum(x**3)


def slope(x: Any) -> Any:
    return np.sin(x) + x * np.cos(x) if x.sum() > 0 else 3 * x**2


def curvature(x: Any) -> Any:
    return 2 * np.cos(x) - x * np.sin(x) if x.sum() > 0 else 6 * x


POINTS = [np.linspace(low, low + 1.0, 3) for low in (0.5, -2.0, 0.1, -3.0)] * 2


def test_a_loop_of_vjps_traces_each_path_once() -> None:
    traces = Traces()
    f = traces.wave
    for x in POINTS:
        value, pull = pb.vjp(f, x)
        assert value == pytest.approx(Traces().wave(x), rel=1e-14)
        for weight in (1.0, -2.0):
            np.testing.assert_allclose(pull(weight)[0], weight * slope(x), rtol=1e-13)
    assert traces.count == 2


def test_a_loop_of_products_with_the_hessian_traces_each_path_once() -> None:
    traces = Traces()
    v = np.array([1.0, -2.0, 0.5])
    for x in POINTS:
        gradient, product = pb.jvp(pb.grad(traces.wave), (x,), (v,))
        np.testing.assert_allclose(gradient, slope(x), rtol=1e-13)
        np.testing.assert_allclose(product, curvature(x) * v, rtol=1e-13)
        np.testing.assert_allclose(pb.vjp(pb.grad(traces.wave), x)[1](v)[0], curvature(x) * v, rtol=1e-13)
    assert traces.count == 4


def test_a_gradient_made_anew_for_each_call_traces_each_path_once() -> None:
    traces = Traces()
    for x in POINTS:
        np.testing.assert_allclose(pb.grad(traces.wave)(x), slope(x), rtol=1e-13)
        np.testing.assert_allclose(pb.hessian(traces.wave)(x), np.diag(curvature(x)), rtol=1e-13, atol=1e-14)
    assert traces.count == 4


def test_what_differs_is_not_taken_for_the_same() -> None:
    class Scaled:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Scaled)

        def __hash__(self) -> int:
            return 1

        def __call__(self, x: Any) -> Any:
            return x * x * self.factor

    for factor in (1.0, 5.0, 1.0):
        thing = Scaled(factor)
        assert pb.grad(thing)(2.0) == 4.0 * factor
        assert pb.grad(thing.__call__)(2.0) == 4.0 * factor
        assert pb.vjp(thing, 2.0)[1](1.0) == (4.0 * factor,)
        assert pb.jvp(thing, (2.0,), (1.0,)) == (4.0 * factor, 4.0 * factor)
        assert pb.grad(functools.partial(lambda a, x: a * x, factor))(2.0) == factor
        assert pb.vjp(lambda x, factor=factor: x * factor, 2.0)[1](1.0) == (factor,)

    def product(x: Any, y: Any) -> Any:
        return x * x * y

    assert (pb.grad(product)(2.0, 3.0), pb.grad(product, 1)(2.0, 3.0)) == (12.0, 4.0)
    assert pb.grad(product, (0,))(2.0, 3.0) == (12.0,)
    assert pb.grad(product, (0, 1))(2.0, 3.0) == (12.0, 4.0)


def test_options_belong_to_what_is_kept() -> None:
    tied = np.array([1.0, 3.0, 3.0])
    for ties, expected in (
        ("equal", [0, 0.5, 0.5]),
        ("all", [0, 1, 1]),
        ("first", [0, 1, 0]),
        ("equal", [0, 0.5, 0.5]),
    ):
        with pb.options(ties=ties):
            np.testing.assert_array_equal(pb.grad(np.max)(tied), expected)
            np.testing.assert_array_equal(pb.vjp(np.max, tied)[1](1.0)[0], expected)
            np.testing.assert_array_equal(pb.jvp(pb.grad(np.max), (tied,), (tied,))[0], expected)


def test_a_pullback_keeps_its_own_point_and_path() -> None:
    def f(x: Any, scale: Any) -> Any:
        return {"a": x * scale if scale > 0 else x**2, "n": 3}

    x = np.array([1.0, -2.0])
    first, second = pb.vjp(f, x, 2.0), pb.vjp(f, x, -1.0)
    x[:] = 0.0  # what was kept is a copy
    ct = {"a": np.array([1.0, 10.0]), "n": 0}
    for _ in range(2):
        np.testing.assert_array_equal(first[1](ct)[0], [2.0, 20.0])
        assert first[1](ct)[1] == -19.0
        np.testing.assert_array_equal(second[1](ct)[0], [2.0, -40.0])
        assert second[1](ct)[1] == 0.0


def test_a_cotangent_is_cast_to_the_type_of_the_output_and_checked() -> None:
    x = np.ones((2, 3), np.float32)
    _, pull = pb.vjp(lambda x: x * x, x)
    for ct in (np.full((2, 3), 2.0), np.full((2, 3), 2), np.full((3, 2), 2.0, np.float32).T):
        (gradient,) = pull(ct)
        assert gradient.dtype == np.float32
        np.testing.assert_array_equal(gradient, np.full((2, 3), 4.0))
    for bad in (np.ones((3, 2)), 1.0, (np.ones((2, 3)),), "no", np.ones((2, 3), complex)):
        with pytest.raises(ArgumentError, match="cotangent"):
            pull(bad)
    with pytest.raises(ArgumentError, match="cannot be pickled"):
        pull.__reduce__()


def test_vjp_inside_of_another_transform() -> None:
    def f(x: Any) -> Any:
        _, pull = pb.vjp(lambda y: np.sin(y) if np.sum(y) > 0 else y**3, x)
        return np.sum(pull(x)[0])

    for x in (np.array([1.0, 2.0]), np.array([-1.0, -2.0]), np.array([0.5, 2.0])):
        expected = np.cos(x) - x * np.sin(x) if x.sum() > 0 else 9 * x**2
        np.testing.assert_allclose(pb.grad(f)(x), expected, rtol=1e-13)


def test_what_is_kept_goes_with_the_function() -> None:
    class Data:
        factor = 3.0

    data = Data()
    alive = weakref.ref(data)

    def loss_of(held: Any) -> Any:
        return lambda x: np.sum(x * x) * held.factor

    loss = loss_of(data)
    x = np.ones(2)
    for transform in (pb.grad, pb.jit, pb.hessian):
        transform(loss)(x)
    pb.vjp(loss, x)[1](1.0)
    pb.jvp(pb.grad(loss), (x,), (x,))
    del loss, data
    gc.collect()
    assert alive() is None


def test_a_wrapper_does_not_take_what_its_function_keeps() -> None:
    def inner(x: Any) -> Any:
        return x * x

    assert pb.grad(inner)(3.0) == 6.0

    @functools.wraps(inner)
    def outer(x: Any) -> Any:
        return inner(x) * 10.0

    assert pb.grad(outer)(3.0) == 60.0
    assert pb.grad(inner)(3.0) == 6.0
    assert pb.vjp(outer, 3.0)[1](1.0) == (60.0,)


def cube(x: Any) -> Any:
    return np.sum(x**3)


@pb.grad
def decorated(x: Any) -> Any:
    return x**4


def test_transforms_of_functions_with_a_name_can_be_pickled() -> None:
    x = np.array([1.0, 2.0])
    with pb.options(ties="first"):
        largest = pb.grad(np.max)
    made = [
        pb.grad(cube),
        pb.value_and_grad(cube, (0,)),
        pb.jit(pb.grad(cube)),
        pb.hessian(cube),
        pb.jacrev(pb.grad(cube)),
        pb.vmap(pb.grad(cube), in_axes=(0,)),
    ]
    for transform in (*made, largest):
        again = pickle.loads(pickle.dumps(transform))
        expected = transform(x)
        np.testing.assert_equal(again(x), expected)
    assert pickle.loads(pickle.dumps(largest)).options == largest.options
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(pb.grad(lambda x: x))
