"""The number behind a traced value, for Python's branches: the interpreter's rules run on the present arguments."""

import numpy as np

from pullback.errors import ArgumentError
from pullback.ir.graph import Value
from pullback.ir.interpret import evaluate_values
from pullback.tracer.trace import Array, Trace, abstract_error


def present(trace: Trace, value: Value) -> Array:
    """What `value` is for the arguments this function is being traced with; only what it needs is evaluated, once.

    Raises
    ------
    ConcretizationError : the function is traced for argument types alone.
    """
    for param, supplier in trace.suppliers.items():
        if param not in trace.known and supplier is not None:
            trace.known[param] = np.asarray(supplier())
    try:
        return evaluate_values([value], trace.known)[0]
    except ArgumentError:
        raise abstract_error(trace, "a Python branch or conversion") from None
