"""From text to object code to addresses, and what is said when that fails."""

import ctypes
import gc
import threading

import pytest

from pullback.codegen.llvm import vector_type
from pullback.codegen.target import (
    FULL,
    NO_OPT,
    QUICK,
    Loader,
    assembly,
    compile_module,
    host_target,
    load_object,
    optimised_ir,
)
from pullback.errors import CodegenError

TWICE = """declare double @outside(double)
define double @twice(double %x) {
  %y = call double @outside(double %x)
  ret double %y
}
"""
UNARY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


@pytest.mark.parametrize("opt", [NO_OPT, QUICK, FULL])
def test_external_symbols_are_bound_for_each_object_alone(opt: int) -> None:
    code = compile_module(TWICE, host_target(), opt)
    functions = [UNARY(lambda x: 2 * x), UNARY(lambda x: 10 * x)]
    loaded = [load_object(code, ["twice"], {"outside": ctypes.cast(f, ctypes.c_void_p).value or 0}) for f in functions]
    assert [UNARY(item.address("twice"))(4.0) for item in loaded] == [8.0, 40.0]


def test_what_llvm_calls_by_itself_is_found_in_the_process() -> None:
    module = host_target().module()
    b = module.function("copy", "void", [("ptr", "target"), ("ptr", "source"), ("i64", "size")])
    b.memcpy(*b.params)
    b.ret()
    loaded = load_object(compile_module(str(module), host_target()), ["copy"])
    source, target = ctypes.create_string_buffer(b"x" * 999), ctypes.create_string_buffer(1000)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(loaded.address("copy"))(
        ctypes.addressof(target), ctypes.addressof(source), 1000
    )
    assert target.raw == source.raw


def test_dropping_a_loaded_object_leaves_others_alone() -> None:
    code = compile_module("define double @one() {\n ret double 1.0\n}", host_target())
    kept = load_object(code, ["one"])
    for _ in range(20):
        load_object(code, ["one"])
    gc.collect()
    assert ctypes.CFUNCTYPE(ctypes.c_double)(kept.address("one"))() == 1.0


def test_text_that_llvm_rejects_is_a_named_error() -> None:
    with pytest.raises(CodegenError, match="function result type"):
        compile_module("define i64 @f() { ret i32 0 }", host_target())
    with pytest.raises(CodegenError, match="rejects"):
        compile_module("define i64 @f() {\na:\n br label %a\nb:\n %x = add i64 %x, 1\n ret i64 %x\n}", host_target())


def test_objects_that_cannot_be_linked_are_named_errors() -> None:
    code = compile_module(TWICE, host_target())
    with pytest.raises(CodegenError, match="nowhere"):
        load_object(code, ["nowhere"], {"outside": 1})
    with pytest.raises(CodegenError, match="cannot be linked"):
        load_object(code[:200], ["twice"], {"outside": 1})
    with pytest.raises(CodegenError, match="no symbol 'other'"):
        load_object(code, ["twice"], {"outside": 1}).address("other")


def test_explicit_vectors_fill_the_widest_registers() -> None:
    target = host_target()
    module = target.module()
    lanes = target.lanes(8)
    type_ = vector_type("double", lanes)
    b = module.function("f", "void", [("ptr", "x")])
    with b.loop(0, 8000, lanes) as loop:
        place = b.gep("double", b.params[0], loop.index)
        b.store(b.fma(b.load(type_, place, 8), 2.0, 1.0), place, 8)
    b.ret()
    register = {64: "zmm", 32: "ymm", 16: ""}[target.vector_bytes]
    assert register in assembly(str(module), target)
    assert f"@llvm.fma.v{lanes}f64" in optimised_ir(str(module), target)


def test_the_target_says_how_many_items_fill_a_vector() -> None:
    target = host_target()
    assert target.lanes(8) * 8 == target.vector_bytes
    assert target.lanes(4) == 2 * target.lanes(8)
    assert host_target() is target


def test_threads_may_compile_and_load_at_once() -> None:
    code, failures = "define double @one() {\n ret double 1.0\n}", []
    loader = Loader(host_target())

    def work() -> None:
        try:
            for _ in range(10):
                loaded = loader.load(compile_module(code, host_target()), ["one"])
                assert ctypes.CFUNCTYPE(ctypes.c_double)(loaded.address("one"))() == 1.0
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
