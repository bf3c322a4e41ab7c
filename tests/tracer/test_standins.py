"""Copies of arrays from outside the function take traced values."""

import functools
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy import ndarray

import pullback
from pullback.errors import LostGradientError, OutsideWriteError, UnsupportedError
from tests.tracer.support import assert_as_numpy

TABLE = np.arange(4.0)
COUNT = 0


def _filled(p: Any) -> Any:
    y = TABLE.copy()
    y[1] = p
    return y


def _by_default(p: Any, base: Any = TABLE, *, more: Any = TABLE) -> Any:
    y, z = base.copy(), more.astype(float)
    y[0], z[1] = p, p
    return y.sum() * z[1]


class Hidden:
    __slots__ = ("table",)

    def __init__(self, table: Any) -> None:
        self.table = table


class Model:
    def __init__(self) -> None:
        self.weights = np.array([1.0, 2.0])
        self.calls = 0

    def loss(self, p: Any) -> Any:
        self.calls += 1
        w = self.weights.copy()
        w[0] *= p
        return np.sum(w**2)


def _of_closure() -> Any:
    outside = np.ones((2, 2))

    def f(p: Any) -> Any:
        y = outside.T.copy()
        y[0] += p
        y[1, 1] *= p
        return np.sum(y**3)

    return f


def _computed(p: Any) -> Any:
    y = TABLE[1:] * 2.0
    y += p
    np.multiply(y, p, out=y)
    return np.sum(y)


def _allocated(p: Any) -> Any:
    y = np.ndarray((3,))
    z = ndarray(2, order="F")
    y[:] = p
    z[:] = p * 2
    return np.sum(y) * z[0], isinstance(y, np.ndarray), isinstance(TABLE, np.ndarray)


def _of_containers() -> Any:
    tables, named = [1, np.ones(3)], {"weights": [np.arange(3.0)]}

    def f(p: Any) -> Any:
        y, z = tables[1].copy(), named["weights"][0].copy()
        y[0], z[1:] = p, p
        return np.sum(y * z * tables[0])

    return f


def _of_module() -> Any:
    settings = ModuleType("settings")
    settings.__file__ = __file__
    settings.table = np.arange(3.0)  # type: ignore[attr-defined]

    def f(p: Any) -> Any:
        y = settings.table.copy()
        y[0] = p
        return np.sum(y * p)

    return f


FUNCTIONS = {
    "lists and dictionaries": _of_containers(),
    "a module": _of_module(),
    "a global": lambda p: np.sum(_filled(p) ** 2),
    "a closure": _of_closure(),
    "defaults": _by_default,
    "an attribute": Model().loss,
    "a partial": functools.partial(lambda table, p: np.sum(_filled(p) * table), TABLE),
    "what NumPy computes": _computed,
    "np.ndarray": lambda p: _allocated(p)[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_copy_of_an_outside_array_takes_traced_values(name: str) -> None:
    function = FUNCTIONS[name]
    assert_as_numpy(function, 1.5)
    step = 1e-6
    numeric = (function(1.5 + step) - function(1.5 - step)) / (2 * step)
    np.testing.assert_allclose(pullback.grad(function)(1.5), numeric, rtol=1e-6)


def test_np_ndarray_is_still_the_type_of_arrays() -> None:
    assert_as_numpy(lambda p: _allocated(p)[1:], 2.0)


def test_the_outside_array_is_read_anew_and_never_written_to() -> None:
    outside = np.array([1.0, 2.0])

    def f(p: Any) -> Any:
        y = outside.copy()
        y[0] = p
        return np.sum(y * p)

    compiled = pullback.jit(f)
    assert compiled(3.0) == 15.0
    outside[1] = 10.0
    assert compiled(3.0) == 39.0
    np.testing.assert_array_equal(outside, [1.0, 10.0])


def test_side_effects_reach_the_original_names_and_objects() -> None:
    model, seen = Model(), [0]

    def f(p: Any) -> Any:
        global COUNT
        COUNT += 1
        seen.append(1)
        return model.loss(p) + _filled(p)[1]

    before = COUNT
    assert pullback.grad(f)(2.0) == 5.0
    assert before + 1 == COUNT
    assert seen == [0, 1]
    assert model.calls == 1


def test_side_effects_of_the_trace_that_failed_are_undone() -> None:
    calls, sizes, known = [0], {"old": 1}, {1}

    def f(p: Any) -> Any:
        calls[0] += 1
        sizes.setdefault("new", len(sizes))
        known.add(len(known) + 1)
        y = TABLE.copy()
        y[1] = p * calls[0] * len(known)
        return np.sum(y)

    assert pullback.grad(f)(1.0) == 2.0
    assert (calls, sizes, known) == ([1], {"old": 1, "new": 1}, {1, 2})


def test_a_plain_number_written_outside_before_the_trace_fails_is_refused() -> None:
    outside = np.ones(2)
    (kept,) = frozenset([Hidden(outside)])

    def f(p: Any) -> Any:
        kept.table[0] = 3.0
        y = TABLE.copy()
        y[1] = p
        return np.sum(y) * outside[0]

    with pytest.raises(UnsupportedError, match="writes to"):
        pullback.grad(f)(1.0)


def test_what_is_done_to_lists_and_closure_variables_reaches_the_originals() -> None:
    log, total, named = [np.ones(2)], 0, {"table": np.ones(2), "old": 1}

    def f(p: Any) -> Any:
        nonlocal total
        total = total + 1
        log.append("seen")
        named["new"] = named.pop("old", 2)
        y, z = log[0].copy(), named["table"].copy()
        y[0], z[1] = p, p
        return np.sum(y * z)

    one, table = log[0], named["table"]
    assert pullback.grad(f)(3.0) == 2.0
    assert total > 0
    assert log[0] is one
    assert set(log[1:]) == {"seen"}
    assert named["table"] is table
    assert set(named) == {"table", "new"}


def test_writing_to_the_outside_array_itself_names_the_line_and_the_way_out() -> None:
    def assign(p: Any) -> Any:
        TABLE[0] = p
        return TABLE

    def add(p: Any) -> Any:
        return np.add(p, 1, out=TABLE)

    with pytest.raises(LostGradientError, match=r"(?s)write to a copy of it \(np.copy\).*test_standins\.py:\d+"):
        pullback.jit(assign)(1.0)
    with pytest.raises(OutsideWriteError, match=r"(?s)np\.copy.*test_standins\.py:\d+"):
        pullback.jit(add)(np.ones(4))
    np.testing.assert_array_equal(TABLE, np.arange(4.0))
