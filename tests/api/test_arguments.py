"""What the transforms take: argnums of all kinds, static arguments, containers, keywords; and what they refuse."""

import dataclasses
import functools
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, NonScalarOutputError, PullbackError

Pair = namedtuple("Pair", ["left", "right"])
X = np.array([1.0, 2.0, 3.0])


def weighted(x: Any, w: Any, scale: Any = 2.0) -> Any:
    return scale * np.sum(w * x**2)


@pytest.mark.parametrize("argnums", [0, "x", -2, np.int64(0)])
def test_one_argument_is_named_in_any_way(argnums: Any) -> None:
    np.testing.assert_allclose(pb.grad(weighted, argnums)(X, 3.0), 12 * X)


@pytest.mark.parametrize("argnums", [(0, 1), ("x", "w"), [0, "w"], (-2, -1), (np.int32(0), 1)])
def test_several_arguments_give_a_tuple(argnums: Any) -> None:
    found = pb.grad(weighted, argnums)(X, X)
    assert type(found) is tuple
    np.testing.assert_allclose(found[0], 4 * X * X)
    np.testing.assert_allclose(found[1], 2 * X**2)


def test_keyword_arguments_may_be_differentiated_in() -> None:
    np.testing.assert_allclose(pb.grad(weighted, "w")(X, w=X), 2 * X**2)
    np.testing.assert_allclose(pb.grad(weighted, 1)(X, w=X), 2 * X**2)
    assert pb.grad(weighted, "scale")(X, X, scale=3.0) == pytest.approx(36.0)
    np.testing.assert_allclose(pb.grad(weighted)(X, scale=1.0, w=2.0), 4 * X)
    np.testing.assert_allclose(pb.grad(weighted)(X, w=2.0, scale=1.0), 4 * X)


@pytest.mark.parametrize(
    ("argnums", "message"), [("y", "no argument named 'y'"), (5, "argnums 5"), (1.5, "must be an int"), ((), "empty")]
)
def test_a_wrong_argnum_is_an_error(argnums: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        pb.grad(weighted, argnums)(X, 1.0)


def test_aux_comes_back_as_it_is() -> None:
    def f(x: Any) -> Any:
        return np.sum(x**2), {"twice": 2 * x, "name": "f", "count": 3}

    gradient, aux = pb.grad(f, has_aux=True)(X)
    np.testing.assert_allclose(gradient, 2 * X)
    np.testing.assert_allclose(aux["twice"], 2 * X)
    assert (aux["name"], aux["count"]) == ("f", 3)
    (value, aux), gradient = pb.value_and_grad(f, has_aux=True)(X)
    assert value == 14.0
    assert list(aux) == ["twice", "name", "count"]


def test_holomorphic_functions_of_complex_arguments() -> None:
    z = 1.5 + 0.5j
    assert pb.grad(lambda v: v**3, holomorphic=True)(z) == pytest.approx(3 * z**2)
    with pytest.raises(NonScalarOutputError, match="holomorphic=True"):
        pb.grad(lambda v: v**3)(z)
    with pytest.raises(ArgumentError, match="not complex"):
        pb.grad(lambda v: v**3, holomorphic=True)(1.5)
    assert pb.grad(lambda v: np.abs(v) ** 2)(z) == pytest.approx(2 * np.conj(z))


def power(x: Any, kind: Any) -> Any:
    return np.sum(x ** (2 if kind == "square" else 3))


@pytest.mark.parametrize("statics", [1, (1,), "kind", -1])
def test_static_arguments_choose_the_program(statics: Any) -> None:
    g = pb.grad(power, static_argnums=statics)
    for _ in range(2):
        np.testing.assert_allclose(g(X, "square"), 2 * X)
        np.testing.assert_allclose(g(X, "cube"), 3 * X**2)
        np.testing.assert_allclose(g(X, kind="square"), 2 * X)


def test_static_values_that_are_equal_and_not_the_same_are_told_apart() -> None:
    g = pb.jit(lambda x, n: x * 0 + (n[0] / 2 if isinstance(n, tuple) else 1 / n), static_argnums=1)
    assert g(1.0, -0.0 + 2.0) == 0.5
    assert [float(g(1.0, (n,))) for n in (1, True, 3.0)] == [0.5, 0.5, 1.5]
    sign = pb.jit(lambda x, n: x + np.copysign(1.0, n), static_argnums=1)
    assert [float(sign(0.0, n)) for n in (0.0, -0.0, 0.0)] == [1.0, -1.0, 1.0]


@dataclasses.dataclass
class Model:
    weights: Any
    bias: Any
    steps: int = 3


def test_containers_come_back_in_their_own_form() -> None:
    params = {"b": [X, 2.0], "a": Pair(X, (X,)), "n": 4, "none": None}

    def f(p: Any) -> Any:
        return np.sum(p["b"][0] ** 2) + p["b"][1] ** 2 + np.sum(p["a"].left * p["a"].right[0]) * p["n"]

    for _ in range(2):
        g = pb.grad(f)(params)
        assert list(g) == ["b", "a", "n", "none"]
        assert type(g["a"]) is Pair
        assert g["n"] is None
        assert g["none"] is None
        np.testing.assert_allclose(g["b"][0], 2 * X)
        assert g["b"][1] == 4.0
        np.testing.assert_allclose(g["a"].right[0], 4 * X)


def test_dataclasses_are_containers() -> None:
    g = pb.grad(lambda m: np.sum(m.weights * X) + m.bias**2 * m.steps)(Model(X, 2.0))
    assert isinstance(g, Model)
    np.testing.assert_allclose(g.weights, X)
    assert (g.bias, g.steps) == (12.0, None)


def test_an_integer_argument_is_an_error_that_says_how_to_convert() -> None:
    with pytest.raises(ArgumentError, match=r"float\(x\)"):
        pb.grad(lambda n: n * 2.0)(3)
    with pytest.raises(ArgumentError, match=r"argument 0 .* is i64\[2\]"):
        pb.grad(lambda n: np.sum(n * 2.0))(np.array([1, 2]))


def test_a_gradient_has_the_type_of_its_argument() -> None:
    found = pb.grad(lambda x: np.sum(x * 2.0))(X.astype(np.float32))
    assert found.dtype == np.float32
    assert isinstance(pb.grad(lambda x: x * x)(2.0), np.float64)
    assert isinstance(pb.grad(lambda x: x * x)(np.float32(2.0)), np.float32)


def test_an_array_output_is_an_error_that_names_its_shape() -> None:
    with pytest.raises(NonScalarOutputError, match=r"shape \(3,\).*jacobian"):
        pb.grad(lambda x: x * 2)(X)
    with pytest.raises(NonScalarOutputError, match="container of 2"):
        pb.grad(lambda x: (x, x))(1.0)


def test_no_dependence_gives_zeros() -> None:
    np.testing.assert_array_equal(pb.grad(lambda x: 3.0)(X), np.zeros(3))
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(np.floor(x)))(X), np.zeros(3))


