"""Loops of Python, traced turn by turn and rolled again, give what the turns give, and its derivatives."""

import warnings
from functools import reduce
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.api.compiling import lower
from pullback.api.programs import with_results
from pullback.config import Options
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function, walk
from pullback.ir.interpret import interpret
from pullback.ir.verify import verify
from pullback.passes.base import count_ops
from pullback.passes.reverse import reverse
from pullback.passes.roll import MANY, advice, roll
from tests.passes import random_rolls
from tests.passes.roll_programs import PROGRAMS, STAY


def unrolled(name: str) -> tuple[Function, list[Any]]:
    fn, arguments = {**PROGRAMS, **STAY}[name]()
    with pullback.options(roll=False):
        return lower(pullback.jit(fn), *arguments).function, [np.asarray(a) for a in arguments]


def gradient(function: Function) -> Function:
    numbers = [k for k, t in enumerate(function.param_types) if t.is_inexact]
    made = reverse(function, numbers, seed=True, with_outputs=False)
    verify(made)
    return made


def slope(function: Function) -> Function:
    """The gradient in one direction: a function of one number, whose gradient is a Hessian-vector product."""
    rng = np.random.default_rng(5)
    weights = [rng.normal(size=t.shape) for t in gradient(function).result_types]

    def along(f: Emitter, parts: list[Expr]) -> list[Expr]:
        products = [f.constant(w) * part for w, part in zip(weights, parts, strict=True)]
        sums = [f.sum(p, axes=tuple(range(p.ndim))) if p.ndim else p for p in products]
        return [reduce(lambda x, y: x + y, sums)]

    return with_results(gradient(function), "slope", along)


def assert_close(found: Any, expected: Any, rtol: float) -> None:
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * max(1.0, float(np.max(np.abs(y), initial=0))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rolled_loop_gives_what_its_turns_give(name: str) -> None:
    turns, arguments = unrolled(name)
    rolled = roll(turns, Options())
    verify(rolled)
    assert count_ops(rolled) < count_ops(turns) / 3
    assert_close(interpret(rolled, arguments), interpret(turns, arguments), 1e-13)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rolled_loop_has_the_gradient_of_its_turns(name: str) -> None:
    turns, arguments = unrolled(name)
    found = interpret(gradient(roll(turns, Options())), arguments)
    assert_close(found, interpret(gradient(turns), arguments), 1e-11)


@pytest.mark.parametrize("name", ["recurrence", "relaxation", "stacked outputs", "two values back"])
def test_a_rolled_loop_has_the_second_derivatives_of_its_turns(name: str) -> None:
    turns, arguments = unrolled(name)
    found, expected = (gradient(slope(fn)) for fn in (roll(turns, Options()), turns))
    assert_close(interpret(found, arguments), interpret(expected, arguments), 1e-10)


@pytest.mark.parametrize("name", ["recurrence", "sweeps", "elimination", "cells", "rows of history", "one by one"])
def test_compiled_it_agrees_too(name: str) -> None:
    fn, arguments = PROGRAMS[name]()
    wanted = tuple(range(len(arguments)))
    with pullback.options(cache="off"):
        value, parts = pullback.value_and_grad(fn, argnums=wanted)(*arguments)
    turns, arrays = unrolled(name)
    assert_close([value], interpret(turns, arrays), 1e-11)
    assert_close(parts, interpret(gradient(turns), arrays), 1e-10)


@pytest.mark.parametrize("seed", range(24))
def test_random_loops_are_rolled_without_a_change(seed: int) -> None:
    given = [np.asarray(a) for a in random_rolls.arguments(seed)]
    fn = random_rolls.loss(random_rolls.program(seed))
    with pullback.options(roll=False):
        turns = lower(pullback.jit(fn), *random_rolls.arguments(seed)).function
    rolled = roll(turns, Options())
    verify(rolled)
    (found,), (expected,) = interpret(rolled, given), interpret(turns, given)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(found, fn(*[np.array(a) for a in given]), rtol=1e-12)


def scans(function: Function) -> list[Any]:
    return [op for op in walk(function.body) if op.name == "scan"]


def rolled(name: str) -> Function:
    return roll(unrolled(name)[0], Options())


def test_an_array_written_in_order_is_not_carried() -> None:
    (scan,) = scans(rolled("recurrence"))
    assert [v.type.shape for v in scan.regions[0].params[: scan.attrs["carries"]]] == [()]


@pytest.mark.parametrize("name", ["rows in pieces", "rows written twice", "rows of history", "columns in pieces"])
def test_a_history_is_carried_by_its_rows_and_written_behind_the_loop(name: str) -> None:
    (scan,) = scans(rolled(name))
    (body,) = scan.regions
    whole = max(r.type.size for op in rolled(name).ops for r in op.results)
    assert sum(p.type.size for p in body.params[: scan.attrs["carries"]]) < whole / 8
    assert not {"gather", "scatter"} & {op.name for op in body.ops}


def test_the_parameters_of_layers_are_stacked() -> None:
    (scan,) = scans(rolled("layers"))
    assert scan.attrs["length"] >= 59  # the first reads a constant
    assert {p.type.shape for p in scan.regions[0].params} == {(3,), (3, 3)}


def test_turns_that_do_not_need_one_another_are_one_batch() -> None:
    assert not scans(rolled("one by one"))


def test_loops_in_loops_are_scans_in_scans() -> None:
    outer, inner = scans(rolled("sweeps"))
    assert inner in outer.regions[0].ops


def test_the_source_line_says_how_many_turns_were_rolled() -> None:
    (scan,) = scans(rolled("step by step"))
    assert scan.loc.note == "rolled: 150 turns"


@pytest.mark.parametrize(("name", "why"), [
    ("shapes that grow", "in one turn and"),
    ("decisions", "Python decides"),
    ("triangles", "no stretch of lines repeats"),
])  # fmt: skip
def test_a_loop_that_stays_says_why(name: str, why: str) -> None:
    turns, _ = unrolled(name)
    stays = roll(turns, Options())
    notes = [op.loc.note for op in stays.ops if op.loc is not None and op.loc.note]
    assert notes
    assert notes[0].startswith("not rolled: ")
    assert why in notes[0]
    assert not scans(stays)


def test_a_short_program_is_left_alone() -> None:
    with pullback.options(roll=False):
        function = lower(pullback.jit(_few_turns), np.ones(3)).function
    assert len(function.ops) < MANY
    assert roll(function, Options()) is function


def _few_turns(x: Any) -> Any:
    for _ in range(50):
        x = np.sin(x) + 1.0
    return x.sum()


def test_it_can_be_switched_off() -> None:
    turns, _ = unrolled("step by step")
    assert roll(turns, Options(roll=False)) is turns


def test_a_very_long_program_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "MANY", 100)
    function, _ = unrolled("shapes that grow")
    with pytest.warns(RuntimeWarning, match=r"roll_programs.py:\d+.*pullback.fori_loop"):
        roll(function, Options())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        roll(function, Options())
