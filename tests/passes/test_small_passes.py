"""What the golden files do not show: bounds, effects, and what passes must leave alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback.config import Options
from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Function
from pullback.ir.ops import OPS
from pullback.ir.parse import parse_function
from pullback.ir.types import parse_type
from pullback.ir.verify import verify
from pullback.passes.base import Context, Pass
from pullback.passes.branches import PruneBranches
from pullback.passes.carries import PruneLoops
from pullback.passes.cse import EliminateCommon
from pullback.passes.dce import EliminateDead
from pullback.passes.fold import LARGEST, Fold
from pullback.passes.licm import HoistInvariants
from pullback.passes.loop_rows import BatchProducts
from pullback.passes.numbers import check_numbers
from pullback.passes.simplify import Simplify


def make(build: Callable[..., Any], *types: str) -> Function:
    b = Builder()
    f = Emitter(b, OPS)
    made = build(f, *[f.wrap(b.param(parse_type(t), f"x{k}")) for k, t in enumerate(types)])
    return b.function("f", [v.value for v in ([made] if isinstance(made, Expr) else made)])


def names(function: Function) -> list[str]:
    return [op.name for op in function.ops]


def after(step: Pass, function: Function, options: Options | None = None) -> Function:
    return step.run(function, Context.of(options or Options()))


def test_folding_spells_out_no_broadcast() -> None:
    function = make(lambda f: f.exp(f.full(parse_type("f64[1000,1000]"), 2.0)))
    folded = after(Fold(), function)
    assert names(folded)[-2:] == ["constant", "broadcast"]
    assert max(op.attrs["value"].array.size for op in folded.ops if op.name == "constant") == 1


def test_folding_makes_no_large_constant_out_of_small_ones() -> None:
    n = LARGEST // 8 // 2 + 1
    line = np.arange(float(n))
    outer = {"contract": ((), ()), "batch": ((), ())}
    function = make(lambda f: f.dot_general(f.constant(line), f.constant([1.0, 2.0]), **outer))
    assert after(Fold(), function) is function


def test_a_constant_that_fails_to_factor_is_left_to_the_call() -> None:
    function = make(lambda f: f.cholesky(f.constant([[1.0, 0.0], [0.0, -1.0]])))
    assert after(Fold(), function) is function


def test_effects_on_constants_are_not_folded() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        f.b.add(OPS["guard"], [f.constant(True).value], Attrs(index=0, expected=1))
        return x

    function = make(build, "f64[]")
    assert after(Fold(), function) is function
    assert names(after(PruneBranches(), function)) == ["constant"]


def test_two_guards_on_one_value_both_stay() -> None:
    def build(f: Emitter, p: Expr) -> Expr:
        for number in range(2):
            f.b.add(OPS["guard"], [p.value], Attrs(index=number, expected=1))
        return p

    function = make(build, "bool[]")
    assert after(EliminateCommon(), function) is function
    assert after(EliminateDead(), function) is function


def test_constants_are_merged_by_content_but_zero_is_not_minus_zero() -> None:
    function = make(lambda f: [f.constant(0.0), f.constant(-0.0), f.constant(0.0), f.constant(np.float32(0.0))])
    merged = after(EliminateCommon(), function)
    assert len(merged.ops) == 3
    assert merged.results[0] is merged.results[2]


def test_an_op_with_an_effect_inside_is_not_dead() -> None:
    text = """// stage: traced
func @f(%p: bool[], %q: bool[]) -> (bool[]) {
  %0 = if %p, %q : bool[] [
    then (%t: bool[]) {
      check %t {message = "must hold", code = 1}
      yield %t
    }
    else (%t_1: bool[]) {
      yield %t_1
    }
  ]
  return %p
}
"""
    function = parse_function(text)
    assert after(EliminateDead(), function) is function


def loop(op: str) -> Function:
    return parse_function(f"""// stage: traced
func @f(%x: f64[2,2], %c: f64[2,2]) -> (f64[2,2]) {{
  %0 = scan %x, %c {{carries = 1, scanned = 0, length = 3, reverse = false}} : f64[2,2] [
    body (%s: f64[2,2], %k: f64[2,2]) {{
      %1 = {op} %k : f64[2,2]
      %2 = add %s, %1 : f64[2,2]
      yield %2
    }}
  ]
  return %0
}}
""")


@pytest.mark.parametrize(("op", "moves"), [("exp", True), ("cholesky", False)])
def test_only_what_cannot_fail_leaves_a_loop(op: str, moves: bool) -> None:
    function = loop(op)
    assert (after(HoistInvariants(), function) is not function) == moves


def test_a_loop_that_needs_all_it_has_is_left() -> None:
    function = loop("exp")
    assert after(PruneLoops(), function) is function


def test_rules_are_used_inside_regions_too() -> None:
    function = parse_function("""// stage: traced
