"""NumPy itself, forward only: what the function costs without a gradient."""

from typing import Any

import numpy
import scipy.special

from ..workload import Library, Prepared, Workload

NUMPY = Library(numpy, scipy.special)


def prepare(workload: Workload, arguments: tuple[Any, ...]) -> Prepared:
    return Prepared(workload.bind(NUMPY), arguments, lambda value: (value, []))
