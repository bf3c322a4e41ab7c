"""Where NumPy's protocols arrive: ufuncs and their methods, functions, operators, subscripts, a few methods."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, UnsupportedError
from pullback.ir.graph import Value
from pullback.record import record
from pullback.tracer import subscript, ufuncs
from pullback.tracer.array import TracedArray, TracedScalar, TracedValue, new_array, new_scalar
from pullback.tracer.cell import check_alive, copy_order, has_order, read
from pullback.tracer.constants import DEPENDS, all_constant, call_plain, unwrapped
from pullback.tracer.convert import phrase
from pullback.tracer.flat import FlatIterator
from pullback.tracer.operands import PYTHON_NUMBERS, as_array, cast, check_array, content_of
from pullback.tracer.selection import Selection
from pullback.tracer.trace import Trace, active, current

KNOWN = (TracedValue, Selection, np.ndarray, np.generic, *PYTHON_NUMBERS, list, tuple, range, type(None), str)


@record(frozen=True)
class Entry:
    """How one NumPy function is traced.

    implementation : takes what the function takes
    constants : whether NumPy's own function may answer when every argument is constant; not so for functions that
        return views or write, where it is the cell that counts
    """

    implementation: Any
    constants: bool = True


@record(frozen=True)
class Refused:
    """Why a NumPy function is not followed, and what to write instead."""

    reason: str


@record(frozen=True)
class Tables:
    """NumPy's functions, ufuncs and the methods of ufuncs, by object (or, for other libraries' ufuncs, by name)."""

    functions: Mapping[Any, Entry | Refused]
    ufuncs: ufuncs.Rules
    gufuncs: Mapping[Any, Any]
    ufunc_methods: Mapping[str, Any]


@record(frozen=True)
class Dispatch:
    """Answers for the arrays of a trace.

    namespace : what they give as theirs to code written for the Python array API standard
    """

    tables: Tables
    namespace: Any = np

    # ------------------------------------------------------------------ ufuncs

    def ufunc(self, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not all(_is_known(x) for x in inputs):
            return NotImplemented
        if _holds_selection(inputs):
            return NotImplemented
        trace = current()
        if trace is None:
            return self._outside(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)
        refused = self._refusal(ufunc)
        if refused is not None:
            return self._plain_or_refused(trace, ufunc, method, inputs, kwargs, refused)
        if method == "__call__":
            gufunc = self.tables.gufuncs.get(ufunc)
            if gufunc is not None:
                return self._entry(trace, ufunc, Entry(gufunc), inputs, kwargs)
            return ufuncs.call(self.tables.ufuncs, ufunc, inputs, kwargs)
        known = self.tables.ufunc_methods.get(method)
        if known is None:
            raise trace.error(
                UnsupportedError, f"np.{ufunc.__name__}.{method} is not followed; use the NumPy function for it"
            )
        return known(ufunc, *inputs, **kwargs)

    def _refusal(self, ufunc: Any) -> Refused | None:
        """Why a ufunc of NumPy is refused; `np.frompyfunc` makes ufuncs of objects alone."""
        entry = self.tables.functions.get(np.frompyfunc if _is_of_objects(ufunc) else ufunc)
        return entry if isinstance(entry, Refused) else None

    def _plain_or_refused(
        self, trace: Trace, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any], refused: Refused
    ) -> Any:
        result = call_plain(trace, getattr(ufunc, method), inputs, kwargs)
        if result is DEPENDS:
            short: str = ufunc.__name__
            name = f"np.{short}" if getattr(np, short, None) is ufunc else short
            raise trace.error(UnsupportedError, f"{name} cannot be traced: {refused.reason}")
        return result

    def binary(self, ufunc: Any, x: Any, y: Any) -> Any:
        if current() is None:
            return self._outside(ufunc, (x, y), {})
        if not (_is_operand(x) and _is_operand(y)):
            return self._unknown_operand(ufunc, x, y)
        gufunc = self.tables.gufuncs.get(ufunc)
        if gufunc is not None:
            return self._entry(active(), ufunc, Entry(gufunc), (x, y), {})
        return ufuncs.binary(self.tables.ufuncs, ufunc, x, y)

    def _unknown_operand(self, ufunc: Any, x: Any, y: Any) -> Any:
        """Lists count as arrays, nothing and text equal no number; the rest is left to the other operand."""
        if isinstance(y, str | bytes | None) and ufunc in (np.equal, np.not_equal) and isinstance(x, TracedValue):
            whole = np.full(x._shape, ufunc is np.not_equal)
            return new_array(active(), whole) if isinstance(x, TracedArray) else bool(whole)
        if isinstance(x, list | tuple | range) or isinstance(y, list | tuple | range):
            return self.binary(ufunc, as_array(x), as_array(y))
        return NotImplemented

    def unary(self, ufunc: Any, x: TracedValue) -> Any:
        if current() is None:
            return self._outside(ufunc, (x,), {})
        return ufuncs.unary(self.tables.ufuncs, ufunc, x)

    def inplace(self, ufunc: Any, x: TracedArray, y: Any) -> Any:
        if not _is_operand(y) and not isinstance(y, list | tuple):
            return NotImplemented
        if ufunc in self.tables.gufuncs:
            x[...] = self.binary(ufunc, x, y)
            return x
        return ufuncs.inplace(self.tables.ufuncs, ufunc, x, y)

    # ------------------------------------------------------------------ functions

    def function(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if Selection in types or not all(_is_known_type(t) for t in types):
            return NotImplemented
        trace = current()
        if trace is None:
            return self._outside(func, args, kwargs)
        entry = self.tables.functions.get(func)
        if isinstance(entry, Entry):
            return self._entry(trace, func, entry, args, kwargs)
        result = call_plain(trace, func, args, kwargs)
        if result is not DEPENDS:
            return result
        name = function_name(func)
        reason = (
            entry.reason if entry is not None else "pullback has no rule for it, so its gradient cannot be followed"
        )
        raise trace.error(UnsupportedError, f"{name} cannot be traced: {reason}")

    def _entry(self, trace: Trace, func: Any, entry: Entry, args: Any, kwargs: dict[str, Any]) -> Any:
        if entry.constants and all_constant(args) and all_constant(kwargs.values()):
            return call_plain(trace, func, args, kwargs)
        return entry.implementation(*args, **kwargs)

    def _outside(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """A use after the trace: constants are plain arrays again, anything else has leaked."""
        return func(*[_plain(a) for a in args], **{k: _plain(v) for k, v in kwargs.items()})

    # ------------------------------------------------------------------ subscripts and methods

    def getitem(self, x: TracedValue, key: Any) -> Any:
        return subscript.getitem(x, key)

    def setitem(self, x: TracedArray, key: Any, value: Any) -> None:
        subscript.setitem(x, key, value)

    def flat(self, x: TracedValue) -> FlatIterator:
        return FlatIterator(x)

    def astype(self, x: TracedValue, dtype: Any, order: str, casting: str, copy: bool) -> Any:
        wanted = np.dtype(dtype)
        trace = current() or x._cell.trace
        if not np.can_cast(x._dtype, wanted, casting):  # type: ignore[arg-type]
            raise trace.error(
                TypeError, f"Cannot cast array data from {x._dtype!r} to {wanted!r} according to the rule '{casting}'"
            )
        if wanted == x._dtype and not copy and isinstance(x, TracedArray) and has_order(x, order):
            return x
        check_array(trace, np.empty(0, wanted))
        new = cast(trace, content_of(trace, x), wanted)
        if isinstance(x, TracedScalar):
            return new_scalar(trace, new)
        return new_array(trace, new, copy_order(x, order), lent=True)

    def item(self, x: TracedValue, args: tuple[Any, ...]) -> Any:
        """One element as a traced Python number, so that its gradient is kept."""
        if args:
            key = args[0] if len(args) == 1 else args
            x = x[key] if isinstance(key, tuple) else x.flat[key]
        elif x.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        trace = current() or x._cell.trace
        content = content_of(trace, x.reshape(()) if x._shape else x)
        if not isinstance(content, Value):
            return content.item()
        return new_scalar(trace, content, _python_type(x))

    def tolist(self, x: TracedValue) -> Any:
        return [part.tolist() for part in x] if x._shape else self.item(x, ())

    def view(self, x: TracedValue, dtype: Any, kind: Any = None) -> Any:
        trace = current() or x._cell.trace
        if isinstance(dtype, type) and issubclass(dtype, np.ndarray):
            dtype, kind = None, dtype
        if kind not in (None, np.ndarray):
            raise trace.error(
                UnsupportedError,
                f"a view of {phrase(x)} as a {kind.__name__} is not followed; use the array",
            )
        if dtype is None or np.dtype(dtype) == x._dtype:
            return TracedArray(x._cell, x._steps)
        raise trace.error(
            UnsupportedError,
            f"a view of {phrase(x)} as {dtype} would reinterpret its bytes; use astype, .real or .imag",
        )

    def set_shape(self, x: TracedValue, shape: Any) -> None:
        new = x.reshape(shape)
        if new._cell is not x._cell:
            raise AttributeError("Incompatible shape for in-place modification. Use `.reshape()` to make a copy")
        x._steps, x._shape, x._version = new._steps, new._shape, -1

    def resize(self, x: TracedArray, shape: Any) -> None:
        """In place; zeros fill what is added."""
        trace = active()
        wanted = tuple(shape) if isinstance(shape, tuple | list) else (int(shape),)
        size = int(np.prod(wanted, dtype=np.int64))
        flat: Any = x.ravel()
        if size > x.size:
            flat = np.concatenate([flat, np.zeros(size - x.size, x._dtype)])
        if x._steps:
            raise trace.error(ValueError, "cannot resize this array: it does not own its data")
        x._cell.replace(content_of(trace, np.reshape(flat[:size], wanted)))
        x._cell.shape = x._shape = wanted

    def to_device(self, x: TracedValue, device: str) -> Any:
        if device != "cpu":
            raise ValueError(f"unsupported device {device!r}; there is only 'cpu'")
        return x


def _python_type(x: TracedValue) -> Any:
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[x._dtype.kind]


def function_name(func: Any) -> str:
    """`np.linalg.eig` for a NumPy function, with its module for others."""
    module = getattr(func, "__module__", "") or ""
    name = getattr(func, "__name__", repr(func))
    return f"{module.replace('numpy', 'np', 1)}.{name}" if module.startswith("numpy") else f"{module}.{name}"


def _is_known(x: Any) -> bool:
    return isinstance(x, KNOWN) or not hasattr(type(x), "__array_ufunc__")


def _is_known_type(kind: type) -> bool:
    return issubclass(kind, TracedValue | Selection | np.ndarray) or not hasattr(kind, "__array_function__")


_USUAL = frozenset({TracedArray, TracedScalar, float, int})


def _is_operand(x: Any) -> bool:
    return type(x) in _USUAL or isinstance(x, TracedValue | np.ndarray | np.generic) or type(x) in PYTHON_NUMBERS


def _is_of_objects(ufunc: Any) -> bool:
    return ufunc.ntypes == 1 and set(ufunc.types[0]) == set("O->")


def _holds_selection(xs: Any) -> bool:
    return any(type(x) is Selection for x in xs)


def _plain(x: Any) -> Any:
    if isinstance(x, TracedValue):
        content = read(x)
        if isinstance(content, Value):
            check_alive(x._cell.trace, None)
            raise ArgumentError(f"{phrase(x)} was used outside its trace")
        return unwrapped(x, np.array(content))
    if type(x) in (list, tuple):
        return type(x)([_plain(p) for p in x])
    return x
