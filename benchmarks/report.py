"""The report as text."""

import math

from .results import Entry, Result

UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def block(result: Result) -> str:
    """Return the lines of one workload: time and what it is of pullback's, for each system."""
    lines = [f"{result.workload}"]
    for entry in result.entries:
        lines.append(f"  {entry.system:<10} {_timed(entry, result.ratio(entry.system))}")
    return "\n".join(lines)


def _timed(entry: Entry, ratio: float | None) -> str:
    if entry.timing is None:
        return f"no time: {entry.fault}"
    spread = f"({duration(entry.timing.low)} to {duration(entry.timing.high)})"
    text = f"{duration(entry.timing.median):>9} {spread:<22}"
    text += f"{ratio:8.2f} x" if ratio is not None else " " * 10
    if entry.first_call is not None:
        text += f"   first call {duration(entry.first_call):>8}"
    if entry.peak_bytes is not None:
        text += f"   peak {entry.peak_bytes / 2**20:.0f} MiB"
    return text.rstrip()


def duration(seconds: float) -> str:
    """Return a time with three digits and a unit that fits."""
    unit, size = next(((u, s) for u, s in UNITS if seconds >= s), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def closing(results: list[Result]) -> str:
    """Return the geometric means of the ratios, one line for each system that was timed beside pullback."""
    timed = {entry.system for result in results for entry in result.entries if result.group != "compile"}
    lines = []
    for system in sorted(timed - {"pullback"}):
        ratios = [r for result in results if result.group != "compile" and (r := result.ratio(system)) is not None]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            lines.append(f"  {system:<10} {mean:8.2f} x  over {len(ratios)} workloads, least {min(ratios):.2f} x")
    return "\n".join(["times pullback, geometric mean:", *lines]) if lines else "nothing was timed beside pullback"


def faults(results: list[Result]) -> list[str]:
    """Return what pullback got wrong or could not do."""
    return [
        f"{result.workload}: {entry.fault}"
        for result in results
        for entry in result.entries
        if entry.system == "pullback" and entry.fault
    ]
