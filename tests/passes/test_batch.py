"""Batching: what the pass adds to the rules of the ops, which tests/ir/test_ops_complete.py checks one by one."""

import numpy as np
import pytest

from pullback.errors import ArgumentError, NumericalError, TypeRuleError
from pullback.ir.graph import Attrs
from pullback.ir.interpret import interpret
from pullback.ir.ops import OPS
from pullback.ir.verify import verify
from pullback.passes.batch import batch
from pullback.passes.reverse import reverse
from tests.passes.making import arrays, cond, make, names, total

ROWS = np.array([[0.4, 1.3, 2.0], [-0.4, 0.3, 1.0]])


def test_what_does_not_depend_on_a_batched_argument_stays_as_it_is() -> None:
    fn = make("f64[3] f64[3]", lambda f, x, y: (f.sin(x), f.cos(y)))
    batched, flags = batch(fn, (True, False), 2, all_results=False)
    assert flags == (True, False)
    assert [str(t) for t in batched.result_types] == ["f64[2,3]", "f64[3]"]


def test_all_results_get_the_axis_when_asked_for() -> None:
    fn = make("f64[3] f64[3]", lambda f, x, y: (f.sin(x), f.cos(y), f.full(x.type, 2.0)))
    batched, flags = batch(fn, (True, False), 2)
    assert flags == (True, True, True)
    results = interpret(batched, arrays(ROWS, ROWS[0]))
    np.testing.assert_array_equal(results[1], np.cos(np.stack([ROWS[0], ROWS[0]])))
    assert results[2].shape == (2, 3)


def test_a_matrix_that_all_rows_share_is_multiplied_once() -> None:
    fn = make("f64[3] f64[3,4]", lambda f, x, w: f.dot_general(x, w, contract=((0,), (0,)), batch=((), ())))
    batched, _ = batch(fn, (True, False), 2)
    assert names(batched).count("broadcast") == 0


def test_the_number_of_flags_must_fit() -> None:
    with pytest.raises(ArgumentError, match="1 parameters, got 2"):
        batch(make("f64[3]", lambda f, x: x), (True, True), 2)


def branches(f, p, x):  # type: ignore[no-untyped-def]
    return cond(f, p, lambda f, x: (f.log(x), total(x)), lambda f, x: (x * x, f.full(total(x).type, 1.0)), x)


@pytest.mark.parametrize("predicates", [[True, False], [False, True], [True, True]])
def test_rows_may_take_different_branches(predicates: list[bool]) -> None:
    fn = make("bool[] f64[3]", branches)
    batched, _ = batch(fn, (True, True), 2)
    verify(batched)
    assert "if" not in names(batched)
    found = interpret(batched, arrays(predicates, ROWS))
    rows = [interpret(fn, arrays(p, row)) for p, row in zip(predicates, ROWS, strict=True)]
    for column, result in zip(zip(*rows, strict=True), found, strict=True):
        np.testing.assert_array_equal(np.stack(column), result)


def test_a_shared_predicate_keeps_one_branch() -> None:
    fn = make("bool[] f64[3]", branches)
    batched, _ = batch(fn, (False, True), 2)
    verify(batched)
    assert "if" in names(batched)
    np.testing.assert_array_equal(interpret(batched, arrays(False, ROWS))[0], ROWS * ROWS)


def test_the_branch_that_a_row_did_not_take_leaves_no_nan_in_its_gradient() -> None:
    fn = make("bool[] f64[3]", lambda f, p, x: total(branches(f, p, x)[0]))
    batched, _ = batch(reverse(fn, (1,), seed=True, with_outputs=False), (True, True), 2)
    x = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 2.0]])
    np.testing.assert_allclose(interpret(batched, arrays([True, False], x))[0], [1 / x[0], 2 * x[1]])


def checked(f, p, x):  # type: ignore[no-untyped-def]
    def inner(f, x):  # type: ignore[no-untyped-def]
        f.b.add(OPS["check"], [(x > 0.0).value], Attrs(message="positive", code=1))
        return f.log(x)

    return cond(f, p, inner, lambda f, x: x, x)


def test_a_check_counts_only_in_the_rows_that_take_its_branch() -> None:
    batched, _ = batch(make("bool[] f64[3]", checked), (True, True), 2)
    interpret(batched, arrays([True, False], [[1.0, 2.0, 3.0], [-1.0, 1.0, 1.0]]))
    with pytest.raises(NumericalError, match="positive"):
        interpret(batched, arrays([True, True], [[1.0, 2.0, 3.0], [-1.0, 1.0, 1.0]]))


def test_a_check_in_a_nested_branch_counts_only_where_both_are_taken() -> None:
    def build(f, p, q, x):  # type: ignore[no-untyped-def]
        return cond(f, p, lambda f, q, x: checked(f, q, x), lambda f, q, x: x, q, x)

    batched, _ = batch(make("bool[] bool[] f64[3]", build), (True, False, True), 2)
    interpret(batched, arrays([True, False], True, [[1.0, 2.0, 3.0], [-1.0, 1.0, 1.0]]))
    with pytest.raises(NumericalError, match="positive"):
        interpret(batched, arrays([True, True], True, [[1.0, 2.0, 3.0], [-1.0, 1.0, 1.0]]))


def test_a_guard_on_a_batched_value_is_refused_with_the_users_line() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        f.b.add(OPS["guard"], [(total(x) > 0.0).value], Attrs(index=0, expected=1))
        return x

    with pytest.raises(TypeRuleError, match=r"model.py:1"):
        batch(make("f64[3]", build), (True,), 2)
