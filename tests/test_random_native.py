"""Native code gives what the interpreter gives, on random programs; and so does the planned stage, interpreted."""

import pytest

from pullback import driver
from pullback.codegen.object import ArgSpec, ResultSpec, Signature, TupleOf
from pullback.config import Options
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.opdef import Array
from pullback.ir.text import print_function
from pullback.ir.verify import verify
from pullback.passes import memory
from pullback.passes.fuse import fuse
from pullback.passes.tolerance import disagreement, evaluate_with_tolerance
from tests.random_programs import GENERATED, THEMES, arguments_for, random_function

# Factorisations and transforms have tests of their own: random programs seldom give them matrices worth factoring.
LIBRARY = {"cholesky", "solve", "triangular_solve", "slogdet", "eigh", "svd", "qr", "fft"}
OPS = tuple(name for name in GENERATED if name not in LIBRARY)
LOOPS = ("scan", "while", "scan", "while", "add", "mul", "sin", "reverse", "reshape", "if", "update")
OPTIONS = Options(cache="off", verify="each", threads=2)


def run_native(function: Function, arguments: list[Array]) -> list[Array]:
    signature = Signature(
        tuple(ArgSpec(p.type) for p in function.params),
        TupleOf(tuple(ResultSpec(t) for t in function.result_types)),
    )
    compiled = driver.loaded(driver.compiled(function, signature, OPTIONS), ())
    status, results = compiled.run(arguments)
    assert status == 0
    return list(results)


def check(function: Function) -> None:
    arguments = arguments_for(function, 1)
    expected = evaluate_with_tolerance(function, arguments)
    problem = disagreement(expected, run_native(function, arguments))
    assert not problem, f"{problem}\n{print_function(function)}\n{arguments}"


@pytest.mark.parametrize("seed", range(40))
def test_native_code_agrees_with_the_interpreter(seed: int) -> None:
    check(random_function(seed, 10, OPS))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("seed", range(4))
def test_native_code_agrees_on_programs_of_one_theme(theme: str, seed: int) -> None:
    check(random_function(seed, 15, THEMES[theme]))


@pytest.mark.parametrize("seed", range(12))
def test_native_code_agrees_where_all_carried_values_may_change_places(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "SMALL", 0)
    check(random_function(6000 + seed, 16, LOOPS))


@pytest.mark.parametrize("seed", range(30))
def test_the_planned_stage_agrees_with_the_traced_one(seed: int) -> None:
    function = random_function(seed, 20)
    planned = fuse(driver.optimised(function, OPTIONS), OPTIONS)
    verify(planned)
    arguments = arguments_for(function, 1, bool(seed % 2))
    problem = disagreement(evaluate_with_tolerance(function, arguments), interpret(planned, arguments))
    assert not problem, f"{problem}\n{print_function(function)}\n{print_function(planned)}"
