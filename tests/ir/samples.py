"""Operands for every op: the one table that drives the completeness test.

A sample is `smooth` where all derivatives exist and finite differences with steps of a few hundredths see them; the
others hold the special values (NaN, infinities, signed zeros, ties, bounds) at which the op is evaluated but not
differenced.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.errors import PullbackError
from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter
from pullback.ir.graph import Attrs, Function, Literal, Region
from pullback.ir.ops import ALL_OPS, OPS
from pullback.ir.types import tensor_type

Array = np.ndarray[Any, Any]

INF, NAN = np.inf, np.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 5e-324, -1e-310, 1e308, -1e308, INF, -INF, NAN])
INTEGERS = np.array([0, 1, -1, 7, -8, 63, 100], np.int64)


@dataclass(frozen=True)
class Sample:
    """Operands and attributes of one op.

    smooth : finite differences apply
    project : makes a random direction one in which the op may be differenced (Hermitian, for instance)
    """

    op: str
    operands: tuple[Array, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    smooth: bool = True
    regions: tuple[Region, ...] = ()
    project: Callable[[int, Array], Array] | None = None

    def __str__(self) -> str:
        types = ",".join(str(tensor_type(a.dtype, a.shape)) for a in self.operands)
        return f"{self.op}({types}){'' if self.smooth else ' special'}"

    def function(self, operands: Sequence[Array] | None = None) -> Function:
        """A function whose parameters are the operands and whose results are the op's."""
        b = Builder()
        arrays = self.operands if operands is None else operands
        params = [b.param(tensor_type(a.dtype, a.shape), f"x{k}") for k, a in enumerate(arrays)]
        op = b.add(OPS[self.op], params, Attrs(self.attrs), self.regions)
        return b.function(self.op, op.results)


# ------------------------------------------------------------------ elementwise ops: domains in which all derivatives
# exist

