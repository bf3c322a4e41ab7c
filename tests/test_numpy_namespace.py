"""`pullback.numpy`: the names of the Python array API standard, and traces that leave numpy alone."""

import os
import subprocess
import sys
from typing import Any

import numpy
import pytest

import pullback
import pullback.numpy as np

IS_OLD = numpy.lib.NumpyVersion(numpy.__version__) < "2.3.0"
pytestmark = pytest.mark.skipif(IS_OLD, reason="this NumPy follows an earlier standard")

NAMES = """
__array_api_version__ __array_namespace_info__ abs acos acosh add all any arange argmax argmin argsort asarray
asin asinh astype atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to can_cast ceil clip concat conj copysign cos cosh
count_nonzero cumulative_prod cumulative_sum diff divide empty empty_like equal exp expand_dims expm1 eye
finfo flip floor floor_divide from_dlpack full full_like greater greater_equal hypot iinfo imag isdtype
isfinite isin isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not
logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply
negative nextafter nonzero not_equal ones ones_like permute_dims positive pow prod real reciprocal remainder
repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square squeeze stack std
subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc unique_all unique_counts
unique_inverse unique_values unstack var vecdot where zeros zeros_like e pi inf nan newaxis bool int8 float32
float64 complex128
"""
LINALG = """
cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose
outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
"""
FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift"


def test_it_has_every_name_of_the_standard() -> None:
    assert np.__array_api_version__ == "2024.12"
    for space, names in ((np, NAMES), (np.linalg, LINALG), (np.fft, FFT)):
        assert [name for name in names.split() if not hasattr(space, name)] == []


def filled(x: Any) -> Any:
    out = np.zeros(3)
    out[1:] = np.concat([x, x[:1]])[:2]
    return np.sum(out * np.asarray([1.0, 2.0, 3.0]))


def test_traces_leave_numpy_alone_where_the_option_says_so() -> None:
    seen: list[bool] = []

    def function(x: Any) -> Any:
        seen.append(type(numpy.zeros(1)) is numpy.ndarray)
        return filled(x)

    for patch in (True, False):
        with pullback.options(patch=patch):
            gradient = pullback.grad(lambda x: function(x))
        numpy.testing.assert_allclose(gradient(numpy.ones(2)), [2.0, 3.0])
    assert seen == [False, True]


def test_arrays_name_the_namespace_to_code_written_for_the_standard() -> None:
    def standard(x: Any) -> Any:
        xp = x.__array_namespace__()
        out = xp.zeros((2,), dtype=x.dtype)
        out[0] = xp.sum(x) ** 2
        return xp.sum(xp.permute_dims(xp.stack([out, out]), (1, 0)) * xp.astype(xp.arange(2), x.dtype))

    numpy.testing.assert_allclose(pullback.grad(standard)(numpy.ones(3)), [6.0, 6.0, 6.0])


# Functions of SciPy that are written for the standard: value and gradient, against plain NumPy and differences.
SCIPY = """
import numpy as np, pullback as pb, scipy.integrate as si, scipy.special as sc, scipy.stats as st

X = np.array([0.5, 1.2, 2.3, 0.7, 1.9])
for f in (
    sc.logsumexp,
    lambda x: np.sum(sc.softmax(x) * X),
    lambda x: np.sum(st.zscore(x) ** 3),
    st.gmean,
    st.skew,
    st.kurtosis,
    st.variation,
    st.entropy,
    lambda x: st.trim_mean(x, 0.2),
    si.trapezoid,
    lambda x: np.sum(si.cumulative_trapezoid(x) ** 2),
    lambda x: si.simpson(x, dx=0.5),
):
    value, gradient = pb.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), 1e-12)
    steps = 1e-6 * np.eye(5)
    slopes = [(f(X + h) - f(X - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, slopes, 1e-6, 1e-8)
print("followed")
"""


def test_scipys_functions_for_the_standard_are_followed() -> None:
    pytest.importorskip("scipy")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run = subprocess.run([sys.executable, "-c", SCIPY], capture_output=True, text=True, env=environment, check=False)
    assert run.stdout == "followed\n", run.stderr
