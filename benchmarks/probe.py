"""One system on one workload in a process of its own: import, first call, memory. Prints one line of JSON.

The first function that a process compiles pays for starting the compiler (LLVM's targets, XLA's client). That is timed
apart, on a function of one multiplication, so that `first_call` is what one more function costs.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from .compiling import CHAINS
from .systems import SYSTEMS
from .timing import first_call
from .workload import Library, Workload
from .workloads import WORKLOADS


def _square(library: Library, x: Any) -> Any:
    return x * x


def probe(system_name: str, workload_name: str) -> dict[str, Any]:
    """Return times in seconds and memory in bytes; memory is None where the kernel does not tell."""
    system = next(system for system in SYSTEMS if system.name == system_name)
    workload = {**WORKLOADS, **{chain.name: chain for chain in CHAINS}}[workload_name]
    begin = time.perf_counter()
    prepare = system.load()
    imported = time.perf_counter() - begin
    if prepare is None:
        return {"fault": "not installed"}
    warm_up = prepare(Workload("warm-up", "", _square, lambda rng: (2.0,)), (2.0,))
    startup = first_call(warm_up)[0] if warm_up else 0.0
    prepared = prepare(workload, workload.sample())
    if prepared is None:
        return {"fault": "no such version"}
    before = _memory("VmRSS")
    seconds, result = first_call(prepared)
    # The second call is the steady state: its own results, and scratch memory that the system keeps.
    del result
    peak = _reset_peak() and first_call(prepared) and _memory("VmHWM")
    memory = max(0, peak - before) if before and peak else None
    return {"import": imported, "startup": startup, "first_call": seconds, "peak_bytes": memory}


def _memory(field: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def _reset_peak() -> bool:
    """Set the high-water mark of this process to what it uses now (Linux; see proc(5), clear_refs)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps(probe(*sys.argv[1:])))
