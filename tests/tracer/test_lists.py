"""NumPy's functions find traced values inside lists and in arguments that NumPy's own protocols pass over."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import mean as average_of

from pullback.errors import LostGradientError
from pullback.tracer.functions.lists import Searching
from pullback.tracer.functions.table import SEARCHING
from tests.tracer.support import assert_as_numpy, traced

X = np.array([1.1, 2.2, 0.5, 4.0])

IN_LISTS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum([v**2 for v in x]),
    "mean, imported by name": lambda x: average_of([x[0], 3.0]),
    "max": lambda x: np.max([x[0] ** 2, x[1], 3.0]),
    "norm": lambda x: np.linalg.norm([x[0], x[1]]),
    "det": lambda x: np.linalg.det([[x[0], 1.0], [2.0, x[1]]]),
    "solve": lambda x: np.linalg.solve(np.eye(2) + 1, (x[0], x[1])),
    "fft": lambda x: np.fft.fft([x[0], x[1]]),
    "sin": lambda x: np.sin([x[0], x[1]]),
    "where": lambda x: np.where([True, False], [x[0], 1.0], [2.0, x[1]]),
    "dot": lambda x: np.dot([x[0], x[1]], [x[2], 3.0]),
    "einsum": lambda x: np.einsum("i,i", [x[0], x[1]], [1.0, 2.0]),
    "reduce": lambda x: np.logaddexp.reduce([x[0], x[1]]),
    "outer": lambda x: np.multiply.outer([x[0], 1.0], [1.0, x[1]]),
    "a matrix of a list and a slice": lambda x: np.array([[x[0], 1.0], x[2:]]),
    "a matrix of a slice and a list": lambda x: np.array([x[2:], [x[0], 1.0]]),
    "trapezoid": lambda x: np.trapezoid([x[0], x[1]], [0.0, x[2]]),
    "gradient": lambda x: np.gradient([1.0, 2.0, x[0]], [0.0, x[2], 3.0]),
    "comparison": lambda x: np.count_nonzero([x[0] > 1, x[1] > 3]),
    "integers": lambda x: np.sum([np.argmax(x), 2]),
}

PASSED_OVER: dict[str, Callable[[Any], Any]] = {
    "interp": lambda x: np.interp(np.array([-1.0, 0.5]), [0.0, 1.0], [1.0, 2.0], left=x[0]),
    "pad": lambda x: np.pad(np.ones(2), 1, constant_values=(x[0], x[1])),
    "select": lambda x: np.select([np.array([True, False])], [np.ones(2)], default=x[0]),
    "initial": lambda x: np.max(np.ones(2), initial=x[0]),
    "dx": lambda x: np.trapezoid(np.ones(3), dx=x[0]),
    "nan": lambda x: np.nan_to_num(np.array([np.nan, 1.0]), nan=x[0]),
    "mean": lambda x: np.var(np.arange(3.0), mean=x[0]),
    "a closure": lambda x: np.piecewise(OUTER, [OUTER > 1], [lambda v: v * x[0], lambda v: x[1]]),
}
OUTER = np.array([0.5, 3.0])


@pytest.mark.parametrize("name", [*IN_LISTS])
def test_traced_values_in_lists_are_found(name: str) -> None:
    assert_as_numpy(IN_LISTS[name], X)


@pytest.mark.parametrize("name", [*PASSED_OVER])
def test_traced_values_in_any_argument_are_found(name: str) -> None:
    assert_as_numpy(PASSED_OVER[name], X)


ACTIVATIONS = {np.tanh: "tanh", np.sum: "sum"}


def test_numpys_functions_are_themselves_unless_a_value_would_be_lost() -> None:
    kept = np.tanh

    def f(x: Any) -> Any:
        assert kept is np.tanh
        return np.tanh(x)

    traced(f, X)


def test_what_stands_for_a_function_passes_for_it_and_is_gone_afterwards() -> None:
    before = np.tanh, np.linalg.norm, average_of

    def f(x: Any) -> Any:
        total = np.sum([x[0], x[1]])
        assert isinstance(np.tanh, np.ufunc)
        assert ACTIVATIONS[np.tanh] == "tanh"
        assert ACTIVATIONS[np.sum] == "sum"
        assert before[0] == np.tanh
        assert np.tanh != np.sinh
        assert np.add.identity == 0
        return total

    assert_as_numpy(f, X)
    assert (np.tanh, np.linalg.norm, average_of) == before
    assert type(np.tanh) is np.ufunc


def test_other_threads_get_plain_results_meanwhile() -> None:
    found: list[Any] = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: found.append(np.sum([1.0, 2.0])))
        thread.start()
        thread.join()
        return np.sum([x[0], 1.0])

    traced(f, X)
    assert found == [3.0]  # of the second trace; what the first one appended is undone
    assert all(type(v) is np.float64 for v in found)


def test_a_number_lost_for_good_is_still_an_error_with_the_line() -> None:
    with pytest.raises(LostGradientError, match=r"float\(\).*\n.*test_lists.py:\d+"):
        traced(lambda x: float(x[0]), X)


def test_every_function_with_a_rule_is_among_those_replaced() -> None:
    with SEARCHING.active():
        assert all(type(f) is Searching for f in (np.mean, np.interp, np.linalg.inv, np.fft.irfft))
    assert not isinstance(np.mean, Searching)
