"""The native entry takes exactly what its signature says, and returns what the ctypes path returns."""

import gc
import pickle
import sys
import weakref
from collections import namedtuple
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pullback.codegen.entry import emit_entry
from pullback.codegen.llvm import Module
from pullback.codegen.object import ArgSpec, Captured, DictOf, Kind, Layout, ListOf, ResultSpec, Static, TupleOf
from pullback.errors import CodegenError
from pullback.ir.types import DTYPE_NAMES, tensor_type
from pullback.runtime.compiled import Miss
from tests.runtime.kit import (
    array_arg,
    array_result,
    build,
    copying_kernel,
    native_runtime,
    number_arg,
    number_result,
    signature_of,
    status_kernel,
)

Pair = namedtuple("Pair", ["left", "right"])
NUMBERS = [dtype for dtype in DTYPE_NAMES if dtype.kind != "b"]


def same(left: Any, right: Any) -> bool:
    """Equal in type, structure, dtype and bits."""
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    if isinstance(left, np.generic):
        return left.tobytes() == right.tobytes()
    if isinstance(left, Miss):
        return left.status == right.status
    return repr(left) == repr(right)


def both(compiled: Any, *args: Any, **kwargs: Any) -> Any:
    """The outcome of the native entry, after comparing it with that of the ctypes path."""
    outcome = compiled.invoke(*args, **kwargs)
    expected = compiled.call(args, kwargs)
    assert same(outcome, expected), (outcome, expected)
    return outcome


def is_misfit(outcome: Any) -> bool:
    return isinstance(outcome, Miss) and outcome.status == 0


