"""Differentiation and batching of `scan` and `while`."""

from typing import Any

import numpy as np
import pytest

from pullback.ir.graph import Function, walk
from pullback.ir.interpret import interpret
from pullback.ir.verify import verify
from pullback.passes.batch import batch
from pullback.passes.forward import forward
from pullback.passes.reverse import reverse
from tests.ir.checks import Point, check_adjoint, check_first_order
from tests.passes.making import arrays, cond, grad, loop, make, names, number, scan, total

X = np.array([0.4, 1.3, -0.7])
W = np.array([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.2, 0.7]])
XS = np.linspace(-1, 1, 12).reshape(4, 3)


def dot(f: Any, x: Any, w: Any) -> Any:
    return f.dot_general(x, w, contract=((x.ndim - 1,), (0,)), batch=((), ()))


# ------------------------------------------------------------------ programs


def recurrent(f: Any, h: Any, xs: Any, w: Any) -> Any:
    def body(f: Any, h: Any, x: Any, w: Any) -> Any:
        new = f.tanh(dot(f, h, w) + x)
        return new, total(new * new)

    last, losses = scan(f, body, [h], [xs], [w], length=4)
    return total(losses) + total(f.sin(last))


def backwards(f: Any, h: Any, xs: Any, w: Any) -> Any:
    last, rows = scan(f, lambda f, h, x, w: (h * x + dot(f, x, w), f.exp(h)), [h], [xs], [w], length=4, reverse=True)
    return total(last) + total(rows * xs)


def nested(f: Any, h: Any, xs: Any, w: Any) -> Any:
    def inner(f: Any, h: Any, row: Any) -> Any:
        return (f.sin(h * f.broadcast_to(total(row), (3,))) + row,)

    def outer(f: Any, h: Any, x: Any, w: Any) -> Any:
        (new,) = scan(f, inner, [h], [w], [], length=3)
        return new + x, total(new)

    last, sums = scan(f, outer, [h], [xs], [w], length=4)
    return total(last) * total(sums)


def newton(f: Any, h: Any, xs: Any, w: Any) -> Any:
    """A number of turns that depends on the data: each halves h until it is small."""

    def condition(f: Any, h: Any, t: Any, w: Any) -> Any:
        return total(h * h) > 0.01

    def body(f: Any, h: Any, t: Any, w: Any) -> Any:
        return f.sin(dot(f, h, w)) * 0.7, t * 0.9 + total(f.exp(h))

    last, t = loop(f, condition, body, [h, number(f, 0.5)], [w])
    return total(last) + t * total(xs)


def counted(f: Any, h: Any, xs: Any, w: Any) -> Any:
    """Linear in what is carried: nothing to tape but the number of turns."""

    def condition(f: Any, k: Any, h: Any) -> Any:
        return k < number(f, 5, "i8")

    _, last = loop(f, condition, lambda f, k, h: (k + 1, h * 0.5 + 1.0), [number(f, 0, "i8"), h], [])
    return total(last * dot(f, h, w)) + total(xs)


def loop_in_loop(f: Any, h: Any, xs: Any, w: Any) -> Any:
    def inner(f: Any, h: Any) -> Any:
        (h,) = loop(f, lambda f, h: total(h * h) > 1.0, lambda f, h: (f.sin(h) * 0.8,), [h])
        return (h,)

    def body(f: Any, k: Any, h: Any) -> Any:
        (h,) = inner(f, f.exp(h))
        return k + 1, h

    _, last = loop(f, lambda f, k, h: k < number(f, 3, "i8"), body, [number(f, 0, "i8"), h])
    return total(last * last) + total(xs) + total(w)


def while_in_scan(f: Any, h: Any, xs: Any, w: Any) -> Any:
    def body(f: Any, h: Any, x: Any, w: Any) -> Any:
        (h,) = loop(f, lambda f, h, w: total(h * h) > 0.5, lambda f, h, w: (f.tanh(dot(f, h, w)),), [h + x], [w])
        return h, f.exp(h)

    last, rows = scan(f, body, [h], [xs], [w], length=4)
    return total(last) + total(rows * rows)


