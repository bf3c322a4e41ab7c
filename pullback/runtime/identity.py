"""What stored code depends on besides its own text: this processor and the packages that made it.

Found out without loading LLVM, which a process that finds everything in its cache does not need.
"""

from __future__ import annotations

import hashlib
import importlib.util
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path

_CPU_LINES = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part", "CPU variant")
_ONE_CORE_BYTES = 16384


@cache
def processor_identity() -> str:
    """A text that differs between processors with different instructions; empty where that cannot be told."""
    text = ""
    with suppress(OSError, UnicodeDecodeError), open("/proc/cpuinfo", encoding="ascii") as file:
        text = file.read(_ONE_CORE_BYTES).split("\n\n")[0]
    rows = [line for line in text.splitlines() if line.partition(":")[0].strip() in _CPU_LINES]
    features = [line for line in rows if line.startswith(("flags", "Features"))]
    if not features:
        return ""
    return f"{platform.machine()}-{hashlib.sha256(chr(10).join(rows).encode()).hexdigest()}"


@cache
def package_identity(name: str) -> str:
    """The version of an installed package, without importing it.

    Packages of wheels say it in `_version.py`; for others the time of their `__init__.py` stands in. Empty if the
    package is not there.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return ""
    folder = Path(spec.origin).parent
    with suppress(OSError):
        return hashlib.sha256((folder / "_version.py").read_bytes()).hexdigest()
    with suppress(OSError):
        return str(Path(spec.origin).stat().st_mtime_ns)
    return ""
