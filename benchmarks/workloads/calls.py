"""Small functions: what a call costs."""

from typing import Any

import numpy

from ..workload import Library, Workload


def scalar(library: Library, x: Any) -> Any:
    np = library.np
    return np.sin(x) * np.exp(-0.5 * x * x)


def three_vector(library: Library, x: Any) -> Any:
    np = library.np
    return np.sum(np.sin(x) * x)


def rosenbrock(library: Library, x: Any) -> Any:
    np = library.np
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


WORKLOADS = (
    Workload("call-scalar", "calls", scalar, lambda rng: (0.7,), with_value=False),
    Workload("call-vector-3", "calls", three_vector, lambda rng: (rng.standard_normal(3),), with_value=False),
    Workload(
        "call-rosenbrock-10", "calls", rosenbrock, lambda rng: (numpy.linspace(-1.0, 1.0, 10),), with_value=False
    ),
)
