"""NumPy's functions on odd arrays: empty, without axes, of one element, with NaN, infinities, signed zeros, denormals,
of every dtype and memory layout. Value, dtype, shape, sign of zero and the refusals are NumPy's.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from tests.tracer.support import evaluated

Function = Callable[[Any], Any]
RNG = np.random.default_rng(7)
ODD = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -2.5, 5e-324, 0.5, 2.5]


def _odd(shape: tuple[int, ...], dtype: str) -> Any:
    with np.errstate(all="ignore"):
        x = RNG.choice(ODD, size=shape).astype(dtype)
    if x.dtype.kind == "c":
        x.imag = RNG.choice([0.0, 1.0, -1.0, 2.0], size=shape)
    return x


def _plain(shape: tuple[int, ...], dtype: str) -> Any:
    x = np.asarray(RNG.normal(size=shape) * 3)
    if dtype == "?":
        return x > 0
    if dtype[0] in "iu":
        return np.abs(x).astype(dtype)
    return np.asarray(x + 1j * np.round(x[::-1] if x.ndim else x) if dtype[0] == "c" else x).astype(dtype)


ZEROS = np.array([[0.0, -0.0, 0.0], [-0.0, -0.0, -0.0], [-0.0, 0.0, 0.0], [0.0, 0.0, -0.0]])
INPUTS: dict[str, Any] = {
    **{f"empty {shape}": np.empty(shape) for shape in ((0,), (0, 3), (3, 0))},
    **{f"{dtype} {shape}": _plain(shape, dtype) for dtype in ("f8", "f4", "c16", "i4") for shape in ((), (5,), (3, 4))},
    **{f"{dtype} (5,)": _plain((5,), dtype) for dtype in ("f2", "c8", "i1", "u1", "?")},
    **{f"odd {dtype}": _odd((3, 4), dtype) for dtype in ("f8", "f4", "c16")},
    "one element": np.array([[-2.5]]),
    "zeros f8": ZEROS,
    "zeros f2": ZEROS.astype("f2"),
    "Fortran order": np.asfortranarray(_plain((3, 4), "f8")),
    "negative strides": _plain((3, 4), "f8")[::-1, ::-1],
}


def _per_axis(name: str) -> Iterator[tuple[str, Function]]:
    function: Any = getattr(np, name)
    for axis in (None, 0, -1):
        yield f"{name} {axis}", lambda a, axis=axis: function(a, axis=axis)
    if not name.startswith(("cum", "nancum", "average")):
        yield f"{name} keepdims", lambda a: function(a, axis=0, keepdims=True)


def _numpys(*names: str) -> dict[str, Function]:
    return {name: getattr(np, name) for name in names}


REDUCED = """sum prod max min ptp mean std var any all argmax argmin nansum nanprod nanmax nanmin nanmean nanstd nanvar
    nanargmax nanargmin median nanmedian cumsum cumprod nancumsum average"""
REDUCTIONS: dict[str, Function] = dict(row for name in REDUCED.split() for row in _per_axis(name))
OPTIONS: dict[str, Function] = {
    "sum initial": lambda a: np.sum(a, axis=0, initial=2),
    "max initial where": lambda a: np.max(a, axis=-1, initial=1, where=np.abs(a) > 1),
    "nanmin initial": lambda a: np.nanmin(a, initial=1.5),
    "mean where": lambda a: np.mean(a, axis=-1, where=np.abs(a) > 1),
    "var ddof": lambda a: np.var(a, axis=0, ddof=1),
    "var dtype": lambda a: np.var(a, dtype="c16"),
    "nanvar ddof": lambda a: np.nanvar(a, ddof=9),
    "mean into integers": lambda a: np.mean(a * 0 + 7, axis=0, dtype="i4"),
    "average returned": lambda a: np.average(a, axis=-1, returned=True),
    "quantile": lambda a: np.quantile(a, [0.0, 0.3, 1.0], axis=0),
    "quantile of an integer": lambda a: np.quantile(a, 1),
    "quantile weibull": lambda a: np.quantile(a, 0.2, method="weibull", axis=-1),
    "nanquantile": lambda a: np.nanquantile(a, 0.4, axis=-1),
    "clip": lambda a: np.clip(a, 0, 2),
    "clip by arrays": lambda a: np.clip(a, np.zeros(a.shape), 2.0),
    "clip below": lambda a: np.clip(a, 0.0, None),
    "clip crossed": lambda a: np.clip(a, 2, -1),
    "maximum": lambda a: np.maximum(a, a[..., ::-1] if a.ndim else a),
    "minimum zero": lambda a: np.minimum(a, -0.0),
    "maximum.accumulate": lambda a: np.maximum.accumulate(a, axis=-1),
    "subtract.reduce": lambda a: np.subtract.reduce(a, axis=-1),
    "divide.accumulate": np.divide.accumulate,
    "logical_xor.reduce": np.logical_xor.reduce,
    "add.reduceat": lambda a: np.add.reduceat(a, [0, 2, 1]),
    "round": lambda a: np.round(a, 1),
    "power": lambda a: a**2,
    "complex root": lambda a: (a + 0j) ** 0.5,
    "digitize": lambda a: np.digitize(a, [2, 1, 0]),
    "searchsorted": lambda a: np.searchsorted([0, 1, 2.0], a),
    "interp": lambda a: np.interp(a, [0, 1, 2.0], [3, 4, 5.0]),
    "bincount": np.bincount,
    "histogram": lambda a: np.histogram(a, 3, (-1, 1), density=True),
    "norm": np.linalg.norm,
    "norm inf": lambda a: np.linalg.norm(a, np.inf),
    "norm 1 axis": lambda a: np.linalg.norm(a, 1, axis=0),
    "cov": np.cov,
    "cov columns": lambda a: np.cov(a, rowvar=False),
    "repeat": lambda a: np.repeat(a, 2, axis=0),
    "squeeze": lambda a: np.squeeze(a, 0),
    "diff": np.diff,
    "trim_zeros": np.trim_zeros,
    "pad mean": lambda a: np.pad(a, 1, mode="mean"),
    "pad odd": lambda a: np.pad(a, 2, mode="reflect", reflect_type="odd"),
    "concatenate dtype": lambda a: np.concatenate([a, a], dtype="f4"),
    "where beyond": lambda a: np.where(a > 0, a, -1),
    "sort": lambda a: np.sort(a * 1.0, axis=-1) + 0.0,
    "sort down": lambda a: a[..., ::-1] if a.ndim else a,
    "argsort": lambda a: np.argsort(a, axis=-1, kind="stable"),
    **_numpys("gradient", "ediff1d", "nan_to_num", "sinc", "spacing", "reciprocal", "sign", "isposinf"),
}


FUNCTIONS = REDUCTIONS | OPTIONS
SUMS: dict[str, Function] = {
    **{name: f for name, f in REDUCTIONS.items() if name.split()[0] in ("sum", "mean", "nansum", "nanmean", "average")},
    "einsum": lambda a: np.einsum("ij->i", a),
    "prod": lambda a: np.prod(a, axis=0),
}


def _leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, tuple | list) else [np.asarray(x)]


def _parts(x: Any) -> list[Any]:
    return [x.real, x.imag] if x.dtype.kind == "c" else [x]


# Which of 0.0 and -0.0 NumPy gives depends on the lanes of its loops, or on sorting networks.
BY_CHANCE = ("add.reduceat", "nanmin initial", "max None", "min None", "nanmax None", "nanmin None", "ptp", "median")
IN_FUSED_KERNELS = (*BY_CHANCE, "max", "min", "nanm", "median")


def assert_same(found: Any, wanted: Any, label: str, by_chance: tuple[str, ...] = BY_CHANCE) -> None:
    for x, y in zip(_leaves(found), _leaves(wanted), strict=True):
        assert x.dtype == y.dtype, f"{label}: {x.dtype} for {y.dtype}"
        assert x.shape == y.shape, f"{label}: {x.shape} for {y.shape}"
        for u, v in zip(_parts(x), _parts(y), strict=True):
            scale = np.max(np.abs(v[np.isfinite(v)]), initial=0.0)
            eps = float(np.finfo(v.dtype).eps) if v.dtype.kind == "f" else 0.0
            np.testing.assert_allclose(u, v, rtol=32 * eps, atol=8 * eps * min(scale, 1e3), err_msg=label)
        if x.dtype.kind == "f" and not label.startswith(by_chance):
            zero = (x == 0) & (y == 0)
            np.testing.assert_array_equal(np.signbit(x[zero]), np.signbit(y[zero]), f"sign of zero: {label}")


def _result(function: Callable[..., Any], *args: Any) -> Any:
    """The result, or the exception that was raised."""
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except Exception as error:
        return error


def _numpys_results(name: str) -> dict[str, Any]:
    """NumPy's results and exceptions. Its nanmedian of complex numbers goes by way of masked arrays, and is its own."""
    x = INPUTS[name]
    labels = [k for k in FUNCTIONS if not (k.startswith("nanmedian") and name == "odd c16")]
    return {label: _result(FUNCTIONS[label], x.copy(order="K")) for label in labels}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", INPUTS)
