"""Errors name what was found, where in the user's file, and what to do."""

from typing import Any

import numpy as np
import pytest

from pullback.errors import ArgumentError, IndexRangeError, ShapeError, TypeRuleError, UnsupportedError
from pullback.tracer.arguments import describe
from tests.tracer.support import traced

X, Y = np.ones((2, 3)), np.ones((4, 5))
HERE = r"test_errors\.py:\d+"

CASES = {
    "broadcast": (lambda x, y: x + y, ShapeError, r"\(2,3\) \(4,5\)"),
    "matmul": (lambda x, y: x @ y, ShapeError, r"\(2, 3\) and \(4, 5\)"),
    "dot": (lambda x, y: np.dot(x, y), ShapeError, r"\(2, 3\) and \(4, 5\) not aligned: 3 .* != 4"),
    "concatenate": (lambda x, y: np.concatenate([x, y]), ShapeError, r"size 3 .* size 5"),
    "stack": (lambda x, y: np.stack([x, y]), ShapeError, r"\(2, 3\), \(4, 5\)"),
    "reshape": (lambda x, y: x.reshape(4, 2), ShapeError, r"size 6 into shape \(4,2\)"),
    "assignment": (lambda x, y: x.__setitem__(slice(None), y), ShapeError, r"\(4, 5\) into shape \(2, 3\)"),
    "einsum": (lambda x, y: np.einsum("ij,jk", x, y), ShapeError, r"3 and 4"),
    "index": (lambda x, y: x[5], IndexRangeError, "index 5 is out of bounds for axis 0 with size 2"),
    "indices": (lambda x, y: x[0, 0, 0], IndexRangeError, "2-dimensional, but 3 were indexed"),
    "mask": (lambda x, y: x[np.array([True, False, True])], IndexRangeError, "size of axis is 2"),
    "axis": (lambda x, y: x.sum(axis=3), IndexRangeError, "axis 3 is out of bounds for array of dimension 2"),
    "empty": (lambda x, y: np.max(x[:0]), ShapeError, "no identity"),
    "dtype": (lambda x, y: x & y.astype(int), TypeRuleError, "bitwise_and"),
    "cast": (lambda x, y: np.add(x, 1.5, out=np.zeros((2, 3), int)), TypeRuleError, "same_kind"),
    "out": (lambda x, y: np.add(x, 1, out=X), UnsupportedError, "np.zeros, np.empty, np.copy"),
    "qr": (lambda x, y: np.linalg.qr(x, mode="raw"), UnsupportedError, "mode='reduced'"),
    "view": (lambda x, y: x.view(np.int64), UnsupportedError, "astype"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_named_with_the_users_line(name: str) -> None:
    function, kind, text = CASES[name]
    with pytest.raises(kind, match=f"(?s){text}.*{HERE}"):
        traced(function, X, Y)


def test_an_error_of_the_function_itself_passes_through() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        traced(f, 1.0)


def test_arguments_that_cannot_be_traced_are_named() -> None:
    for value, text in (
        (np.array(["a"]), "dtype <U1"),
        (np.array([1.0], dtype=[("f", float)]), "dtype"),
        (np.ma.masked_array([1.0]), "masked array"),
        (np.matrix([[1.0]]), "subclass of ndarray"),
    ):
        with pytest.raises(ArgumentError, match=f"argument p.*{text}"):
            describe(value, "argument p")


def test_a_big_endian_argument_is_described_in_native_order() -> None:
    spec = describe(np.ones(2, ">f8"))
    assert spec.type.dtype == np.float64  # type: ignore[union-attr]


def test_strings_functions_and_objects_are_static() -> None:
    def f(x: Any, name: str, function: Any) -> Any:
        return function(x) if name == "go" else x, name

    program = traced(f, 1.0, "go", abs)
    assert program.leaves == (0,)
    assert [o.kind for o in program.outputs] == ["python", "static"]


def test_each_op_has_the_users_line_also_through_compositions() -> None:
    program = traced(lambda x: np.std(np.pad(x, 1, mode="reflect")), np.ones(4))
    assert {op.loc.file.rsplit("/", 1)[-1] for op in program.function.ops if op.loc} == {"test_errors.py"}
