"""Arrays, scalars and numbers of every kind, as arguments and as captured values: right numbers, or a clear error."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, UnsupportedError

BASE = np.arange(1.0, 7.0)


class OwnArray(np.ndarray):
    """A subclass of the user's."""


def locked(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


TAKEN: dict[str, Any] = {
    "read-only": locked(BASE),
    "negative stride": BASE[::-1],
    "every other": np.arange(12.0)[::2],
    "Fortran order": np.asfortranarray(BASE.reshape(2, 3)),
    "transposed": BASE.reshape(2, 3).T,
    "strided in two axes": np.arange(24.0).reshape(4, 6)[::2, ::2],
    "big-endian": BASE.astype(">f8"),
    "big-endian f4": BASE.astype(">f4"),
    "0-d": np.array(2.0),
    "big-endian 0-d": np.array(2.0, ">f8"),
    "broadcast": np.broadcast_to(2.0, (3,)),
    "unaligned": np.frombuffer(b"x" + BASE.tobytes(), float, offset=1),
    "empty": np.zeros((0, 3)),
    "f2": BASE.astype("f2"),
    "NumPy scalar": np.float64(2.0),
    "NumPy f4": np.float32(2.0),
    "number": 2.5,
}

REFUSED: dict[str, tuple[Any, str]] = {
    "matrix": (np.matrix([[1.0]]), r"matrix.*np\.asarray"),
    "masked array": (np.ma.array([1.0, 2.0]), r"masked|MaskedArray"),
    "record array": (np.rec.array([(1.0, 2.0)], dtype=[("a", float), ("b", float)]), "recarray|record"),
    "structured": (np.array([(1.0, 2)], dtype=[("a", float), ("b", int)]), "cannot be traced; convert it to one of"),
    "objects": (np.array([1.0, 2.0], object), "object.*cannot be traced"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "datetime64.*cannot be traced"),
    "durations": (np.array([1], "m8[s]"), "timedelta64.*cannot be traced"),
    "text": (np.array(["a"]), "<U1.*cannot be traced"),
    "bytes": (np.array([b"a"]), r"\|S1.*cannot be traced"),
    "long double": (np.ones(2, np.longdouble), "cannot be traced"),
}

TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda x: pb.jit(half_square)(x),
    "grad": lambda x: pb.grad(half_square)(x),
    "vjp": lambda x: pb.vjp(half_square, x)[1](np.ones_like(half_square(x)))[0],
    "jvp": lambda x: pb.jvp(half_square, (x,), (np.ones_like(x),))[1],
    "hessian": lambda x: pb.hessian(half_square)(x),
}


def half_square(x: Any) -> Any:
    return np.sum(x * x) * 0.5


def expected(name: str, x: Any) -> Any:
    plain = np.asarray(x)
    values = {
        "jit": half_square(plain),
        "grad": plain,
        "vjp": plain,
        "jvp": np.sum(plain),
        "hessian": np.eye(plain.size).reshape(plain.shape * 2),
    }
    return values[name]


@pytest.mark.parametrize("kind", TAKEN)
def test_an_argument_of_this_kind_is_taken_and_left_as_it_is(kind: str) -> None:
    x = TAKEN[kind]
    before = np.array(x)
    for name, transform in TRANSFORMS.items():
        found = transform(x)
        np.testing.assert_allclose(found, expected(name, x), err_msg=name)
        assert np.asarray(found).dtype == before.dtype.newbyteorder("="), name
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("kind", [*TAKEN, "subclass"])
def test_a_captured_value_of_this_kind_is_read(kind: str) -> None:
    x = BASE.view(OwnArray) if kind == "subclass" else TAKEN[kind]
    total = np.sum(np.asarray(x, float))
    np.testing.assert_allclose(pb.grad(lambda s: np.sum(x * s * s))(3.0), 6.0 * total, rtol=1e-3)
    np.testing.assert_allclose(pb.grad(lambda s: np.sum(np.multiply(np.asarray(x), s)))(3.0), total, rtol=1e-3)


@pytest.mark.parametrize("kind", REFUSED)
def test_an_argument_or_captured_value_of_this_kind_is_refused_by_name(kind: str) -> None:
    x, text = REFUSED[kind]
    for transform in (pb.jit, pb.grad, pb.vmap, pb.hessian):
        with pytest.raises(ArgumentError, match=rf"argument.*({text})"):
            transform(half_square)(x)
    with pytest.raises((ArgumentError, UnsupportedError), match=f"(?s)({text}).*test_kinds"):
        pb.grad(lambda s: np.sum(np.multiply(x, s)))(3.0)


@pytest.mark.parametrize("x", [True, 3, np.int32(3), np.arange(3), np.array([True]), np.arange(3, dtype=">i4")])
def test_an_argument_without_gradient_has_a_value_and_an_error_that_says_so(x: Any) -> None:
    assert pb.jit(half_square)(x) == half_square(x)
    with pytest.raises(TypeError, match=r"only floating and complex values have a gradient"):
        pb.grad(half_square)(x)
