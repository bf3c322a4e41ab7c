"""Words of memory tell whether names, attributes and items outside a function are what they were."""

import functools
import gc
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pullback.errors import CodegenError
from pullback.runtime.compiled import Miss
from pullback.runtime.watch import ROW_LIMIT, Watch, Words
from tests.runtime.kit import array_arg, array_result, build, ctypes_runtime, native_runtime, signature_of

GLOBAL = 1.5


def watch(fill: Callable[[Words], bool]) -> Watch:
    made = native_runtime().watch(fill)
    assert made is not None
    return made


def cell_of(value: Any) -> tuple[Any, Callable[[Any], None]]:
    def rebind(new: Any) -> None:
        nonlocal value
        value = new

    cell = (lambda: value).__closure__[0]  # type: ignore[index]
    return cell, rebind


def test_this_interpreter_is_laid_out_as_expected() -> None:
    assert native_runtime().watch(lambda words: True) is not None


def test_a_cell_is_watched_by_identity() -> None:
    old, new = object(), object()
    cell, rebind = cell_of(old)
    watched = watch(lambda words: words.cell(cell))
    assert watched.holds()
    rebind(new)
    assert not watched.holds()
    rebind(old)
    assert watched.holds()


def test_a_refreshed_watch_holds_with_what_there_is_now() -> None:
    cell, rebind = cell_of(1.5)
    watched = watch(lambda words: words.cell(cell))
    rebind(2.5)
    watched.refresh()
    assert watched.holds()
    watched.clear()
    assert not watched.holds()
    watched.refresh()
    assert watched.holds()


def test_a_global_name_is_watched_while_others_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    space = globals()
    watched = watch(lambda words: words.item(space, "GLOBAL"))
    for number in range(500):
        monkeypatch.setitem(space, f"other_{number}", number)
    watched.refresh()  # the dictionary has grown
    assert watched.holds()
    monkeypatch.setitem(space, "other_1", "something else")
    assert watched.holds()
    monkeypatch.setitem(space, "GLOBAL", 2.5)
    assert not watched.holds()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(b=0),
        lambda d: d.pop("b"),
        lambda d: d.update(new=1),
        lambda d: d.clear(),
        lambda d: (d.pop("a"), d.update(c=1)),
        lambda d: (d.clear(), d.update({"b": 2, "a": 1})),
    ],
)
def test_all_items_of_a_dictionary_are_watched(change: Callable[[Any], Any]) -> None:
    holder = {"a": [1], "b": [2]}
    watched = watch(lambda words: words.items(holder))
    assert watched.holds()
    change(holder)
    assert not watched.holds()


def test_keys_may_be_anything() -> None:
    holder: dict[Any, Any] = {1: "x", (2, 3): "y", "z": [4]}
    watched = watch(lambda words: words.items(holder))
    assert watched.holds()
    holder[2, 3] = "other"
    assert not watched.holds()


def test_deleted_items_leave_no_trace() -> None:
    holder = {str(n): [n] for n in range(10)}
    for n in range(0, 10, 2):
        del holder[str(n)]
    watched = watch(lambda words: words.items(holder))
    assert watched.holds()
    holder["3"] = [0]
    assert not watched.holds()


@pytest.mark.parametrize(
    "change",
    [lambda x: x.append(1), lambda x: x.pop(), lambda x: x.__setitem__(1, 0.5), lambda x: x.reverse(), list.clear],
)
def test_a_list_is_watched(change: Callable[[Any], Any]) -> None:
    items = [[1], [2], [3]]
    watched = watch(lambda words: words.sequence(items))
    assert watched.holds()
    change(items)
    assert not watched.holds()


class Plain:
    rate = 0.5

    def __init__(self) -> None:
        self.weights, self.count = [1.0], 3


class Slotted:
    __slots__ = ("count", "weights")

    def __init__(self) -> None:
        self.weights, self.count = [1.0], 3


def attribute(words: Words, thing: Any, name: str) -> bool:
    space = words.space(thing)
    return space is not None and words.item(space, name)


def make_module() -> ModuleType:
    module = ModuleType("somewhere")
    module.count, module.weights = 3, [1.0]  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(
    "make", [Plain, make_module, lambda: SimpleNamespace(count=3, weights=[1.0]), lambda: type("T", (), {"count": 3})]
)
def test_attributes_are_watched(make: Callable[[], Any]) -> None:
    thing = make()
    watched = watch(lambda words: attribute(words, thing, "count"))
    assert watched.holds()
    thing.unrelated = 1
    watched.refresh()
    thing.unrelated = 2
    assert watched.holds()
    thing.count = 4
    assert not watched.holds()
    watched.refresh()
    assert watched.holds()
    del thing.count
    assert not watched.holds()


