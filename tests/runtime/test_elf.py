"""The project's own linker does what LLVM's does, refuses what it does not know, and frees what is dropped."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.codegen.target import FULL, NO_OPT, QUICK, compile_module, host_target, load_object
from pullback.errors import CodegenError
from pullback.runtime import elf
from tests.runtime.kit import array_arg, array_result, build, new_runtime, signature_of
from tests.runtime.test_concurrency import run_python

pytestmark = pytest.mark.skipif(not elf.can_link(), reason="objects of this platform are LLVM's to link")

# Far and near calls, constants, a jump table, tables of addresses, zeroed and initialised variables.
MODULE = """
@counter = internal global i64 5
@zeroed = internal global [1000 x i64] zeroinitializer, align 64
@visible = global i64 7
@table = internal constant [3 x ptr] [ptr @one, ptr @two, ptr @visible]
@numbers = internal constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5], align 64
@far = external global i64
declare i64 @callback(i64)
declare i64 @labs(i64)
define i64 @one(i64 %x) { ret i64 1 }
define i64 @two(i64 %x) noinline { ret i64 %x }
define i64 @by_table(i64 %which, i64 %x) {
  %at = getelementptr ptr, ptr @table, i64 %which
  %function = load ptr, ptr %at
  %result = call i64 %function(i64 %x)
  ret i64 %result
}
define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  %last = getelementptr i64, ptr @zeroed, i64 999
  %zero = load i64, ptr %last
  %seen = load i64, ptr @visible
  %sum = add i64 %new, %zero
  %all = add i64 %sum, %seen
  ret i64 %all
}
define double @number(i64 %which) {
  %at = getelementptr double, ptr @numbers, i64 %which
  %number = load double, ptr %at
  %scaled = fmul double %number, 3.0
  ret double %scaled
}
define i64 @call_far(i64 %x) {
  %one = call i64 @callback(i64 %x)
  %two = call i64 @callback(i64 %one)
  %positive = call i64 @labs(i64 %two)
  %more = load i64, ptr @far
  %sum = add i64 %positive, %more
  ret i64 %sum
}
define ptr @address_of_callback() { ret ptr @callback }
define i64 @choose(i64 %x) {
entry:
  switch i64 %x, label %other [ i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e ]
a:
  ret i64 17
b:
  %b1 = call i64 @two(i64 99)
  ret i64 %b1
c:
  ret i64 -3
d:
  %d1 = call i64 @count()
  ret i64 %d1
e:
  ret i64 2
other:
  ret i64 0
}
"""
EXPORTS = ["by_table", "count", "number", "call_far", "address_of_callback", "choose", "visible"]

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 2 * x)
FAR = ctypes.c_int64(1000)
SYMBOLS = {"callback": ctypes.cast(CALLBACK, ctypes.c_void_p).value or 0, "far": ctypes.addressof(FAR)}


def results(link: Callable[..., Any], code: bytes) -> list[Any]:
    """What the functions of the module return."""
    loaded = link(code, EXPORTS, SYMBOLS | {"labs": ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value})
    whole = ctypes.c_int64

    def function(name: str, result: Any, *args: Any) -> Any:
        return ctypes.CFUNCTYPE(result, *args)(loaded.address(name))

    by_table, choose = function("by_table", whole, whole, whole), function("choose", whole, whole)
    call_far, count = function("call_far", whole, whole), function("count", whole)
    number = function("number", ctypes.c_double, whole)
    return [
        [
            by_table(0, 8),
            by_table(1, 8),
            count(),
            count(),
            call_far(-5),
            whole.from_address(loaded.address("visible")).value,
        ],
        [number(which) for which in range(4)],
        [choose(which) for which in range(-1, 6)],
        function("address_of_callback", ctypes.c_void_p)(),
    ]


@pytest.mark.parametrize("opt", [NO_OPT, QUICK, FULL])
def test_it_links_what_llvm_links(opt: int) -> None:
    code = compile_module(MODULE, host_target(), opt)
    expected = [
        [1, 8, 13, 14, 1020, 7],
        [4.5, 7.5, 10.5, 13.5],
        [0, 17, 99, -3, 15, 2, 0],
        SYMBOLS["callback"],
    ]
    assert results(elf.link, code) == expected
    assert results(load_object, code) == expected


def test_objects_do_not_share_their_variables() -> None:
    code = compile_module(MODULE, host_target(), QUICK)
    first, second = (elf.link(code, ["count"], SYMBOLS) for _ in range(2))
    count = [ctypes.CFUNCTYPE(ctypes.c_int64)(one.address("count")) for one in (first, second)]
    assert [count[0](), count[0](), count[1]()] == [13, 14, 13]


def test_code_and_constants_cannot_be_written() -> None:
    loaded = elf.link(compile_module(MODULE, host_target(), QUICK), EXPORTS, SYMBOLS)
    rights = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        for name in ("count", "visible"):
            if start <= loaded.address(name) < end:
                rights[name] = line.split()[1]
    assert rights == {"count": "r-xp", "visible": "rw-p"}


def test_dropping_an_object_gives_its_memory_back() -> None:
    code = compile_module(MODULE, host_target(), QUICK)

    def size() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0])

    elf.link(code, EXPORTS, SYMBOLS)
    before = size()
    for _ in range(500):
        elf.link(code, EXPORTS, SYMBOLS)
    assert size() - before < 200


def test_missing_names_are_said() -> None:
    code = compile_module(MODULE, host_target(), QUICK)
    with pytest.raises(CodegenError, match="callback"):
        elf.link(code, EXPORTS, {"far": 1})
    loaded = elf.link(code, ["count"], SYMBOLS)
    with pytest.raises(CodegenError, match="'choose'"):
        loaded.address("choose")


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", b"MZ" + bytes(200), bytes(64), b"\x7fELF\x02\x01\x01" + bytes(57)])
def test_what_is_no_object_is_refused(damage: bytes) -> None:
    with pytest.raises(elf.UnlinkableError):
        elf.link(damage, [], {})


def test_a_cut_object_is_refused() -> None:
    code = compile_module(MODULE, host_target(), QUICK)
    for length in range(64, len(code) - 64, 97):
        with pytest.raises(CodegenError):
            elf.link(code[:length], EXPORTS, SYMBOLS)


def test_thread_local_variables_are_left_to_llvm() -> None:
    text = """
