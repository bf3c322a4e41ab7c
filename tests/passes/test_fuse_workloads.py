"""How many kernels the programs of the benchmarks become; fewer is a gain to be written down here, more is a loss."""

import numpy as np
import pytest

from pullback.ir.graph import Function, Op, walk
from pullback.ir.interpret import interpret
from pullback.passes.fuse import fuse
from tests.passes.workloads import WORKLOADS, heat, sine_chain, workload

# The spaces of the kernels, and the other ops. A loss over rows is summed behind them.
EXPECTED: dict[str, list[object]] = {
    "chain": [(10000,), ()],
    "black_scholes": [(1000000,)],
    "redundant": [(1000000,)],
    "rosenbrock": [(1000,)],
    "softmax": ["rows", (1000,), "reshape"],
    "logsumexp": ["rows", (1000,), "reshape"],
    "max_with_ties": ["rows", (1000,), "reshape"],
    "logistic_regression": ["dot_general", (10,), (100,), (), "dot_general", (10,)],
    "mlp": [
        "dot_general", (32, 64), "dot_general", (32, 10), (32, 10), (32,), (32, 10), (), "dot_general", (32, 64),
        "dot_general", "dot_general",
    ],
    "pairwise_energy": [(1000, 1000), (1000,)],
}  # fmt: skip


def shape_of(op: Op) -> object:
    return op.attrs["space"] if op.name == "kernel" else op.name


def small(fn: Function) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0.2, 1.5, t.shape) for t in fn.param_types]


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_becomes_so_many_kernels(name: str) -> None:
    fn = workload(name)
    assert [shape_of(op) for op in fuse(fn).ops] == EXPECTED[name]


# One block is one row, which is an axis of length 1 in front.
IN_A_ROW: dict[str, list[object]] = {
    "softmax": [(1, 1000)] * 4,
    "logsumexp": [(1, 1000), (1, 1000), (1,), (1, 1000)],
    "max_with_ties": [(1, 1000), (1, 1000), (1,), (1, 1000)],
}


@pytest.mark.parametrize("name", IN_A_ROW)
def test_rows_of_a_workload_are_walked_once(name: str) -> None:
    rows = fuse(workload(name)).ops[0]
    assert [shape_of(op) for op in rows.regions[0].ops] == IN_A_ROW[name]
    assert (rows.attrs["count"], rows.attrs["mapped"]) == (1000, 1)


@pytest.mark.parametrize("name", [n for n in WORKLOADS if n not in ("black_scholes", "redundant")])
def test_the_kernels_of_a_workload_compute_it(name: str) -> None:
    fn = workload(name)
    args = small(fn)
    for found, expected in zip(interpret(fuse(fn), args), interpret(fn, args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_steps_of_a_stencil_are_one_kernel_each() -> None:
    found = fuse(heat(20))
    assert len(found.ops) <= 21
    assert max(len(op.regions[0].ops) for op in found.ops) < 80


def test_the_backward_half_of_a_long_chain_loads_what_the_forward_half_stored() -> None:
    found = fuse(sine_chain(200))
    assert len(found.ops) <= 16
    assert sum(op.name == "sin" for op in walk(found.body)) <= 260
