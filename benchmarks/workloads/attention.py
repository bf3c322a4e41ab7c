"""A transformer's block: attention over heads, a wide layer, both with norms and shortcuts."""

import math
from typing import Any

import numpy

from ..workload import Library, Workload, in_float32

BATCH, LENGTH, WIDTH, HEADS = 4, 128, 256, 8


def transformer_block(
    library: Library, x: Any, query: Any, key: Any, value: Any, out: Any, widen: Any, narrow: Any, targets: Any
) -> Any:
    """Return the mean squared error of a block's output.

    Shapes: `x` and `targets` (batch, length, width); `query`, `key`, `value` and `out` (width, width); `widen` (width,
    4 width); `narrow` (4 width, width).
    """
    np = library.np
    batch, length, width = x.shape
    split = (batch, length, HEADS, width // HEADS)
    normal = _layer_norm(np, x)
    q, k, v = ((normal @ w).reshape(split) for w in (query, key, value))
    scores = np.einsum("bnhd,bmhd->bhnm", q, k) * (width // HEADS) ** -0.5
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights = weights / np.sum(weights, axis=-1, keepdims=True)
    mixed = np.einsum("bhnm,bmhd->bnhd", weights, v).reshape((batch, length, width))
    x = x + mixed @ out
    hidden = _layer_norm(np, x) @ widen
    hidden = 0.5 * hidden * (1.0 + np.tanh(0.7978845608028654 * (hidden + 0.044715 * hidden**3)))
    return np.mean((x + hidden @ narrow - targets) ** 2)


def _layer_norm(np: Any, x: Any) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def _arguments(rng: numpy.random.Generator) -> tuple[Any, ...]:
    shapes = [(WIDTH, WIDTH)] * 4 + [(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    weights = [rng.standard_normal(shape) / math.sqrt(shape[0]) for shape in shapes]
    signal = (BATCH, LENGTH, WIDTH)
    return rng.standard_normal(signal), *weights, rng.standard_normal(signal)


TRANSFORMER = Workload(
    "transformer-4x128x256", "learning", transformer_block, _arguments, argnums=(0, 1, 2, 3, 4, 5, 6), quick=False
)

WORKLOADS = (TRANSFORMER, in_float32(TRANSFORMER))
