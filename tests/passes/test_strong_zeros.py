"""Strong zeros: what was not selected, not picked, cut away or overwritten contributes nothing, not even NaN."""

from typing import Any

import numpy as np
import pytest

from pullback.ir.interpret import interpret
from pullback.passes.forward import forward
from pullback.passes.reverse import reverse
from tests.ir.checks import Point, check_first_order
from tests.passes.making import arrays, grad, jvp, make, names, total

INF, NAN = np.inf, np.nan


def where(f: Any, pred: Any, x: Any, y: float = 0.0) -> Any:
    return f.select(pred, x, f.full_like(x, y))


CASES: list[tuple[str, Any, list[float], list[float]]] = [
    ("log", lambda f, x: where(f, x > 0.0, f.log(x)), [0.0, -1.0, 2.0], [0.0, 0.0, 0.5]),
    ("sqrt", lambda f, x: where(f, x > 0.0, f.sqrt(x)), [0.0, 4.0, 9.0], [0.0, 0.25, 1 / 6]),
    ("reciprocal", lambda f, x: where(f, x.ne(0.0), 1.0 / x), [0.0, 2.0, -1.0], [0.0, -0.25, -1.0]),
    ("x log x", lambda f, x: where(f, x > 0.0, x * f.log(x)), [0.0, 1.0, 2.0], [0.0, 1.0, 1 + np.log(2.0)]),
    ("exp overflow", lambda f, x: _exp_below(f, x), [1e3, -1.0, 2.0], [1.0, np.exp(-1.0), 1.0]),
    ("double guard", lambda f, x: _guarded_twice(f, x), [0.0, 4.0, -1.0], [0.0, 0.25, 0.0]),
    ("nan masked", lambda f, x: where(f, ~f.isnan(x), x * x), [NAN, 2.0, 1.0], [0.0, 4.0, 2.0]),
    ("nan constant", lambda f, x: _nan_target(f, x), [1.0, 2.0, 3.0], [1.0, 0.0, -2.0]),
    ("inf masked in sin", lambda f, x: where(f, f.isfinite(x), f.sin(x)), [INF, 0.0, -INF], [0.0, 1.0, 0.0]),
    ("power", lambda f, x: where(f, x > 0.0, f.pow(x, f.full_like(x, -0.5))), [0.0, 1.0, 4.0], [0.0, -0.5, -1 / 16]),
    ("arccos", lambda f, x: where(f, x < 1.0, f.arccos(x)), [1.0, 0.0, 2.0], [0.0, -1.0, 0.0]),
    ("relu of log", lambda f, x: f.maximum(f.log(x), f.full_like(x, 0.0)), [0.0, 0.5, 2.0], [0.0, 0.0, 0.5]),
    ("sqrt of relu", lambda f, x: f.sqrt(f.maximum(x, f.full_like(x, 0.0))), [-1.0, -2.0, 4.0], [0.0, 0.0, 0.25]),
    ("sqrt of clip", lambda f, x: f.sqrt(_clipped(f, x)), [-1.0, 4.0, -3.0], [0.0, 0.25, 0.0]),
    ("sqrt of abs", lambda f, x: f.sqrt(f.abs(x)), [0.0, 4.0, -4.0], [0.0, 0.25, -0.25]),
    ("abs of nan masked", lambda f, x: where(f, ~f.isnan(x), f.abs(x)), [NAN, 4.0, -4.0], [0.0, 1.0, -1.0]),
    ("max of log", lambda f, x: _largest(f, f.log(x)), [0.0, 1.0, 2.0], [0.0, 0.0, 0.5]),
    ("sqrt of max", lambda f, x: f.sqrt(_largest(f, where(f, x > 5.0, x))), [1.0, 0.0, 2.0], [0.0, 0.0, 0.0]),
    ("slice of log", lambda f, x: _tail(f, f.log(x)), [0.0, 1.0, 2.0], [0.0, 1.0, 0.5]),
    ("gather of log", lambda f, x: _third_twice(f, f.log(x)), [0.0, -1.0, 2.0], [0.0, 0.0, 1.0]),
    ("overwritten log", lambda f, x: _overwritten(f, f.log(x)), [0.0, 1.0, 2.0], [0.0, 1.0, 0.5]),
    ("scattered over log", lambda f, x: _scattered(f, f.log(x)), [0.0, 1.0, 2.0], [0.0, 1.0, 0.5]),
    ("masked quotient", lambda f, x: _masked_quotient(f, x), [0.0, 1.0, 1.0], [2.0, 2.0, 2.0]),
    ("prod in a branch", lambda f, x: _prod_unless_nan(f, x), [1.0, 2.0, 3.0], [6.0, 3.0, 2.0]),
]  # fmt: skip

