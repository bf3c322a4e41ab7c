"""Fusion: kernels compute what the ops did, whatever fusion believes things cost."""

from collections.abc import Sequence

import numpy as np
import pytest

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Function, Op, walk
from pullback.ir.interpret import interpret
from pullback.ir.types import F64, I64, tensor_type
from pullback.ir.verify import verify
from pullback.passes import fuse as fusion
from pullback.passes.fuse import bodies, components, fuse, kernels, rows, sweep, table
from pullback.passes.tolerance import disagreement, evaluate_with_tolerance
from tests.passes.making import cond, make, total
from tests.passes.workloads import sine_chain
from tests.random_programs import GENERATED, arguments_for, random_function

MOVING = (
    "add", "mul", "sin", "reshape", "broadcast", "transpose", "slice", "pad", "concatenate", "sum", "max", "reverse",
    "iota", "gather", "select", "cast",
)  # fmt: skip


def kernel_ops(fn: Function) -> list[Op]:
    return [op for op in fn.ops if op.name == "kernel"]


def the_kernel(fn: Function) -> Op:
    (op,) = fn.ops
    assert op.name == "kernel"
    return op


def planned(fn: Function, seed: int = 0) -> Function:
    """The fused function, once it is seen to give what the function gives."""
    found = fuse(fn)
    verify(found)
    args = arguments_for(fn, seed)
    wrong = disagreement(evaluate_with_tolerance(fn, args), interpret(found, args))
    assert not wrong, wrong
    return found


def check_random(ops: Sequence[str], seeds: range, size: int = 25) -> None:
    for seed in seeds:
        planned(random_function(seed, size, ops), seed)


def always_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "WORTH_BYTES", 0)
    monkeypatch.setattr(rows, "BLOCK_POINTS", 1)


# ------------------------------------------------------------------ random programs


def test_random_programs_over_all_ops_keep_their_results() -> None:
    check_random(GENERATED, range(60))


def test_random_programs_of_views_and_reductions_keep_their_results() -> None:
    check_random(MOVING, range(1000, 1080), 30)


