"""Structured control flow and effects: if, checkpoint, guard, check."""

from collections.abc import Sequence

import numpy as np

from pullback.errors import NumericalError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Array, Control, NotDifferentiable, OpDef, RunRegion, Structured, Types
from pullback.ir.ops.common import check_arity, words
from pullback.ir.types import TensorType


def _region_types(region: Region) -> tuple[TensorType, ...]:
    return tuple(v.type for v in region.results)


def structured_batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    raise AssertionError(f"{op.name} has regions: passes.batch has a function for it")


def _if_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    if not types or types[0].dtype.kind != "b" or types[0].shape != () or len(regions) != 2:
        raise TypeRuleError(f"if needs a bool[] predicate and two regions, got {words(types)}")
    then, other = regions
    for name, region in (("then", then), ("else", other)):
        if tuple(p.type for p in region.params) != tuple(types[1:]):
            raise TypeRuleError(
                f"if: region {name} takes {words([p.type for p in region.params])}, given {words(types[1:])}"
            )
    if _region_types(then) != _region_types(other):
        raise TypeRuleError(f"if: the branches give {words(_region_types(then))} and {words(_region_types(other))}")
    return _region_types(then)


def _if_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    return run(op.regions[0 if bool(args[0]) else 1], args[1:])


IF = OpDef(
    name="if",
    arity=None,
    attrs={},
    infer=_if_infer,
    evaluate=_if_evaluate,
    numpy=(),
    derivative=Structured("passes.reverse and passes.forward: each region is differentiated"),
    batch=structured_batch,
    lower=Control("if"),
    algebra=PLAIN,
    doc="One of two regions, by a scalar predicate; both take the same operands and give the same types.",
    regions=("then", "else"),
)


def _checkpoint_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    (body,) = regions
    if tuple(p.type for p in body.params) != tuple(types):
        taken = words([p.type for p in body.params])
        raise TypeRuleError(f"checkpoint: the region takes {taken}, given {words(types)}")
    return _region_types(body)


def _checkpoint_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    return run(op.regions[0], args)


CHECKPOINT = OpDef(
    name="checkpoint",
    arity=None,
    attrs={"again": "bool"},
    infer=_checkpoint_infer,
    evaluate=_checkpoint_evaluate,
    numpy=(),
    derivative=Structured("passes.recomputing: the adjoint computes the region again from its operands"),
    batch=structured_batch,
    lower=Control("checkpoint"),
    algebra=PLAIN,
    doc="The region, of which reverse mode keeps the operands alone. With `again` it is such an adjoint, which "
    "computes once more what was computed before: it stays apart, so that the two are not made one. Without, it "
    "dissolves once the last derivative has been taken.",
    regions=("body",),
)


def _guard_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("guard", types, 1)
    if types[0].shape != () or types[0].dtype.kind not in "biu":
        raise TypeRuleError(f"guard needs a scalar bool or integer, got {types[0]}")
    return ()


class GuardFailedError(Exception):
    """The interpreter met a guard that is not as traced."""

    def __init__(self, index: int) -> None:
        super().__init__(f"guard {index} is not as traced")
        self.index = index


def _guard_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    if int(args[0]) != op.attrs["expected"]:
        raise GuardFailedError(op.attrs["index"])
    return ()


def _effect_batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    raise TypeRuleError(
        f"a Python branch or conversion, or a result whose shape or type depends on numbers, at {op.loc} depends on a "
        "batched value, so the rows of the batch may differ there; use np.where, or pullback.cond on each row; "
        "np.linalg.pinv(a) @ b for np.linalg.lstsq(a, b), np.linalg.eigvals(a.astype(complex)) for the eigenvalues of "
        "a real matrix"
    )


GUARD = OpDef(
    name="guard",
    arity=1,
    attrs={"index": "int", "expected": "int"},
    infer=_guard_infer,
    evaluate=_guard_evaluate,
    numpy=(),
    derivative=NotDifferentiable("an effect"),
    batch=_effect_batch,
    lower=Control("guard"),
    algebra=PLAIN,
    doc="The trace took a Python path on which this scalar was `expected`; elsewhere the function returns `index` + 1.",
    effect=True,
)


def _check_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    check_arity("check", types, 1)
    if types[0].dtype.kind != "b":
        raise TypeRuleError(f"check needs a bool operand, got {types[0]}")
    return ()


def _check_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    if not np.all(args[0]):
        raise NumericalError(f"{op.attrs['message']} (at {op.loc})")
    return ()


def _check_batch(f: Emitter, op: Op, args: Sequence[Expr], batched: Sequence[bool]) -> tuple[Expr, ...]:
    f.b.add(op.opdef, [args[0].value], op.attrs)
    return ()


CHECK = OpDef(
    name="check",
    arity=1,
    attrs={"message": "str", "code": "int"},
    infer=_check_infer,
    evaluate=_check_evaluate,
    numpy=(),
    derivative=NotDifferentiable("an effect"),
    batch=_check_batch,
    lower=Control("check"),
    algebra=PLAIN,
    doc="Every element must be true; else the call raises `message`, and the function returns -`code`.",
    effect=True,
)

CONTROL = (IF, CHECKPOINT, GUARD, CHECK)
