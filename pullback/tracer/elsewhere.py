"""Errors of Python and of libraries about a traced value: they name its class, but neither the line nor a way out."""

from types import TracebackType

from pullback.errors import UnsupportedError
from pullback.ir.graph import Location
from pullback.tracer.location import describe, is_library_file

ABOUT_TRACED_VALUES = ("TracedArray", "TracedScalar", "Error setting single item of array")

WAY_OUT = (
    "a traced value has no memory and no number yet: use NumPy's functions, the methods of arrays and Python's "
    "operators on it, store it only in arrays made inside the traced function, and do the rest with the result"
)


def refused_elsewhere(error: Exception) -> UnsupportedError | None:
    """What to raise instead, or None where `error` is about something else."""
    text = str(error)
    if not any(part in text for part in ABOUT_TRACED_VALUES):
        return None
    return UnsupportedError(f"{text}; {WAY_OUT}{describe(_place(error.__traceback__))}")


def _place(trace: TracebackType | None) -> Location | None:
    """The innermost line outside all libraries."""
    found: Location | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_library_file(code.co_filename):
            found = Location(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return found