@v = thread_local global i64 1
declare ptr @llvm.threadlocal.address.p0(ptr)
define ptr @f() {
  %p = call ptr @llvm.threadlocal.address.p0(ptr @v)
  ret ptr %p
}"""
    code = compile_module(text, host_target(), QUICK)
    with pytest.raises(elf.UnlinkableError):
        elf.link(code, ["f"], {})


def test_a_runtime_without_the_linker_uses_llvms() -> None:
    links: list[tuple[str, ...]] = []

    def load(code: bytes, exports: Any, symbols: Any) -> Any:
        links.append(tuple(exports))
        return load_object(code, exports, symbols)

    signature = signature_of([array_arg()], array_result())
    own = new_runtime()
    own._llvm_link = load
    assert build(signature, runtime=own).invoke(np.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert links == []
    other = new_runtime(own_linker=False)
    other._llvm_link = load
    assert build(signature, runtime=other).invoke(np.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert ("kernel", "entry") in links
    assert len(links) == 2


def test_what_the_linker_refuses_goes_to_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise elf.UnlinkableError("not today")

    monkeypatch.setattr(elf, "link", refuse)
    unit = build(signature_of([array_arg()], array_result()), runtime=new_runtime())
    assert unit.invoke(np.ones(3)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("own_linker", [True, False])
def test_threads_may_end_with_the_process_in_the_middle_of_a_kernel(own_linker: bool) -> None:
    out = run_python(f"""
        spin = '''define i64 @kernel(ptr %args, ptr %results, ptr %arena) {{
        entry:
          %flag.at = load ptr, ptr %args
          br label %wait
        wait:
          %flag = load volatile i64, ptr %flag.at
          %set = icmp eq i64 %flag, 1
          br i1 %set, label %end, label %wait
        end:
          ret i64 0
        }}'''
        runtime = new_runtime(own_linker={own_linker})
        signature = signature_of([array_arg((1,), 'i8')], array_result())
        for _ in range(3):
            flag = np.zeros(1, np.int64)
            function = runtime.function(fallback)
            function.install(build(signature, spin, runtime, releases_gil=True))
            threading.Thread(target=function, args=(flag,), daemon=True).start()
        class Late:
            def __del__(self, flag=flag, sleep=time.sleep):
                flag[0] = 1
                sleep(0.05)
        sys.modules['late'] = Late()
        sys.late = Late()
        time.sleep(0.05)
        print("ending")
    """)
    assert out == "ending\n"