# far out, where something overflows and the whole is flat
FAR_OUT: list[tuple[str, Any, list[float], list[float]]] = [
    ("sigmoid far out", lambda f, x: 1.0 / (1.0 + f.exp(-x)), [-800.0, 0.0, 800.0], [0.0, 0.25, 0.0]),
    ("tanh of exp", lambda f, x: f.tanh(f.exp(x)), [800.0, 1000.0, -1000.0], [0.0, 0.0, 0.0]),
    ("tanh of log", lambda f, x: f.tanh(f.log(x)), [0.0, 1.0, 0.5], [0.0, 1.0, 1.28]),
    ("exp of a pole", lambda f, x: f.exp(-1.0 / (x * x)), [0.0, 1.0, -1.0], [0.0, 2 / np.e, -2 / np.e]),
    ("-inf over a scale", lambda f, x: f.exp(f.constant([-INF, -1.0, 0.0]) / x), [3.0, 1.0, 1.0], [0.0, 1 / np.e, 0.0]),
    ("-inf scaled", lambda f, x: f.exp(f.constant([-INF, -1.0, 0.0]) * x), [3.0, 1.0, 1.0], [0.0, -1 / np.e, 0.0]),
]  # fmt: skip
ALL = [*CASES, *FAR_OUT]


def _exp_below(f: Any, x: Any) -> Any:
    return where(f, x <= 0.0, f.exp(x)) + where(f, x > 0.0, x)


def _guarded_twice(f: Any, x: Any) -> Any:
    return where(f, x > 0.0, f.sqrt(where(f, x > 0.0, x, 1.0)))


def _clipped(f: Any, x: Any) -> Any:
    return f.clip(x, f.full_like(x, 0.0), f.full_like(x, 9.0))


def _largest(f: Any, x: Any) -> Any:
    return f.max(x, axes=(0,), ties="first")


def _tail(f: Any, x: Any) -> Any:
    return f.slice(x, start=(1,), stop=(3,), step=(1,))


def _third_twice(f: Any, x: Any) -> Any:
    return f.gather(x, f.constant([2, 2]), axis=0)


def _masked_quotient(f: Any, x: Any) -> Any:
    return where(f, x > 0.0, x * f.broadcast_to(total(x), (3,)) / x)


def _prod_unless_nan(f: Any, x: Any) -> Any:
    return f.select(f.isnan(total(x)), total(x) * 0.0 + 1.0, f.prod(x, axes=(0,)))


def _nan_target(f: Any, x: Any) -> Any:
    y = f.constant([0.5, NAN, 4.0])
    return where(f, ~f.isnan(y), (x - y) * (x - y))


def _overwritten(f: Any, x: Any) -> Any:
    return f.update(x, f.constant([7.0]), start=(0,), stop=(1,), step=(1,))


def _scattered(f: Any, x: Any) -> Any:
    return f.scatter(x, f.constant([0]), f.constant([7.0]), axis=0)


@pytest.mark.parametrize(("build", "x", "want"), [c[1:] for c in ALL], ids=[c[0] for c in ALL])
def test_reverse_mode_keeps_structural_zeros(build: Any, x: list[float], want: list[float]) -> None:
    fn = make("f64[3]", lambda f, x: total(build(f, x)))
    np.testing.assert_allclose(grad(fn, x)[0], want)


@pytest.mark.parametrize(("build", "x", "want"), [c[1:] for c in ALL], ids=[c[0] for c in ALL])
def test_forward_mode_keeps_structural_zeros(build: Any, x: list[float], want: list[float]) -> None:
    fn = make("f64[3]", lambda f, x: total(build(f, x)))
    for k in range(3):
        np.testing.assert_allclose(jvp(fn, [x], [np.eye(3)[k]])[0], want[k])


@pytest.mark.parametrize(("build", "x", "want"), [c[1:] for c in ALL], ids=[c[0] for c in ALL])
def test_second_derivatives_have_no_nan_where_nothing_was_selected(
    build: Any, x: list[float], want: list[float]
) -> None:
    fn = make("f64[3]", lambda f, x: total(build(f, x)))
    flat = np.array(want) == 0.0
    first = reverse(fn, (0,), seed=True, with_outputs=False)
    rows = {
        "reverse over reverse": interpret(reverse(first, (0,), with_outputs=False), arrays(x, np.ones(3))),
        "forward over reverse": interpret(forward(first, (0,), with_outputs=False), arrays(x, np.ones(3))),
        "reverse over forward": interpret(
            reverse(forward(fn, (0,), with_outputs=False), (0,), seed=True, with_outputs=False), arrays(x, np.ones(3))
        ),
    }
    for what, (row,) in rows.items():
        assert np.all(row[flat] == 0.0), what


