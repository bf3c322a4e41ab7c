"""Constant folding: ops of constants are evaluated once, at compile time."""

from typing import Any

import numpy as np

from pullback.errors import NumericalError
from pullback.ir.graph import Attrs, Function, Literal, Location, Op, Region, Value
from pullback.ir.interpret import evaluate_op
from pullback.ir.opdef import Array, Scalar
from pullback.ir.ops import OPS
from pullback.passes.base import Context, Rebuild, map_regions, with_body
from pullback.record import record

LARGEST = 1 << 20
"""Bytes of the largest constant that folding may make out of smaller ones."""

_CONSTANT, _BROADCAST = OPS["constant"], OPS["broadcast"]
_KEPT = frozenset({"constant", "broadcast", "iota"})  # cheaper to compute anew at each index than to load


def constant_op(array: Array, loc: Location | None = None) -> Op:
    """A `constant` of `array`."""
    attrs = Attrs(value=Literal(array))
    return Op(_CONSTANT, (), attrs, _CONSTANT.infer((), attrs, ()), (), loc)


def repeated_number(array: Array) -> Array | None:
    """The scalar that fills `array` throughout (bit for bit), if it has more than one element."""
    if array.size < 2:
        return None
    flat = array.reshape(-1)
    first = flat[:1]
    # The second element tells most arrays apart before all of them are looked at.
    if flat[1:2].tobytes() != first.tobytes() or flat.tobytes() != first.tobytes() * array.size:
        return None
    return first.reshape(())


def constant_ops(array: Array, loc: Location | None = None) -> list[Op]:
    """Ops that make `array`, the last one its value: a constant, or a broadcast scalar if it holds one number only."""
    scalar = repeated_number(array)
    if scalar is None:
        return [constant_op(array, loc)]
    return broadcast_ops(scalar, array.shape, loc)


def broadcast_ops(scalar: Array, shape: tuple[int, ...], loc: Location | None = None) -> list[Op]:
    """A scalar constant and its broadcast to `shape`; of one element a constant of that shape."""
    if all(n == 1 for n in shape):
        return [constant_op(scalar.reshape(shape), loc)]
    made = constant_op(scalar, loc)
    attrs = Attrs(dims=(), shape=shape)
    return [made, Op(_BROADCAST, made.results, attrs, (made.results[0].type.with_shape(shape),), (), loc)]


def known(value: Value) -> Array | None:
    """The array of a constant or a broadcast constant (as a view: nothing is copied)."""
    op = value.op
    if op is None:
        return None
    name = op.opdef.name
    if name == "constant":
        array: Array = op.attrs["value"].array
        return array
    if name == "broadcast" and (inner := op.operands[0].op) is not None and inner.opdef.name == "constant":
        return evaluate_op(op, [inner.attrs["value"].array])[0]
    return None


def repeated(value: Value) -> Array | None:
    """The scalar that a constant, broadcast or not, holds throughout."""
    op = value.op
    if op is not None and op.opdef.name == "broadcast":
        op = op.operands[0].op
    if op is None or op.opdef.name != "constant":
        return None
    array: Array = op.attrs["value"].array
    return array.reshape(()) if array.size == 1 else None


def folded(op: Op) -> list[list[Op]] | None:
    """For each result the ops that make it out of constants, the result last; None if `op` is not folded."""
    name = op.opdef.name
    if name == "constant":
        scalar = repeated_number(op.attrs["value"].array)
        return None if scalar is None else [broadcast_ops(scalar, op.results[0].type.shape, op.loc)]
    if not op.operands or name in _KEPT or not _is_constant(op.operands[0]):
        return None
    if not all(_is_constant(v) for v in op.operands) or op.regions or op.opdef.effect:
        return None
    if isinstance(op.opdef.lower, Scalar):
        scalars = [repeated(v) for v in op.operands]
        if all(s is not None for s in scalars):
            return [broadcast_ops(r, op.results[0].type.shape, op.loc) for r in _evaluated(op, scalars) or ()] or None
    return _folded_arrays(op)


def _is_constant(value: Value) -> bool:
    op = value.op
    if op is not None and op.opdef.name == "broadcast":
        op = op.operands[0].op
    return op is not None and op.opdef.name == "constant"


def _folded_arrays(op: Op) -> list[list[Op]] | None:
    arrays = [v.op.attrs["value"].array for v in op.operands if v.op is not None and v.op.opdef.name == "constant"]
    bytes_in = sum(a.nbytes for a in arrays)
    # Of broadcasts only, nothing is spelled out: a rewrite rule moves the op to what is broadcast.
    if not arrays or sum(r.type.nbytes for r in op.results) > max(LARGEST, bytes_in):
        return None
    results = _evaluated(op, [known(v) for v in op.operands])
    return None if results is None else [constant_ops(a, op.loc) for a in results]


def _evaluated(op: Op, arrays: list[Any]) -> tuple[Array, ...] | None:
    """The results; None if there are none for these numbers (the failure is the call's, not the compiler's)."""
    try:
        with np.errstate(all="ignore"):
            return evaluate_op(op, arrays)
    except NumericalError:
        return None


@record(frozen=True)
class Fold:
    """Evaluates ops of constants with the op's own `evaluate`, as the interpreter would.

    Never makes a constant larger than 1 MiB out of smaller ones, never spells out the broadcast of a constant, and
    leaves effects alone. A constant that repeats one number becomes a scalar and its broadcast. One walk.
    """

    name: str = "fold"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, _fold(function.body, ctx))


def _fold(region: Region, ctx: Context) -> Region:
    new = Rebuild()
    for op in region.ops:
        current = new.current(op, map_regions(op, lambda inner: _fold(inner, ctx)))
        results = folded(current)
        if results is None or not ctx.tally.may("fold"):
            new.keep(op, current)
            continue
        for made in results:
            new.ops.extend(made)
        new.replace(op, [made[-1].results[0] for made in results])
    return new.region(region)
