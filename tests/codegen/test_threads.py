"""The thread pool runs every chunk once, whoever calls, and survives forks, nesting and other callers."""

import ctypes
import os
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from pullback.codegen.target import QUICK, compile_module, host_target, load_object
from pullback.runtime import runtime as runtime_module
from pullback.runtime.runtime import Runtime, usable_cores
from tests.runtime.kit import new_runtime
from tests.runtime.test_concurrency import in_threads, run_python

# count(ctx, i): ctx[i] += 1 after `ctx[-1]` turns of waiting; nest(ctx, i): parallel_for(count, ctx, 8) without waiting
CHUNKS = """
declare void @pb_parallel_for(ptr, ptr, i64)
define void @count(ptr %context, i64 %chunk) {
entry:
  %turns.at = getelementptr i64, ptr %context, i64 -1
  %turns = load i64, ptr %turns.at
  br label %wait
wait:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %left = icmp ult i64 %i, %turns
  br i1 %left, label %more, label %end
more:
  %busy = load volatile i64, ptr %turns.at
  %next = add i64 %i, 1
  br label %wait
end:
  %at = getelementptr i64, ptr %context, i64 %chunk
  %old = atomicrmw add ptr %at, i64 1 monotonic
  ret void
}
define void @nest(ptr %context, i64 %chunk) {
  call void @pb_parallel_for(ptr @count, ptr %context, i64 8)
  ret void
}
"""


class Pool:
    """A pool of its own, and the functions that chunks are made of."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        address = runtime.symbol("pb_parallel_for")
        code = compile_module(CHUNKS, host_target(), QUICK)
        self.loaded = load_object(code, ["count", "nest"], {"pb_parallel_for": address})
        self.parallel_for = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)

    def workers(self) -> int:
        count: Callable[[], int] = ctypes.CFUNCTYPE(ctypes.c_int64)(self.runtime.symbol("pb_pool_workers"))
        return count()

    def run(self, chunks: int, turns: int = 0, function: str = "count") -> list[int]:
        """How often each chunk ran."""
        memory = np.zeros(max(chunks, 8) + 1, np.int64)
        memory[0] = turns
        self.parallel_for(self.loaded.address(function), memory.ctypes.data + 8, chunks)
        return memory[1:].tolist()


@cache
def pool(threads: int) -> Pool:
    return Pool(new_runtime(threads=threads))


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_chunk_runs_once(threads: int) -> None:
    for chunks in (0, 1, 2, 3, 7, 64, 1000):
        for turns in (0, 100):
            assert pool(threads).run(chunks, turns)[:chunks] == [1] * chunks
    assert pool(threads).workers() == threads - 1


def test_nothing_starts_before_the_first_parallel_work() -> None:
    fresh = Pool(new_runtime(threads=2))
    assert fresh.workers() == 0
    fresh.run(1)
    assert fresh.workers() == 0
    fresh.run(2)
    assert fresh.workers() == 1


def test_it_still_works_after_the_workers_fell_asleep() -> None:
    for _ in range(5):
        assert pool(2).run(16, 1000)[:16] == [1] * 16
        time.sleep(0.005)


def test_many_short_jobs_in_a_row_lose_no_chunk() -> None:
    assert all(pool(3).run(chunks)[:chunks] == [1] * chunks for _ in range(300) for chunks in (2, 3, 5))


def test_nested_calls_run_serially() -> None:
    assert pool(2).run(6, 10, "nest")[:8] == [6] * 8


def test_several_threads_may_call_at_once() -> None:
    def work(_: int) -> bool:
        return all(pool(3).run(20, 50)[:20] == [1] * 20 for _ in range(200))

    assert in_threads(4, work) == [True] * 4


def test_work_is_shared_among_threads() -> None:
    seen: set[int] = set()
    chunk_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

    def chunk(_context: Any, _number: int) -> None:
        seen.add(threading.get_ident())
        time.sleep(0.002)

    callback = chunk_type(chunk)
    pool(2).parallel_for(ctypes.cast(callback, ctypes.c_void_p), None, 40)
    assert len(seen) == 2


def test_workers_leave_signals_to_python() -> None:
    out = run_python("""
        import signal
        from tests.codegen.test_threads import pool
        pool(4).run(64, 1000)
        hits = []
        signal.signal(signal.SIGALRM, lambda *_: hits.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        started = time.monotonic()
        signal.pause()
        print(hits, time.monotonic() - started < 5)
    """)
    assert out == "[1] True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this platform")
def test_a_forked_child_has_workers_of_its_own() -> None:
    out = run_python("""
        from tests.codegen.test_threads import pool
        assert pool(3).run(100, 10)[:100] == [1] * 100
        for _ in range(5):
            child = os.fork()
            if child == 0:
                assert pool(3).workers() == 0
                assert pool(3).run(100, 10)[:100] == [1] * 100
                assert pool(3).workers() == 2
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print(pool(3).run(50)[:50] == [1] * 50)
    """)
    assert out == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this platform")
def test_a_child_forked_while_another_thread_uses_the_pool_may_use_it() -> None:
    out = run_python("""
        from tests.codegen.test_threads import pool
        pool(2).run(4)
        stop = []
        def work():
            while not stop:
                pool(2).run(64, 20_000)
        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                assert pool(2).run(10)[:10] == [1] * 10
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.append(1)
        thread.join()
        print("done")
    """)
    assert out == "done\n"


def test_without_posix_threads_the_caller_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_module, "process_address", lambda name: None)
    runtime = new_runtime(threads=4)
    assert not runtime.has_threads
    serial = Pool(runtime)
    assert serial.run(30)[:30] == [1] * 30


def test_the_number_of_threads_follows_the_cores_of_the_process() -> None:
    assert new_runtime().threads == usable_cores() >= 1
    count = ctypes.CFUNCTYPE(ctypes.c_int64)(pool(3).runtime.symbol("pb_thread_count"))
    assert count() == 3
