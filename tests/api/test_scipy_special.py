"""scipy.special compiled: values, gradients and second derivatives of every ufunc that is followed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.tracer.functions import special
from pullback.tracer.functions.special_classes import classify
from tests.special_samples import calls

scipy_special = pytest.importorskip("scipy.special")

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # central differences of eighth order
STEP = 1e-3
FOLLOWED = sorted(name for name in special.RULES if classify(name, True).kind == "differentiable" and name[0] != "_")


def difference(fn: Callable[..., Any], args: list[Any], number: int) -> Any:
    """d fn / d args[number], elementwise."""
    total = 0.0
    for k, weight in enumerate(WEIGHTS, 1):
        ahead, behind = list(args), list(args)
        ahead[number], behind[number] = args[number] + k * STEP, args[number] - k * STEP
        total = total + weight / STEP * (fn(*ahead) - fn(*behind))
    return total


def assert_near(found: Any, wanted: Any, tolerance: float, what: str) -> None:
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("name", FOLLOWED)
def test_values_and_derivatives_of_both_orders_are_right(name: str) -> None:
    function = getattr(scipy_special, name)
    for constants, args in calls(name):

        def fn(*xs: Any, function: Any = function, constants: Any = constants) -> Any:
            return function(*constants, *xs)

        assert_near(pullback.jit(fn)(*args), fn(*args), 2e-13, f"{name}{constants}")
        numbers = tuple(range(len(args)))
        gradient = pullback.grad(lambda *xs, fn=fn: np.sum(fn(*xs)), argnums=numbers)
        for k in numbers:
            assert_near(gradient(*args)[k], difference(fn, args, k), 1e-9, f"{name}{constants}, argument {k}")
            second = pullback.grad(lambda *xs, g=gradient, k=k: np.sum(g(*xs)[k]), argnums=numbers)(*args)
            for j in numbers:
                wanted = difference(lambda *xs, g=gradient, k=k: g(*xs)[k], args, j)
                assert_near(second[j], wanted, 1e-8, f"{name}{constants}, arguments {k} and {j}")


@pytest.mark.parametrize("name", ["erf", "expit", "gammaln", "ndtri", "i0e", "j0", "entr", "log_ndtr"])
def test_single_precision_stays_so(name: str) -> None:
    function = getattr(scipy_special, name)
    (_, (x,)), *_ = calls(name)
    x = x.astype(np.float32)
    value, slope = pullback.value_and_grad(lambda v: np.sum(function(v)))(x)
    assert value.dtype == slope.dtype == np.float32
    wide = pullback.grad(lambda v: np.sum(function(v)))(x.astype(np.float64))
    np.testing.assert_allclose(slope, wide, rtol=3e-6, atol=3e-6)


# ------------------------------------------------------------------ points where formulas have corners

INF = np.inf
# name, arguments, gradient
CORNERS: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("expit", (0.0,), (0.25,)),
    ("expit", (-700.0,), (np.exp(-700.0),)),
    ("expit", (40.0,), (np.exp(-40.0),)),
    ("expit", (INF,), (0.0,)),
    ("log_expit", (0.0,), (0.5,)),
    ("log_expit", (-INF,), (1.0,)),
    ("logit", (0.5,), (4.0,)),
    ("logit", (0.0,), (INF,)),
    ("xlogy", (0.0, 2.0), (np.log(2.0), 0.0)),
    ("xlogy", (0.0, 0.0), (-INF, 0.0)),
    ("xlogy", (3.0, 0.0), (-INF, INF)),
    ("xlog1py", (0.0, 1.0), (np.log(2.0), 0.0)),
    ("xlog1py", (0.0, -1.0), (-INF, 0.0)),
    ("entr", (0.0,), (INF,)),
    ("rel_entr", (0.0, 2.0), (-INF, 0.0)),
    ("rel_entr", (0.0, 0.0), (1.0, -1.0)),
    ("rel_entr", (2.0, 2.0), (1.0, -1.0)),
    ("kl_div", (0.0, 2.0), (-INF, 1.0)),
    ("kl_div", (0.0, 0.0), (0.0, 0.0)),
    ("kl_div", (2.0, 2.0), (0.0, 0.0)),
    ("erfinv", (0.0,), (np.sqrt(np.pi) / 2,)),
    ("erfinv", (1.0,), (INF,)),
    ("erfcinv", (1.0,), (-np.sqrt(np.pi) / 2,)),
    ("ndtri", (0.5,), (np.sqrt(2 * np.pi),)),
    ("ndtri", (0.0,), (INF,)),
    ("log_ndtr", (-1e4,), (1e4 + 1e-4,)),
    ("log_ndtr", (-1e160,), (1e160,)),
    ("log_ndtr", (40.0,), (0.0,)),
    ("i0", (0.0,), (0.0,)),
    ("i1", (0.0,), (0.5,)),
    ("i0e", (0.0,), (0.0,)),
    ("j0", (0.0,), (0.0,)),
    ("j1", (0.0,), (0.5,)),
    ("exprel", (0.0,), (0.5,)),
    ("rgamma", (0.0,), (1.0,)),
    ("rgamma", (-1.0,), (-1.0,)),
    ("rgamma", (-4.0,), (24.0,)),
    ("beta", (1.0, 1.0), (-1.0, -1.0)),
    ("boxcox", (2.0, 0.0), (0.5, np.log(2.0) ** 2 / 2)),
    ("boxcox", (0.0, 1.0), (1.0, 1.0)),
    ("boxcox1p", (1.0, 0.0), (0.5, np.log(2.0) ** 2 / 2)),
    ("inv_boxcox", (1.0, 0.0), (np.e, -np.e / 2)),
    ("huber", (1.0, 0.0), (0.0, 0.0)),
    ("huber", (1.0, 1.0), (0.0, 1.0)),
    ("pseudo_huber", (1.0, 0.0), (0.0, 0.0)),
    ("sindg", (180.0,), (-np.pi / 180,)),
    ("binom", (5.0, 7.0), (-1 / 42, 1 / 42)),
    ("gammainc", (1.0, 0.0), (0.0, 1.0)),
    ("gammainc", (2.0, 0.0), (0.0, 0.0)),
    ("gammainc", (1.0, INF), (0.0, 0.0)),
    ("huber", (1.0, -3.0), (2.0, -1.0)),
]


@pytest.mark.parametrize(("name", "args", "wanted"), CORNERS)
def test_derivatives_at_corners_are_the_documented_ones(
    name: str, args: tuple[float, ...], wanted: tuple[float, ...]
) -> None:
    function = getattr(scipy_special, name)
    numbers = tuple(range(len(args)))
    found = pullback.grad(lambda *xs: function(*xs), argnums=numbers)(*args)
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-300)


SECOND = [
    ("expit", 0.0, 0.0),
    ("log_expit", 0.0, -0.25),
    ("erfinv", 0.0, 0.0),
    ("j0", 0.0, -0.5),
    ("i0", 0.0, 0.5),
    ("log_ndtr", -1e4, -1 + 1e-8),
    ("logit", 0.5, 0.0),
    ("exprel", 0.0, 1 / 3),
    ("rgamma", 0.0, 2 * np.euler_gamma),
    ("ndtr", 0.0, 0.0),
]


@pytest.mark.parametrize(("name", "x", "wanted"), SECOND)
def test_second_derivatives_at_corners_are_right(name: str, x: float, wanted: float) -> None:
    function = getattr(scipy_special, name)
    found = pullback.grad(pullback.grad(lambda v: function(v)))(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_third_derivatives_follow() -> None:
    third = pullback.grad(pullback.grad(pullback.grad(lambda v: scipy_special.expit(v))))
    np.testing.assert_allclose(third(0.0), -1 / 8, rtol=1e-14)
    third = pullback.grad(pullback.grad(pullback.grad(lambda v: scipy_special.erfinv(v))))
    np.testing.assert_allclose(third(0.0), np.sqrt(np.pi) ** 3 / 4, rtol=1e-14)


def test_symmetric_arguments_have_right_second_derivatives() -> None:
    """betaln is computed from the larger and the smaller argument; at a tie neither may count half."""
    for function in (scipy_special.betaln, scipy_special.beta):
        hessian = pullback.hessian(lambda v, f=function: f(v[0], v[1]))(np.array([12.0, 12.0]))
        near = pullback.hessian(lambda v, f=function: f(v[0], v[1]))(np.array([12.0, 12.0 + 1e-9]))
        np.testing.assert_allclose(hessian, near, rtol=1e-7)


def test_a_branch_that_is_not_taken_leaves_no_nan() -> None:
    def loss(x: Any) -> Any:
        safe = np.where(x > 0, scipy_special.xlogy(x, x), 0.0)
        return np.sum(
            safe + np.where(x > 0, scipy_special.entr(x), 1.0) + np.where(x > 0, scipy_special.kl_div(x, x), 0)
        )

    np.testing.assert_array_equal(pullback.grad(loss)(np.array([0.0, -1.0])), [0.0, 0.0])


def test_overflow_on_the_way_to_a_saturated_value_leaves_no_nan() -> None:
    x = np.array([1000.0, -1000.0])
    np.testing.assert_array_equal(pullback.grad(lambda v: np.sum(scipy_special.expit(np.exp(v))))(x), [0.0, 0.0])


# ------------------------------------------------------------------ functions written in Python

A = np.random.default_rng(3).normal(size=(3, 4))
PYTHON: dict[str, Callable[[Any], Any]] = {
    "logsumexp": lambda a: scipy_special.logsumexp(a, axis=1) @ np.arange(3.0),
    "logsumexp of all": lambda a: scipy_special.logsumexp(a),
    "logsumexp with weights": lambda a: scipy_special.logsumexp(a, axis=0, b=np.array([[1.0], [2.0], [0.5]])).sum(),
    "logsumexp keepdims": lambda a: (scipy_special.logsumexp(a, axis=1, keepdims=True) * a).sum(),
    "softmax": lambda a: (scipy_special.softmax(a, axis=1) ** 2).sum(),
    "log_softmax": lambda a: (scipy_special.log_softmax(a, axis=0) * a).sum(),
    "polygamma": lambda a: scipy_special.polygamma(2, np.abs(a) + 0.5).sum(),
    "polygamma of orders": lambda a: scipy_special.polygamma(np.array([0, 1, 2, 3]), np.abs(a) + 0.5).sum(),
    "logsumexp with signs": lambda a: scipy_special.logsumexp(a, axis=0, b=a, return_sign=True)[0].sum(),
    "zeta": lambda a: scipy_special.zeta(3, np.abs(a) + 0.5).sum(),
    "softplus": lambda a: np.sum(scipy_special.softplus(a)),
    "multigammaln": lambda a: scipy_special.multigammaln(np.abs(a) + 3, 4).sum(),
}


@pytest.mark.parametrize("name", PYTHON)
def test_functions_written_in_python_are_followed_to_second_order(name: str) -> None:
    fn = PYTHON[name]
    direction = np.random.default_rng(4).normal(size=A.shape)
    np.testing.assert_allclose(pullback.jit(fn)(A), fn(A), rtol=1e-13)
    gradient = pullback.grad(fn)
    slope = difference(lambda t: fn(A + t * direction), [0.0], 0)
    np.testing.assert_allclose(np.sum(gradient(A) * direction), slope, rtol=1e-9)
    second = pullback.grad(lambda a: np.sum(gradient(a) * direction))(A)
    wanted = difference(lambda t: np.sum(gradient(A + t * direction) * direction), [0.0], 0)
    np.testing.assert_allclose(np.sum(second * direction), wanted, rtol=1e-8)


def test_entries_of_minus_infinity_have_gradient_zero() -> None:
    a = np.array([0.3, -np.inf, 1.2])
    found = pullback.grad(lambda v: scipy_special.logsumexp(v))(a)
    np.testing.assert_allclose(found, scipy_special.softmax(a), rtol=1e-14)
    rest = scipy_special.logsumexp(np.array([0.0, -40.0]))
    assert pullback.jit(lambda v: scipy_special.logsumexp(v))(np.array([0.0, -40.0])) == rest == np.exp(-40.0)
    nothing = pullback.grad(lambda v: scipy_special.logsumexp(v))(np.full(3, -np.inf))
    np.testing.assert_array_equal(nothing, np.zeros(3))


def test_equal_elements_have_right_second_derivatives() -> None:
    hessian = pullback.hessian(lambda v: scipy_special.logsumexp(v))(np.zeros(3))
    np.testing.assert_allclose(hessian, np.eye(3) / 3 - 1 / 9, rtol=1e-14, atol=1e-16)
    jacobian = pullback.jacobian(lambda v: scipy_special.softmax(v))(np.zeros(3))
    np.testing.assert_allclose(jacobian, np.eye(3) / 3 - 1 / 9, rtol=1e-14, atol=1e-16)


SUMS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("logsumexp", (np.array(0.3),), {}),
    ("logsumexp", (np.arange(4),), {}),
    ("logsumexp", (A,), {"axis": (0, 1)}),
    ("logsumexp", (A,), {"axis": -1, "keepdims": True, "return_sign": True}),
    ("logsumexp", (A,), {"axis": 0, "b": -np.ones((3, 1)), "return_sign": True}),
    ("logsumexp", (A,), {"axis": 0, "b": -np.ones((3, 1))}),
    ("logsumexp", (np.array([1.0, np.inf, np.nan]),), {"b": np.array([1.0, 0.0, 0.0])}),
    ("logsumexp", (np.array([np.inf, 1.0]),), {}),
    ("logsumexp", (np.array([np.nan, 1.0]),), {}),
    ("logsumexp", (np.full(2, -np.inf),), {"return_sign": True}),
    ("logsumexp", (A.astype(np.float32),), {"axis": 1}),
    ("logsumexp", (np.array([1000.0, 1000.0]),), {}),
    ("logsumexp", (A + 1j * A[::-1],), {"axis": 1}),
    ("softmax", (A,), {}),
    ("softmax", (A.astype(np.float32),), {"axis": (0, 1)}),
    ("softmax", (np.array([1.0, -np.inf]),), {}),
    ("log_softmax", (np.array([1.0, -np.inf]),), {}),
    ("log_softmax", (A,), {"axis": 1}),
    ("log_softmax", (np.array(2.0),), {}),
]


@pytest.mark.parametrize("case", SUMS, ids=str)
def test_sums_of_exponentials_have_scipys_values_types_and_shapes(case: Any) -> None:
    name, args, options = case
    with np.errstate(all="ignore"):
        wanted = getattr(scipy_special, name)(*args, **options)
    found = pullback.jit(lambda *xs: getattr(scipy_special, name)(*xs, **options))(*args)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for f, w in pairs:
        assert (np.shape(f), np.asarray(f).dtype) == (np.shape(w), np.asarray(w).dtype)
        np.testing.assert_allclose(f, w, rtol=2e-6 if np.asarray(w).dtype == np.float32 else 1e-14)


def test_a_function_of_scipy_bound_in_a_closure_is_the_same_as_the_attribute() -> None:
    function = scipy_special.logsumexp
    x = np.array([-INF, 0.0, 0.0])  # with the largest twice, where SciPy's own steps have no second derivative
    wanted = [[0, 0, 0], [0, 0.25, -0.25], [0, -0.25, 0.25]]
    np.testing.assert_allclose(pullback.hessian(lambda v: function(v))(x), wanted)
    np.testing.assert_array_equal(pullback.grad(lambda v: function(v))(np.full(3, -INF)), np.zeros(3))
