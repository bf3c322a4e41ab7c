"""numpy.linalg and numpy.fft: name, function, arguments."""

from typing import Any

import numpy as np

Sample = tuple[Any, ...]  # name, function, arguments

RNG = np.random.default_rng(0)
x, y, z, m = RNG.normal(size=(3, 4)), RNG.normal(size=4), RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 4))

L, F = np.linalg, np.fft
spd, bm, c4, m6 = m @ m.T + 4 * np.eye(4), RNG.normal(size=(2, 3, 3)), m + 1j * m.T, RNG.normal(size=(6, 6))
s6 = m6.copy()
s6[0] = 0
rng = RNG

SAMPLES: list[Sample] = [
    ("solve", L.solve, m, y),
    ("solve2", L.solve, bm, bm),
    ("solveb", L.solve, bm, bm[0]),
    ("inv", L.inv, m),
    ("invc", L.inv, c4),
    ("det", L.det, m),
    ("det3", L.det, bm),
    ("det6", L.det, m6),
    ("dets", L.det, s6),
    ("slogdet", lambda a: tuple(L.slogdet(a)), m),
    ("chol", L.cholesky, spd),
    ("cholu", lambda a: L.cholesky(a, upper=True), spd),
    ("eigh", lambda a: tuple(L.eigh(a)), spd),
    ("eighU", lambda a: L.eigh(a, "U")[0], spd),
    ("eigvalsh", L.eigvalsh, spd),
    ("eigh-U", lambda a: tuple(L.eigh(a, "U")), spd),
    ("eigh-c", lambda a: tuple(L.eigh(a)), c4 + c4.conj().T),
    ("eig-real", lambda a: tuple(L.eig(a)), spd),
    ("eig-pairs", lambda a: tuple(L.eig(a)), m),
    ("eig-batch", lambda a: tuple(L.eig(a)), bm),
    ("eig-c", lambda a: tuple(L.eig(a)), c4),
    ("eig-f4", lambda a: tuple(L.eig(a)), m.astype("f4")),
    ("eig-int", lambda a: tuple(L.eig(a)), np.array([[2, 1], [1, 3]])),
    ("eig-none", lambda a: tuple(L.eig(a)), np.zeros((0, 0))),
    ("eigvals-real", L.eigvals, spd),
    ("eigvals-pairs", L.eigvals, m),
    ("eigvals-c", L.eigvals, c4),
    ("roots", np.roots, np.array([1.0, -6, 11, -6])),
    ("roots-pairs", np.roots, np.array([1.0, 0, 1])),
    ("roots-zeros", np.roots, np.array([0, 0, 2, 1.0, 0])),
    ("roots-none", np.roots, np.zeros(3)),
    ("roots-one", np.roots, np.array([0, 3.0, 0, 0])),
    ("roots-int", np.roots, np.array([1, -3, 2])),
    ("roots-c", np.roots, np.array([1j, 2, 1 - 1j])),
    ("poly-matrix", np.poly, m),
    ("poly-pairs", np.poly, np.array([1 + 1j, 1 - 1j])),
    ("poly-c", np.poly, np.array([1 + 1j, 2 - 1j])),
    ("svd-wide", lambda a: tuple(L.svd(a)), x),
    ("svd-tall", lambda a: tuple(L.svd(a)), x.T.copy()),
    ("svd-c", lambda a: tuple(L.svd(a)), (x + 1j * x[::-1])[:2]),
    ("svd-batch", lambda a: tuple(L.svd(a)), z),
    ("svd-none", lambda a: tuple(L.svd(a)), np.zeros((0, 3))),
    ("svd-hermitian", lambda a: tuple(L.svd(a, hermitian=True)), spd - 5 * np.eye(4)),
    ("qr-complete", lambda a: tuple(L.qr(a, "complete")), x.T.copy()),
    ("qr-complete-wide", lambda a: tuple(L.qr(a, "complete")), x),
    ("qr-complete-batch", lambda a: tuple(L.qr(a, mode="complete")), np.swapaxes(z, 1, 2).copy()),
    ("rank-hermitian", lambda a: L.matrix_rank(a, hermitian=True), np.outer(y, y)),
    ("svd", lambda a: tuple(L.svd(a)), m),
    ("svdr", lambda a: tuple(L.svd(a, full_matrices=False)), x),
    ("svdv", lambda a: L.svd(a, compute_uv=False), x),
    ("qr", lambda a: tuple(L.qr(a)), m),
    ("qrw", lambda a: tuple(L.qr(a)), x),
    ("qrt", lambda a: tuple(L.qr(a)), x.T.copy()),
    ("qrr", lambda a: L.qr(a, "r"), m),
    ("pinv", L.pinv, x),
    ("pinv2", L.pinv, x.T),
    ("pinvdef", L.pinv, np.outer(y, y)),
    ("rank", L.matrix_rank, m),
    ("cond", L.cond, m),
    ("cond1", lambda a: L.cond(a, 1), m),
    ("lstsq", lambda a, b: L.lstsq(a, b), rng.normal(size=(5, 3)), rng.normal(size=5)),
    ("lstsqw", lambda a, b: L.lstsq(a, b), x, rng.normal(size=(3, 2))),
    ("n2", lambda a: L.norm(a, 2), x),
    ("nuc", lambda a: L.norm(a, "nuc"), x),
    ("ts", lambda a, b: L.tensorsolve(a, b), rng.normal(size=(2, 3, 6)), rng.normal(size=(2, 3))),
    ("mp-1", lambda a: L.matrix_power(a, -2), m),
    ("f4", L.inv, m.astype("f4")),
    ("inti", L.inv, np.array([[2, 1], [1, 3]])),
    ("fs", F.fftshift, x),
    ("ifs", F.ifftshift, x),
    ("fft5", F.fft, rng.normal(size=5) + 1j),
    *[
        (f"{n}-{size}-{norm}", lambda a, n=n, size=size, norm=norm: getattr(F, n)(a, size, axis=0, norm=norm), x)
        for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for size in (None, 3, 6)
        for norm in (None, "ortho", "forward")
    ],
    *[
        (f"{n}-{kind}", getattr(F, n), (x * 10).astype(kind))
        for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for kind in ("f4", "f2", "i8")
    ],
    *[
        (f"{n}-{axes}", lambda a, n=n, axes=axes: getattr(F, n)(a, s=None if axes is None else (3, 3), axes=axes), z)
        for n in ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn")
        for axes in (None, (0, 2))
        if not (axes is None and n.endswith("2"))
    ],
]
