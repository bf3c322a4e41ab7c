"""Order: sort and its relatives; sets are values only, and what is in them is a guarded decision."""

import operator
from typing import Any

import numpy as np

from pullback.errors import UnsupportedError
from pullback.ir.types import I64
from pullback.tracer.array import TracedValue, new_array
from pullback.tracer.convert import decide_array
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, axis_number, const, contents, finish, iota, op, static_array
from pullback.tracer.operands import broadcast, cast, content_of
from pullback.tracer.steps import reshape_content
from pullback.tracer.trace import Content, Trace, active, dtype_of, shape_of


def _check_order(order: Any) -> None:
    if order is not None:
        raise active().error(UnsupportedError, "np.sort: order= is for structured arrays, which are not followed")


def _ordered(trace: Trace, x: Content, axis: int, *others: Content, descending: bool = False) -> tuple[Content, ...]:
    """`x` sorted along `axis` and the others moved with it. Complex numbers sort by real, then by imaginary part; those
    with a NaN come last, the ones with a real number first."""
    if dtype_of(x).kind != "c":
        keys = (_turned(trace, x),) if descending else ()
        return tuple(trace.apply_all("sort", (*keys, x, *others), {"axis": axis})[len(keys) :])
    real, imag = trace.apply("real", x), trace.apply("imag", x)
    beside = trace.apply("bitwise_or", trace.apply("isnan", real), trace.apply("isnan", imag))
    rank = trace.apply("add", *[cast(trace, c, I64) for c in (beside, trace.apply("isnan", real))])
    place: Content = np.array(iota(shape_of(x), axis))
    parts = (_turned(trace, imag), _turned(trace, real)) if descending else (imag, real)
    for key in (*parts, rank):  # stable: the last key decides first
        moved: Any = np.take_along_axis(finish(key), finish(place), axis)
        _, place = trace.apply_all("sort", (contents(moved)[1][0], place), {"axis": axis})
    return tuple([contents(np.take_along_axis(finish(c), finish(place), axis))[1][0] for c in (x, *others)])


def _turned(trace: Trace, x: Content) -> Content:
    """A key that sorts the other way round; NaN stays last, and equal ones keep their order."""
    return trace.apply("neg" if dtype_of(x).kind == "f" else "invert", x)


def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = None
) -> Any:
    _check_order(order)
    x, trace = array(a), active()
    if axis is None:
        x, axis = np.ravel(x), -1
    number = axis_number(trace, axis, x.ndim)
    return new_array(trace, _ordered(trace, content_of(trace, x), number, descending=descending is True)[0])


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = None
) -> Any:
    """Stable, whatever `kind` says: NumPy leaves the order of ties open."""
    _check_order(order)
    x, trace = array(a), active()
    if axis is None:
        x, axis = np.ravel(x), -1
    if x.ndim == 0:
        return new_array(trace, np.zeros(1, np.int64))
    number = axis_number(trace, axis, x.ndim)
    content = content_of(trace, x)
    return new_array(trace, _ordered(trace, content, number, iota(x.shape, number), descending=descending is True)[1])


def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """A full sort: one of the orders that `partition` allows."""
    _check_kth(a, kth, axis)
    return sort(a, axis, order=order)


def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    _check_kth(a, kth, axis)
    return argsort(a, axis, order=order)


def _check_kth(a: Any, kth: Any, axis: Any) -> None:
    x, trace = array(a), active()
    n = x.size if axis is None else x.shape[axis_number(trace, axis, x.ndim)]
    for k in np.atleast_1d(static_array(trace, kth, "np.partition: kth")).tolist():
        if x.size and not -n <= operator.index(k) < n:
            raise trace.error(ValueError, f"kth(={k}) out of bounds ({n})")


def lexsort(keys: Any, axis: Any = -1) -> Any:
    """By the last key first: stable sorts from the first key to the last."""
    rows = [array(k) for k in keys]
    trace = active()
    number = axis_number(trace, axis, rows[0].ndim)
    order: Any = new_array(trace, np.array(iota(rows[0].shape, number)))
    for row in rows:
        place = argsort(np.take_along_axis(row, order, number), number)
        order = np.take_along_axis(order, place, number)
    return order


