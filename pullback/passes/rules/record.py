"""The record of a rewrite rule, what a rule may ask for, and the small vocabulary its pattern is written in.

Rules for rules: the right side never costs more than the left; constants go right, once; no commutativity in general,
so a rule for `x op c` is not written again for `c op x`. A rule looks at an op and at what made its operands, no
further, or for a bounded number of steps; operands were rewritten before.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from typing import Literal as OneOf

import numpy as np

from pullback.ir.emit import Expr
from pullback.ir.graph import Op, Value
from pullback.ir.types import TensorType
from pullback.passes.rules.written import Chains

Array = np.ndarray[Any, Any]
Number = bool | int | float | complex


class Rewriter(Protocol):
    """What a rule may do. All that is emitted is itself simplified, so a rule never has to write the simplest form."""

    chains: Chains
    """Who wrote the elements of values that updates made."""

    def emit(self, name: str, *operands: Value, **attrs: Any) -> Value:
        """An op with one result (or what it simplifies to), at the source line of the op being rewritten."""
        ...

    def constant(self, array: Array | np.generic) -> Value:
        """A constant; one that holds one number throughout becomes a broadcast scalar."""
        ...

    def full(self, type: TensorType, number: Number) -> Value:
        """A tensor of one number."""
        ...

    def used_once(self, value: Value) -> bool:
        """Whether the op being rewritten is the only reader of `value`."""
        ...


Kind = OneOf["exact", "reduction", "fast"]


class Case(NamedTuple):
    """One program a rule must (or must not) fire on: `build(f, *operands)` on operands of these types."""

    build: Callable[..., Expr]
    types: tuple[str, ...]


def case(build: Callable[..., Expr], *types: str) -> Case:
    return Case(build, types)


@dataclass(frozen=True, eq=False)
class Rule:
    """One rewrite rule.

    name     unique, in words joined by hyphens
    formula  left -> right, for the reader and for `pullback passes`
    ops      names of the ops at the root of the left side
    rewrite  gives the value that stands for the op from now on, or None where the rule does not apply
    why      why it is right, and which IEEE corner was looked at
    cases    programs it must fire on; a test compares both sides on special values
    not_on   programs that look alike and on which it must not fire
    kind     `exact`: both sides agree bit for bit (the payload and sign of NaN aside); always on.
             `reduction`: uses the freedom of a declared reduction, which is the order of its sum or product and the
             sign of a zero sum; the error does not grow; always on.
             `fast`: changes a rounding or a special case; only on request.
    """

    name: str
    formula: str
    ops: tuple[str, ...]
    rewrite: Callable[[Rewriter, Op], Value | None]
    why: str
    cases: tuple[Case, ...]
    not_on: tuple[Case, ...] = ()
    kind: Kind = "exact"


# ------------------------------------------------------------------ patterns


def made_by(value: Value, name: str) -> Op | None:
    """The op called `name` that made `value`, if one did."""
    op = value.op
    return op if op is not None and op.opdef.name == name else None


def literal(value: Value) -> Array | None:
    """The array of a constant."""
    op = value.op
    if op is None or op.opdef.name != "constant":
        return None
    array: Array = op.attrs["value"].array
    return array


def number(value: Value) -> Number | None:
    """The one number that a constant, or a broadcast constant, holds throughout."""
    op = value.op
    if op is None:
        return None
    if op.opdef.name == "broadcast":
        op = op.operands[0].op
        if op is None:
            return None
    if op.opdef.name != "constant":
        return None
    array = op.attrs["value"].array
    return array.item() if array.size == 1 else None


def is_constant(value: Value) -> bool:
    """A constant, or a broadcast one."""
    op = value.op
    if op is not None and op.opdef.name == "broadcast":
        op = op.operands[0].op
    return op is not None and op.opdef.name == "constant"


def same_number(found: Number | None, expected: Number) -> bool:
    """Equal, and of the same sign if zero: 0.0 is not -0.0."""
    if found is None or found != expected:
        return False
    if found != 0 or not isinstance(found, float):
        return True
    return math.copysign(1.0, found) == math.copysign(1.0, float(expected.real))
