"""The tables are complete and consistent: every public name of NumPy has its place."""

import inspect
from typing import Any

import numpy as np
import pytest

from pullback.tracer.array import TracedArray
from pullback.tracer.convert import REFUSED_ATTRIBUTES
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions import catalogue
from pullback.tracer.functions.classes import METHODS, NEUTRAL, NOTES, REFUSED, UFUNC_METHODS, VALUE_ONLY
from pullback.tracer.functions.table import DISPATCH, MODULES, lookup
from tests.tracer.support import traced


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_public_name_of_numpy_is_classified() -> None:
    assert len(catalogue.classes()) > 400


def test_a_name_that_a_new_numpy_brings_must_be_classified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.linalg, "brand_new", lambda x: x, raising=False)
    with pytest.raises(KeyError, match=r"np\.linalg\.brand_new is not classified"):
        catalogue.classes()


def test_the_page_names_every_function_and_method() -> None:
    page = catalogue.page()
    for name in [*catalogue.classes(), *METHODS, *UFUNC_METHODS]:
        assert f"`{name}`" in page, name


def test_every_method_of_ndarray_is_there_or_refused_with_a_reason() -> None:
    methods = {name for name in dir(np.ndarray) if not name.startswith("_")}
    missing = {name for name in methods if not hasattr(TracedArray, name)}
    assert methods - METHODS.keys() == set()
    assert missing == methods & REFUSED_ATTRIBUTES.keys()
    for name in sorted(missing):
        with pytest.raises(AttributeError, match=name):
            traced(lambda x, name=name: getattr(x, name), np.ones(2))


def test_every_method_of_ufuncs_is_there() -> None:
    methods = {name for name in dir(np.ufunc) if not name.startswith("_") and callable(getattr(np.ufunc, name))}
    assert methods == UFUNC_METHODS.keys()
    assert methods - DISPATCH.tables.ufunc_methods.keys() == {"resolve_dtypes"}


def test_what_is_value_only_or_refused_exists() -> None:
    for name in [*VALUE_ONLY, *REFUSED, *NEUTRAL, *NOTES]:
        assert lookup(name.partition("[")[0]) is not None, name


def test_no_function_stands_in_two_tables() -> None:
    counts: dict[Any, int] = {}
    for module in MODULES:
        for function in module.FUNCTIONS:
            counts[function] = counts.get(function, 0) + 1
    assert {f for f, n in counts.items() if n > 1} == set()


def parameters(function: Any) -> list[str]:
    """Names a caller may write, with those behind `*args` and `**kwargs` left out."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds]


def takes_anything(function: Any) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def test_implementations_take_the_arguments_numpy_takes() -> None:
    lacking = {}
    for function, entry in DISPATCH.tables.functions.items():
        if (
            not isinstance(entry, Entry)
            or not hasattr(function, "_implementation")
            or takes_anything(entry.implementation)
        ):
            continue
        own = set(parameters(entry.implementation))
        missing = [n for n in parameters(function) if n not in own and n not in ("kwargs", "like")]
        positional = [
            n for n in missing if n not in ("a", "x", "m", "y", "ary", "arr", "v", "array", "tup", "arrays", "val")
        ]
        if positional:
            lacking[function.__name__] = positional
    assert lacking == {}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_function_names_itself_and_the_line(name: str) -> None:
    function = lookup(name)
    if not hasattr(function, "_implementation"):
        pytest.skip("not reached through NumPy's protocols")
    with pytest.raises((TypeError, NotImplementedError), match=name.split(".")[-1]) as caught:
        traced(lambda x: call_somehow(function, x), np.ones((2, 2)))
    assert "test_table.py" in str(caught.value)


def call_somehow(function: Any, x: Any) -> Any:
    """Any call that gets as far as NumPy's dispatch."""
    for args in ((x,), ("file", x), (x, x)) if "save" not in function.__name__ else (("file", x),):
        try:
            return function(*args)
        except TypeError as error:
            if "missing" not in str(error) and "argument" not in str(error):
                raise
    raise AssertionError(f"{function} could not be called")
