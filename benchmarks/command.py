"""The command line: `python -m benchmarks` and `pullback bench`."""

from collections.abc import Sequence

from .compiling import NAMES
from .long_traces import GROUP
from .options import parse
from .process import environment, run_module
from .systems import SYSTEMS
from .workloads import WORKLOADS


def main(argv: Sequence[str] | None = None) -> int:
    """Measure in a new process and return its exit status: 0, or 1 if pullback gave a wrong number anywhere."""
    options, listing = parse(argv, [system.name for system in SYSTEMS])
    if listing:
        print(_listing())
        return 0
    if not any(options.wants(name, group) for name, group in _names()):
        print(f"no workload is called {', '.join(options.only)}; --list shows them")
        return 2
    try:
        return run_module(
            "worker", [options.to_text()], environment(options.threads), cores=options.threads
        ).returncode
    except KeyboardInterrupt:
        return 130


def _names() -> list[tuple[str, str]]:
    kernels = [(workload.name, workload.group) for workload in WORKLOADS.values()]
    return kernels + [(name, GROUP) for name in NAMES]


def _listing() -> str:
    lines = ["systems:"]
    lines += [f"  {system.name:<12} {system.what}" for system in SYSTEMS]
    for group in dict.fromkeys(group for _, group in _names()):
        lines += ["", f"{group}:", *(f"  {name}" for name, of in _names() if of == group)]
    return "\n".join(lines)
