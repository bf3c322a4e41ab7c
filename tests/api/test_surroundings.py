"""What a function finds outside itself may change between calls: the next call knows."""

import array
import collections
import contextvars
import dataclasses
import functools
import operator
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

RATE = 2.0


def helper(x: Any) -> Any:
    return RATE * x


class Model:
    rate = 2.0

    def __init__(self) -> None:
        self.own, self.table, self.steps = 2.0, np.array([2.0]), 0

    def by_class(self, x: Any) -> Any:
        return self.rate * x

    def by_attribute(self, x: Any) -> Any:
        return self.own * x

    def by_array(self, x: Any) -> Any:
        return np.sum(self.table * x)

    @property
    def computed(self) -> float:
        return self.own

    def by_property(self, x: Any) -> Any:
        return self.computed * x

    def __call__(self, x: Any) -> Any:
        return self.own * x


class Slotted:
    __slots__ = ("rate",)


@dataclasses.dataclass
class Settings:
    rate: float = 2.0


Case = tuple[Callable[..., Any], Callable[[], Any]]


def closure() -> Case:
    rate = 2.0

    def change() -> None:
        nonlocal rate
        rate = 5.0

    return lambda x: rate * x, change


def of_container(holder: Any, key: Any) -> Case:
    return lambda x: holder[key] * x, lambda: holder.__setitem__(key, 5.0)


def of_attribute(thing: Any, name: str = "rate") -> Case:
    return lambda x: thing.rate * x, lambda: setattr(thing, name, 5.0)


def of_method(name: str, attribute: str, value: Any = 5.0) -> Case:
    model = Model()
    return getattr(model, name), lambda: setattr(model, attribute, value)


def slotted() -> Slotted:
    thing = Slotted()
    thing.rate = 2.0
    return thing


def in_place() -> Case:
    model = Model()
    return model.by_array, lambda: model.table.__setitem__(0, 5.0)


def default() -> Case:
    def f(x: Any, rate: float = 2.0) -> Any:
        return rate * x

    return f, lambda: setattr(f, "__defaults__", (5.0,))


def code() -> Case:
    def f(x: Any) -> Any:
        return 2.0 * x

    return f, lambda: setattr(f, "__code__", (lambda x: 5.0 * x).__code__)


def element(read: Callable[[Any], Any], size: int = 1) -> Case:
    table = np.full(size, 2.0)
    return lambda x: read(table) * x, lambda: table.__setitem__(0, 5.0)


def partial() -> Case:
    model = Model()
    return functools.partial(Model.by_attribute, model), lambda: setattr(model, "own", 5.0)


def own_module() -> Case:
    module = types.ModuleType("settings")
    module.__file__ = "/somewhere/settings.py"
    module.rate = 2.0  # type: ignore[attr-defined]
    return of_attribute(module)


def all_globals() -> Case:
    globals()["FACTOR"] = 2.0
    return lambda x: globals()["FACTOR"] * x, lambda: globals().__setitem__("FACTOR", 5.0)


def another_class() -> Case:
    class Two:
        def rate(self) -> float:
            return 2.0

    class Five:
        def rate(self) -> float:
            return 5.0

    thing = Two()
    return lambda x: thing.rate() * x, lambda: setattr(thing, "__class__", Five)


def context_variable() -> Case:
    variable = contextvars.ContextVar("rate", default=2.0)
    return lambda x: variable.get() * x, lambda: variable.set(5.0)


def weak_reference() -> Case:
    model = Model()
    reference = weakref.ref(model)
    keep = [model]
    return lambda x: reference().own * x * len(keep), lambda: setattr(model, "own", 5.0)


def read_only_mapping() -> Case:
    inner = {"rate": 2.0}
    proxy = types.MappingProxyType(inner)
    return lambda x: proxy["rate"] * x, lambda: inner.__setitem__("rate", 5.0)


def polynomial() -> Case:
    line = np.polynomial.Polynomial([0.0, 2.0])
    return lambda x: line(x), lambda: line.coef.__setitem__(1, 5.0)


def seen_as(kind: type) -> Case:
    table = np.array([2.0]).view(kind)
    return lambda x: float(table[0]) * x, lambda: table.__setitem__(0, 5.0)


