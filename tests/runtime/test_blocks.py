"""Large results take memory that earlier ones gave back, within bounds, and are ordinary arrays."""

import gc
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

from pullback.codegen.object import TupleOf
from pullback.runtime.runtime import Runtime
from tests.runtime.kit import array_arg, array_result, build, new_runtime, signature_of

MIB = 1 << 20


def handler_of(array: np.ndarray[Any, Any]) -> str:
    return str(np._core.multiarray.get_handler_name(array))  # type: ignore[attr-defined]


def empty_kernel() -> str:
    """Writes the first and the last byte of a block of 8 MiB."""
    return """define i64 @kernel(ptr %args, ptr %results, ptr %arena) {
  %to = load ptr, ptr %results
  store i8 1, ptr %to
  %end = getelementptr i8, ptr %to, i64 8388607
  store i8 2, ptr %end
  ret i64 0
}"""


@pytest.fixture
def runtime() -> Runtime:
    return new_runtime(kept_bytes=20 * MIB)


def maker(runtime: Runtime, count: int = MIB) -> Any:
    signature = signature_of([array_arg((1,))], array_result((count,)))
    kernel = empty_kernel().replace("8388607", str(8 * count - 1))
    return build(signature, kernel, runtime).invoke


def test_a_dropped_result_is_used_again(runtime: Runtime) -> None:
    make, x = maker(runtime), np.zeros(1)
    first = make(x)
    place = first.ctypes.data
    assert place % 4096 == 0
    assert handler_of(first) == "pullback"
    assert first.flags.owndata
    assert first.base is None
    del first
    assert runtime.kept_now() == 8 * MIB
    second = make(x)
    assert second.ctypes.data == place
    assert runtime.kept_now() == 0
    third = make(x)
    assert third.ctypes.data != place


def test_a_view_keeps_the_memory(runtime: Runtime) -> None:
    make, x = maker(runtime), np.zeros(1)
    view = make(x)[5:10]
    assert runtime.kept_now() == 0
    view[:] = 3
    other = make(x)
    other[:] = 7
    assert view.tolist() == [3.0] * 5


def test_what_is_kept_is_bounded_in_bytes_and_in_number(runtime: Runtime) -> None:
    make, x = maker(runtime), np.zeros(1)
    results = [make(x) for _ in range(5)]
    del results
    assert runtime.kept_now() == 16 * MIB
    small = maker(runtime, MIB // 8)
    many = [small(x) for _ in range(40)]
    del many
    assert runtime.kept_now() <= 16 * MIB
    huge = maker(runtime, 3 * MIB)(x)
    del huge
    assert runtime.kept_now() <= 20 * MIB


def test_a_much_smaller_result_does_not_take_a_large_block(runtime: Runtime) -> None:
    x = np.zeros(1)
    maker(runtime)(x)
    assert runtime.kept_now() == 8 * MIB
    small = maker(runtime, MIB // 2)(x)
    assert runtime.kept_now() == 8 * MIB
    assert small.nbytes == 4 * MIB


def test_small_results_are_numpys_own(runtime: Runtime) -> None:
    small = build(signature_of([array_arg()], array_result()), runtime=runtime).invoke(np.zeros(3))
    assert handler_of(small) == "default_allocator"
    assert handler_of(np.zeros(2 * MIB)) == "default_allocator"


def test_nothing_is_kept_when_switched_off() -> None:
    runtime = new_runtime(kept_bytes=0)
    result = maker(runtime)(np.zeros(1))
    assert handler_of(result) == "default_allocator"
    del result
    assert runtime.kept_now() == 0


def test_such_arrays_can_be_resized_copied_and_zeroed(runtime: Runtime) -> None:
    make, x = maker(runtime), np.zeros(1)
    result = make(x)
    result[:] = np.arange(MIB)
    result.resize((MIB // 4,), refcheck=False)
    assert result.tolist() == list(range(MIB // 4))
    result.resize((2 * MIB,), refcheck=False)
    assert result[MIB // 4 - 1] == MIB // 4 - 1
    assert not result[MIB // 4 :].any()
    assert handler_of(result.copy()) == "default_allocator"


def test_memory_too_large_to_have_is_a_memory_error(runtime: Runtime) -> None:
    huge = 1 << 44
    compiled = build(signature_of([array_arg((1,))], array_result((huge,))), empty_kernel(), runtime)
    with pytest.raises(MemoryError):
        compiled.invoke(np.zeros(1))
    arena = build(signature_of([array_arg()], array_result()), runtime=runtime, arena_bytes=1 << 47)
    with pytest.raises(MemoryError):
        arena.invoke(np.zeros(3))
    signature = signature_of([array_arg((1,))], TupleOf((array_result((MIB,)), array_result((huge,)))))
    with pytest.raises(MemoryError):
        build(signature, empty_kernel(), runtime).invoke(np.zeros(1))
    assert runtime.kept_now() == 8 * MIB


def test_results_may_be_dropped_by_other_threads(runtime: Runtime) -> None:
    make, x = maker(runtime), np.zeros(1)
    results: list[Any] = []

    def work() -> None:
        for number in range(50):
            array = make(x)
            array[1] = number
            results.append(array)
            if len(results) > 3:
                results.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({array.ctypes.data for array in results}) == len(results)
    results.clear()
    gc.collect()
    assert 0 < runtime.kept_now() <= 20 * MIB


def test_python_can_trace_this_memory(runtime: Runtime) -> None:
    make, x = maker(runtime), np.zeros(1)
    make(x)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    result = make(x)
    during = tracemalloc.get_traced_memory()[0]
    del result
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert during - before >= 8 * MIB
    assert after - before < MIB