_PLAIN = (-1.7, 1.9)
_UNARY_DOMAINS: dict[str, tuple[float, float]] = {
    "neg": _PLAIN, "abs": (0.3, 2.0), "sign": (0.3, 2.0), "floor": (0.2, 0.8), "ceil": (0.2, 0.8),
    "rint": (0.1, 0.4), "trunc": (0.2, 0.8), "exp": _PLAIN, "exp2": _PLAIN, "expm1": _PLAIN, "log": (0.4, 3.0),
    "log2": (0.4, 3.0), "log10": (0.4, 3.0), "log1p": (-0.5, 2.0), "sqrt": (0.4, 3.0), "cbrt": (0.4, 3.0),
    "sin": (-3.0, 3.0), "cos": (-3.0, 3.0), "tan": (-1.0, 1.0), "arcsin": (-0.7, 0.7), "arccos": (-0.7, 0.7),
    "arctan": (-2.0, 2.0), "sinh": _PLAIN, "cosh": _PLAIN, "tanh": _PLAIN, "arcsinh": (-2.0, 2.0),
    "arccosh": (1.5, 4.0), "arctanh": (-0.7, 0.7), "erf": _PLAIN, "erfc": _PLAIN, "lgamma": (0.7, 4.0),
    "digamma": (0.9, 4.0), "isnan": _PLAIN, "isinf": _PLAIN, "isfinite": _PLAIN, "signbit": (0.3, 2.0),
    "real": _PLAIN, "imag": _PLAIN, "conj": _PLAIN, "stop_gradient": _PLAIN, "invert": _PLAIN,
    "expit": _PLAIN, "log_expit": _PLAIN, "entr": (0.4, 3.0), "ndtr": _PLAIN, "log_ndtr": _PLAIN,
    "erfinv": (-0.7, 0.7), "erfcinv": (0.4, 1.6), "ndtri": (0.2, 0.8), "gamma": (0.7, 3.0),
}  # fmt: skip
# for each operand: the domains must not overlap where a kink lies at equality
_BINARY_DOMAINS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "add": (_PLAIN, _PLAIN), "sub": (_PLAIN, _PLAIN), "mul": (_PLAIN, _PLAIN), "div": (_PLAIN, (0.6, 2.0)),
    "floor_divide": ((2.2, 2.5), (0.92, 0.95)), "mod": ((2.2, 2.6), (0.9, 0.95)),
    "fmod": ((-2.6, -2.2), (0.9, 0.95)), "maximum": ((-1.0, 0.0), (0.5, 1.0)), "minimum": ((-1.0, 0.0), (0.5, 1.0)),
    "fmax": ((-1.0, 0.0), (0.5, 1.0)), "fmin": ((-1.0, 0.0), (0.5, 1.0)), "copysign": ((0.3, 2.0), (-2.0, -0.3)),
    "nextafter": (_PLAIN, _PLAIN), "pow": ((0.5, 2.0), (-1.5, 2.5)), "hypot": ((0.5, 2.0), _PLAIN),
    "arctan2": (_PLAIN, (0.5, 2.0)), "logaddexp": (_PLAIN, _PLAIN), "logaddexp2": (_PLAIN, _PLAIN),
    "complex": (_PLAIN, _PLAIN), "strong_mul": ((0.4, 2.0), _PLAIN), "equal": ((0.0, 1.0), (2.0, 3.0)),
    "not_equal": ((0.0, 1.0), (2.0, 3.0)), "less": ((0.0, 1.0), (2.0, 3.0)), "less_equal": ((0.0, 1.0), (2.0, 3.0)),
    "greater": ((0.0, 1.0), (2.0, 3.0)), "greater_equal": ((0.0, 1.0), (2.0, 3.0)), "bitwise_and": (_PLAIN, _PLAIN),
    "bitwise_or": (_PLAIN, _PLAIN), "bitwise_xor": (_PLAIN, _PLAIN), "left_shift": (_PLAIN, _PLAIN),
    "right_shift": (_PLAIN, _PLAIN), "xlogy": (_PLAIN, (0.4, 2.0)), "xlog1py": (_PLAIN, (-0.5, 2.0)),
    "rel_entr": ((0.4, 2.0), (0.5, 2.0)), "kl_div": ((0.4, 2.0), (0.5, 2.0)),
}  # fmt: skip
# ops with an order: domains of the operands, orders
_OF_ORDER: dict[str, tuple[tuple[tuple[float, float], ...], tuple[int, ...]]] = {
    "polygamma": (((1.2, 4.0),), (1, 2)), "erfcx": ((_PLAIN,), (0, 1, 2)), "exprel": ((_PLAIN,), (0, 1, 3)),
    "gammainc": (((0.8, 3.0), (0.5, 3.0)), (0, 1)), "gammaincc": (((0.8, 3.0), (0.5, 3.0)), (0, 1)),
    "jv": ((_PLAIN,), (0, 1, 3)), "yv": (((0.8, 3.0),), (0, 1, 3)), "iv": ((_PLAIN,), (0, 1, 3)),
    "ive": (((0.4, 3.0),), (0, 1, 3)), "kv": (((0.8, 3.0),), (0, 1, 3)), "kve": (((0.8, 3.0),), (0, 1, 3)),
}  # fmt: skip

_INEXACT = [np.dtype(d) for d in ("f8", "f4", "c16", "c8")]
_OTHERS = [np.dtype(d) for d in ("f2", "i8", "i4", "u1", "?")]
_SHAPES = ((2, 3), (), (0, 2))


