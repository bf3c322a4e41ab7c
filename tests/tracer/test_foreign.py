"""Objects of other libraries beside traced values: they answer for themselves, or are converted as NumPy would."""

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.errors import LostGradientError, UnsupportedError

X = np.array([1.0, 2.0])
TEXT = np.array([["a", "b"]])


class Labelled:
    """As xarray's arrays: it has NumPy's protocols, wraps what it gets, and keeps its labels."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [x.data if isinstance(x, Labelled) else x for x in inputs]
        return Labelled(getattr(ufunc, method)(*plain, **kwargs))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return Labelled(func(*[x.data if isinstance(x, Labelled) else x for x in args], **kwargs))

    def __radd__(self, other: Any) -> Any:
        return Labelled(other + self.data)


class Column:
    """As a column of a table: it gives a plain array when asked."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([3.0, 4.0], dtype)


class Lazy:
    """As a column that NumPy's functions, called by its own library, make into an array when asked."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype)

    def __gt__(self, other: Any) -> Any:
        return Lazy([v > other for v in self.values])


class Opaque:
    """It takes no part in NumPy's arithmetic."""

    __array_ufunc__ = None

    def __rmul__(self, other: Any) -> str:
        return "mine"


def test_an_object_with_numpys_protocols_answers_for_itself() -> None:
    for function in (
        lambda x: np.sum((x + Labelled(X)).data * x),
        lambda x: np.sum(np.multiply(x, Labelled(X)).data),
        lambda x: np.concatenate([x, x])[0] * np.sum(np.dot(Labelled(X), x).data),
    ):
        np.testing.assert_allclose(pullback.jit(function)(X), function(X))
        assert np.abs(pullback.grad(function)(X)).min() > 0


def test_an_object_that_gives_an_array_is_converted() -> None:
    np.testing.assert_allclose(pullback.grad(lambda x: np.sum(np.multiply(x, Column())))(X), [3.0, 4.0])
    np.testing.assert_allclose(pullback.grad(lambda x: np.dot(x, Column()))(X), [3.0, 4.0])


def test_an_object_that_makes_its_array_with_numpy_is_converted_everywhere() -> None:
    column = Lazy([3.0, 4.0])
    for function in (
        lambda x: np.sum(np.asarray(column) * x),
        lambda x: np.sum(np.array(column) * x),
        lambda x: np.sum(np.where(column > 3.5, x, x * 2)),
        lambda x: np.sum(x[np.asarray(column > 3.5)]),
        lambda x: np.sum(x[column > 3.5]),
        lambda x: np.sum(np.concatenate([x, column])),
        lambda x: np.sum(np.zeros_like(column) + x),
    ):
        np.testing.assert_allclose(pullback.jit(function)(X), function(X))
        assert np.abs(pullback.grad(function)(X)).max() > 0


def test_an_object_that_refuses_numpys_arithmetic_is_asked_itself() -> None:
    def function(x: Any) -> Any:
        assert x * Opaque() == "mine"
        return x.sum()

    assert pullback.jit(function)(X) == 3.0


def test_conversions_that_would_lose_the_gradient_are_errors() -> None:
    for convert in (float, complex, lambda x: np.zeros(1, object).astype(float) + float(x), lambda x: X.fill(x)):
        with pytest.raises(LostGradientError, match=r"(?s)lose its gradient.*test_foreign\.py"):
            pullback.grad(lambda x, convert=convert: x * convert(x))(2.0)


def test_compiled_code_that_refuses_a_traced_array_without_a_word_about_it_is_an_error_with_the_line() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    functions = [
        lambda x: linalg.expm(x * np.eye(3)).sum(),
        lambda x: x * linalg.expm(np.ones((3, 3))).sum(),
        lambda x: x * linalg.bandwidth(np.eye(3))[0],
    ]
    expected = r"a traced value has no memory[\s\S]*\n  at .*test_foreign.py:\d+ in <lambda>"
    for function in functions:
        with pytest.raises(UnsupportedError, match=expected):
            pullback.jit(function)(2.0)


def test_the_line_of_a_refusal_is_the_users_where_compiled_code_has_made_up_one_of_its_own() -> None:
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    with pytest.raises(UnsupportedError, match=r"\n  at .*test_foreign.py:\d+ in <lambda>"):
        pullback.jit(lambda x: x * csgraph.dijkstra(np.ones((3, 3))))(2.0)


def test_an_error_of_compiled_code_about_something_else_stays_what_it_is() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    with pytest.raises(TypeError) as caught:
        pullback.jit(lambda x: x * linalg.bandwidth(TEXT)[0])(2.0)
    assert not isinstance(caught.value, UnsupportedError)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.complex128])
def test_a_call_of_a_type_of_numpy_says_which_cast_to_write(kind: Any) -> None:
    name = np.dtype(kind).name
    functions = [
        lambda x: kind(x) * x,
        lambda x: kind(x * np.ones(2)) * x,
        lambda x: kind(np.arange(2) * x.astype(int)) * x,
    ]
    for function in functions:
        with pytest.raises(TypeError, match=rf"write x\.astype\(np\.{name}\) for np\.{name}\(x\)"):
            pullback.jit(function)(2.0)
