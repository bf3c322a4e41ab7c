"""Calling a ufunc on traced operands: types, casts, broadcasts, the op, then `where=` and `out=`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy import asarray as plain_array  # while a trace runs, np.asarray is a wrapper

from pullback.errors import ConcretizationError, OutsideWriteError, TypeRuleError, UnsupportedError
from pullback.ir.graph import Value
from pullback.ir.types import BOOL, DType, Shape
from pullback.record import record
from pullback.tracer.array import TracedArray, TracedScalar, TracedValue, new_array, new_result, new_scalar
from pullback.tracer.cell import element_strides, read, write
from pullback.tracer.dtypes import python_result, ufunc_types
from pullback.tracer.evaluate import present
from pullback.tracer.integers import check_binary, check_unary
from pullback.tracer.layout import Order, common_order, is_c_order
from pullback.tracer.operands import Operand, broadcast, broadcast_shape, cast, content_of, operand
from pullback.tracer.trace import Content, Trace, active, dtype_of, shape_of

ORDERS = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
COMPARISONS = frozenset({"equal", "not_equal", *ORDERS})


@record(slots=True)
class Call:
    """One elementwise call as its rule sees it.

    contents : the operands in the dtypes of the loop, each in its own shape
    types : dtypes of operands and results, as NumPy resolves them
    operands : the operands as given, for rules that look at Python numbers
    """

    trace: Trace
    ufunc: np.ufunc
    operands: Sequence[Operand]
    contents: list[Content]
    types: tuple[DType, ...]
    shape: Shape

    @property
    def dtype(self) -> DType:
        """dtype of the first operand."""
        return self.types[0]

    @property
    def result_dtype(self) -> DType:
        return self.types[self.ufunc.nin]

    def wide(self, number: int) -> Content:
        """Operand `number`, broadcast."""
        content = self.contents[number]
        if type(content) is Value and content.type.shape == self.shape:
            return content
        given = self.operands[number].number
        if given is not None:
            return self.trace.full(self.types[number], self.shape, given)
        return broadcast(self.trace, content, self.shape)

    def wides(self) -> list[Content]:
        return [self.wide(k) for k in range(len(self.contents))]

    def op(self, name: str, *contents: Content, **attrs: Any) -> Content:
        return self.trace.apply(name, *contents, **attrs)

    def number(self, x: Any, dtype: DType | None = None) -> Content:
        """A Python number as an operand of the call's shape."""
        return self.trace.full(dtype or self.dtype, self.shape, x)

    def in_dtype(self, name: str) -> "Call":
        """The same call with every operand converted."""
        dtype = np.dtype(name)
        contents = [cast(self.trace, c, dtype) for c in self.contents]
        bare = [o._replace(number=None) for o in self.operands]
        return Call(self.trace, self.ufunc, bare, contents, (dtype,) * len(self.types), self.shape)

    def is_single(self, number: int) -> bool:
        """Whether operand `number` is one constant element."""
        content = self.contents[number]
        return not isinstance(content, Value) and content.size == 1

    def constant(self, number: int) -> Any:
        """The number operand `number` is everywhere, or None."""
        content = self.contents[number]
        if isinstance(content, Value) or content.size == 0:
            return None
        first = content.reshape(-1)[0]
        return first if content.size == 1 or bool((content == first).all()) else None


@record(frozen=True)
class Refusal:
    """Why a ufunc is not followed, and what to write instead."""

    reason: str


Rule = Callable[[Call], Content | tuple[Content, ...]]


@record(frozen=True)
class Direct:
    """The rule of a ufunc that is one op on the broadcast operands; for dtypes of other kinds there is `otherwise`."""

    name: str
    kinds: str = "biufc"
    otherwise: Rule | None = None

    def __call__(self, call: Call) -> Content | tuple[Content, ...]:
        if self.otherwise is not None and (call.dtype.kind not in self.kinds or call.types[0] != call.types[1]):
            return self.otherwise(call)
        return call.op(self.name, *call.wides())


Rules = Mapping[Any, Rule | Refusal]  # by ufunc, or by name for those of scipy.special


