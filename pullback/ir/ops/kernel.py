"""Ops of the planned stage: `kernel`, a loop nest with a scalar body, and the ops that live only in such a body.

They are made by `passes.fuse` behind differentiation and batching, so they have neither rule.
"""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from pullback.errors import TypeRuleError, UnsupportedError
from pullback.ir.graph import Attrs, Op, Region, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.kernel import STORE_KINDS, Load, Store
from pullback.ir.opdef import (
    PLAIN,
    Array,
    Control,
    Evaluate,
    Infer,
    NotDifferentiable,
    OpDef,
    RunRegion,
    Types,
)
from pullback.ir.types import BOOL, I64, Shape, TensorType, tensor_type

PLANNED = NotDifferentiable("an op of the planned stage, made behind differentiation")


def _no_batch(*_: object) -> NoReturn:
    raise UnsupportedError("kernels are made behind batching; batch the function before it is planned")


def _only_in_body(op: Op, operands: Sequence[Array], run: RunRegion) -> NoReturn:
    raise UnsupportedError(f"{op.name} has a meaning only in the body of a kernel")


# ------------------------------------------------------------------ type rules


def _infer_index(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    return (tensor_type(I64),)


def _infer_within(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    if types[0].shape != ():
        raise TypeRuleError(f"within takes a scalar of a kernel's body, found {types[0]}")
    return (types[0],)


def _infer_load_at(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    if types[0] != tensor_type(I64):
        raise TypeRuleError(f"load_at takes a position of type i64[], found {types[0]}")
    return (tensor_type(attrs["dtype"]),)


def _infer_kernel(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    loads: tuple[Load, ...] = attrs["loads"]
    stores: tuple[Store, ...] = attrs["stores"]
    (body,) = regions
    found = tuple(p.type for p in body.params)
    for load in loads:
        if not 0 <= load.operand < len(types):
            raise TypeRuleError(f"kernel loads operand {load.operand}, but has {len(types)} operands")
    wanted = tuple(tensor_type(types[load.operand].dtype) for load in loads)
    if found != wanted:
        raise TypeRuleError(f"kernel body takes {_names(found)}, but its loads give {_names(wanted)}")
    given = tuple(r.type for r in body.results)
    wanted = tuple(tensor_type(store.type.dtype) for store in stores)
    if given != wanted:
        raise TypeRuleError(f"kernel body yields {_names(given)}, but its stores write {_names(wanted)}")
    for store in stores:
        if store.kind not in STORE_KINDS:
            raise TypeRuleError(f"unknown kind of store {store.kind!r}; expected one of {', '.join(STORE_KINDS)}")
    return tuple(store.type for store in stores)


def _names(types: Types) -> str:
    return f"({', '.join(map(str, types))})"


# ------------------------------------------------------------------ meaning


def index_grid(at: Affine, space: Shape) -> Array:
    """`at` for every index of `space`, as an array that broadcasts to `space`."""
    grid: Array = np.full((1,) * len(space), at.offset, np.int64)
    for axis, coefficient in at.terms:
        column = np.arange(space[axis], dtype=np.int64) * coefficient
        grid = grid + column.reshape([-1 if a == axis else 1 for a in range(len(space))])
    return grid


def bounds_hold(bounds: Sequence[Bound], space: Shape) -> Array:
    """Where all of `bounds` hold, as a boolean array that broadcasts to `space`."""
    holds: Array = np.ones((1,) * len(space), np.bool_)
    for bound in bounds:
        grid = index_grid(bound.index, space)
        holds = holds & (grid >= bound.low) & (grid < bound.high)
    return holds


def _take(buffer: Array, at: Array) -> Array:
    flat = np.ascontiguousarray(buffer).reshape(-1)
    if flat.size == 0:
        return np.zeros(at.shape, flat.dtype)
    taken: Array = flat[np.clip(at, 0, flat.size - 1)]
    return taken


def _load(load: Load, buffers: Sequence[Array], space: Shape) -> Array:
    buffer = np.asarray(buffers[load.operand])
    at, holds = index_grid(load.at, space), bounds_hold(load.bounds, space)
    if 0 not in space and holds.all() and not (at.min() >= 0 and at.max() < buffer.size):
        raise TypeRuleError(f"kernel over {space} loads outside of its operand of {buffer.size} elements: {load}")
    value = _take(buffer, at)
    return np.where(holds, value, np.zeros((), buffer.dtype)) if load.bounds else value


def _body_value(op: Op, operands: list[Array], buffers: Sequence[Array], space: Shape, run: RunRegion) -> Array:
    if op.name == "index":
        return index_grid(Affine(0, ((op.attrs["axis"], 1),)), space)
    if op.name == "within":
        return np.where(bounds_hold(op.attrs["bounds"], space), operands[0], np.zeros((), operands[0].dtype))
    if op.name == "load_at":
        return _take(np.asarray(buffers[op.attrs["operand"]]), operands[0])
    # Elementwise rules want equal shapes, which need be no larger than what the operands depend on.
    with np.errstate(all="ignore"):
        return np.asarray(op.opdef.evaluate(op, np.broadcast_arrays(*operands), run)[0])


_REDUCERS: dict[str, Callable[..., Any]] = {
    "sum": np.add.reduce,
    "prod": np.multiply.reduce,
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
    "nanmax": np.fmax.reduce,
    "nanmin": np.fmin.reduce,
    "any": np.logical_or.reduce,
    "all": np.logical_and.reduce,
}


def _store(store: Store, value: Array, space: Shape) -> Array:
    value = np.broadcast_to(value, space)
    used = {axis for axis, _ in store.at.terms}
    if store.kind != "store":
        spare = tuple(axis for axis in range(len(space)) if axis not in used)
        if spare:
            kept = {} if value.dtype == BOOL else {"dtype": value.dtype}
            value = _REDUCERS[store.kind](value, axis=spare, keepdims=True, **kept)
    at = np.broadcast_to(index_grid(store.at, space), value.shape).reshape(-1)
    result: Array = np.empty(store.type.size, store.type.dtype)
    written = np.zeros(store.type.size, np.bool_)
    written[at] = True
    if at.size != store.type.size or not written.all():
        raise TypeRuleError(f"kernel over {space} does not write each element of its result exactly once: {store}")
    result[at] = value.reshape(-1)
    return result.reshape(store.type.shape)


def _evaluate_kernel(op: Op, operands: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    space: Shape = op.attrs["space"]
    body = op.regions[0]
    values: dict[Value, Array] = {}
    for param, load in zip(body.params, op.attrs["loads"], strict=True):
        values[param] = _load(load, operands, space)
    for inner in body.ops:
        values[inner.results[0]] = _body_value(inner, [values[v] for v in inner.operands], operands, space, run)
    pairs = zip(op.attrs["stores"], body.results, strict=True)
    return tuple(_store(store, values[value], space) for store, value in pairs)


# ------------------------------------------------------------------ rows


def _infer_rows(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    count, mapped = attrs["count"], attrs["mapped"]
    (body,) = regions
    params = [p.type for p in body.params]
    if count < 1 or not 0 <= mapped <= len(types) or len(params) != len(types):
        raise TypeRuleError(f"rows of {_names(types)}: {count} turns, {mapped} mapped, the body takes {_names(params)}")
    for number, (given, taken) in enumerate(zip(types, params, strict=True)):
        fits = given.size == count * taken.size if number < mapped else given == taken
        if given.dtype != taken.dtype or not fits:
            raise TypeRuleError(f"rows: operand {number} is {given}, of which the body takes {taken} in {count} turns")
    return tuple([r.type.with_shape((count, *r.type.shape)) for r in body.results])


def _evaluate_rows(op: Op, operands: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    (body,), count, mapped = op.regions, op.attrs["count"], op.attrs["mapped"]
    cut = [
        np.reshape(x, (count, *p.type.shape)) for x, p in zip(operands[:mapped], body.params[:mapped], strict=True)
    ]
    turns = [run(body, [*(x[k] for x in cut), *operands[mapped:]]) for k in range(count)]
    return tuple([np.stack([turn[k] for turn in turns]) for k in range(len(op.results))])


# ------------------------------------------------------------------ records


def _planned(
    name: str, arity: int | None, attrs: dict[str, str], infer: Infer, doc: str, evaluate: Evaluate = _only_in_body
) -> OpDef:
    return OpDef(
        name=name,
        arity=arity,
        attrs=attrs,
        infer=infer,
        evaluate=evaluate,
        numpy=(),
        derivative=PLANNED,
        batch=_no_batch,
        lower=Control(name),
        algebra=PLAIN,
        doc=doc,
        regions=() if evaluate is _only_in_body else ("body",),
    )


KERNEL = _planned(
    "kernel",
    None,
    {"space": "ints", "loads": "loads", "stores": "stores"},
    _infer_kernel,
    "A loop nest over `space`. Each body parameter is an element read as its load says, each body result goes where "
    "its store says. Stores of kind sum, prod, max, min, any and all accumulate over the axes that their position does "
    "not use.",
    _evaluate_kernel,
)
ROWS = _planned(
    "rows",
    None,
    {"count": "int", "mapped": "int"},
    _infer_rows,
    "The body `count` times, in any order or at once. Turn k takes the k-th of `count` equal parts, in C order, of "
    "each of the first `mapped` operands, and the others whole; what it gives is part k of the results. Values in "
    "between are small, and belong to the turn.",
    _evaluate_rows,
)
INDEX = _planned("index", 0, {"axis": "int"}, _infer_index, "The loop index of an axis of the kernel around it.")
WITHIN = _planned(
    "within",
    1,
    {"bounds": "bounds"},
    _infer_within,
    "The operand where all the bounds on the loop indices hold, else zero (whatever the operand is there).",
)
LOAD_AT = _planned(
    "load_at",
    1,
    {"operand": "int", "dtype": "dtype"},
    _infer_load_at,
    "The element at a computed flat position of an operand of the kernel around it; positions outside are clamped.",
)
BODY_OPS = (INDEX, WITHIN, LOAD_AT)
PLANNED_OPS = (KERNEL, ROWS, *BODY_OPS)
