"""Reductions over axes, and scans along one."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import (
    PLAIN,
    Array,
    Custom,
    Derivative,
    Infer,
    Library,
    Linear,
    NotDifferentiable,
    OpDef,
    Reduce,
    RunRegion,
    Types,
)
from pullback.ir.ops.common import KIND_WORDS, check_arity, check_axes, without, words
from pullback.ir.types import TensorType

TIES = ("equal", "all", "first")
MaybeExprs = Sequence[Expr | None]


def _infer(name: str, kinds: str, needs_elements: bool = False) -> Infer:
    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
        check_arity(name, types, 1)
        (x,) = types
        check_axes(name, attrs["axes"], x.ndim, types)
        if x.dtype.kind not in kinds:
            raise TypeRuleError(f"{name} needs a {', '.join(KIND_WORDS[k] for k in kinds)} operand, got {x}")
        if needs_elements and any(x.shape[a] == 0 for a in attrs["axes"]):
            raise ShapeError(f"{name} of no elements has no value: {x} over axes {list(attrs['axes'])}")
        if attrs.get("ties", "equal") not in TIES:
            raise TypeRuleError(f"{name}: ties must be one of {', '.join(TIES)}, got {attrs['ties']!r}")
        return (x.with_shape(without(x.shape, attrs["axes"])),)

    return infer


def _batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    attrs = {**op.attrs, "axes": tuple(a + 1 for a in op.attrs["axes"])}
    return (f.op(op.name, args[0], **attrs),)


def reduction(
    name: str,
    kinds: str,
    function: Callable[..., Any],
    derivative: Derivative,
    doc: str,
    *,
    ties: bool = False,
    needs_elements: bool = False,
    numpy: tuple[str, ...] = (),
) -> OpDef:
    def evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
        (x,), axes = args, op.attrs["axes"]
        result = function(x, axis=axes) if axes else x
        return (np.asarray(result, dtype=op.results[0].type.dtype),)

    return OpDef(
        name=name,
        arity=1,
        attrs={"axes": "ints", "ties": "str"} if ties else {"axes": "ints"},
        infer=_infer(name, kinds, needs_elements),
        evaluate=evaluate,
        numpy=numpy,
        derivative=derivative,
        batch=_batch,
        lower=Reduce(name),
        algebra=PLAIN,
        doc=doc,
    )


def expand(f: Emitter, op: Op, x: Expr) -> Expr:
    return f.expand(x, op.attrs["axes"], op.operands[0].type.shape)


SUM = reduction(
    "sum",
    "iufc",
    np.sum,
    Linear(lambda f, op, ct: (expand(f, op, ct),)),
    "Sum over `axes`, pairwise; 0 of no elements. Its transpose is `broadcast`.",
    numpy=("sum",),
)


# ------------------------------------------------------------------ prod: exact with zeros, no division


def flatten_axes(f: Emitter, op: Op, x: Expr) -> tuple[Expr, tuple[int, ...]]:
    """`x` with the reduced axes last and merged into one; the permutation that brought them there."""
    axes = op.attrs["axes"]
    kept = tuple(k for k in range(x.ndim) if k not in axes)
    perm = kept + tuple(axes)
    moved = f.permute(x, perm)
    lengths = tuple(x.shape[k] for k in kept)
    return f.reshape_to(moved, (*lengths, math.prod(x.shape[a] for a in axes))), perm


def _others(f: Emitter, op: Op, x: Expr) -> Expr:
    """For each element the product of all other elements of its group: exclusive products from both sides."""
    flat, perm = flatten_axes(f, op, x)
    last = flat.ndim - 1
    others = _exclusive(f, flat, last, False) * _exclusive(f, flat, last, True)
    shape = tuple(x.shape[p] for p in perm)
    return f.permute(f.reshape_to(others, shape), tuple(int(k) for k in np.argsort(perm)))


def _exclusive(f: Emitter, x: Expr, axis: int, reverse: bool) -> Expr:
    """Cumulative product along `axis` of the elements before (or, reversed, behind) each one."""
    n = x.shape[axis]
    if n == 0:
        return x
    full = f.cumprod(x, axis=axis, reverse=reverse)
    step = (1,) * x.ndim
    start = tuple(1 if k == axis and reverse else 0 for k in range(x.ndim))
    stop = tuple(n - 1 if k == axis and not reverse else m for k, m in enumerate(x.shape))
    kept = f.slice(full, start=start, stop=stop, step=step)
    one = f.full(x.type.with_shape(tuple(1 if k == axis else m for k, m in enumerate(x.shape))), 1)
    return f.concatenate(*((kept, one) if reverse else (one, kept)), axis=axis)


def _prod_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (x,), (ct,) = args, cts
    return (None if ct is None else f.strong_mul(expand(f, op, ct), _others(f, op, x)),)


def _prod_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (x,), (tan,) = args, tans
    return (None if tan is None else f.sum(f.strong_mul(tan, _others(f, op, x)), axes=op.attrs["axes"]),)


PROD = reduction(
    "prod",
    "iufc",
    np.prod,
    Custom(_prod_vjp, _prod_jvp),
    "Product over `axes`; 1 of no elements. The derivative is the product of the others, without division: exact with "
    "zeros.",
    numpy=("prod",),
)


# ------------------------------------------------------------------ truth

ANY = reduction("any", "b", np.any, NotDifferentiable("bool"), "True where any element over `axes` is; False of none.")
ALL = reduction("all", "b", np.all, NotDifferentiable("bool"), "True where all elements over `axes` are; True of none.")


# ------------------------------------------------------------------ scans


def _scan_infer(name: str, kinds: str) -> Infer:
    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
        check_arity(name, types, 1)
        check_axes(name, (attrs["axis"],), types[0].ndim, types)
        if types[0].dtype.kind not in kinds:
            raise TypeRuleError(f"{name} needs a {', '.join(KIND_WORDS[k] for k in kinds)} operand, got {words(types)}")
        return (types[0],)

    return infer


def _scan(name: str, kinds: str, ufunc: Any, derivative: Derivative, doc: str) -> OpDef:
    def evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
        (x,), axis = args, op.attrs["axis"]
        if op.attrs["reverse"]:
            return (np.flip(ufunc.accumulate(np.flip(x, axis), axis, dtype=x.dtype), axis),)
        return (np.asarray(ufunc.accumulate(x, axis, dtype=x.dtype)),)

    def batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
        return (f.op(name, args[0], axis=op.attrs["axis"] + 1, reverse=op.attrs["reverse"]),)

    return OpDef(
        name=name,
        arity=1,
        attrs={"axis": "int", "reverse": "bool"},
        infer=_scan_infer(name, kinds),
        evaluate=evaluate,
        numpy=(),
        derivative=derivative,
        batch=batch,
        lower=Library(name),
        algebra=PLAIN,
        doc=doc,
    )


CUMSUM = _scan(
    "cumsum",
    "iufc",
    np.add,
    Linear(lambda f, op, ct: (f.cumsum(ct, axis=op.attrs["axis"], reverse=not op.attrs["reverse"]),)),
    "Running sum along `axis`, from the end with `reverse`; its transpose runs the other way.",
)


def _cumprod_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (x,), (tan,) = args, tans
    return (None if tan is None else _triangle_jvp(f, op, x, tan),)


def _cumprod_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (x,), (ct,) = args, cts
    return (None if ct is None else _triangle_vjp(f, op, x, ct),)


def _oriented(f: Emitter, op: Op, x: Expr) -> Expr:
    """Axis last and running forwards."""
    axis = op.attrs["axis"]
    moved = f.permute(x, (*(k for k in range(x.ndim) if k != axis), axis))
    return f.reverse(moved, axes=(x.ndim - 1,)) if op.attrs["reverse"] else moved


def _restored(f: Emitter, op: Op, x: Expr) -> Expr:
    axis, last = op.attrs["axis"], x.ndim - 1
    turned = f.reverse(x, axes=(last,)) if op.attrs["reverse"] else x
    perm = [*range(axis), last, *range(axis, last)]
    return f.permute(turned, perm)


def _affine_steps(f: Emitter, scale: Expr, shift: Expr) -> Expr:
    """y[k] = scale[k] * y[k-1] + shift[k] along the last axis (y before the first is 0), by doubling: log2(n) rounds,
    no division, so zeros are exact. A shift of zero stays so whatever the scale is."""
    n, last, k = scale.shape[-1], scale.ndim - 1, 1
    while k < n:
        shift = shift + f.strong_mul(_shifted(f, shift, last, k), scale)
        scale = scale * _shifted(f, scale, last, k)
        k *= 2
    return shift


def _shifted(f: Emitter, x: Expr, axis: int, by: int) -> Expr:
    """`x` moved `by` places towards higher indices, zeros coming in."""
    n = x.shape[axis]
    stop = tuple(n - by if k == axis else m for k, m in enumerate(x.shape))
    kept = f.slice(x, start=(0,) * x.ndim, stop=stop, step=(1,) * x.ndim)
    low = tuple(by if k == axis else 0 for k in range(x.ndim))
    return f.pad(kept, low=low, high=(0,) * x.ndim, interior=(0,) * x.ndim)


def _before(f: Emitter, x: Expr) -> Expr:
    return _exclusive(f, x, x.ndim - 1, False)


def _triangle_jvp(f: Emitter, op: Op, x: Expr, tan: Expr) -> Expr:
    """tan_y[k] = x[k] tan_y[k-1] + tan_x[k] * (product of the elements before k)."""
    xs, tans = _oriented(f, op, x), _oriented(f, op, tan)
    return _restored(f, op, _affine_steps(f, xs, f.strong_mul(tans, _before(f, xs))))


def _triangle_vjp(f: Emitter, op: Op, x: Expr, ct: Expr) -> Expr:
    """The transpose: g[k] = ct[k] + x[k+1] g[k+1], then times the product of the elements before k."""
    xs, cts = _oriented(f, op, x), _oriented(f, op, ct)
    last = xs.ndim - 1
    if xs.shape[last] == 0:
        return ct
    turned = f.reverse(xs, axes=(last,))
    after = _shifted(f, turned, last, 1)
    g = f.reverse(_affine_steps(f, after, f.reverse(cts, axes=(last,))), axes=(last,))
    return _restored(f, op, f.strong_mul(g, _before(f, xs)))


CUMPROD = _scan(
    "cumprod",
    "iufc",
    np.multiply,
    Custom(_cumprod_vjp, _cumprod_jvp),
    "Running product along `axis`. The derivative is a linear recurrence solved without division: exact with zeros.",
)


def _running_source(f: Emitter, op: Op, x: Expr, out: Expr) -> Expr:
    """For each position the index where its running extremum stands: the last one that set a new extremum (or the
    first)."""
    axis, n = op.attrs["axis"], x.shape[op.attrs["axis"]]
    back = op.attrs["reverse"]
    place = f.arange_like(x.shape, axis)
    fresh = _is_fresh(f, x, out, axis, back)
    edge = f.full_like(place, n - 1 if back else 0)
    marked = f.select(fresh, place, edge)
    return f.cummin(marked, axis=axis, reverse=True) if back else f.cummax(marked, axis=axis, reverse=False)


def _is_fresh(f: Emitter, x: Expr, out: Expr, axis: int, back: bool) -> Expr:
    """True where the running extremum changed: out differs from its neighbour before."""
    n = x.shape[axis]
    low = tuple(1 if k == axis else 0 for k in range(x.ndim))
    size = tuple(n - 1 if k == axis else m for k, m in enumerate(x.shape))
    head = f.slice(out, start=(0,) * x.ndim, stop=size, step=(1,) * x.ndim)
    tail = f.slice(out, start=low, stop=x.shape, step=(1,) * x.ndim)
    changed = head.ne(tail) & ~(f.isnan(head) & f.isnan(tail))
    edge = f.full(changed.type.with_shape(tuple(1 if k == axis else m for k, m in enumerate(x.shape))), True)
    return f.concatenate(*((changed, edge) if back else (edge, changed)), axis=axis)


def _along(f: Emitter, x: Expr, place: Expr, axis: int) -> Expr:
    """Flat element numbers of (..., place along `axis`, ...)."""
    strides = [math.prod(x.shape[k + 1 :]) for k in range(x.ndim)]
    flat = place * strides[axis]
    for k in range(x.ndim):
        if k != axis:
            flat = flat + f.arange_like(x.shape, k) * strides[k]
    return flat


def _running_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    (x,), (out,), (ct,) = args, outs, cts
    if ct is None or x.type.size == 0:
        return (None,)
    flat = _along(f, x, _running_source(f, op, x, out), op.attrs["axis"])
    size = (x.type.size,)
    base = f.full(x.type.with_shape(size), 0)
    total = f.scatter_add(base, f.reshape_to(flat, size), f.reshape_to(ct, size), axis=0)
    return (f.reshape_to(total, x.shape),)


def _running_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (x,), (out,), (tan,) = args, outs, tans
    if tan is None or x.type.size == 0:
        return (None,)
    flat = _along(f, x, _running_source(f, op, x, out), op.attrs["axis"])
    return (f.gather(f.reshape_to(tan, (x.type.size,)), flat, axis=0),)


_RUNNING = (
    "Running {} along `axis`, NaN from the first NaN on. The derivative goes to the element that first reached it."
)
CUMMAX = _scan("cummax", "iuf", np.maximum, Custom(_running_vjp, _running_jvp), _RUNNING.format("maximum"))
CUMMIN = _scan("cummin", "iuf", np.minimum, Custom(_running_vjp, _running_jvp), _RUNNING.format("minimum"))

REDUCTIONS = (SUM, PROD, ANY, ALL, CUMSUM, CUMPROD, CUMMAX, CUMMIN)
