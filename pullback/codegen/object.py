"""What code generation hands to the runtime: object code and the description of how to call it.

Everything here is data, compared by content, free of addresses: it can be written to disk and read by another
process. Python objects that a signature mentions (static arguments, dictionary keys, namedtuple classes) are numbered
slots; the objects themselves are given when the code is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias

from pullback.ir.types import TensorType
from pullback.record import record


class Kind(StrEnum):
    """How one number or array appears in Python.

    As an argument, `FLOAT`, `INT`, `BOOL` and `COMPLEX` are exactly those Python types (a bool is no int), `SCALAR` is
    the NumPy scalar type of the dtype, `ARRAY` an exact `numpy.ndarray`, C-contiguous, aligned, native byte order;
    `STRIDED` is one of any strides, alignment and byte order whose axes lie in memory in the order of the `ArgSpec`.
    As a result they are what is returned.
    """

    FLOAT = "float"
    INT = "int"
    BOOL = "bool"
    COMPLEX = "complex"
    SCALAR = "scalar"
    ARRAY = "array"
    STRIDED = "strided"


@record(frozen=True, slots=True)
class ArgSpec:
    """An argument of the kernel.

    Attributes
    ----------
    type : what the kernel reads; a Python number is converted to that dtype, or does not fit if it would lose digits
        as an integer
    kinds : what may be passed for it, the likeliest first
    order : of the axes of a strided array, from the slowest to the fastest; None is C order
    """

    type: TensorType
    kinds: tuple[Kind, ...] = (Kind.ARRAY,)
    order: tuple[int, ...] | None = None


@record(frozen=True, slots=True)
class ResultSpec:
    """A result of the kernel, and as what it is returned."""

    type: TensorType
    kind: Kind = Kind.ARRAY


@record(frozen=True, slots=True)
class Static:
    """The object in slot `slot`: as an argument it must be that very object, as a result it is returned."""

    slot: int


@record(frozen=True, slots=True)
class TupleOf:
    """An exact tuple, or an instance of the namedtuple class in slot `cls`."""

    items: tuple[Node, ...]
    cls: int | None = None


@record(frozen=True, slots=True)
class ListOf:
    """An exact list."""

    items: tuple[Node, ...]


@record(frozen=True, slots=True)
class DictOf:
    """An exact dict with these keys in this order."""

    keys: tuple[str, ...]
    items: tuple[Node, ...]


Node: TypeAlias = ArgSpec | ResultSpec | Static | TupleOf | ListOf | DictOf


def leaves(node: Node) -> Iterator[ArgSpec | ResultSpec]:
    """The arguments or results of the kernel below `node`, in the kernel's order."""
    if isinstance(node, ArgSpec | ResultSpec):
        yield node
    elif not isinstance(node, Static):
        for item in node.items:
            yield from leaves(item)


def _keys(node: Node) -> Iterator[str]:
    if isinstance(node, DictOf):
        yield from node.keys
    if isinstance(node, TupleOf | ListOf | DictOf):
        for item in node.items:
            yield from _keys(item)


@record(frozen=True, slots=True)
class Captured:
    """The array in slot `slot`, which the function found outside itself: read anew at each call, and no argument of it.

    Its elements may change. If it gets another shape, the call does not fit.
    """

    slot: int
    type: TensorType


@record(frozen=True, slots=True)
class Signature:
    """Arguments and the result of a compiled function.

    Attributes
    ----------
    args : one node for each argument
    result : what is returned
    statics : number of slots for the driver's own objects; the keys of dicts follow behind them
    keywords : names of the last of `args`, which are passed by keyword, in this order
    captured : arrays that are arguments of the kernel, behind the others
    watched : is the table `pb_watch` compared before anything else (`pullback.runtime.watch`)
    """

    args: tuple[Node, ...]
    result: Node
    statics: int = 0
    keywords: tuple[str, ...] = ()
    captured: tuple[Captured, ...] = ()
    watched: bool = False

    def arg_leaves(self) -> tuple[ArgSpec, ...]:
        """The kernel's arguments in order."""
        given = tuple(leaf for node in self.args for leaf in leaves(node) if isinstance(leaf, ArgSpec))
        return given + tuple(ArgSpec(captured.type) for captured in self.captured)

    def result_leaves(self) -> tuple[ResultSpec, ...]:
        """The kernel's results in order."""
        return tuple(leaf for leaf in leaves(self.result) if isinstance(leaf, ResultSpec))

    def key_slots(self) -> dict[str, int]:
        """The slot of each keyword and dictionary key."""
        keys = dict.fromkeys(self.keywords)
        keys.update(dict.fromkeys(key for node in (*self.args, self.result) for key in _keys(node)))
        return {key: self.statics + number for number, key in enumerate(keys)}

    def slot_count(self) -> int:
        return self.statics + len(self.key_slots())


@record(frozen=True, slots=True)
class Layout:
    """Where the running interpreter and its NumPy keep what native code reads; found out and checked by the runtime.

    Attributes
    ----------
    abi : names interpreter, NumPy and platform; part of the key of everything that is stored
    function_fields : offset in a native function object of its call pointer; the chain of compiled code is behind it
    tuple_items, bytes_data : offsets that differ between interpreter versions
    """

    abi: str
    function_fields: int
    tuple_items: int
    bytes_data: int
    object_type: int = 8
    container_size: int = 16
    list_items: int = 24
    number_value: int = 16
    array_data: int = 16
    array_ndim: int = 24
    array_dims: int = 32
    array_descr: int = 56
    array_flags: int = 64
    descr_byteorder: int = 26
    descr_type_num: int = 28


@record(frozen=True, slots=True)
class CompiledObject:
    """One compiled signature.

    Attributes
    ----------
    code : object code
    kernel : exported name of `i64 kernel(ptr args, ptr results, ptr arena)`
    entry : exported name of the native entry `ptr entry(ptr args, i64 count, ptr names)`; empty where there is none
    signature : how it is called
    arena_bytes : scratch the kernel needs, aligned to 64
    symbols : externals to bind when it is loaded
    releases_gil : does the entry let other threads run meanwhile
    """

    code: bytes = field(repr=False)
    kernel: str
    entry: str
    signature: Signature
    arena_bytes: int = 0
    symbols: tuple[str, ...] = ()
    releases_gil: bool = False


@record(frozen=True, slots=True)
class SupportObject:
    """A support part as object code; see `pullback.codegen.support`."""

    code: bytes
    exports: tuple[str, ...]
    symbols: tuple[str, ...]