def branch_in_loop(f: Any, h: Any, xs: Any, w: Any) -> Any:
    def body(f: Any, h: Any, x: Any, w: Any) -> Any:
        (new,) = cond(f, total(h) > 0.3, lambda f, h, w: f.sin(h), lambda f, h, w: f.exp(dot(f, h, w)) * h, h, w)
        return new + x, total(new * x)

    last, rows = scan(f, body, [h], [xs], [w], length=4)
    return total(last * last) + total(rows)


def loop_in_branch(f: Any, h: Any, xs: Any, w: Any) -> Any:
    def slow(f: Any, h: Any, w: Any) -> Any:
        return loop(f, lambda f, h, w: total(h * h) > 0.2, lambda f, h, w: (f.tanh(dot(f, h, w)) * 0.9,), [h], [w])

    (last,) = cond(f, total(xs) > 1.0, lambda f, h, w: f.cos(h), slow, h, w)
    return total(last * last)


def in_place(f: Any, h: Any, xs: Any, w: Any) -> Any:
    """y[t+1] = sin(y[t]) * x[t], written into a carried array at an index that changes."""

    def body(f: Any, k: Any, y: Any, x: Any) -> Any:
        row = f.gather(y, k, axis=0)
        new = f.sin(row) * x
        return k + 1, f.scatter(y, k + 1, new, axis=0)

    y = f.concatenate(f.reshape_to(h, (1, 3)), xs, axis=0)
    _, y = scan(f, body, [number(f, 0, "i8"), y], [xs], [], length=4)
    return total(y * y) + total(w)


def constant_read_in_parts(f: Any, h: Any, xs: Any, w: Any) -> Any:
    def body(f: Any, k: Any, h: Any, w: Any) -> Any:
        return k + 1, h * f.gather(w, k, axis=0) + f.exp(h * 0.1)

    _, last = scan(f, body, [number(f, 0, "i8"), h], [], [w], length=3)
    return total(last) * total(xs)


PROGRAMS = [recurrent, backwards, nested, newton, counted, loop_in_loop, while_in_scan, branch_in_loop, loop_in_branch]
PROGRAMS += [in_place, constant_read_in_parts]
ARGUMENTS = (X, XS, W)


def program(build: Any) -> Function:
    return make("f64[3] f64[4,3] f64[3,3]", build)


def small(numbers: Any) -> Any:
    """Directions short enough that no loop makes another number of turns."""
    return lambda k, v: v / 50


@pytest.mark.parametrize("build", PROGRAMS)
def test_first_derivatives_in_both_modes(build: Any) -> None:
    point = Point(program(build), ARGUMENTS, 1, small(None))
    for made in (reverse(point.fn, point.wrt), forward(point.fn, point.wrt)):
        verify(made)
    check_first_order(point, 1e-9)


@pytest.mark.parametrize("build", PROGRAMS)
def test_second_derivatives_in_every_mix_of_modes(build: Any) -> None:
    fn = program(build)
    gradient = reverse(fn, (0, 1, 2), seed=True, with_outputs=False)
    point = Point(gradient, ARGUMENTS, 2, small(None))
    verify(reverse(gradient, point.wrt))
    check_first_order(point, 1e-8)
    tangent = forward(fn, (0, 1, 2), with_outputs=False)
    check_first_order(Point(tangent, (*ARGUMENTS, X, XS, W), 3, small(None)), 1e-8)


@pytest.mark.parametrize(
    "build", [recurrent, newton, nested, loop_in_loop, while_in_scan, branch_in_loop, loop_in_branch]
)
def test_third_derivatives(build: Any) -> None:
    second = forward(reverse(program(build), (0, 1, 2), seed=True, with_outputs=False), (0,), with_outputs=False)
    point = Point(second, (*ARGUMENTS, X), 4, small(None))
    check_first_order(point, 1e-7)
    twice = reverse(reverse(program(build), (0, 2), seed=True, with_outputs=False), (0, 2), with_outputs=False)
    check_adjoint(Point(twice, (*ARGUMENTS, X, W), 5), 1e-9)


def test_two_tapes_of_cotangents_of_one_tape_are_added() -> None:
    twice = reverse(reverse(program(newton), (0,), seed=True, with_outputs=False), (0,), with_outputs=False)
    check_first_order(Point(twice, (*ARGUMENTS, X), 6, small(None)), 1e-7)


# ------------------------------------------------------------------ batches


