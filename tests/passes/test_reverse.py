"""Reverse mode: what it emits and what it leaves out. tests/ir/test_ops_complete.py checks the op's derivatives."""

import math
import time

import numpy as np
import pytest

from pullback.errors import ArgumentError, NonScalarOutputError
from pullback.ir.interpret import interpret
from pullback.ir.verify import verify
from pullback.passes.forward import forward
from pullback.passes.reverse import reverse
from tests.ir.checks import Point, check_first_order
from tests.passes.making import arrays, cond, grad, make, names, total

X = np.array([0.4, 1.3, 2.0])


def test_outputs_come_first_and_then_one_gradient_for_each_parameter_asked_for() -> None:
    fn = make("f64[3] f64[3]", lambda f, x, y: total(f.sin(x) * y))
    made = reverse(fn, (1, 0), seed=True)
    value, in_y, in_x = interpret(made, arrays(X, X + 1))
    np.testing.assert_allclose(value, np.sum(np.sin(X) * (X + 1)))
    np.testing.assert_allclose(in_y, np.sin(X))
    np.testing.assert_allclose(in_x, np.cos(X) * (X + 1))


def test_without_a_seed_there_is_a_cotangent_for_each_inexact_output_only() -> None:
    fn = make("f64[3]", lambda f, x: (f.sin(x), f.astype(x, "i8"), total(x)))
    made = reverse(fn, (0,))
    assert [str(t) for t in made.param_types] == ["f64[3]", "f64[3]", "f64[]"]
    gradient = interpret(made, arrays(X, X, 2.0))[3]
    np.testing.assert_allclose(gradient, np.cos(X) * X + 2)


def test_a_seed_differentiates_the_first_output_and_leaves_the_others_alone() -> None:
    fn = make("f64[3]", lambda f, x: (total(x * x), f.exp(x)))
    value, other, gradient = interpret(reverse(fn, (0,), seed=True), arrays(X))
    np.testing.assert_allclose(gradient, 2 * X)
    np.testing.assert_allclose(other, np.exp(X))
    assert value.shape == ()


def test_an_independent_output_has_gradient_zero() -> None:
    fn = make("f64[3] f64[2]", lambda f, x, y: total(x))
    in_x, in_y = grad(fn, X, np.ones(2))
    np.testing.assert_array_equal(in_x, np.ones(3))
    np.testing.assert_array_equal(in_y, np.zeros(2))


def test_errors_name_the_parameter_and_the_output() -> None:
    fn = make("f64[3] i64[3]", lambda f, x, n: x)
    with pytest.raises(ArgumentError, match=r"x1 of fn is i64\[3\].*astype"):
        reverse(fn, (1,))
    with pytest.raises(ArgumentError, match="none of number 5"):
        reverse(fn, (5,))
    with pytest.raises(NonScalarOutputError, match=r"f64\[3\].*jacobian"):
        reverse(fn, (0,), seed=True)


def test_a_branch_behind_a_step_function_is_never_visited() -> None:
    fn = make("f64[3]", lambda f, x: total(x * f.floor(f.exp(f.sin(x)))))
    emitted = names(reverse(fn, (0,), seed=True))
    assert "cos" not in emitted
    assert emitted.count("exp") == 1


def test_a_zero_cotangent_is_absent_and_not_a_tensor_of_zeros() -> None:
    fn = make("f64[3] f64[3]", lambda f, x, y: (total(x), total(f.exp(y))))
    emitted = names(reverse(fn, (0, 1), seed=True))
    assert emitted.count("mul") == 0


def test_adjoint_ops_carry_the_users_line_and_say_that_they_are_adjoint() -> None:
    made = reverse(make("f64[3]", lambda f, x: total(f.sin(x))), (0,), seed=True)
    found = {op.name: op.loc for op in made.ops}
    assert str(found["cos"]) == "adjoint, model.py:1 fn"
    assert str(found["sin"]) == "model.py:1 fn"


def test_a_value_used_twice_collects_both_cotangents() -> None:
    fn = make("f64[]", lambda f, x: x * x + f.exp(x) * x)
    (gradient,) = grad(fn, 0.7)
    assert math.isclose(gradient, 2 * 0.7 + math.exp(0.7) * 1.7)


def test_sixty_shared_doublings_give_a_linear_number_of_ops() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        for _ in range(60):
            x = x + x
        return x

    fn = make("f64[]", build)
    made = reverse(fn, (0,), seed=True)
    assert len(made.ops) <= 122
    assert interpret(made, arrays(1.0))[1] == 2.0**60


def test_a_chain_of_twenty_thousand_ops_differentiates_without_recursion() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        for _ in range(10_000):
            x = f.sin(x * 0.999)
        return x

    fn = make("f64[]", build)
    begun = time.process_time()
    made = reverse(fn, (0,), seed=True)
    forward(fn, (0,))
    verify(made)
    assert len(made.ops) < 8 * len(fn.ops)
    assert time.process_time() - begun < 30  # a bound against quadratic time, not a measurement


# ------------------------------------------------------------------ slices and gathers


