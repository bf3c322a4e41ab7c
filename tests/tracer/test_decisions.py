"""Python branches and conversions: what is guarded, what is free, what is an error."""

import math
from typing import Any

import numpy as np
import pytest

from pullback.errors import ConcretizationError, LostGradientError
from pullback.ir.ops.control import GuardFailedError
from pullback.tracer.entry import describe, trace
from pullback.tracer.tree import flatten
from tests.tracer.support import assert_as_numpy, evaluated, execute, traced

OUTSIDE = np.zeros(1)


def newton(x: Any) -> Any:
    guess = x
    while abs(guess * guess - x) > 1e-10:
        guess = 0.5 * (guess + x / guess)
    return guess


def test_a_while_loop_on_traced_values_is_unrolled_and_guarded() -> None:
    program = assert_as_numpy(newton, 2.0)
    assert [g.expected for g in program.guards][-1] == 0
    assert all(g.expected == 1 for g in program.guards[:-1])
    assert all(g.loc is not None and g.loc.function == "newton" for g in program.guards)


def test_the_interpreter_reports_a_guard_that_does_not_hold() -> None:
    program = traced(lambda x: x * 2 if x > 0 else -x, 1.0)
    assert execute(program, 3.0) == 6.0
    with pytest.raises(GuardFailedError):
        execute(program, -3.0)


def test_builtins_work_by_guards() -> None:
    def f(x: Any, y: Any) -> Any:
        best = max(x[0], x[1], y)
        count = len([v for v in x if v > 0])
        steps = sum(1 for _ in range(int(y)))
        return best, count, steps, sorted(x), round(y), any(v > 1 for v in x), all(x > -5), abs(y), math.floor(y)

    assert_as_numpy(f, np.array([1.5, -2.0, 3.0]), 2.5)


def test_an_integer_argument_can_be_a_bound_a_shape_and_an_index() -> None:
    def f(x: Any, n: Any) -> Any:
        total = np.zeros(n)
        for k in range(n):
            total[k] = x[k:n].sum()
        return total

    program = assert_as_numpy(f, np.arange(5.0), 3)
    assert len(program.guards) == 1  # one value, one guard


def test_the_same_test_twice_is_one_guard() -> None:
    def f(x: Any) -> Any:
        return x * 2 if x > 0 and x > 0 else x

    assert len(traced(f, 1.0).guards) == 1


def test_constants_decide_for_nothing() -> None:
    def f(x: Any) -> Any:
        table = np.linspace(0.0, 1.0, 5)
        scale = float(table[2]) if table[1] < 1 else 0.0
        return x * scale * math.exp(table[0]) * int(np.sum(table > 0.2))

    program = assert_as_numpy(f, 2.0)
    assert program.guards == ()
    assert not program.watched


def test_item_and_tolist_keep_the_gradient() -> None:
    assert_as_numpy(lambda x: x.item(1) * x[0].item() + sum(x.tolist()), np.array([1.0, 2.0]))


@pytest.mark.parametrize("convert", [float, math.sin, complex, np.float64, lambda x: OUTSIDE.__setitem__(0, x)])
def test_a_conversion_that_would_lose_the_gradient_is_an_error_with_the_line(convert: Any) -> None:
    def f(x: Any) -> Any:
        return convert(x)

    with pytest.raises(LostGradientError, match=r"(?s)lose its gradient.*test_decisions.py:\d+"):
        traced(f, 1.0)


def test_an_array_has_no_truth_and_no_index() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        traced(lambda x: 1 if x > 0 else 0, np.ones(2))
    with pytest.raises(TypeError, match="scalar index"):
        traced(lambda x: [1, 2][x], 1.0)


def test_without_values_a_branch_is_an_error_that_shows_the_structured_form() -> None:
    leaves, tree = flatten(((1.0,), {}))
    with pytest.raises(ConcretizationError, match=r"(?s)pullback.cond.*test_decisions"):
        trace(lambda x: x if x > 0 else -x, tree, [describe(v) for v in leaves])


def test_a_mask_that_decides_a_shape_is_guarded_as_a_whole() -> None:
    def f(x: Any) -> Any:
        chosen = x[x > 0]
        return np.sort(chosen)[0], np.nonzero(x > 1)[0]

    program = assert_as_numpy(f, np.array([3.0, -1.0, 0.5]))
    assert len(program.guards) == 2


def test_a_masked_reduction_needs_no_guard() -> None:
    def f(x: Any) -> Any:
        chosen = x[x > 0]
        x[x < 0] = 0.0
        return chosen.mean() + (chosen**2).sum() + chosen.max() + np.log(chosen).sum() + x.sum()

    assert assert_as_numpy(f, np.array([3.0, -1.0, 0.5])).guards == ()


def test_a_number_to_a_fractional_power_leaves_the_reals_as_in_python() -> None:
    assert evaluated(lambda x: x**1.5, 4.0) == 8.0
    assert_as_numpy(lambda x: x**1.5, -4.0)
    assert_as_numpy(lambda n: 2**n, -2)


def test_printing_and_formatting_show_the_type_and_do_no_harm() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.extend([f"{x:.3f}", repr(x * 2), str(np.ones(2)), f"{np.float64(1.5) * np.ones(())[()]:.2f}"])
        return x

    traced(f, 1.0)
    assert seen[0].startswith("<TracedScalar x0 f64[]>")
    assert "test_decisions.py" in seen[1]
    assert seen[3] == "1.50"


def test_a_traced_number_is_taken_for_what_it_stands_for() -> None:
    def f(x: Any, n: Any, a: Any) -> Any:
        assert isinstance(x, float)
        assert isinstance(n, int)
        assert isinstance(a, np.ndarray)
        assert isinstance(a[0], np.float64)
        assert np.isscalar(a[0])
        assert not isinstance(a, float)
        return x

    traced(f, 1.0, 2, np.ones(2))


def test_a_traced_number_is_no_key_and_cannot_be_pickled() -> None:
    import pickle

    with pytest.raises(TypeError, match="no hash"):
        traced(lambda x: {x: 1}, 1.0)
    with pytest.raises(TypeError, match="pickled"):
        traced(lambda x: pickle.dumps(x), 1.0)
