"""The command line: `pullback dump`, `opt`, `run`, `bisect`, `reduce`, `ops`, `passes`, `bench`, `demo`.

Each command is imported when it is asked for, so that `pullback --help` answers at once.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from pullback.errors import PullbackError
from pullback.version import VERSION

COMMANDS = {
    "dump": ("pullback.cli.dump", "dump"),
    "opt": ("pullback.cli.running", "opt"),
    "run": ("pullback.cli.running", "run"),
    "bisect": ("pullback.cli.faults", "bisect"),
    "reduce": ("pullback.cli.faults", "reduce"),
    "ops": ("pullback.cli.catalogue", "ops"),
    "passes": ("pullback.cli.catalogue", "passes"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status: 0, 1 for a failure, 2 for a command line that cannot be used."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["demo"]:
        return int(importlib.import_module("pullback.demo").main(given[1:]))
    if given[:1] == ["bench"]:
        return _bench(given[1:])
    options = _parser().parse_args(given)
    module, name = COMMANDS[options.command]
    try:
        command = getattr(importlib.import_module(module), name)
        return int(command(options))
    except importlib.import_module("pullback.cli.target").UsageError as error:
        return _fail(error)
    except PullbackError as error:
        return _fail(error)
    except BrokenPipeError:
        return 0


def _fail(error: Exception) -> int:
    sys.stderr.write(f"pullback: {error}\n")
    return 2


def _bench(arguments: list[str]) -> int:
    try:
        bench = importlib.import_module("benchmarks")
    except ImportError:
        sys.stderr.write(
            "pullback: the benchmarks are in a checkout of the project, not in the package; run this there\n"
        )
        return 2
    return int(bench.main(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pullback",
        description="A compiler for gradients of NumPy code.",
        epilog="The PULLBACK variable sets options for all commands: PULLBACK=verify=each,time pullback dump ...",
    )
    parser.add_argument("--version", action="version", version=f"pullback {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_dump(commands)
    opt = commands.add_parser("opt", help="run passes on textual IR")
    opt.add_argument("file", help="a file of textual IR, or - for standard input")
    opt.add_argument("--pass", dest="passes", action="append", metavar="NAME", help="a pass to run; may be repeated")
    _add_color(opt)
    run = commands.add_parser("run", help="run textual IR, or a Python function, and print the results")
    run.add_argument("target", help="a file of textual IR, or FILE.py:FUNC")
    run.add_argument("--args", help="types of the arguments, filled with sample numbers: 'f64[100,3], f64[3]'")
    run.add_argument("--values", help="the arguments as Python expressions: 'np.ones(3), 2.0'")
    run.add_argument("--grad", action="store_true", help="the gradient of a Python function")
    run.add_argument("--interpret", action="store_true", help="by the reference interpreter, not native code")
    _add_faults(commands)
    ops = commands.add_parser("ops", help="list the ops, or describe one")
    ops.add_argument("name", nargs="?")
    passes = commands.add_parser("passes", help="list the passes in order, or describe one")
    passes.add_argument("name", nargs="?")
    commands.add_parser("bench", help="run the benchmarks (in a checkout); see pullback bench --help")
    commands.add_parser("demo", help="train on handwritten digits with compiled gradients")
    return parser


def _add_dump(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    dump = commands.add_parser("dump", help="print the program of a function at any stage")
    dump.add_argument("target", metavar="FILE.py:FUNC")
    dump.add_argument("--args", help="types of the arguments: 'f64[100,3], f64[3]'")
    dump.add_argument("--values", help="the arguments as Python expressions, for functions that branch on them")
    dump.add_argument("--grad", action="store_true", help="value and gradient, not the function alone")
    dump.add_argument("--argnums", default="0", help="which arguments to differentiate in: 0, or w, or 0,2")
    dump.add_argument(
        "--stage", default="optimised", choices=("traced", "adjoint", "optimised", "kernels", "llvm", "asm")
    )
    dump.add_argument("--after", metavar="PASS", help="print the program after this pass")
    dump.add_argument("--diff", action="store_true", help="what each pass changed")
    dump.add_argument("--html", metavar="FILE", help="write one page with a column for each pass")
    dump.add_argument("--dot", metavar="FILE", help="write the graph for Graphviz")
    _add_color(dump)


def _add_faults(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    bisect = commands.add_parser("bisect", help="find the pass and the rewrite that make a function wrong")
    reduce = commands.add_parser("reduce", help="make a function smaller while it still fails")
    for parser in (bisect, reduce):
        parser.add_argument("target", help="a file of textual IR, or FILE.py:FUNC")
        parser.add_argument("--args", help="types of the arguments of a Python function: 'f64[100,3], f64[3]'")
        parser.add_argument("--values", help="the arguments as Python expressions, for functions that branch on them")
        parser.add_argument("--grad", action="store_true", help="value and gradient of a Python function")
        parser.add_argument("--argnums", default="0", help="which arguments to differentiate in: 0, or w, or 0,2")
        parser.set_defaults(stage="traced")
    reduce.add_argument(
        "--command",
        dest="failing",
        metavar="COMMAND",
        help="a shell command with {} for the file; it fails by its exit status",
    )
    reduce.add_argument("--out", metavar="FILE", help="where to write the result; default: standard output")


def _add_color(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--color", action=argparse.BooleanOptionalAction, default=None, help="default: on a terminal")