def test_slices_that_tile_a_value_are_concatenated() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        low = f.slice(x, start=(0,), stop=(2,), step=(1,))
        high = f.slice(x, start=(2,), stop=(5,), step=(1,))
        return total(f.sin(low)) + total(f.exp(high))

    fn = make("f64[5]", build)
    emitted = names(reverse(fn, (0,), seed=True))
    assert "concatenate" in emitted
    assert "pad" not in emitted
    x = np.linspace(0, 1, 5)
    np.testing.assert_allclose(grad(fn, x)[0], np.concatenate([np.cos(x[:2]), np.exp(x[2:])]))


def test_overlapping_and_repeated_slices_are_added_up() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        bounds = ((0, 4, 1), (1, 5, 1), (0, 5, 2), (0, 4, 1))
        parts = [f.slice(x, start=(a,), stop=(b,), step=(s,)) for a, b, s in bounds]
        return total(parts[0] * parts[1]) + total(f.exp(parts[2])) + total(f.sin(parts[3])) + total(x)

    x = np.linspace(0.2, 1, 5)
    fn = make("f64[5]", build)
    check_first_order(Point(fn, (x,), 0), 1e-9)


def test_reading_element_by_element_costs_the_same_for_each() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        y = f.full(x.type.with_shape((1,)), 0.0)
        for k in range(64):
            y = f.sin(y + f.slice(x, start=(k,), stop=(k + 1,), step=(1,)))
        return total(y)

    fn = make("f64[64]", build)
    made = reverse(fn, (0,), seed=True)
    wide = [op for op in made.ops if op.results[0].type.shape == (64,) and op.name not in ("update", "broadcast")]
    assert wide == []
    check_first_order(Point(fn, (np.linspace(0, 1, 64),), 0), 1e-9)


def test_gathers_of_one_value_scatter_into_one_array() -> None:
    def build(f, x, i, j):  # type: ignore[no-untyped-def]
        return total(f.gather(x, i, axis=0) * f.gather(x, j, axis=0)) + total(f.exp(x))

    fn = make("f64[5] i64[3] i64[3]", build)
    emitted = names(reverse(fn, (0,), seed=True))
    assert emitted.count("scatter_add") == 2
    point = Point(fn, (np.linspace(0, 1, 5), np.array([0, 1, 1]), np.array([4, 1, 0])), 0)
    check_first_order(point, 1e-9)


# ------------------------------------------------------------------ complex numbers


def test_the_gradient_of_the_squared_modulus_is_twice_the_conjugate() -> None:
    fn = make("c128[3]", lambda f, z: total(f.real(z * f.conj(z))))
    z = X + 1j * X[::-1]
    np.testing.assert_allclose(grad(fn, z)[0], 2 * np.conj(z))


def test_a_real_input_of_a_complex_computation_has_a_real_gradient() -> None:
    fn = make("f64[3]", lambda f, x: total(f.real(f.exp(f.astype(x, "c16") * 1j))))
    (gradient,) = grad(fn, X)
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, -np.sin(X))


# ------------------------------------------------------------------ branches


def both_sides(f, p, x, y):  # type: ignore[no-untyped-def]
    first, second = cond(
        f,
        p,
        lambda f, x, y: (f.sin(x) * f.tanh(x * x), y),
        lambda f, x, y: (f.sqrt(f.exp(x)) * f.broadcast_to(y, (3,)), f.sin(y)),
        x,
        y,
    )
    return total(first * x) * second


@pytest.mark.parametrize("taken", [True, False])
def test_branches_are_differentiated_to_second_order(taken: bool) -> None:
    fn = make("bool[] f64[3] f64[]", both_sides)
    arguments = (np.array(taken), X, np.array(0.8))
    check_first_order(Point(fn, arguments, 0), 1e-9)
    made = reverse(fn, (1, 2), seed=True, with_outputs=False)
    verify(made)
    check_first_order(Point(made, arguments, 1), 1e-8)
    twice = reverse(made, (1, 2))
    verify(twice)


@pytest.mark.parametrize("taken", [True, False])
def test_nested_branches_are_differentiated(taken: bool) -> None:
    def outer(f, x, y):  # type: ignore[no-untyped-def]
        return cond(
            f,
            y > 0.5,
            lambda f, x, y: f.exp(x) * f.broadcast_to(y, (3,)),
            lambda f, x, y: f.log(x),
            f.sin(x) + 2.0,
            y,
        )

    fn = make("bool[] f64[3] f64[]", lambda f, p, x, y: total(cond(f, p, outer, lambda f, x, y: x * x, x, y)[0]))
    for y in (0.8, 0.2):
        point = Point(fn, (np.array(taken), X, np.array(y)), 0)
        check_first_order(point, 1e-9)


def test_residuals_of_both_branches_share_their_places() -> None:
    def heavy(which):  # type: ignore[no-untyped-def]
        return lambda f, x: f.dot_general(f.op(which, x), x, contract=((1,), (0,)), batch=((), ())) * f.op(which, x)

    def build(f, p, x):  # type: ignore[no-untyped-def]
        return total(cond(f, p, lambda f, x: f.sin(heavy("exp")(f, x)), lambda f, x: f.cos(heavy("tanh")(f, x)), x)[0])

    fn = make("bool[] f64[3,3]", build)
    made = reverse(fn, (1,), seed=True)
    ahead = next(op for op in made.ops if op.name == "if")
    stored = [r for r in ahead.results[1:] if r.type.size > 1]
    assert len(stored) == 1
    check_first_order(Point(fn, (np.array(False), np.eye(3) * 0.4 + 0.1), 0), 1e-9)
