"""Transforms of real numbers by complex ones of half the length: values, the ends, gradients."""

from typing import Any

import numpy as np
import pytest

import pullback

Array = np.ndarray[Any, Any]
LENGTHS = (2, 7, 8, 10, 34, 64, 502, 1000)


def rows(n: int, dtype: str) -> Array:
    return (np.random.default_rng(n).standard_normal((3, n)) * 10).astype(dtype)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("n", LENGTHS)
def test_rfft_and_irfft_are_numpys(n: int, dtype: str, norm: Any) -> None:
    x = rows(n, dtype)
    found, wanted = pullback.jit(lambda x: np.fft.rfft(x, norm=norm))(x), np.fft.rfft(x, norm=norm)
    assert found.dtype == wanted.dtype
    tolerance = 20 * np.finfo(wanted.real.dtype).eps
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())
    back = pullback.jit(lambda z: np.fft.irfft(z, n, norm=norm))(wanted)
    again = np.fft.irfft(wanted, n, norm=norm)
    assert back.dtype == again.dtype
    np.testing.assert_allclose(back, again, rtol=0, atol=tolerance * np.abs(again).max())


@pytest.mark.parametrize("n", [8, 34, 1000])
def test_the_first_and_the_last_frequency_of_real_numbers_are_real(n: int) -> None:
    found = pullback.jit(np.fft.rfft)(rows(n, "f8"))
    assert not found[:, [0, -1]].imag.any()


def test_irfft_does_not_look_at_imaginary_parts_that_real_numbers_do_not_have() -> None:
    z = np.arange(5, dtype=complex)
    z.imag = [np.inf, 1.0, 2.0, 3.0, np.nan]
    np.testing.assert_allclose(
        pullback.jit(np.fft.irfft)(z), np.fft.irfft(np.where([1, 0, 0, 0, 1], z.real, z)), rtol=1e-14, atol=1e-15
    )


@pytest.mark.parametrize("n", [8, 10, 64])
def test_gradients_are_those_of_the_whole_transform(n: int) -> None:
    weight = np.random.default_rng(1).standard_normal(n // 2 + 1)

    def by_half(x: Array) -> Any:
        z = np.fft.rfft(x)
        return np.sum(weight * np.abs(z) ** 3) + np.sum(np.fft.irfft(z * z * weight, n) ** 3)

    def by_whole(x: Array) -> Any:
        z = np.fft.fft(x)[: n // 2 + 1]
        square = z * z * weight
        mirrored = np.conj(square[1:-1][::-1])
        whole = np.concatenate([square, mirrored])
        return np.sum(weight * np.abs(z) ** 3) + np.sum(np.fft.ifft(whole).real ** 3)

    x = rows(n, "f8")[0] / 10
    np.testing.assert_allclose(pullback.grad(by_half)(x), pullback.grad(by_whole)(x), rtol=1e-10, atol=1e-10)