def test_another_dictionary_of_attributes_is_noticed() -> None:
    thing = Plain()
    watched = watch(lambda words: attribute(words, thing, "count"))
    thing.__dict__ = {"count": 4}
    assert not watched.holds()


def test_many_objects_of_a_class_share_their_keys_and_not_their_values() -> None:
    things = [Plain() for _ in range(20)]
    watched = [watch(lambda words, t=thing: attribute(words, t, "weights")) for thing in things]
    for thing in things[::2]:
        thing.weights = [2.0]
    assert [w.holds() for w in watched] == [False, True] * 10


def test_slots_are_watched() -> None:
    thing = Slotted()
    watched = watch(lambda words: words.slot(thing, Slotted.count))  # type: ignore[arg-type]
    thing.weights = [2.0]
    assert watched.holds()
    thing.count = 4
    assert not watched.holds()


def test_the_code_and_the_defaults_of_a_function_are_watched() -> None:
    def function(x: float = 1.5) -> float:
        return x

    watched = watch(lambda words: words.function(function))
    function.__defaults__ = (2.5,)
    assert not watched.holds()
    watched.refresh()
    function.__code__ = (lambda x: 2 * x).__code__
    assert not watched.holds()


@pytest.mark.parametrize("dtype", ["f8", "i1", "c16", "f2", "?"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (11,)])
def test_each_element_of_a_small_array_is_watched(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    watched = watch(lambda words: words.elements(array))
    for index in np.ndindex(shape):
        assert watched.holds()
        array[index] = 0
        assert not watched.holds()
        array[index] = 1


def test_the_shape_and_the_dtype_of_an_array_are_watched() -> None:
    for change in ({"shape": (3, 2)}, {"dtype": np.dtype("i8")}):
        array = np.zeros((2, 3))
        watched = watch(lambda words, a=array: words.elements(a))
        for name, value in change.items():
            setattr(array, name, value)
        assert not watched.holds()


def test_a_large_array_is_compared_as_a_block() -> None:
    array = np.zeros(100_000, np.int16)
    watched = watch(lambda words: words.elements(array))
    assert watched.holds()
    array[-1] = 1
    assert not watched.holds()
    array[-1] = 0
    assert watched.holds()


def test_what_cannot_be_watched_gives_no_watch() -> None:
    runtime = native_runtime()
    assert runtime.watch(lambda words: words.elements(np.zeros(6)[::2])) is None
    assert runtime.watch(lambda words: words.sequence(list(range(ROW_LIMIT + 1)))) is None
    assert runtime.watch(lambda words: words.item({"a": 1}, "b")) is None
    assert ctypes_runtime().watch(lambda words: True) is None


def test_a_watch_that_has_grown_too_much_holds_no_more() -> None:
    items = [1.5]
    watched = watch(lambda words: words.sequence(items))
    items.extend(map(float, range(1000)))
    watched.refresh()
    assert not watched.holds()


def test_what_is_watched_lives_as_long_as_the_watch() -> None:
    holder = {"a": object()}
    old = id(holder["a"])
    watched = watch(lambda words: words.items(holder))
    for _ in range(100):
        holder["a"] = object()
        assert id(holder["a"]) != old
    gc.collect()
    assert not watched.holds()


def test_a_watched_entry_takes_its_arguments_only_while_nothing_has_changed() -> None:
    cell, rebind = cell_of(1)
    watched = watch(lambda words: words.cell(cell))
    signature = replace(signature_of([array_arg()], array_result()), watched=True)
    with pytest.raises(CodegenError, match="watched"):
        build(signature)
    unit = build(signature, watch=watched)
    x = np.arange(3.0)
    for invoke in (unit.invoke, lambda *args: unit.call(args)):
        rebind(1)
        np.testing.assert_array_equal(invoke(x), x)
        rebind(2)
        assert invoke(x) == Miss(unit, 0)


def test_threads_may_change_what_is_watched_while_others_compare() -> None:
    space: dict[str, Any] = {"value": 0.5}
    watched = watch(lambda words: words.item(space, "value"))
    stop = threading.Event()

    def churn() -> None:
        for number in range(10**9):
            space[f"n{number % 5000}"] = number
            if number % 7000 == 0:
                space.clear()
                space["value"] = 0.5
            if stop.is_set():
                return

    thread = threading.Thread(target=churn)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        for _ in range(300):
            watched.holds()
            watched.refresh()
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)
    space["value"] = 0.5
    watched.refresh()
    assert watched.holds()
    functools.reduce(lambda d, n: d.update({str(n): n}) or d, range(10_000), space)
    space["value"] = 2.5
    assert not watched.holds()
