"""Timing the workloads, all systems in one process, one after the other in turns."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .agreement import Judge
from .compiling import in_new_process
from .options import Options
from .process import environment
from .results import Entry, Result
from .systems import SYSTEMS, System
from .systems.with_numpy import NUMPY
from .timing import alternate, first_call
from .workload import Prepared, Workload
from .workloads import WORKLOADS

Prepare = Callable[[Workload, tuple[Any, ...]], Prepared | None]


def chosen(options: Options) -> list[Workload]:
    """Return the workloads that were asked for, the large ones left out of a quick run."""
    return [
        workload
        for workload in WORKLOADS.values()
        if options.wants(workload.name, workload.group) and (workload.quick or not options.quick)
    ]


def measure(options: Options) -> Iterator[Result]:
    """Yield one result for each workload that was asked for."""
    wanted = [(system, system.load()) for system in SYSTEMS if options.wants_system(system.name)]
    loaded = [(system, prepare) for system, prepare in wanted if prepare is not None]
    for workload in chosen(options):
        fitting = [(s, prepare) for s, prepare in loaded if workload.group == "calls" or not s.only_calls]
        yield run(workload, fitting, options)


def run(workload: Workload, systems: Sequence[tuple[System, Prepare]], options: Options) -> Result:
    """Prepare, judge and time one workload in the systems given."""
    judge = Judge(workload, workload.bind(NUMPY))
    result, ready = Result(workload.name, workload.group), {}
    for system, prepare in systems:
        entry, prepared = _ready(workload, system.name, prepare, judge)
        if entry is not None:
            result.entries.append(entry)
        if prepared is not None:
            ready[system.name] = prepared
    timings = alternate(ready, options.seconds)
    for entry in result.entries:
        entry.timing = timings.get(entry.system)
        if options.memory and entry.timing is not None:
            found = in_new_process(entry.system, workload.name, environment(options.threads))
            entry.peak_bytes = found.get("peak_bytes")
    return result


def _ready(workload: Workload, system: str, prepare: Prepare, judge: Judge) -> tuple[Entry | None, Prepared | None]:
    """Call once and judge; no entry for a system that has no version of the workload."""
    try:
        prepared = prepare(workload, workload.sample())
        if prepared is None:
            return None, None
        seconds, found = first_call(prepared)
        fault = judge.fault(*prepared.numbers(found))
    except Exception as error:  # whatever a package raises, the others are still to be measured
        return Entry(system, f"{type(error).__name__}: {error}".splitlines()[0]), None
    return Entry(system, fault, first_call=seconds), None if fault else prepared
