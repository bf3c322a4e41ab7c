"""A Python decision in the body of compiled control flow is an error that says what to write in its place."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ConcretizationError


def if_statement(i: Any, c: Any) -> Any:
    if c > 0:
        c = c * 2.0
    return c


def while_statement(i: Any, c: Any) -> Any:
    while c > 3:
        c = c - 1.0
    return c


@pytest.mark.parametrize(("body", "asked", "instead"), [
    (lambda i, c: c * 2 if c > 0 else -c, "`... if c > 0 else ...`", "np.where(c > 0, c * 2, -c), or pullback.cond"),
    (lambda i, c: max(c, 0.5), "`max(c, 0.5)`", "Write np.maximum(c, 0.5)"),
    (lambda i, c: min([c, 0.5, c]), "`min([c, 0.5, c])`", "Write np.min([c, 0.5, c])"),
    (lambda i, c: max(c, 0.5, i), "`max(c, 0.5, i)`", "Write np.max([c, 0.5, i])"),
    (lambda i, c: c * (c > 0 and c < 5), "`c > 0 and c < 5`", "Write np.logical_and(c > 0, c < 5)"),
    (lambda i, c: c * (c > 0 or i < 5), "`c > 0 or i < 5`", "Write np.logical_or(c > 0, i < 5)"),
    (lambda i, c: c * (0 < c < 5), "`0 < c < 5`", "Write np.logical_and(0 < c, c < 5)"),
    (lambda i, c: c * (not c > 0), "`not c > 0`", "Write np.logical_not(c > 0)"),
    (lambda i, c: c + round(c), "`round(c)`", "Write np.round(c)"),
    (lambda i, c: c + any([c > 0, c < 1]), "`any([c > 0, c < 1])`", "Write np.any([c > 0, c < 1])"),
    (lambda i, c: c + sum(range(i)), "`range(i)`", "Write pullback.fori_loop"),
    (lambda i, c: c + [1, 2, 3][i], "`[1, 2, 3][i]`", "Write np.asarray([1, 2, 3])[i]"),
    (lambda i, c: c + sum(1 for k in range(2) if c > k), "`c > k`", "pullback.cond or np.where"),
    (if_statement, "`if c > 0`", "pullback.cond(c > 0, lambda x: ..., lambda x: ..., x)"),
    (while_statement, "`while c > 3`", "pullback.while_loop"),
])  # fmt: skip
def test_the_error_names_the_construct_and_what_to_write(body: Callable[..., Any], asked: str, instead: str) -> None:
    with pytest.raises(ConcretizationError) as caught:
        pb.jit(lambda x: pb.fori_loop(0, 3, body, x))(0.7)
    message = str(caught.value)
    assert message.startswith(f"{asked} needs the number behind a traced value")
    assert "traced once, for all turns" in message
    assert instead in message
    assert "test_advice.py:" in message


def test_a_decision_on_what_the_body_finds_around_it_is_followed() -> None:
    def chosen(x: Any, k: Any) -> Any:
        return pb.scan(lambda c, row: (c * row if k > 0 else c + row, None), 1.0, x)[0]

    gradient = pb.grad(chosen)
    x = np.array([1.0, 2.0, 3.0])
    for k, expected in ((1.0, [6.0, 3.0, 2.0]), (-1.0, [1.0, 1.0, 1.0]), (2.0, [6.0, 3.0, 2.0])):
        np.testing.assert_allclose(gradient(x, k), expected)


def test_a_body_without_source_gets_the_general_advice() -> None:
    made: dict[str, Any] = {}
    exec("def body(i, c):\n    return c if c > 0 else -c\n", made)
    with pytest.raises(ConcretizationError, match=r"a Python branch or conversion needs .* pullback.cond or np.where"):
        pb.jit(lambda x: pb.fori_loop(0, 3, made["body"], x))(0.7)