def sort_complex(a: Any) -> Any:
    x = array(a)
    if x.dtype.kind == "c":
        return sort(x)
    return sort(x).astype(np.complex64 if x.dtype.kind in "iu" and x.dtype.itemsize <= 2 else np.complex128)


# ------------------------------------------------------------------ searching


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """The number of elements below (or, from the right, not above) each value; NaN counts as the largest."""
    x, trace = array(a), active()
    if sorter is not None:
        x = np.take(x, sorter)
    y = array(v)
    dtype = np.result_type(x.dtype, y.dtype)
    knots, at = [cast(trace, content_of(trace, z), dtype) for z in (x, y)]
    search = _count_before if x.size <= FEW_KNOTS else _bisect
    return finish(search(trace, knots, at, side == "right"))


FEW_KNOTS = 32


def _count_before(trace: Trace, knots: Content, at: Content, right: bool) -> Content:
    """All comparisons at once, summed: best for few knots."""
    ndim = len(shape_of(at))
    shape = (*shape_of(at), *shape_of(knots))
    wide = broadcast(trace, knots, shape)
    column = reshape_content(trace, at, (*shape_of(at), 1))
    below = _is_before(trace, wide, broadcast(trace, column, shape), right)
    return trace.apply("sum", cast(trace, below, I64), axes=(ndim,))


def _bisect(trace: Trace, knots: Content, at: Content, right: bool) -> Content:
    """Binary search, all values in step; a round halves every interval."""
    (n,) = shape_of(knots)
    low: Content = trace.full(I64, shape_of(at), 0)
    high: Content = trace.full(I64, shape_of(at), n)
    for _ in range(n.bit_length()):
        middle = op(trace, "right_shift", trace.apply("add", low, high), 1)
        open_ = trace.apply("less", low, high)
        probe = trace.apply("gather", knots, op(trace, "minimum", middle, n - 1), axis=0)
        before = trace.apply("bitwise_and", open_, _is_before(trace, probe, at, right))
        other = trace.apply("bitwise_and", open_, op(trace, "invert", before))
        low = trace.apply("select", before, op(trace, "add", middle, 1), low)
        high = trace.apply("select", other, middle, high)
    return low


def _is_before(trace: Trace, knot: Content, at: Content, right: bool) -> Content:
    """Whether a knot stands before the place of a value: below it, or from the right not above it."""
    return op(trace, "invert", _sorts_before(trace, at, knot)) if right else _sorts_before(trace, knot, at)


def _sorts_before(trace: Trace, x: Content, y: Content) -> Content:
    """x < y in sorting order, NaN last."""
    if dtype_of(x).kind == "c":
        return _complex_before(trace, x, y)
    before = trace.apply("less", x, y)
    if dtype_of(x).kind != "f":
        return before
    nan = op(trace, "bitwise_and", op(trace, "isnan", y), op(trace, "invert", op(trace, "isnan", x)))
    return trace.apply("bitwise_or", before, nan)


def _complex_before(trace: Trace, x: Content, y: Content) -> Content:
    """By whether a part is NaN, then by real and imaginary part: the order in which complex numbers are sorted."""
    before: Content | None = None
    for part in ("imag", "real"):
        u, v = trace.apply(part, x), trace.apply(part, y)
        first = _sorts_before(trace, u, v)
        if before is not None:
            same = op(trace, "invert", trace.apply("bitwise_or", first, _sorts_before(trace, v, u)))
            before = trace.apply("bitwise_or", first, trace.apply("bitwise_and", same, before))
        else:
            before = first
    assert before is not None
    nan_x, nan_y = trace.apply("isnan", x), trace.apply("isnan", y)
    apart = trace.apply("not_equal", nan_x, nan_y)
    return trace.apply("select", apart, nan_y, before)


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    edges, side = array(bins), "left" if right else "right"
    if np.iscomplexobj(x) or edges.dtype.kind == "c":
        raise active().error(TypeError, "np.digitize: x and bins may not be complex")
    if edges.size < 2 or bool(np.all(edges[1:] >= edges[:-1])):
        return searchsorted(edges, x, side)
    if not bool(np.all(edges[1:] <= edges[:-1])):
        raise active().error(ValueError, "np.digitize: bins must be monotonically increasing or decreasing")
    return edges.size - searchsorted(edges[::-1], x, side)


