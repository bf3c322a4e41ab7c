"""Arguments and results in Python: the same reading of a signature as the native entry has, for the ctypes path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.codegen.object import ArgSpec, DictOf, Kind, ListOf, Node, ResultSpec, Signature, Static, TupleOf
from pullback.ir.index import memory_order
from pullback.ir.types import TensorType

Array: TypeAlias = np.ndarray[Any, Any]

_PYTHON_TYPES = {Kind.FLOAT: float, Kind.INT: int, Kind.BOOL: bool, Kind.COMPLEX: complex}
_EXACT_INTEGER = 1 << 53


class MisfitError(Exception):
    """The arguments are not what the signature says."""


def read_arguments(
    signature: Signature, objects: Sequence[object], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Array]:
    """The kernel's arguments as arrays that it may read.

    Raises
    ------
    MisfitError : the native entry would refuse these arguments
    """
    if len(args) + len(kwargs) != len(signature.args) or tuple(kwargs) != signature.keywords:
        raise MisfitError
    given = zip(signature.args, (*args, *kwargs.values()), strict=True)
    arrays = [array for node, value in given for array in _read(node, objects, value)]
    return arrays + [_read_captured(c.type, objects[c.slot]) for c in signature.captured]


def _read_captured(type_: TensorType, given: Any) -> Array:
    """The array, however it is laid out."""
    if not _is_of(given, type_):
        raise MisfitError
    return canonical(given)


def _read(node: Node, objects: Sequence[object], given: Any) -> Iterator[Array]:
    match node:
        case ArgSpec():
            yield _read_leaf(node, given)
        case Static(slot):
            if given is not objects[slot]:
                raise MisfitError
        case TupleOf(items, cls):
            yield from _read_items(items, objects, given, tuple if cls is None else objects[cls])
        case ListOf(items):
            yield from _read_items(items, objects, given, list)
        case DictOf(keys, items):
            if type(given) is not dict or any(type(key) is not str for key in given) or tuple(given) != keys:
                raise MisfitError
            yield from _read_items(items, objects, tuple(given.values()), tuple)
        case ResultSpec():
            raise MisfitError


def _read_items(items: tuple[Node, ...], objects: Sequence[object], given: Any, cls: object) -> Iterator[Array]:
    if type(given) is not cls or len(given) != len(items):
        raise MisfitError
    for item, child in zip(items, given, strict=True):
        yield from _read(item, objects, child)


def _read_leaf(spec: ArgSpec, given: Any) -> Array:
    for kind in spec.kinds:
        found = _read_strided(spec, given) if kind == Kind.STRIDED else _read_kind(kind, spec.type, given)
        if found is not None:
            return found
    raise MisfitError


def _read_kind(kind: Kind, type_: TensorType, given: Any) -> Array | None:
    dtype = type_.dtype
    match kind:
        case Kind.ARRAY:
            return given if _is_of(given, type_) and _behaves(given) else None
        case Kind.SCALAR:
            return np.array(given) if type(given) is dtype.type else None
        case Kind.INT:
            return _read_integer(type_, given) if type(given) is int else None
        case _:
            with np.errstate(over="ignore"):
                return np.array(given, dtype) if type(given) is _PYTHON_TYPES[kind] else None


def _read_strided(spec: ArgSpec, given: Any) -> Array | None:
    if not _is_of(given, spec.type) or memory_order(given.shape, given.strides, given.flags.c_contiguous) != spec.order:
        return None
    return canonical(given)


def _is_of(given: Any, type_: TensorType) -> bool:
    """Is it an array of that shape and dtype, in whatever order its bytes are."""
    return type(given) is np.ndarray and given.dtype.num == type_.dtype.num and given.shape == type_.shape


def _behaves(array: Array) -> bool:
    return array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned


def _read_integer(type_: TensorType, number: int) -> Array | None:
    dtype = type_.dtype
    if dtype.kind == "f":
        if abs(number) > _EXACT_INTEGER:
            return None
        with np.errstate(over="ignore"):
            return np.array(float(number), dtype)
    bounds = np.iinfo(dtype)
    largest = min(int(bounds.max), (1 << 63) - 1)  # the entry reads signed 64-bit integers
    return np.array(number, dtype) if int(bounds.min) <= number <= largest else None


def canonical(array: Array) -> Array:
    """`array` as entries take it: native byte order, C-contiguous, aligned; itself if it is so already."""
    if array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True, subok=False)


def build_result(node: Node, objects: Sequence[object], arrays: Iterator[Array]) -> Any:
    """What the native entry would return for these results of the kernel."""
    match node:
        case ResultSpec(_, kind):
            return _number(kind, next(arrays))
        case Static(slot):
            return objects[slot]
        case ListOf(items):
            return [build_result(item, objects, arrays) for item in items]
        case DictOf(keys, items):
            return {key: build_result(item, objects, arrays) for key, item in zip(keys, items, strict=True)}
        case TupleOf(items, cls):
            parts = [build_result(item, objects, arrays) for item in items]
            factory: Any = tuple if cls is None else objects[cls]
            return tuple.__new__(factory, parts)
        case _:
            raise MisfitError


def _number(kind: Kind, array: Array) -> Any:
    if kind == Kind.ARRAY:
        return array
    return array[()] if kind == Kind.SCALAR else _PYTHON_TYPES[kind](array[()])