def test_odd_arrays_give_numpys_values_and_refusals(name: str) -> None:
    x = INPUTS[name]
    for label, wanted in _numpys_results(name).items():
        found = _result(evaluated, FUNCTIONS[label], x)
        if isinstance(wanted, Exception):
            assert isinstance(found, Exception), f"{label} of {name} is accepted, NumPy: {wanted}"
        else:
            assert not isinstance(found, Exception), f"{label} of {name} is refused: {found}"
            assert_same(found, wanted, f"{label} of {name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["odd f8", "odd f4", "odd c16", "zeros f8", "zeros f2", "c16 (3, 4)", "i1 (5,)"])
def test_native_code_gives_numpys_values_on_odd_arrays(name: str) -> None:
    x = INPUTS[name]
    wanted = _numpys_results(name)
    fine = [k for k, w in wanted.items() if not isinstance(w, Exception)]
    found = pullback.jit(lambda a: tuple([FUNCTIONS[k](a) for k in fine]))(x)
    for label, result in zip(fine, found, strict=True):
        assert_same(result, wanted[label], f"{label} of {name}", IN_FUSED_KERNELS)


def test_a_big_endian_read_only_array_is_read_as_it_is() -> None:
    x = np.arange(6.0).astype(">f8").reshape(2, 3)
    x.flags.writeable = False
    assert_same(pullback.jit(lambda a: np.max(a, axis=0))(x), np.max(x.astype("f8"), axis=0), "big endian")


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_of_one_negative_zero_is_numpys(name: str) -> None:
    x = np.array([[-0.0]])
    assert np.array_equal(np.signbit(pullback.jit(SUMS[name])(x)), np.signbit(SUMS[name](x)))


# of arguments x and y of four elements, with zeros of both signs among them
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "matmul": lambda x, y: x[:, None] @ y[None],
    "matmul of stacks": lambda x, y: np.stack([x, x])[:, :, None] @ y[None],
    "matmul of vectors": lambda x, y: x[:1] @ y[:1],
    "dot": lambda x, y: np.dot(x[:, None], y[None]),
    "dot of numbers": lambda x, y: np.dot(x[:1], y[:1]),
    "inner": lambda x, y: np.inner(x[:, None], y[:, None]),
    "inner of numbers": lambda x, y: np.inner(x[:1], y[:1]),
    "vdot of numbers": lambda x, y: np.vdot(x[:1], y[:1]),
    "vecdot": lambda x, y: np.vecdot(x[:, None], y[:, None]),
    "tensordot": lambda x, y: np.tensordot(x[:, None], y[None], 1),
    "tensordot of numbers": lambda x, y: np.tensordot(x[:1], y[:1], 1),
    "einsum outer": lambda x, y: np.einsum("i,j->ij", x, y),
    "einsum of elements": lambda x, y: np.einsum("i,i->i", x, y),
    "einsum of three": lambda x, y: np.einsum("i,i,i->i", x, y, y),
    "einsum over one": lambda x, y: np.einsum("ik,jk->ij", x[:, None], y[:, None]),
    "einsum optimised": lambda x, y: np.einsum("i,j->ij", x, y, optimize=True),
    "outer": np.outer,
    "kron": np.kron,
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_products_summed_over_one_term_have_the_sign_of_numpys_zeros(dtype: str) -> None:
    x, y = np.array([-0.0, 0.0, 1.0, -1.0], dtype), np.array([1.0, -1.0, 0.0, -0.0], dtype)
    found = pullback.jit(lambda a, b: [f(a, b) for f in PRODUCTS.values()])(x, y)
    for name, f, result in zip(PRODUCTS, PRODUCTS.values(), found, strict=True):
        assert np.array_equal(np.signbit(result), np.signbit(f(x, y))), name
