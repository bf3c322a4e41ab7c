"""The arrays a traced function works with. They hand NumPy's protocols to the trace's dispatcher."""

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from pullback.ir.graph import Value
from pullback.ir.types import DType, Shape
from pullback.tracer import convert
from pullback.tracer.cell import Cell, element_strides, size_of
from pullback.tracer.layout import Order, is_contiguous
from pullback.tracer.methods import Methods
from pullback.tracer.operators import InplaceOperators, Operators
from pullback.tracer.steps import Locked, Step
from pullback.tracer.trace import Array, Content, Trace, shape_of

PythonType = type[bool] | type[int] | type[float] | type[complex]


class Flags:
    """The part of `ndarray.flags` that means something for a traced array."""

    __slots__ = ("_array",)

    def __init__(self, array: "TracedValue") -> None:
        self._array = array

    @property
    def c_contiguous(self) -> bool:
        return is_contiguous(self._array._shape, element_strides(self._array))

    @property
    def f_contiguous(self) -> bool:
        return is_contiguous(self._array._shape, element_strides(self._array), "F")

    @property
    def contiguous(self) -> bool:
        return self.c_contiguous

    @property
    def fortran(self) -> bool:
        return self.f_contiguous and not self.c_contiguous

    fnc = fortran

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    @property
    def aligned(self) -> bool:
        return True

    @property
    def behaved(self) -> bool:
        return self.writeable

    @property
    def writebackifcopy(self) -> bool:
        return False

    @property
    def owndata(self) -> bool:
        return all(isinstance(step, Locked) for step in self._array._steps)

    @property
    def writeable(self) -> bool:
        return not self._array._cell.readonly and all(s.writeable for s in self._array._steps)

    @writeable.setter
    def writeable(self, value: bool) -> None:
        """Of this array and of views made from it later, as in NumPy."""
        x, steps = self._array, self._array._steps
        if value:
            while steps and isinstance(steps[-1], Locked):
                steps = steps[:-1]
            if x._cell.readonly or not all(s.writeable for s in steps):
                raise ValueError("cannot set WRITEABLE flag to True of this array")
        elif self.writeable:
            steps = (*steps, Locked(x._shape))
        x._steps, x._version = steps, -1

    def __getitem__(self, name: str) -> bool:
        known = {"C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable", "A": "aligned"}
        known |= {"B": "behaved", "X": "writebackifcopy"}
        result: bool = getattr(self, known.get(name, name.lower()))
        return result

    def __setitem__(self, name: str, value: bool) -> None:
        setattr(self, {"W": "writeable"}.get(name, name.lower()), value)


