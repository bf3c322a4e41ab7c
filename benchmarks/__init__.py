"""Benchmarks of compiled gradients, beside NumPy and the peers that are installed: `python -m benchmarks --help`.

`workloads/` says what is computed, once for all systems; `systems/` how each system computes it. Nothing is timed
before its numbers agree with the others'. All imports here are relative, so that the folder works under any name.
"""

from .command import main

__all__ = ["main"]
