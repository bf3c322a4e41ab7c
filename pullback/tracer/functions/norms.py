"""Norms of vectors and matrices. At zero their gradient is 0 (the least-norm subgradient), not NaN."""

from typing import Any

import numpy as np

from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, axis_numbers, contents, finish, reduce, safe_sqrt, size_over
from pullback.tracer.trace import active


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    a = array(x)
    a = a if a.dtype.kind in "fc" else a.astype(np.float64)
    if axis is None and (ord is None or (ord in ("f", "fro") and a.ndim == 2) or (ord == 2 and a.ndim == 1)):
        return _euclidean(a, tuple(range(a.ndim)), keepdims)
    axes = _axes(a, axis)
    if len(axes) == 1:
        return _vector(a, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix(a, ord, axes, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _axes(a: Any, axis: Any) -> tuple[int, ...]:
    """In the order they were given: for matrices rows, then columns."""
    if axis is None:
        return tuple(range(a.ndim))
    listed = axis if isinstance(axis, tuple) else (axis,)
    axis_numbers(active(), tuple(listed), a.ndim)
    return tuple([int(k) % a.ndim for k in listed])


def _euclidean(a: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """sqrt(sum |a|**2), with a root that is flat where the sum is zero."""
    trace, (content,) = contents(a)
    if a.dtype.kind == "c":
        parts = [trace.apply("integer_pow", trace.apply(name, content), n=2) for name in ("real", "imag")]
        squares = trace.apply("add", *parts)
    else:
        squares = trace.apply("integer_pow", content, n=2)
    return finish(safe_sqrt(trace, reduce(trace, "sum", squares, tuple(sorted(axes)), keepdims)))


def _vector(a: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if ord is None or ord == 2:
        return _euclidean(a, (axis,), keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    if ord == np.inf:
        return _largest(np.abs(a), **options)
    if ord == -np.inf:
        return np.min(np.abs(a), **options)
    if ord == 0:
        return np.sum((a != 0).astype(a.real.dtype), **options)
    if ord == 1:
        return np.sum(np.abs(a), **options)
    powers = np.abs(a) ** ord
    total = np.sum(powers, **options)
    if not isinstance(ord, int | float) or ord < 0:
        return total ** np.reciprocal(ord, dtype=total.dtype)
    zero = total == 0
    return np.where(zero, total, np.where(zero, 1, total) ** (1.0 / ord)).astype(total.dtype, copy=False)


def _largest(x: Any, **options: Any) -> Any:
    """Of sizes, so that the largest of none is 0."""
    largest: Any = np.max
    return largest(x, **options) if x.size else largest(x, initial=0, **options)


def _matrix(a: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    row, column = axes
    if row == column:
        raise ValueError("Duplicate axes given.")
    if ord in (None, "fro", "f"):
        return _euclidean(a, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, other = (row, column) if abs(ord) == 1 else (column, row)
        sums = np.sum(np.abs(a), axis=summed, keepdims=True)
        result = (_largest if ord > 0 else np.min)(sums, axis=other, keepdims=True)
    elif ord in (2, -2, "nuc"):
        values = np.linalg.svd(np.moveaxis(a, axes, (-2, -1)), compute_uv=False)
        values = np.where(values == 0, np.zeros_like(values), values)  # flat at 0, as the modulus is
        reducers: dict[Any, Any] = {2: _largest, -2: np.min, "nuc": np.sum}
        reduced = reducers[ord](values, axis=-1)
        return np.expand_dims(reduced, tuple(sorted(axes))) if keepdims else reduced
    else:
        raise ValueError(f"Invalid norm order {ord!r} for matrices.")
    return result if keepdims else np.squeeze(result, axis=axes)[()]


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    a = array(x)
    a = a if a.dtype.kind in "fc" else a.astype(np.float64)
    axes = axis_numbers(active(), axis, a.ndim)
    kept = [k for k in range(a.ndim) if k not in axes]
    lines = np.reshape(np.transpose(a, (*kept, *axes)), (*[a.shape[k] for k in kept], size_over(a.shape, axes)))
    result = _vector(lines, ord, lines.ndim - 1, False)
    return np.reshape(result, tuple([1 if k in axes else n for k, n in enumerate(a.shape)])) if keepdims else result


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return norm(x, ord, (-2, -1), keepdims)


FUNCTIONS: dict[Any, Entry] = {
    np.linalg.norm: Entry(norm),
    np.linalg.vector_norm: Entry(vector_norm),
    np.linalg.matrix_norm: Entry(matrix_norm),
}