# ------------------------------------------------------------------ sets: values only


def _by_value(function: Any) -> Any:
    """A set function on integers and booleans: which elements there are is decided, and guarded."""

    def by_value(*args: Any, **kwargs: Any) -> Any:
        trace = active()
        fixed = [_decided(trace, function, a) for a in args]
        result = function(*fixed, **kwargs)
        if isinstance(result, tuple):
            return (
                type(result)(*[new_array(trace, np.array(r)) for r in result])
                if hasattr(result, "_fields")
                else tuple([new_array(trace, np.array(r)) for r in result])
            )
        return new_array(trace, np.array(result))

    return by_value


def _decided(trace: Trace, function: Any, a: Any) -> Any:
    if not isinstance(a, TracedValue | np.ndarray | list | tuple):
        return a
    x = array(a)
    content = content_of(trace, x)
    if x.dtype.kind not in "biu" and not isinstance(content, np.ndarray) and content not in trace.settled:
        raise trace.error(
            UnsupportedError,
            f"np.{function.__name__} of traced numbers has a result whose length depends on them, and no gradient; "
            "use np.sort, or apply it to values that depend on no argument",
        )
    return decide_array(trace, content)


def unique(ar: Any, *args: Any, **kwargs: Any) -> Any:
    """Of numbers: which ones there are is decided by their order, as a guarded permutation; the values are followed."""
    x = array(ar)
    trace = active()
    content = content_of(trace, x)
    plain = isinstance(content, np.ndarray) or x.dtype.kind in "biu" or content in trace.settled
    if plain:
        return _by_value(np.unique)(x, *args, **kwargs)
    if args or any(v is not None and v is not False for k, v in kwargs.items() if k not in ("equal_nan", "sorted")):
        raise trace.error(
            UnsupportedError, "np.unique of traced numbers is followed without return_* and axis arguments only"
        )
    ordered = sort(np.ravel(x))
    fresh = np.concatenate([const(np.ones(min(ordered.size, 1), bool)), np.not_equal(ordered[1:], ordered[:-1])])
    if kwargs.get("equal_nan", True):
        nan = np.isnan(ordered)
        fresh = np.logical_and(
            fresh, np.logical_not(np.concatenate([const(np.zeros(min(ordered.size, 1), bool)), nan[1:] & nan[:-1]]))
        )
    return ordered[const(decide_array(trace, content_of(trace, fresh)))]


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    x, others = array(element), np.ravel(array(test_elements))
    found = np.any(np.equal(np.expand_dims(x, -1), others), axis=-1)
    return np.logical_not(found) if invert else found


FUNCTIONS: dict[Any, Entry] = {
    np.sort: Entry(sort),
    np.argsort: Entry(argsort),
    np.partition: Entry(partition),
    np.argpartition: Entry(argpartition),
    np.lexsort: Entry(lexsort),
    np.sort_complex: Entry(sort_complex),
    np.searchsorted: Entry(searchsorted),
    np.digitize: Entry(digitize),
    np.unique: Entry(unique),
    np.isin: Entry(isin),
    np.union1d: Entry(_by_value(np.union1d)),
    np.intersect1d: Entry(_by_value(np.intersect1d)),
    np.setdiff1d: Entry(_by_value(np.setdiff1d)),
    np.setxor1d: Entry(_by_value(np.setxor1d)),
    np.unique_values: Entry(_by_value(np.unique_values)),
    np.unique_counts: Entry(_by_value(np.unique_counts)),
    np.unique_inverse: Entry(_by_value(np.unique_inverse)),
    np.unique_all: Entry(_by_value(np.unique_all)),
}
