"""What was measured, as records that go into JSON as they are."""

from dataclasses import asdict, dataclass, field
from typing import Any

from .timing import Timing


@dataclass
class Entry:
    """One system on one workload.

    Attributes
    ----------
    fault : why there is no time: the package's error, or how its numbers are wrong; empty if all is well
    first_call : seconds of the first call, tracing and compilation included
    peak_bytes : memory in use at the worst moment of a call, above what there was before the first call
    """

    system: str
    fault: str = ""
    timing: Timing | None = None
    first_call: float | None = None
    peak_bytes: int | None = None


@dataclass
class Result:
    """All systems on one workload, pullback first."""

    workload: str
    group: str
    entries: list[Entry] = field(default_factory=list)

    def median(self, system: str) -> float | None:
        """Return a system's median in seconds, or None where there is none."""
        for entry in self.entries:
            if entry.system == system and entry.timing is not None:
                return entry.timing.median
        return None

    def ratio(self, system: str) -> float | None:
        """Return how many times as long as pullback a system takes."""
        ours, theirs = self.median("pullback"), self.median(system)
        return None if ours is None or theirs is None else theirs / ours


def as_json(results: list[Result], machine: dict[str, Any]) -> dict[str, Any]:
    """Return the whole report as plain data, ratios included."""
    rows = []
    for result in results:
        row = asdict(result)
        for entry in row["entries"]:
            entry["times_pullback"] = result.ratio(entry["system"])
        rows.append(row)
    return {"machine": machine, "unit": "seconds", "results": rows}