class Counter:
    def __init__(self, power: int) -> None:
        self.power = power

    def __call__(self, x: Any) -> Any:
        return np.sum(x**self.power)

    def method(self, x: Any) -> Any:
        return np.sum(x**self.power)

    @staticmethod
    def static(x: Any) -> Any:
        return np.sum(x**2)

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return np.sum(x**2)

    @functools.partial(pb.grad, argnums=1)
    def decorated(self, x: Any) -> Any:
        return np.sum(x**self.power)


@pytest.mark.parametrize(
    "function",
    [
        Counter(2),
        Counter(2).method,
        Counter.static,
        Counter.of_class,
        functools.partial(weighted, w=0.5),
        functools.partial(lambda p, x: np.sum(x**p), 2),
        pb.jit(lambda x: np.sum(x**2)),
        lambda *args: np.sum(args[0] ** 2),
        lambda x, **kwargs: np.sum(x**2),
    ],
)
def test_anything_callable_can_be_differentiated(function: Any) -> None:
    g = pb.grad(function)
    for _ in range(2):
        np.testing.assert_allclose(g(X), 2 * X)


def test_a_decorated_method_binds_and_sees_its_object_change() -> None:
    counter = Counter(2)
    np.testing.assert_allclose(counter.decorated(X), 2 * X)
    counter.power = 3
    np.testing.assert_allclose(counter.decorated(X), 3 * X**2)
    np.testing.assert_allclose(Counter(2).decorated(X), 2 * X)


def test_a_generator_function_is_an_error() -> None:
    def f(x: Any) -> Any:
        yield x

    with pytest.raises(PullbackError):
        pb.grad(f)(1.0)


def test_what_is_not_callable_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="needs a function"):
        pb.grad(3.0)


def test_strided_and_foreign_arrays_are_read_right() -> None:
    g = pb.grad(lambda x: np.sum(x**3))
    table = np.arange(24.0).reshape(4, 6)
    for x in (table[0, ::2], table.T, X[::-1], X.astype(">f8"), table[:, 1:4], table[::-1, ::2], table[:0, 1:4]):
        for _ in range(3):
            np.testing.assert_allclose(g(x), 3 * np.asarray(x) ** 2)


def test_results_are_independent_and_arguments_untouched() -> None:
    g = pb.value_and_grad(lambda x: np.sum(x * x))
    x = X.copy()
    (_, first), (_, second) = g(x), g(x)
    first[:] = -1.0
    np.testing.assert_allclose(second, 2 * X)
    np.testing.assert_array_equal(x, X)
    copied = pb.jit(lambda v: v)
    copied(x)[:] = 0.0
    np.testing.assert_array_equal(x, X)


def test_names_and_documentation_are_those_of_the_function() -> None:
    g = pb.grad(weighted)
    assert (g.__name__, g.__wrapped__) == ("weighted", weighted)
    assert repr(g) == "<pullback grad(weighted)>"


def test_arrays_of_any_layout_are_taken_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 5))
    g = pb.grad(lambda x: np.sum(np.sin(x) * np.arange(30.0).reshape(x.shape)))
    variants = [x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], x.astype(">f8"), x[::-1].copy()[::-1]]
    expected = np.cos(x) * np.arange(30.0).reshape(6, 5)
    for v in variants:
        np.testing.assert_allclose(g(v), expected, rtol=1e-13)
    monkeypatch.setattr(type(g), "_native_miss", None)  # what native code calls when it does not know the arguments
    for v in variants * 2:
        np.testing.assert_allclose(g(v), expected, rtol=1e-13)
