"""Work counts what loops repeat and products contract."""

import numpy as np

import pullback as pb
from pullback.ir.parse import parse_function
from pullback.ir.work import UNKNOWN_TURNS, work_of


def test_elementwise_work_is_the_number_of_elements() -> None:
    assert (
        work_of(parse_function("func @f(%x: f64[4,3]) -> (f64[4,3]) {\n  %0 = sin %x : f64[4,3]\n  return %0\n}")) == 12
    )


def test_a_product_counts_what_it_contracts() -> None:
    text = (
        "func @f(%x: f64[4,5], %y: f64[5,6]) -> (f64[4,6]) {\n"
        "  %0 = dot_general %x, %y {batch = [[], []], contract = [[1], [0]]} : f64[4,6]\n  return %0\n}"
    )
    assert work_of(parse_function(text)) == 120


def test_a_loop_counts_its_turns() -> None:
    fixed = pb.lower(pb.jit(lambda x: pb.fori_loop(0, 50, lambda i, v: np.sin(v), x)), np.ones(7))
    assert 350 <= work_of(fixed.function) < 700
    unknown = pb.lower(pb.jit(lambda x: pb.while_loop(lambda v: v[0] < 1, lambda v: v * 2, x)), np.ones(7))
    assert work_of(unknown.function) >= 7 * UNKNOWN_TURNS
