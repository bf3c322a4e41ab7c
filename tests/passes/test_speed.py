"""Passes stay near-linear, and never recurse over the length of a program. Work is counted, not timed."""

import sys
from collections.abc import Callable
from functools import cache

import pytest

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.ops import OPS
from pullback.ir.types import parse_type
from pullback.passes.base import Context, Pass
from pullback.passes.pipeline import optimise, passes_by_name


def chain(step: Callable[[Emitter, Expr, int], Expr], length: int, type: str = "f64[8]") -> Function:
    b = Builder()
    f = Emitter(b, OPS)
    x = f.wrap(b.param(parse_type(type), "x"))
    for k in range(length):
        x = step(f, x, k)
    return b.function("chain", [x.value])


def element(f: Emitter, x: Expr, k: int) -> Expr:
    return f.slice(x, start=(k % 8,), stop=(k % 8 + 1,), step=(1,))


CHAINS: dict[str, Callable[[Emitter, Expr, int], Expr]] = {
    "arithmetic": lambda f, x, k: 2.0 * f.sin(x) - f.neg(x),
    "repeats": lambda f, x, k: f.exp(x) * f.exp(x),
    "transposes": lambda f, x, k: f.neg(f.reverse(x, axes=(0,))),
    "slices": lambda f, x, k: f.broadcast(f.reshape(element(f, x, k), shape=()), dims=(), shape=(8,)) + x,
    "updates": lambda f, x, k: f.update(x, f.sin(element(f, x, k + 1)), start=(k % 8,), stop=(k % 8 + 1,), step=(1,)),
    "negations": lambda f, x, k: f.neg(x) * (x + 1.0),
}


def calls_made(action: Callable[[], object]) -> int:
    """How many Python functions are entered."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", CHAINS)
def test_twice_the_ops_cost_twice_the_work(name: str) -> None:
    short, long = chain(CHAINS[name], 300), chain(CHAINS[name], 600)
    once, twice = (calls_made(lambda f=f: optimise(f, Context())) for f in (short, long))
    assert twice < 2.3 * once, (once, twice)


@cache
def long_chain() -> Function:
    function = chain(CHAINS["arithmetic"], 1000)
    assert len(function.ops) > 3 * sys.getrecursionlimit()
    return function


@pytest.mark.parametrize("step", passes_by_name().values(), ids=lambda step: step.name)
def test_a_chain_far_longer_than_the_stack_goes_through(step: Pass) -> None:
    assert step.run(long_chain(), Context()).ops


def test_a_growing_concatenation_is_not_quadratic() -> None:
    def grow(length: int) -> Function:
        b = Builder()
        f = Emitter(b, OPS)
        x = f.wrap(b.param(parse_type("f64[1]"), "x"))
        y = x
        for _ in range(length):
            y = f.concatenate(y, f.sin(x), axis=0)
        return b.function("grow", [y.value])

    once, twice = (calls_made(lambda n=n: optimise(grow(n), Context())) for n in (400, 800))
    assert twice < 2.5 * once


def test_a_pass_with_nothing_to_do_gives_back_the_same_object() -> None:
    function = chain(lambda f, x, k: f.sin(x), 10)
    for step in passes_by_name().values():
        assert step.run(function, Context()) is function