def _random(rng: np.random.Generator, domain: tuple[float, float], shape: tuple[int, ...], dtype: Any) -> Array:
    low, high = domain
    x = rng.uniform(low, high, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(0.2, 0.6, shape)
    return np.asarray(x).astype(dtype)


def _allowed(sample: Sample) -> bool:
    try:
        sample.function()
    except PullbackError:
        return False
    return True


def _elementwise(
    op: str, domains: Sequence[tuple[float, float]], variants: Sequence[Mapping[str, Any]] = ({},)
) -> Iterator[Sample]:
    """Samples of every dtype the op takes, in each shape, and the special values against one another."""
    rng = np.random.default_rng(len(op))
    for attrs in variants:
        for dtype in _INEXACT:
            for shape in _SHAPES if dtype.itemsize in (8, 16) else _SHAPES[:1]:
                yield Sample(op, tuple(_random(rng, d, shape, dtype) for d in domains), attrs)
        yield Sample(op, _grid(SPECIAL, len(domains)), attrs, smooth=False)
        yield Sample(op, tuple(a.astype(np.float32) for a in _grid(SPECIAL[:6], len(domains))), attrs, smooth=False)
        for dtype in _OTHERS:
            values = INTEGERS if dtype.kind in "iu" else SPECIAL[:6]
            with np.errstate(all="ignore"):
                yield Sample(op, tuple(a.astype(dtype) for a in _grid(values, len(domains))), attrs, smooth=False)


def _grid(values: Array, count: int) -> tuple[Array, ...]:
    """All combinations of `values`, flat."""
    return tuple(np.ascontiguousarray(g.reshape(-1)) for g in np.meshgrid(*[values] * count, indexing="ij"))


def _elementwise_samples() -> Iterator[Sample]:
    for op, domain in _UNARY_DOMAINS.items():
        yield from _elementwise(op, [domain])
    for op, pair in _BINARY_DOMAINS.items():
        yield from _elementwise(op, pair)
    yield from _elementwise("clip", [(0.2, 0.8), (-0.5, 0.0), (1.0, 1.5)])
    yield from _elementwise("clip", [(-0.8, -0.6), (-0.5, 0.0), (1.0, 1.5)])
    yield from _elementwise("clamp", [(0.2, 0.8), (-0.5, 0.0), (1.0, 1.5)])
    yield from _elementwise("clamp", [(-0.8, -0.6), (-0.5, 0.0), (1.0, 1.5)])
    yield from _elementwise("integer_pow", [(0.8, 1.6)], [{"n": n} for n in (-2, -1, 0, 1, 2, 3, 5)])
    for op, (domains, orders) in _OF_ORDER.items():
        yield from _elementwise(op, domains, [{"n": n} for n in orders])
    yield from _elementwise("floor_divide", [(-7.8, -7.2), (2.05, 2.2)])
    yield from _elementwise("fmod", [(5.1, 5.4), (-2.2, -2.05)])
    yield from _elementwise("pow", [(0.5, 2.0), (2.0, 2.0)])
    for dtype in ("f8", "f4", "f2", "c16", "c8", "i8", "i4", "u1", "?"):
        yield from _elementwise("cast", [_PLAIN], [{"dtype": np.dtype(dtype)}])


# ------------------------------------------------------------------ the other ops

X23 = np.array([[0.3, -1.2, 2.1], [1.4, 0.9, -0.4]])
# no two elements closer than 0.13, none near 0: differences do not change their order
X234 = 0.13 * (np.random.default_rng(3).permutation(24) - 10.5).reshape(2, 3, 4)
PRED = np.array([[True, False, True], [False, False, True]])


def _many(op: str, operands: Sequence[Array], attrs: Mapping[str, Any], dtypes: str = "f8 f4 c16") -> Iterator[Sample]:
    """The same values in several dtypes; complex ones get an imaginary part."""
    for name in dtypes.split():
        dtype = np.dtype(name)
        yield Sample(op, tuple(_cast_inexact(a, dtype) for a in operands), attrs)


def _cast_inexact(a: Array, dtype: np.dtype[Any]) -> Array:
    if a.dtype.kind != "f":
        return a
    return (a + 0.3j * np.cos(a)).astype(dtype) if dtype.kind == "c" else a.astype(dtype)


def _view_samples() -> Iterator[Sample]:
    scalar, empty = np.array(0.7), np.zeros((0, 3))
    for attrs in (
        {"dims": (1, 2), "shape": (4, 2, 3)},
        {"dims": (0, 2), "shape": (2, 4, 3)},
        {"dims": (0, 1), "shape": (2, 3)},
    ):
        yield from _many("broadcast", [X23], attrs)
    yield from _many("broadcast", [scalar], {"dims": (), "shape": (3, 2)})
    yield from _many("broadcast", [empty], {"dims": (1, 2), "shape": (2, 0, 3)})
    for shape in ((6,), (3, 2), (2, 1, 3), (1, 6, 1)):
        yield from _many("reshape", [X23], {"shape": shape})
    yield from _many("reshape", [scalar], {"shape": (1, 1)})
    yield from _many("reshape", [empty], {"shape": (3, 0)})
    for perm in ((2, 0, 1), (1, 2, 0), (0, 1, 2), (0, 2, 1)):
        yield from _many("transpose", [X234], {"perm": perm})
    yield from _many("transpose", [scalar], {"perm": ()})
    for axes in ((0,), (0, 1), ()):
        yield from _many("reverse", [X23], {"axes": axes})
    for start, stop, step in (
        ((0, 1), (2, 3), (1, 1)),
        ((0, 0), (2, 3), (1, 2)),
        ((1, 0), (2, 0), (1, 1)),
        ((0, 0), (2, 3), (1, 1)),
    ):
        yield from _many("slice", [X23], {"start": start, "stop": stop, "step": step})
    yield from _many("slice", [scalar], {"start": (), "stop": (), "step": ()})
    for low, high, inner in (((1, 0), (0, 2), (0, 0)), ((0, 1), (1, 1), (2, 1)), ((0, 0), (0, 0), (0, 0))):
        yield from _many("pad", [X23], {"low": low, "high": high, "interior": inner})
    yield from _many("pad", [empty], {"low": (1, 1), "high": (0, 0), "interior": (2, 0)})
    yield from _many("update", [X23, np.array([[9.0, 8.0]])], {"start": (1, 0), "stop": (2, 3), "step": (1, 2)})
    yield from _many("update", [X23, X23 + 1], {"start": (0, 0), "stop": (2, 3), "step": (1, 1)})
    yield from _many("update", [X23, np.zeros((2, 0))], {"start": (0, 1), "stop": (2, 1), "step": (1, 1)})
    yield from _many("concatenate", [X23, X23[:, :1] + 2, empty.reshape(2, 0)], {"axis": 1})
    yield from _many("concatenate", [X23, X23 * 2], {"axis": 0})
    yield from _many("select", [PRED, X23, X23 * 2 + 1], {})
    yield from _many("select", [np.array(True), scalar, scalar + 1], {})
    yield Sample("select", (np.array([True, False]), np.array([1, 2]), np.array([3, 4])))


def _reduction_samples() -> Iterator[Sample]:
    zeros = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.5]])
    for name in ("sum", "prod", "max", "min"):
        ties = {"ties": "equal"} if name in ("max", "min") else {}
        dtypes = "f8 f4" if ties else "f8 f4 c16"
        for axes in ((0,), (1,), (0, 1), ()):
            yield from _many(name, [X23], {"axes": axes, **ties}, dtypes)
        yield from _many(name, [X234], {"axes": (0, 2), **ties}, dtypes)
        yield Sample(name, (np.array([[3, -1], [2, 7]]),), {"axes": (1,), **ties})
    for ties in ("all", "first"):
        for name in ("max", "min"):
            yield from _many(name, [X234], {"axes": (1, 2), "ties": ties}, "f8 f4")
            yield Sample(
                name, (np.array([[1.0, 3.0, 3.0], [2.0, NAN, NAN]]),), {"axes": (1,), "ties": ties}, smooth=False
            )
    yield Sample("max", (np.array([[1.0, 3.0, 3.0], [2.0, NAN, -INF]]),), {"axes": (1,), "ties": "equal"}, smooth=False)
    for name in ("nanmax", "nanmin"):
        for ties in ("equal", "all", "first"):
            yield from _many(name, [X234], {"axes": (0, 2), "ties": ties}, "f8 f4")
            holes = np.array([[1.0, 3.0, NAN], [2.0, NAN, -INF], [NAN, NAN, NAN], [0.0, -0.0, 0.0]])
            yield Sample(name, (holes,), {"axes": (1,), "ties": ties}, smooth=False)
    yield Sample("sum", (SPECIAL,), {"axes": (0,)}, smooth=False)
    yield from _many("prod", [zeros], {"axes": (1,)})
    yield from _many("prod", [zeros], {"axes": (0, 1)})
    for name in ("sum", "prod"):
        yield from _many(name, [np.zeros((0, 2))], {"axes": (0,)})
    for name in ("any", "all"):
        yield Sample(name, (PRED,), {"axes": (0,)})
        yield Sample(name, (np.zeros((0,), bool),), {"axes": (0,)})
    for name in ("argmax", "argmin"):
        yield Sample(name, (X23,), {"axis": 1})
        yield Sample(name, (np.array([[1.0, NAN], [NAN, 2.0], [5.0, 5.0]]),), {"axis": 0}, smooth=False)
        yield Sample(name, (np.array([3, 1, 3], np.int32),), {"axis": 0})
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        dtypes = "f8 f4" if name in ("cummax", "cummin") else "f8 f4 c16"
        for axis, reverse in ((0, False), (1, False), (1, True)):
            yield from _many(name, [X234], {"axis": axis, "reverse": reverse}, dtypes)
        yield from _many(name, [np.zeros((2, 0))], {"axis": 1, "reverse": False}, dtypes)
        yield Sample(name, (np.array([3, -1, 2]),), {"axis": 0, "reverse": True})
    yield from _many("cumprod", [zeros], {"axis": 1, "reverse": False})
    yield from _many("cumprod", [zeros], {"axis": 1, "reverse": True})
    yield Sample("cummax", (np.array([1.0, 1.0, NAN, 3.0]),), {"axis": 0, "reverse": False}, smooth=False)


