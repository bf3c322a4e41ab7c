"""Writing in place: views alias, overlaps are read first, arguments of the caller stay as they are."""

from typing import Any

import numpy as np
import pytest

from tests.tracer.inplace_statements import STATEMENTS, runner
from tests.tracer.support import assert_as_numpy, traced

X, Y = np.random.default_rng(4).normal(size=(3, 4)), np.random.default_rng(5).normal(size=4)


@pytest.mark.parametrize("statements", STATEMENTS)
def test_statements_leave_what_numpy_leaves(statements: str) -> None:
    assert_as_numpy(runner(statements), X, Y)


def test_an_argument_is_written_locally_and_the_program_says_which() -> None:
    def f(x: Any, y: Any) -> Any:
        x[0] = y
        return x.sum()

    before = X.copy()
    program = assert_as_numpy(f, X, Y)
    assert program.written == (0,)
    np.testing.assert_array_equal(X, before)


def test_a_slice_written_through_a_chain_of_views_touches_only_that_slice() -> None:
    def f(x: Any) -> Any:
        x[1:][:, ::2][0] = 5.0
        return x

    program = traced(f, X)
    (update,) = [op for op in program.function.ops if op.name == "update"]
    assert update.operands[1].type.shape == (1, 2)
    assert_as_numpy(f, X)


def test_making_a_view_emits_nothing() -> None:
    program = traced(lambda x: str((x[1:], x.T, x.reshape(-1)[::2])[0].shape), X)
    assert program.function.ops == ()


def test_a_constant_array_filled_with_constants_stays_constant() -> None:
    def f(x: Any) -> Any:
        table = np.zeros(5)
        for k in range(5):
            table[k] = k**2
        return x[0, 0] * table[int(table[1])]

    program = traced(f, X)
    assert program.guards == ()
    assert "update" not in {op.name for op in program.function.ops}


def test_a_traced_index_reads_and_writes_one_element_for_any_index() -> None:
    def f(x: Any, i: Any) -> Any:
        out = np.zeros(4)
        out[i] = x[1, i]
        row = x[i - 1]
        row[0] = 7.0
        return out, x

    for index in (1, 2, 0):
        program = assert_as_numpy(f, X, index)
        assert program.guards == ()


def test_a_traced_index_out_of_range_is_checked_in_the_call() -> None:
    program = traced(lambda x, i: x[i], Y, 1)
    assert [c.message for c in program.checks] == ["index is out of bounds for axis 0 with size 4"]


def test_writing_a_traced_value_into_an_array_from_outside_is_an_error() -> None:
    outside = np.zeros(3)

    def f(x: Any) -> Any:
        outside[0] = x[0]
        return outside

    with pytest.raises(TypeError, match="made outside the traced function"):
        traced(f, Y)


def test_a_read_only_view_refuses_writes() -> None:
    def f(x: Any) -> Any:
        np.broadcast_to(x, (2, 4))[0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        traced(f, Y)
