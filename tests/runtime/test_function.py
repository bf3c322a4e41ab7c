"""Function objects: called natively once something is installed, by Python otherwise; ordinary Python objects."""

import copy
import functools
import gc
import inspect
import pickle
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from pullback.codegen.object import Kind
from pullback.errors import ArgumentError, PullbackError
from pullback.runtime.compiled import Compiled, Miss
from pullback.runtime.function import CHAIN_LENGTH, NativeFunction, Specialisations
from pullback.runtime.native import is_native
from pullback.runtime.routes import Branch
from pullback.runtime.runtime import Runtime
from tests.runtime.kit import (
    array_arg,
    array_result,
    build,
    ctypes_runtime,
    fallback,
    native_runtime,
    number_arg,
    signature_of,
    status_kernel,
)


@pytest.fixture(params=["native", "ctypes"])
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return native_runtime() if request.param == "native" else ctypes_runtime()


def of_length(runtime: Runtime, length: int) -> Compiled:
    return build(signature_of([array_arg((length,))], array_result((length,))), runtime=runtime)


def test_without_a_specialisation_python_is_called(runtime: Runtime) -> None:
    function = runtime.function(fallback)
    assert function(1, "two", c=3) == ("python", (1, "two"), {"c": 3}, None)
    assert function() == ("python", (), {}, None)


def test_an_installed_specialisation_takes_the_calls_that_fit(runtime: Runtime) -> None:
    function = runtime.function(fallback)
    function.install(of_length(runtime, 3))
    x = np.arange(3.0)
    np.testing.assert_array_equal(function(x), x)
    assert function(2.0) == ("python", (2.0,), {}, None)
    assert function(x=x) == ("python", (), {"x": x}, None)
    many = tuple(range(200))
    assert function(*many, key=1) == ("python", many, {"key": 1}, None)


def test_several_specialisations_are_tried_natively(runtime: Runtime) -> None:
    function = runtime.function(fallback)
    compiled = [of_length(runtime, length) for length in range(1, CHAIN_LENGTH + 2)]
    for one in compiled:
        function.install(one)
    assert function.installed == tuple(reversed(compiled[1:]))
    for length in range(2, CHAIN_LENGTH + 2):
        np.testing.assert_array_equal(function(np.zeros(length)), np.zeros(length))
    assert function(np.zeros(1))[0] == "python"
    function.install(compiled[0])
    np.testing.assert_array_equal(function(np.zeros(1)), np.zeros(1))
    function.install(compiled[3])
    assert function.installed[:2] == (compiled[3], compiled[0])
    assert len(function.installed) == CHAIN_LENGTH


def test_uninstalling_leads_back_to_python(runtime: Runtime) -> None:
    function = runtime.function(fallback)
    compiled = of_length(runtime, 3)
    function.install(compiled)
    function.specialisations.put("key", compiled)
    function.uninstall_all()
    assert function.installed == ()
    assert len(function.specialisations) == 0
    assert function(np.zeros(3))[0] == "python"


def test_a_guard_hands_its_number_to_python(runtime: Runtime) -> None:
    function = runtime.function(fallback)
    plain = build(signature_of([number_arg(Kind.INT, dtype="i8")], array_result(())), status_kernel(), runtime)
    function.install(plain)
    np.testing.assert_array_equal(function(0), 1.0)
    assert function(5) == ("python", (5,), {}, Miss(plain, 5))
    assert function("no") == ("python", ("no",), {}, None)


def test_after_a_guard_the_other_paths_are_tried(runtime: Runtime) -> None:
    function = runtime.function(fallback)
    signature = signature_of([number_arg(Kind.INT, dtype="i8")], array_result((), "i8"))
    other_path = build(signature, runtime=runtime)
    guarded = build(signature, status_kernel(), runtime)
    branches = [Branch(other_path, (1, 1, 0)), Branch(guarded, (1, 1, 1))]
    function.install(guarded, "integers", branches)
    assert function(3) == 3
    function.install(guarded, "integers", branches)
    assert function(-3) == ("python", (-3,), {}, Miss(guarded, -3))


def test_an_error_raised_by_python_reaches_the_caller(runtime: Runtime) -> None:
    def refuse(*_: Any) -> None:
        raise LookupError("no")

    function = runtime.function(refuse)
    with pytest.raises(LookupError, match="no"):
        function(1)
    function.install(of_length(runtime, 3))
    with pytest.raises(LookupError, match="no"):
        function(1)
    with pytest.raises(LookupError, match="no"):
        function(x=1)


def test_it_looks_like_the_function_it_wraps(runtime: Runtime) -> None:
    def model(weights: Any, *, scale: float = 1.0) -> None:
        """Explains."""

    function = runtime.function(fallback, model)
    assert function.__wrapped__ is model
    assert (function.__name__, function.__doc__, function.__module__) == ("model", "Explains.", __name__)
    assert function.__qualname__ == model.__qualname__
    assert str(inspect.signature(function)) == str(inspect.signature(model))
    assert "model" in repr(function)
    assert "pullback" in repr(runtime.function(fallback))
    assert callable(function)
    function.note = 1
    assert function.note == 1
    del function.note
    assert not hasattr(function, "note")
    assert functools.partial(function, 2)(3) == ("python", (2, 3), {}, None)


def test_it_binds_as_a_method_does(runtime: Runtime) -> None:
    function = runtime.function(fallback)

    class Model:
        loss = function

    model = Model()
    assert model.loss(1) == ("python", (model, 1), {}, None)
    assert model.loss(1, k=2) == ("python", (model, 1), {"k": 2}, None)
    assert Model.loss is function
    bound = model.loss
    assert bound.__self__ is model
    assert bound(4) == ("python", (model, 4), {}, None)


