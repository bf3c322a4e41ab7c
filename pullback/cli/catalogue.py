"""`pullback ops` and `pullback passes`: what there is, in words."""

import argparse
import difflib

from rich.console import Console
from rich.table import Table

from pullback.cli.target import UsageError
from pullback.ir.describe import derivative_words, describe, lowering_words, signature
from pullback.ir.ops import ALL_OPS, OPS


def ops(options: argparse.Namespace) -> int:
    """Print one op in full, or a line for each."""
    if options.name:
        if options.name not in OPS:
            close = difflib.get_close_matches(options.name, OPS, 3)
            raise UsageError(f"no op is named {options.name!r}" + (f"; did you mean {' or '.join(close)}?" if close else ""))
        print(describe(OPS[options.name]), end="")
        return 0
    rows = Table(box=None, pad_edge=False)
    for heading in ("op", "derivative", "lowering"):
        rows.add_column(heading, no_wrap=True)
    for op in ALL_OPS:
        rows.add_row(signature(op), derivative_words(op.derivative), lowering_words(op.lower))
    Console(soft_wrap=True).print(rows)
    return 0
