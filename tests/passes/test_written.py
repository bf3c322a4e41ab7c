"""Chains of updates: reads find who wrote them, and stay right."""

import numpy as np
import pytest

from pullback.config import Options
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.passes.base import Context
from pullback.passes.dce import EliminateDead
from pullback.passes.rules.lines import Line
from pullback.passes.rules.written import Chains
from pullback.passes.simplify import Simplify
from tests.passes.making import make

SIZE = 6


def _bounds(rng: np.random.Generator) -> dict[str, tuple[int, ...]]:
    """Often a single index, else a stretch with or without steps."""
    start, stop, step = [], [], []
    for _ in range(2):
        first = int(rng.integers(SIZE))
        last = first if rng.random() < 0.6 else int(rng.integers(first, SIZE))
        start.append(first)
        stop.append(last + 1)
        step.append(int(rng.integers(1, 3)))
    return {"start": tuple(start), "stop": tuple(stop), "step": tuple(step)}


def _random_chain(seed: int, writes: int) -> Function:
    """Writes of what was read before, in a chain that is sometimes left at an earlier place."""
    rng = np.random.default_rng(seed)

    def build(f: Emitter, x: Expr) -> list[Expr]:
        tips, read = [x], []
        for _ in range(writes):
            tip = tips[-1] if rng.random() < 0.9 else tips[int(rng.integers(len(tips)))]
            bounds = _bounds(rng)
            read.append(f.slice(tip, **bounds))
            tips.append(f.update(tip, read[-1] * 2.0 + float(len(tips)), **bounds))
            read.append(f.slice(tips[int(rng.integers(len(tips)))], **_bounds(rng)))
        return read

    return make(f"f64[{SIZE},{SIZE}]", build)


def _simplified(function: Function) -> Function:
    context = Context.of(Options())
    return EliminateDead().run(Simplify().run(function, context), context)


@pytest.mark.parametrize("seed", range(12))
def test_reads_through_random_chains_of_writes_are_numpys(seed: int) -> None:
    function = _random_chain(seed, 40)
    x = np.random.default_rng(seed).standard_normal((SIZE, SIZE))
    for got, want in zip(interpret(_simplified(function), [x]), interpret(function, [x]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_an_element_is_found_behind_a_thousand_others_written_later() -> None:
    def build(f: Emitter, x: Expr, v: Expr) -> Expr:
        for k in range(1500):
            x = f.update(x, v * float(k), start=(k,), stop=(k + 1,), step=(1,))
        return f.slice(x, start=(3,), stop=(4,), step=(1,))

    assert [op.name for op in _simplified(make("f64[1500] f64[1]", build)).ops if op.name in ("update", "slice")] == []


def test_reading_one_element_looks_at_the_writes_of_that_element_only() -> None:
    def build(f: Emitter, x: Expr, v: Expr) -> Expr:
        for k in range(200):
            x = f.update(x, v, start=(k % 20, k % 10), stop=(k % 20 + 1, k % 10 + 1), step=(1, 1))
        return x

    function = make("f64[20,10] f64[1,1]", build)
    place = Chains().place(function.results[0])
    assert place is not None
    chain, count = place
    element, row = (Line(7, 1, 1), Line(7, 1, 1)), (Line(7, 1, 1), Line(0, 10, 1))
    assert list(chain.met(element, count)) == list(chain.met(row, count)) == list(range(187, 0, -20))
    assert list(chain.met(element, 100)) == [87, 67, 47, 27, 7]


def test_two_ways_on_from_one_value_do_not_see_each_other() -> None:
    def build(f: Emitter, x: Expr, v: Expr, w: Expr) -> list[Expr]:
        at = {"start": (1,), "stop": (2,), "step": (1,)}
        first = f.update(x, v, start=(0,), stop=(1,), step=(1,))
        left, right = f.update(first, v, **at), f.update(first, w, **at)
        return [f.slice(left, **at), f.slice(right, **at), f.slice(first, **at)]

    function = _simplified(make("f64[4] f64[1] f64[1]", build))
    x, v, w = np.arange(4.0), np.array([10.0]), np.array([20.0])
    assert [float(r[0]) for r in interpret(function, [x, v, w])] == [10.0, 20.0, 1.0]