@pytest.mark.parametrize("build", PROGRAMS)
@pytest.mark.parametrize("mask", [(True, True, True), (True, False, False), (False, True, False), (False, False, True)])
def test_batches_of_value_and_gradient_equal_the_loop_over_rows(build: Any, mask: tuple[bool, ...]) -> None:
    fn = reverse(program(build), (0, 1, 2), seed=True)
    rows = 3
    wide = tuple(
        np.stack([a * (1 + 0.3 * k) for k in range(rows)]) if on else a for a, on in zip(ARGUMENTS, mask, strict=True)
    )
    batched, flags = batch(fn, mask, rows)
    verify(batched)
    assert all(flags)
    got = interpret(batched, wide)
    loops = [interpret(fn, tuple(w[k] if on else w for w, on in zip(wide, mask, strict=True))) for k in range(rows)]
    for g, column in zip(got, zip(*loops, strict=True), strict=True):
        np.testing.assert_allclose(g, np.stack(column), rtol=1e-12, atol=1e-12)


def test_batches_of_second_derivatives_with_different_numbers_of_turns() -> None:
    gradient = reverse(program(newton), (0,), seed=True, with_outputs=False)
    second = reverse(gradient, (0, 2), with_outputs=False)
    scales = (1.0, 0.3, 2.0)
    batched, _ = batch(second, (True, False, False, False), 3)
    got = interpret(batched, (np.stack([X * s for s in scales]), XS, W, X))
    rows = [interpret(second, (X * s, XS, W, X)) for s in scales]
    for g, column in zip(got, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(g, np.stack(column), rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------ what is stored, what is computed


def loops_of(fn: Function) -> list[Any]:
    return [op for op in fn.ops if op.name in ("scan", "while")]


def test_a_carry_that_enters_linearly_is_not_stored() -> None:
    fn = make(
        "f64[3] f64[4,3]",
        lambda f, h, xs: total(scan(f, lambda f, h, x: (h * 0.5 + f.sin(x),), [h], [xs], length=4)[0]),
    )
    ahead, _ = loops_of(reverse(fn, (0, 1), seed=True))
    assert len(ahead.results) == 1


def test_one_array_a_turn_is_stored_for_a_recurrent_network() -> None:
    made = reverse(program(recurrent), (0, 1, 2), seed=True)
    ahead, _ = loops_of(made)
    extra = ahead.results[2:]
    assert sum(r.type.size for r in extra) <= 2 * 4 * 3


def test_what_depends_on_constants_only_leaves_the_loop() -> None:
    def build(f: Any, h: Any, w: Any) -> Any:
        return total(scan(f, lambda f, h, w: (f.sin(dot(f, h, dot(f, w, w))),), [h], [], [w], length=5)[0])

    made = reverse(make("f64[3] f64[3,3]", build), (0, 1), seed=True)
    for op in loops_of(made):
        stacked = op.results[op.attrs["carries"] :]
        assert all(r.type.shape[1:] != (3, 3) for r in stacked)


def test_writing_one_element_a_turn_costs_no_work_on_the_whole_array_in_either_direction() -> None:
    def body(f: Any, k: Any, y: Any) -> Any:
        new = f.sin(f.gather(y, k, axis=0)) * 0.9
        return k + 1, f.scatter(y, k + 1, new, axis=0)

    def build(f: Any, y: Any) -> Any:
        return total(scan(f, body, [number(f, 0, "i8"), y], [], [], length=499)[1])

    fn = make("f64[500]", build)
    made = reverse(fn, (0,), seed=True)
    for op in loops_of(made):
        for inner in walk(op.regions[0]):
            if any(r.type.size == 500 for r in inner.results):
                assert inner.name in ("scatter", "scatter_add")
    assert all(r.type.size < 1000 for op in loops_of(made) for r in op.results[1:])


def test_a_constant_read_in_parts_is_totalled_in_place() -> None:
    made = reverse(program(constant_read_in_parts), (0, 1, 2), seed=True)
    _, behind = loops_of(made)
    wide = [op.name for op in behind.regions[0].ops if op.results[0].type.shape == (3, 3)]
    assert wide == ["scatter_add"]


def test_the_gradient_of_a_matrix_read_in_each_turn_is_one_product_behind_the_loop() -> None:
    made = reverse(program(recurrent), (0, 1, 2), seed=True)
    _, behind = loops_of(made)
    assert all(r.type.shape != (3, 3) for r in behind.results)
    outside = [op for op in made.ops if op.name == "dot_general"]
    assert [op.results[0].type.shape for op in outside] == [(3, 3)]


def test_a_loop_that_is_not_active_is_left_alone() -> None:
    def build(f: Any, h: Any, n: Any) -> Any:
        (k,) = loop(f, lambda f, k: k < 5, lambda f, k: (k + 1,), [n])
        return total(h * f.broadcast_to(f.astype(k, "f8"), (3,)))

    made = reverse(make("f64[3] i64[]", build), (0,), seed=True)
    assert names(made).count("while") == 1
    assert "scan" not in names(made)


def test_a_while_that_makes_no_turn_gives_the_gradient_of_the_identity() -> None:
    fn = make("f64[3]", lambda f, h: total(loop(f, lambda f, h: total(h) > 1e9, lambda f, h: (f.exp(h),), [h])[0]))
    np.testing.assert_array_equal(grad(fn, X)[0], np.ones(3))


def test_a_scan_of_no_turns_gives_the_gradient_of_the_identity() -> None:
    fn = make("f64[3] f64[0,3]", lambda f, h, xs: total(scan(f, lambda f, h, x: (h * x,), [h], [xs], length=0)[0]))
    in_h, in_xs = grad(fn, X, np.zeros((0, 3)))
    np.testing.assert_array_equal(in_h, np.ones(3))
    assert in_xs.shape == (0, 3)


# ------------------------------------------------------------------ strong zeros through loops


def test_what_a_loop_masks_leaves_no_nan() -> None:
    def body(f: Any, total_so_far: Any, x: Any) -> Any:
        safe = f.select(x > 0.0, f.log(x), f.zeros_like(x))
        return (total_so_far + f.sum(safe, axes=(0,)),)

    fn = make("f64[2,3]", lambda f, xs: scan(f, body, [number(f, 0.0)], [xs], length=2)[0])
    x = np.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 4.0]])
    want = np.where(x > 0, 1 / np.where(x > 0, x, 1), 0)
    np.testing.assert_array_equal(grad(fn, x)[0], want)
    second = reverse(reverse(fn, (0,), seed=True, with_outputs=False), (0,), with_outputs=False)
    assert np.isfinite(interpret(second, arrays(x, np.ones((2, 3))))[0]).all()