def test_results_are_kept_when_memory_seems_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then everything is stored, in many kernels."""
    for module in (sweep, table):
        monkeypatch.setattr(module, "trip_cost", lambda dtype, size: 0.001)
        monkeypatch.setattr(module, "load_cost", lambda dtype, size: 0.0003)
    monkeypatch.setattr(sweep, "KERNEL", 0.0)
    monkeypatch.setattr(bodies, "SMALL", 0)
    check_random(MOVING, range(2000, 2030))


def test_results_are_kept_when_bodies_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kernels, table):
        monkeypatch.setattr(module, "BODY_LIMIT", 30)
    check_random(MOVING, range(3000, 3030))


def test_results_are_kept_when_no_value_may_be_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "MANY", 1)
    check_random(MOVING, range(4000, 4030))


def test_results_are_kept_when_fusion_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "ROUNDS", 0)
    check_random(GENERATED, range(5000, 5030))


def test_results_are_kept_when_all_that_can_goes_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    always_rows(monkeypatch)
    check_random(MOVING, range(6000, 6050))
    check_random(GENERATED, range(7000, 7025))


def test_special_values_come_out_as_the_ops_give_them() -> None:
    for seed in range(60):
        fn = random_function(seed, 15, tuple(set(MOVING) - {"sum"}))
        args = arguments_for(fn, seed, special=True)
        wrong = disagreement(evaluate_with_tolerance(fn, args), interpret(fuse(fn), args))
        assert not wrong, wrong


# ------------------------------------------------------------------ views are index arithmetic


VIEWS = {
    "broadcast": lambda f, x: f.broadcast_to(x, (3, 4, 2, 6), (1, 3)),
    "transpose": lambda f, x: f.permute(x, (1, 0)),
    "slice": lambda f, x: f.slice(x, start=(1, 0), stop=(4, 5), step=(2, 3)),
    "reverse": lambda f, x: f.reverse(x, axes=(1,)),
    "reshape": lambda f, x: f.reshape_to(x, (2, 2, 6)),
    "reshape that mixes axes": lambda f, x: f.reshape_to(x, (3, 8)),
    "transpose and reshape": lambda f, x: f.reshape_to(f.permute(x, (1, 0)), (24,)),
    "split and transpose": lambda f, x: f.permute(f.reshape_to(x, (4, 2, 3)), (2, 0, 1)),
    "repeat": lambda f, x: f.reshape_to(f.broadcast_to(x, (4, 6, 5), (0, 1)), (4, 30)),
    "pad": lambda f, x: f.pad(x, low=(1, 0), high=(2, 3), interior=(0, 0)),
    "concatenate": lambda f, x: f.concatenate(x, f.reverse(x, axes=(0,)), axis=0),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_between_elementwise_ops_costs_no_memory(name: str) -> None:
    fn = make("f64[4,6]", lambda f, x: f.sin(VIEWS[name](f, x * 2.0)))
    assert len(planned(fn).ops) == 1


def test_a_reshape_that_no_index_expresses_is_stored_before_it() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        y = f.reshape_to(f.permute(x * 2.0, (1, 0)), (4, 6))
        return f.reshape_to(f.permute(f.sin(y), (1, 0)), (8, 3)) + 1.0

    assert [op.name for op in planned(make("f64[3,8]", build)).ops] == ["kernel", "kernel"]


def test_axes_of_length_1_vanish_and_contiguous_axes_merge() -> None:
    def build(f: Emitter, x: Expr, y: Expr) -> Expr:
        return f.sin(x) + y

    op = the_kernel(planned(make("f64[10,1,20,5] f64[10,1,20,5]", build)))
    assert op.attrs["space"] == (1000,)


def test_a_padding_of_the_first_axis_still_merges() -> None:
    fn = make("f64[10,20]", lambda f, x: f.sin(f.pad(x, low=(2, 0), high=(1, 0), interior=(0, 0))))
    op = the_kernel(planned(fn))
    assert op.attrs["space"] == (260,)
    assert str(op.attrs["loads"][0]) == "%0 @ i0-40 if 40<=i0<240"


def test_a_load_inside_the_bounds_is_not_guarded() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        inner = f.slice(x, start=(2,), stop=(8,), step=(1,))
        return f.pad(f.sin(inner), low=(2,), high=(2,), interior=(0,)) + x

    assert [load.bounds for load in the_kernel(planned(make("f64[10]", build))).attrs["loads"]] == [()]


def test_a_negative_zero_survives_concatenation() -> None:
    fn = make("f64[2] f64[2]", lambda f, x, y: f.concatenate(x, y, axis=0) * 1.0)
    (found,) = interpret(fuse(fn), [np.array([-0.0, 0.0]), np.array([0.0, -0.0])])
    assert np.signbit(found).tolist() == [True, False, False, True]


def test_what_a_pad_does_not_take_may_be_nan() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        return f.pad(f.log(f.slice(x, start=(1,), stop=(3,), step=(1,))), low=(1,), high=(0,), interior=(0,))

    (found,) = interpret(fuse(make("f64[3]", build)), [np.array([-1.0, 1.0, 1.0])])
    assert found.tolist() == [0.0, 0.0, 0.0]


def test_a_gather_of_elements_is_read_by_the_kernel_that_uses_it() -> None:
    def build(f: Emitter, x: Expr, at: Expr) -> Expr:
        return f.sin(f.gather(x, at, axis=1)) * 2.0

    fn = make("f64[3,5] i64[4]", build)
    found = fuse(fn)
    assert [op.name for op in found.ops] == ["kernel"]
    args = [np.arange(15.0).reshape(3, 5), np.array([4, 0, 0, 2])]
    np.testing.assert_array_equal(interpret(found, args)[0], interpret(fn, args)[0])


def test_an_index_out_of_range_stays_in_its_row() -> None:
    fn = make("f64[3,5] i64[2]", lambda f, x, at: f.gather(x, at, axis=1) + 0.0)
    args = [np.arange(15.0).reshape(3, 5), np.array([-7, 99])]
    np.testing.assert_array_equal(interpret(fuse(fn), args)[0], [[0.0, 4.0], [5.0, 9.0], [10.0, 14.0]])


def test_whole_rows_are_gathered_by_an_op_of_their_own() -> None:
    fn = make("f64[50,16] i64[4]", lambda f, x, at: f.gather(x, at, axis=0))
    assert [op.name for op in fuse(fn).ops] == ["gather"]


# ------------------------------------------------------------------ reductions


def test_reductions_over_different_axes_share_one_kernel() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        y = f.sin(x)
        return [f.sum(y, axes=(0,)), f.sum(y, axes=(1,)), f.max(y, axes=(0, 1), ties="equal"), y]

    op = the_kernel(planned(make("f64[30,40]", build)))
    assert [(s.kind, str(s.at)) for s in op.attrs["stores"]] == [
        ("store", "40*i0+i1"), ("sum", "i1"), ("sum", "i0"), ("max", "0"),
    ]  # fmt: skip


def test_a_reduction_of_a_transpose_runs_over_the_operand_in_its_own_order() -> None:
    fn = make("f64[30,40]", lambda f, x: f.sum(f.permute(f.sin(x), (1, 0)), axes=(0,)))
    op = the_kernel(planned(fn))
    assert [str(load.at) for load in op.attrs["loads"]] == ["40*i0+i1"]


def test_a_sum_over_a_slightly_smaller_space_joins_the_larger_one() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        steps = f.slice(x, start=(1,), stop=(100,), step=(1,)) - f.slice(x, start=(0,), stop=(99,), step=(1,))
        return [total(steps * steps), f.pad(steps, low=(1,), high=(0,), interior=(0,)) * 2.0]

    assert len(planned(make("f64[100]", build)).ops) == 1


def test_the_work_behind_a_reduction_is_done_once_for_each_result_of_it() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        norm = f.sqrt(f.sum(x * x, axes=(1,)))
        return x / f.expand(norm, (1,), x.shape)

    spaces = [op.attrs["space"] for op in planned(make("f64[300,400]", build)).ops]
    assert spaces == [(300, 400), (300,), (300, 400)]


# ------------------------------------------------------------------ what is stored, what is computed again


def test_a_costly_value_is_stored_for_a_later_kernel_and_a_cheap_one_is_not() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        costly, cheap = f.exp(x), x * 2.0 + 1.0
        norm = f.expand(total(costly * cheap), (0,), x.shape)
        return costly / norm + cheap

    first, second = planned(make("f64[1000]", build)).ops
    assert [s.kind for s in first.attrs["stores"]] == ["store", "sum"]
    assert len(second.attrs["loads"]) == 3
    assert "exp" not in [op.name for op in second.regions[0].ops]


def test_a_small_costly_value_is_not_computed_for_each_element_of_a_large_space() -> None:
    fn = make("f64[100] f64[100,100]", lambda f, x, y: f.broadcast_to(f.exp(x), y.shape, (1,)) * y)
    small, large = planned(fn).ops
    assert (small.attrs["space"], large.attrs["space"]) == ((100,), (100, 100))
    assert [op.name for op in large.regions[0].ops] == ["mul"]


def test_independent_work_over_large_arrays_comes_apart() -> None:
    fn = make("f64[10000] f64[10000]", lambda f, x, y: (f.sin(x), f.cos(y)))
    assert len(planned(fn).ops) == 2


def test_repeated_smoothing_neither_explodes_nor_stores_each_step() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        for _ in range(40):
            n = x.shape[0]
            x = (f.slice(x, start=(1,), stop=(n,), step=(1,)) + f.slice(x, start=(0,), stop=(n - 1,), step=(1,))) * 0.5
        return x

    found = planned(make("f64[5000]", build))
    assert 3 <= len(found.ops) <= 20
    assert sum(len(op.regions[0].ops) for op in found.ops) < 600


def test_sixty_doublings_are_sixty_additions() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        for _ in range(60):
            x = x + x
        return x

    op = the_kernel(planned(make("f64[]", build)))
    assert len(op.regions[0].ops) == 60


def test_a_long_chain_is_cut_into_bodies_of_bounded_length() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        for k in range(4000):
            x = x * 1.001 if k % 2 else x + 0.1
        return x

    found = fuse(make("f64[1000]", build))
    assert 2 <= len(found.ops) <= 4
    assert max(len(op.regions[0].ops) for op in found.ops) <= 1600


# ------------------------------------------------------------------ what is no kernel


def test_hundreds_of_small_arrays_are_not_one_kernel() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        parts = [f.slice(x, start=(3 * k,), stop=(3 * k + 3,), step=(1,)) for k in range(200)]
        return [f.sin(f.cumsum(p, axis=0, reverse=False)) for p in parts]

    found = kernel_ops(planned(make("f64[600]", build)))
    assert all(len(op.operands) + len(op.results) <= bodies.FEW for op in found)
    assert len(found) < 20


def test_results_are_kept_when_kernels_take_few_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "FEW", 2)
    check_random(MOVING, range(8000, 8060))


def test_a_library_op_stays_and_its_operands_are_stored() -> None:
    fn = make("f64[10,10]", lambda f, x: f.cumsum(f.sin(x), axis=0, reverse=False) * 2.0)
    assert [op.name for op in planned(fn).ops] == ["kernel", "cumsum", "kernel"]


def test_a_reshape_in_memory_is_a_name() -> None:
    def build(f: Emitter, x: Expr, y: Expr) -> Expr:
        return f.dot_general(f.reshape_to(x, (24,)), y, contract=((0,), (0,)), batch=((), ()))

    fn = make("f64[4,6] f64[24]", build)
    assert [op.name for op in planned(fn).ops] == ["reshape", "dot_general"]


def test_effects_stay_in_their_order() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        for k in range(3):
            f.b.add(f.ops["guard"], [(total(x) < float(k)).value], Attrs(index=k, expected=0))
        return x * 2.0

    found = fuse(make("f64[3]", build))
    assert [op.attrs["index"] for op in found.ops if op.name == "guard"] == [0, 1, 2]


def test_regions_are_fused_and_constants_handed_to_them_become_theirs() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        (found,) = cond(
            f, total(x) < 1.0, lambda f, a, c: f.sin(a) * c, lambda f, a, c: a + c, x, f.full_like(x, 2.0)
        )
        return found

    fn = planned(make("f64[5]", build))
    (branch,) = [op for op in fn.ops if op.name == "if"]
    assert all(op.name in ("kernel", "constant") for region in branch.regions for op in region.ops)


def test_a_scalar_constant_is_not_passed_to_a_branch() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        (found,) = cond(f, x < 1.0, lambda f, a, c: f.sin(a) * c, lambda f, a, c: a + c, x, f.constant(2.0))
        return found

    fn = planned(make("f64[]", build))
    (branch,) = [op for op in fn.ops if op.name == "if"]
    assert len(branch.operands) == 2


def test_results_may_be_arguments_constants_and_one_another() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        y = x + 1.0
        return [x, f.constant(3.0), y, y, f.full_like(x, 4.0), f.iota(type=tensor_type(I64, (3,)), axis=0)]

    planned(make("f64[3]", build))


def test_an_op_without_use_is_dropped_with_all_it_needs() -> None:
    fn = make("f64[3]", lambda f, x: (f.cumsum(f.exp(x), axis=0, reverse=False), x + 1.0)[1])
    assert len(planned(fn).ops) == 1


def test_each_kernel_keeps_the_line_of_the_user() -> None:
    fn = planned(make("f64[3]", lambda f, x: f.astype(f.sin(x), F64) * 2.0))
    assert all(op.loc is not None for op in walk(fn.body) if op.name not in ("constant",))


def test_equal_kernels_read_the_same() -> None:
    fn = fuse(make("f64[100] f64[100]", lambda f, x, y: (total(f.sin(x) * 2.0), total(f.sin(y) * 2.0))))
    if len(kernel_ops(fn)) == 2:
        one, other = (op.attrs for op in kernel_ops(fn))
        assert one == other


# ------------------------------------------------------------------ rows


def normalised(f: Emitter, x: Expr) -> Expr:
    return x / f.expand(f.sqrt(f.sum(x * x, axes=(1,))), (1,), x.shape)


def test_rows_are_formed_where_kernels_hand_rows_to_one_another() -> None:
    ops = planned(make("f64[2000,400]", normalised)).ops
    assert [op.name for op in ops] == ["rows", "reshape"]
    assert ops[0].attrs["count"] == 1000


def test_small_arrays_stay_in_the_cache_without_rows() -> None:
    assert "rows" not in [op.name for op in planned(make("f64[50,50]", normalised)).ops]


def test_what_only_the_rows_read_is_never_stored_whole() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        e = f.exp(x)
        return e / f.expand(f.sum(e, axes=(1,)), (1,), x.shape)

    op = planned(make("f64[2000,300]", build)).ops[0]
    assert len(op.results) == 1


def test_a_sum_over_columns_of_blocks_is_added_up_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    always_rows(monkeypatch)

    def build(f: Emitter, x: Expr) -> list[Expr]:
        y = normalised(f, x)
        return [f.sum(y, axes=(0,)), f.max(y, axes=(0, 1), ties="equal")]

    monkeypatch.setattr(rows, "BLOCK_POINTS", 100)
    ops = planned(make("f64[100,6]", build)).ops
    assert [op.name for op in ops] == ["rows", "kernel", "kernel"]
    assert [op.attrs["space"] for op in ops[1:]] == [(4, 6), (4,)]


def test_a_kernel_that_needs_all_rows_comes_behind_them() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        y = normalised(f, x)
        return y / f.expand(total(f.exp(y)), (0, 1), x.shape)

    names = [op.name for op in planned(make("f64[2000,300]", build)).ops]
    assert names.index("rows") < len(names) - 1
    assert names[-1] == "kernel"


def test_batches_of_matrices_go_along_with_masks_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    always_rows(monkeypatch)

    def build(f: Emitter, x: Expr, mask: Expr) -> Expr:
        x = f.sin(x) + f.broadcast_to(mask, x.shape, (1, 2))
        return x / f.expand(f.sum(x, axes=(2,)), (2,), x.shape)

    ops = planned(make("f64[6,5,7] f64[5,7]", build)).ops
    assert ops[0].name == "rows"
    assert (ops[0].attrs["count"], ops[0].attrs["mapped"], len(ops[0].operands)) == (6, 1, 2)


def test_an_effect_does_not_overtake_another_when_rows_are_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    always_rows(monkeypatch)

    def guard(x: Expr, index: int) -> None:
        x.f.b.add(x.f.ops["guard"], [(x < 100.0).value], Attrs(index=index, expected=1))

    def build(f: Emitter, x: Expr) -> Expr:
        y = f.exp(x)
        s = f.sum(y, axes=(1,))
        guard(total(s), 0)
        guard(total(x), 1)
        return y / f.expand(s, (1,), x.shape)

    ops = planned(make("f64[4,3]", build)).ops
    assert [op.attrs["index"] for op in ops if op.name == "guard"] == [0, 1]


# ------------------------------------------------------------------ short axes


def always_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "MANY", 1)
    monkeypatch.setattr(components, "HEAVY", 0.0)


def test_results_are_kept_when_short_axes_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    always_written_out(monkeypatch)
    check_random(MOVING, range(8000, 8050))
    check_random(GENERATED, range(9000, 9025))


def test_norms_of_vectors_take_one_kernel_over_the_vectors() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        length = f.sqrt(f.sum(x * x, axes=(1,)))
        return [total(length), length]

    op = the_kernel(planned(make("f64[1000,3]", build)))
    assert op.attrs["space"] == (1000,)


def test_forces_between_points_take_one_kernel_over_the_pairs() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        n = x.shape[0]
        apart = f.broadcast_to(x, (n, n, 3), (0, 2)) - f.broadcast_to(x, (n, n, 3), (1, 2))
        square = f.sum(apart * apart, axes=(2,)) + 1.0
        force = f.broadcast_to(f.full_like(square, 1.0) / (square * f.sqrt(square)), apart.shape, (0, 1)) * apart
        return [total(f.sqrt(square)), f.sum(force, axes=(0,)), f.sum(force, axes=(1,))]

    spaces = [op.attrs["space"] for op in planned(make("f64[80,3]", build)).ops if op.name == "kernel"]
    assert spaces == [(80, 80), (80, 3)]


def test_work_along_a_short_axis_alone_stays_as_it_is() -> None:
    op = the_kernel(planned(make("f64[1000,3] f64[1000,3]", lambda f, x, y: f.exp(x) * y)))
    assert op.attrs["space"] == (3000,)


def test_a_sum_over_a_short_axis_shares_costly_work_with_what_is_stored() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        y = f.exp(x)
        return [y, f.sum(y, axes=(1,))]

    op = the_kernel(planned(make("f64[1000,3]", build)))
    assert [o.name for o in op.regions[0].ops] == ["exp"]


def test_half_precision_sums_round_once() -> None:
    fn = make("f16[1000,3]", lambda f, x: f.sum(x, axes=(1,)))
    assert [s.kind for s in the_kernel(fuse(fn)).attrs["stores"]] == ["sum"]


# ------------------------------------------------------------------ updates


def test_an_update_of_most_of_an_array_is_part_of_the_kernel_around_it() -> None:
    def build(f: Emitter, u: Expr) -> Expr:
        inner = f.slice(u, start=(1, 1), stop=(31, 31), step=(1, 1))
        left = f.slice(u, start=(1, 0), stop=(31, 30), step=(1, 1))
        return f.update(u, inner + left * 0.1, start=(1, 1), stop=(31, 31), step=(1, 1)) * 2.0

    op = the_kernel(planned(make("f64[32,32]", build)))
    assert op.attrs["space"] == (32, 32)


def test_an_update_of_a_small_part_writes_no_more_than_that() -> None:
    def build(f: Emitter, u: Expr) -> Expr:
        u = f.cumsum(u, axis=0, reverse=False)
        row = f.slice(u, start=(1, 0), stop=(2, 32), step=(1, 1))
        return f.update(u, f.sin(row), start=(3, 0), stop=(4, 32), step=(1, 1))

    assert [op.name for op in planned(make("f64[32,32]", build)).ops] == ["cumsum", "kernel", "update"]


def test_an_update_with_steps_stays_an_op() -> None:
    def build(f: Emitter, u: Expr) -> Expr:
        half = f.slice(u, start=(0,), stop=(32,), step=(2,))
        return f.update(u, f.sin(half), start=(1,), stop=(32,), step=(2,))

    assert [op.name for op in planned(make("f64[32]", build)).ops] == ["kernel", "update"]


def test_half_precision_sums_over_rows_are_not_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    always_rows(monkeypatch)

    def build(f: Emitter, x: Expr) -> list[Expr]:
        y = x / f.expand(f.max(x, axes=(1,), ties="equal"), (1,), x.shape)
        return [y, f.sum(y, axes=(0,))]

    last = fuse(make("f16[100,20]", build)).ops[-1]
    assert last.attrs["space"] == (100, 20)


def test_many_arrays_are_put_together_by_an_op_of_its_own() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        parts = [f.sin(f.slice(x, start=(k,), stop=(k + 1,), step=(1,))) * float(k) for k in range(40)]
        return f.concatenate(*parts, axis=0) * 2.0

    names = [op.name for op in planned(make("f64[40]", build)).ops]
    assert names.count("concatenate") == 1


def test_a_long_chain_over_a_large_array_is_walked_block_by_block() -> None:
    found = fuse(sine_chain(300, "f64[100000]"))
    assert [op.name for op in found.ops] == ["rows", "kernel", "reshape"]