def call(rules: Rules, ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`ufunc(*inputs, **kwargs)` with traced operands or outputs."""
    trace = active()
    options = dict(kwargs)
    out = options.pop("out", None)
    where = options.pop("where", True)
    dtype = options.pop("dtype", None)
    casting = options.pop("casting", "same_kind")
    order = options.pop("order", "K")
    options.pop("subok", None)
    if options.get("signature") is not None or options.get("sig") is not None:
        raise trace.error(
            UnsupportedError, f"np.{ufunc.__name__}: signature= is not followed; use dtype= or x.astype(dtype)"
        )
    operands = [operand(trace, x) for x in inputs]
    results = evaluate(trace, rules, ufunc, operands, None if dtype is None else np.dtype(dtype), casting)
    if out is None and where is True:
        layout = result_order(operands, shape_of(results[0])) if order == "K" else None
        wrapped = tuple([new_result(trace, r, layout) for r in results])
    else:
        outs = out if isinstance(out, tuple) else (out,) * ufunc.nout
        wrapped = tuple([_store(trace, ufunc, r, o, where, casting) for r, o in zip(results, outs, strict=True)])
    return wrapped[0] if ufunc.nout == 1 else wrapped


def evaluate(
    trace: Trace,
    rules: Rules,
    ufunc: np.ufunc,
    operands: Sequence[Operand],
    dtype: DType | None = None,
    casting: str = "same_kind",
) -> tuple[Content, ...]:
    """The contents of the results; on constants NumPy's own ufunc gives them."""
    if Value not in [type(o.content) for o in operands]:
        return _evaluate_constants(trace, ufunc, operands, dtype, casting)
    rule = rules.get(ufunc) or (rules.get(ufunc.__name__) if is_scipys(ufunc) else None)
    if rule is None or isinstance(rule, Refusal):
        settled = [o.content for o in operands if isinstance(o.content, Value)]
        if trace.settled.issuperset(settled):
            return _evaluate_settled(trace, ufunc, operands, dtype, casting)
        raise trace.error(UnsupportedError, unsupported_ufunc(ufunc, rule))
    try:
        usual = dtype is None and casting == "same_kind"
        types = _types(trace, ufunc, operands) if usual else _typed(ufunc, operands, dtype, casting)
    except TypeError as error:
        raise trace.error(TypeRuleError, f"np.{ufunc.__name__}: {error}") from None
    if type(rule) is Direct and types[0].kind in rule.kinds:
        values = _as_they_are(trace, operands, types)
        if values is not None:
            return (trace.apply(rule.name, *values),)
    shape = broadcast_shape(trace, ufunc.__name__, [shape_of(o.content) for o in operands])
    contents: list[Content] = []
    for o, wanted in zip(operands, types, strict=False):
        if o.number is not None:
            if ufunc.__name__ in COMPARISONS and not _fits(o.number, wanted):
                return (_compare_beyond(trace, ufunc, operands, types, shape),)
            contents.append(plain_array(o.number, wanted))
        else:
            contents.append(cast(trace, o.content, wanted))
    result = rule(Call(trace, ufunc, operands, contents, types, shape))
    return result if isinstance(result, tuple) else (result,)


def _as_they_are(trace: Trace, operands: Sequence[Operand], types: Sequence[DType]) -> list[Value] | None:
    """The operands as they are, where they need neither conversion nor broadcasting; numbers are filled in. Most calls
    are of that kind."""
    shape: Shape | None = None
    dtype = types[0]
    for o, wanted in zip(operands, types, strict=False):
        if o.number is None:
            content = o.content
            if type(content) is not Value or content.type.dtype != dtype:
                return None
            if shape is None:
                shape = content.type.shape
            elif content.type.shape != shape:
                return None
        elif wanted != dtype or not _fits(o.number, wanted):
            return None
    if shape is None:
        return None
    return [
        o.content if o.number is None else trace.full(t, shape, o.number)  # type: ignore[misc]
        for o, t in zip(operands, types, strict=False)
    ]


def _types(trace: Trace, ufunc: np.ufunc, operands: Sequence[Operand]) -> tuple[DType, ...]:
    """The dtypes of the loop, remembered by the identity of the operands' dtypes (which the entry keeps alive): hashing
    them costs more than all the rest."""
    key = (ufunc, *[id(o.key) for o in operands])
    known = trace.memo.get(key)
    if known is None:
        keys = tuple([o.key for o in operands])
        known = trace.memo[key] = (ufunc_types(ufunc, keys), keys)
    types: tuple[DType, ...] = known[0]
    return types


def _typed(ufunc: np.ufunc, operands: Sequence[Operand], dtype: DType | None, casting: str) -> tuple[DType, ...]:
    return ufunc_types(ufunc, tuple([o.key for o in operands]), dtype, casting)


def _evaluate_constants(
    trace: Trace, ufunc: np.ufunc, operands: Sequence[Operand], dtype: DType | None, casting: str
) -> tuple[Content, ...]:
    arguments = [o.number if o.number is not None else _plain(o) for o in operands]
    extra = {} if dtype is None else {"dtype": dtype, "casting": casting}
    with np.errstate(all="ignore"):
        results = ufunc(*arguments, **extra)
    if ufunc.nout == 1:
        results = (results,)
    return tuple([np.asarray(r) for r in results])


def _plain(o: Operand) -> Any:
    assert isinstance(o.content, np.ndarray)
    return o.key(o.content[()]) if isinstance(o.key, type) else o.content


def _evaluate_settled(
    trace: Trace, ufunc: np.ufunc, operands: Sequence[Operand], dtype: DType | None, casting: str
) -> tuple[Content, ...]:
    """A ufunc pullback has no rule for, on data that depends on no argument: NumPy's result, as a constant."""
    trace.watch = True
    fixed = [
        o._replace(content=np.asarray(present(trace, o.content))) if isinstance(o.content, Value) else o
        for o in operands
    ]
    return _evaluate_constants(trace, ufunc, fixed, dtype, casting)


def is_scipys(ufunc: np.ufunc) -> bool:
    """Whether it is a ufunc of scipy.special, and not one of that name from elsewhere."""
    modules = (sys.modules.get(name) for name in ("scipy.special._ufuncs", "scipy.special"))
    return any(getattr(module, ufunc.__name__, None) is ufunc for module in modules)


def unsupported_ufunc(ufunc: np.ufunc, refusal: Refusal | None = None) -> str:
    if refusal is not None:
        return f"scipy.special.{ufunc.__name__} is not followed: {refusal.reason}"
    return (
        f"{ufunc.__name__} (a ufunc) has no rule in pullback, so its gradient cannot be followed; "
        "write it with NumPy functions that have one, or apply it to values that depend on no argument"
    )


def _fits(number: Any, dtype: DType) -> bool:
    if type(number) is not int or dtype.kind not in "iu":
        return True
    info = np.iinfo(dtype)
    return bool(info.min <= number <= info.max)


def _compare_beyond(
    trace: Trace, ufunc: np.ufunc, operands: Sequence[Operand], types: tuple[DType, ...], shape: Shape
) -> Content:
    """A comparison with a Python integer that the other operand's dtype cannot hold: the same for every element."""
    sample = [o.number if o.number is not None else np.zeros((), t)[()] for o, t in zip(operands, types, strict=False)]
    return trace.full(BOOL, shape, bool(ufunc(*sample)))


# ------------------------------------------------------------------ operators


def binary(rules: Rules, ufunc: np.ufunc, x: Any, y: Any) -> Any:
    """The operator of `ufunc` between two operands, one of them traced."""
    trace = active()
    if ufunc is np.power:
        special = shortcut(x, y)
        if special is not None:
            return unary(rules, special, x)
    lhs, rhs = operand(trace, x), operand(trace, y)
    left, right = _python_type(x), _python_type(y)
    if left is not None and right is not None:
        return _python_binary(trace, rules, ufunc, (lhs, rhs), (left, right))
    results = evaluate(trace, rules, ufunc, (lhs, rhs))
    shape = shape_of(results[0])
    if shape == ():
        wrapped: list[TracedValue] = [new_scalar(trace, r) for r in results]
    else:
        layout = result_order((lhs, rhs), shape)
        wrapped = [new_array(trace, r, layout) for r in results]
    return wrapped[0] if len(wrapped) == 1 else tuple(wrapped)


def unary(rules: Rules, ufunc: np.ufunc, x: TracedValue) -> Any:
    """The operator of `ufunc` on one traced operand."""
    trace = active()
    o = operand(trace, x)
    python = _python_type(x)
    if python is bool:
        o = Operand(cast(trace, o.content, np.dtype(np.int64)), int)
        python = int
    if python is int and ufunc in (np.negative, np.absolute):
        check_unary(trace, o.content)
    (result,) = evaluate(trace, rules, ufunc, (o,))
    if python is not None:
        real = float if python is complex and ufunc is np.absolute else python
        return new_scalar(trace, result, real)
    return new_result(trace, result, result_order((o,), shape_of(result)))


def shortcut(x: Any, y: Any) -> np.ufunc | None:
    """The ufunc of one operand that NumPy takes for `x ** 2`, `x ** -1` and `x ** 0.5` of an array, where it shows."""
    if type(x) is not TracedArray:
        return None
    if type(y) is int and y == 2:
        return np.square
    if x._dtype.kind != "c":
        return None
    if type(y) is int and y == -1:
        return np.reciprocal
    return np.sqrt if type(y) is float and y == 0.5 else None


def _python_type(x: Any) -> type | None:
    """The Python type of a number that NumPy would not see: Python's own, or a traced one."""
    kind = type(x)
    if kind is TracedArray:
        return None
    if kind is TracedScalar:
        python: type | None = x.python
        return python
    return kind if kind in (float, int, bool, complex) else None


def _python_binary(
    trace: Trace, rules: Rules, ufunc: np.ufunc, operands: tuple[Operand, Operand], kinds: tuple[type, type]
) -> Any:
    """An operator between two Python numbers: Python's result type; bools count as integers, as in Python."""
    name = ufunc.__name__
    result: Any = bool if name in COMPARISONS else python_result(name, *kinds)
    if result is not bool:
        operands = (_as_integer(trace, operands[0]), _as_integer(trace, operands[1]))
    if name == "power" and result is int:
        operands, result = _python_integer_power(trace, operands)
    elif name == "power" and result is float and _leaves_the_reals(trace, operands):
        operands, result = _as_complex(trace, operands), complex
    if name in ORDERS and complex in kinds:
        names = [k.__name__ for k in kinds]
        raise trace.error(
            TypeError, f"'{ORDERS[name]}' not supported between instances of {names[0]!r} and {names[1]!r}"
        )
    if kinds[1] in (int, bool):
        check_binary(trace, name, [o.content for o in operands], grows=result is int)
    results = evaluate(trace, rules, ufunc, operands)
    wrapped = tuple([new_scalar(trace, r, result) for r in results])
    return wrapped[0] if len(wrapped) == 1 else wrapped


def _as_integer(trace: Trace, o: Operand) -> Operand:
    if o.key != BOOL:
        return o
    number = None if o.number is None else int(o.number.real)
    return Operand(cast(trace, o.content, np.dtype(np.int64)), int, number)


def _python_integer_power(trace: Trace, operands: tuple[Operand, Operand]) -> tuple[tuple[Operand, Operand], type]:
    """In Python an integer to a negative integer power is a float; which it is becomes a guarded decision."""
    base, exponent = operands
    if bool(new_scalar(trace, exponent.content, int) < 0):
        wide = cast(trace, base.content, np.dtype(np.float64))
        return (Operand(wide, float, None if base.number is None else float(base.number.real)), exponent), float
    return operands, int


def _leaves_the_reals(trace: Trace, operands: tuple[Operand, Operand]) -> bool:
    """In Python a negative number to a fractional power is complex; that it happens is a guarded decision."""
    base, exponent = operands
    if exponent.number is not None and float(exponent.number.real).is_integer():
        return False
    if base.number is not None and base.number.real >= 0:
        return False
    try:
        if not bool(new_scalar(trace, base.content, float) < 0):
            return False
        power: Any = new_scalar(trace, exponent.content, float)
        return bool(np.floor(power) != power)
    except ConcretizationError:  # types alone: NaN there, as NumPy has it
        return False


def _as_complex(trace: Trace, operands: tuple[Operand, Operand]) -> tuple[Operand, Operand]:
    wide = [Operand(cast(trace, o.content, np.dtype(np.complex128)), complex) for o in operands]
    return wide[0], wide[1]


def inplace(rules: Rules, ufunc: np.ufunc, x: TracedArray, y: Any) -> TracedArray:
    """`x op= y`: the result converted to the dtype of `x`, written into `x`."""
    trace = active()
    special = shortcut(x, y) if ufunc is np.power else None
    operands = (operand(trace, x),) if special is not None else (operand(trace, x), operand(trace, y))
    (result,) = evaluate(trace, rules, special or ufunc, operands)
    store(trace, ufunc.__name__, result, x, "same_kind")
    return x


# ------------------------------------------------------------------ results


def result_order(operands: Sequence[Operand], shape: Shape) -> Order | None:
    """The memory order of the result where it is not C order (NumPy's order `K`)."""
    if len(shape) < 2 or not any(o.source is not None and _is_unusual(o.source) for o in operands):
        return None
    strides = []
    for o in operands:
        own = shape_of(o.content)
        given = element_strides(o.source) if o.source is not None else np.empty(own, np.uint8).strides
        flat = [0 if n == 1 else s for n, s in zip(own, given, strict=True)]
        strides.append((0,) * (len(shape) - len(own)) + tuple(flat))
    return common_order(shape, strides)


def _is_unusual(x: TracedValue) -> bool:
    return bool(x._steps or x._cell.order is not None) and not is_c_order(x._shape, element_strides(x))


def store(trace: Trace, name: str, result: Content, out: TracedValue, casting: str) -> None:
    """Write `result` into `out`, whose shape must be that of the result (or one it broadcasts to)."""
    if not np.can_cast(dtype_of(result), out._dtype, casting):  # type: ignore[arg-type]
        raise trace.error(
            TypeRuleError,
            f"Cannot cast np.{name} output from {dtype_of(result)!r} to {out._dtype!r} with casting rule '{casting}'",
        )
    shape = broadcast_shape(trace, f"{name}", [shape_of(result), out._shape])
    if shape != out._shape:
        raise trace.error(
            ValueError,
            f"np.{name}: non-broadcastable output operand with shape {out._shape} doesn't match the "
            f"broadcast shape {shape}",
        )
    new = broadcast(trace, cast(trace, result, out._dtype), shape)
    if not isinstance(new, Value):
        new = np.array(new)
    write(out, new)


def _store(trace: Trace, ufunc: np.ufunc, result: Content, out: Any, where: Any, casting: str) -> Any:
    """The result after `where=` and `out=`."""
    if out is None:
        return new_result(trace, _masked(trace, result, None, where))
    if not isinstance(out, TracedArray):
        raise trace.error(OutsideWriteError, plain_out(f"np.{ufunc.__name__}", out))
    if where is not True:
        shape = broadcast_shape(trace, f"{ufunc.__name__}", [shape_of(result), out._shape])
        old = read(out)
        result = _masked(trace, cast(trace, broadcast(trace, result, shape), out._dtype), old, where)
        casting = "unsafe"
    store(trace, ufunc.__name__, result, out, casting)
    return out


def plain_out(name: str, out: Any) -> str:
    """Why a result cannot be written into an array from outside the trace."""
    target = "a plain NumPy array" if isinstance(out, np.ndarray) else repr(out)
    return (
        f"{name} cannot write a traced result into {target}; "
        "make the output array inside the traced function (np.zeros, np.empty, np.copy), or use the returned value"
    )


def _masked(trace: Trace, result: Content, old: Content | None, where: Any) -> Content:
    """`result` where the mask holds; elsewhere the old content, or zero where NumPy leaves memory unset."""
    if where is True:
        return result
    pred = content_of(trace, where)
    shape = broadcast_shape(trace, "where", [shape_of(pred), shape_of(result)])
    fallback = np.zeros((), dtype_of(result)) if old is None else old
    parts = [cast(trace, pred, BOOL), result, fallback]
    if not any(isinstance(p, Value) for p in parts):
        return np.asarray(np.where(*[np.asarray(p) for p in parts]))
    return trace.apply("select", *[broadcast(trace, p, shape) for p in parts])
