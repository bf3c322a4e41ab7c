"""Every error pullback raises, each also the built-in that a NumPy user would expect.

A message names what was found, what was expected, the user's file and line where there is one, and what to do.
"""


class PullbackError(Exception):
    """Base of all errors raised by pullback."""


class TypeRuleError(PullbackError, TypeError):
    """Operand types that an op's type rule refuses; the message holds the types."""


class ShapeError(PullbackError, ValueError):
    """Shapes that do not fit one another; the message holds the shapes."""


class ArgumentError(PullbackError, TypeError):
    """An argument of a transform, or of a transformed function, of a kind that cannot be used."""


class NonScalarOutputError(PullbackError, TypeError):
    """`grad` of a function whose output is not a scalar."""


class UnsupportedError(PullbackError, NotImplementedError, TypeError):
    """A NumPy function, mode or argument that pullback does not follow."""


class OutsideWriteError(UnsupportedError):
    """A traced result was to be written into an array made outside the traced function."""


class ReadOnlyError(PullbackError, ValueError):
    """An assignment to an array that may not be written to."""


class LostGradientError(PullbackError, TypeError):
    """A conversion (``float(x)``, an opaque call) behind which the gradient would silently vanish."""


class ConcretizationError(PullbackError, TypeError):
    """Python asked for the number behind a traced value that has none."""


class LeakedValueError(PullbackError, RuntimeError):
    """A traced value used after the trace that made it had ended."""


class IndexRangeError(PullbackError, IndexError):
    """An index out of the range of its axis."""


class NumericalError(PullbackError, ValueError):
    """A computation that has no result for these numbers, such as the factor of a singular matrix."""


class IntegerRangeError(PullbackError, OverflowError):
    """A Python integer outgrew the 64 bits that compiled code has for it."""


class ZeroDivisorError(PullbackError, ZeroDivisionError):
    """A Python integer was divided by zero."""


class BudgetError(PullbackError, ValueError):
    """A memory budget that is not enough for what is asked."""


class NanError(PullbackError, FloatingPointError):
    """A NaN where the option ``nan`` asks to stop at the first one."""


class PathLimitError(PullbackError, RuntimeError):
    """A function took more different Python paths than the bound allows."""


class VerifyError(PullbackError, AssertionError):
    """IR that breaks an invariant; always a bug in a pass or in the tracer."""


class ParseError(PullbackError, ValueError):
    """Textual IR or a type that cannot be read; the message has the line and what was expected."""


class PassError(PullbackError, RuntimeError):
    """A pass failed; the message names the pass, the op, the user's line and the command that repeats it."""


class OptionError(PullbackError, ValueError):
    """An unknown key or a bad value in the ``PULLBACK`` variable."""


class CodegenError(PullbackError, RuntimeError):
    """Code generation met an op or a type that it cannot lower."""
