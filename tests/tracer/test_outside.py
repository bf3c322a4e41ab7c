"""What lies outside the function: captured arrays, names that change, randomness, other traces, other threads."""

import random
import threading
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pullback.errors import LeakedValueError, UnsupportedError
from pullback.tracer.array import TracedArray
from pullback.tracer.entry import inline
from pullback.tracer.environment import environment_of
from tests.tracer.support import assert_as_numpy, evaluated, execute, traced

SCALE = 3.0
TABLE = np.arange(3.0)
SETTINGS = {"rate": 0.5, "weights": np.ones(3)}


def helper(x: Any) -> Any:
    return x * SCALE


def test_a_captured_array_is_a_parameter_read_anew() -> None:
    c = np.array([1.0, 2.0])
    program = traced(lambda x: np.sum(x * c), 1.0)
    assert program.extras[0].source is c
    assert execute(program, 1.0) == 3.0
    c[:] = [5.0, 10.0]
    assert execute(program, 1.0) == 15.0
    assert program.environment.changed() is None


def test_a_number_taken_from_a_captured_array_ties_the_program_to_its_content() -> None:
    c = np.array([1.0, 2.0])
    for function in (lambda x: x * c[0], lambda x: x * (c * 2)[1], lambda x: x * float(np.asarray(c)[1])):
        program = traced(function, 1.0)
        assert program.environment.changed() is None
        c[:] += 1
        assert program.environment.changed() == "closure variable 'c'"


def test_an_index_array_from_outside_ties_the_program_to_itself_alone() -> None:
    index, data = np.array([2, 0]), np.arange(4.0)
    program = traced(lambda x: np.sum(x[index]) * np.sum(data * x[0]), np.ones(3))
    data[:] = 7.0
    assert program.environment.changed() is None
    index[0] = 1
    assert program.environment.changed() == "closure variable 'index'"


def test_a_global_number_a_nested_entry_and_a_rebound_array_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return np.sum(helper(x) * TABLE) * SETTINGS["rate"]

    program = traced(f, np.ones(3))
    assert program.environment.changed() is None
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert program.environment.changed() == "global 'SCALE'"
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert program.environment.changed() is None
    monkeypatch.setitem(SETTINGS, "rate", 0.25)
    assert program.environment.changed() == "global 'SETTINGS'"


def test_attributes_of_an_object_are_noticed() -> None:
    class Model:
        def __init__(self) -> None:
            self.weights, self.power = np.ones(3), 2

        def loss(self, x: Any) -> Any:
            return np.sum(self.weights * x**self.power)

    model = Model()
    program = traced(model.loss, np.ones(3))
    assert program.extras[0].source is model.weights
    assert program.environment.changed() is None
    model.power = 3
    assert program.environment.changed() == "Model object"


def test_a_side_effect_of_the_function_itself_does_not_count_as_a_change() -> None:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x * 2

    assert traced(f, 1.0).environment.changed() is None


def test_a_large_constant_becomes_a_parameter_and_a_uniform_one_a_broadcast() -> None:
    program = traced(lambda x: x * np.eye(80) + np.ones((80, 80)), 1.0)
    assert [e.constant for e in program.extras] == [True]
    assert sum(op.attrs["value"].array.size for op in program.function.ops if op.name == "constant") == 1


@pytest.mark.parametrize(
    "draw",
    [np.random.normal, lambda: np.random.default_rng().normal(), random.random],
    ids=["numpy", "unseeded", "python"],
)
def test_a_random_draw_is_refused(draw: Any) -> None:
    with pytest.raises(UnsupportedError, match="every call"):
        traced(lambda x: x * draw(), 1.0)


def test_a_generator_from_outside_is_refused_and_one_with_a_seed_inside_is_not() -> None:
    generator = np.random.default_rng(0)
    with pytest.raises(UnsupportedError, match="a Generator from outside"):
        traced(lambda x: x * generator.normal(), 1.0)
    with pytest.raises(UnsupportedError, match="a Generator from outside"):
        traced(lambda x: x * generator.normal(size=(2, 3)), 1.0)
    assert_as_numpy(lambda x: x * np.random.default_rng(3).normal(), 1.0)


def test_generators_make_plain_arrays_inside_a_trace() -> None:
    def f(x: Any) -> Any:
        generator = np.random.default_rng(3)
        noise = generator.normal(size=(2, 3)) * generator.choice([-1, 1], size=3) * np.random.RandomState(1).randn(3)
        return x * noise * generator.uniform(np.zeros(3), 2.0)

    assert_as_numpy(f, np.array([1.0, 2.0, 3.0]))


def test_an_inner_trace_reads_the_outer_arrays_through_extra_parameters() -> None:
    def outer(x: Any) -> Any:
        inner = traced(lambda y: x * y + np.sum(z * y), 1.0)
        assert [e.is_outer for e in inner.extras] == [True, False]
        (value,) = inline(inner.function, [2.0], inner.extras, inner.outputs)
        return x * value

    z = np.ones(2)
    assert evaluated(outer, 3.0) == 3.0 * (3.0 * 2.0 + 4.0)


def test_guards_of_an_inlined_program_are_numbered_anew() -> None:
    def outer(x: Any) -> Any:
        sign = 1.0 if x > 0 else -1.0
        inner = traced(lambda y: y * 2 if y > x else y, x + 1)
        (value,) = inline(inner.function, [x + 1], inner.extras, inner.outputs)
        return sign * value

    program = traced(outer, 3.0)
    assert [g.index for g in program.guards] == [0, 1]
    assert execute(program, 3.0) == 8.0


def test_an_inlined_program_on_constants_is_a_constant() -> None:
    square = traced(lambda y: y * y, 3.0)

    def f(x: Any) -> Any:
        (nine,) = inline(square.function, [3.0], square.extras, square.outputs)
        return x * float(nine)

    assert evaluated(f, 2.0) == 18.0


def test_writing_from_an_inner_trace_into_an_outer_array_is_an_error() -> None:
    def outer(x: Any) -> Any:
        out = x * np.zeros(2)

        def inner(y: Any) -> Any:
            out[0] = y
            return y

        return traced(inner, 1.0)

    with pytest.raises(UnsupportedError, match="return the new values"):
        traced(outer, 1.0)


def test_a_value_kept_after_its_trace_is_an_error_and_a_constant_is_an_array_again() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.extend([x * 2, np.arange(3)])
        return x

    traced(f, np.ones(2))
    with pytest.raises(LeakedValueError, match="after its trace had ended"):
        kept[0] + 1
    with pytest.raises(LeakedValueError, match="after its trace had ended"):
        traced(lambda y: y + kept[0], np.ones(2))
    assert isinstance(kept[1], TracedArray)
    np.testing.assert_array_equal(kept[1] + 1, [1, 2, 3])


def test_a_value_used_in_another_thread_is_an_error() -> None:
    def f(x: Any) -> Any:
        caught: list[BaseException] = []

        def work() -> None:
            try:
                x + 1
            except LeakedValueError as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert "another thread" in str(caught[0])
        return x

    traced(f, 1.0)


def test_attributes_of_a_module_made_at_run_time_are_noticed() -> None:
    settings: Any = ModuleType("settings")
    settings.rate = 2.0
    program = traced(lambda x: x * settings.rate, 1.0)
    assert program.environment.changed() is None
    settings.rate = 3.0
    assert program.environment.changed() is not None


def test_looking_around_does_not_follow_libraries() -> None:
    labels = [n.label for n in environment_of(lambda x: np.sum(helper(x))).names]
    assert labels == ["global 'helper'", "global 'SCALE'"]