@pytest.mark.parametrize("dtype", DTYPE_NAMES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4), (2, 1, 3, 2)], ids=str)
def test_arrays_of_every_dtype_and_rank_go_through(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    compiled = build(signature_of([array_arg(shape, dtype.str)], array_result(shape, dtype.str)))
    x = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    outcome = both(compiled, x)
    assert same(outcome, x)
    assert outcome is not x
    assert outcome.flags.owndata
    assert outcome.flags.writeable


@pytest.mark.parametrize("dtype", DTYPE_NAMES, ids=str)
def test_numpy_scalars_of_every_dtype_go_through(dtype: np.dtype[Any]) -> None:
    compiled = build(signature_of([number_arg(Kind.SCALAR, dtype=dtype.str)], number_result(dtype=dtype.str)))
    assert same(both(compiled, dtype.type(1)), dtype.type(1))
    for other in NUMBERS:
        if other != dtype:
            assert is_misfit(both(compiled, other.type(1)))
    assert is_misfit(both(compiled, np.ones((), dtype)))


@pytest.mark.parametrize(
    ("kind", "dtype", "accepted", "refused"),
    [
        (Kind.FLOAT, "f8", [1.5, -0.0, np.inf, 5e-324], [1, True, np.float64(1.0), 1j, "1", None]),
        (Kind.FLOAT, "f4", [1.5, 0.1, 1e300, -np.inf], [1]),
        (Kind.INT, "i8", [0, 7, -7, 2**62, 2**63 - 1, -(2**63)], [True, 1.0, 2**63, -(2**63) - 1, np.int64(1)]),
        (Kind.INT, "i1", [127, -128], [128, -129, 2**40]),
        (Kind.INT, "u1", [0, 255], [-1, 256]),
        (Kind.INT, "u8", [0, 2**63 - 1], [-1, 2**63]),
        (Kind.INT, "f8", [3, -3, 2**53], [2**53 + 1, -(2**60), 2**70, False]),
        (Kind.INT, "f4", [3, 2**24 + 1], [2**60]),
        (Kind.BOOL, "?", [True, False], [1, 0, np.True_, None]),
        (Kind.COMPLEX, "c16", [1 - 2j, complex(np.inf, -0.0)], [1.0, np.complex128(1)]),
        (Kind.COMPLEX, "c8", [1 - 2j, 0.1 + 0.3j], [1.0]),
    ],
)
def test_python_numbers_go_through_exactly(kind: Kind, dtype: str, accepted: list[Any], refused: list[Any]) -> None:
    compiled = build(signature_of([number_arg(kind, dtype=dtype)], number_result(dtype=dtype)))
    for number in accepted:
        with np.errstate(over="ignore"):
            expected = np.array(number).astype(dtype)[()]
        assert same(both(compiled, number), expected)
    for other in refused:
        assert is_misfit(both(compiled, other)), other


@pytest.mark.parametrize(
    ("kind", "dtype", "value"),
    [
        (Kind.FLOAT, "f8", 1.5),
        (Kind.FLOAT, "f4", 1.5),
        (Kind.INT, "i8", -5),
        (Kind.INT, "i2", -5),
        (Kind.INT, "u8", 2**64 - 1),
        (Kind.INT, "u1", 255),
        (Kind.BOOL, "?", True),
        (Kind.BOOL, "?", False),
        (Kind.COMPLEX, "c16", 1 - 2j),
        (Kind.COMPLEX, "c8", 1 - 2j),
        (Kind.SCALAR, "?", np.True_),
        (Kind.SCALAR, "?", np.False_),
        (Kind.SCALAR, "c16", np.complex128(3 + 4j)),
        (Kind.ARRAY, "f8", np.array(2.5)),
    ],
)
def test_results_come_back_as_the_kind_that_is_wanted(kind: Kind, dtype: str, value: Any) -> None:
    compiled = build(signature_of([array_arg((), dtype)], number_result(kind, dtype)))
    assert same(both(compiled, np.array(value, dtype)), value)


def test_an_argument_may_be_of_several_kinds() -> None:
    compiled = build(signature_of([number_arg(Kind.FLOAT, Kind.SCALAR, Kind.INT, Kind.ARRAY)], number_result()))
    for given in (2.0, np.float64(2.0), 2, np.array(2.0)):
        assert same(both(compiled, given), np.float64(2.0))
    for given in (True, np.float32(2.0), np.zeros(1), "2", None, np.array(2.0, np.float32)):
        assert is_misfit(both(compiled, given))


class Sub(np.ndarray):
    """A subclass with nothing of its own."""


def strange_arrays() -> dict[str, Any]:
    x = np.arange(6.0).reshape(2, 3)
    unaligned = np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(2, 3)
    return {
        "another dtype": x.astype(np.float32),
        "an integer dtype of the same size": x.astype(np.int64),
        "another shape": x.reshape(3, 2),
        "another rank": x.reshape(2, 3, 1),
        "another size": np.zeros((2, 4)),
        "a transpose": x.reshape(3, 2).copy().T,
        "a step": np.zeros((2, 6))[:, ::2],
        "a reversal": x[::-1],
        "a broadcast": np.broadcast_to(np.arange(3.0), (2, 3)),
        "bytes swapped": x.astype(">f8"),
        "unaligned": unaligned,
        "a subclass": x.view(Sub),
        "masked": np.ma.masked_array(x),
        "a list": x.tolist(),
        "a number": 1.0,
        "a 0-d array": np.array(1.0),
        "a structured dtype": np.zeros((2, 3), [("a", "f8")]),
        "objects": x.astype(object),
        "nothing": None,
    }


@pytest.mark.parametrize("what", strange_arrays())
def test_any_other_array_is_left_to_python(what: str) -> None:
    compiled = build(signature_of([array_arg((2, 3))], array_result((2, 3))))
    assert is_misfit(both(compiled, strange_arrays()[what]))


def test_read_only_and_unpickled_arrays_are_taken_natively() -> None:
    compiled = build(signature_of([array_arg((2, 3))], array_result((2, 3))))
    x = np.arange(6.0).reshape(2, 3)
    x.flags.writeable = False
    assert same(both(compiled, x), x)
    unpickled = pickle.loads(pickle.dumps(x))
    assert same(both(compiled, unpickled), x)
    own_descr = np.frombuffer(x.tobytes(), np.dtype("f8", metadata={"unit": "m"})).reshape(2, 3)
    assert own_descr.dtype is not np.dtype("f8")
    assert same(both(compiled, own_descr), x)


def test_the_number_of_arguments_counts() -> None:
    compiled = build(signature_of([array_arg(), array_arg()], array_result()))
    x = np.arange(3.0)
    assert same(both(compiled, x, x + 1), x)
    assert is_misfit(both(compiled, x))
    assert is_misfit(both(compiled, x, x, x))
    assert is_misfit(both(compiled))


def test_a_signature_without_arguments_or_results_works() -> None:
    compiled = build(signature_of([], TupleOf(())))
    assert both(compiled) == ()
    constant = build(signature_of([], Static(0), statics=1), objects=("answer",))
    assert both(constant) == "answer"


def test_nested_containers_are_unpacked_and_built() -> None:
    node = TupleOf((array_arg(), ListOf((number_arg(), DictOf(("w", "b"), (array_arg((2, 2)), number_arg()))))))
    result = DictOf(
        ("first", "rest"),
        (array_result(), ListOf((number_result(Kind.FLOAT), TupleOf((array_result((2, 2)), number_result()))))),
    )
    compiled = build(signature_of([node], result))
    w = np.arange(4.0).reshape(2, 2)
    args = (np.arange(3.0), [1.5, {"w": w, "b": 2.5}])
    outcome = both(compiled, args)
    assert same(outcome, {"first": np.arange(3.0), "rest": [1.5, (w, np.float64(2.5))]})
    assert is_misfit(both(compiled, (np.arange(3.0), (1.5, {"w": w, "b": 2.5}))))
    assert is_misfit(both(compiled, (np.arange(3.0), [1.5, {"b": 2.5, "w": w}])))
    assert is_misfit(both(compiled, (np.arange(3.0), [1.5, {"w": w, "c": 2.5}])))
    assert is_misfit(both(compiled, (np.arange(3.0), [1.5, {"w": w, "b": 2.5, "x": 1.0}])))
    assert is_misfit(both(compiled, (np.arange(3.0), [1.5])))
    assert is_misfit(both(compiled, [np.arange(3.0), [1.5, {"w": w, "b": 2.5}]]))


def test_equal_keys_need_not_be_the_same_string() -> None:
    compiled = build(signature_of([DictOf(("weights",), (array_arg(),))], array_result()))
    key = "".join(["wei", "ghts"])
    assert key is not sys.intern("weights")
    assert same(both(compiled, {key: np.arange(3.0)}), np.arange(3.0))
    assert is_misfit(both(compiled, {1: np.arange(3.0)}))
    assert is_misfit(both(compiled, {"Weights": np.arange(3.0)}))


def test_subclasses_of_containers_are_left_to_python() -> None:
    class MyTuple(tuple):
        __slots__ = ()

    class MyList(list):
        pass

    class MyDict(dict):
        pass

    x = np.arange(3.0)
    for node, plain, strange in [
        (TupleOf((array_arg(),)), (x,), MyTuple((x,))),
        (ListOf((array_arg(),)), [x], MyList([x])),
        (DictOf(("a",), (array_arg(),)), {"a": x}, MyDict(a=x)),
    ]:
        compiled = build(signature_of([node], array_result()))
        assert same(both(compiled, plain), x)
        assert is_misfit(both(compiled, strange))


def test_named_tuples_are_unpacked_and_built() -> None:
    signature = signature_of(
        [TupleOf((array_arg(), number_arg()), cls=0)], TupleOf((array_result(), number_result()), cls=0), statics=1
    )
    compiled = build(signature, objects=(Pair,))
    outcome = both(compiled, Pair(np.arange(3.0), 1.5))
    assert type(outcome) is Pair
    assert same(outcome.left, np.arange(3.0))
    assert is_misfit(both(compiled, (np.arange(3.0), 1.5)))
    hashable = build(signature_of([number_arg()], TupleOf((number_result(),), cls=0), statics=1), objects=(Pair,))
    assert hash(hashable.invoke(2.0)) == hash((np.float64(2.0),))


def test_static_arguments_are_compared_by_identity() -> None:
    marker = object()
    compiled = build(
        signature_of([Static(0), array_arg(), Static(1)], array_result(), statics=2), objects=(marker, None)
    )
    x = np.arange(3.0)
    assert same(both(compiled, marker, x, None), x)
    assert is_misfit(both(compiled, object(), x, None))
    assert is_misfit(both(compiled, marker, x, 0))


def test_a_status_of_the_kernel_reaches_the_caller() -> None:
    compiled = build(signature_of([number_arg(Kind.INT, dtype="i8")], array_result(())), status_kernel())
    assert same(both(compiled, 0), np.array(1.0))
    assert both(compiled, 3).status == 3
    assert both(compiled, -2).status == -2


def test_large_arenas_are_kept_and_small_ones_are_on_the_stack() -> None:
    kernel = """define i64 @kernel(ptr %args, ptr %results, ptr %arena) {
  %bits = ptrtoint ptr %arena to i64
  %low = and i64 %bits, 63
  %end = getelementptr i8, ptr %arena, i64 LAST
  store i8 1, ptr %arena
  store i8 1, ptr %end
  %to = load ptr, ptr %results
  store i64 %low, ptr %to
  ret i64 0
}"""
    for size in (64, 16 * 1024 - 64, 16 * 1024, 5 << 20):
        text = kernel.replace("LAST", str(size - 1))
        compiled = build(signature_of([], number_result(Kind.INT, "i8")), text, arena_bytes=size)
        assert both(compiled) == 0
        assert compiled.invoke() == 0
    assert native_runtime().kept_now() >= 5 << 20


def test_results_of_different_calls_share_nothing() -> None:
    compiled = build(signature_of([array_arg((4,))], array_result((4,))))
    x = np.arange(4.0)
    first = compiled.invoke(x)
    second = compiled.invoke(x)
    first[:] = 7
    assert same(second, x)
    assert same(compiled.invoke(x), x)


def test_the_lock_is_released_and_what_lists_hold_is_kept_alive() -> None:
    compiled = build(
        signature_of(
            [ListOf((array_arg(),)), DictOf(("a",), (array_arg(),))], TupleOf((array_result(), array_result()))
        ),
        releases_gil=True,
    )
    x, y = np.arange(3.0), np.arange(3.0) + 1
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(100):
        assert same(both(compiled, [x], {"a": y}), (x, y))
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before


def test_what_lists_hold_is_given_back_whatever_becomes_of_the_call() -> None:
    large = 1 << 17
    signature = signature_of(
        [ListOf((array_arg(), number_arg(Kind.INT, dtype="i8")))], TupleOf((array_result((large,)), array_result(())))
    )
    kernel = """define i64 @kernel(ptr %args, ptr %results, ptr %arena) {
  %at = getelementptr ptr, ptr %args, i64 1
  %from = load ptr, ptr %at
  %status = load i64, ptr %from
  ret i64 %status
}"""
    huge = signature_of([ListOf((array_arg(),))], TupleOf((array_result((large,)), array_result((1 << 45,)))))
    too_large = build(huge, kernel)
    compiled = build(signature, kernel)
    x = np.arange(3.0)
    before = sys.getrefcount(x)
    for _ in range(20):
        assert len(compiled.invoke([x, 0])) == 2
        assert compiled.invoke([x, 4]).status == 4
        with pytest.raises(MemoryError):
            too_large.invoke([x])
    assert sys.getrefcount(x) == before


def test_calls_leak_no_reference() -> None:
    node = DictOf(("w", "b"), (array_arg(), ListOf((number_arg(), TupleOf((array_arg(),))))))
    result = TupleOf((number_result(), ListOf((array_result(),)), DictOf(("k",), (Static(0),))))
    compiled = build(
        signature_of([node, Static(0)], result, statics=1),
        copying_kernel(signature_of([], result), [1, 0]),
        objects=(Pair,),
    )
    x = np.arange(3.0)
    args = ({"w": x, "b": [1.5, (x,)]}, Pair)
    watched: list[Any] = [x, Pair, args[0], args[0]["b"], np.dtype("f8"), np.float64, np.ndarray, compiled, None]
    outcome = compiled.invoke(*args)
    assert same(outcome, (np.float64(1.5), [x], {"k": Pair}))
    del outcome
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(100_000):
        compiled.invoke(*args)
    for _ in range(1000):
        compiled.invoke(args[0], None)
        compiled.invoke(x)
    gc.collect()
    after = [sys.getrefcount(thing) for thing in watched]
    assert all(abs(one - other) < 20 for one, other in zip(before, after, strict=True)), (before, after)


def test_dropped_results_are_freed_at_once() -> None:
    compiled = build(signature_of([array_arg()], array_result()))
    outcome = compiled.invoke(np.arange(3.0))
    alive = weakref.ref(outcome)
    del outcome
    assert alive() is None


@pytest.mark.parametrize(
    ("args", "result"),
    [
        ([number_arg(Kind.FLOAT, dtype="i8")], array_result(())),
        ([number_arg(Kind.INT, dtype="?")], array_result(())),
        ([number_arg(Kind.FLOAT, dtype="f2")], array_result(())),
        ([number_arg(Kind.BOOL, dtype="f8")], array_result(())),
        ([ArgSpec(tensor_type(np.dtype("f8"), (2,)), (Kind.SCALAR,))], array_result((2,))),
        ([ArgSpec(tensor_type(np.dtype("f8"), (2,)), (Kind.FLOAT,))], array_result((2,))),
        ([array_arg((2,))], ResultSpec(tensor_type(np.dtype("f8"), (2,)), Kind.SCALAR)),
        ([array_arg(())], number_result(Kind.INT)),
        ([array_arg(())], array_arg(())),
        ([array_result(())], array_result(())),
    ],
)
def test_a_kind_that_cannot_stand_for_a_type_is_an_error_when_compiling(args: list[Any], result: Any) -> None:
    module = Module()
    module.declare("kernel", "i64", ["ptr", "ptr", "ptr"])
    with pytest.raises(CodegenError):
        emit_entry(module, "entry", "kernel", signature_of(args, result), 0, Layout("", 24, 24, 32))


def test_many_arguments_do_not_need_many_checks() -> None:
    keys = tuple(f"p{number}" for number in range(60))
    compiled = build(
        signature_of(
            [DictOf(keys, tuple(array_arg() for _ in keys))], DictOf(keys, tuple(array_result() for _ in keys))
        )
    )
    given = {key: np.full(3, float(number)) for number, key in enumerate(keys)}
    assert same(both(compiled, given), given)
    assert compiled.spec.code.count(b"entry.array1") == 1


def test_keywords_are_taken_in_the_order_of_the_signature_alone() -> None:
    signature = replace(
        signature_of([array_arg(), number_arg(), array_arg((2,))], TupleOf((array_result(), number_result()))),
        keywords=("rate", "ÿ"),
    )
    compiled = build(signature, copying_kernel(signature))
    x, y = np.arange(3.0), np.ones(2)
    outcome = both(compiled, x, rate=0.5, ÿ=y)
    assert same(outcome[0], x)
    assert outcome[1] == 0.5
    assert same(both(compiled, x, **{"".join(["ra", "te"]): 0.5, "ÿ": y})[0], x)  # an equal name, not the same
    for args, kwargs in (
        ((x,), {"ÿ": y, "rate": 0.5}),
        ((x,), {"rate": 0.5}),
        ((x,), {"rate": 0.5, "ÿ": y, "more": y}),
        ((x,), {"rat": 0.5, "ÿ": y}),
        ((x, 0.5, y), {}),
        ((x, 0.5), {"ÿ": y}),
        ((), {"x": x, "rate": 0.5, "ÿ": y}),
        ((x,), {"rate": y, "ÿ": 0.5}),
    ):
        assert is_misfit(both(compiled, *args, **kwargs)), kwargs


def test_no_keyword_is_taken_where_the_signature_has_none() -> None:
    compiled = build(signature_of([array_arg()], array_result()))
    assert is_misfit(both(compiled, x=np.ones(3)))
    assert is_misfit(both(compiled, np.ones(3), x=np.ones(3)))


def test_a_captured_array_is_read_at_each_call_as_it_then_is() -> None:
    array = np.arange(4.0)
    signature = replace(
        signature_of([number_arg()], TupleOf((number_result(), array_result((4,)))), statics=2),
        captured=(Captured(1, tensor_type(np.dtype("f8"), (4,))),),
    )
    compiled = build(signature, objects=("unused", array))
    assert same(both(compiled, 2.0)[1], array)
    array[:] = 7.0
    assert same(both(compiled, 2.0)[1], np.full(4, 7.0))
    array.resize((9,), refcheck=False)  # its data moves
    assert is_misfit(both(compiled, 2.0))
    array.resize((4,), refcheck=False)
    assert same(both(compiled, 2.0)[1], np.full(4, 7.0))
    array.shape = (2, 2)
    assert is_misfit(both(compiled, 2.0))


def test_a_captured_array_may_have_any_layout_but_no_other_dtype() -> None:
    native_runtime().take_strided()
    strided = np.arange(8.0)[::2]
    signature = replace(
        signature_of([], array_result((4,)), statics=1), captured=(Captured(0, tensor_type(np.dtype("f8"), (4,))),)
    )
    assert is_misfit(both(build(signature, objects=(np.arange(4),))))
    for captured in (strided, strided.astype(">f8"), strided.copy()):
        assert same(both(build(signature, objects=(captured,))), strided.copy())
