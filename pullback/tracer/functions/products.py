"""Products of matrices and vectors."""

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.errors import ShapeError, UnsupportedError
from pullback.ir.types import BOOL, DType, Shape
from pullback.tracer.array import TracedValue, new_array
from pullback.tracer.dispatch import Entry
from pullback.tracer.dtypes import ufunc_types
from pullback.tracer.functions.common import array, axis_number, const, contents, finish
from pullback.tracer.functions.contract import begun_product, contract
from pullback.tracer.operands import operand
from pullback.tracer.trace import Content, Trace, active


def _product_dtype(x: Any, y: Any) -> DType:
    if x.dtype == y.dtype and x.ndim and y.ndim:
        return x.dtype  # type: ignore[no-any-return]
    trace = active()
    return ufunc_types(np.matmul, (operand(trace, x).key, operand(trace, y).key))[0]


def _two(a: Any, b: Any) -> tuple[TracedValue, TracedValue, DType, Trace, Content, Content]:
    x, y = array(a), array(b)
    trace, (lhs, rhs) = contents(x, y)
    return x, y, _product_dtype(x, y), trace, lhs, rhs


def _mismatch(trace: Trace, name: str, x: Shape, y: Shape, i: int, j: int) -> None:
    if x[i] != y[j]:
        raise trace.error(
            ShapeError,
            f"np.{name}: shapes {x} and {y} not aligned: {x[i]} (dim {i % len(x)}) != {y[j]} (dim {j % len(y)})",
        )


def _labels(count: int, offset: int) -> list[int]:
    return list(range(offset, offset + count))


# ------------------------------------------------------------------ matmul and its kin


def _with_axes(name: str, product: Any, operands: tuple[Any, Any], ranks: Sequence[int], axes: Any, out: Any) -> Any:
    """A product whose vectors and matrices are not in the last axes.

    Parameters
    ----------
    ranks : how many axes each operand and the result have of their own
    axes : NumPy's argument: for each of them where those are; that of the result may be left out where it has none
    """
    given = [tuple(k) if isinstance(k, tuple | list) else (k,) for k in axes] + [()] * (3 - len(axes))
    if [len(k) for k in given] != list(ranks):
        raise active().error(
            ValueError, f"np.{name}: axes must be a list with {', '.join(map(str, ranks))} axes, found {axes}"
        )
    places = [tuple(range(-n, 0)) for n in ranks]
    x, y = [np.moveaxis(v, k, place) for v, k, place in zip(operands, given, places, strict=False)]
    return finish(contents(np.moveaxis(product(x, y), places[2], given[2]))[1][0], _target(out), f"np.{name}")


