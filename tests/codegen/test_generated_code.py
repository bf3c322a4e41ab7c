"""What the generated code looks like: wide vectors in hot loops, tiny programs without loops, kernels written once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pullback.codegen.lower import lower
from pullback.codegen.target import assembly, host_target, optimised_ir
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.types import TensorType, tensor_type
from pullback.passes.fuse import fuse
from tests.codegen.checks import assert_native_agrees, build
from tests.native import run_native, simple_plan

Array = np.ndarray[Any, Any]

WIDEST = {64: "zmm", 32: "ymm", 16: "xmm"}


def f64(*shape: int) -> TensorType:
    return tensor_type(np.dtype(np.float64), shape)


def f32(*shape: int) -> TensorType:
    return tensor_type(np.dtype(np.float32), shape)


def text_of(function: Function, stack_below: int = 0) -> str:
    return lower(simple_plan(fuse(function), stack_below), host_target()).text


def hot_loops(code: str) -> list[str]:
    """The blocks of assembly that end in a jump to their own beginning."""
    blocks = re.split(r"\n(?=\.LBB[0-9_]+:)", code)
    loops = []
    for block in blocks:
        name = re.match(r"(\.LBB[0-9_]+):", block)
        if name and re.search(rf"\tj\w+\t{re.escape(name[1])}\b", block):
            loops.append(block)
    return loops


HOT = {
    "elementwise": (lambda f, x: x * x + x, f64(10_000)),
    "exp": (lambda f, x: f.exp(x), f64(10_000)),
    "float32": (lambda f, x: f.exp(x) * x, f32(10_000)),
    "complex": (lambda f, x: x * x + x, tensor_type(np.dtype(np.complex128), (10_000,))),
    "sum": (lambda f, x: f.sum(x * x, axes=(0,)), f64(10_000)),
    "rows": (lambda f, x: f.max(x, axes=(1,), ties="equal"), f64(100, 400)),
    "columns": (lambda f, x: f.sum(f.exp(x), axes=(0,)), f64(100, 400)),
    "broadcast": (lambda f, x: x - f.broadcast_to(f.sum(x, axes=(1,)), (100, 400), (0,)), f64(100, 400)),
    "transpose": (lambda f, x: f.transpose(x, perm=(1, 0)), f64(128, 128)),
    "product": (lambda f, x: f.dot_general(x, x, contract=((1,), (0,)), batch=((), ())), f64(64, 64)),
    "matrix and vector": (
        lambda f, x: f.dot_general(x, f.sum(x, axes=(0,)), contract=((1,), (0,)), batch=((), ())),
        f64(400, 400),
    ),
}


@pytest.mark.skipif(not host_target().is_x86, reason="reads x86 assembly")
@pytest.mark.parametrize("name", HOT)
def test_hot_loops_use_the_widest_vectors(name: str) -> None:
    program, type_ = HOT[name]
    loops = hot_loops(assembly(text_of(build([type_], program)), host_target()))
    wide = [loop for loop in loops if f"%{WIDEST[host_target().vector_bytes]}" in loop]
    assert wide, f"{len(loops)} loops, none with wide vectors"


@pytest.mark.skipif(not host_target().is_x86, reason="reads x86 assembly")
def test_what_does_not_change_in_a_loop_stands_before_it() -> None:
    """exp of a row's number, a division of two scalars: both outside of the loop over the row."""

    def program(f: Emitter, x: Expr, row: Expr) -> Expr:
        scale = f.exp(row) / f.sum(row, axes=(0,)).f.broadcast_to(f.sum(row, axes=(0,)), row.shape, ())
        return x * f.broadcast_to(scale, x.shape, (0,))

    function = build([f64(50, 4000), f64(50)], program)
    loops = [loop for loop in hot_loops(assembly(text_of(function), host_target())) if "zmm" in loop or "ymm" in loop]
    assert any("vmul" in loop and "div" not in loop and "fmadd" not in loop for loop in loops)


def gradient_like(f: Emitter, x: Expr) -> list[Expr]:
    """What a gradient of a function of three numbers comes to."""
    y = x * x + 1.0
    total = f.sum(y * y, axes=(0,))
    return [total, y * x * 4.0 / f.broadcast_to(total, (3,), ())]


def test_a_tiny_program_is_a_few_dozen_instructions_without_loops_or_memory() -> None:
    text = text_of(build([f64(3)], gradient_like), stack_below=4096)
    code = optimised_ir(text, host_target())
    body = code[code.index("{") : code.index("\n}")].splitlines()
    assert len(body) < 60
    for word in ("alloca", " br ", "phi", "call"):
        assert not [line for line in body if word in line], word


def test_a_tiny_program_is_right() -> None:
    assert_native_agrees(build([f64(3)], gradient_like), [np.array([1.0, -2.0, 0.5])], 4, stack_below=4096)


def test_equal_kernels_are_written_once() -> None:
    def program(f: Emitter, *xs: Expr) -> list[Expr]:
        return [f.exp(x) for x in xs]

    many, one = build([f64(1000)] * 20, program), build([f64(1000)], program)
    texts = [lower(simple_plan(function), host_target()).text for function in (many, one)]
    assert texts[0].count("define internal void") == texts[1].count("define internal void") == 1


def test_long_programs_are_cut_and_still_right() -> None:
    def program(f: Emitter, x: Expr) -> Expr:
        for k in range(160):
            x = f.sin(x) + float(k) if k % 2 else f.reverse(x, axes=(0,))
        return x

    function = build([f64(40)], program)
    assert ".part" in lower(simple_plan(function), host_target()).text
    assert_native_agrees(function, [np.random.default_rng(0).standard_normal(40)], 64)


def test_results_may_be_arguments_constants_or_one_another() -> None:
    def program(f: Emitter, x: Expr) -> list[Expr]:
        c = f.constant(np.arange(5.0))
        return [x, c, x + c, x]

    x = np.linspace(0, 1, 5)
    found = run_native(build([f64(5)], program), [x])
    for got, want in zip(found, [x, np.arange(5.0), x + np.arange(5.0), x], strict=True):
        np.testing.assert_array_equal(got, want)


def test_the_same_text_comes_from_the_same_function() -> None:
    def program(f: Emitter, x: Expr) -> list[Expr]:
        return [f.sum(f.exp(x), axes=(0,)), f.cumsum(x, axis=1, reverse=False)]

    assert text_of(build([f64(30, 40)], program)) == text_of(build([f64(30, 40)], program))


@pytest.mark.skipif("+fma" not in host_target().features.split(","), reason="reads x86 assembly with fused operations")
@pytest.mark.parametrize("contracts", [False, True])
def test_products_are_fused_into_sums_where_that_is_asked_for(contracts: bool) -> None:
    function = build([f64(1000), f64(1000)], lambda f, x, y: x * y + x)
    code = assembly(lower(simple_plan(fuse(function)), host_target(), contracts=contracts).text, host_target())
    assert ("fmadd" in code) == contracts
