"""The number behind a traced value, for Python's branches: the interpreter's rules run on the present arguments."""

from pullback.ir.graph import Value
from pullback.tracer.trace import Array, Trace


def present(trace: Trace, value: Value) -> Array:
    """`Trace.present`."""
    return trace.present(value)
