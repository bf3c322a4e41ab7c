"""The interpreter's layout is checked, and where it is not as expected nothing native reads Python objects."""

import ctypes
import sys
from dataclasses import replace

import numpy as np
import pytest

from pullback.errors import CodegenError
from pullback.runtime import capi, layout
from pullback.runtime.function import NativeFunction
from tests.runtime.kit import array_arg, array_result, build, fallback, new_runtime, signature_of


def test_this_interpreter_is_as_expected() -> None:
    report = layout.find_layout(NativeFunction.__basicsize__)
    assert report.reason == ""
    assert report.layout is not None
    assert np.__version__ in report.layout.abi
    assert sys.platform in report.layout.abi


@pytest.mark.parametrize(
    ("name", "offset", "difference"),
    [
        ("object_type", 0, "objects"),
        ("number_value", 8, "float"),
        ("tuple_items", 16, "tuple"),
        ("container_size", 8, "tuple"),
        ("bytes_data", 33, "bytes"),
        ("array_data", 48, "numpy.ndarray"),
        ("array_ndim", 28, "numpy.ndarray"),
        ("array_dims", 40, "numpy.ndarray"),
        ("array_descr", 48, "numpy.ndarray"),
        ("array_flags", 68, "numpy.ndarray"),
        ("descr_type_num", 32, "numpy.ndarray"),
        ("descr_byteorder", 25, "numpy.ndarray"),
    ],
)
def test_a_wrong_offset_is_noticed(name: str, offset: int, difference: str) -> None:
    right = layout.find_layout(24).layout
    assert right is not None
    assert layout.first_difference(right) == ""
    assert layout.first_difference(replace(right, **{name: offset})) == difference


@pytest.mark.parametrize(
    ("place", "name", "value", "reason"),
    [
        (sys, "gettotalrefcount", lambda: 0, "debug"),
        (sys, "abiflags", "t", "free-threaded"),
        (layout, "array_type_address", lambda: 0, "function table"),
        (layout, "_scalar_fits", lambda *_: False, "NumPy scalars"),
        (layout, "_counts_plainly", lambda: False, "reference counts"),
    ],
)
def test_calls_go_through_ctypes_on_other_builds(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str, value: object, reason: str
) -> None:
    monkeypatch.setattr(place, name, value, raising=False)
    runtime = new_runtime()
    assert runtime.layout is None
    assert reason in runtime.reason
    function = runtime.function(fallback)
    function.install(build(signature_of([array_arg()], array_result()), runtime=runtime))
    assert function(np.arange(3.0)).tolist() == [0.0, 1.0, 2.0]
    assert function(1.0)[0] == "python"


def test_symbols_have_addresses_or_are_named_in_an_error() -> None:
    found = capi.symbol_addresses(["PyFloat_FromDouble", "numpy_descr_float64", "numpy_new_scalar", "malloc", "memcpy"])
    assert found["numpy_descr_float64"] == id(np.dtype("f8"))
    assert found["PyFloat_FromDouble"] == ctypes.cast(ctypes.pythonapi.PyFloat_FromDouble, ctypes.c_void_p).value
    with pytest.raises(CodegenError, match="no_such_function"):
        capi.symbol_addresses(["malloc", "no_such_function"])
    with pytest.raises(CodegenError, match="no_such_function"):
        new_runtime().symbol("no_such_function")


def test_objects_of_a_signature_must_all_be_given() -> None:
    with pytest.raises(CodegenError, match="0 static slots, found 1"):
        build(signature_of([array_arg()], array_result()), objects=(1,))
