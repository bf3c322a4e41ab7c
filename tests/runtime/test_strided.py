"""Arrays of any strides, alignment and byte order: copied natively, and taken only in the order they were traced in."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pullback.codegen.object import ArgSpec, Captured, Kind, ListOf, ResultSpec, Signature
from pullback.ir.index import memory_order
from pullback.ir.types import tensor_type
from pullback.runtime.runtime import Runtime
from tests.runtime.kit import build, ctypes_runtime, fallback, native_runtime, signature_of

DTYPES = ("f8", "f4", "f2", "i8", "i2", "u1", "?", "c16", "c8")
SHAPES = ((), (5,), (0,), (1,), (3, 4), (20, 33), (1, 5), (5, 1), (3, 1, 4), (5, 17, 6), (2, 0, 3))


@pytest.fixture(params=["native", "ctypes"])
def runtime(request: pytest.FixtureRequest) -> Runtime:
    chosen = native_runtime() if request.param == "native" else ctypes_runtime()
    chosen.take_strided()
    return chosen


def sample(dtype: str, shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(7)
    array = rng.normal(size=shape) * 10 + (1j * rng.normal(size=shape) if dtype[0] == "c" else 0)
    return np.array(np.abs(array) if dtype in ("u1", "?") else array, dtype)


def layouts(array: Any) -> Iterator[Any]:
    """The same elements, in many places of memory."""
    yield array
    yield array.astype(array.dtype.newbyteorder(">"))
    for order in itertools.permutations(range(array.ndim)):
        turned = array.transpose(order).copy().transpose(np.argsort(order))
        yield turned
        yield turned.astype(array.dtype.newbyteorder(">"), order="K")
        for axis in range(array.ndim):
            yield np.flip(np.flip(turned, axis).copy(order="K"), axis)
            yield np.repeat(turned, 3, axis)[(slice(None),) * axis + (slice(None, None, 3),)]
    if array.size:
        shifted = np.frombuffer(bytearray(array.nbytes + 1), array.dtype, array.size, 1).reshape(array.shape)
        shifted[...] = array
        yield shifted


def order_of(array: Any) -> tuple[int, ...] | None:
    return memory_order(array.shape, array.strides, array.flags.c_contiguous)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_layout_is_read_as_numpy_reads_it(runtime: Runtime, dtype: str) -> None:
    for shape in SHAPES if dtype in ("f8", "c8") else SHAPES[4:8]:
        array = sample(dtype, shape)
        type_ = tensor_type(array.dtype, shape)
        variants = list(layouts(array))
        functions = {}
        for order in {order_of(variant) for variant in variants}:
            spec = ArgSpec(type_, (Kind.ARRAY, Kind.STRIDED) if order is None else (Kind.STRIDED,), order)
            functions[order] = runtime.function(fallback)
            functions[order].install(build(signature_of([spec], ResultSpec(type_)), runtime=runtime))
        for variant in variants:
            np.testing.assert_array_equal(variant, array)
            for order, function in functions.items():
                found = function(variant)
                if order == order_of(variant):
                    assert found.flags.c_contiguous
                    assert found.dtype == array.dtype
                    np.testing.assert_array_equal(found, array)
                else:
                    assert found[0] == "python"


def test_a_broadcast_array_and_a_wrong_one(runtime: Runtime) -> None:
    type_ = tensor_type(np.dtype("f8"), (4, 3))
    function = runtime.function(fallback)
    spec = ArgSpec(type_, (Kind.ARRAY, Kind.STRIDED))
    function.install(build(signature_of([spec], ResultSpec(type_)), runtime=runtime))
    for row in (np.arange(3.0), np.arange(4.0)[:, None]):
        wide = np.broadcast_to(row, (4, 3))
        np.testing.assert_array_equal(function(wide), wide)
    for wrong in (np.ones((4, 3), np.float32).T.copy().T, np.ones((3, 4)).T[:, :2], np.ones((8, 3))[::4], [1.0], 3):
        assert function(wrong)[0] == "python"


def test_several_arrays_one_of_them_in_a_list_and_one_captured(runtime: Runtime) -> None:
    type_ = tensor_type(np.dtype("f8"), (40, 30))
    spec = ArgSpec(type_, (Kind.ARRAY, Kind.STRIDED))
    outside = np.asfortranarray(np.random.default_rng(0).normal(size=(40, 30)))
    results = ListOf((ResultSpec(type_),) * 3)
    signature = Signature((spec, ListOf((spec,))), results, statics=1, captured=(Captured(0, type_),))
    compiled = build(signature, runtime=runtime, objects=(outside,), arena_bytes=100_000, releases_gil=True)
    function = runtime.function(fallback)
    function.install(compiled)
    x = np.random.default_rng(1).normal(size=(80, 30))
    for turn in range(200):
        outside[0, 0] = turn
        first, second, third = function(x[::2], [x[1::2]])
        np.testing.assert_array_equal(first, x[::2])
        np.testing.assert_array_equal(second, x[1::2])
        np.testing.assert_array_equal(third, outside)
    assert runtime is not native_runtime() or runtime.kept_now() < 1 << 20