def _indexing_samples() -> Iterator[Sample]:
    one, two, none = np.array([2, 0, 2, 1]), np.array([[0, 1], [1, 0]]), np.zeros((0,), np.int64)
    for axis, idx in ((1, one), (0, two), (1, none), (1, np.array(1))):
        yield from _many("gather", [X23, idx], {"axis": axis})
    yield from _many("gather", [X234, two], {"axis": 1})
    yield from _many("gather", [np.zeros((2, 0)), none], {"axis": 1})
    for name in ("scatter", "scatter_add"):
        for axis, idx in ((1, one), (0, two), (1, none), (0, np.array(1))):
            shape = (*X23.shape[:axis], *idx.shape, *X23.shape[axis + 1 :])
            updates = np.linspace(1.0, 2.0, int(np.prod(shape))).reshape(shape)
            yield from _many(name, [X23, idx, updates], {"axis": axis})
        yield from _many(name, [X234, two, np.cos(np.arange(32.0)).reshape(2, 2, 2, 4)], {"axis": 1})
        yield Sample(name, (np.array([1, 2, 3]), np.array([0, 0]), np.array([5, 6])), {"axis": 0})
    for axis in (0, 1, 2):
        yield from _many("sort", [X234], {"axis": axis}, "f8 f4")
    yield Sample("sort", (X23, np.arange(6).reshape(2, 3), X23 * 2), {"axis": 1})
    yield Sample("sort", (np.array([3.0, NAN, 1.0, 3.0, -INF]), np.arange(5)), {"axis": 0}, smooth=False)
    yield Sample("sort", (np.zeros((2, 0)),), {"axis": 1})


