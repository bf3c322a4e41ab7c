"""Every op's native code agrees with its evaluation, on all samples: exactly where the op only moves or compares,
within a few units in the last place elsewhere."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pullback.config import Options
from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs, Function
from pullback.ir.interpret import interpret
from pullback.ir.ops import OPS
from pullback.ir.types import tensor_type
from pullback.passes.fuse import fuse
from pullback.passes.memory import plan
from tests.ir.samples import Sample, sampled_ops, samples_of
from tests.native import compile_plan

Array = np.ndarray[Any, Any]
OPTIONS = Options()
ULPS = 8
# Results conditioned by the data, or of a free sign: compared with a tolerance of the size of the whole.
LOOSE = frozenset(
    {"dot_general", "cholesky", "solve", "triangular_solve", "slogdet", "eigh", "eig", "eigvals", "svd", "qr", "fft"}
)
LOOSE |= frozenset({"cumprod", "cumsum", "sum", "scan", "while", "if", "checkpoint", "scatter_add"})
LOOSE |= frozenset({"kl_div", "gammainc", "gammaincc", "jv", "yv", "polygamma", "digamma", "lgamma"})
LOOSE |= frozenset({"prod", "complement"})


def together(samples: Sequence[Sample]) -> tuple[Function, list[Array]]:
    """One function that does all samples, so that there is one compilation for each op."""
    b = Builder()
    results, arguments = [], []
    for sample in samples:
        params = [b.param(tensor_type(a.dtype, a.shape)) for a in sample.operands]
        results += b.add(OPS[sample.op], params, Attrs(sample.attrs), sample.regions).results
        arguments += sample.operands
    return b.function("op", results), arguments


def assert_near(got: Array, want: Array, ulps: float, what: str) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    if got.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    eps = float(np.finfo(got.dtype).eps)
    size = float(np.max(np.abs(want), initial=1.0, where=np.isfinite(want))) if ulps > ULPS else 0.0
    np.testing.assert_allclose(got, want, rtol=ulps * eps, atol=ulps * eps * size, err_msg=what)
    if got.dtype in (np.float32, np.float64) and ulps == ULPS:
        number = ~np.isnan(want)  # the sign of NaN is nobody's business
        np.testing.assert_array_equal(
            np.signbit(got)[number], np.signbit(want)[number], err_msg=f"{what}: signs of zeros"
        )


@pytest.mark.parametrize("op", sampled_ops())
def test_native_code_agrees_with_the_evaluation(op: str) -> None:
    samples = samples_of(op)
    groups = [[s] for s in samples] if samples[0].regions else [samples]
    for group in groups:
        fn, arguments = together(group)
        if not fn.results:
            continue  # an effect; its failing is tested with the runtime
        native = compile_plan(plan(fuse(fn, OPTIONS), OPTIONS))
        want = interpret(fn, arguments)
        ulps = 1000 if op in LOOSE else ULPS
        for number, (g, w) in enumerate(zip(native(*arguments), want, strict=True)):
            assert_near(g, w, ulps, f"{op}, result {number}")
