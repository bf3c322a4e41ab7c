"""`rows`: a body for each row, small values on the stack, in one thread and in chunks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pullback.codegen import rows
from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter
from pullback.ir.graph import Attrs, Function, Region
from pullback.ir.ops import OPS
from pullback.ir.plan import Plan, Slot
from pullback.ir.types import TensorType, tensor_type
from pullback.passes.fuse import fuse
from tests.native import compile_plan

Array = np.ndarray[Any, Any]


def f64(*shape: int) -> TensorType:
    return tensor_type(np.dtype(np.float64), shape)


def softmax_body(length: int) -> Region:
    """softmax of a row times weights, and the row's logsumexp, in kernels."""
    builder = Builder()
    f = Emitter(builder, OPS)
    x, w = f.wrap(builder.param(f64(length))), f.wrap(builder.param(f64(length)))
    top = f.max(x, axes=(0,), ties="equal")
    e = f.exp(x - f.broadcast_to(top, (length,)))
    total = f.sum(e, axes=(0,))
    region = builder.region([(e / f.broadcast_to(total, (length,)) * w).value, (f.log(total) + top).value])
    return fuse(Function("body", region)).body


def planned(count: int, length: int, in_place: bool) -> Plan:
    """A `rows` op and its memory: results made in their rows, or copied there."""
    body = softmax_body(length)
    builder = Builder()
    x, w = builder.param(f64(count, length)), builder.param(f64(length))
    op = builder.add(OPS["rows"], [x, w], Attrs(count=count, mapped=1), (body,))
    slots = {x: Slot("arg", 0), w: Slot("arg", 1), body.params[0]: Slot("arg", 0), body.params[1]: Slot("arg", 1)}
    slots.update({result: Slot("result", k) for k, result in enumerate(op.results)})
    at = 0
    for inner in body.ops:
        for value in inner.results:
            if in_place and value in body.results:
                slots[value] = slots[op.results[body.results.index(value)]]
            else:
                slots[value] = Slot("stack", 0, at)
                at += -(-value.type.nbytes // 64) * 64
    return Plan(builder.function("rows", op.results), slots, 0, (at,), ())


def check(plan: Plan, count: int, length: int) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((count, length)), rng.standard_normal(length)
    soft, lse = compile_plan(plan)(x, w)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(soft, e / e.sum(axis=1, keepdims=True) * w, rtol=1e-13)
    np.testing.assert_allclose(lse, np.log(e.sum(axis=1)) + x.max(axis=1), rtol=1e-13)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(("count", "length"), [(1, 1), (5, 7), (40, 100)])
def test_every_row_is_done(count: int, length: int, in_place: bool) -> None:
    check(planned(count, length, in_place), count, length)


@pytest.mark.parametrize(("count", "length"), [(41, 30), (100, 64)])
def test_rows_are_shared_among_threads(count: int, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "SHARED_FROM_NS", 0.0)
    monkeypatch.setattr(rows, "CHUNK_NS", 50.0)
    plan = planned(count, length, True)
    assert "pb_parallel_for" in compile_plan(plan).lowered.symbols
    check(plan, count, length)


def test_what_rows_hand_on_stays_out_of_the_arena() -> None:
    plan = planned(8, 50, True)
    assert compile_plan(replace(plan, arena_bytes=0)).lowered.arena_bytes == 0