def _product_samples() -> Iterator[Sample]:
    rng = np.random.default_rng(5)
    cases: list[tuple[tuple[int, ...], tuple[int, ...], Any, Any]] = [
        ((2, 3), (3, 4), ((1,), (0,)), ((), ())),
        ((3,), (3,), ((0,), (0,)), ((), ())),
        ((2, 3), (3,), ((1,), (0,)), ((), ())),
        ((2,), (3,), ((), ()), ((), ())),
        ((4, 2, 3), (4, 3, 5), ((2,), (1,)), ((0,), (0,))),
        ((2, 3, 4), (4, 5, 2), ((0, 2), (2, 0)), ((), ())),
        ((3, 2, 4), (5, 4, 2), ((2,), (1,)), ((1,), (2,))),
        ((2, 3, 2, 4), (4, 2, 3, 5), ((1, 3), (2, 0)), ((2,), (1,))),
        ((2, 0), (0, 3), ((1,), (0,)), ((), ())),
        ((), (), ((), ()), ((), ())),
        ((), (2,), ((), ()), ((), ())),
    ]
    for left, right, contract, batch in cases:
        operands = [rng.normal(size=left), rng.normal(size=right)]
        yield from _many("dot_general", operands, {"contract": contract, "batch": batch})
    yield Sample(
        "dot_general", (np.arange(6).reshape(2, 3), np.arange(3)), {"contract": ((1,), (0,)), "batch": ((), ())}
    )


