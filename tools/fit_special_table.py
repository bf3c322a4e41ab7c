"""What `fit_polynomials.py` fits for Bessel functions and inverse error functions."""

from __future__ import annotations

from itertools import pairwise

from fit_table import Fit, Pieces, octave_quarters
from mpmath import mp, mpf

TURN = 8  # from here on Hankel's form of J and Y


def hankel(order: int, w: mpf) -> mp.mpc:
    """P + i Q of sqrt(2 / (pi x)) (P + i Q) exp(i (x - (2 order + 1) pi / 4)) = J + i Y, at x = 1 / sqrt(w)."""
    x = 1 / mp.sqrt(w)
    phase = x - (2 * order + 1) * mp.pi / 4
    return (mp.besselj(order, x) + 1j * mp.bessely(order, x)) * mp.expj(-phase) * mp.sqrt(mp.pi * x / 2)


def y_smooth(order: int, x: mpf) -> mpf:
    """Y without its logarithm and its pole."""
    if x < mpf(2) ** -100:
        return mpf(0) if order else 2 / mp.pi * (mp.euler - mp.log(2))
    singular = mp.log(x) * mp.besselj(order, x) - (1 / x if order else 0)
    return mp.bessely(order, x) - 2 / mp.pi * singular


def scaled_i(order: int, x: mpf) -> mpf:
    """exp(-x) I(x), of order 1 divided by x."""
    if order and x < mpf(2) ** -100:
        return mp.exp(-x) / 2
    return mp.exp(-x) * mp.besseli(order, x) / (x if order else 1)


def far_i(order: int, z: mpf) -> mpf:
    x = 1 / z
    return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)


def scaled_k(order: int, x: mpf) -> mpf:
    return mp.sqrt(x) * mp.exp(x) * mp.besselk(order, x)


def erfcinv_of_root(s: mpf) -> mpf:
    """erfcinv(exp(-s**2)), by Newton's method on the logarithm."""
    x = s * mpf("0.9")
    for _ in range(60):
        value = mp.erfc(x)
        step = (mp.log(value) + s * s) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < abs(x) * mpf(10) ** -45:
            break
    return x


def erfinv_tail(z: mpf) -> mpf:
    y = mp.sqrt(z)
    return (mp.erfinv(y) / y - mp.sqrt(mp.pi) / 2) / z


HALVES = tuple(pairwise([mpf(k) / 2 for k in range(2 * TURN + 1)]))
ZEROS = {0: (mp.besseljzero(0, 1), mp.besseljzero(0, 2)), 1: (mpf(0), mp.besseljzero(1, 1), mp.besseljzero(1, 2))}
ROOTS = octave_quarters(-1, 6)[2:-1]  # from 3/4 to 28


def envelope(x: mpf) -> mpf:
    return 1 / mp.sqrt(1 + x)


def bessel_j(order: int, count: int) -> Pieces:
    return Pieces(
        f"J{order}",
        f"J_{order}(x) for 0 <= x < 8, intervals of 1/2; the centre is a zero where there is one",
        lambda x: mp.besselj(order, x),
        HALVES,
        None,
        count,
        0,
        zeros=ZEROS[order],
    )


def bessel_y(order: int, count: int) -> Pieces:
    singular = "log(x) J_1(x) - 1 / x" if order else "log(x) J_0(x)"
    return Pieces(
        f"Y{order}_SMOOTH",
        f"Y_{order}(x) - 2 / pi ({singular}) for 0 <= x < 8, intervals of 1/2; the error is beside 1 / sqrt(1 + x)",
        lambda x: y_smooth(order, x),
        HALVES,
        None,
        count,
        0,
        zeros=ZEROS[1][:1] if order else (),
        beside=envelope,
    )


def hankel_part(order: int, imaginary: bool, count: int) -> Fit:
    name = "Q" if imaginary else "P"
    form = "x Q" if imaginary else "(P - 1) x**2"
    formula = f"{form} of Hankel's form of J_{order} and Y_{order}, in w = x**-2, x >= 8"

    def function(w: mpf) -> mpf:
        value = hankel(order, w)
        return mp.im(value) / mp.sqrt(w) if imaginary else (mp.re(value) - 1) / w

    return Fit(
        f"HANKEL_{name}{order}",
        formula,
        function,
        (1e-9, 1 / 64),
        mp.sqrt if imaginary else (lambda w: w),
        count,
        0,
    )


def modified(order: int, count: int) -> Pieces:
    name = f"exp(-x) I_{order}(x)" + (" / x" if order else "")
    return Pieces(
        f"I{order}",
        f"{name} for 0 <= x < 15, four intervals in each octave of x + 1",
        lambda x: scaled_i(order, x),
        octave_quarters(0, 4, 1),
        None,
        count,
        0,
    )


def modified_far(order: int, count: int) -> Fit:
    return Fit(
        f"I{order}_FAR",
        f"(sqrt(x) exp(-x) I_{order}(x) - 1 / sqrt(2 pi)) / z with z = 1 / x, x >= 15",
        lambda z: (far_i(order, z) - 1 / mp.sqrt(2 * mp.pi)) / z,
        (1e-9, 1 / 15),
        lambda z: z / far_i(order, z),
        count,
        0,
    )


def second_kind(order: int, count: int) -> Pieces:
    return Pieces(
        f"K{order}",
        f"sqrt(x) exp(x) K_{order}(x) for 1 <= x < 16, four intervals in each octave",
        lambda x: scaled_k(order, x),
        octave_quarters(0, 4),
        None,
        count,
        0,
    )


def second_kind_far(order: int, count: int) -> Fit:
    return Fit(
        f"K{order}_FAR",
        f"(sqrt(x) exp(x) K_{order}(x) - sqrt(pi / 2)) / z with z = 1 / x, x >= 16",
        lambda z: (scaled_k(order, 1 / z) - mp.sqrt(mp.pi / 2)) / z,
        (1e-9, 1 / 16),
        lambda z: z / scaled_k(order, 1 / z),
        count,
        0,
    )


INVERSE_ERF: tuple[Fit | Pieces, ...] = (
    Fit(
        "ERFINV_TAIL",
        "(erfinv(y) / y - sqrt(pi) / 2) / z with z = y**2, |y| <= 1/2",
        erfinv_tail,
        (1e-12, 0.2501),
        lambda z: z,
        13,
        0,
    ),
    Pieces(
        "ERFCINV",
        "erfcinv(exp(-s**2)) for 3/4 <= s < 28, four intervals in each octave",
        erfcinv_of_root,
        ROOTS,
        None,
        13,
        0,
    ),
)
BESSEL: tuple[Fit | Pieces, ...] = (
    bessel_j(0, 12),
    bessel_j(1, 12),
    bessel_y(0, 12),
    bessel_y(1, 12),
    *(hankel_part(order, imaginary, 12) for order in (0, 1) for imaginary in (False, True)),
)
MODIFIED: tuple[Fit | Pieces, ...] = (
    modified(0, 13),
    modified(1, 13),
    modified_far(0, 14),
    modified_far(1, 14),
    second_kind(0, 12),
    second_kind(1, 12),
    second_kind_far(0, 10),
    second_kind_far(1, 10),
)