class TracedValue(Operators, Methods):
    """What arrays and scalars of a trace share: content, type, operators."""

    __slots__ = ("__weakref__", "_cell", "_dtype", "_seen", "_shape", "_steps", "_version")

    _cell: Cell
    _steps: tuple[Step, ...]
    _shape: Shape
    _dtype: DType
    _seen: Content | None
    _version: int

    __array_priority__ = 100.0

    def __init__(self, cell: Cell, steps: tuple[Step, ...] = ()) -> None:
        self._cell = cell
        self._steps = steps
        self._seen = None
        self._version = -1
        if steps:
            self._shape = steps[-1].shape
            dtype = cell.dtype
            for step in steps:
                dtype = step.dtype(dtype)
            self._dtype = dtype
        else:
            self._shape = cell.shape
            self._dtype = cell.dtype

    # ------------------------------------------------------------------ type

    @property
    def shape(self) -> Shape:
        return self._shape

    @shape.setter
    def shape(self, value: Any) -> None:
        self._cell.trace.dispatch.set_shape(self, value)

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        return size_of(self._shape)

    @property
    def itemsize(self) -> int:
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        return size_of(self._shape) * self._dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple([s * self._dtype.itemsize for s in element_strides(self)])

    @property
    def flags(self) -> Flags:
        return Flags(self)

    @property
    def base(self) -> "TracedArray | None":
        return None if self.flags.owndata else TracedArray(self._cell)

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def T(self) -> Any:  # noqa: N802
        return self._call(np.transpose)

    @property
    def mT(self) -> Any:  # noqa: N802
        return self._call(np.matrix_transpose)

    @property
    def real(self) -> Any:
        return self._call(np.real)

    @real.setter
    def real(self, value: Any) -> None:
        self._call(np.real)[...] = value

    @property
    def imag(self) -> Any:
        return self._call(np.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._call(np.imag)[...] = value

    @property
    def flat(self) -> Any:
        return self._cell.trace.dispatch.flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self._cell.trace.dispatch.flat(self)[...] = value

    # ------------------------------------------------------------------ NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return self._cell.trace.dispatch.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self._cell.trace.dispatch.function(func, types, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return self._cell.trace.dispatch.namespace

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> Array:
        return convert.to_ndarray(self, dtype)

    def _call(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        return self._cell.trace.dispatch.function(func, (), (self, *args), kwargs)

    # ------------------------------------------------------------------ subscripts

    def __getitem__(self, key: Any) -> Any:
        return self._cell.trace.dispatch.getitem(self, key)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(self._shape[0]))

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    # ------------------------------------------------------------------ conversions

    def __bool__(self) -> bool:
        return convert.to_bool(self)

    def __int__(self) -> int:
        return convert.to_int(self, "int()")

    def __index__(self) -> int:
        return convert.to_index(self)

    def __float__(self) -> float:
        return convert.to_float(self)

    def __complex__(self) -> complex:
        return convert.to_complex(self)

    def __copy__(self) -> Any:
        return self._call(np.copy)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._call(np.copy)

    def __reduce__(self) -> NoReturn:
        raise convert.not_pickled(self)

    def __repr__(self) -> str:
        return convert.text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return convert.formatted(self, spec)

    # ------------------------------------------------------------------ operators and methods

    def _binary(self, ufunc: Any, other: Any) -> Any:
        return self._cell.trace.dispatch.binary(ufunc, self, other)

    def _reflected(self, ufunc: Any, other: Any) -> Any:
        return self._cell.trace.dispatch.binary(ufunc, other, self)

    def _unary(self, ufunc: Any) -> Any:
        return self._cell.trace.dispatch.unary(ufunc, self)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        return self._cell.trace.dispatch.astype(self, dtype, order, casting, copy)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return self._cell.trace.dispatch.function(np.compress, (), (condition, self, axis, out), {})

    def conj(self) -> Any:
        return self._unary(np.conjugate) if self._dtype.kind == "c" else self  # the array itself, as in NumPy

    conjugate = conj

    def fill(self, value: Any) -> None:
        self._cell.trace.dispatch.setitem(self, Ellipsis, value)

    def flatten(self, order: str = "C") -> Any:
        return self._call(np.ravel, order=order).copy()

    def item(self, *args: Any) -> Any:
        return self._cell.trace.dispatch.item(self, args)

    def to_device(self, device: str, /, *, stream: Any = None) -> Any:
        return self._cell.trace.dispatch.to_device(self, device)

    def tolist(self) -> Any:
        return self._cell.trace.dispatch.tolist(self)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        return self._cell.trace.dispatch.view(self, dtype, type)

    def __getattr__(self, name: str) -> NoReturn:
        raise convert.no_attribute(self, name)


class TracedArray(TracedValue, InplaceOperators):
    """A traced array: a view on a cell, with NumPy's aliasing. Taken for an `ndarray` by `isinstance`."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as ndarray

    @property  # type: ignore[misc]  # what isinstance asks
    def __class__(self) -> type:
        return np.ndarray

    def __setitem__(self, key: Any, value: Any) -> None:
        self._cell.trace.dispatch.setitem(self, key, value)

    def _inplace(self, ufunc: Any, other: Any) -> Any:
        return self._cell.trace.dispatch.inplace(ufunc, self, other)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
        self[...] = self._call(np.partition, kth, axis=axis, order=order)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        self._call(np.put, indices, values, mode)

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        self._cell.trace.dispatch.resize(self, shape[0] if len(shape) == 1 else shape)

    def setflags(self, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
        if write is not None:
            self.flags.writeable = write

    def sort(
        self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = None
    ) -> None:
        options = {} if descending is None else {"descending": descending}  # NumPy 2.5 knows it
        self[...] = self._call(np.sort, axis=axis, order=order, **options)


class TracedScalar(TracedValue):
    """A traced number: immutable, as NumPy's scalars are, so `s += 1` makes another.

    python : the type of a Python number, which takes the dtype of what it meets (NEP 50); None for a NumPy scalar
    """

    __slots__ = ("python",)

    python: PythonType | None

    def __init__(self, cell: Cell, python: PythonType | None = None) -> None:
        super().__init__(cell)
        self.python = python

    @property  # type: ignore[misc]  # what isinstance asks
    def __class__(self) -> type:
        return self.python or self._dtype.type

    def __hash__(self) -> int:
        return convert.to_hash(self)

    def __round__(self, ndigits: int | None = None) -> Any:
        return convert.rounded(self, ndigits)

    def __floor__(self) -> int:
        whole: Any = np.floor(self)
        return convert.to_int(whole, "math.floor()")

    def __ceil__(self) -> int:
        whole: Any = np.ceil(self)
        return convert.to_int(whole, "math.ceil()")

    def __trunc__(self) -> int:
        return convert.to_int(self, "math.trunc()")

    def is_integer(self) -> bool:
        return bool(np.floor(self) == self)


# ------------------------------------------------------------------ making them


def new_array(trace: Trace, content: Content, order: Order | None = None, lent: bool = False) -> TracedArray:
    """An array with a cell of its own. A lent constant is copied, since a cell owns its array."""
    if lent and not isinstance(content, Value):
        content = np.array(content)
    return TracedArray(Cell(trace, content, order))


def new_scalar(trace: Trace, content: Content, python: PythonType | None = None) -> TracedScalar:
    """A scalar; `content` has no axes."""
    if not isinstance(content, Value):
        content = np.array(content)
    return TracedScalar(Cell(trace, content), python)


def new_result(trace: Trace, content: Content, order: Order | None = None) -> TracedValue:
    """What a NumPy function returns: a scalar where there are no axes, else an array."""
    if shape_of(content) == ():
        return new_scalar(trace, content)
    return new_array(trace, content, order)
