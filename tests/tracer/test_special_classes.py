"""Every ufunc of scipy.special is classified; what is refused says so, with the way round."""

import importlib
from typing import Any

import numpy as np
import pytest

from pullback.errors import TypeRuleError, UnsupportedError
from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs
from pullback.ir.ops import OPS
from pullback.ir.types import tensor_type
from pullback.tracer.functions import special, special_classes
from pullback.tracer.functions.special_classes import classify
from pullback.tracer.ufuncs import is_scipys
from tests.special_samples import DOMAINS, ORDERS
from tests.tracer.support import evaluated, traced

scipy_special = pytest.importorskip("scipy.special")

X = np.array([0.3, 0.7])


def ufuncs() -> dict[str, np.ufunc]:
    """By name; with SCIPY_ARRAY_API the public names are functions around them."""
    own = importlib.import_module("scipy.special._ufuncs")
    found = {name: getattr(own, name, getattr(scipy_special, name)) for name in dir(scipy_special) if name[0] != "_"}
    return {name: ufunc for name, ufunc in found.items() if isinstance(ufunc, np.ufunc)}


def test_every_ufunc_is_classified() -> None:
    missing = [n for n, ufunc in ufuncs().items() if classify(n, ufunc.__name__ in special.RULES) is None]
    assert missing == []


def test_names_in_the_tables_are_ufuncs_of_this_scipy() -> None:
    """But for a few that only older or newer releases have."""
    known = {*special.RULES, *special_classes.VALUE_ONLY, *special_classes.REFUSED, *special_classes.CONDITIONS}
    assert known - set(ufuncs()) <= {"sph_harm", "_zeta", "digamma"}
    assert {*DOMAINS, *ORDERS} <= {*ufuncs(), "digamma"}


@pytest.mark.parametrize("name", sorted(set(special_classes.REFUSED) & set(ufuncs())))
def test_a_refused_ufunc_names_itself_its_reason_and_the_line(name: str) -> None:
    ufunc = ufuncs()[name]
    reason = special_classes.REFUSED[name]
    with pytest.raises(UnsupportedError) as caught:
        traced(lambda x: ufunc(*[x] * ufunc.nin), X)
    message = str(caught.value)
    assert f"scipy.special.{name}" in message
    assert reason in message
    assert "test_special_classes.py" in message


def test_a_refused_ufunc_of_constants_is_computed_by_scipy() -> None:
    found = evaluated(lambda x: x * scipy_special.ellipk(np.zeros(2) + 0.5), X)
    np.testing.assert_array_equal(found, X * scipy_special.ellipk(0.5))


@pytest.mark.parametrize("name", sorted(special_classes.VALUE_ONLY))
def test_value_only_ufuncs_have_scipys_values(name: str) -> None:
    x = np.array([-3.5, -2.0, -0.5, 0.0, -0.0, 0.5, 1.5, 2.5, np.inf, np.nan])
    np.testing.assert_array_equal(evaluated(ufuncs()[name], x), ufuncs()[name](x))


def test_a_ufunc_of_the_same_name_from_elsewhere_is_not_taken_for_scipys() -> None:
    assert is_scipys(scipy_special.psi)
    assert is_scipys(scipy_special.j0)
    assert not is_scipys(np.exp2)
    assert not is_scipys(np.frompyfunc(abs, 1, 1))


@pytest.mark.parametrize("name", ["gamma", "erf", "loggamma", "jv", "xlogy", "expit"])
def test_complex_numbers_are_refused_where_they_are_not_followed(name: str) -> None:
    ufunc = ufuncs()[name]
    arguments: Any = (1,) if ufunc.nin == 2 else ()
    with pytest.raises((UnsupportedError, TypeError), match=name):
        traced(lambda z: ufunc(*arguments, z), X + 1j)


# ------------------------------------------------------------------ orders


def test_orders_may_be_arrays_or_integer_arguments() -> None:
    orders = np.array([0, 1, 2, -3])
    for name in ("jv", "yv", "iv", "kv", "kve"):
        ufunc = ufuncs()[name]
        x = np.array([[0.5], [2.0]])
        np.testing.assert_allclose(evaluated(lambda v, f=ufunc: f(orders, v), x), ufunc(orders, x), rtol=1e-13)
        found = evaluated(lambda n, v, f=ufunc: f(n, v), 2, x)
        np.testing.assert_allclose(found, ufunc(2, x), rtol=1e-13)


def test_orders_that_are_no_whole_numbers_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"scipy.special.jv .*whole orders.*0.5"):
        traced(lambda x: scipy_special.jv(0.5, x), X)
    with pytest.raises(UnsupportedError, match="constant or an integer"):
        traced(lambda v, x: scipy_special.jv(v, x), 1.5, X)
    with pytest.raises(UnsupportedError, match="up to order 30"):
        traced(lambda x: scipy_special.iv(31, x), X)
    with pytest.raises(UnsupportedError, match="degrees 0 to 200"):
        traced(lambda x: scipy_special.eval_chebyt(201, x), X)
    with pytest.raises(UnsupportedError, match="polygamma"):
        traced(lambda x: scipy_special.polygamma(-1, x), X)


def test_small_whole_numbers_make_binomial_coefficients_polynomials() -> None:
    n = np.array([5.0, 0.0, -3.0, 2.5])
    np.testing.assert_allclose(
        evaluated(lambda v: scipy_special.binom(v, 3), n), [10.0, 0.0, -10.0, 0.3125], rtol=1e-15
    )
    np.testing.assert_allclose(evaluated(lambda v: scipy_special.poch(v, 3), n), [210.0, 0.0, -6.0, 39.375], rtol=1e-15)


def test_an_op_of_an_impossible_order_is_an_error_that_says_which() -> None:
    b = Builder()
    x = b.param(tensor_type(np.dtype(np.float64), (2,)))
    for n in (-1, 105):
        with pytest.raises(TypeRuleError, match=rf"jv needs an order 0 <= n <= 104, found n = {n} for f64\[2\]"):
            b.add(OPS["jv"], [x], Attrs(n=n))