def _target(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def matmul(x1: Any, x2: Any, /, out: Any = None, *, axes: Any = None, **options: Any) -> Any:
    """Matrices in the last two axes, the others run along."""
    if axes is not None:
        operands = array(x1), array(x2)
        m, n = [min(v.ndim, 2) for v in operands]
        return _with_axes("matmul", partial(matmul, **options), operands, (m, n, m + n - 2), axes, out)
    _check_options("matmul", options)
    x, y, dtype, trace, lhs, rhs = _two(x1, x2)
    if x.ndim == 0 or y.ndim == 0:
        raise trace.error(
            ShapeError,
            "matmul: operand 1 does not have enough dimensions (has 0, gufunc core with signature "
            "(n?,k),(k,m?)->(n?,m?) requires 1)",
        )
    i, j = x.ndim - 1, max(y.ndim - 2, 0)
    if x.shape[i] != y.shape[j]:
        raise trace.error(
            ShapeError,
            "matmul: operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"(n?,k),(k,m?)->(n?,m?) (size {y.shape[j]} is different from {x.shape[i]}): "
            f"shapes {x.shape} and {y.shape}",
        )
    if x.ndim <= 2 and y.ndim <= 2 and x.ndim + y.ndim > 2 and x.dtype == y.dtype == dtype != BOOL and not options:
        content = trace.apply("dot_general", lhs, rhs, contract=((i,), (j,)), batch=((), ()))
        content = begun_product(trace, content) if x.shape[i] == 1 else content
        return _finished(content, out, "np.matmul")
    batch = max(x.ndim - 2, y.ndim - 2, 0)
    xs = [f"b{k}" for k in range(batch - max(x.ndim - 2, 0), batch)] + (["n"] if x.ndim > 1 else []) + ["k"]
    ys = [f"b{k}" for k in range(batch - max(y.ndim - 2, 0), batch)] + ["k"] + (["m"] if y.ndim > 1 else [])
    _check_batch(trace, "matmul", x.shape[:-2], y.shape[:-2])
    wanted = [f"b{k}" for k in range(batch)] + (["n"] if x.ndim > 1 else []) + (["m"] if y.ndim > 1 else [])
    return _finished(contract(trace, lhs, rhs, xs, ys, wanted, _asked(dtype, options)), out, "np.matmul")


def _check_options(name: str, options: dict[str, Any]) -> None:
    for key in ("axis", "keepdims"):
        if options.get(key):
            raise active().error(TypeError, f"np.{name} does not support {key}=, which is for vectors alone")


def _asked(dtype: DType, options: dict[str, Any]) -> DType:
    return dtype if options.get("dtype") is None else np.dtype(options["dtype"])


def _finished(content: Content, out: Any, name: str) -> Any:
    return finish(content, _target(out), name)


def _check_batch(trace: Trace, name: str, x: Shape, y: Shape) -> None:
    try:
        np.broadcast_shapes(x, y)
    except ValueError:
        raise trace.error(ShapeError, f"np.{name}: leading axes {x} and {y} could not be broadcast together") from None


def vecdot(
    x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1, axes: Any = None, keepdims: bool = False, **options: Any
) -> Any:
    """The sum of conj(x1) * x2 over one axis."""
    x, y = array(x1), array(x2)
    if axes is not None:
        if keepdims:
            raise active().error(
                UnsupportedError, "np.vecdot: axes= with keepdims= is not followed; use np.expand_dims"
            )
        return _with_axes("vecdot", partial(vecdot, **options), (x, y), (1, 1, 0), axes, out)
    if keepdims:
        flat = vecdot(x, y, axis=axis, **options)
        return _finished(contents(np.expand_dims(flat, axis))[1][0], out, "np.vecdot")
    if x.ndim == 0 or y.ndim == 0:
        raise active().error(ShapeError, "vecdot: an operand does not have enough dimensions (has 0, requires 1)")
    x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    _check_vectors("vecdot", x.shape, y.shape, -1, -1)
    trace, (lhs, rhs) = contents(_conjugate(x), y)
    ndim = max(x.ndim, y.ndim)
    every = _labels(ndim, 0)
    dtype = _asked(_product_dtype(x, y), options)
    return _finished(
        contract(trace, lhs, rhs, every[ndim - x.ndim :], every[ndim - y.ndim :], every[:-1], dtype), out, "np.vecdot"
    )


def _check_vectors(name: str, x: Shape, y: Shape, i: int, j: int) -> None:
    if x[i] != y[j]:
        raise active().error(
            ShapeError,
            f"{name}: Input operand 1 has a mismatch in its core dimension (size {y[j]} is different from {x[i]}): "
            f"shapes {x} and {y}",
        )


def _conjugate(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def matvec(x1: Any, x2: Any, /, out: Any = None, *, axes: Any = None, **options: Any) -> Any:
    x, y = array(x1), array(x2)
    if axes is not None:
        return _with_axes("matvec", partial(matvec, **options), (x, y), (2, 1, 1), axes, out)
    _check_vectors("matvec", x.shape, y.shape, -1, -1)
    return _finished(contents(matmul(x, y[..., None], **options)[..., 0])[1][0], out, "np.matvec")


def vecmat(x1: Any, x2: Any, /, out: Any = None, *, axes: Any = None, **options: Any) -> Any:
    x, y = array(x1), array(x2)
    if axes is not None:
        return _with_axes("vecmat", partial(vecmat, **options), (x, y), (1, 2, 1), axes, out)
    _check_vectors("vecmat", x.shape, y.shape, -1, -2)
    return _finished(contents(matmul(_conjugate(x)[..., None, :], y, **options)[..., 0, :])[1][0], out, "np.vecmat")


def _is_plain_product(x: Any, y: Any, dtype: DType) -> bool:
    """Whether np.dot multiplies two numbers with nothing added, as it does in the types that BLAS has."""
    return bool(x.size == y.size == 1 and dtype.char in "fdFD")


def dot(a: Any, b: Any, out: Any = None, *, from_zero: bool = False) -> Any:
    """The last axis of a with the second to last of b; the other axes all stay."""
    x, y, dtype, trace, lhs, rhs = _two(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return np.multiply(x, y) if out is None else np.multiply(x, y, out=out)
    j = max(y.ndim - 2, 0)
    _mismatch(trace, "dot", x.shape, y.shape, x.ndim - 1, j)
    xs, ys = _labels(x.ndim, 0), _labels(y.ndim, x.ndim)
    ys[j] = xs[-1]
    wanted = xs[:-1] + [k for i, k in enumerate(ys) if i != j]
    begins = from_zero or not _is_plain_product(x, y, dtype)
    return finish(contract(trace, lhs, rhs, xs, ys, wanted, dtype, from_zero=begins), out, "np.dot")


def inner(a: Any, b: Any, /) -> Any:
    """The last axes of both."""
    x, y, dtype, trace, lhs, rhs = _two(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return np.multiply(x, y)
    _mismatch(trace, "inner", x.shape, y.shape, x.ndim - 1, y.ndim - 1)
    xs, ys = _labels(x.ndim, 0), _labels(y.ndim, x.ndim)
    ys[-1] = xs[-1]
    begins = not _is_plain_product(x, y, dtype)
    return finish(contract(trace, lhs, rhs, xs, ys, xs[:-1] + ys[:-1], dtype, from_zero=begins))


def vdot(a: Any, b: Any, /) -> Any:
    x, y = np.ravel(array(a)), np.ravel(array(b))
    return dot(_conjugate(x), y, from_zero=True)


def outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = np.ravel(array(a)), np.ravel(array(b))
    result = np.multiply(x[:, None], y[None, :])
    return result if out is None else finish(contents(result)[1][0], out, "np.outer")


def linalg_outer(x1: Any, x2: Any, /) -> Any:
    x, y = array(x1), array(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise active().error(
            ShapeError, f"Input arrays must be one-dimensional, but they are x1.ndim={x.ndim} and x2.ndim={y.ndim}."
        )
    return outer(x, y)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y, dtype, trace, lhs, rhs = _two(a, b)
    if isinstance(axes, tuple | list):
        first, second = [list(k) if isinstance(k, tuple | list) else [k] for k in axes]
    else:
        count = operator.index(axes)
        first, second = list(range(x.ndim - count, x.ndim)), list(range(count))
    if len(first) != len(second):
        raise trace.error(
            ShapeError, f"shape-mismatch for sum: {len(first)} axes of the first operand, {len(second)} of the second"
        )
    xs, ys = _labels(x.ndim, 0), _labels(y.ndim, x.ndim)
    for i, j in zip(first, second, strict=True):
        i, j = axis_number(trace, i, x.ndim), axis_number(trace, j, y.ndim)
        if x.shape[i] != y.shape[j]:
            raise trace.error(ShapeError, f"shape-mismatch for sum: axis {i} of {x.shape} and axis {j} of {y.shape}")
        ys[j] = xs[i]
    summed = {ys[axis_number(trace, j, y.ndim)] for j in second}
    wanted = [k for k in xs if k not in summed] + [k for k in ys if k not in summed]
    content = contract(trace, lhs, rhs, xs, ys, wanted, dtype, from_zero=not _is_plain_product(x, y, dtype))
    return new_array(trace, content, lent=True)  # never a scalar, as in NumPy


def kron(a: Any, b: Any) -> Any:
    x, y = array(a), array(b)
    ndim = max(x.ndim, y.ndim)
    xs, ys = (1,) * (ndim - x.ndim) + x.shape, (1,) * (ndim - y.ndim) + y.shape
    lhs = np.reshape(x, tuple([k for n in xs for k in (n, 1)]))
    rhs = np.reshape(y, tuple([k for n in ys for k in (1, n)]))
    return np.reshape(np.multiply(lhs, rhs), tuple([n * m for n, m in zip(xs, ys, strict=True)]))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """Of vectors with three components, or two (whose third is 0)."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = np.moveaxis(array(a), axisa, -1), np.moveaxis(array(b), axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise active().error(
            ShapeError, f"incompatible dimensions for cross product (dimension must be 2 or 3): {x.shape} and {y.shape}"
        )
    flat = x.shape[-1] == 2 and y.shape[-1] == 2
    x1, x2 = x[..., 0], x[..., 1]
    y1, y2 = y[..., 0], y[..., 1]
    third = x1 * y2 - x2 * y1
    if flat:
        return third
    x3 = x[..., 2] if x.shape[-1] == 3 else None
    y3 = y[..., 2] if y.shape[-1] == 3 else None
    first, second = _minus(x2, y3, x3, y2), _minus(x3, y1, x1, y3)
    return np.moveaxis(np.stack(np.broadcast_arrays(first, second, third), axis=-1), -1, axisc)


def _minus(p: Any, q: Any, r: Any, s: Any) -> Any:
    """p*q - r*s, where a missing factor is 0."""
    left: Any = None if p is None or q is None else p * q
    right: Any = None if r is None or s is None else r * s
    if left is None:
        return -right
    return left if right is None else left - right


def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    x, y = array(x1), array(x2)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise active().error(
            ShapeError,
            f"Both input arrays must be (arrays of) 3-dimensional vectors, but they are {x.shape[axis]} and "
            f"{y.shape[axis]} dimensional instead.",
        )
    return cross(x, y, axis=axis)


def matrix_power(a: Any, n: Any) -> Any:
    """By repeated squaring; a negative power is one of the inverse."""
    x, trace = array(a), active()
    power = operator.index(n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise trace.error(ShapeError, f"Last 2 dimensions of the array must be square, got shape {x.shape}")
    if power == 0:
        return np.zeros_like(x) + const(np.eye(x.shape[-1], dtype=x.dtype))
    if power < 0:
        x, power = np.linalg.inv(x), -power
    result: Any = None
    while power:
        if power % 2:
            result = x if result is None else matmul(result, x)
        power //= 2
        x = matmul(x, x) if power else x
    return result


def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of several matrices in the cheapest order."""
    parts = [array(x) for x in arrays]
    if len(parts) < 2:
        raise ValueError("Expecting at least two arrays.")
    lead, tail = parts[0].ndim == 1, parts[-1].ndim == 1
    parts[0] = np.atleast_2d(parts[0])
    if tail:
        parts[-1] = parts[-1][:, None]
    sizes = [p.shape[0] for p in parts] + [parts[-1].shape[1]]
    result = _chain(parts, _splits(sizes), 0, len(parts) - 1)
    if lead or tail:
        result = result[0, 0] if lead and tail else result.reshape(-1)
    return result if out is None else finish(contents(result)[1][0], out, "np.linalg.multi_dot")


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """For each run of matrices where to split it (the classical dynamic programme)."""
    count = len(sizes) - 1
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(count)}
    where: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            where[i, j] = min(options, key=options.__getitem__)
            cost[i, j] = options[where[i, j]]
    return where


def _chain(parts: list[Any], where: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return parts[i]
    k = where[i, j]
    return dot(_chain(parts, where, i, k), _chain(parts, where, k + 1, j))


def trace_(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    result = np.sum(np.diagonal(array(a), offset, axis1, axis2), axis=-1, dtype=dtype)
    return result if out is None else finish(contents(result)[1][0], out, "np.trace")


def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace_(x, offset, -2, -1, dtype)


FUNCTIONS: dict[Any, Entry] = {
    np.dot: Entry(lambda a, b, out=None: dot(a, b, out)),
    np.inner: Entry(inner),
    np.vdot: Entry(vdot),
    np.outer: Entry(outer),
    np.linalg.outer: Entry(linalg_outer),
    np.tensordot: Entry(tensordot),
    np.linalg.tensordot: Entry(lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes)),
    np.linalg.matmul: Entry(lambda x1, x2, /: matmul(x1, x2)),
    np.linalg.vecdot: Entry(lambda x1, x2, /, *, axis=-1: vecdot(x1, x2, axis=axis)),
    np.kron: Entry(kron),
    np.cross: Entry(cross),
    np.linalg.cross: Entry(linalg_cross),
    np.linalg.matrix_power: Entry(matrix_power),
    np.linalg.multi_dot: Entry(multi_dot),
    np.trace: Entry(trace_),
    np.linalg.trace: Entry(linalg_trace),
}

GUFUNCS: dict[Any, Any] = {
    getattr(np, name): implementation
    for name, implementation in {"matmul": matmul, "vecdot": vecdot, "matvec": matvec, "vecmat": vecmat}.items()
    if hasattr(np, name)
}
