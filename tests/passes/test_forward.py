"""Forward mode: what it emits. Each op's derivative is checked in tests/ir/test_ops_complete.py."""

import numpy as np
import pytest

from pullback.errors import ArgumentError
from pullback.ir.interpret import interpret
from pullback.passes.forward import forward
from pullback.passes.reverse import reverse
from tests.ir.checks import Point, check_first_order
from tests.passes.making import arrays, cond, make, names, total

X = np.array([0.4, 1.3, 2.0])


def test_results_are_the_outputs_and_a_tangent_for_each_inexact_one() -> None:
    fn = make("f64[3] f64[3]", lambda f, x, y: (f.sin(x) * y, f.astype(x, "i8"), total(y)))
    made = forward(fn, (0,))
    assert [str(t) for t in made.result_types] == ["f64[3]", "i64[3]", "f64[]", "f64[3]", "f64[]"]
    *_, first, second = interpret(made, arrays(X, X, 2 * X))
    np.testing.assert_allclose(first, np.cos(X) * X * 2 * X)
    assert second == 0.0


def test_an_integer_parameter_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match=r"x0 of fn is i64\[\]"):
        forward(make("i64[]", lambda f, n: n), (0,))


def test_what_does_not_reach_an_output_gets_no_tangent() -> None:
    fn = make("f64[3]", lambda f, x: (total(x * f.floor(f.exp(x))),))
    emitted = names(forward(fn, (0,)))
    assert emitted.count("exp") == 1
    assert emitted.count("mul") + emitted.count("strong_mul") == 2


def test_tangent_ops_carry_the_users_line() -> None:
    made = forward(make("f64[3]", lambda f, x: f.sin(x)), (0,))
    assert str(next(op for op in made.ops if op.name == "cos").loc) == "tangent, model.py:1 fn"


@pytest.mark.parametrize("taken", [True, False])
def test_branches_carry_tangents_and_give_zeros_where_only_the_other_has_one(taken: bool) -> None:
    def build(f, p, x, y):  # type: ignore[no-untyped-def]
        return cond(f, p, lambda f, x, y: (f.sin(x), y * 2.0), lambda f, x, y: (f.stop_gradient(x), f.floor(y)), x, y)

    fn = make("bool[] f64[3] f64[]", build)
    arguments = (np.array(taken), X, np.array(0.3))
    in_x, in_y = interpret(forward(fn, (1, 2), with_outputs=False), (*arguments, np.ones(3), np.array(1.0)))
    np.testing.assert_allclose(in_x, np.cos(X) if taken else np.zeros(3))
    assert in_y == (2.0 if taken else 0.0)


def test_forward_over_reverse_is_the_hessian_times_a_vector() -> None:
    fn = make("f64[3]", lambda f, x: total(f.exp(x) * f.sin(x)) * total(x * x))
    gradient = reverse(fn, (0,), seed=True, with_outputs=False)
    check_first_order(Point(gradient, (X,), 0), 1e-9)
