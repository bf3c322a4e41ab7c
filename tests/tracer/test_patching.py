"""Creation functions are replaced only while a trace runs, only in its context, and always put back."""

import re
import threading
from typing import Any

import numpy as np
import pytest
from numpy import arange, zeros

from pullback.tracer.array import TracedArray
from pullback.tracer.functions.table import REPLACEMENTS
from tests.tracer.support import assert_as_numpy, traced

ORIGINALS = {(id(owner), name): getattr(owner, name) for owner, name, _ in REPLACEMENTS}


def assert_restored() -> None:
    for owner, name, _ in REPLACEMENTS:
        assert getattr(owner, name) is ORIGINALS[id(owner), name], name
    assert globals()["zeros"] is zeros_before


zeros_before = zeros


def test_everything_is_put_back_after_a_trace_and_after_an_error() -> None:
    traced(lambda x: np.zeros(2) + x, 1.0)
    assert_restored()
    with pytest.raises(RuntimeError, match="mine"):
        traced(failing, 1.0)
    assert_restored()


def writing_into(create: Any) -> Any:
    def f(x: Any) -> Any:
        out = create(3)
        out[1] = x
        return out * x

    return f


def test_variables_of_closures_are_replaced_too_and_put_back() -> None:
    inner = writing_into(np.zeros)

    def outer(x: Any) -> Any:
        traced(inner, 1.0)
        return inner(x)

    assert traced(outer, 2.0).function.result_types[0].shape == (3,)
    assert_as_numpy(inner, 2.0)
    assert inner.__closure__[0].cell_contents is np.zeros
    with pytest.raises(RuntimeError, match="mine"):
        traced(lambda x: failing(inner(x)), 1.0)
    assert inner.__closure__[0].cell_contents is np.zeros


def failing(x: Any) -> Any:
    np.zeros(2)
    raise RuntimeError("mine")


def test_names_imported_from_numpy_are_replaced_in_the_users_module_too() -> None:
    def f(x: Any) -> Any:
        out = zeros(3)
        out[:] = arange(3) * x
        return out

    assert_as_numpy(f, 2.0)
    assert_restored()


def test_other_threads_get_plain_arrays_meanwhile() -> None:
    kinds: list[type] = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: kinds.append(type(np.zeros(2))))
        thread.start()
        thread.join()
        kinds.append(type(np.zeros(2)))
        return x

    traced(f, 1.0)
    assert kinds == [np.ndarray, TracedArray]


def test_nested_and_simultaneous_traces_restore_once_all_have_ended() -> None:
    barrier = threading.Barrier(2)

    def f(x: Any) -> Any:
        barrier.wait(timeout=10)
        inner = traced(lambda y: np.ones(2) * y, 1.0)
        return np.zeros(2) + x + len(inner.function.ops)

    threads = [threading.Thread(target=traced, args=(f, 1.0)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_restored()


def test_numpys_own_code_keeps_its_arrays_inside_a_trace() -> None:
    def f(x: Any) -> Any:
        assert list(np.ndindex(2, 1)) == [(0, 0), (1, 0)]
        return x * np.median(np.array([1.0, 5.0, 3.0]))

    assert_as_numpy(f, 2.0)


def test_compiled_modules_get_plain_arrays_and_have_numpy_back_afterwards() -> None:
    generators = np.random._generator

    def f(x: Any) -> Any:
        assert generators.np is not np
        assert type(generators.np.empty(2)) is np.ndarray
        assert generators.np.random is np.random
        return x

    traced(f, 1.0)
    assert generators.np is np


def test_objects_used_by_subscript_take_traced_values() -> None:
    def f(x: Any) -> Any:
        return np.r_[x, 0:3, 5.0], np.c_[x, x], np.mgrid[0:2, 0:3] * x[0], [v for _, v in np.ndenumerate(x)]

    assert_as_numpy(f, np.array([1.0, 2.0]))


def test_vectorize_runs_its_function_on_each_element() -> None:
    step = np.vectorize(lambda v, k: v * k if v > 0 else k)
    assert_as_numpy(lambda x: step(x, 2.0), np.array([1.0, -2.0]))


def test_vectorize_holds_its_function_to_the_signature() -> None:
    x = np.ones((2, 3))
    for function, signature, args, message in (
        (np.dot, "(n),(n)->()", (x, np.ones(2)), "inconsistent size for core dimension 'n'"),
        (np.dot, "(n),(n)->()", (x,), "expected 2, got 1"),
        (np.dot, "(n,m,k),(n)->()", (x, x), "does not have enough dimensions"),
        (lambda r: (r, r), "(n)->(n)", (x,), "wrong number of outputs from pyfunc: expected 1, got 2"),
        (lambda r: r[0], "(n)->(n)", (x,), "0-dimensional result"),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            traced(np.vectorize(function, signature=signature), *args)


def test_an_array_of_text_or_objects_stays_numpys_own() -> None:
    def f(x: Any) -> Any:
        names = np.array(["a", "b"])
        assert type(names) is np.ndarray
        return x

    traced(f, 1.0)
