"""The process that measures; started by `command.main` with the limits on threads already set."""

import json
import sys
from pathlib import Path

from . import compiling, kernels
from .machine import describe, in_words
from .options import Options
from .plot import draw
from .report import block, closing, faults
from .results import Result, as_json


def run(options: Options) -> int:
    """Measure, print each result as it comes, write the files asked for; 1 if pullback was wrong anywhere."""
    machine = describe(options.threads)
    # With JSON on standard output, what people read goes to the other stream.
    out = sys.stderr if options.json == "-" else sys.stdout
    print(in_words(machine) + "\n", file=out)
    results: list[Result] = []
    for part in (kernels, compiling):
        for result in part.measure(options):
            results.append(result)
            print(block(result), file=out, flush=True)
    print("\n" + closing(results), file=out)
    _write(options, results, machine)
    for fault in faults(results):
        print(f"pullback, {fault}", file=sys.stderr)
    return 1 if faults(results) else 0


def _write(options: Options, results: list[Result], machine: dict[str, object]) -> None:
    text = json.dumps(as_json(results, machine), indent=1)
    if options.json == "-":
        print(text)
    elif options.json:
        Path(options.json).write_text(text + "\n")
    if options.plot:
        Path(options.plot).write_text(draw(results))


if __name__ == "__main__":
    sys.exit(run(Options.from_text(sys.argv[1])))
