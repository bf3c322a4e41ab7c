"""The text builder: what it writes is what LLVM reads, and it computes what was meant."""

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from pullback.codegen.llvm import (
    FunctionBuilder,
    Module,
    V,
    const,
    const_lanes,
    element_of,
    lanes_of,
    scalar_literal,
    suffix_of,
    vector_type,
    with_element,
)
from pullback.codegen.target import compile_module, host_target, load_object


def run(build: Callable[[FunctionBuilder], None], *arrays: np.ndarray) -> None:
    """Compile `void @f(ptr, ptr, ...)` with the body that `build` emits, and call it on the arrays."""
    module = host_target().module("test")
    build(module.function("f", "void", [("ptr", f"x{i}") for i in range(len(arrays))]))
    loaded = load_object(compile_module(str(module), host_target()), ["f"])
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(loaded.address("f"))
    call(*(x.ctypes.data for x in arrays))


def test_types_are_taken_apart_and_put_together() -> None:
    assert vector_type("double", 8) == "<8 x double>"
    assert vector_type("i64", 1) == "i64"
    assert (lanes_of("<4 x float>"), element_of("<4 x float>")) == (4, "float")
    assert (lanes_of("ptr"), element_of("ptr")) == (1, "ptr")
    assert with_element("<4 x float>", "i1") == "<4 x i1>"
    assert [suffix_of(t) for t in ("<8 x double>", "i64", "ptr", "<2 x half>")] == ["v8f64", "i64", "p0", "v2f16"]


def test_constants_are_exact_and_keep_the_sign_of_zero() -> None:
    assert const("double", 0.1) == V("0x3FB999999999999A", "double")
    assert const("float", 0.1).name == "0x3FB99999A0000000"
    assert const("double", 0.0).name != const("double", -0.0).name
    assert const("<4 x i64>", 3).name == "splat (i64 3)"
    assert const("i1", True).name == "true"
    assert scalar_literal("half", 1.0) == "0xH3C00"
    assert scalar_literal("double", float("nan")).startswith("0x7FF8")
    assert const_lanes("i32", [1, 2]).name == "<i32 1, i32 2>"


def test_loop_carries_values_and_counts_no_turns_of_an_empty_range() -> None:
    out = np.zeros(3, np.int64)

    def build(b: FunctionBuilder) -> None:
        (out_,) = b.params
        for slot, (lo, hi) in enumerate([(0, 10), (5, 5)]):
            with b.loop(lo, hi, 3, carry=[const("i64", 100)]) as loop:
                loop.turn(b.add(loop.carry[0], loop.index))
            b.store(loop.results[0], b.gep("i64", out_, slot), 8)
        with b.loop(const("i64", 0), b.load("i64", out_, 8)) as loop:
            b.store(loop.index, b.gep("i64", out_, 2), 8)
        b.ret()

    run(build, out)
    assert out.tolist() == [100 + 0 + 3 + 6 + 9, 100, 117]


def test_loop_refuses_a_wrong_number_of_carried_values() -> None:
    b = Module().function("f", "void")
    with pytest.raises(ValueError, match="carries 1 values but turn"), b.loop(0, 3, carry=[const("i64", 0)]) as loop:
        loop.turn()
    with pytest.raises(ValueError, match="must be positive"):
        b.loop(0, 3, 0)


def test_memory_operations_move_the_right_lanes() -> None:
    source = np.arange(8.0)
    out = np.full(24, -1.0)

    def build(b: FunctionBuilder) -> None:
        x, y = b.params
        vector = "<8 x double>"
        mask = b.icmp("slt", const_lanes("i64", range(8)), 3)
        b.masked_store(b.masked_load(vector, x, 8, mask, 5.0), y, 8, b.not_(b.icmp("eq", const("<8 x i64>", 0), 1)))
        back = b.gep("double", x, const_lanes("i64", range(7, -1, -1)))
        b.scatter(b.gather(vector, back, 8), b.gep("double", y, const_lanes("i64", range(8, 16))), 8)
        b.memcpy(b.gep("double", y, 16), x, 32)
        b.memset(b.gep("double", y, 20), 0, 32)
        b.ret()

    run(build, source, out)
    assert out.tolist() == [0, 1, 2, 5, 5, 5, 5, 5, 7, 6, 5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 0, 0, 0, 0]


