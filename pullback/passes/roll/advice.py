"""What the user is told about a program that stays very long."""

import warnings
from collections import Counter
from functools import lru_cache

from pullback.ir.graph import Function, Location
from pullback.passes.base import count_ops

MANY = 50_000
"""Ops from which on compiling takes minutes."""


def advise(function: Function) -> None:
    """Warn, once for each source line, about a function of more than `MANY` ops: the line and what to write instead."""
    if len(function.ops) <= MANY:
        return
    lines = Counter(op.loc._replace(note="") for op in function.ops if op.loc is not None)
    if not lines:
        return
    (line, count), = lines.most_common(1)
    reasons = [op.loc.note for op in function.ops if op.loc is not None and op.loc.note.startswith("not rolled")]
    _tell(function.name, count_ops(function), line, count, reasons[0] if reasons else "")


@lru_cache(maxsize=1024)
def _tell(name: str, total: int, line: Location, count: int, reason: str) -> None:
    text = (
        f"{name} is a program of {total} operations, {count} of them from {line.file}:{line.line}"
        f"{f' ({reason})' if reason else ''}. Compiling it takes long. Write the loop around that line as "
        "`pullback.fori_loop(0, n, lambda i, state: new_state, state)` or "
        "`pullback.scan(lambda state, row: (new_state, output), state, rows)`, which are compiled as loops"
    )
    warnings.warn_explicit(text, RuntimeWarning, line.file, line.line)
