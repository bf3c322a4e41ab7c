"""checkpoint: reverse mode computes a function again instead of keeping what it computed inside."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from pullback.tracer.segments import Segment
from pullback.tracer.trace import current


class _Checkpointed:
    """A function whose ops become one `checkpoint` op in the trace that it is called in."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None:
            return self._function(*args, **kwargs)
        start = len(trace.builder.ops)
        result = self._function(*args, **kwargs)
        trace.segments.append(Segment(start, len(trace.builder.ops)))
        return result


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, of which reverse mode keeps the inputs only: its inside is computed once more when the gradient needs it.

    For functions in which much memory is used on the way, called many times one after the other: the layers of a
    network, blocks of time steps. Values and derivatives of all orders are those of `f`; the gradient takes the time of
    one more evaluation. Checkpointed functions may call one another. Outside of a transform it is `f` itself.

    Parameters
    ----------
    f : any function; it may branch, and write to arrays from outside

    See Also
    --------
    scan : with `checkpoint=k` or `memory_budget=bytes` for the steps of a loop.
    """
    return _Checkpointed(f)
