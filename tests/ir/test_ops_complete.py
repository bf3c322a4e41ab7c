"""Every op has everything: samples, a type rule that agrees with its evaluation, text, derivatives of both orders in
both
modes, a batching rule. The operands come from one table, `samples`."""

from typing import Any

import numpy as np
import pytest

from pullback.ir.graph import Function
from pullback.ir.interpret import interpret
from pullback.ir.opdef import NotDifferentiable
from pullback.ir.ops import ALL_OPS, OPS
from pullback.ir.parse import parse_function
from pullback.ir.text import print_function
from pullback.ir.verify import verify
from pullback.passes.batch import batch
from pullback.passes.forward import forward
from pullback.passes.reverse import reverse
from tests.ir.checks import Arrays, Point, assert_close, check_adjoint, check_first_order, inexact_numbers
from tests.ir.samples import SAMPLES, Sample, sampled_ops, samples_of

Array = np.ndarray[Any, Any]
OP_NAMES = sampled_ops()
DIFFERENTIABLE = [name for name in OP_NAMES if not isinstance(OPS[name].derivative, NotDifferentiable)]
NOT_THE_DERIVATIVE = {"stop_gradient"}  # zero is what the user asked for, not what differences say


def smooth(op: str) -> list[Sample]:
    return [s for s in samples_of(op) if s.smooth and inexact_numbers(s.operands)]


def in_double(sample: Sample) -> bool:
    return all(a.dtype.itemsize == (16 if a.dtype.kind == "c" else 8) for a in sample.operands if a.dtype.kind in "fc")


def results_in_double(fn: Function) -> bool:
    return all(r.type.dtype.itemsize == (16 if r.type.is_complex else 8) for r in fn.results if r.type.is_inexact)


def test_names_are_distinct_and_every_op_has_samples() -> None:
    assert len({op.name for op in ALL_OPS}) == len(ALL_OPS)
    sampled = {s.op for s in SAMPLES}
    assert sorted(set(OP_NAMES) - sampled) == []


@pytest.mark.parametrize("op", OP_NAMES)
def test_the_doc_says_something(op: str) -> None:
    assert OPS[op].doc.strip().endswith(".")


@pytest.mark.parametrize("op", OP_NAMES)
def test_the_type_rule_agrees_with_the_evaluation_and_operands_stay_as_they_were(op: str) -> None:
    for sample in samples_of(op):
        fn = sample.function()
        verify(fn)
        copies = [a.copy() for a in sample.operands]
        for found, result in zip(interpret(fn, sample.operands), fn.results, strict=True):
            assert (found.dtype, found.shape) == (result.type.dtype, result.type.shape), str(sample)
        for before, after in zip(copies, sample.operands, strict=True):
            np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("op", OP_NAMES)
def test_its_text_reads_back_as_the_same_op(op: str) -> None:
    for sample in samples_of(op):
        fn = sample.function()
        text = print_function(fn)
        again = parse_function(text)
        verify(again)
        assert print_function(again) == text
        for one, other in zip(interpret(fn, sample.operands), interpret(again, sample.operands), strict=True):
            assert one.tobytes() == other.tobytes(), str(sample)


def test_indices_out_of_range_are_clamped_by_the_evaluation() -> None:
    sample = Sample("gather", (np.array([1.0, 2.0, 3.0]), np.array([7, -1])), {"axis": 0})
    np.testing.assert_array_equal(interpret(sample.function(), sample.operands)[0], [3.0, 1.0])


# ------------------------------------------------------------------ derivatives


@pytest.mark.parametrize("op", OP_NAMES)
def test_first_derivatives_agree_with_finite_differences_and_with_one_another(op: str) -> None:
    for number, sample in enumerate(smooth(op)):
        fn = sample.function()
        point = Point(fn, sample.operands, number, sample.project)
        for made in (reverse(fn, point.wrt), forward(fn, point.wrt)):
            verify(made)
        if in_double(sample) and results_in_double(fn) and op not in NOT_THE_DERIVATIVE:
            check_first_order(point, 1e-9)
        else:
            check_adjoint(point, 1e-4 if op not in ("cast",) else 2e-2)


