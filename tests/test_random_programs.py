"""The random programs themselves: complete, well-typed, printable, evaluable; and every pass keeps their results."""

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pullback.config import Options
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.ops import ALL_OPS
from pullback.ir.parse import parse_function
from pullback.ir.text import print_function
from pullback.ir.verify import verify
from pullback.passes.base import Context, Pass
from pullback.passes.pipeline import optimise, passes_by_name
from pullback.passes.reverse import reverse
from pullback.passes.tolerance import disagreement, evaluate_with_tolerance
from tests.random_programs import (
    GENERATED,
    NOT_GENERATED,
    THEMES,
    arguments_for,
    functions,
    random_function,
)

PASSES = passes_by_name()
RELAXED = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
SEEDS = range(60)


def check_results(before: Function, after: Function, special: bool) -> None:
    arguments = arguments_for(before, 1, special)
    problem = disagreement(evaluate_with_tolerance(before, arguments), interpret(after, arguments))
    assert not problem, f"{problem}\n{print_function(before)}\n{print_function(after)}"


def test_every_op_is_generated_or_has_a_reason_not_to_be() -> None:
    assert set(GENERATED) | set(NOT_GENERATED) >= {op.name for op in ALL_OPS}
    assert not set(GENERATED) & set(NOT_GENERATED)


@pytest.mark.parametrize("seed", range(40))
def test_a_random_function_is_well_typed_and_its_text_is_read_back(seed: int) -> None:
    function = random_function(seed)
    verify(function)
    text = print_function(function)
    assert print_function(parse_function(text)) == text


def test_all_ops_appear_in_a_few_hundred_programs() -> None:
    found: set[str] = set()
    for seed in range(300):
        found |= {op.name for op in random_function(seed).ops}
    assert set(GENERATED) <= found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_pipeline_keeps_the_results_of_random_programs(seed: int) -> None:
    before = random_function(seed, 30)
    after, _ = optimise(before, Context.of(Options(verify="each")))
    check_results(before, after, special=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_pipeline_keeps_special_values(seed: int) -> None:
    before = random_function(seed, 8, depth=1)
    after, _ = optimise(before, Context.of(Options(verify="each")))
    check_results(before, after, special=True)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("seed", range(25))
def test_the_pipeline_keeps_the_results_of_programs_of_one_theme(theme: str, seed: int) -> None:
    before = random_function(seed, 20, THEMES[theme])
    after, _ = optimise(before, Context.of(Options(verify="each")))
    check_results(before, after, special=bool(seed % 2))


@pytest.mark.parametrize("theme", ["control", "in place", "views", "signs"])
@pytest.mark.parametrize("seed", range(15))
def test_the_pipeline_keeps_the_gradients_of_random_programs(theme: str, seed: int) -> None:
    function = random_function(seed, 12, THEMES[theme])
    wrt = [k for k, p in enumerate(function.params) if p.type.is_inexact]
    if wrt and any(r.type.is_inexact for r in function.results):
        before = reverse(function, wrt)
        after, _ = optimise(before, Context.of(Options(verify="each")))
        check_results(before, after, special=False)


@cache
def evaluated(seed: int) -> tuple[Function, list[Any], Any]:
    """A program, arguments, and its results with their tolerances: the same for every pass."""
    function = random_function(seed, 25)
    arguments = arguments_for(function, 1)
    return function, arguments, evaluate_with_tolerance(function, arguments)


@pytest.mark.parametrize("step", PASSES.values(), ids=lambda step: step.name)
def test_a_pass_keeps_the_results_and_comes_to_rest(step: Pass) -> None:
    for seed in range(1000, 1020):
        before, arguments, wanted = evaluated(seed)
        after = step.run(before, Context())
        verify(after)
        problem = disagreement(wanted, interpret(after, arguments))
        assert not problem, f"{problem}\n{print_function(before)}\n{print_function(after)}"
        for _ in range(3):  # a loop that reads less may let an earlier one carry less
            before, after = after, step.run(after, Context())
        assert before is after, print_function(after)


@RELAXED
@given(functions(most=12))
def test_passes_keep_the_results_of_drawn_programs(before: Function) -> None:
    after, _ = optimise(before, Context.of(Options(verify="each")))
    check_results(before, after, special=False)


@RELAXED
@given(functions(most=15), st.integers(0, 200))
def test_any_number_of_rewrites_gives_a_right_program(before: Function, limit: int) -> None:
    after, _ = optimise(before, Context.of(Options(verify="each", limit=limit)))
    check_results(before, after, special=False)
