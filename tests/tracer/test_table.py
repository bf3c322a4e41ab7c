"""The tables are complete and consistent: every public name of NumPy has its place."""

import inspect
from typing import Any

import numpy as np
import pytest

from pullback.tracer.array import TracedArray
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.classes import REFUSED, REFUSED_METHODS, VALUE_ONLY, classify
from pullback.tracer.functions.table import DISPATCH, MODULES, is_known, lookup
from tests.tracer.support import traced

NAMESPACES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}


def public_names() -> list[str]:
    names = []
    for prefix, module in NAMESPACES.items():
        for name in dir(module):
            found = getattr(module, name)
            is_type = isinstance(found, type) and issubclass(found, np.generic | Exception | Warning)
            if not name.startswith("_") and callable(found) and not is_type:
                names.append(f"{prefix}.{name}")
    return names


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_public_name_of_numpy_is_classified() -> None:
    assert [name for name in public_names() if classify(name, is_known(name)) is None] == []


def test_every_method_of_ndarray_is_there_or_refused_with_a_reason() -> None:
    methods = {name for name in dir(np.ndarray) if not name.startswith("_")}
    missing = {name for name in methods if not hasattr(TracedArray, name)}
    assert missing == REFUSED_METHODS
    for name in sorted(missing):
        with pytest.raises(AttributeError, match=name):
            traced(lambda x, name=name: getattr(x, name), np.ones(2))


def test_what_is_value_only_or_refused_exists() -> None:
    for name in [*VALUE_ONLY, *REFUSED]:
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
