"""Functions of scipy.special, which reach the tracer through NumPy's protocols; skipped where SciPy is missing."""

import numpy as np
import pytest

from tests.tracer.support import assert_as_numpy, evaluated

special = pytest.importorskip("scipy.special")

X = np.random.default_rng(0).normal(size=(3, 4))
P, U = np.abs(X) + 0.1, 1 / (1 + np.exp(-X))
REAL_LINE = (
    "erf erfc gammaln loggamma psi gamma expit log_expit ndtr log_ndtr entr exp10 exp2 expm1 log1p cbrt sindg i0 i0e "
    "i1 i1e j0 j1 digamma"
)


@pytest.mark.parametrize("name", REAL_LINE.split())
def test_functions_of_one_real_number_agree(name: str) -> None:
    assert_as_numpy(lambda v: getattr(special, name)(v), X)


@pytest.mark.parametrize("name", ["y0", "y1"])
def test_functions_of_a_positive_number_agree(name: str) -> None:
    assert_as_numpy(lambda v: getattr(special, name)(v), P)


@pytest.mark.parametrize("name", ["logit", "ndtri", "erfinv", "erfcinv"])
def test_functions_of_a_probability_agree(name: str) -> None:
    assert_as_numpy(lambda v: getattr(special, name)(v), U)


@pytest.mark.parametrize("name", ["beta", "betaln", "xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_functions_of_two_numbers_agree(name: str) -> None:
    assert_as_numpy(lambda a, b: getattr(special, name)(a, b), P, U)


def test_functions_written_in_python_agree() -> None:
    for function in (
        lambda a: special.logsumexp(a, axis=1),
        lambda a: special.softmax(a, axis=1),
        lambda a: special.log_softmax(a, axis=0),
        lambda a: special.polygamma(2, np.abs(a) + 0.1),
        lambda a: special.multigammaln(5 + a[0, 0] * 0, 2),
    ):
        assert_as_numpy(function, X)


def test_edges_of_entropies_are_scipys() -> None:
    edge = np.array([0.0, -0.0, 1.0, -1.0, np.inf, np.nan, 0.5])
    for name in ("entr", "expit", "log_expit", "erf", "ndtr", "i0e", "j0"):
        assert_as_numpy(lambda v, name=name: getattr(special, name)(v), edge)
    for name in ("xlogy", "rel_entr", "kl_div"):
        assert_as_numpy(lambda a, b, name=name: getattr(special, name)(a, b), edge[:4], edge[:4][::-1])


def test_bessel_functions_hold_their_digits_far_out() -> None:
    line = np.concatenate([np.linspace(-60, 60, 121), [1e-8, 24.999, 25.001, -20.001, 700.0]])
    for name in ("i0e", "i1e", "j0", "j1", "y0", "y1"):
        at = line if name[0] in "ij" else np.abs(line[line != 0])
        wanted = getattr(special, name)(at)
        np.testing.assert_allclose(
            evaluated(lambda v, n=name: getattr(special, n)(v), at), wanted, rtol=1e-13, atol=2e-15
        )


def test_quantiles_hold_their_digits_in_the_tails() -> None:
    at = np.array([1e-300, 1e-20, 1e-6, 0.02425, 0.3, 0.4999, 0.5, 0.7, 1 - 1e-12, 0.0, 1.0, -1.0, np.nan])
    np.testing.assert_allclose(evaluated(special.ndtri, at), special.ndtri(at), rtol=5e-15, atol=1e-16)
