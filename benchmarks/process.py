"""Processes that measure: the same limits for every system, set before anything is imported."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Every library here reads the count of its threads from one of these when it is loaded.
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    # The size of XLA's pool of threads on CPUs.
    "NPROC",
)


def environment(threads: int, pullback: str = "cache=memory") -> dict[str, str]:
    """Return the environment for a measuring process; pullback's disk cache is off, so that first calls compile."""
    root = str(Path(__file__).resolve().parents[__package__.count(".") + 1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    limits = dict.fromkeys(THREAD_VARIABLES, str(threads))
    # Installed packages come with their bytecode; a checkout must be allowed to keep its own.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, **limits, "PULLBACK": f"threads={threads},{pullback}", "PYTHONPATH": path}


def run_module(
    module: str, arguments: Sequence[str], env: Mapping[str, str], cores: int | None = None, capture: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a module of this package in a new Python and wait for it; on so many cores, or on as many as this process.

    `cores` is for processes without threads: it takes a fork, which JAX's threads may not survive.
    """
    limited = cores is not None and hasattr(os, "sched_setaffinity")
    return subprocess.run(
        [sys.executable, "-m", f"{__package__}.{module}", *arguments],
        env=env,
        # Set between fork and exec, so that whatever counts cores at its import counts these.
        preexec_fn=(lambda: _limit_cores(cores or 1)) if limited else None,
        capture_output=capture,
        text=True,
        check=False,
    )


def _limit_cores(count: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:count])
