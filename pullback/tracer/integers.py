"""Python integers in 64 bits: one that would outgrow them, or a division by zero, is an error of the call."""

from collections.abc import Sequence

import numpy as np

from pullback.ir.graph import Value
from pullback.ir.types import F64
from pullback.tracer.trace import Content, Trace

_LIMIT = 2.0**63
_DIVISIONS = frozenset({"floor_divide", "remainder", "divmod", "divide"})
_GROWING = {"add": "add", "subtract": "sub", "multiply": "mul", "power": "pow", "left_shift": "mul"}
"""What may outgrow, and the op that tells how far. NumPy calls `true_divide` `divide`."""

OVERFLOW = "integer overflow: a Python integer outgrew the 64 bits it has in compiled code; use floats"
ZERO = "integer division or modulo by zero"


def check_binary(trace: Trace, name: str, operands: Sequence[Content], grows: bool) -> None:
    """Let the call fail where the operator `name`, on a Python number and a Python integer, has no result.

    Parameters
    ----------
    grows : both are integers, and so is the result, which must have room in 64 bits
    """
    if name in _DIVISIONS:
        _check_divisor(trace, operands[1])
    elif grows and name in _GROWING:
        lhs, rhs = (_wide(trace, content) for content in operands)
        if name == "left_shift":
            rhs = trace.apply("pow", _number(2.0), rhs)
        _check_size(trace, trace.apply(_GROWING[name], lhs, rhs))


def check_unary(trace: Trace, operand: Content) -> None:
    """The same for `-n` and `abs(n)`: the least integer has no opposite."""
    _check_size(trace, trace.apply("neg", _wide(trace, operand)))


def _check_divisor(trace: Trace, divisor: Content) -> None:
    zero = np.zeros((), divisor.type.dtype if isinstance(divisor, Value) else divisor.dtype)
    trace.check(trace.apply("not_equal", divisor, zero), ZERO)


def _check_size(trace: Trace, size: Content) -> None:
    """The size is a double: near the limit the check may refuse what just fits, but lets nothing pass that does not."""
    trace.check(trace.apply("less", trace.apply("abs", size), _number(_LIMIT)), OVERFLOW)


def _wide(trace: Trace, content: Content) -> Content:
    return trace.apply("cast", content, dtype=F64)


def _number(x: float) -> Content:
    return np.array(x)
