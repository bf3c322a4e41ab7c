"""NumPy itself, forward only: what the function costs without a gradient."""

from typing import Any

import numpy
import scipy.special

from ..stepping import python_scan
from ..workload import Library, Prepared, Workload

NUMPY = Library(numpy, scipy.special, python_scan(numpy))


def prepare(workload: Workload, arguments: tuple[Any, ...]) -> Prepared:
    return Prepared(workload.bind(NUMPY), arguments, lambda value: (value, []))