def test_it_is_hashable_copies_as_itself_and_refuses_to_be_pickled(runtime: Runtime) -> None:
    function = runtime.function(fallback, len)
    assert copy.copy(function) is function
    assert copy.deepcopy([function])[0] is function
    assert {function: 1}[function] == 1
    with pytest.raises(ArgumentError, match=r"len.*cannot be pickled"):
        pickle.dumps(function)
    assert issubclass(ArgumentError, PullbackError)


def test_the_class_may_be_derived_from(runtime: Runtime) -> None:
    class Gradient(NativeFunction):
        """With a method of its own."""

        def lower(self) -> str:
            return f"lowered {self.__name__}"

    function = runtime.function(fallback, len, Gradient)
    assert isinstance(function, Gradient)
    assert isinstance(function, NativeFunction)
    assert function.lower() == "lowered len"
    function.install(of_length(runtime, 2))
    np.testing.assert_array_equal(function(np.zeros(2)), np.zeros(2))
    assert type(runtime.function(fallback, len, Gradient)) is type(function)


def test_native_functions_are_of_a_native_type() -> None:
    assert is_native(type(native_runtime().function(fallback)))
    assert type(ctypes_runtime().function(fallback)) is NativeFunction
    assert native_runtime().reason == ""
    assert "off" in ctypes_runtime().reason


def test_closures_that_hold_their_own_function_are_collected(runtime: Runtime) -> None:
    class Captured:
        pass

    def make() -> list[Any]:
        captured = Captured()

        def loss(x: Any) -> Any:
            return function, captured, x

        function = runtime.function(lambda *_: (loss, function), loss)
        compiled = of_length(runtime, 3)
        function.install(compiled)
        function.specialisations.put("key", compiled)
        function.back = compiled
        compiled.back = function  # type: ignore[attr-defined]
        function(np.zeros(3))
        compiled.invoke(np.zeros(3))
        return [weakref.ref(thing) for thing in (function, captured, compiled)]

    references = [reference for _ in range(20) for reference in make()]
    gc.collect()
    assert all(reference() is None for reference in references)


def test_weak_references_see_the_end_of_a_function(runtime: Runtime) -> None:
    function = runtime.function(fallback)
    ended: list[bool] = []
    weakref.finalize(function, ended.append, True)
    reference = weakref.ref(function)
    assert reference() is function
    function.install(of_length(runtime, 3))
    del function
    assert reference() is None
    assert ended == [True]


def test_calls_to_python_leak_nothing(runtime: Runtime) -> None:
    function = runtime.function(lambda *_: None)
    function.install(of_length(runtime, 3))
    marker = object()
    watched = [marker, function, type(function), None]
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(2000):
        function(marker)
        function(marker, key=marker)
    after = [sys.getrefcount(thing) for thing in watched]
    assert all(abs(one - other) < 20 for one, other in zip(before, after, strict=True)), (before, after)


def test_replaced_specialisations_are_freed(runtime: Runtime) -> None:
    function = runtime.function(fallback)
    references = []
    for length in range(3 * CHAIN_LENGTH):
        compiled = of_length(runtime, length + 1)
        references.append(weakref.ref(compiled))
        function.install(compiled)
        function(np.zeros(length + 1))
        del compiled
    gc.collect()
    assert sum(reference() is not None for reference in references) == CHAIN_LENGTH


def test_a_specialisation_that_drops_itself_during_its_call_stays_until_the_end() -> None:
    runtime = native_runtime()

    def drop(function: Any, *_: Any) -> str:
        function.uninstall_all()
        gc.collect()
        return "dropped"

    function = runtime.function(drop)
    function.install(build(signature_of([number_arg(Kind.INT, dtype="i8")], array_result(())), status_kernel()))
    assert function(4) == "dropped"
    assert function(0) == "dropped"


def test_specialisations_are_bounded_and_the_least_used_goes() -> None:
    kept = Specialisations(limit=3)
    units = [of_length(ctypes_runtime(), length) for length in range(1, 5)]
    for number, unit in enumerate(units[:3]):
        kept.put(number, unit)
    assert kept.get(0) is units[0]
    kept.put(3, units[3])
    assert [key for key, _ in kept.items()] == [0, 2, 3]
    assert kept.get(1) is None
    assert 2 in kept
    kept.drop(2)
    assert len(kept) == 2
    assert kept.get_or_build(2, lambda: units[2]) is units[2]
    assert kept.get(2) is units[2]


def test_a_failed_build_is_tried_again_by_the_next_caller() -> None:
    kept = Specialisations()
    unit = of_length(ctypes_runtime(), 1)

    def fail() -> Compiled:
        raise ArgumentError("not today")

    with pytest.raises(ArgumentError, match="not today"):
        kept.get_or_build("key", fail)
    assert kept.get_or_build("key", lambda: unit) is unit


def test_run_takes_flat_arrays_of_any_layout() -> None:
    unit = build(signature_of([array_arg((2, 3)), number_arg()], array_result((2, 3))), runtime=ctypes_runtime())
    x = np.arange(6.0).reshape(3, 2).T
    status, (result,) = unit.run([x, 2.5])
    assert status == 0
    np.testing.assert_array_equal(result, x)
    with pytest.raises(PullbackError, match=r"f64\[2,3\]"):
        unit.run([np.zeros((3, 2)), 1.0])
    with pytest.raises(TypeError, match="float32"):
        unit.run([np.zeros((2, 3), np.float32), 1.0])
    with pytest.raises(TypeError, match="2 arrays, found 1"):
        unit.run([x])