def test_a_derivative_that_a_logarithm_hides_is_not_taken_for_zero() -> None:
    fn = make("f64[3]", lambda f, x: total(f.exp(f.log(x))))
    np.testing.assert_array_equal(grad(fn, [0.0, 1.0, 2.0])[0], [NAN, 1.0, 1.0])
    for k, slope in enumerate([NAN, 1.0, 1.0]):
        np.testing.assert_array_equal(jvp(fn, [[0.0, 1.0, 2.0]], [np.eye(3)[k]])[0], slope)


def test_the_jacobian_of_a_singular_function_is_diagonal() -> None:
    fn = make("f64[3]", lambda f, x: f.log(x))
    vjp = reverse(fn, (0,), with_outputs=False)
    rows = [interpret(vjp, arrays([0.0, 1.0, 2.0], row))[0] for row in np.eye(3)]
    np.testing.assert_array_equal(np.stack(rows), np.diag([INF, 1.0, 0.5]))


# ------------------------------------------------------------------ matrix products


def rows_kept(f: Any, x: Any, w: Any) -> Any:
    keep = f.broadcast_to(f.constant([True, False, True]), (3, 2), (0,))
    return total(where(f, keep, f.dot_general(x, w, contract=((1,), (0,)), batch=((), ()))))


def test_a_masked_row_of_a_product_leaves_no_nan_in_the_gradient_of_the_matrix() -> None:
    fn = make("f64[3,4] f64[4,2]", rows_kept)
    x = np.arange(12.0).reshape(3, 4)
    x[1] = NAN
    in_x, in_w = grad(fn, x, np.ones((4, 2)))
    np.testing.assert_allclose(in_w, np.outer(x[0] + x[2], [1, 1]))
    np.testing.assert_allclose(in_x, [[2] * 4, [0] * 4, [2] * 4])


def test_a_masked_row_of_a_product_leaves_no_nan_in_its_tangent() -> None:
    def build(f: Any, x: Any, w: Any) -> Any:
        return f.dot_general(where(f, ~f.isnan(x), x), f.log(w), contract=((1,), (0,)), batch=((), ()))

    fn = make("f64[3,4] f64[4,2]", build)
    x = np.ones((3, 4))
    x[:, 1] = NAN
    w = np.ones((4, 2))
    w[1] = 0.0
    (tangent,) = interpret(forward(fn, (0,), with_outputs=False), arrays(x, w, np.ones((3, 4))))
    np.testing.assert_array_equal(tangent, np.zeros((3, 2)))


def test_batched_products_are_guarded_along_the_right_axes() -> None:
    def build(f: Any, x: Any, w: Any) -> Any:
        product = f.dot_general(x, w, contract=((0,), (2,)), batch=((2,), (0,)))  # [b, i, j]
        keep = f.broadcast_to(f.constant([[True, False], [True, True]]), (2, 2, 3), (0, 1))
        return total(where(f, keep, product))

    fn = make("f64[4,2,2] f64[2,3,4]", build)
    x, w = np.linspace(0, 1, 16).reshape(4, 2, 2), np.linspace(1, 2, 24).reshape(2, 3, 4)
    check_first_order(Point(fn, (x, w), 0), 1e-9)
    x[:, 1, 0] = INF
    in_x, in_w = grad(fn, x, w)
    assert np.isfinite(in_w).all()
    np.testing.assert_array_equal(in_x[:, 1, 0], np.zeros(4))


# ------------------------------------------------------------------ what must not be hidden, and what must not be paid


def test_a_nan_that_the_function_computes_still_shows() -> None:
    fn = make("f64[3]", lambda f, x: total(f.log(x) * 0.0))
    assert np.isnan(grad(fn, [0.0, 1.0, 2.0])[0][0])
    fn = make("f64[3]", lambda f, x: total(where(f, x > -1.0, f.sqrt(x) * x)))
    assert grad(fn, [NAN, 1.0, 2.0])[0][0] == 0.0  # NaN > -1 is false: not selected