class OwnArray(np.ndarray):
    pass


def keyword_default() -> Case:
    def f(x: Any, *, rate: float = 2.0) -> Any:
        return rate * x

    return f, lambda: f.__kwdefaults__.__setitem__("rate", 5.0)  # type: ignore[union-attr]


def decorated() -> Case:
    rate = [2.0]

    def scaled(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def call(x: Any) -> Any:
            return rate[0] * fn(x)

        return call

    return scaled(lambda x: x), lambda: rate.__setitem__(0, 5.0)


def longer_list() -> Case:
    ones = [1.0, 1.0]
    return lambda x: len(ones) * x, lambda: ones.extend([1.0] * 3)


def another_key() -> Case:
    rates = {"a": 2.0}
    return lambda x: sum(rates.values()) * x, lambda: rates.__setitem__("b", 3.0)


def getter() -> Case:
    settings, get = Settings(), operator.attrgetter("rate")
    return lambda x: get(settings) * x, lambda: setattr(settings, "rate", 5.0)


def numbers_of(values: Any) -> Case:
    return lambda x: values[0] * x, lambda: values.__setitem__(0, 5)


def lists_of_arrays() -> Case:
    rows = [np.array([1.0]), np.array([1.0])]
    return lambda x: np.sum(np.concatenate(rows) * x), lambda: rows[0].__setitem__(0, 4.0)


CASES: dict[str, Callable[[], Case]] = {
    "closure": closure,
    "dict": lambda: of_container({"rate": 2.0, "more": 1}, "rate"),
    "list": lambda: of_container([2.0, 3.0], 0),
    "deque": lambda: of_container(collections.deque([2.0]), 0),
    "ordered dict": lambda: of_container(collections.OrderedDict(rate=2.0), "rate"),
    "namespace": lambda: of_attribute(types.SimpleNamespace(rate=2.0)),
    "class": lambda: of_attribute(type("Config", (), {"rate": 2.0, "__module__": __name__})),
    "slots": lambda: of_attribute(slotted()),
    "dataclass": lambda: of_attribute(Settings()),
    "module": own_module,
    "method": lambda: of_method("by_attribute", "own"),
    "property": lambda: of_method("by_property", "own"),
    "hidden class attribute": lambda: of_method("by_class", "rate"),
    "another array": lambda: of_method("by_array", "table", np.array([5.0])),
    "array of another shape": lambda: of_method("by_array", "table", np.array([2.0, 3.0])),
    "array in place": in_place,
    "attributes exchanged": lambda: of_method("by_attribute", "__dict__", {"own": 5.0}),
    "default": default,
    "code": code,
    "partial": partial,
    "element": lambda: element(lambda table: table[0]),
    "float of an element": lambda: element(lambda table: float(table[0])),
    "float of a large array": lambda: element(lambda table: float(table[0]), 10_000),
    "list of an array": lambda: element(lambda table: table.tolist()[0]),
    "all globals": all_globals,
    "attrgetter": getter,
    "another class": another_class,
    "context variable": context_variable,
    "weak reference": weak_reference,
    "read-only mapping": read_only_mapping,
    "chain map": lambda: of_container(collections.ChainMap({"rate": 2.0}), "rate"),
    "user dict": lambda: of_container(collections.UserDict(rate=2.0), "rate"),
    "polynomial": polynomial,
    "subclass of ndarray": lambda: seen_as(OwnArray),
    "masked array": lambda: seen_as(np.ma.MaskedArray),
    "array of objects": lambda: of_container(np.array([2.0], object), 0),
    "bytes": lambda: numbers_of(bytearray([2])),
    "array.array": lambda: numbers_of(array.array("d", [2.0])),
    "memoryview": lambda: numbers_of(memoryview(array.array("d", [2.0]))),
    "keyword default": keyword_default,
    "decorated": decorated,
    "length of a list": longer_list,
    "another key": another_key,
    "list of arrays": lists_of_arrays,
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_noticed_at_the_next_call(name: str) -> None:
    function, change = CASES[name]()
    value, gradient, both = pb.jit(function), pb.grad(function), pb.value_and_grad(function)
    for _ in range(2):
        assert (value(1.0), gradient(1.0), both(1.0)) == (2.0, 2.0, (2.0, 2.0))
    change()
    for _ in range(2):
        assert (value(1.0), gradient(1.0), both(1.0)) == (5.0, 5.0, (5.0, 5.0))


def test_a_global_number_and_a_helper_may_be_rebound(monkeypatch: pytest.MonkeyPatch) -> None:
    g = pb.grad(lambda x: helper(x))
    assert g(1.0) == 2.0
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert g(1.0) == 5.0
    monkeypatch.setitem(globals(), "helper", lambda x: 7.0 * x)
    assert g(1.0) == 7.0
    monkeypatch.undo()
    assert g(1.0) == 2.0


def test_minus_zero_is_not_zero() -> None:
    holder = [0.0]
    g = pb.jit(lambda x: x * np.copysign(1.0, holder[0]))
    assert g(2.0) == 2.0
    holder[0] = -0.0
    assert g(2.0) == -2.0


def test_a_transformed_function_inside_another_sees_changes_too() -> None:
    settings = Settings()
    inner = pb.grad(lambda y: settings.rate * y * y / 2)
    outer = pb.grad(lambda x: inner(x))
    assert (inner(3.0), outer(1.0)) == (6.0, 2.0)
    settings.rate = 5.0
    assert (inner(3.0), outer(1.0)) == (15.0, 5.0)


def test_attributes_that_no_code_mentions_do_not_matter() -> None:
    model = Model()
    traces = []

    def f(x: Any) -> Any:
        traces.append(1)
        return model.by_attribute(x)

    g = pb.grad(f)
    for step in range(5):
        model.steps = step
        assert g(1.0) == 2.0
    assert len(traces) == 1


def test_an_equal_number_is_no_reason_to_trace_again() -> None:
    holder = {"rate": 2.5}
    traces = []

    def f(x: Any) -> Any:
        traces.append(1)
        return holder["rate"] * x

    g = pb.grad(f)
    for _ in range(5):
        holder["rate"] = float("2.5")
        assert g(1.0) == 2.5
    assert len(traces) == 1


def test_values_that_come_back_find_their_program() -> None:
    holder = {"rate": 2.0}
    traces = []

    def f(x: Any) -> Any:
        traces.append(1)
        return holder["rate"] * x

    g = pb.grad(f)
    for rate in (2.0, 5.0) * 4:
        holder["rate"] = rate
        assert g(1.0) == rate
    assert len(traces) == 2


def test_a_value_that_always_changes_is_warned_of() -> None:
    holder = [0.0]
    g = pb.jit(lambda x: holder[0] * x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rate in range(12):
            holder[0] = float(rate)
            assert g(1.0) == rate
    assert len(caught) == 1
    assert "closure variable 'holder'" in str(caught[0].message)


@pytest.mark.parametrize(
    "make", [lambda a: a, lambda a: a[::2], lambda a: a.reshape(2, 4).T, lambda a: a.astype(">f8")]
)
def test_a_captured_array_is_read_at_each_call(make: Callable[[Any], Any]) -> None:
    base = np.arange(8.0)
    data = make(base)
    g = pb.grad(lambda x: np.sum(data * x))
    for _ in range(3):
        assert g(1.0) == np.sum(data)
        data += 1.0


def test_a_captured_array_may_be_resized_and_reshaped() -> None:
    data = np.arange(6.0)
    g = pb.grad(lambda x: np.sum(data * x) * data.ndim)
    assert g(1.0) == 15.0
    data.shape = (2, 3)
    assert g(1.0) == 30.0
    data.resize((9,), refcheck=False)
    assert g(1.0) == 15.0
    data[:] = 1.0
    assert g(1.0) == 9.0


def test_writing_to_an_array_from_outside_is_an_error_even_of_plain_numbers() -> None:
    work = np.zeros(3)

    def f(x: Any) -> Any:
        work[:] = 0.0
        work[1] += 2.0
        return np.sum(work * x)

    with pytest.raises(pb.errors.UnsupportedError, match=r"(?s)writes to closure variable 'work'.*test_surroundings"):
        pb.jit(f)(1.0)