def test_a_row_that_is_done_is_not_spoilt_by_what_the_others_still_compute() -> None:
    """sqrt of a number that falls: the row that is done would go on into NaN."""

    def build(f: Any, x: Any) -> Any:
        (last,) = loop(f, lambda f, x: x > 1.0, lambda f, x: (f.sqrt(x - 1.0),), [x])
        return last

    fn = reverse(make("f64[]", build), (0,), seed=True)
    x = np.array([0.5, 10.0, 1.5, 200.0])
    batched, _ = batch(fn, (True,), 4)
    rows = [interpret(fn, (np.asarray(v),)) for v in x]
    for got, column in zip(interpret(batched, (x,)), zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(got, np.stack(column))


def test_a_recurrent_network_is_not_guarded() -> None:
    """Gates cut from one product tile it, so no structural zeros come in."""

    def body(f: Any, h: Any, c: Any, x: Any, w: Any) -> Any:
        gates = dot(f, h, w) + x
        i, o, g = (f.slice(gates, start=(3 * k,), stop=(3 * k + 3,), step=(1,)) for k in range(3))
        sigmoid = lambda v: 1.0 / (1.0 + f.exp(-v))  # noqa: E731
        new = c * 0.9 + sigmoid(i) * f.tanh(g)
        return sigmoid(o) * f.tanh(new), new

    def build(f: Any, h: Any, c: Any, xs: Any, w: Any) -> Any:
        last, _ = scan(f, body, [h, c], [xs], [w], length=4)
        return total(last * last)

    fn = make("f64[3] f64[3] f64[4,9] f64[3,9]", build)
    made = reverse(fn, (0, 1, 2, 3), seed=True)
    inside = [op.name for op in walk(made.body)]
    assert "isfinite" not in inside
    assert inside.count("strong_mul") == inside.count("exp") / 2  # where a sigmoid overflows
    check_first_order(
        Point(fn, (X, X, np.linspace(-1, 1, 36).reshape(4, 9), np.linspace(-0.5, 0.5, 27).reshape(3, 9)), 0), 1e-9
    )
