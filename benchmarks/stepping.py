"""`scan` as a Python loop, for the systems that have no other."""

from collections.abc import Callable
from typing import Any


def python_scan(np: Any) -> Callable[..., Any]:
    """Return a `scan(step, carry, xs, length)` that stacks rows with the `stack` of `np`.

    `xs` is an array, a tuple of arrays or None; a row is an array or None.
    """

    def scan(step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any, length: int) -> tuple[Any, Any]:
        rows = []
        for turn in range(length):
            x = tuple(part[turn] for part in xs) if isinstance(xs, tuple) else None if xs is None else xs[turn]
            carry, row = step(carry, x)
            rows.append(row)
        return carry, None if rows[0] is None else np.stack(rows)

    return scan
