"""`pullback ops` and `pullback passes`: what there is, in words."""

import argparse
import difflib

from rich.console import Console
from rich.table import Table

from pullback.cli.target import UsageError
from pullback.ir.describe import derivative_words, describe, lowering_words, signature
from pullback.ir.ops import ALL_OPS, OPS
from pullback.passes.base import doc_of
from pullback.passes.pipeline import OPTIMISE, passes_by_name


def ops(options: argparse.Namespace) -> int:
    """Print one op in full, or a line for each."""
    if options.name:
        if options.name not in OPS:
            close = difflib.get_close_matches(options.name, OPS, 3)
            raise UsageError(
                f"no op is named {options.name!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
            )
        print(describe(OPS[options.name]), end="")
        return 0
    rows = Table(box=None, pad_edge=False)
    for heading in ("op", "derivative", "lowering"):
        rows.add_column(heading, no_wrap=True)
    for op in ALL_OPS:
        rows.add_row(signature(op), derivative_words(op.derivative), lowering_words(op.lower))
    Console(soft_wrap=True).print(rows)
    return 0


def passes(options: argparse.Namespace) -> int:
    """Print the pipeline in order, each step with its reason, or one pass with its contract."""
    known = passes_by_name()
    if options.name:
        if options.name not in known:
            raise UsageError(f"no pass is named {options.name!r}; the passes are {', '.join(known)}")
        print(f"{options.name}\n\n{doc_of(known[options.name])}")
        return 0
    for number, step in enumerate(OPTIMISE, 1):
        print(f"{number:>3}  {step.name:<10} {step.why}")
    print("\nthen: fuse (kernels), memory (buffers), lower (LLVM), compile (object code)")
    return 0