def test_arithmetic_takes_python_numbers_on_either_side() -> None:
    x = np.array([3.0, 0.0])

    def build(b: FunctionBuilder) -> None:
        (p,) = b.params
        value = b.load("double", p, 8)
        value = b.rfsub(10.0, b.fma(value, 2.0, 0.5))  # 3.5
        value = b.rfdiv(7.0, value)  # 2
        value = b.select(b.fcmp("olt", value, 0), value, b.fadd(b.intrinsic("fabs", b.fneg(value)), 1))  # 3
        integer = b.cast("fptosi", value, "i64")
        integer = b.sub(b.shl(b.or_(b.xor(integer, 1), 4), 2), b.rsub(1, b.ashr(const("i64", -8), 1)))  # 24 - 5
        b.store(b.cast("sitofp", b.srem(integer, 12), "double"), b.gep("double", p, 1), 8)
        b.ret()

    run(build, x)
    assert x[1] == 19 % 12


def test_vectors_are_reduced_shuffled_and_filled() -> None:
    x = np.arange(1.0, 9.0)
    out = np.zeros(4)

    def build(b: FunctionBuilder) -> None:
        p, q = b.params
        v = b.load("<8 x double>", p, 8)
        swapped = b.shuffle(v, v, [7, 6, 5, 4, 3, 2, 1, 0])
        total = b.reduce("fadd", b.fmul(swapped, b.splat(b.extract(v, 1), 8)), -0.0, "reassoc")
        b.store(total, q, 8)
        b.store(b.reduce("fmax", b.insert(v, 100.0, 3)), b.gep("double", q, 1), 8)
        any_large = b.any(b.fcmp("ogt", v, 7.5))
        b.store(b.cast("uitofp", any_large, "double"), b.gep("double", q, 2), 8)
        b.store(b.reduce("fadd", total, 1.0), b.gep("double", q, 3), 8)
        b.ret()

    run(build, x, out)
    assert out.tolist() == [72.0, 100.0, 1.0, 73.0]


def test_calls_structs_branches_and_switches_work() -> None:
    x = np.array([5.0, 0.0])

    def build(b: FunctionBuilder) -> None:
        pair = "{ double, i64 }"
        inner = b.module.function("both", pair, [("double", "x")], "internal", "noinline")
        inner.ret_struct(inner.fmul(inner.params[0], 2.0), const("i64", 2))
        both = b.call(pair, "both", [b.load("double", b.params[0], 8)])
        one, two, other = b.new_label(), b.new_label(), b.new_label()
        b.switch(b.extract_value(both, 1, "i64"), other, [(1, one), (2, two)])
        for label in (one, other):
            b.label(label)
            b.unreachable()
        b.label(two)
        slot = b.alloca("double")
        b.store(b.extract_value(both, 0, "double"), slot, 8)
        b.store(b.load("double", slot, 8), b.gep("double", b.params[0], 1), 8)
        b.ret()

    run(build, x)
    assert x[1] == 10.0


def test_constant_data_is_stored_once_and_read_back() -> None:
    out = np.zeros(2)

    def build(b: FunctionBuilder) -> None:
        table = b.module.constant(np.array([1.5, -2.5]).tobytes())
        assert b.module.constant(np.array([1.5, -2.5]).tobytes()) == table
        for i in range(2):
            b.store(b.load("double", b.gep("double", table, i), 8), b.gep("double", b.params[0], i), 8)
        b.ret()

    run(build, out)
    assert out.tolist() == [1.5, -2.5]


def test_metadata_nodes_refer_to_themselves_and_are_shared() -> None:
    module = Module()
    assert module.metadata('!{{self}, !"domain"}', distinct=True) == "!0"
    assert module.metadata("!{i32 1}") == module.metadata("!{i32 1}") == "!1"
    assert '!0 = distinct !{!0, !"domain"}' in str(module)
    assert module.attributes("cold") == module.attributes("cold") == "#0"


def test_a_function_is_begun_once() -> None:
    module = Module()
    module.function("f", "void")
    with pytest.raises(ValueError, match="@f is already"):
        module.function("f", "void")
