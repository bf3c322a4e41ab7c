"""Control flow takes arguments in the ways of `jax.lax`, and any container as carry, row or operand."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, LeakedValueError, PullbackError, UnsupportedError

X = np.arange(1.0, 6.0)


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Point:
    u: Any
    v: Any


@pytest.mark.parametrize(("function", "parameters"), [
    (pb.cond, "pred true_fun false_fun operands operand"),
    (pb.switch, "index branches operands operand"),
    (pb.while_loop, "cond_fun body_fun init_val"),
    (pb.fori_loop, "lower upper body_fun init_val unroll"),
    (pb.scan, "f init xs length reverse unroll _split_transpose"),
    (pb.map, "f xs batch_size"),
    (pb.associative_scan, "fn elems reverse axis"),
])  # fmt: skip
def test_parameters_have_the_names_and_order_of_jax(function: Any, parameters: str) -> None:
    names = list(inspect.signature(function).parameters)
    assert names[: len(parameters.split())] == parameters.split()


BRANCHES = [lambda x: x, lambda x: x * 2, lambda x: x * 3]


@pytest.mark.parametrize(("call", "expected"), [
    (lambda: pb.cond(True, lambda x: x, lambda x: -x, operand=2.0), 2.0),
    (lambda: pb.cond(pred=False, true_fun=lambda: 1.0, false_fun=lambda: 2.0), 2.0),
    (lambda: pb.cond(0, lambda _: 1.0, lambda _: 2.0, None), 2.0),
    (lambda: pb.cond(False, 1.0, lambda x: x, (2.0, 5.0), lambda x: x[0] - x[1]), -3.0),
    (lambda: pb.switch(np.int32(1), BRANCHES, 2.0), 4.0),
    (lambda: pb.switch(index=9, branches=BRANCHES, operand=2.0), 6.0),
    (lambda: pb.switch(-3, BRANCHES, 2.0), 2.0),
    (lambda: pb.while_loop(cond_fun=lambda v: v < 10, body_fun=lambda v: v * 2, init_val=1), 16),
    (lambda: pb.fori_loop(lower=0, upper=3, body_fun=lambda i, v: v + i, init_val=1.0, unroll=True), 4.0),
    (lambda: pb.fori_loop(3, 0, lambda i, v: v + i, 1.0), 1.0),
    (lambda: pb.fori_loop(0, 3, lambda i, v: v, None), None),
    (lambda: pb.scan(f=lambda c, x: (c + x, None), init=0.0, xs=X, unroll=2), (15.0, None)),
    (lambda: pb.scan(lambda c, _: (c * 2, None), 1.0, None, 4), (16.0, None)),
    (lambda: pb.scan(lambda c, _: (c * 2, None), 1.0, length=np.int64(0)), (1.0, None)),
    (lambda: pb.map(f=lambda _: None, xs=X), None),
])  # fmt: skip
def test_arguments_by_position_and_by_name(call: Callable[[], Any], expected: Any) -> None:
    assert call() == expected


def test_map_in_batches_leaves_no_row_out() -> None:
    for size in (1, 2, 5, 8):
        found = pb.map(lambda p: {"y": p.u**2 + p.v[0]}, Point(X, np.stack([X, X], 1)), batch_size=size)
        np.testing.assert_allclose(found["y"], X**2 + X)
    with pytest.raises(ArgumentError, match="batch_size must be"):
        pb.map(lambda x: x, X, batch_size=0)


def mixed(x: Any, reverse: bool, scan: Any) -> Any:
    """A scan whose carry and rows hold every kind of container, an empty one and None among them."""

    def step(carry: Any, row: Any) -> Any:
        pair, extra = carry
        new = Pair(pair.a + row["p"].u * pair.b, {"w": pair.b["w"] * 1.1} if isinstance(pair.b, dict) else pair.b * 1.1)
        return (new, {"none": None, "empty": (), "k": extra["k"] + 1, "empty2": {}}), Point(
            [row["p"].v * extra["k"]], None
        )

    carry = (Pair(0.0, 1.0), {"none": None, "empty": (), "k": 0, "empty2": {}})
    (pair, extra), rows = scan(step, carry, {"p": Point(x, np.sin(x)), "nothing": None}, reverse)
    return pair.a * pair.b + np.sum(rows.u[0]) * extra["k"]


def scan_in_python(step: Any, carry: Any, xs: Any, reverse: bool) -> Any:
    rows = [{"p": Point(u, v), "nothing": None} for u, v in zip(xs["p"].u, xs["p"].v, strict=True)]
    stacked = []
    for row in rows[::-1] if reverse else rows:
        carry, y = step(carry, row)
        stacked.append(y.u[0])
    return carry, Point([np.stack(stacked[::-1] if reverse else stacked)], None)


@pytest.mark.parametrize("reverse", [False, True])
def test_carries_and_rows_are_containers_of_any_kind(reverse: bool) -> None:
    def ours(x: Any) -> Any:
        return mixed(x, reverse, lambda f, c, xs, back: pb.scan(f, c, xs, reverse=back))

    def python(x: Any) -> Any:
        return mixed(x, reverse, scan_in_python)

    for a, b in zip(pb.value_and_grad(ours)(X), pb.value_and_grad(python)(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_loop_of_no_turns_gives_its_start_and_empty_rows() -> None:
    last, rows = pb.scan(lambda c, x: (c * x["a"], {"c": c}), 2.0, {"a": np.zeros(0)})
    assert last == 2.0
    assert rows["c"].shape == (0,)
    slope = pb.grad(lambda a: pb.scan(lambda c, x: (c * a + x, c), a, np.zeros((0, 2)).sum(1))[0])(3.0)
    assert slope == 1.0
    assert pb.grad(lambda a: pb.while_loop(lambda v: v < 0, lambda v: v * a, a))(2.0) == 1.0


MATRICES = np.random.default_rng(0).normal(size=(5, 3, 3))


@pytest.mark.parametrize("reverse", [False, True])
def test_an_associative_scan_keeps_the_order_of_operands_that_do_not_commute(reverse: bool) -> None:
    order = MATRICES[::-1] if reverse else MATRICES
    expected = [order[0]]
    for matrix in order[1:]:
        expected.append(expected[-1] @ matrix)
    found = pb.associative_scan(np.matmul, MATRICES, reverse)
    np.testing.assert_allclose(found[::-1] if reverse else found, expected, rtol=1e-12)

    def loss(a: Any) -> Any:
        return np.sum(pb.associative_scan(np.matmul, a, reverse=reverse)[2] ** 2)

    def by_hand(a: Any) -> Any:
        return np.sum((a[4] @ a[3] @ a[2] if reverse else a[0] @ a[1] @ a[2]) ** 2)

    np.testing.assert_allclose(pb.grad(loss)(MATRICES), pb.grad(by_hand)(MATRICES), rtol=1e-10, atol=1e-12)


def test_an_associative_scan_runs_along_any_axis_of_a_container() -> None:
    for axis in (0, 1, -1):
        found = pb.associative_scan(lambda p, q: Pair(p.a + q.a, p.b * q.b), Pair(MATRICES, MATRICES), axis=axis)
        np.testing.assert_allclose(found.a, np.cumsum(MATRICES, axis), rtol=1e-12)
        np.testing.assert_allclose(found.b, np.cumprod(MATRICES, axis), rtol=1e-12)
    assert pb.associative_scan(np.add, np.zeros((0, 2))).shape == (0, 2)
    assert pb.associative_scan(np.add, ()) == ()


@pytest.mark.parametrize(("call", "message"), [
    (lambda: pb.cond(None, lambda: 1.0, lambda: 2.0), "a bool or a real number, got None"),
    (lambda: pb.cond("yes", lambda: 1.0, lambda: 2.0), "a bool or a real number, got 'yes'"),
    (lambda: pb.cond(1j, lambda: 1.0, lambda: 2.0), "a bool or a real number"),
    (lambda: pb.cond(True, 1.0, lambda: 2.0), "true_fun must be a function, got 1.0"),
    (lambda: pb.cond(True, abs, abs, 1.0, operand=2.0), "not both"),
    (lambda: pb.switch(0.5, BRANCHES, 2.0), "one integer, got .* float64"),
    (lambda: pb.switch(np.array([1]), BRANCHES, 2.0), r"one integer, got shape \(1,\)"),
    (lambda: pb.switch(1, [abs, 3], 2.0), r"branches\[1\] must be a function, got 3"),
    (lambda: pb.switch(1, [*BRANCHES, lambda x: (x, x)], 2.0), r"switch: the branches .* gives \(\*, \*\)"),
    (lambda: pb.scan(lambda c, x: (c, x), 0.0, None, length=-1), "length must be an integer that is not negative"),
    (lambda: pb.scan(lambda c, x: (c, x), 0.0, None, length=2.5), "length must be an integer"),
    (lambda: pb.scan(lambda c, x: (c, x), 0.0, X, length=4), r"5 \(xs\), 4 \(length\)"),
    (lambda: pb.scan(lambda c, x: ({"w": c["w"], "v": 1.0}, x), {"w": 1.0}, X), r"starts as \{'w': \*\}.*'v': \*"),
    (lambda: pb.fori_loop(0, 2.0, lambda i, v: v, 1.0), "upper must be one integer, got .* float64"),
    (lambda: pb.fori_loop(0, X, lambda i, v: v, 1.0), r"upper must be one integer, got shape \(5,\)"),
    (lambda: pb.associative_scan(np.add, MATRICES, axis=3), r"elems has shape \(5, 3, 3\) and no axis 3"),
    (lambda: pb.associative_scan(np.add, Pair(X, X[1:])), r"5 \(elems.a\), 4 \(elems.b\)"),
    (lambda: pb.associative_scan(lambda a, b: np.concatenate([a, b]), X), "fn made 4 rows of 2 and 2"),
])  # fmt: skip
def test_arguments_of_other_kinds_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def leak_into_a_list(x: Any) -> Any:
    kept: list[Any] = []
    last = pb.fori_loop(0, 3, lambda i, c: (kept.append(c * 2), c + 1.0)[1], x)
    return last + kept[0]


def leak_by_nonlocal(x: Any) -> Any:
    latest = None

    def body(c: Any, row: Any) -> Any:
        nonlocal latest
        latest = c * row
        return c + row, None

    last, _ = pb.scan(body, 0.0, x * X)
    return last + latest


def leak_out_of_a_branch(x: Any) -> Any:
    kept: list[Any] = []
    last = pb.cond(x > 0, lambda v: (kept.append(v * 2), v)[1], lambda v: v, x)
    return last * kept[0]


def leak_as_result(x: Any) -> Any:
    kept: list[Any] = []
    pb.while_loop(lambda c: c < 9.0, lambda c: (kept.append(c), c * 2.0)[1], x)
    return kept[-1]


@pytest.mark.parametrize("leak", [leak_into_a_list, leak_by_nonlocal, leak_out_of_a_branch, leak_as_result])
@pytest.mark.parametrize("transform", [pb.jit, pb.grad])
def test_a_body_that_leaks_a_traced_value_is_an_error_at_the_line_that_uses_it(transform: Any, leak: Any) -> None:
    with pytest.raises(LeakedValueError, match=r"Return it from the function[^\n]*\n.*test_signatures.py:\d+"):
        transform(leak)(1.5)


def test_a_body_that_writes_to_an_array_around_it_is_an_error_that_says_how() -> None:
    def leak(x: Any) -> Any:
        buffer = np.zeros(3)

        def body(i: Any, c: Any) -> Any:
            buffer[i] = c
            return c * 2.0

        return pb.fori_loop(0, 3, body, x) + buffer.sum()

    with pytest.raises(UnsupportedError, match=r"return the new values[^\n]*\n.*test_signatures.py:\d+"):
        pb.grad(leak)(1.0)
    assert issubclass(UnsupportedError, PullbackError)
