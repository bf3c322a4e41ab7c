"""What the command line asks for, in a form that travels to the process that measures."""

import argparse
import fnmatch
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Options:
    """The choices of one run; what each means is in the help of the command."""

    only: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    quick: bool = False
    seconds: float = 1.0
    threads: int = 2
    memory: bool = False
    json: str = ""
    plot: str = ""

    def wants(self, name: str, group: str) -> bool:
        """Tell whether a workload was asked for: by a part of its name, a pattern, or its group."""
        return not self.only or any(
            text in name or text == group or fnmatch.fnmatch(name, text) for text in self.only
        )

    def wants_system(self, name: str) -> bool:
        """Tell whether a system was asked for; pullback and NumPy always are, to be compared with."""
        return not self.systems or name in self.systems or name in ("pullback", "numpy")

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        fields: dict[str, Any] = json.loads(text)
        for name in ("only", "systems"):
            fields[name] = tuple(fields[name])
        return cls(**fields)


def parse(argv: Sequence[str] | None, systems: Iterable[str]) -> tuple[Options, bool]:
    """Read the command line; the second result says whether to list the workloads only."""
    parser = argparse.ArgumentParser(
        prog="pullback bench", description="Time gradients of NumPy functions, in pullback and in what else is there."
    )
    parser.add_argument("--list", action="store_true", help="list the workloads and systems, measure nothing")
    parser.add_argument("--only", default="", metavar="NAME,...", help="parts of names, patterns or groups")
    parser.add_argument("--systems", default="", metavar="NAME,...", help=f"besides pullback: {', '.join(systems)}")
    parser.add_argument("--quick", action="store_true", help="small workloads, a tenth of the time each")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each system on each workload (default 1)")
    parser.add_argument("--threads", type=int, default=2, help="for every system and BLAS alike (default 2)")
    parser.add_argument("--memory", action="store_true", help="measure peak memory too, each in a process of its own")
    parser.add_argument("--json", default="", metavar="FILE", help="write everything measured; - for standard output")
    parser.add_argument("--plot", default="", metavar="FILE.svg", help="draw the ratios")
    found = parser.parse_args(argv)
    wanted = tuple(filter(None, found.systems.split(",")))
    unknown = [name for name in wanted if name not in systems]
    if unknown:
        parser.error(f"no system {', '.join(unknown)}; there are {', '.join(systems)}")
    if found.threads < 1 or found.seconds <= 0:
        parser.error("--threads and --seconds must be positive")
    options = Options(
        only=tuple(filter(None, found.only.split(","))),
        systems=wanted,
        quick=found.quick,
        seconds=found.seconds / 10 if found.quick else found.seconds,
        threads=found.threads,
        memory=found.memory,
        json=found.json,
        plot=found.plot,
    )
    return options, found.list
