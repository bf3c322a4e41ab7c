"""Calling a transformed function without compiling it: its program, run by the reference interpreter."""

from typing import Any

import numpy as np

import pullback
from pullback.ir.interpret import interpret


def interpreted(function: Any, *args: Any) -> Any:
    """What `function(*args)` returns, from the program as traced and differentiated."""
    staged = pullback.lower(function, *args)
    values = [np.asarray(v) for v in function.call_of(args, {}).traced_values()]
    values += [np.asarray(extra.source) for extra in staged.extras]
    with np.errstate(all="ignore"):
        results = interpret(staged.function, values)
    return staged.out_tree.unflatten([o.value if o.kind == "static" else results[o.index] for o in staged.outputs])
