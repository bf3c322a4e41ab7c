"""How library ops fail: the numbers that native code gives back, and the errors they stand for.

A native function that fails returns minus one of these codes. They lie above every code of a `check`.
"""

from collections.abc import Mapping

import numpy as np

from pullback.errors import (
    BudgetError,
    IndexRangeError,
    IntegerRangeError,
    NumericalError,
    PullbackError,
    ZeroDivisorError,
)

FIRST_FAILURE = 1_000_000
SINGULAR = FIRST_FAILURE + 1
NOT_POSITIVE_DEFINITE = FIRST_FAILURE + 2
NO_EIGENVALUES = FIRST_FAILURE + 3
NO_SINGULAR_VALUES = FIRST_FAILURE + 4
OUT_OF_MEMORY = FIRST_FAILURE + 5
ARBITRARY_BASIS = FIRST_FAILURE + 6

FAILURES: Mapping[int, str] = {
    SINGULAR: "Singular matrix",
    NOT_POSITIVE_DEFINITE: "Matrix is not positive definite",
    NO_EIGENVALUES: "Eigenvalues did not converge",
    NO_SINGULAR_VALUES: "SVD did not converge",
    OUT_OF_MEMORY: "Not enough memory for what a loop keeps for its reverse",
    ARBITRARY_BASIS: "The gradient reaches vectors that are any basis of their space (those of np.linalg.svd with "
    "full_matrices=True, or np.linalg.qr with mode='complete', beyond the shorter side of the matrix), and the result "
    "depends on which basis it is; use full_matrices=False or mode='reduced'",
}
"""What each code means; where NumPy has the same failure, in the words of `numpy.linalg`."""


_CHECK_ERRORS = (
    ("index", IndexRangeError),
    ("integer overflow", IntegerRangeError),
    ("integer division", ZeroDivisorError),
    ("integer modulo", ZeroDivisorError),
    ("memory_budget", BudgetError),
)
"""How the messages of checks begin whose errors are other ones than ValueErrors in Python or NumPy."""


def check_error(message: str) -> type[PullbackError]:
    """The class of the error of a check with that message."""
    return next((kind for start, kind in _CHECK_ERRORS if message.startswith(start)), NumericalError)


class FactorizationError(NumericalError, np.linalg.LinAlgError):
    """A factorisation or a solve that has no result for these numbers; also NumPy's `LinAlgError`."""


def failure_error(code: int, place: object = None) -> FactorizationError | None:
    """The error of a failure code, with the user's line if there is one; None for a code of another kind."""
    message = FAILURES.get(code)
    if message is None:
        return None
    return FactorizationError(message if place is None else f"{message} (at {place})")