def test_an_overflow_whose_derivative_does_not_vanish_is_not_taken_for_zero() -> None:
    fn = make("f64[]", lambda f, x: f.log(1.0 + f.exp(x)))
    assert np.isnan(grad(fn, 1000.0)[0])  # the value is infinite, the derivative is 1: anything but a number
    fn = make("f64[]", lambda f, x: f.log(1.0 / (1.0 + f.exp(x))))
    assert np.isnan(grad(fn, 1000.0)[0])
    assert np.isnan(jvp(fn, [1000.0], [1.0])[0])


def test_a_cotangent_that_is_zero_by_value_hides_no_second_derivative() -> None:
    """where(x > -5, (x*x - 1)**2, 0) at x = 1: the cotangent of x*x is 0 there, the second derivative is 8."""
    fn = make("f64[]", lambda f, x: where(f, x > -5.0, (x * x - 1.0) * (x * x - 1.0)))
    first = reverse(fn, (0,), seed=True, with_outputs=False)
    assert grad(first, 1.0)[0] == 8.0
    assert jvp(first, [1.0], [1.0])[0] == 8.0
    second = forward(fn, (0,), with_outputs=False)
    assert jvp(second, [1.0, 1.0], [1.0, 0.0])[0] == 8.0


def test_a_matrix_product_with_a_residual_of_zero_has_its_full_second_derivative() -> None:
    def build(f: Any, x: Any, w: Any, y: Any) -> Any:
        residual = f.dot_general(x, w, contract=((1,), (0,)), batch=((), ())) - y
        return total(where(f, residual < 100.0, residual * residual))

    fn = make("f64[3,2] f64[2] f64[3]", build)
    x, w = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]), np.array([1.0, -1.0])
    first = reverse(fn, (1,), seed=True, with_outputs=False)
    (product,) = interpret(forward(first, (1,), with_outputs=False), arrays(x, w, x @ w, np.array([1.0, 0.0])))
    np.testing.assert_allclose(product, 2 * x.T @ x[:, 0])


def test_functions_without_masks_pay_nothing() -> None:
    fn = make("f64[3]", lambda f, x: total(f.log(x) * f.sqrt(x) / x))
    assert "strong_mul" not in names(reverse(fn, (0,), seed=True))


def test_a_masked_cotangent_times_a_finite_constant_pays_nothing() -> None:
    fn = make("f64[3]", lambda f, x: total(where(f, x > 0.0, x * 3.0 / 7.0 + 1.0)))
    assert "strong_mul" not in names(reverse(fn, (0,), seed=True))


def test_a_network_with_kinks_multiplies_its_matrices_unguarded() -> None:
    def build(f: Any, x: Any, w: Any) -> Any:
        hidden = f.dot_general(x, w, contract=((1,), (0,)), batch=((), ()))
        return total(f.maximum(hidden, f.full_like(hidden, 0.0)))

    fn = make("f64[3,4] f64[4,2]", build)
    assert "isfinite" not in names(reverse(fn, (0, 1), seed=True))


def _entropy_of_softmax(f: Any, x: Any) -> Any:
    power = f.exp(x)
    p = power / f.broadcast_to(total(power), (3,))
    return total(f.entr(p))


def _xlogy_of_softmax(f: Any, x: Any) -> Any:
    power = f.exp(x)
    p = power / f.broadcast_to(total(power), (3,))
    return -total(f.xlogy(p, p))


@pytest.mark.parametrize("build", [_entropy_of_softmax, _xlogy_of_softmax])
def test_the_entropy_of_a_masked_softmax_has_the_gradient_of_the_rest_in_both_modes(build: Any) -> None:
    fn = make("f64[3]", build)
    point = np.array([0.3, -INF, 1.2])
    p = np.exp(point) / np.exp(point).sum()
    logs = np.log(np.where(p > 0, p, 1.0))
    expected = -p * (logs - np.sum(p * logs))
    assert np.allclose(grad(fn, point)[0], expected, rtol=1e-14)
    pushed = [jvp(fn, [point], [tangent])[0] for tangent in np.eye(3)]
    assert np.allclose(pushed, expected, rtol=1e-14)


def test_an_infinite_logarithm_gives_way_to_a_zero_but_not_to_what_is_steep() -> None:
    square = make("f64[2]", lambda f, x: total(f.entr(x * x)))
    assert grad(square, np.array([0.0, 1.0]))[0].tolist() == [0.0, -2.0]
    root = make("f64[2]", lambda f, x: total(f.entr(f.sqrt(x * x))))
    assert np.isnan(grad(root, np.array([0.0, 1.0]))[0][0])
    plain = make("f64[2]", lambda f, x: total(f.entr(x)))
    assert grad(plain, np.array([0.0, 1.0]))[0].tolist() == [INF, -1.0]