func @f(%p: bool[], %x: f64[]) -> (f64[]) {
  %0 = if %p, %x : f64[] [
    then (%t: f64[]) {
      %1 = neg %t : f64[]
      %2 = neg %1 : f64[]
      yield %2
    }
    else (%t_1: f64[]) {
      yield %t_1
    }
  ]
  return %0
}
""")
    simple = after(Simplify(), function)
    (branch,) = simple.ops
    assert branch.regions[0].results == branch.regions[0].params


def test_sixty_doublings_stay_sixty_ops() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        for _ in range(60):
            x = x + x
        return x

    function = make(build, "f64[]")
    for step in (EliminateCommon(), Simplify()):
        assert after(step, function) is function


def test_a_pass_that_may_make_no_rewrite_changes_nothing() -> None:
    function = make(lambda f, x: f.neg(f.neg(x)) + f.neg(f.neg(x)), "f64[3]")
    for step in (Fold(), EliminateCommon(), EliminateDead(), Simplify()):
        assert after(step, function, Options(limit=0)) is function


# ------------------------------------------------------------------ products of scanned rows


def scanned_product(build: Callable[[Emitter, Expr, Expr], Expr], row: str, matrix: str, length: int = 6) -> Function:
    """A scan over rows of `row` that stacks what `build` makes of a row and a matrix."""

    def whole(f: Emitter, x: Expr, w: Expr) -> Expr:
        inner = Emitter(Builder(), OPS)
        params = [inner.wrap(inner.b.param(parse_type(t))) for t in (row, matrix)]
        body = inner.b.region([build(inner, *params).value])
        attrs = Attrs(carries=0, scanned=1, length=length, reverse=False)
        return f.wrap(f.b.add(OPS["scan"], [x.value, w.value], attrs, (body,)).results[0])

    return make(whole, str(parse_type(row).with_shape((length, *parse_type(row).shape))), matrix)


def dot(x: Expr, y: Expr, xc: int, yc: int) -> Expr:
    return x.f.dot_general(x, y, contract=((xc,), (yc,)), batch=((), ()))


@pytest.mark.parametrize(
    ("build", "row", "matrix"),
    [
        (lambda f, x, w: dot(x, w, 1, 0), "f64[16,8]", "f64[8,8]"),
        (lambda f, x, w: dot(w, x, 1, 0), "f64[16]", "f64[16,16]"),
        (lambda f, x, w: dot(w, x, 0, 1), "f64[40,8]", "f64[8]"),
        (lambda f, x, w: dot(f.reshape(x, shape=(16, 16)), w, 1, 1), "f64[256]", "f64[8,16]"),
        (lambda f, x, w: dot(x, f.constant(np.ones((8, 8))), 1, 0), "f64[16,8]", "f64[1]"),
    ],
)
def test_products_of_scanned_rows_are_one_product_before_the_loop(
    build: Callable[..., Expr], row: str, matrix: str
) -> None:
    function = scanned_product(build, row, matrix)
    batched = after(BatchProducts(), function)
    verify(batched)
    check_numbers(function, batched)
    assert names(batched).count("dot_general") == 1


@pytest.mark.parametrize(
    ("build", "row", "matrix"),
    [
        (lambda f, x, w: dot(w, x, 1, 0), "f64[16,16]", "f64[16,16]"),  # rows would come out in another order
        (lambda f, x, w: dot(x, w, 0, 0), "f64[3]", "f64[3,3]"),  # too small
        (lambda f, x, w: dot(x, w, 0, 0), "f64[4]", "f64[4,100]"),  # its rows take too much memory
        (lambda f, x, w: dot(f.sin(x), w, 1, 0), "f64[16,16]", "f64[16,16]"),
        (lambda f, x, w: dot(x, x, 1, 0), "f64[16,16]", "f64[1]"),
    ],
)
def test_other_products_stay_in_the_loop(build: Callable[..., Expr], row: str, matrix: str) -> None:
    if row == "f64[4]":
        function = scanned_product(lambda f, x, w: f.sum(build(f, x, w), axes=(0,)), row, matrix)
    else:
        function = scanned_product(build, row, matrix)
    assert after(BatchProducts(), function) is function
