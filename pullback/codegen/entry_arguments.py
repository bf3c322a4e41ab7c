"""Reading the arguments in a native entry: checks of each object, and where its number or its data is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pullback.codegen.llvm import V, const
from pullback.codegen.object import ArgSpec, DictOf, Kind, ListOf, Node, ResultSpec, Static, TupleOf
from pullback.codegen.pyobject import NULL, UNOPTIMISED, ObjectCode, llvm_scalar, require_number
from pullback.codegen.strided import TAG
from pullback.codegen.strided_check import OrderMode
from pullback.errors import CodegenError
from pullback.ir.types import DType, TensorType

_ARRAY_BEHAVED = 0x0101  # C-contiguous and aligned
_EXACT_INTEGER = 1 << 53


class ArgumentReader(ObjectCode):
    """Emits the unpacking of containers and the checks of leaves.

    Attributes
    ----------
    mutable : objects found in lists and dicts, which another thread or a finaliser could take out of them
    tagged : addresses of data that may be those of arrays to be copied
    units : for each leaf the bytes of all its elements and of one number
    """

    def __init__(self, code: ObjectCode, key_slots: dict[str, int]) -> None:
        super().__init__(code.module, code.b, code.layout, code.symbols)
        self.key_slots = key_slots
        self.mutable: list[V] = []
        self.tagged: list[V] = []
        self.units: list[tuple[int, int]] = []
        self.checks: dict[int, str] = {}

    def require_unchanged(self) -> None:
        """Go on if the words of the table `pb_watch` are as they were."""
        same = self.api("i32", "pb_unchanged", [self.datum("pb_watch")])
        self.require(self.b.icmp("ne", same, 0))

    def require_names(self, names: V, keywords: tuple[str, ...]) -> None:
        """Go on if exactly these arguments are passed by keyword, in this order."""
        b = self.b
        self.require(b.icmp("ne" if keywords else "eq", names, NULL))
        if keywords:
            self.require_size(names, len(keywords))
        for number, keyword in enumerate(keywords):
            given = self.field(names, self.layout.tuple_items + 8 * number)
            self.require_key(given, self.slot_object(self.key_slots[keyword]))

    def unpack(self, node: Node, given: V, in_mutable: bool) -> Iterator[V]:
        """Check `given` against `node`; the data pointers of its leaves."""
        match node:
            case ArgSpec():
                if in_mutable:
                    self.mutable.append(given)
                yield self.leaf(node, given, order_mode(node))
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

    def captured(self, type_: TensorType, given: V) -> V:
        """The data of an array that is no argument; it may be laid out in any way."""
        return self.leaf(ArgSpec(type_, (Kind.ARRAY, Kind.STRIDED)), given, OrderMode.ANY)

    def leaf(self, spec: ArgSpec, given: V, mode: OrderMode) -> V:
        """The address of the number or array, whichever of the accepted kinds it is; of an array that must be copied
        first, the address of the object with the bit `TAG`."""
        b = self.b
        readers: dict[Kind, Callable[[TensorType, V, str], V]] = {
            Kind.FLOAT: self.read_float,
            Kind.INT: self.read_int,
            Kind.BOOL: self.read_bool,
            Kind.COMPLEX: self.read_complex,
            Kind.SCALAR: self.read_scalar,
            Kind.ARRAY: self.read_array,
            Kind.STRIDED: partial(self.read_strided, mode, spec.order or ()),
        }
        self.units.append((spec.type.nbytes, number_bytes(spec.type.dtype)))
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
        pointer = b.phi("ptr", arrivals).value
        if Kind.STRIDED in spec.kinds:
            self.tagged.append(pointer)
        return pointer

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
        self.leave_unless(self.b.icmp("ne", pointer, NULL), otherwise)
        return pointer

    def read_strided(self, mode: OrderMode, order: tuple[int, ...], type_: TensorType, given: V, otherwise: str) -> V:
        b, ndim = self.b, type_.ndim
        shape = [self.module.words(type_.shape) if ndim else NULL, const("i32", mode)]
        shape.append(self.module.words(order) if order else NULL)
        kind = [given, self.datum("numpy_ndarray"), const("i32", type_.dtype.num), const("i32", ndim)]
        fits = self.api("i32", "pb_strided_fits", kind + shape)
        self.leave_unless(b.icmp("ne", fits, 0), otherwise)
        return b.cast("inttoptr", b.or_(b.cast("ptrtoint", given, "i64"), TAG), "ptr")

    def array_check(self, ndim: int) -> str:
        """Name of the function that gives the data of an array if it is as wanted, else null."""
        if ndim not in self.checks:
            self.checks[ndim] = name = f"{self.b.name}.array{ndim}"
            params = [("ptr", "given"), ("ptr", "cls"), ("ptr", "descr"), ("i32", "num")]
            params += [("i64", f"d{axis}") for axis in range(ndim)]
            function = self.module.function(name, "ptr", params, "internal", UNOPTIMISED)
            _emit_array_check(ObjectCode(self.module, function, self.layout, self.symbols))
        return self.checks[ndim]


def _emit_array_check(code: ObjectCode) -> None:
    b, layout = code.b, code.layout
    given, cls, descr, num, *extents = b.params
    code.require(b.icmp("eq", code.field(given, layout.object_type), cls))
    code.require(b.icmp("eq", code.field(given, layout.array_ndim, "i32", 4), len(extents)))
    flags = b.and_(code.field(given, layout.array_flags, "i32", 4), _ARRAY_BEHAVED)
    fits = b.icmp("eq", flags, _ARRAY_BEHAVED)
    if extents:
        found = code.field(given, layout.array_dims)
        for axis, extent in enumerate(extents):
            fits = b.and_(fits, b.icmp("eq", code.field(found, 8 * axis, "i64"), extent))
    code.require(fits)
    own = code.field(given, layout.array_descr)
    other = b.new_label("descr")
    b.condbr(b.icmp("eq", own, descr), "fits", other)
    b.label(other)  # unpickled arrays have dtype objects of their own
    native = b.icmp("ne", code.field(own, layout.descr_byteorder, "i8", 1), ord(">"))
    same = b.icmp("eq", code.field(own, layout.descr_type_num, "i32", 4), num)
    b.condbr(b.and_(native, same), "fits", "misfit")
    b.label("fits")
    b.ret(code.field(given, layout.array_data))
    b.label("misfit")
    b.ret(NULL)


def order_mode(spec: ArgSpec) -> OrderMode:
    return OrderMode.C if spec.order is None else OrderMode.GIVEN


def number_bytes(dtype: DType) -> int:
    """Bytes of one real number."""
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def integer_bounds(dtype: DType) -> tuple[tuple[str, int], ...]:
    """Comparisons that a 64-bit integer must pass to be exact as `dtype` (floats: as the double it is rounded from)."""
    if dtype.kind == "f":
        return ("sle", _EXACT_INTEGER), ("sge", -_EXACT_INTEGER)
    bits = 8 * dtype.itemsize
    if dtype.kind == "u":
        return (("sge", 0),) if bits == 64 else (("sge", 0), ("sle", (1 << bits) - 1))
    return () if bits == 64 else (("sge", -(1 << bits - 1)), ("sle", (1 << bits - 1) - 1))