@pytest.mark.parametrize("op", OP_NAMES)
def test_single_precision_derivatives_agree_with_double_precision(op: str) -> None:
    for number, sample in enumerate(smooth(op)):
        if in_double(sample) or "dtype" in sample.attrs:
            continue
        wide = tuple(a.astype({"f": "f8", "c": "c16"}.get(a.dtype.kind, a.dtype)) for a in sample.operands)
        narrow = Point(sample.function(), sample.operands, number, sample.project)
        double = Point(sample.function(wide), wide, number, sample.project)
        for one, other in ((narrow.jvp(narrow.tangents), double.jvp(narrow.tangents_as(wide))),):
            assert_close(one, tuple(o.astype(n.dtype) for o, n in zip(other, one, strict=True)), 2e-4, str(sample))


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_second_derivatives_agree_with_differences_of_the_first_in_every_mix_of_modes(op: str) -> None:
    for number, sample in enumerate(smooth(op)):
        fn = sample.function()
        if not (in_double(sample) and results_in_double(fn)) or op in NOT_THE_DERIVATIVE:
            continue
        point = Point(fn, sample.operands, number, sample.project)
        for first, rest in (
            (reverse(fn, point.wrt, with_outputs=False), point.cts),
            (forward(fn, point.wrt, with_outputs=False), point.tangents),
        ):
            arguments: Arrays = (*sample.operands, *rest)
            project = sample.project if len(rest) == len(point.wrt) else None
            second = Point(first, arguments, number, _project_primal(project, sample))
            verify(reverse(first, second.wrt))
            check_first_order(second, 1e-8)


def _project_primal(project: Any, sample: Sample) -> Any:
    """Directions of the primal operands stay in the space where the op is differenced; of cotangents any will do."""
    if sample.project is None:
        return None
    own = sample.project
    return lambda k, v: own(k, v) if k < len(sample.operands) else v


# ------------------------------------------------------------------ batching


def _rows(a: Array, count: int) -> Array:
    """Variations of an operand: floats a little apart, others turned round."""
    if a.dtype.kind in "fc":
        return np.stack([np.asarray(a * (1 + k / 100), a.dtype) for k in range(count)])
    return np.stack([np.roll(a.reshape(-1), k).reshape(a.shape) for k in range(count)])


def _masks(count: int) -> list[tuple[bool, ...]]:
    """All operands batched, and each alone."""
    alone = [tuple(k == j for j in range(count)) for k in range(count)]
    return [(True,) * count, *alone] if count > 1 else alone


def check_batch(fn: Function, operands: Arrays, mask: tuple[bool, ...], what: str) -> None:
    size = 3
    wide = tuple(_rows(a, size) if on else a for a, on in zip(operands, mask, strict=True))
    batched, flags = batch(fn, mask, size)
    verify(batched)
    assert all(flags)
    got = interpret(batched, wide)
    rows = [interpret(fn, tuple(w[k] if on else w for w, on in zip(wide, mask, strict=True))) for k in range(size)]
    want = tuple(np.stack(column) for column in zip(*rows, strict=True))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), what
        tolerance = 1e-5 if (g.dtype.itemsize in (4, 8) and g.dtype.kind == "c") or g.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("op", [name for name in OP_NAMES if OPS[name].arity != 0 and name != "guard"])
def test_a_batch_equals_the_loop_over_its_rows(op: str) -> None:
    for sample in samples_of(op):
        for mask in _masks(len(sample.operands)):
            if op == "if" and mask[0]:
                continue  # the predicate is turned below
            check_batch(sample.function(), sample.operands, mask, f"{sample} {mask}")


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_a_batch_of_the_gradient_equals_the_loop_over_its_rows(op: str) -> None:
    for number, sample in enumerate(smooth(op)):
        if not in_double(sample):
            continue
        point = Point(sample.function(), sample.operands, number, sample.project)
        first = reverse(point.fn, point.wrt)
        operands: Arrays = (*sample.operands, *point.cts)
        mask = tuple(not (op == "if" and k == 0) for k in range(len(operands)))
        check_batch(first, operands, mask, f"gradient of {sample}")
