"""What the figures were measured on."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "llvmlite", "jax", "jaxlib", "torch", "autograd", "numba")
# More than this many other programs running, on average over the last minute, and times mean little.
BUSY = 0.7


def describe(threads: int) -> dict[str, Any]:
    """Return processor, cores, versions, and what would distort the figures."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": threads,
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
        # A core type set by hand makes OpenBLAS use kernels of another processor.
        "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE", ""),
    }


def in_words(machine: dict[str, Any]) -> str:
    """Return the description as a line of text, and a second one if the machine is not quiet."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    core = machine["openblas_coretype"]
    forced = f", OPENBLAS_CORETYPE={core}" if core else ""
    head = f"{machine['processor']}, {machine['threads']} threads of {machine['cores']} cores{forced}"
    text = f"{head}; Python {machine['python']}, {versions}"
    if machine["load"] > BUSY:
        text += f"\nOther programs are running (load {machine['load']:.1f}): the figures will be off."
    return text


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
