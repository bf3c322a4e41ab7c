"""Loop nests of fused kernels: orders, tails, bounds, short axes, strides, in one thread and in chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pullback.codegen import streaming
from pullback.codegen.expand import axis_to_expand
from pullback.codegen.nest import merged_axes, plan_nest
from pullback.codegen.segments import level_segments
from pullback.codegen.spec import kernel_spec
from pullback.codegen.target import host_target
from pullback.codegen.tile import tiled
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.types import Shape, TensorType, tensor_type
from pullback.passes.fuse import fuse
from tests.codegen.checks import build
from tests.native import compile_plan, run_native, simple_plan

Array = np.ndarray[Any, Any]


def f64(*shape: int) -> TensorType:
    return tensor_type(np.dtype(np.float64), shape)


def check(types: Sequence[TensorType], program: Callable[..., Any]) -> None:
    """Fused and native against the unfused interpreter."""
    function = build(types, program)
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(t.shape).astype(t.dtype) for t in types]
    expected = interpret(function, args)
    for got, want in zip(run_native(fuse(function), args), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def kernels(function: Function) -> list[Any]:
    return [kernel_spec(op) for op in fuse(function).ops if op.name == "kernel"]


def cut(f: Emitter, x: Expr, start: int, stop: int) -> Expr:
    return f.slice(x, start=(start,), stop=(stop,), step=(1,))


def moved(f: Emitter, x: Expr, by: int) -> Expr:
    """`x` shifted, zeros coming in."""
    n = x.shape[0]
    return f.pad(cut(f, x, max(0, -by), min(n, n - by)), low=(max(by, 0),), high=(max(-by, 0),), interior=(0,))


@pytest.mark.parametrize("size", [2, 3, 9, 33, 100, 1000])
def test_shifted_sums_cut_the_loop_at_their_bounds(size: int, shared: bool) -> None:
    check([f64(size)], lambda f, x: moved(f, x, 1) + moved(f, x, -1) - x * 2.0)


@pytest.mark.parametrize("shape", [(4, 5), (17, 40), (64, 33)])
def test_a_stencil_in_two_dimensions(shape: Shape, shared: bool) -> None:
    def program(f: Emitter, x: Expr) -> Expr:
        n, m = shape
        inner = f.slice(x, start=(1, 1), stop=(n - 1, m - 1), step=(1, 1))
        total = inner * -4.0
        for i, j in ((0, 1), (2, 1), (1, 0), (1, 2)):
            total = total + f.slice(x, start=(i, j), stop=(n - 2 + i, m - 2 + j), step=(1, 1))
        return x + f.pad(total, low=(1, 1), high=(1, 1), interior=(0, 0))

    check([f64(*shape)], program)


def test_concatenated_pieces_in_one_kernel(shared: bool) -> None:
    check([f64(13), f64(40), f64(7)], lambda f, *xs: f.exp(f.concatenate(*xs, axis=0)) * 2.0)


@pytest.mark.parametrize("bodies", [5, 40, 101])
def test_all_pairs_of_points(bodies: int, shared: bool) -> None:
    """Axes of length 3 that are summed, broadcast and stored, along both of the long ones."""

    def program(f: Emitter, p: Expr) -> list[Expr]:
        wide = (bodies, bodies, 3)
        apart = f.broadcast_to(p, wide, (0, 2)) - f.broadcast_to(p, wide, (1, 2))
        distance = f.sqrt(f.sum(apart * apart, axes=(2,)) + 0.01)
        force = apart / f.broadcast_to(distance, wide, (0, 1))
        return [f.sum(force, axes=(0,)), f.sum(force, axes=(1,)), f.sum(distance, axes=(0, 1))]

    check([f64(bodies, 3)], program)


@pytest.mark.parametrize("width", [2, 3, 4])
def test_interleaved_numbers_are_sorted_in_registers(width: int, shared: bool) -> None:
    def program(f: Emitter, x: Expr, y: Expr) -> list[Expr]:
        wide = f.broadcast_to(y, (75, width), (0,))
        return [x * wide + wide, f.sum(x * x, axes=(1,)), f.sum(x * wide, axes=(0,))]

    check([f64(75, width), f64(75)], program)


@pytest.mark.parametrize("shape", [(9, 8), (40, 33), (100, 101)])
def test_a_transposed_operand_is_read_in_tiles(shape: Shape, shared: bool) -> None:
    n, m = shape
    check([f64(n, m), f64(m, n)], lambda f, x, y: x * 2.0 + f.transpose(y, perm=(1, 0)))
    check([f64(n, m), f64(m, n)], lambda f, x, y: f.sum(f.exp(x) * f.transpose(y, perm=(1, 0)), axes=(1,)))


@pytest.mark.parametrize("shape", [(9, 40, 33), (17, 33, 40), (130, 50, 70)])
def test_sums_along_a_transposed_operand(shape: Shape, shared: bool) -> None:
    n, m, k = shape
    wide = (n, m, k)

    def program(f: Emitter, x: Expr, y: Expr) -> Expr:
        left = f.broadcast_to(f.transpose(x, perm=(1, 0)), wide, (0, 2))
        return f.sum(left * f.broadcast_to(y, wide, (1, 2)), axes=(2,))

    check([f64(k, n), f64(m, k)], program)


@pytest.mark.parametrize("shape", [(1000, 3), (1000, 10), (1000, 64), (20, 500), (7, 5000)])
def test_sums_of_columns(shape: Shape, shared: bool) -> None:
    check([f64(*shape)], lambda f, x: [f.sum(f.exp(x), axes=(0,)), f.max(x, axes=(0,), ties="equal")])


def test_index_values_inside_of_kernels(shared: bool) -> None:
    """A triangle by comparing indices; the axes must not be merged."""

    def program(f: Emitter, x: Expr) -> Expr:
        lower = f.arange_like(x.shape, 0) - f.arange_like(x.shape, 1)
        return f.select(lower < 0, f.zeros_like(x), x) + f.astype(f.arange_like(x.shape, 1), np.dtype(np.float64))

    check([f64(21, 37)], program)


def test_a_gather_inside_of_a_kernel(shared: bool) -> None:
    index = tensor_type(np.dtype(np.int64), (60,))

    def program(f: Emitter, x: Expr, i: Expr) -> Expr:
        return f.exp(f.gather(x, f.clip(i, f.zeros_like(i), f.full_like(i, 9)), axis=0)) * 3.0

    check([f64(10, 5), index], program)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("shape", [(1000,), (40, 64), (3, 61)])
def test_large_results_are_written_past_the_cache_where_they_are_aligned(
    shape: Shape, align: int, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "FROM_BYTES", 0)

    def program(f: Emitter, x: Expr) -> list[Expr]:
        return [x * 2.0 + 1.0, x - f.broadcast_to(f.sum(x, axes=(0,)), shape, tuple(range(1, len(shape))))]

    function = build([f64(*shape)], program)
    x = np.random.default_rng(0).standard_normal(shape)
    native = compile_plan(simple_plan(fuse(function)))
    _, found = native.run(x, align=align)
    for got, want in zip(found, interpret(function, [x]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    assert "nontemporal" in native.lowered.text


# ------------------------------------------------------------------ the plans


def one_kernel(types: Sequence[TensorType], program: Callable[..., Any]) -> Any:
    (spec,) = kernels(build(types, program))
    return spec


def test_contiguous_axes_merge_and_the_last_becomes_the_vector() -> None:
    nest = plan_nest(one_kernel([f64(30, 40)] * 2, lambda f, x, y: x + y), host_target())
    assert nest.sizes == (1200,)
    assert nest.vector == 0


def test_vectors_run_along_the_contiguous_axis() -> None:
    spec = one_kernel([f64(300, 400), f64(300)], lambda f, x, y: x + f.broadcast_to(y, x.shape, (0,)))
    nest = plan_nest(spec, host_target())
    assert (nest.sizes, nest.vector) == ((300, 400), 1)


def test_a_short_axis_is_written_out() -> None:
    spec = one_kernel([f64(300, 3), f64(300)], lambda f, x, y: x + f.broadcast_to(y, x.shape, (0,)))
    sizes, _ = merged_axes(spec)
    assert axis_to_expand(spec, sizes) == 1
    assert plan_nest(spec, host_target()).sizes == (300,)


def test_a_loop_is_cut_in_three_at_most() -> None:
    spec = one_kernel([f64(100)], lambda f, x: moved(f, x, 1) + moved(f, x, 2) + moved(f, x, -3))
    assert level_segments(plan_nest(spec, host_target()), 0) == [(0, 2), (2, 97), (97, 100)]


def test_a_transposed_read_is_tiled_and_the_rest_is_its_own_kernel() -> None:
    spec = one_kernel([f64(101, 64), f64(64, 101)], lambda f, x, y: x + f.transpose(y, perm=(1, 0)))
    whole, rest = tiled(spec, host_target())
    lanes = host_target().lanes(8)
    assert whole.points * lanes + rest.points == 101 * 64


def test_gathered_rows_are_loaded_as_vectors(shared: bool) -> None:
    index = tensor_type(np.dtype(np.int64), (30,))

    def program(f: Emitter, x: Expr, i: Expr) -> Expr:
        return f.exp(f.gather(x, f.clip(i, f.zeros_like(i), f.full_like(i, 9)), axis=0)) * 3.0

    check([f64(10, 37), index], program)
    check([f64(10, 4, 37), index], program)
