"""Many threads may call, first-call and replace the same function; forked children too."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.codegen.object import Kind
from pullback.runtime.compiled import Compiled
from pullback.runtime.once import Once
from pullback.runtime.runtime import Runtime
from tests.runtime.kit import (
    array_arg,
    array_result,
    build,
    ctypes_runtime,
    fallback,
    native_runtime,
    new_runtime,
    number_arg,
    number_result,
    signature_of,
)

ROOT = Path(__file__).resolve().parents[2]


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What `work(number)` returns in each of so many threads that start together."""
    barrier = threading.Barrier(count)
    outcomes: list[Any] = [None] * count

    def run(number: int) -> None:
        barrier.wait()
        try:
            outcomes[number] = work(number)
        except BaseException as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.parametrize("make", [native_runtime, ctypes_runtime])
def test_eight_threads_first_call_one_function(make: Callable[[], Runtime]) -> None:
    runtime = make()
    builds: list[int] = []

    def compile_it(size: int) -> Compiled:
        builds.append(size)
        time.sleep(0.02)
        return build(signature_of([array_arg((size,))], array_result((size,))), runtime=runtime)

    def dispatch(function: Any, args: Any, *_: Any) -> Any:
        size = len(args[0])
        compiled = function.specialisations.get_or_build(size, lambda: compile_it(size))
        function.install(compiled)
        return compiled.invoke(*args)

    function = runtime.function(dispatch)

    def work(number: int) -> bool:
        for turn in range(300):
            x = np.arange(float(1 + (number + turn) % 6))
            if function(x).tolist() != x.tolist():
                return False
        return True

    assert in_threads(8, work) == [True] * 8
    assert sorted(builds) == [1, 2, 3, 4, 5, 6]


def test_threads_that_make_functions_at_once_share_one_type() -> None:
    runtime = new_runtime()
    types = in_threads(8, lambda _: type(runtime.function(fallback)))
    assert len(set(types)) == 1


def test_calls_go_on_while_specialisations_are_replaced() -> None:
    runtime = native_runtime()
    units = [
        build(signature_of([array_arg((2000,))], array_result((2000,))), releases_gil=bool(number % 2))
        for number in range(6)
    ]
    function = runtime.function(lambda _function, args, *_: args[0].copy())
    x = np.arange(2000.0)

    def work(number: int) -> bool:
        for turn in range(400):
            if number < 3:
                function.install(units[(turn + number) % 6])
                if turn % 50 == 0:
                    function.uninstall_all()
            if function(x)[-1] != 1999.0:
                return False
        return True

    assert in_threads(6, work) == [True] * 6


def test_other_threads_run_while_a_kernel_does() -> None:
    spin = """define i64 @kernel(ptr %args, ptr %results, ptr %arena) {
entry:
  %flag.at = load ptr, ptr %args
  br label %wait
wait:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %flag = load atomic volatile double, ptr %flag.at monotonic, align 8
  %set = fcmp une double %flag, 0.0
  br i1 %set, label %end, label %more
more:
  %next = add i64 %i, 1
  %tired = icmp ugt i64 %next, 20000000000
  br i1 %tired, label %end, label %wait
end:
  ret i64 0
}"""
    signature = signature_of([array_arg((1,))], number_result(Kind.FLOAT))
    function = native_runtime().function(fallback)
    function.install(build(signature, spin, releases_gil=True))
    flag = np.zeros(1)
    thread = threading.Thread(target=function, args=(flag,))
    thread.start()
    time.sleep(0.01)
    flag[0] = 1.0
    thread.join(timeout=20)
    assert not thread.is_alive()


def test_once_builds_once_and_waits() -> None:
    once = Once()
    values: dict[str, int] = {}

    def build_value() -> int:
        time.sleep(0.02)
        values["key"] = values.get("key", 0) + 1
        return values["key"]

    assert in_threads(8, lambda _: once.get("key", lambda: values.get("key"), build_value)) == [1] * 8