def _hermitian(number: int, direction: Array) -> Array:
    return (direction + np.swapaxes(direction, -1, -2).conj()) / 2


def _small_hermitian(number: int, direction: Array) -> Array:
    """Small enough that LAPACK keeps the signs of the eigenvectors."""
    return _hermitian(number, direction) / 20


def _small(number: int, direction: Array) -> Array:
    """Small enough that the largest elements of eigenvectors stay where they are."""
    return direction / 20


def _linalg_samples() -> Iterator[Sample]:
    rng = np.random.default_rng(7)
    a = rng.normal(size=(2, 3, 3)) + 3 * np.eye(3)
    c = a + 0.4j * rng.normal(size=(2, 3, 3))
    spd, hpd = a @ np.swapaxes(a, 1, 2), c @ np.swapaxes(c, 1, 2).conj()
    b = rng.normal(size=(2, 3, 2))
    for x in (spd, spd[0], spd.astype(np.float32), hpd, np.zeros((0, 2, 2))):
        yield Sample("cholesky", (x,), project=_hermitian)
    for trans in ("N", "T"):
        for name, attrs in (
            ("solve", {}),
            ("triangular_solve", {"lower": True}),
            ("triangular_solve", {"lower": False}),
        ):
            for x, y in ((a, b), (a[0], b[0]), (a.astype(np.float32), b.astype(np.float32)), (c, b + 0.2j)):
                yield Sample(name, (x, y), {**attrs, "trans": trans})
    yield Sample("solve", (c, b + 0.3j), {"trans": "C"})
    yield Sample("triangular_solve", (c, b + 0.3j), {"lower": True, "trans": "C"})
    for x in (a, a[0], -a[0], a.astype(np.float32), c, c[0]):
        yield Sample("slogdet", (x,))
    for x in (spd, spd[0], spd.astype(np.float32)):
        for lower in (True, False):
            yield Sample("eigh", (x,), {"lower": lower}, project=_small_hermitian)
    for x in (a, a[1], c, a.astype(np.float32)):
        for name in ("eig", "eigvals"):
            yield Sample(name, (x,), project=_small)
    wide = rng.normal(size=(2, 3))
    for x in (a, a[0], wide, wide.T.copy(), a.astype(np.float32)):
        yield Sample("svd", (x,))
    for x in (a, a[0], wide.T.copy(), a.astype(np.float32)):
        yield Sample("qr", (x,))
    for by in ("qr", "svd", "svd_adjoint"):
        for x in (a[..., :2], c[0, :, :2], c[..., :1].astype(np.complex64)):
            yield Sample("complement", (x,), {"by": by}, smooth=False)
    for x in (c, c[0, 0], c.astype(np.complex64)):
        for inverse in (False, True):
            yield Sample("fft", (x,), {"inverse": inverse})


def _source_samples() -> Iterator[Sample]:
    for value in (X23, np.array(2.5), np.array([1, 2], np.int32), SPECIAL, np.zeros((0, 2)), np.array([1 + 2j])):
        yield Sample("constant", (), {"value": Literal(value)})
    yield Sample("iota", (), {"type": tensor_type(np.dtype(np.int64), (3, 2)), "axis": 0})
    yield Sample("iota", (), {"type": tensor_type(np.dtype(np.float64), (3, 2)), "axis": 1})


