"""The state of one trace: the ops emitted so far, constants, captured values, guards.

Inside a trace the content of an array is either a `Value` (it depends on a parameter) or a plain ndarray (a constant).
Ops on constants alone are evaluated at once and emit nothing.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
from numpy import asarray as plain_array  # while a trace runs, np.asarray is a wrapper

from pullback.errors import ArgumentError, ConcretizationError, LeakedValueError, PullbackError
from pullback.ir.builder import Builder
from pullback.ir.failures import check_error
from pullback.ir.graph import NO_ATTRS, Attrs, Literal, Location, Op, Region, Value
from pullback.ir.interpret import evaluate_values
from pullback.ir.ops import OPS
from pullback.ir.types import DType, Shape, TensorType, tensor_type
from pullback.record import record
from pullback.tracer.advice import asked_by
from pullback.tracer.location import Locator, describe
from pullback.tracer.segments import Segment

Array = np.ndarray[Any, Any]
Content = Value | Array

# A constant of more elements becomes a parameter that the caller passes, so that megabytes stay out of the program.
LARGE_CONSTANT = 4096

PREDICATES = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite", "signbit"}
    | {"bitwise_and", "bitwise_or", "bitwise_xor", "invert"}
)


@record(frozen=True)
class Guard:
    """A Python decision that the traced path rests on: `value` was `expected`.

    index : number of the guard, as in the `guard` op's attribute; the native function returns `index` + 1 on a miss.
    """

    index: int
    value: Value
    expected: int
    loc: Location | None


class Check(NamedTuple):
    """A condition that must hold in every call; the native function returns -`code` where it does not."""

    code: int
    message: str
    loc: Location | None


class OuterValue(NamedTuple):
    """A value of an enclosing trace that an inner trace read: an extra parameter of the inner function."""

    trace: "Trace"
    value: Value
    param: Value


class OuterArray(NamedTuple):
    """A NumPy array that the function took from outside (a closure, a global, an attribute, a NumPy call on those) or a
    large constant of its own: an extra parameter, read anew at each call."""

    array: Array
    param: Value
    constant: bool


_CURRENT: ContextVar["Trace | None"] = ContextVar("pullback_trace", default=None)


def current() -> "Trace | None":
    """The trace that runs in this context (thread or task), the innermost one."""
    return _CURRENT.get()


def active() -> "Trace":
    """The running trace; a program error where there is none."""
    trace = _CURRENT.get()
    if trace is None:
        raise LeakedValueError(
            "a traced value was used after the function that made it had been traced; it stands for no number by "
            "itself. Return it from the function instead of storing it"
        )
    return trace


@contextmanager
def running(trace: "Trace") -> Iterator["Trace"]:
    """Make `trace` the running one; afterwards it has ended, and its values may not be used any more."""
    token = _CURRENT.set(trace)
    try:
        yield trace
    finally:
        _CURRENT.reset(token)
        trace.live = False


def no_regions(region: Region, args: Sequence[Array]) -> tuple[Array, ...]:
    raise AssertionError("an op with regions is not evaluated while tracing constants")


@record(eq=False, slots=True)
class Trace:
    """One function being traced.

    dispatch : answers NumPy's protocols for the arrays of this trace (`pullback.tracer.dispatch`)
    parent : the trace around it, if any
    suppliers : for each parameter, a function that gives its present array; None for abstract arguments
    known : arrays evaluated so far, for Python branches
    reachable : identities of the arrays the function can reach by name
    fixed : those among them whose elements the program depends on
    settled : values that depend on no argument: constants, captured arrays, what is computed from them
    place : the source line of ops that no line of the function asks for, such as reading its results
    segments : the ops of checkpointed functions, by number
    watch : whether a number was taken out of captured data without a trace: then no reachable array may change
    choices : truths that are decided otherwise than the interpreter's numbers say, by the number of their guard
    careful : a check that does not hold for the present arguments raises at once, so that the function may catch it
    caught : whether one did; the path then rests on that
    """

    dispatch: Any
    parent: "Trace | None" = None
    name: str = "f"
    ties: str = "equal"
    live: bool = True
    place: Location | None = None
    watch: bool = False
    builder: Builder = field(default_factory=Builder)
    locator: Locator = field(default_factory=Locator)
    suppliers: dict[Value, Callable[[], Array] | None] = field(default_factory=dict)
    known: dict[Value, Array] = field(default_factory=dict)
    settled: set[Value] = field(default_factory=set)
    memo: dict[Any, Any] = field(default_factory=dict)
    guards: list[Guard] = field(default_factory=list)
    guarded: dict[Value, int] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    last_code: int = 0
    segments: list[Segment] = field(default_factory=list)
    outer_values: dict[Value, OuterValue] = field(default_factory=dict)
    outer_arrays: dict[int, OuterArray] = field(default_factory=dict)
    extra: list[OuterValue | OuterArray] = field(default_factory=list)
    reachable: set[int] = field(default_factory=set)
    fixed: set[int] = field(default_factory=set)
    choices: Mapping[int, int] = field(default_factory=dict)
    careful: bool = False
    caught: bool = False

    # ------------------------------------------------------------------ parameters

    def param(self, type: TensorType, hint: str, supplier: Callable[[], Array] | None) -> Value:
        value = self.builder.param(type, hint)
        self.suppliers[value] = supplier
        return value

    def capture_value(self, outer: "Trace", value: Value, supplier: Callable[[], Array]) -> Value:
        """The parameter that stands for `value` of an enclosing trace; `supplier` gives its present array."""
        known = self.outer_values.get(value)
        if known is None:
            param = self.param(value.type, f"outer{len(self.extra)}", supplier)
            known = self.outer_values[value] = OuterValue(outer, value, param)
            self.extra.append(known)
            if value in outer.settled:
                self.settled.add(param)
        return known.param

    def capture_array(self, array: Array, constant: bool = False) -> Value:
        """The parameter that stands for an array from outside the function."""
        known = self.outer_arrays.get(id(array))
        if known is None:
            if not constant and id(array) not in self.reachable and id(array.base) not in self.reachable:
                self.watch = True  # computed, out of sight, from arrays that may change
            word = "const" if constant else "captured"
            type = tensor_type(array.dtype, array.shape)
            param = self.param(type, f"{word}{len(self.extra)}", lambda: array)
            known = self.outer_arrays[id(array)] = OuterArray(array, param, constant)
            self.extra.append(known)
            self.settled.add(param)
        return known.param

    def rest_on(self, array: Array) -> None:
        """The program depends on the elements of a plain array from outside: they must not change between calls."""
        known = next((id(a) for a in (array, array.base) if id(a) in self.reachable), None)
        if known is None:
            self.watch = True
        else:
            self.fixed.add(known)

    # ------------------------------------------------------------------ emitting

    def apply(self, name: str, *contents: Content, **attrs: Any) -> Content:
        """Emit the op `name` with its one result; on constants alone, compute it."""
        return self.apply_all(name, contents, attrs)[0]

    def apply_all(self, name: str, contents: Sequence[Content], attrs: dict[str, Any]) -> Sequence[Content]:
        """Emit an op with any number of results; on constants alone, compute them."""
        if contents and Value not in [type(c) for c in contents]:
            return self.fold(name, contents, attrs)
        values = [c if type(c) is Value else self.lift(c) for c in contents]
        if name in PREDICATES:
            return self._predicate(name, tuple(values))
        return self.emit(name, values, Attrs(attrs) if attrs else NO_ATTRS).results

    def _predicate(self, name: str, values: tuple[Value, ...]) -> Sequence[Content]:
        """Equal tests are one value, so that a mask written twice (`x[x > 0] = y[x > 0]`) is known to be the same."""
        key = (name, values)
        results: Sequence[Content] | None = self.memo.get(key)
        if results is None:
            results = self.memo[key] = self.emit(name, values).results
        return results

    def emit(self, name: str, values: Sequence[Value], attrs: Attrs = NO_ATTRS, regions: tuple[Region, ...] = ()) -> Op:
        """Append an op at the user's line."""
        loc = self.place or self.locator.here(3)
        try:
            op = self.builder.add(OPS[name], values, attrs, regions, loc)
        except PullbackError as error:
            raise type(error)(f"{error}{describe(loc)}") from None
        if self.settled.issuperset(values):
            self.settled.update(op.results)
        return op

    def fold(self, name: str, arrays: Sequence[Any], attrs: dict[str, Any]) -> tuple[Array, ...]:
        """The results of an op on constants, each an array of its own."""
        opdef = OPS[name]
        frozen = Attrs(attrs)
        operands = tuple([Value(tensor_type(a.dtype, a.shape)) for a in arrays])
        op = Op(opdef, operands, frozen, opdef.infer([v.type for v in operands], frozen, ()))
        with np.errstate(all="ignore"):
            results = opdef.evaluate(op, arrays, no_regions)
        return tuple([np.array(r) if r.base is not None or any(r is a for a in arrays) else r for r in results])

    def lift(self, content: Content) -> Value:
        """A value for a constant: small ones are literals, uniform ones a broadcast number, ranges an iota."""
        if isinstance(content, Value):
            return content
        if content.size > LARGE_CONSTANT and not _is_uniform(content):
            copy = np.array(content, order="C")
            return self.capture_array(copy, constant=True)
        if content.size > 1 and _is_uniform(content):
            return self.full(content.dtype, content.shape, content.reshape(-1)[0])
        return self.literal(content)

    def literal(self, array: Array) -> Value:
        literal = Literal(array)
        value: Value | None = self.memo.get(literal)
        if value is None:
            value = self.memo[literal] = self.emit("constant", (), Attrs(value=literal)).results[0]
        return value

    def scalar(self, dtype: DType, number: Any) -> Value:
        """A value of one number without axes; the common ones are remembered by the number itself."""
        kind = type(number)
        if kind not in (int, float) or number != number:  # NaN is not equal to itself
            return self.literal(plain_array(number, dtype))
        minus_zero = kind is float and number == 0 and math.copysign(1.0, number) < 0
        key = (kind, number, dtype, minus_zero)
        value: Value | None = self.memo.get(key)
        if value is None:
            value = self.memo[key] = self.literal(plain_array(number, dtype))
        return value

    def full(self, dtype: DType, shape: Shape, number: Any) -> Value:
        """A value of one number everywhere."""
        scalar = self.scalar(dtype, number)
        if shape == ():
            return scalar
        key = (scalar, shape)
        value: Value | None = self.memo.get(key)
        if value is None:
            value = self.memo[key] = self.emit("broadcast", (scalar,), Attrs(dims=(), shape=shape)).results[0]
        return value

    # ------------------------------------------------------------------ decisions

    def guard(self, value: Value, expected: int) -> None:
        """Record that the path taken holds only while `value` is `expected`; once per value."""
        if value in self.guarded:
            return
        index = len(self.guards)
        loc = self.locator.here(2)
        self.emit("guard", (value,), Attrs(index=index, expected=expected))
        self.guards.append(Guard(index, value, expected, loc))
        self.guarded[value] = expected

    def check(self, pred: Content, message: str) -> None:
        """All of `pred` must hold at every call, else the call raises `message` with the user's line."""
        loc = self.locator.here(2)
        if not isinstance(pred, Value):
            if not np.all(pred):
                raise check_error(message)(f"{message}{describe(loc)}")
            return
        if self.careful:
            self._raise_now(pred, message, loc)
        code = self._next_code()
        self.emit("check", (pred,), Attrs(message=message, code=code))
        self.checks.append(Check(code, message, loc))

    def _raise_now(self, pred: Value, message: str, loc: Location | None) -> None:
        """Raise the error of a check if it does not hold at present; the path taken from there rests on that."""
        whole = self.apply("all", pred, axes=tuple(range(pred.type.ndim))) if pred.type.ndim else pred
        assert isinstance(whole, Value)
        if not self.present(whole):
            self.caught = True
            self.guard(whole, 0)
            raise check_error(message)(f"{message}{describe(loc)}")

    def present(self, value: Value) -> Array:
        """What `value` is for the arguments this function is being traced with; only what it needs is evaluated, once.

        Raises
        ------
        ConcretizationError : the function is traced for argument types alone.
        """
        for param, supplier in self.suppliers.items():
            if param not in self.known and supplier is not None:
                self.known[param] = plain_array(supplier())
        try:
            return evaluate_values([value], self.known)[0]
        except ArgumentError:
            raise abstract_error(self) from None

    def _next_code(self) -> int:
        """A number that no check has in this trace, in those around it, or in those inside of them."""
        outermost = self
        while outermost.parent is not None:
            outermost = outermost.parent
        outermost.last_code += 1
        return outermost.last_code

    # ------------------------------------------------------------------ errors

    def error(self, kind: type[Exception], message: str) -> Exception:
        """An error of `kind` with the user's line behind the message; to be raised."""
        return kind(f"{message}{describe(self.locator.users(2))}")

    def is_inside(self, outer: "Trace") -> bool:
        """Whether this trace runs within `outer`."""
        trace = self.parent
        while trace is not None:
            if trace is outer:
                return True
            trace = trace.parent
        return False


def _is_uniform(array: Array) -> bool:
    """Whether every element has the bits of the first: -0.0 is not 0.0, and NaN is NaN."""
    if array.size == 0:
        return False
    first = array.reshape(-1)[:1]
    if array.dtype.kind in "fc":
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, array.itemsize)
        return bool((flat == flat[0]).all())
    return bool((array == first).all())


def shape_of(content: Content) -> Shape:
    return content.type.shape if isinstance(content, Value) else content.shape


def dtype_of(content: Content) -> DType:
    return content.type.dtype if isinstance(content, Value) else content.dtype


def abstract_error(trace: Trace) -> Exception:
    """Python asked for a number where only types are known: in the body of a loop or branch, or with types for
    arguments."""
    asked, outermost = asked_by(), trace
    while outermost.parent is not None:
        outermost = outermost.parent
    if trace is outermost or None in outermost.suppliers.values():
        why = "but this function is traced for argument types alone. Give example values, or write"
    else:
        why = "but the body of a compiled loop or branch is traced once, for all turns and all numbers. Write"
    message = f"{asked.name} needs the number behind a traced value, {why} {asked.instead}"
    return trace.error(ConcretizationError, message)
