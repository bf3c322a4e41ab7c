"""Reductions of the rows of a matrix, and what softmax makes of them."""

from typing import Any

from ..workload import Library, Workload, in_float32


def logsumexp(library: Library, x: Any) -> Any:
    np = library.np
    peak = np.max(x, axis=1, keepdims=True)
    return np.sum(np.log(np.sum(np.exp(x - peak), axis=1)) + peak[:, 0])


def softmax(library: Library, x: Any, weights: Any) -> Any:
    np = library.np
    exponentials = np.exp(x - np.max(x, axis=1, keepdims=True))
    return np.sum(weights * (exponentials / np.sum(exponentials, axis=1, keepdims=True)))


def largest(library: Library, x: Any) -> Any:
    np = library.np
    return np.sum(np.max(x, axis=1) ** 2)


LOGSUMEXP = Workload("logsumexp-1000x1000", "rows", logsumexp, lambda rng: (rng.standard_normal((1000, 1000)),))
SOFTMAX = Workload(
    "softmax-1000x1000", "rows", softmax, lambda rng: (rng.standard_normal((1000, 1000)), rng.random((1000, 1000)))
)

WORKLOADS = (
    LOGSUMEXP,
    in_float32(LOGSUMEXP),
    SOFTMAX,
    in_float32(SOFTMAX),
    Workload(
        "max-ties-1000x1000",
        "rows",
        largest,
        lambda rng: (rng.integers(0, 100, (1000, 1000)).astype(float),),
        kinks=True,
    ),
)
