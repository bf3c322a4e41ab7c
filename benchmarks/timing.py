"""Taking times: the systems in turn, so that whatever else the machine does falls on all of them."""

import gc
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .workload import Prepared

# One sample is as many calls as fill this time: enough that neither the clock nor what the system before left in the
# caches matters. A fifth as many calls before each sample are not counted.
SAMPLE = 4e-3
WARM_UP = 5
FEWEST, MOST = 5, 500


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: the median of the samples, the quartiles around it, the best, and how many there were."""

    median: float
    low: float
    high: float
    best: float
    samples: int


def summary(samples: list[float]) -> Timing:
    """Summarise samples, of which there is at least one."""
    low, middle, high = statistics.quantiles(samples, n=4) if len(samples) > 1 else samples * 3
    return Timing(middle, low, high, min(samples), len(samples))


def alternate(prepared: Mapping[str, Prepared], seconds: float) -> dict[str, Timing]:
    """Time warm functions in turn for about `seconds` each."""
    calls = {name: max(1, int(SAMPLE / min(_time(one, 1) for _ in range(3)))) for name, one in prepared.items()}
    samples: dict[str, list[float]] = {name: [] for name in prepared}
    end = time.perf_counter() + seconds * len(prepared)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(MOST):
            if turn >= FEWEST and time.perf_counter() > end:
                break
            for name, one in prepared.items():
                _time(one, calls[name] // WARM_UP)
                samples[name].append(_time(one, calls[name]) / calls[name])
    finally:
        if collecting:
            gc.enable()
    return {name: summary(values) for name, values in samples.items()}


def _time(prepared: Prepared, calls: int) -> float:
    function, arguments = prepared.function, prepared.arguments
    begin = time.perf_counter()
    for _ in range(calls):
        function(*arguments)
    return time.perf_counter() - begin


def first_call(prepared: Prepared) -> tuple[float, Any]:
    """Call once, tracing and compilation included; return the time and the result."""
    begin = time.perf_counter()
    result = prepared.function(*prepared.arguments)
    return time.perf_counter() - begin, result
