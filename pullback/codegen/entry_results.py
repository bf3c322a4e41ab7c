"""Making the results in a native entry: arrays before the kernel runs, numbers and containers after it."""

from __future__ import annotations

from collections.abc import Iterator

from pullback.codegen.llvm import V, const
from pullback.codegen.object import DictOf, Kind, ListOf, Node, ResultSpec, Signature, Static, TupleOf
from pullback.codegen.pyobject import FLOAT_NAMES, NULL, ObjectCode, llvm_scalar, require_number
from pullback.errors import CodegenError
from pullback.ir.types import DType, TensorType

LARGE_RESULT_BYTES = 1 << 20
"""Result arrays from this size on take their memory from blocks that earlier results gave back."""


class ResultMaker(ObjectCode):
    """Emits the allocation of results and their assembly.

    Attributes
    ----------
    owned : references to drop if something fails: arrays that are in no container yet, then the outermost container
    count : of `owned`
    """

    def __init__(self, code: ObjectCode, signature: Signature) -> None:
        super().__init__(code.module, code.b, code.layout, code.symbols)
        self.node = signature.result
        self.key_slots = signature.key_slots()
        self.specs = signature.result_leaves()
        self.count = len(self.specs) + 1
        self.owned = self.null_pointers(self.count)

    def targets(self) -> list[V]:
        """Where the kernel writes each result."""
        return [self.target(number, spec) for number, spec in enumerate(self.specs)]

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
        dims = self.module.constant(extents, 8) if extents else NULL
        if type_.nbytes >= LARGE_RESULT_BYTES:
            return self.api("ptr", "pb_new_large_array", [descr, const("i32", type_.ndim), dims])
        self.api("void", "Py_IncRef", [descr])
        cls, ndim = self.datum("numpy_ndarray"), const("i32", type_.ndim)
        args = [cls, descr, ndim, dims, NULL, NULL, const("i32", 0), NULL]
        return self.api("ptr", "numpy_new_from_descr", args)

    def root(self, targets: list[V]) -> V:
        """The object to return, made of what the kernel wrote."""
        numbered = iter(enumerate(targets))
        node = self.node
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
            self.b.store(NULL, place, 8)
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
        number = self.b.load(FLOAT_NAMES[size], place, size)
        return number if size == 8 else self.b.cast("fpext", number, "double")

    def scalar_result(self, dtype: DType, place: V) -> V:
        b = self.b
        cls = self.datum(f"numpy_scalar_{dtype.name}")
        scalar = self.checked(self.api("ptr", "numpy_new_scalar", [cls, const("i64", 0)]))
        bits = f"i{8 * dtype.itemsize}"
        align = min(8, dtype.itemsize)
        b.store(b.load(bits, place, align), self.address(scalar, self.layout.number_value), align)
        return scalar
