"""The record of an op. Everything there is to know about an op is one `OpDef`; every rule is a required field."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.types import TensorType
from pullback.record import record

if TYPE_CHECKING:
    from pullback.ir.emit import Emitter, Expr
    from pullback.ir.index import Access

Array = np.ndarray[Any, Any]
Types = Sequence[TensorType]

# infer(operand types, attributes, regions) -> result types
Infer = Callable[[Types, Attrs, tuple[Region, ...]], tuple[TensorType, ...]]
# run(region, arguments) -> results; given to `evaluate` so that ops with regions can interpret them
RunRegion = Callable[[Region, Sequence[Array]], tuple[Array, ...]]
# evaluate(op, operands, run) -> results
Evaluate = Callable[[Op, Sequence[Array], RunRegion], tuple[Array, ...]]
# batch(f, op, args, batched) -> results, each with the batch axis first; batched[i] says args[i] has the axis (first)
Batch = Callable[["Emitter", Op, Sequence["Expr"], Sequence[bool]], tuple["Expr", ...]]


# ------------------------------------------------------------------ derivatives
# In every rule: f emits ops, ct is a cotangent, tan a tangent. None is an absent (zero) cotangent or tangent.

Partial = Callable[..., "Expr"]  # (f, op, out, *operands) -> d out / d operand, elementwise
Vjp = Callable[["Emitter", Op, Sequence["Expr"], Sequence["Expr"], Sequence["Expr | None"]], Sequence["Expr | None"]]
# vjp(f, op, operands, results, cotangents of results) -> cotangents of operands
Jvp = Callable[["Emitter", Op, Sequence["Expr"], Sequence["Expr"], Sequence["Expr | None"]], Sequence["Expr | None"]]
# jvp(f, op, operands, results, tangents of operands) -> tangents of results
Transpose = Callable[["Emitter", Op, "Expr"], Sequence["Expr | None"]]  # (f, op, ct) -> cotangents of operands


@record(frozen=True)
class Partials:
    """Elementwise: one local derivative per operand, None where there is none (a predicate, an integer).

    `singular` tells per operand whether the partial may be infinite or NaN at a finite point: there a structurally
    zero cotangent must stay zero (strong zeros). `masks` are the operands whose partials are structural zeros where
    they were not picked: there the product is zero whatever the cotangent is.
    """

    partials: tuple[Partial | None, ...]
    singular: Callable[[Op], tuple[bool, ...]]
    masks: tuple[int, ...] = ()

    def is_singular(self, op: Op, operand: int) -> bool:
        return self.singular(op)[operand]


@record(frozen=True)
class Linear:
    """Linear in all its inexact operands together: jvp is the op itself on tangents, vjp is `transpose`.

    `operands` restricts linearity to those operand numbers (others, such as indices, are parameters).
    """

    transpose: Transpose
    operands: tuple[int, ...] | None = None


@record(frozen=True)
class Bilinear:
    """Linear in each of two operands: jvp is the sum of the op with one tangent each."""

    transpose_lhs: Callable[["Emitter", Op, "Expr", "Expr"], "Expr"]  # (f, op, ct, rhs) -> cotangent of lhs
    transpose_rhs: Callable[["Emitter", Op, "Expr", "Expr"], "Expr"]  # (f, op, ct, lhs) -> cotangent of rhs


@record(frozen=True)
class Custom:
    """Both directions written out. `singular` as in `Partials`, for the op as a whole."""

    vjp: Vjp
    jvp: Jvp
    singular: bool = False


@record(frozen=True)
class NotDifferentiable:
    """Ends a differentiable path: the derivative is zero almost everywhere, or has no meaning, for `reason`."""

    reason: str


@record(frozen=True)
class Structured:
    """An op with regions; `passes.differentiate` has one function for it, named here for the reader."""

    where: str


Derivative = Partials | Linear | Bilinear | Custom | NotDifferentiable | Structured


# ------------------------------------------------------------------ lowering


class ScalarBuilder(Protocol):
    """What a scalar op may ask of the code generator. Operands and results are opaque scalars (or vectors of lanes)
    that know their dtype; float16 is computed in float32 and rounded once, complex numbers are handled inside."""

    def binary(self, name: str, x: Any, y: Any) -> Any:
        """`add sub mul div` by dtype; integers wrap."""

    def math(self, name: str, *args: Any, **attrs: Any) -> Any:
        """A math function by NumPy's name."""

    def compare(self, predicate: str, x: Any, y: Any) -> Any:
        """`equal not_equal less less_equal greater greater_equal`, ordered; NaN is unequal to all. Result bool."""

    def select(self, pred: Any, x: Any, y: Any) -> Any: ...

    def cast(self, x: Any, dtype: Any) -> Any:
        """NumPy's astype."""

    def constant(self, like: Any, number: Any) -> Any:
        """`number` in the dtype of `like`."""


@record(frozen=True)
class Scalar:
    """One scalar in, one scalar out, at each index: fuses into kernels. `emit(s, op, *operands)`."""

    emit: Callable[..., Any]


@record(frozen=True)
class View:
    """Moves elements without computing: becomes index arithmetic in a kernel.

    `access(op, index)` takes the result's index (one affine expression for each result axis) and says which element of
    which operand it is, under which bounds; outside all bounds the element is zero.
    """

    access: "Callable[[Op, tuple[Any, ...]], tuple[Access, ...]]"


@record(frozen=True)
class Reduce:
    """Adds up (or multiplies, or compares) over `axes`. `kind`: sum prod max min any all argmax argmin."""

    kind: str


@record(frozen=True)
class Library:
    """A kernel of its own in the code generator (a matrix product, a sort, a scan), by name."""

    kernel: str


@record(frozen=True)
class Control:
    """Structured control flow, or an effect (guard, check); the code generator has one function for it."""

    kind: str


Lower = Scalar | View | Reduce | Library | Control


# ------------------------------------------------------------------ the record


@record(frozen=True)
class Algebra:
    """Facts that rewriting may use. `identity` is the right identity (x op identity is x, bit for bit)."""

    commutative: bool = False
    associative: bool = False
    idempotent: bool = False
    involutive: bool = False
    identity: float | None = None


PLAIN = Algebra()


@record(frozen=True)
class OpDef:
    """One op, whole.

    name        as printed; NumPy's name where NumPy has one
    arity       number of operands, or None for any
    attrs       attribute name -> one word for its kind: int, bool, str, ints, float, dtype, type, literal, any
    infer       result types from operand types; a TypeRuleError or ShapeError holds the types it met
    evaluate    the meaning, in NumPy: the reference for passes and native code
    numpy       NumPy (or scipy.special) functions it implements directly
    derivative  one of the kinds above
    batch       the rule of `vmap`
    lower       how the code generator treats it
    algebra     facts for rewriting
    doc         one or more sentences; corner cases (kinks, singular points) included
    regions     names of its regions
    effect      has an effect (a guard): never removed, moved or merged
    """

    name: str
    arity: int | None
    attrs: Mapping[str, str]
    infer: Infer
    evaluate: Evaluate
    numpy: tuple[str, ...]
    derivative: Derivative
    batch: Batch
    lower: Lower
    algebra: Algebra
    doc: str
    regions: tuple[str, ...] = ()
    effect: bool = False

    def __repr__(self) -> str:
        return f"<OpDef {self.name}>"
