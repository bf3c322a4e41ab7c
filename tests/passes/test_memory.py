"""The memory plan: run in real memory it gives what the interpreter gives, and it copies only where it must."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Function, Region
from pullback.ir.interpret import interpret
from pullback.ir.ops import OPS
from pullback.ir.plan import Plan, Slot
from pullback.ir.types import parse_type
from pullback.passes import memory
from pullback.passes.fuse import bodies, fuse, rows
from pullback.passes.memory import plan
from pullback.passes.memory.arena import Interval, arrange
from tests.passes.making import cond, make, region, total
from tests.passes.simulate import run_plan
from tests.passes.workloads import WORKLOADS, heat, sine_chain, small_workload
from tests.random_programs import GENERATED, arguments_for, random_function

IN_PLACE = (
    "update", "scatter", "scatter_add", "if", "checkpoint", "scan", "while", "add", "mul", "sin", "slice", "reshape",
    "sum", "select",
)  # fmt: skip

LOOPS = ("scan", "while", "scan", "while", "add", "mul", "sin", "reverse", "reshape", "if", "update", "cumsum")

ROWWISE = (
    "add", "mul", "sin", "exp", "broadcast", "reshape", "sum", "max", "select", "scan", "if", "cumsum", "transpose",
)  # fmt: skip


def checked(fn: Function, args: Sequence[np.ndarray] | None = None) -> Plan:
    """The plan of the fused function, once it is seen to give what the kernels give, bit for bit."""
    fused = fuse(fn)
    made = plan(fused)
    args = arguments_for(fn) if args is None else args
    for found, expected in zip(run_plan(made, args), interpret(fused, args), strict=True):
        assert found.tobytes() == expected.tobytes()
    return made


def scan_op(f: Emitter, body: Region, length: int, carries: Sequence[Expr], rows: Sequence[Expr] = ()) -> list[Expr]:
    attrs = Attrs(carries=len(carries), scanned=len(rows), length=length, reverse=False)
    op = f.b.add(OPS["scan"], [v.value for v in (*carries, *rows)], attrs, (body,))
    return [f.wrap(r) for r in op.results]


def write(x: Expr, at: int, v: Expr) -> Expr:
    """x[at] = v"""
    return x.f.update(x, v, start=(at,), stop=(at + v.shape[0],), step=(1,))


def one(x: Expr) -> Expr:
    return x.f.slice(x, start=(0,), stop=(1,), step=(1,))


# ------------------------------------------------------------------ random programs


def check_random(ops: Sequence[str], seeds: range, size: int) -> None:
    for seed in seeds:
        fn = random_function(seed, size, ops)
        checked(fn, arguments_for(fn, seed))


def test_plans_of_random_programs_keep_values_apart() -> None:
    check_random(GENERATED, range(40), 20)


def test_plans_of_loops_and_branches_that_write_in_place_keep_values_apart() -> None:
    check_random(IN_PLACE, range(1000, 1030), 25)


def test_plans_without_local_variables_keep_values_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """All carried values change places, too."""
    monkeypatch.setattr(memory, "SMALL", 0)
    check_random(GENERATED, range(2000, 2040), 25)
    check_random(LOOPS, range(2100, 2130), 25)


def always_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "WORTH_BYTES", 0)
    monkeypatch.setattr(rows, "BLOCK_POINTS", 1)
    monkeypatch.setattr(bodies, "SMALL", 0)


def test_plans_of_rows_keep_values_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    always_rows(monkeypatch)
    check_random(ROWWISE, range(3000, 3030), 25)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("always", [False, True])
def test_plans_of_the_workloads_keep_values_apart(name: str, always: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if always:
        always_rows(monkeypatch)
    rng = np.random.default_rng(0)
    fn = small_workload(name)
    checked(fn, [rng.uniform(0.2, 1.5, t.shape) for t in fn.param_types])


# ------------------------------------------------------------------ the arena


def test_intervals_that_meet_do_not_overlap_and_memory_is_used_again() -> None:
    rng = np.random.default_rng(1)
    starts = np.sort(rng.integers(0, 500, 300))
    intervals = [Interval(int(t), int(t + rng.integers(0, 30)), int(rng.integers(1, 5000))) for t in starts]
    offsets, size = arrange(intervals)
    assert all(offset % 64 == 0 for offset in offsets)
    for moment in range(530):
        alive = sorted((o, i.nbytes) for o, i in zip(offsets, intervals, strict=True) if i.birth <= moment <= i.death)
        assert all(a + n <= b for (a, n), (b, _) in pairwise(alive))
        assert all(a + n <= size for a, n in alive)
    peak = max(sum(i.nbytes + 63 for i in intervals if i.birth <= m <= i.death) for m in range(530))
    assert size <= 1.6 * peak


def test_buffers_of_no_bytes_leave_no_holes() -> None:
    rng = np.random.default_rng(2)
    starts = np.sort(rng.integers(0, 100, 200))
    sizes = rng.choice([0, 64, 200], 200)
    arrange([Interval(int(t), int(t + rng.integers(0, 9)), int(n)) for t, n in zip(starts, sizes, strict=True)])


def test_a_chain_of_large_steps_needs_no_memory_but_the_result() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        for _ in range(10):
            x = f.cumsum(f.sin(x), axis=0, reverse=False)
        return x

    assert checked(make("f64[1000]", build)).arena_bytes <= 2 * 8000


def test_stencil_steps_take_turns_between_two_buffers() -> None:
    assert checked(heat(12)).arena_bytes == 2 * 64 * 64 * 8


def test_memory_grows_with_what_the_backward_half_needs() -> None:
    made = checked(sine_chain(100))
    assert made.arena_bytes <= 104 * 8000


# ------------------------------------------------------------------ results


def test_results_are_written_where_the_caller_wants_them() -> None:
    made = checked(make("f64[1000]", lambda f, x: (f.sin(x), total(x), f.cumsum(x, axis=0, reverse=False))))
    assert [made.slots[v] for v in made.function.results] == [Slot("result", k) for k in range(3)]
    assert (made.arena_bytes, made.stack_bytes, made.result_copies) == (0, (), ())


def test_a_result_in_another_shape_is_written_there_too() -> None:
    made = checked(make("f64[10,10]", lambda f, x: f.reshape_to(f.cumsum(x, axis=0, reverse=False), (100,))))
    assert made.result_copies == ()


def test_arguments_constants_and_repeated_results_are_copied() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        y = f.sin(x)
        return [x, y, y, f.constant(np.arange(3.0)), f.reshape_to(y, (3, 1))]

    assert [k for k, _ in checked(make("f64[3]", build)).result_copies] == [0, 2, 3, 4]


def test_a_small_value_is_a_local_variable() -> None:
    made = checked(make("f64[1000]", lambda f, x: x / f.expand(f.sqrt(total(x * x)), (0,), x.shape)))
    assert made.arena_bytes == 0
    assert made.stack_bytes == (8,)


def test_many_small_values_share_memory() -> None:
    made = plan(fuse(sine_chain(1000, "f64[3]")))
    assert len(made.stack_bytes) <= memory.MANY


# ------------------------------------------------------------------ in place


def test_an_elementwise_kernel_writes_over_an_operand_that_dies() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        return f.cumsum(f.sin(f.cumsum(x, axis=0, reverse=False)) * x, axis=0, reverse=False)

    made = checked(make("f64[1000]", build))
    first, kernel, _ = made.function.ops
    assert made.slots[first.results[0]] == made.slots[kernel.results[0]]


def test_a_kernel_that_reads_elsewhere_does_not() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        y = f.cumsum(x, axis=0, reverse=False)
        return f.cumsum(f.sin(y) + f.reverse(y, axes=(0,)), axis=0, reverse=False)

    made = checked(make("f64[1000]", build))
    first, kernel, _ = made.function.ops
    assert made.slots[first.results[0]] != made.slots[kernel.results[0]]


def test_updates_of_a_new_array_copy_nothing() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        out = f.full(parse_type("f64[1000]"), 0.0)
        for k in range(50):
            out = write(out, 7 * k, f.sin(one(x)) * float(k))
        return out

    made = checked(make("f64[10]", build))
    assert made.copies == ()
    assert {made.slots[op.results[0]] for op in made.function.ops if op.name == "update"} == {Slot("result", 0)}


def test_an_update_of_an_argument_copies_it_once_and_says_why() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        return write(write(x, 3, f.sin(one(x))), 5, f.cos(one(x)))

    made = checked(make("f64[1000]", build))
    assert [copy.reason for copy in made.copies] == ["its operand is an argument"]
    assert made.copies[0].op == "update at model.py:1 fn"


def test_an_update_of_what_is_read_later_copies_it() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        y = f.cumsum(x, axis=0, reverse=False)
        z = write(y, 3, one(x))
        return [z, f.cumsum(y * f.cumsum(z, axis=0, reverse=False), axis=0, reverse=True)]

    assert [c.reason for c in checked(make("f64[1000]", build)).copies] == ["its operand is read later"]


def test_what_only_reads_an_array_comes_before_an_update_of_it() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        y = f.cumsum(x, axis=0, reverse=False)
        z = write(y, 3, one(x))
        return [z, f.cumsum(y, axis=0, reverse=True), f.sin(y)]

    assert checked(make("f64[1000]", build)).copies == ()


def test_a_small_part_that_is_wanted_after_an_update_is_stored_before_it() -> None:
    def build(f: Emitter, x: Expr) -> list[Expr]:
        y = f.cumsum(x, axis=0, reverse=False)
        z = f.cumsum(write(y, 0, one(x)), axis=0, reverse=False)
        return [f.sin(z) * f.expand(f.reshape_to(one(y), ()), (0,), y.shape)]

    made = checked(make("f64[1000]", build))
    assert made.copies == ()
    assert made.arena_bytes <= 8000


def test_a_loop_whose_turns_read_and_write_one_array_copies_nothing() -> None:
    """As the adjoint of a relaxation: the cotangent of an element is read, set to zero, and added to its neighbours."""
    types = [parse_type("f64[1000]"), parse_type("i64[1]"), parse_type("f64[1]")]

    def body(f: Emitter, ct: Expr, at: Expr, total: Expr) -> list[Expr]:
        mine = f.gather(ct, at, axis=0)
        ct = f.scatter(ct, at, f.full_like(mine, 0.0), axis=0)
        near = f.gather(ct, at - 1, axis=0)
        ct = f.scatter(ct, at - 1, near + mine * 0.5, axis=0)
        return [ct, at - 1, total + mine * near]

    def build(f: Emitter, x: Expr, at: Expr) -> list[Expr]:
        return scan_op(f, region(types, body), 5, [f.sin(x), at, one(x)])

    made = checked(make("f64[1000] i64[1]", build), [np.arange(1000.0), np.array([900])])
    assert made.copies == ()


def test_scatter_add_accumulates_in_place() -> None:
    def build(f: Emitter, x: Expr, at: Expr) -> Expr:
        return f.scatter_add(f.scatter_add(f.full_like(x, 0.0), at, x, axis=0), at, f.sin(x), axis=0)

    made = checked(make("f64[5] i64[5]", build), [np.arange(5.0), np.array([0, 0, 4, 1, 1])])
    assert made.copies == ()


# ------------------------------------------------------------------ branches and loops


def test_a_branch_writes_its_result_into_the_place_of_the_result() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        return cond(f, total(x) < 1.0, lambda f, a: f.sin(a), lambda f, a: f.cos(a), x)[0]

    made = checked(make("f64[1000]", build))
    (branch,) = [op for op in made.function.ops if op.name == "if"]
    assert {made.slots[r.results[0]] for r in branch.regions} == {Slot("result", 0)}


def test_a_branch_that_may_change_an_array_changes_it_in_place() -> None:
    def build(f: Emitter, x: Expr) -> Expr:
        y = f.cumsum(x, axis=0, reverse=False)
        (y,) = cond(f, total(x) < 1.0, lambda f, a: write(a, 3, f.sin(one(a))), lambda f, a: a, y)
        return f.cumsum(y, axis=0, reverse=False)

    made = checked(make("f64[1000]", build))
    assert made.copies == ()
    assert made.arena_bytes == 8000


def test_a_loop_that_writes_one_element_a_turn_copies_nothing() -> None:
    types = [parse_type("f64[1000]"), parse_type("f64[1]")]

    def body(f: Emitter, out: Expr, v: Expr) -> list[Expr]:
        return [write(out, 5, f.sin(v)), v * 2.0]

    def build(f: Emitter, x: Expr) -> Expr:
        return scan_op(f, region(types, body), 4, [f.full(types[0], 0.0), x])[0]

    made = checked(make("f64[1]", build))
    assert made.copies == ()


def test_a_state_that_is_replaced_is_written_over_when_it_was_read_for_the_last_time() -> None:
    types = [parse_type("f64[20]"), parse_type("f64[20]")]

    def body(f: Emitter, h: Expr, x: Expr) -> list[Expr]:
        mixed = f.cumsum(h, axis=0, reverse=False)
        h = f.sin(mixed + x)
        return [h, h]

    def build(f: Emitter, xs: Expr) -> list[Expr]:
        return scan_op(f, region(types, body), 6, [f.full(types[0], 0.5)], [xs])

    made = checked(make("f64[6,20]", build))
    assert made.copies == ()


def test_a_state_that_is_still_read_is_made_elsewhere_and_copied() -> None:
    types = [parse_type("f64[20]")]

    def body(f: Emitter, h: Expr) -> list[Expr]:
        return [h + f.reverse(h, axes=(0,))]

    def build(f: Emitter, x: Expr) -> Expr:
        return scan_op(f, region(types, body), 3, [f.sin(x)])[0]

    made = checked(make("f64[20]", build))
    assert [c.reason for c in made.copies] == ["carried value 0 is made where its old value is still read"]


# ------------------------------------------------------------------ large carried values

GRID = parse_type("f64[200]")


def moved(x: Expr) -> Expr:
    """A kernel that reads elsewhere than it writes."""
    return x * 0.5 + x.f.reverse(x, axes=(0,))


def kinds(made: Plan) -> list[str]:
    return [move.kind for moves in made.handovers.values() for move in moves]


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_large_state_that_is_still_read_goes_on_where_it_was_made(length: int, reverse: bool) -> None:
    def build(f: Emitter, x: Expr, y: Expr) -> list[Expr]:
        body = region([GRID, GRID], lambda f, a, b: [moved(a), moved(b) + a])
        attrs = Attrs(carries=2, scanned=0, length=length, reverse=reverse)
        op = f.b.add(OPS["scan"], [f.sin(x).value, y.value], attrs, (body,))
        return [f.wrap(r) for r in op.results]

    made = checked(make("f64[200] f64[200]", build))
    assert made.copies == ()
    assert kinds(made) == ["place", "place"]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_large_values_that_change_places_are_not_copied(length: int) -> None:
    """A wave: the next state is written over the one before the last."""

    def build(f: Emitter, x: Expr, y: Expr, z: Expr) -> list[Expr]:
        body = region([GRID] * 3, lambda f, a, b, c: [b, moved(b) - a, c + b])
        return scan_op(f, body, length, [x, y, f.sin(z)])

    made = checked(make("f64[200] f64[200] f64[200]", build))
    assert made.copies == ()
    assert kinds(made) == ["place", "place"]
    assert made.arena_bytes <= GRID.nbytes

    def turned(f: Emitter, x: Expr, y: Expr, z: Expr) -> list[Expr]:
        body = region([GRID] * 3, lambda f, a, b, c: [b, f.reshape_to(f.reshape_to(c, (2, 100)), (200,)), a])
        return scan_op(f, body, length, [x, y, f.sin(z)])

    assert kinds(checked(make("f64[200] f64[200] f64[200]", turned))) == ["place"] * 3


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["next", "row"])
def test_a_large_state_that_is_stacked_lives_in_its_rows(length: int, reverse: bool, kind: str) -> None:
    def body(f: Emitter, a: Expr, x: Expr) -> list[Expr]:
        new = moved(a) + x
        return [new, new if kind == "row" else a]

    def build(f: Emitter, x: Expr, xs: Expr) -> list[Expr]:
        attrs = Attrs(carries=1, scanned=1, length=length, reverse=reverse)
        op = f.b.add(OPS["scan"], [x.value, xs.value], attrs, (region([GRID, GRID], body),))
        return [f.wrap(r) for r in op.results]

    made = checked(make(f"f64[200] f64[{length},200]", build))
    assert kinds(made) == [kind]
    assert made.arena_bytes == 0
    assert made.copies == ()


def test_a_large_state_of_a_while_loop_goes_on_where_it_was_made() -> None:
    types = [GRID, parse_type("i64[]")]

    def build(f: Emitter, x: Expr, n: Expr) -> Expr:
        test = region(types, lambda f, x, k: [(k > 0) & (total(x) > -1e9)])
        body = region(types, lambda f, x, k: [moved(x), k - 1])
        op = f.b.add(OPS["while"], [x.value, n.value], Attrs(carries=2, most=0), (test, body))
        return f.wrap(op.results[0])

    for turns in (0, 3, 4):
        made = checked(make("f64[200] i64[]", build), [np.linspace(0.0, 1.0, 200), np.array(turns)])
        assert made.copies == ()
        assert kinds(made) == ["place"]


def test_a_large_state_that_becomes_something_from_outside_is_copied() -> None:
    def build(f: Emitter, x: Expr, c: Expr) -> list[Expr]:
        body = region([GRID] * 3, lambda f, a, b, c: [b, c])
        attrs = Attrs(carries=2, scanned=0, length=3, reverse=False)
        op = f.b.add(OPS["scan"], [x.value, f.sin(x).value, c.value], attrs, (body,))
        return [f.wrap(r) for r in op.results]

    assert kinds(checked(make("f64[200] f64[200]", build))) == []


def test_values_that_change_places_each_turn_do_not_overwrite_one_another() -> None:
    types = [parse_type("f64[3]")] * 3

    def build(f: Emitter, x: Expr, y: Expr) -> list[Expr]:
        body = region(types, lambda f, a, b, c: [b, f.reshape_to(f.reshape_to(c, (3, 1)), (3,)), a])
        return scan_op(f, body, 4, [x, y, f.sin(x)])

    checked(make("f64[3] f64[3]", build))


def test_rows_are_stacked_where_they_belong() -> None:
    types = [parse_type("f64[20]")]

    def build(f: Emitter, xs: Expr) -> Expr:
        return scan_op(f, region(types, lambda f, x: [f.sin(x)]), 6, [], [xs])[0]

    made = checked(make("f64[6,20]", build))
    (loop,) = made.function.ops
    assert made.slots[loop.regions[0].results[0]] == made.slots[loop.results[0]] == Slot("result", 0)


def test_a_while_loop_keeps_its_state_in_one_place() -> None:
    types = [parse_type("f64[30]"), parse_type("i64[]")]

    def build(f: Emitter, x: Expr) -> Expr:
        test = region(types, lambda f, x, k: [k < 5])
        body = region(types, lambda f, x, k: [f.sin(x) * 2.0, k + 1])
        op = f.b.add(OPS["while"], [x.value, f.constant(0).value], Attrs(carries=2, most=0), (test, body))
        return f.wrap(op.results[0])

    made = checked(make("f64[30]", build))
    (loop,) = [op for op in made.function.ops if op.name == "while"]
    assert made.copies == ()
    assert made.slots[loop.regions[1].params[0]] == made.slots[loop.results[0]] == Slot("result", 0)


def test_planning_a_long_program_is_quick_work() -> None:
    """Ten thousand ops; a plan that looked at all pairs would not end."""
    b = Builder()
    f = Emitter(b, OPS)
    x = f.wrap(b.param(parse_type("f64[200]")))
    for _ in range(5000):
        x = f.cumsum(f.cumprod(x, axis=0, reverse=False), axis=0, reverse=False)
    made = plan(b.function("long", [x.value], "planned"))
    assert made.arena_bytes <= 2 * 1600


def test_a_kernel_of_many_numbers_is_quick_work() -> None:
    """A kernel of fifteen hundred operands and as many results of one element; a plan that compared all pairs with all
    operands would not end."""

    def build(f: Emitter, *xs: Expr) -> list[Expr]:
        return [f.sin(f.cumsum(f.reshape_to(x, (1,)), axis=0, reverse=False)) for x in xs]

    made = plan(fuse(make("f64[] " * 1500, build)))
    assert made.result_copies == ()
