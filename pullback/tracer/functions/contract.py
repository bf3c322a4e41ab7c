"""Sums of products over labelled axes: what matmul, dot, tensordot and einsum all are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.types import BOOL, DType
from pullback.tracer.functions.common import op, reduce
from pullback.tracer.operands import broadcast, cast
from pullback.tracer.steps import reshape_content, transpose_content
from pullback.tracer.trace import Content, Trace, dtype_of, shape_of

Label = Any
Labels = Sequence[Label]


def contract(
    trace: Trace,
    x: Content,
    y: Content,
    x_labels: Labels,
    y_labels: Labels,
    out: Labels,
    dtype: DType,
    *,
    from_zero: bool = True,
) -> Content:
    """The sum of products of `x` and `y` over the labels that `out` lacks; labels within an operand are distinct.

    Axes of length 1 stretch to the length the other operand has. Booleans are combined with `and` and `or`.

    Parameters
    ----------
    from_zero : whether the sum begins with 0.0, which shows where it has one term, in -0.0
    """
    wide = np.dtype(np.int64) if dtype == BOOL else dtype
    narrow_x, xs = _without_ones(trace, cast(trace, x, wide), list(x_labels), y, y_labels)
    narrow_y, ys = _without_ones(trace, cast(trace, y, wide), list(y_labels), x, x_labels)
    x, xs = _summed(trace, narrow_x, xs, set(ys) | set(out))
    y, ys = _summed(trace, narrow_y, ys, set(xs) | set(out))
    shared = [k for k in xs if k in ys]
    summed = [k for k in shared if k not in out]
    if not summed:
        content, labels = _multiplied(trace, x, y, xs, ys)
    else:
        content, labels = _dotted(trace, x, y, xs, ys, [k for k in shared if k in out], summed)
    if from_zero and all(shape_of(x)[xs.index(k)] == 1 for k in summed):
        content = begun_product(trace, content)
    result = transpose_content(trace, content, [labels.index(k) for k in out])
    return cast(trace, result, dtype)


def begun_product(trace: Trace, content: Content) -> Content:
    """A sum of one product, begun with 0.0 as the loops of NumPy do."""
    return op(trace, "add", content, 0) if dtype_of(content).kind in "fc" else content


def _without_ones(
    trace: Trace, x: Content, labels: list[Label], other: Content, others: Labels
) -> tuple[Content, list[Label]]:
    """`x` without axes of length 1 that the other operand has longer: they stretch."""
    shape, sizes = shape_of(x), dict(zip(others, shape_of(other), strict=True))
    for k, n in zip(labels, shape, strict=True):
        if k in sizes and sizes[k] != n and 1 not in (n, sizes[k]):
            raise trace.error(
                ShapeError,
                f"axes of lengths {n} and {sizes[k]} cannot be summed together: shapes {shape} and {shape_of(other)}",
            )
    kept = [i for i, (k, n) in enumerate(zip(labels, shape, strict=True)) if not (n == 1 and sizes.get(k, 1) != 1)]
    if len(kept) == len(labels):
        return x, labels
    return reshape_content(trace, x, tuple([shape[i] for i in kept])), [labels[i] for i in kept]


def _summed(trace: Trace, x: Content, labels: list[Label], needed: set[Label]) -> tuple[Content, list[Label]]:
    """Sum over labels that nobody else has."""
    alone = [i for i, k in enumerate(labels) if k not in needed]
    summed = reduce(trace, "sum", x, alone) if alone else x  # a sum over no axes would still add zero
    return summed, [k for k in labels if k in needed]


def _multiplied(trace: Trace, x: Content, y: Content, xs: list[Label], ys: list[Label]) -> tuple[Content, list[Label]]:
    """An elementwise product over the union of the labels."""
    labels = xs + [k for k in ys if k not in xs]
    sizes = dict(zip(xs, shape_of(x), strict=True)) | dict(zip(ys, shape_of(y), strict=True))
    shape = tuple([sizes[k] for k in labels])
    wide = []
    for content, own in ((x, xs), (y, ys)):
        ordered = transpose_content(trace, content, sorted(range(len(own)), key=lambda i: labels.index(own[i])))
        narrow = tuple([sizes[k] if k in own else 1 for k in labels])
        wide.append(broadcast(trace, reshape_content(trace, ordered, narrow), shape))
    return trace.apply("mul", *wide), labels


def _dotted(
    trace: Trace, x: Content, y: Content, xs: list[Label], ys: list[Label], batch: list[Label], summed: list[Label]
) -> tuple[Content, list[Label]]:
    """A product with contracted axes; one that leaves no free axes is an elementwise product and a sum, which fuse."""
    free_x = [k for k in xs if k not in ys]
    free_y = [k for k in ys if k not in xs]
    if not free_x and not free_y and dtype_of(x) != np.float16:
        product, labels = _multiplied(trace, x, y, xs, ys)
        kept = [k for k in labels if k in batch]
        return reduce(trace, "sum", product, [i for i, k in enumerate(labels) if k in summed]), kept
    pairs = tuple(tuple([own.index(k) for k in summed]) for own in (xs, ys))
    batches = tuple(tuple([own.index(k) for k in batch]) for own in (xs, ys))
    return trace.apply("dot_general", x, y, contract=pairs, batch=batches), batch + free_x + free_y
