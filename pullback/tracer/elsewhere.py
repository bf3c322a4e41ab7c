"""Errors of Python and of libraries about a traced value: they name its class, but neither the line nor a way out."""

from types import TracebackType

from pullback.errors import UnsupportedError
from pullback.ir.graph import Location
from pullback.tracer.array import TracedValue
from pullback.tracer.location import describe, is_library_file

ABOUT_TRACED_VALUES = ("TracedArray", "TracedScalar", "Error setting single item of array")

WAY_OUT = (
    "a traced value has no memory and no number yet: use NumPy's functions, the methods of arrays and Python's "
    "operators on it, store it only in arrays made inside the traced function, and do the rest with the result; what "
    "depends on no argument can be computed before, outside the traced function"
)


def refused_elsewhere(error: Exception) -> UnsupportedError | None:
    """What to raise instead, or None where `error` is about something else."""
    text = str(error)
    if not any(part in text for part in ABOUT_TRACED_VALUES):
        if not isinstance(error, TypeError) or not _met_compiled_code(error.__traceback__):
            return None
        text = f"{text}: compiled code that pullback cannot follow was handed a traced value"
    return UnsupportedError(f"{text}; {WAY_OUT}{describe(_place(error.__traceback__))}")


def _met_compiled_code(trace: TracebackType | None) -> bool:
    """Whether the error comes out of compiled code, called by a line of a library that has traced values at hand.

    Such code may say that no signature matches without a word about what it was handed.
    """
    caller: TracebackType | None = None
    compiled = False
    while trace is not None:
        compiled = _is_compiled_file(trace.tb_frame.f_code.co_filename)
        caller = caller if compiled else trace
        trace = trace.tb_next
    if not compiled or caller is None or not is_library_file(caller.tb_frame.f_code.co_filename):
        return False
    return any(_is_traced(value) for value in caller.tb_frame.f_locals.values())


def _is_traced(value: object) -> bool:
    parts = value if isinstance(value, tuple | list) else (value,)
    return any(isinstance(part, TracedValue) for part in parts)


def _is_compiled_file(file: str) -> bool:
    """Whether a frame is one that Cython makes up for its own errors."""
    return file.endswith((".pyx", ".pxd", ".pxi")) or file == "<stringsource>"


def _place(trace: TracebackType | None) -> Location | None:
    """The innermost line outside all libraries."""
    found: Location | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_library_file(code.co_filename) and not _is_compiled_file(code.co_filename):
            found = Location(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return found
