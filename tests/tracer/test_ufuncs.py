"""Every NumPy ufunc on every pair of dtypes: values and dtypes are NumPy's (NEP 50 included)."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback.tracer.functions.elementwise import RULES
from tests.tracer.support import assert_as_numpy

RNG = np.random.default_rng(1)
NUMBERS = RNG.normal(size=(2, 3))
SIZES = RNG.integers(1, 5, size=(2, 3))
UNARY: dict[str, Any] = {
    "f8": NUMBERS,
    "f4": NUMBERS.astype("f4"),
    "f2": NUMBERS.astype("f2"),
    "i4": SIZES.astype("i4") * np.array([1, -1, 1], "i4"),
    "u1": SIZES.astype("u1"),
    "b": NUMBERS > 0,
    "c16": NUMBERS + 1j * NUMBERS[::-1],
}
BINARY: dict[str, Any] = {
    "f8": np.abs(NUMBERS),
    "f4": np.abs(NUMBERS).astype("f4"),
    "i4": SIZES.astype("i4"),
    "u1": SIZES.astype("u1"),
    "i8": SIZES,
    "u8": SIZES.astype("u8"),
    "b": NUMBERS > 0,
    "c16": NUMBERS + 1j * NUMBERS[::-1],
}
SCALARS = (2, 2.5, True, 1j, np.float32(1.5), np.int8(3))


def agree_or_both_refuse(fn: Callable[..., Any], *args: Any) -> None:
    try:
        with np.errstate(all="ignore"):
            fn(*args)
    except (TypeError, ValueError, OverflowError):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            assert_as_numpy(fn, *args)
        return
    assert_as_numpy(fn, *args)


@pytest.mark.parametrize("ufunc", [u for u in RULES if u.nin == 1], ids=lambda u: u.__name__)
def test_unary_ufuncs_agree_with_numpy_on_every_dtype(ufunc: np.ufunc) -> None:
    for array in UNARY.values():
        agree_or_both_refuse(lambda a: ufunc(a), array)


@pytest.mark.parametrize("ufunc", [u for u in RULES if u.nin == 2], ids=lambda u: u.__name__)
def test_binary_ufuncs_agree_with_numpy_on_every_pair_of_dtypes(ufunc: np.ufunc) -> None:
    for x in BINARY.values():
        for y in BINARY.values():
            agree_or_both_refuse(lambda a, b: ufunc(a, b), x, y)


@pytest.mark.parametrize("ufunc", [u for u in RULES if u.nin == 2], ids=lambda u: u.__name__)
def test_python_and_numpy_scalars_take_part_as_nep_50_says(ufunc: np.ufunc) -> None:
    for x in BINARY.values():
        for number in SCALARS:
            agree_or_both_refuse(lambda a, n=number: ufunc(a, n), x)
            agree_or_both_refuse(lambda a, n=number: ufunc(n, a), x)


NAMES = "add sub mul truediv floordiv mod pow lt eq ge and_ or_ lshift"
OPERATORS = [getattr(operator, name) for name in NAMES.split()]


@pytest.mark.parametrize("operation", [*OPERATORS, divmod], ids=lambda f: f.__name__)
def test_operators_between_python_numbers_are_pythons(operation: Callable[..., Any]) -> None:
    for x in (3, 2.5, True, False, -2, 2 + 1j):
        for y in (2, 1.5, True):
            agree_or_both_refuse(operation, x, y)
            agree_or_both_refuse(lambda a, y=y: operation(a, y), x)


def test_signs_of_python_numbers_are_pythons() -> None:
    for x in (3, 2.5, True, -2, 2 + 1j):
        for operation in (operator.neg, operator.pos, abs, operator.invert):
            agree_or_both_refuse(operation, x)


def test_a_python_integer_beyond_the_dtype_compares_as_in_numpy_and_adds_as_in_numpy() -> None:
    small = np.array([1, 2], "u1")
    assert_as_numpy(lambda a: (a < 300, a > -1, a == 1000), small)
    agree_or_both_refuse(lambda a: a + 300, small)


def test_special_values_and_signed_zeros_go_through() -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0])
    for exponent in (0, 0.0, 0.5, 1, 2, 3.0, -1, 2.5):
        program = assert_as_numpy(lambda a, e=exponent: a**e, special)
        assert len(program.extras) == 0
    assert_as_numpy(lambda a: (np.modf(a), np.frexp(a), np.spacing(a), np.heaviside(a, 0.5), np.sign(a)), special)


def test_where_and_out_and_dtype_arguments_do_what_numpy_does() -> None:
    def f(a: Any) -> Any:
        out = np.ones((2, 3))
        np.add(a, 1, out=out, where=a > 0)
        return out, np.add(a, 1, dtype=np.float32, casting="unsafe")

    assert_as_numpy(f, NUMBERS)


def test_gcd_and_lcm_are_guarded_decisions() -> None:
    program = assert_as_numpy(np.gcd, np.array([4, 6]), np.array([6, 9]))
    assert len(program.guards) == 2
