"""stop_gradient: a value taken as a constant by differentiation."""

from typing import Any

from pullback.tracer.array import TracedValue
from pullback.tracer.entry import emit
from pullback.tracer.tree import map_leaves


def stop_gradient(x: Any) -> Any:
    """`x` (an array, a number, a container of them) as it is; its derivative is taken as zero."""
    return map_leaves(lambda leaf: emit("stop_gradient", [leaf])[0] if isinstance(leaf, TracedValue) else leaf, x)
