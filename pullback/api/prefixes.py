"""associative_scan: all prefixes of an operation, by halves. Name and signature of `jax.lax`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.api.bodies import require_function
from pullback.errors import ArgumentError
from pullback.tracer.tree import flatten, map_leaves


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of an associative operation along `axis`, in a logarithmic number of array operations.

    Parameters
    ----------
    fn : takes two containers like `elems`, with any number of rows along `axis`, and combines them row by row; it need
        not be commutative
    elems : a container of arrays with one length along `axis`
    reverse : suffixes in place of prefixes: result k combines the rows from the last one to row k, in this order

    Raises
    ------
    ArgumentError (TypeError) : lengths differ, a leaf has no such axis, or `fn` gives other shapes.
    """
    require_function("associative_scan", "fn", fn)
    arrays = map_leaves(lambda x: x if hasattr(x, "shape") else np.asarray(x), elems)
    if not flatten(arrays)[0]:
        return arrays
    count = _rows_along(arrays, axis)
    if not reverse:
        return _prefixes(fn, arrays, axis, count)
    turned = map_leaves(lambda x: np.flip(x, axis), arrays)
    return map_leaves(lambda x: np.flip(x, axis), _prefixes(fn, turned, axis, count))


def _prefixes(fn: Callable[[Any, Any], Any], elems: Any, axis: int, count: int) -> Any:
    if count < 2:
        return elems
    pairs = fn(_every_other(elems, axis, 0, count - 1), _every_other(elems, axis, 1, count))
    if _rows_along(pairs, axis) != count // 2:
        raise ArgumentError(
            f"associative_scan: fn made {_rows_along(pairs, axis)} rows of {count // 2} and {count // 2} along axis "
            f"{axis}; it must combine them row by row"
        )
    odd = _prefixes(fn, pairs, axis, count // 2)
    last = count // 2 - 1 if count % 2 == 0 else count // 2
    even = fn(_rows(odd, axis, 0, last), _every_other(elems, axis, 2, count))
    first = _rows(elems, axis, 0, 1)
    even = map_leaves(lambda a, b: np.concatenate([a, b], axis), first, even)
    return map_leaves(lambda a, b: _interleave(a, b, axis), even, odd)


def _rows_along(elems: Any, axis: int) -> int:
    leaves, tree = flatten(elems)
    found: dict[int, str] = {}
    for leaf, path in zip(leaves, tree.paths(), strict=True):
        shape = np.shape(leaf)
        if not -len(shape) <= axis < len(shape):
            raise ArgumentError(f"associative_scan: elems{path} has shape {shape} and no axis {axis}")
        found.setdefault(shape[axis], f"elems{path}")
    if len(found) != 1:
        listed = ", ".join(f"{n} ({where})" for n, where in found.items())
        raise ArgumentError(f"associative_scan: the leaves have different lengths along axis {axis}: {listed}")
    return next(iter(found))


def _at(axis: int, part: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, part)


def _rows(elems: Any, axis: int, start: int, stop: int) -> Any:
    return map_leaves(lambda x: x[_at(axis % np.ndim(x), slice(start, stop))], elems)


def _every_other(elems: Any, axis: int, start: int, stop: int) -> Any:
    return map_leaves(lambda x: x[_at(axis % np.ndim(x), slice(start, stop, 2))], elems)


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """even[0], odd[0], even[1], ... along `axis`; `even` may have one row more."""
    axis %= np.ndim(even)
    count = np.shape(odd)[axis]
    pairs = np.stack([even[_at(axis, slice(0, count))], odd], axis + 1)
    shape = np.shape(odd)
    joined = np.reshape(pairs, (*shape[:axis], 2 * count, *shape[axis + 1 :]))
    return np.concatenate([joined, even[_at(axis, slice(count, None))]], axis)
