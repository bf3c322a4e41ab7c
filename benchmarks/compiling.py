"""How long until the first result: imports, first calls, long chains of operations; each in fresh processes."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from .long_traces import FIRST_CALL_SCALAR, GROUP, LONG_TRACES
from .options import Options
from .process import environment, run_module
from .results import Entry, Result
from .timing import summary

REPEATS = 3
IMPORTS = ("numpy", "pullback", "jax", "torch", "autograd", "numba")


CHAINS = (FIRST_CALL_SCALAR, *LONG_TRACES)

# (name of the result, name of the workload, systems that compile and finish in bearable time)
FIRST_CALLS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("first-call-scalar", "first-call-scalar", ("pullback", "jax", "numba")),
    ("first-call-mlp", "mlp-32x64", ("pullback", "jax")),
    ("first-call-chain-1e3", "first-call-chain-1e3", ("pullback", "jax")),
    ("first-call-chain-2e3", "first-call-chain-2e3", ("pullback",)),
    ("first-call-chain-1e4", "first-call-chain-1e4", ("pullback",)),
    ("first-call-recurrence-1000", "first-call-recurrence-1000", ("pullback",)),
    ("first-call-lstm-23", "first-call-lstm-23", ("pullback",)),
    ("first-call-det-6", "first-call-det-6", ("pullback",)),
)
NAMES = ("import", *(name for name, _, _ in FIRST_CALLS), "first-call-from-disk")


def measure(options: Options) -> Iterator[Result]:
    """Yield the results that were asked for."""
    quick = {chain.name: chain.quick for chain in CHAINS}
    unrolled = {workload.name for workload in LONG_TRACES}
    if options.wants("import", GROUP):
        yield _imports(options)
    for name, workload, systems in FIRST_CALLS:
        if options.wants(name, GROUP) and (quick.get(workload, True) or not options.quick):
            chosen = [system for system in systems if options.wants_system(system)]
            env = environment(options.threads, "cache=memory,roll=off" if workload in unrolled else "cache=memory")
            entries = [_first_calls(system, workload, options, env) for system in chosen]
            yield Result(name, GROUP, entries)
    if options.wants("first-call-from-disk", GROUP):
        yield _from_disk(options)


def in_new_process(system: str, workload: str, env: dict[str, str]) -> dict[str, Any]:
    """Run the probe and return what it found; a `fault` in it if it died."""
    done = run_module("probe", [system, workload], env, capture=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"fault": lines[-1] if lines else f"exit status {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _first_calls(system: str, workload: str, options: Options, env: dict[str, str]) -> Entry:
    return _repeat(system, options, lambda: in_new_process(system, workload, env))


def _repeat(system: str, options: Options, run: Callable[[], dict[str, Any]]) -> Entry:
    samples = []
    for _ in range(1 if options.quick else REPEATS):
        found = run()
        if "fault" in found:
            return Entry(system, found["fault"])
        samples.append(found["first_call"])
    return Entry(system, timing=summary(samples), first_call=samples[0])


def _from_disk(options: Options) -> Result:
    """First calls of the MLP in new processes after one process has left its code in the disk cache."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(options.threads, f"cache=disk,cache_dir={folder}")
        filled = in_new_process("pullback", "mlp-32x64", env)
        entry = Entry("pullback", filled["fault"]) if "fault" in filled else None
        entry = entry or _first_calls("pullback", "mlp-32x64", options, env)
    return Result("first-call-from-disk", GROUP, [entry])


def _imports(options: Options) -> Result:
    """Whole processes that import a package and end, less one that imports nothing."""
    env = environment(options.threads)

    def seconds(statement: str) -> float | None:
        begin = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", statement], env=env, capture_output=True, check=False)
        return None if done.returncode else time.perf_counter() - begin

    repeats = 1 if options.quick else 2 * REPEATS
    # The first of each brings the files into memory, and is not counted.
    taken = {name: [seconds(f"import {name}") for _ in range(repeats + 1)][1:] for name in IMPORTS}
    nothing = min(filter(None, [seconds("pass") for _ in range(repeats)]), default=0.0)
    entries = []
    for name in ("pullback", *(name for name in IMPORTS if name != "pullback")):
        found = [value - nothing for value in taken[name] if value is not None]
        entries.append(Entry(name, timing=summary(found)) if found else Entry(name, "not installed"))
    return Result("import", GROUP, entries)