# ------------------------------------------------------------------ ops with regions and effects


def _branch(build: Callable[[Emitter, Any, Any, Any], Any]) -> Region:
    b = Builder()
    f = Emitter(b, OPS)
    x, y, n = (f.wrap(b.param(tensor_type(np.dtype(d), s))) for d, s in (("f8", (3,)), ("f8", ()), ("i8", (3,))))
    return b.region([r.value for r in build(f, x, y, n)])


def _if_samples() -> Iterator[Sample]:
    then = _branch(lambda f, x, y, n: (f.sin(x) * f.broadcast_to(y, (3,), ()) * f.tanh(x), n + 1, f.exp(y)))
    other = _branch(lambda f, x, y, n: (f.log(x * x), n, f.sum(f.exp(x) * x, axes=(0,)) * y))
    x, y, n = np.array([0.4, 1.3, -2.0]), np.array(0.7), np.array([4, 5, 6])
    for pred in (True, False):
        yield Sample("if", (np.array(pred), x, y, n), regions=(then, other))
    for again in (False, True):
        yield Sample("checkpoint", (x, y, n), {"again": again}, regions=(then,))


def _loop_samples() -> Iterator[Sample]:
    """A scan of a recurrence that stacks its states, and a loop that halves until the sum of squares is small."""
    b = Builder()
    f = Emitter(b, OPS)
    h, n, x, w = (
        f.wrap(b.param(tensor_type(np.dtype(d), s))) for d, s in (("f8", (3,)), ("i8", ()), ("f8", (3,)), ("f8", ()))
    )
    new = f.sin(h * f.broadcast_to(w, (3,), ())) + x
    body = b.region([v.value for v in (new, n + 1, new * x, n)])
    states = np.linspace(-1.0, 1.2, 12).reshape(4, 3)
    for reverse in (False, True):
        attrs = {"carries": 2, "scanned": 1, "length": 4, "reverse": reverse}
        yield Sample("scan", (states[0] + 1, np.array(0), states, np.array(0.7)), attrs, regions=(body,))
    regions = []
    for build in (
        lambda f, h, n, w: [f.sum(h * h, axes=(0,)) > 0.5],
        lambda f, h, n, w: [f.sin(h * f.broadcast_to(w, (3,), ())), n + 1],
    ):
        b = Builder()
        f = Emitter(b, OPS)
        params = [f.wrap(b.param(tensor_type(np.dtype(d), s))) for d, s in (("f8", (3,)), ("i8", ()), ("f8", ()))]
        regions.append(b.region([v.value for v in build(f, *params)]))
    start = np.array([0.9, -1.4, 1.1])
    for scale in (1.0, 0.1):
        yield Sample(
            "while", (start * scale, np.array(0), np.array(0.7)), {"carries": 2, "most": 0}, regions=tuple(regions)
        )


def _effect_samples() -> Iterator[Sample]:
    yield Sample("guard", (np.array(True),), {"index": 0, "expected": 1})
    yield Sample("guard", (np.array(3),), {"index": 2, "expected": 3})
    yield Sample("check", (np.array([True, True]),), {"message": "all of them", "code": 3})
    yield Sample("check", (np.array(True),), {"message": 'a "quoted" one', "code": 4})


def _all_samples() -> Iterator[Sample]:
    yield from (s for s in _elementwise_samples() if _allowed(s))
    yield from _view_samples()
    yield from _reduction_samples()
    yield from _indexing_samples()
    yield from _product_samples()
    yield from _linalg_samples()
    yield from _source_samples()
    yield from _if_samples()
    yield from _loop_samples()
    yield from _effect_samples()


SAMPLES: tuple[Sample, ...] = tuple(_all_samples())


def samples_of(op: str) -> list[Sample]:
    return [s for s in SAMPLES if s.op == op]


def sampled_ops() -> list[str]:
    """All ops but those of a kernel's body and the kernel itself, which fusion makes and its own tests cover."""
    planned = {"kernel", "index", "within", "load_at", "rows"}
    return [op.name for op in ALL_OPS if op.name not in planned]