def test_once_gives_the_error_to_its_thread_and_lets_others_try() -> None:
    once = Once()
    values: dict[str, int] = {}

    def build_value(number: int) -> int:
        time.sleep(0.01)
        if number % 2:
            raise KeyError(number)
        values["key"] = 5
        return 5

    outcomes = in_threads(6, lambda number: once.get("key", lambda: values.get("key"), lambda: build_value(number)))
    assert all(outcome == 5 or isinstance(outcome, KeyError) for outcome in outcomes)
    assert 5 in outcomes


def test_builds_that_need_one_another_do_not_wait_in_a_circle() -> None:
    once = Once()
    values: dict[int, str] = {}
    both = threading.Barrier(2)

    def outer(number: int) -> str:
        both.wait(timeout=10)
        inner = once.get(1 - number, lambda: values.get(1 - number), lambda: f"inner {1 - number}")
        values[number] = f"outer {number} with {inner}"
        return values[number]

    outcomes = in_threads(2, lambda number: once.get(number, lambda: values.get(number), lambda: outer(number)))
    assert [outcome[:12] for outcome in outcomes] == ["outer 0 with", "outer 1 with"]


def run_python(code: str) -> str:
    """Standard output of a fresh interpreter that runs `code`."""
    head = "import os, sys, threading, time\nimport numpy as np\nfrom tests.runtime.kit import *\n"
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this platform")
def test_a_forked_child_calls_and_compiles_by_itself() -> None:
    out = run_python("""
        function = native_runtime().function(lambda *_: "python")
        function.install(build(signature_of([array_arg()], array_result())))
        x = np.arange(3.0)
        function(x)
        child = os.fork()
        if child == 0:
            assert function(x).tolist() == [0.0, 1.0, 2.0]
            assert function(1) == "python"
            function.install(build(signature_of([array_arg((2,))], array_result((2,)))))
            assert function(np.ones(2)).tolist() == [1.0, 1.0]
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), function(x).tolist())
    """)
    assert out == "0 [0.0, 1.0, 2.0]\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this platform")
def test_a_child_forked_during_a_build_builds_anew() -> None:
    out = run_python("""
        from pullback.runtime.once import Once
        once, values, started = Once(), {}, threading.Event()
        def slow():
            started.set()
            time.sleep(1)
            values["key"] = "parent"
            return "parent"
        thread = threading.Thread(target=lambda: once.get("key", lambda: values.get("key"), slow))
        thread.start()
        started.wait()
        child = os.fork()
        if child == 0:
            assert once.get("key", lambda: values.get("key"), lambda: "child") == "child"
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        thread.join()
        print(code, once.get("key", lambda: values.get("key"), lambda: "late"))
    """)
    assert out == "0 parent\n"


def test_the_interpreter_ends_cleanly_with_kernels_running() -> None:
    out = run_python("""
        spin = '''define i64 @kernel(ptr %args, ptr %results, ptr %arena) {
        entry:
          br label %wait
        wait:
          %flag = load volatile i64, ptr %results
          %set = icmp eq i64 %flag, 1
          br i1 %set, label %end, label %wait
        end:
          ret i64 0
        }'''
        function = native_runtime().function(fallback)
        function.install(build(signature_of([], array_result()), spin, releases_gil=True))
        threading.Thread(target=function, daemon=True).start()
        time.sleep(0.05)
        print("ending")
    """)
    assert out == "ending\n"


def test_numbers_of_many_threads_do_not_mix() -> None:
    function = native_runtime().function(fallback)
    function.install(build(signature_of([number_arg()], number_result()), arena_bytes=100_000, releases_gil=True))

    def work(number: int) -> bool:
        return all(function(float(number * 1000 + turn)) == number * 1000 + turn for turn in range(2000))

    assert in_threads(6, work) == [True] * 6
