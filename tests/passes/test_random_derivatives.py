"""Differentiation and batching of random programs: modes agree with one another, batches with the loop over rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pullback.ir.graph import Function, Value, walk
from pullback.ir.interpret import interpret
from pullback.ir.verify import verify
from pullback.passes import sweep
from pullback.passes.activity import active_values
from pullback.passes.batch import batch
from pullback.passes.control import RULES
from pullback.passes.cotangents import Cotangents
from pullback.passes.facts import Facts
from pullback.passes.forward import forward
from pullback.passes.marks import predict_marks
from pullback.passes.reverse import reverse
from pullback.passes.strong_zeros import KINK, NONE, Marked
from tests.ir.checks import Array, Arrays, Point, inexact_numbers, inner
from tests.random_programs import THEMES, arguments_for, random_function

DOUBLE = [np.dtype("f8"), np.dtype("f8"), np.dtype("i8"), np.dtype("?")]
PROGRAMS = [random_function(seed, 25) for seed in range(60)]
PROGRAMS += [random_function(seed, 35, THEMES["control"], DOUBLE, 3) for seed in range(25)]
PROGRAMS = [fn for fn in PROGRAMS if inexact_numbers(fn.param_types)]


def tolerance(fn: Function) -> float:
    types = [*fn.param_types, *(v.type for op in walk(fn.body) for v in op.results)]  # gradients round to parameters
    sizes = [t.dtype.itemsize // (2 if t.is_complex else 1) for t in types]
    return {2: 2e-2, 4: 1e-3}.get(min(s if s > 1 else 8 for s in [*sizes, 8]), 1e-8)


def size_of(xs: Sequence[Array], ys: Sequence[Array]) -> float:
    return float(sum(np.sum(np.abs(x.astype(complex)) * np.abs(y)) for x, y in zip(xs, ys, strict=True)))


def check_pairing(point: Point, allowed: float) -> None:
    pushed, pulled = point.jvp(point.any_tangents), point.vjp(point.cts)
    if not all(np.isfinite(x).all() for x in (*pushed, *pulled)):
        return
    left, right = inner(point.cts, pushed), inner(pulled, point.any_tangents)
    size = 1 + size_of(pulled, point.any_tangents) + size_of(pushed, point.cts)
    assert abs(left - right) <= allowed * size


@pytest.mark.parametrize("fn", PROGRAMS)
def test_both_modes_keep_the_outputs_and_agree_to_second_order(fn: Function) -> None:
    arguments = tuple(arguments_for(fn, 1))
    point = Point(fn, arguments, 0)
    outputs = interpret(fn, arguments)
    backward, ahead = reverse(fn, point.wrt), forward(fn, point.wrt)
    for made, rest in ((backward, point.cts), (ahead, point.any_tangents)):
        verify(made)
        for want, got in zip(outputs, interpret(made, (*arguments, *rest)), strict=False):
            assert want.tobytes() == got.tobytes()
    check_pairing(point, tolerance(fn))
    second = Point(backward, (*arguments, *point.cts), 1)
    verify(reverse(backward, second.wrt))
    check_pairing(second, 10 * tolerance(fn))


def rows_of(arguments: Arrays) -> Arrays:
    return tuple(np.stack([x, x * x.dtype.type(1.01) if x.dtype.kind in "fc" else x]) for x in arguments)


@pytest.mark.parametrize("fn", [fn for fn in PROGRAMS if all(op.name != "guard" for op in walk(fn.body))])
def test_a_batch_of_values_and_gradients_equals_the_loop_over_its_rows(fn: Function) -> None:
    point = Point(fn, tuple(arguments_for(fn, 1)), 0)
    made = reverse(fn, point.wrt)
    wide = rows_of((*point.arguments, *point.cts))
    batched, _ = batch(made, [True] * len(wide), 2)
    verify(batched)
    rows = [interpret(made, [w[k] for w in wide]) for k in range(2)]
    for got, column in zip(interpret(batched, wide), zip(*rows, strict=True), strict=True):
        want: Any = np.stack(column)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind not in "fc":
            np.testing.assert_array_equal(got, want)
        elif np.isfinite(want).all():
            assert np.max(np.abs(got - want), initial=0) <= tolerance(fn) * (1 + np.max(np.abs(want), initial=0))


@pytest.mark.parametrize("fn", PROGRAMS)
def test_predicted_marks_are_upper_bounds_of_those_the_walk_finds(
    fn: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[Value, int] = {}

    class Watched(Cotangents):
        def take(self, value: Value) -> Marked | None:
            ct = super().take(value)
            if ct is not None:
                found[value] = ct.zeros
            return ct

    monkeypatch.setattr(sweep, "Cotangents", Watched)
    wrt = inexact_numbers(fn.param_types)
    reverse(fn, wrt)
    inexact = [r.type.is_inexact for r in fn.results]
    active = active_values(fn.body, [k in wrt for k in range(len(fn.params))], inexact, RULES)
    seeds = [KINK if r.type.ndim else NONE for r in fn.results]
    predicted = predict_marks(fn.body, active, seeds, Facts(fn.body.ops), RULES)
    for value, mark in found.items():
        assert predicted.get(value, mark) >= mark, f"{value!r}: predicted {predicted[value]}, found {mark}"
