"""Errors of compiled code have the class that NumPy's user expects, and the user's line; options of a function."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as pnp
from pullback.errors import IndexRangeError, LostGradientError, NanError, NumericalError, OptionError

X = np.array([1.0, 2.0, 3.0])


def test_an_index_out_of_range_is_an_index_error_with_the_line() -> None:
    g = pb.grad(lambda x, k: np.sum(x[k]))
    np.testing.assert_array_equal(g(X, np.array([0, 0])), [2.0, 0.0, 0.0])
    for _ in range(2):
        with pytest.raises(IndexRangeError, match=r"out of bounds(.|\n)*test_failures.py:\d+"):
            g(X, np.array([0, 3]))
    assert issubclass(IndexRangeError, IndexError)
    np.testing.assert_array_equal(g(X, np.array([-1, 1])), [0.0, 1.0, 1.0])


def test_a_value_that_numpy_refuses_is_a_value_error() -> None:
    f = pb.jit(lambda a, b: a**b)
    assert f(np.array([2]), np.array([3]))[0] == 8
    with pytest.raises(NumericalError, match=r"negative integer powers(.|\n)*test_failures.py"):
        f(np.array([2]), np.array([-3]))


def test_a_singular_matrix_is_numpys_error_with_the_line() -> None:
    g = pb.grad(lambda a, b: np.sum(np.linalg.solve(a, b)))
    g(np.eye(3) * 2.0, X)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=r"Singular matrix(.|\n)*test_failures.py:\d+"):
            g(np.zeros((3, 3)), X)
    np.testing.assert_allclose(g(np.eye(3), X), -np.outer(np.ones(3), X))


def test_a_matrix_that_is_not_definite_is_numpys_error() -> None:
    f = pb.jit(lambda a: np.linalg.cholesky(a))
    with pytest.raises(np.linalg.LinAlgError, match=r"not positive definite(.|\n)*test_failures.py:\d+"):
        f(-np.eye(3))


def test_nan_stops_at_the_op_that_made_it() -> None:
    with pb.options(nan=True):
        g = pb.grad(lambda x: np.sum(np.log(x) * x))
        masked = pb.grad(lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)))
    np.testing.assert_allclose(g(np.ones(2)), np.ones(2))
    with pytest.raises(NanError, match=r"log makes a NaN(.|\n)*test_failures.py:\d+"):
        g(np.array([-1.0, 2.0]))
    with pytest.raises(NanError, match="has a NaN"):
        g(np.array([np.nan, 2.0]))
    np.testing.assert_allclose(masked(np.array([-1.0, 2.0])), [0.0, 0.5])
    assert np.isnan(pb.jit(lambda x: np.log(x))(-1.0))
    assert issubclass(NanError, FloatingPointError)


def test_a_function_keeps_the_options_it_was_made_under() -> None:
    tied = np.array([1.0, 3.0, 3.0])
    with pb.options(ties="all"):
        every = pb.grad(np.max)
        in_loop = pb.grad(lambda x: pb.scan(lambda c, _: (c + np.max(x), ()), 0.0, None, length=2)[0])
    equal = pb.grad(np.max)
    for _ in range(2):
        np.testing.assert_array_equal(every(tied), [0.0, 1.0, 1.0])
        np.testing.assert_array_equal(equal(tied), [0.0, 0.5, 0.5])
        np.testing.assert_array_equal(in_loop(tied), [0.0, 2.0, 2.0])
    with pb.options(ties="first"):
        np.testing.assert_array_equal(every(tied), [0.0, 1.0, 1.0])
        np.testing.assert_array_equal(pb.vjp(np.max, tied)[1](1.0)[0], [0.0, 1.0, 0.0])


def test_an_unknown_option_lists_the_options() -> None:
    with pytest.raises(OptionError, match="ties"), pb.options(tie="all"):
        pass


def stored(np_: Any) -> Any:
    def f(x: Any) -> Any:
        out = np_.zeros(3)
        out[0] = x
        return np_.sum(out**2)

    return f


def test_without_patching_numpy_is_left_alone_and_the_namespace_serves() -> None:
    with pb.options(patch=False):
        plain, ours = pb.grad(stored(np)), pb.grad(stored(pnp))
    assert ours(3.0) == 6.0
    with pytest.raises(LostGradientError):
        plain(3.0)
    assert pb.grad(stored(np))(3.0) == 6.0
    assert type(pnp.zeros(2)) is np.ndarray
    assert pnp.pi == np.pi


def test_a_page_of_all_passes_is_written(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with pb.options(html=str(path)):
        pb.grad(lambda x: np.sum(np.tanh(x)))(X)
    text = path.read_text(encoding="utf-8")
    assert all(word in text for word in ("traced", "simplify", "kernels", "tanh"))


def test_a_dump_is_printed_though_the_code_is_on_disk(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.cosh(x))

    with pb.options(cache_dir=str(tmp_path)):
        pb.grad(f)(X)
        assert capsys.readouterr().err == ""
        with pb.options(dump="simplify"):
            pb.grad(f)(X)
    assert "after simplify" in capsys.readouterr().err
