"""The native entry of a compiled signature: Python objects in, Python objects out, as LLVM text.

`ptr entry(ptr args, i64 count)` gets the positional arguments as CPython's vectorcall passes them. It returns

- a new reference: the result;
- null: an exception is set (memory ran out);
- an odd number `status << 1 | 1`: nothing was done that counts. Status 0: the arguments do not fit; k > 0: guard k was
  not as traced; negative: an error of the kernel.

Entries are compiled without optimisation: that takes a fifth of the time and runs as fast, for there is nothing in
them but loads, comparisons and calls. Objects are read through offsets that the runtime has checked (`Layout`), made
and counted through the C API only.
Nothing is allocated before all arguments were found to fit. Code that can run Python (allocation may start the garbage
collector) comes after the last use of a borrowed reference, except where the kernel runs without the interpreter's
lock: then what was borrowed from lists and dicts is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pullback.codegen.llvm import FunctionBuilder, Module, V, const
from pullback.codegen.object import ArgSpec, DictOf, Kind, Layout, ListOf, Node, ResultSpec, Signature, Static, TupleOf
from pullback.errors import CodegenError
from pullback.ir.types import DType, TensorType

STACK_ARENA_BYTES = 16 * 1024
"""Scratch below this lies on the stack; above, in a block kept between calls."""

LARGE_RESULT_BYTES = 1 << 20
"""Result arrays from this size on take their memory from blocks that earlier results gave back."""

_ATTRIBUTES = "noinline optnone nounwind"
_NULL = V("null", "ptr")
_ARRAY_BEHAVED = 0x0101
_EXACT_INTEGER = 1 << 53
_FLOAT_NAMES = {4: "float", 8: "double"}


def llvm_scalar(dtype: DType) -> str:
    """The LLVM type of one integer or one real number (not float16) of `dtype`."""
    return _FLOAT_NAMES[dtype.itemsize] if dtype.kind == "f" else f"i{8 * dtype.itemsize}"


def emit_entry(
    module: Module,
    name: str,
    kernel: str,
    signature: Signature,
    arena_bytes: int,
    layout: Layout,
    releases_gil: bool = False,
) -> tuple[str, ...]:
    """Add the entry `name`, which calls `kernel`, to the module that defines the kernel.

    Parameters
    ----------
    arena_bytes : scratch the kernel wants
    releases_gil : let other Python threads run while the kernel does; worth its 50 ns from some microseconds on

    Returns
    -------
    The external symbols the entry needs, by the names the runtime knows.

    Raises
    ------
    CodegenError : a Python number cannot stand for the dtype that its `ArgSpec` or `ResultSpec` names
    """
    emitter = _Entry(module, name, signature, layout)
    emitter.emit(kernel, arena_bytes, releases_gil)
    return tuple(emitter.symbols)


class _Entry:
    """Emits one entry; the blocks follow one another in the order of the work."""

    def __init__(self, module: Module, name: str, signature: Signature, layout: Layout) -> None:
        self.module = module
        self.signature = signature
        self.layout = layout
        self.symbols: dict[str, None] = {}
        self.key_slots = signature.key_slots()
        params = [("ptr", "args"), ("i64", "count")]
        self.b: FunctionBuilder = module.function(name, "ptr", params, attributes=_ATTRIBUTES)
        self.mutable: list[V] = []
        self.checks: dict[int, str] = {}

    def emit(self, kernel: str, arena_bytes: int, releases_gil: bool) -> None:
        b = self.b
        args, count = b.params
        self.require(b.icmp("eq", count, len(self.signature.args)))
        data: list[V] = []
        for position, node in enumerate(self.signature.args):
            data += self.unpack(node, self.field(args, 8 * position), in_mutable=False)
        results = self.signature.result_leaves()
        self.owned = b.alloca("ptr", len(results) + 1, align=16)
        for number in range(len(results) + 1):
            b.store(_NULL, self.address(self.owned, 8 * number), 8)
        targets = [self.target(number, spec) for number, spec in enumerate(results)]
        arena = self.take_arena(arena_bytes)
        status = self.run(kernel, [self.pointers(data), self.pointers(targets), arena], releases_gil)
        if arena_bytes >= STACK_ARENA_BYTES:
            self.api("void", "pb_give", [arena])
        self.leave_unless(b.icmp("eq", status, 0), "refused")
        b.ret(self.root(targets))
        self.endings(status)

    # --- small pieces -------------------------------------------------------------------------------------------

    def api(self, result: str, name: str, args: Sequence[V]) -> V:
        """Call an external function."""
        self.symbols[name] = None
        self.module.declare(name, result, [arg.type for arg in args])
        return self.b.call(result, name, args)

    def datum(self, name: str) -> V:
        """The address of an external object."""
        self.symbols[name] = None
        return self.module.external(name)

    def slot_object(self, slot: int) -> V:
        return self.datum(f"pb_object_{slot}")

    def address(self, base: V, offset: int) -> V:
        return self.b.gep("i8", base, offset) if offset else base

    def field(self, base: V, offset: int, type_: str = "ptr", align: int = 8) -> V:
        return self.b.load(type_, self.address(base, offset), align)

    def leave_unless(self, condition: V, label: str) -> None:
        b = self.b
        following = b.new_label("go")
        b.condbr(condition, following, label)
        b.label(following)

    def require(self, condition: V) -> None:
        """Go on if the argument fits."""
        self.leave_unless(condition, "misfit")

    def checked(self, reference: V) -> V:
        """A new reference that must not be null."""
        self.leave_unless(self.b.icmp("ne", reference, _NULL), "failed")
        return reference

    def pointers(self, items: list[V]) -> V:
        array = self.b.alloca("ptr", max(1, len(items)), align=16)
        for number, item in enumerate(items):
            self.b.store(item, self.address(array, 8 * number), 8)
        return array

    def is_type(self, instance: V, type_name: str) -> V:
        return self.b.icmp("eq", self.field(instance, self.layout.object_type), self.datum(type_name))

    # --- arguments ----------------------------------------------------------------------------------------------

    def unpack(self, node: Node, given: V, in_mutable: bool) -> Iterator[V]:
        """Check `given` against `node`; the data pointers of its leaves."""
        match node:
            case ArgSpec():
                if in_mutable:
                    self.mutable.append(given)
                yield self.leaf(node, given)
            case Static(slot):
                self.require(self.b.icmp("eq", given, self.slot_object(slot)))
            case TupleOf(items, cls):
                expected = self.slot_object(cls) if cls is not None else self.datum("PyTuple_Type")
                self.require(self.b.icmp("eq", self.field(given, self.layout.object_type), expected))
                self.require_size(given, len(items))
                for number, item in enumerate(items):
                    child = self.field(given, self.layout.tuple_items + 8 * number)
                    yield from self.unpack(item, child, in_mutable)
            case ListOf(items):
                self.require(self.is_type(given, "PyList_Type"))
                self.require_size(given, len(items))
                base = self.field(given, self.layout.list_items)
                for number, item in enumerate(items):
                    yield from self.unpack(item, self.field(base, 8 * number), True)
            case DictOf():
                yield from self.unpack_dict(node, given)
            case ResultSpec():
                raise CodegenError(f"{node} describes a result and stands among the arguments")

    def require_size(self, container: V, size: int) -> None:
        self.require(self.b.icmp("eq", self.field(container, self.layout.container_size, "i64"), size))

    def unpack_dict(self, node: DictOf, given: V) -> Iterator[V]:
        b = self.b
        self.require(self.is_type(given, "PyDict_Type"))
        self.require_size(given, len(node.keys))
        position, key, value = b.alloca("i64", align=8), b.alloca("ptr", align=8), b.alloca("ptr", align=8)
        b.store(const("i64", 0), position, 8)
        children = []
        for expected in node.keys:
            found = self.api("i32", "PyDict_Next", [given, position, key, value])
            self.require(b.icmp("ne", found, 0))
            self.require_key(b.load("ptr", key, 8), self.slot_object(self.key_slots[expected]))
            children.append(b.load("ptr", value, 8))
        for item, child in zip(node.items, children, strict=True):
            yield from self.unpack(item, child, True)

    def require_key(self, key: V, expected: V) -> None:
        """Mostly the same interned string; else an equal one. Only exact strings are compared, so no Python runs."""
        b = self.b
        same, other, text = b.new_label("key"), b.new_label("other"), b.new_label("text")
        b.condbr(b.icmp("eq", key, expected), same, other)
        b.label(other)
        b.condbr(self.is_type(key, "PyUnicode_Type"), text, "misfit")
        b.label(text)
        b.condbr(b.icmp("eq", self.api("i32", "PyUnicode_Compare", [key, expected]), 0), same, "misfit")
        b.label(same)

    def leaf(self, spec: ArgSpec, given: V) -> V:
        """The address of the number or array, whichever of the accepted kinds it is."""
        b = self.b
        readers: dict[Kind, Callable[[TensorType, V, str], V]] = {
            Kind.FLOAT: self.read_float,
            Kind.INT: self.read_int,
            Kind.BOOL: self.read_bool,
            Kind.COMPLEX: self.read_complex,
            Kind.SCALAR: self.read_scalar,
            Kind.ARRAY: self.read_array,
        }
        joined = b.new_label("leaf")
        arrivals: list[tuple[V, str]] = []
        for number, kind in enumerate(spec.kinds):
            following = b.new_label("kind") if number + 1 < len(spec.kinds) else "misfit"
            pointer = readers[kind](spec.type, given, following)
            arrivals.append((pointer, b.current))
            b.br(joined)
            if following != "misfit":
                b.label(following)
        b.label(joined)
        return b.phi("ptr", arrivals).value

    def of_type(self, given: V, type_name: str, otherwise: str) -> None:
        self.leave_unless(self.is_type(given, type_name), otherwise)

    def read_float(self, type_: TensorType, given: V, otherwise: str) -> V:
        require_number(type_, Kind.FLOAT, "f")
        self.of_type(given, "PyFloat_Type", otherwise)
        place = self.address(given, self.layout.number_value)
        if type_.dtype.itemsize == 8:
            return place
        return self.converted(self.b.load("double", place, 8), type_, "fptrunc")

    def converted(self, number: V, type_: TensorType, cast: str) -> V:
        """`number` in memory as the dtype; the same LLVM type needs no cast."""
        wanted = llvm_scalar(type_.dtype)
        slot = self.b.alloca(wanted, align=16)
        value = number if number.type == wanted else self.b.cast(cast, number, wanted)
        self.b.store(value, slot, type_.dtype.itemsize)
        return slot

    def read_int(self, type_: TensorType, given: V, otherwise: str) -> V:
        require_number(type_, Kind.INT, "iuf")
        b = self.b
        self.of_type(given, "PyLong_Type", otherwise)
        overflow = b.alloca("i32", align=8)
        number = self.api("i64", "PyLong_AsLongLongAndOverflow", [given, overflow])
        self.leave_unless(b.icmp("eq", b.load("i32", overflow, 4), 0), otherwise)
        for predicate, bound in integer_bounds(type_.dtype):
            self.leave_unless(b.icmp(predicate, number, bound), otherwise)
        if type_.dtype.kind != "f":
            return self.converted(number, type_, "trunc")
        return self.converted(b.cast("sitofp", number, "double"), type_, "fptrunc")

    def read_bool(self, type_: TensorType, given: V, otherwise: str) -> V:
        require_number(type_, Kind.BOOL, "b")
        b = self.b
        truth = b.icmp("eq", given, self.datum("_Py_TrueStruct"))
        falsehood = b.icmp("eq", given, self.datum("_Py_FalseStruct"))
        self.leave_unless(b.or_(truth, falsehood), otherwise)
        slot = b.alloca("i8", align=16)
        b.store(b.cast("zext", truth, "i8"), slot, 1)
        return slot

    def read_complex(self, type_: TensorType, given: V, otherwise: str) -> V:
        require_number(type_, Kind.COMPLEX, "c")
        b = self.b
        self.of_type(given, "PyComplex_Type", otherwise)
        place = self.address(given, self.layout.number_value)
        if type_.dtype.itemsize == 16:
            return place
        slot = b.alloca("float", 2, align=16)
        for part in (0, 1):
            value = b.cast("fptrunc", self.field(place, 8 * part, "double"), "float")
            b.store(value, self.address(slot, 4 * part), 4)
        return slot

    def read_scalar(self, type_: TensorType, given: V, otherwise: str) -> V:
        if type_.shape:
            raise CodegenError(f"a NumPy scalar cannot stand for {type_}")
        self.of_type(given, f"numpy_scalar_{type_.dtype.name}", otherwise)
        return self.address(given, self.layout.number_value)

    def read_array(self, type_: TensorType, given: V, otherwise: str) -> V:
        check = self.array_check(type_.ndim)
        name = type_.dtype.name
        args = [given, self.datum("numpy_ndarray"), self.datum(f"numpy_descr_{name}"), const("i32", type_.dtype.num)]
        pointer = self.b.call("ptr", check, args + [const("i64", extent) for extent in type_.shape])
        self.leave_unless(self.b.icmp("ne", pointer, _NULL), otherwise)
        return pointer

    def array_check(self, ndim: int) -> str:
        """Name of the function that gives the data of an array if it is as wanted, else null."""
        if ndim not in self.checks:
            self.checks[ndim] = name = f"{self.b.name}.array{ndim}"
            params = [("ptr", "given"), ("ptr", "cls"), ("ptr", "descr"), ("i32", "num")]
            params += [("i64", f"d{axis}") for axis in range(ndim)]
            outer, self.b = self.b, self.module.function(name, "ptr", params, "internal", _ATTRIBUTES)
            self.emit_array_check()
            self.b = outer
        return self.checks[ndim]

    def emit_array_check(self) -> None:
        b, layout = self.b, self.layout
        given, cls, descr, num, *extents = b.params
        self.require(b.icmp("eq", self.field(given, layout.object_type), cls))
        self.require(b.icmp("eq", self.field(given, layout.array_ndim, "i32", 4), len(extents)))
        flags = b.and_(self.field(given, layout.array_flags, "i32", 4), _ARRAY_BEHAVED)
        fits = b.icmp("eq", flags, _ARRAY_BEHAVED)
        if extents:
            found = self.field(given, layout.array_dims)
            for axis, extent in enumerate(extents):
                fits = b.and_(fits, b.icmp("eq", self.field(found, 8 * axis, "i64"), extent))
        self.require(fits)
        own = self.field(given, layout.array_descr)
        other = b.new_label("descr")
        b.condbr(b.icmp("eq", own, descr), "fits", other)
        b.label(other)  # unpickled arrays have dtype objects of their own
        native = b.icmp("ne", self.field(own, layout.descr_byteorder, "i8", 1), ord(">"))
        same = b.icmp("eq", self.field(own, layout.descr_type_num, "i32", 4), num)
        b.condbr(b.and_(native, same), "fits", "misfit")
        b.label("fits")
        b.ret(self.field(given, layout.array_data))
        b.label("misfit")
        b.ret(_NULL)

    # --- the call -----------------------------------------------------------------------------------------------

    def target(self, number: int, spec: ResultSpec) -> V:
        """Where the kernel writes a result: a new array's data, or the stack."""
        type_ = spec.type
        if spec.kind != Kind.ARRAY:
            if type_.shape:
                raise CodegenError(f"{type_} cannot be returned as a {spec.kind}")
            return self.b.alloca("i8", type_.dtype.itemsize, align=16)
        array = self.checked(self.new_array(type_))
        self.b.store(array, self.address(self.owned, 8 * number), 8)
        return self.field(array, self.layout.array_data)

    def new_array(self, type_: TensorType) -> V:
        descr = self.datum(f"numpy_descr_{type_.dtype.name}")
        extents = b"".join(extent.to_bytes(8, "little") for extent in type_.shape)
        dims = self.module.constant(extents, 8) if extents else _NULL
        if type_.nbytes >= LARGE_RESULT_BYTES:
            return self.api("ptr", "pb_new_large_array", [descr, const("i32", type_.ndim), dims])
        self.api("void", "Py_IncRef", [descr])
        cls, ndim = self.datum("numpy_ndarray"), const("i32", type_.ndim)
        args = [cls, descr, ndim, dims, _NULL, _NULL, const("i32", 0), _NULL]
        return self.api("ptr", "numpy_new_from_descr", args)

    def take_arena(self, size: int) -> V:
        if size == 0:
            return _NULL
        if size < STACK_ARENA_BYTES:
            return self.b.alloca("i8", size, align=64)
        b = self.b
        arena = self.api("ptr", "pb_take", [const("i64", size)])
        there, gone = b.new_label("arena"), b.new_label("gone")
        b.condbr(b.icmp("ne", arena, _NULL), there, gone)
        b.label(gone)
        self.api("ptr", "PyErr_NoMemory", [])
        b.br("failed")
        b.label(there)
        return arena

    def run(self, kernel: str, args: list[V], releases_gil: bool) -> V:
        if not releases_gil:
            return self.b.call("i64", kernel, args)
        for held in self.mutable:
            self.api("void", "Py_IncRef", [held])
        state = self.api("ptr", "PyEval_SaveThread", [])
        status = self.b.call("i64", kernel, args)
        self.api("void", "PyEval_RestoreThread", [state])
        for held in self.mutable:
            self.api("void", "Py_DecRef", [held])
        return status

    def endings(self, status: V) -> None:
        b = self.b
        count = const("i64", len(self.signature.result_leaves()) + 1)
        b.label("refused")
        self.api("void", "pb_drop", [self.owned, count])
        b.ret(b.cast("inttoptr", b.or_(b.shl(status, 1), 1), "ptr"))
        b.label("failed")
        self.api("void", "pb_drop", [self.owned, count])
        b.ret(_NULL)
        b.label("misfit")
        b.ret(const("ptr", 1))

    # --- results ------------------------------------------------------------------------------------------------

    def root(self, targets: list[V]) -> V:
        """The object to return. `owned` holds what must be dropped if a later allocation fails: arrays that are in no
        container yet, and the outermost container."""
        numbered = iter(enumerate(targets))
        node = self.signature.result
        if not isinstance(node, TupleOf | ListOf | DictOf):
            return self.leaf_result(node, numbered)
        root = self.new_container(node)
        self.b.store(root, self.address(self.owned, 8 * len(targets)), 8)
        self.fill(node, root, numbered)
        return root

    def fill(self, node: TupleOf | ListOf | DictOf, container: V, numbered: Iterator[tuple[int, V]]) -> None:
        """Containers are put into their parent before they are filled, so the outermost one owns everything."""
        items = self.field(container, self.layout.list_items) if isinstance(node, ListOf) else container
        first = self.layout.tuple_items if isinstance(node, TupleOf) else 0
        for number, item in enumerate(node.items):
            nested = item if isinstance(item, TupleOf | ListOf | DictOf) else None
            child = self.new_container(nested) if nested else self.leaf_result(item, numbered)
            if isinstance(node, DictOf):
                key = self.slot_object(self.key_slots[node.keys[number]])
                outcome = self.api("i32", "PyDict_SetItem", [container, key, child])
                self.api("void", "Py_DecRef", [child])
                self.leave_unless(self.b.icmp("eq", outcome, 0), "failed")
            else:
                self.b.store(child, self.address(items, first + 8 * number), 8)
            if nested:
                self.fill(nested, child, numbered)

    def new_container(self, node: TupleOf | ListOf | DictOf) -> V:
        match node:
            case TupleOf(items, None):
                return self.checked(self.api("ptr", "PyTuple_New", [const("i64", len(items))]))
            case TupleOf(items, cls) if cls is not None:
                return self.new_namedtuple(cls, len(items))
            case ListOf(items):
                return self.checked(self.api("ptr", "PyList_New", [const("i64", len(items))]))
            case _:
                return self.checked(self.api("ptr", "PyDict_New", []))

    def new_namedtuple(self, cls: int, size: int) -> V:
        args = [self.slot_object(cls), const("i64", size)]
        made = self.checked(self.api("ptr", "PyType_GenericAlloc", args))
        if self.layout.tuple_items > self.layout.container_size + 8:  # from 3.14 on tuples remember their hash
            self.b.store(const("i64", -1), self.address(made, self.layout.container_size + 8), 8)
        return made

    def leaf_result(self, node: Node, numbered: Iterator[tuple[int, V]]) -> V:
        if isinstance(node, Static):
            known = self.slot_object(node.slot)
            self.api("void", "Py_IncRef", [known])
            return known
        if not isinstance(node, ResultSpec):
            raise CodegenError(f"{node} describes an argument and stands in the result")
        number, target = next(numbered)
        if node.kind == Kind.ARRAY:
            place = self.address(self.owned, 8 * number)
            array = self.b.load("ptr", place, 8)
            self.b.store(_NULL, place, 8)
            return array
        return self.checked(self.number_result(node, target))

    def number_result(self, spec: ResultSpec, place: V) -> V:
        b, dtype = self.b, spec.type.dtype
        match spec.kind:
            case Kind.SCALAR if dtype.kind == "b":
                truth = b.icmp("ne", b.load("i8", place, 1), 0)
                known = b.select(truth, self.datum("numpy_true"), self.datum("numpy_false"))
                self.api("void", "Py_IncRef", [known])
                return known
            case Kind.SCALAR:
                return self.scalar_result(dtype, place)
            case Kind.FLOAT:
                require_number(spec.type, Kind.FLOAT, "f")
                return self.api("ptr", "PyFloat_FromDouble", [self.as_double(dtype, place)])
            case Kind.INT:
                require_number(spec.type, Kind.INT, "iu")
                signed = dtype.kind == "i"
                number = b.load(llvm_scalar(dtype), place, dtype.itemsize)
                wide = number if dtype.itemsize == 8 else b.cast("sext" if signed else "zext", number, "i64")
                return self.api("ptr", "PyLong_FromLongLong" if signed else "PyLong_FromUnsignedLongLong", [wide])
            case Kind.BOOL:
                require_number(spec.type, Kind.BOOL, "b")
                return self.api("ptr", "PyBool_FromLong", [b.cast("zext", b.load("i8", place, 1), "i64")])
            case _:
                require_number(spec.type, Kind.COMPLEX, "c")
                half = dtype.itemsize // 2
                parts = [self.float_at(self.address(place, half * part), half) for part in (0, 1)]
                return self.api("ptr", "PyComplex_FromDoubles", parts)

    def as_double(self, dtype: DType, place: V) -> V:
        return self.float_at(place, dtype.itemsize)

    def float_at(self, place: V, size: int) -> V:
        number = self.b.load(_FLOAT_NAMES[size], place, size)
        return number if size == 8 else self.b.cast("fpext", number, "double")

    def scalar_result(self, dtype: DType, place: V) -> V:
        b = self.b
        cls = self.datum(f"numpy_scalar_{dtype.name}")
        scalar = self.checked(self.api("ptr", "numpy_new_scalar", [cls, const("i64", 0)]))
        bits = f"i{8 * dtype.itemsize}"
        align = min(8, dtype.itemsize)
        b.store(b.load(bits, place, align), self.address(scalar, self.layout.number_value), align)
        return scalar


def require_number(type_: TensorType, kind: Kind, dtype_kinds: str) -> None:
    """Raise unless a Python number of `kind` can stand for `type_`. float16 cannot: conversion needs library calls."""
    if type_.shape or type_.dtype.kind not in dtype_kinds or type_.dtype == np.float16:
        raise CodegenError(f"a Python {kind} cannot stand for {type_}")


def integer_bounds(dtype: DType) -> tuple[tuple[str, int], ...]:
    """Comparisons that a 64-bit integer must pass to be exact as `dtype` (floats: as the double it is rounded from)."""
    if dtype.kind == "f":
        return ("sle", _EXACT_INTEGER), ("sge", -_EXACT_INTEGER)
    bits = 8 * dtype.itemsize
    if dtype.kind == "u":
        return (("sge", 0),) if bits == 64 else (("sge", 0), ("sle", (1 << bits) - 1))
    return () if bits == 64 else (("sge", -(1 << bits - 1)), ("sle", (1 << bits - 1) - 1))
