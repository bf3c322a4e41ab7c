"""Loads and stores of lanes: contiguous, reversed, strided, masked; bools as bytes, complex numbers as two parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from pullback.codegen.lane import Lane, element_type, memory_type
from pullback.codegen.llvm import FunctionBuilder, V, const, const_lanes, vector_type
from pullback.ir.types import BOOL, DType, real_dtype

Mask = int | V | None
"""Which lanes take part: all (None), the first so many, or those of an i1 vector."""


@cache
def lane_numbers(lanes: int) -> V:
    """The vector 0, 1, 2, ... of i64; 0 for one lane."""
    return const("i64", 0) if lanes == 1 else const_lanes("i64", range(lanes))


def mask_vector(b: FunctionBuilder, mask: Mask, lanes: int) -> V | None:
    """The mask as i1 lanes; None for all."""
    if mask is None or isinstance(mask, V):
        return mask
    if mask >= lanes:
        return None
    return const_lanes("i1", [lane < mask for lane in range(lanes)])


def offset(b: FunctionBuilder, pointer: V, dtype: DType, elements: int) -> V:
    """Address of the element so many further on."""
    return pointer if elements == 0 else b.gep("i8", pointer, elements * dtype.itemsize, flags="")


def load(b: FunctionBuilder, dtype: DType, pointer: V, stride: int = 1, lanes: int = 1, mask: Mask = None) -> Lane:
    """Lane k from `pointer[k * stride]`, zero where masked out; stride 0 gives one lane."""
    if lanes == 1 or stride == 0:
        return _load_one(b, dtype, pointer)
    if dtype.kind == "c":
        return _load_complex(b, dtype, pointer, stride, lanes, mask)
    known = mask_vector(b, mask, lanes)
    if stride == 1:
        raw = _load_vector(b, dtype, pointer, lanes, known)
    elif stride == -1:
        turned = None if known is None else _reversed(b, known, lanes)
        low = offset(b, pointer, dtype, 1 - lanes)
        raw = _reversed(b, _load_vector(b, dtype, low, lanes, turned), lanes)
    elif isinstance(mask, V):
        addresses = _addresses(b, dtype, pointer, stride, lanes)
        raw = b.gather(vector_type(memory_type(dtype), lanes), addresses, dtype.itemsize, mask)
    else:
        raw = _load_strided(b, dtype, pointer, stride, lanes, lanes if mask is None else mask)
    return Lane(dtype, _from_memory(b, dtype, raw))


def stream(b: FunctionBuilder, value: Lane, pointer: V) -> None:
    """A whole vector, to an address that is a multiple of its size, past the cache."""
    raw = _to_memory(b, value.dtype, value.re)
    node = b.module.metadata("!{i32 1}")
    b.store(raw, pointer, value.dtype.itemsize * value.lanes, f", !nontemporal {node}")


def store(b: FunctionBuilder, value: Lane, pointer: V, stride: int = 1, mask: Mask = None) -> None:
    """Lane k to `pointer[k * stride]`, where the mask holds."""
    dtype, lanes = value.dtype, value.lanes
    if lanes == 1:
        _store_one(b, value, pointer)
        return
    if value.im is not None:
        _store_complex(b, value, value.im, pointer, stride, mask)
        return
    raw = _to_memory(b, dtype, value.re)
    known = mask_vector(b, mask, lanes)
    if stride == -1:
        pointer = offset(b, pointer, dtype, 1 - lanes)
        raw, known = _reversed(b, raw, lanes), None if known is None else _reversed(b, known, lanes)
        stride = 1
    if stride == 1 and known is None:
        b.store(raw, pointer, dtype.itemsize)
    elif stride == 1:
        assert known is not None
        b.masked_store(raw, pointer, dtype.itemsize, known)
    elif isinstance(mask, V):
        b.scatter(raw, _addresses(b, dtype, pointer, stride, lanes), dtype.itemsize, mask)
    else:
        for lane in range(lanes if mask is None else mask):
            b.store(b.extract(raw, lane), offset(b, pointer, dtype, lane * stride), dtype.itemsize)


def load_each(b: FunctionBuilder, dtype: DType, addresses: list[V]) -> Lane:
    """One element from each address."""
    lanes = [_load_one(b, dtype, address) for address in addresses]
    if len(lanes) == 1:
        return lanes[0]
    return _together(b, lanes)


def _together(b: FunctionBuilder, lanes: Sequence[Lane]) -> Lane:
    """Single lanes as one vector."""
    dtype = lanes[0].dtype
    parts = []
    for items in zip(*[lane.parts for lane in lanes], strict=True):
        vector = V("poison", vector_type(element_type(dtype), len(lanes)))
        for number, item in enumerate(items):
            vector = b.insert(vector, item, number)
        parts.append(vector)
    return Lane(dtype, *parts)


def splat(b: FunctionBuilder, value: Lane, lanes: int) -> Lane:
    """The same number in every lane."""
    if lanes == value.lanes:
        return value
    return Lane(value.dtype, *[splat_value(b, part, lanes) for part in value.parts])


def splat_value(b: FunctionBuilder, x: V, lanes: int) -> V:
    """A scalar in every lane; constants stay constants."""
    if x.name.startswith("%"):
        return b.splat(x, lanes)
    return x if lanes == 1 else V(f"splat ({x.type} {x.name})", vector_type(x.type, lanes))


# ------------------------------------------------------------------ one element


def _load_one(b: FunctionBuilder, dtype: DType, pointer: V) -> Lane:
    if dtype.kind == "c":
        part = real_dtype(dtype)
        type_ = element_type(part)
        im = b.load(type_, offset(b, pointer, part, 1), part.itemsize)
        return Lane(dtype, b.load(type_, pointer, part.itemsize), im)
    return Lane(dtype, _from_memory(b, dtype, b.load(memory_type(dtype), pointer, dtype.itemsize)))


def _store_one(b: FunctionBuilder, value: Lane, pointer: V) -> None:
    dtype = value.dtype
    if value.im is not None:
        part = real_dtype(dtype)
        b.store(value.re, pointer, part.itemsize)
        b.store(value.im, offset(b, pointer, part, 1), part.itemsize)
        return
    b.store(_to_memory(b, dtype, value.re), pointer, dtype.itemsize)


# ------------------------------------------------------------------ vectors of complex numbers


def _load_complex(b: FunctionBuilder, dtype: DType, pointer: V, stride: int, lanes: int, mask: Mask) -> Lane:
    """Real and imaginary parts apart: whole vectors where the numbers are side by side."""
    part = real_dtype(dtype)
    if abs(stride) == 1:
        low = pointer if stride == 1 else offset(b, pointer, dtype, 1 - lanes)
        known = _pair_mask(b, mask, lanes, stride)
        halves = [
            _load_vector(b, part, offset(b, low, part, k * lanes), lanes, known[k] if known else None) for k in range(2)
        ]
        order = range(0, 2 * lanes, 2) if stride == 1 else range(2 * lanes - 2, -1, -2)
        return Lane(dtype, *[b.shuffle(halves[0], halves[1], [at + k for at in order]) for k in range(2)])
    if isinstance(mask, V):
        addresses = _addresses(b, dtype, pointer, stride, lanes)
        type_ = vector_type(element_type(part), lanes)
        parts = [b.gather(type_, offset(b, addresses, part, k), part.itemsize, mask) for k in range(2)]
        return Lane(dtype, *parts)
    return Lane(
        dtype,
        *[
            _load_strided(b, part, offset(b, pointer, part, k), 2 * stride, lanes, lanes if mask is None else mask)
            for k in range(2)
        ],
    )


def _store_complex(b: FunctionBuilder, value: Lane, im: V, pointer: V, stride: int, mask: Mask) -> None:
    part, lanes = real_dtype(value.dtype), value.lanes
    if abs(stride) == 1:
        low = pointer if stride == 1 else offset(b, pointer, value.dtype, 1 - lanes)
        known = _pair_mask(b, mask, lanes, stride)
        order = range(lanes) if stride == 1 else range(lanes - 1, -1, -1)
        places = [at for lane in order for at in (lane, lanes + lane)]
        for k in range(2):
            raw = b.shuffle(value.re, im, places[k * lanes : (k + 1) * lanes])
            address = offset(b, low, part, k * lanes)
            if known is None:
                b.store(raw, address, part.itemsize)
            else:
                b.masked_store(raw, address, part.itemsize, known[k])
        return
    for k, x in enumerate((value.re, im)):
        first = offset(b, pointer, part, k)
        if isinstance(mask, V):
            b.scatter(x, _addresses(b, part, first, 2 * stride, lanes), part.itemsize, mask)
            continue
        for lane in range(lanes if mask is None else min(mask, lanes)):
            b.store(b.extract(x, lane), offset(b, first, part, 2 * lane * stride), part.itemsize)


def _pair_mask(b: FunctionBuilder, mask: Mask, lanes: int, stride: int) -> tuple[V, V] | None:
    """The mask for numbers of two parts side by side, in the order of memory, as two vectors."""
    known = mask_vector(b, mask, lanes)
    if known is None:
        return None
    order = range(lanes) if stride == 1 else range(lanes - 1, -1, -1)
    twice = [lane for lane in order for _ in range(2)]
    low, high = (b.shuffle(known, known, twice[k * lanes : (k + 1) * lanes]) for k in range(2))
    return low, high


# ------------------------------------------------------------------ vectors


def _from_memory(b: FunctionBuilder, dtype: DType, raw: V) -> V:
    return b.icmp("ne", raw, 0) if dtype == BOOL else raw


def _to_memory(b: FunctionBuilder, dtype: DType, x: V) -> V:
    return b.cast("zext", x, "i8") if dtype == BOOL else x


def _load_vector(b: FunctionBuilder, dtype: DType, pointer: V, lanes: int, mask: V | None) -> V:
    type_ = vector_type(memory_type(dtype), lanes)
    if mask is None:
        return b.load(type_, pointer, dtype.itemsize)
    return b.masked_load(type_, pointer, dtype.itemsize, mask)


def _reversed(b: FunctionBuilder, x: V, lanes: int) -> V:
    return b.shuffle(x, x, range(lanes - 1, -1, -1))


def _load_strided(b: FunctionBuilder, dtype: DType, pointer: V, stride: int, lanes: int, count: int) -> V:
    raw = const(vector_type(memory_type(dtype), lanes), 0)
    for lane in range(min(count, lanes)):
        item = b.load(memory_type(dtype), offset(b, pointer, dtype, lane * stride), dtype.itemsize)
        raw = b.insert(raw, item, lane)
    return raw


def _addresses(b: FunctionBuilder, dtype: DType, pointer: V, stride: int, lanes: int) -> V:
    steps = b.mul(lane_numbers(lanes), stride * dtype.itemsize)
    return b.gep("i8", pointer, steps, flags="")
