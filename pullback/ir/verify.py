"""The verifier: what must hold of every function at its stage. Run after every pass in tests."""

from pullback.errors import PullbackError, VerifyError
from pullback.ir.graph import Function, Op, Region, Value
from pullback.ir.opdef import Control, Library, Reduce, Scalar, View

STAGES = ("traced", "optimised", "planned")
PLANNED_ONLY = frozenset({"kernel", "rows"})
BODY_ONLY = frozenset({"index", "within", "load_at"})


def verify(function: Function) -> None:
    """Raise VerifyError, naming the op and the user's line, if an invariant is broken.

    Checked: every operand is defined before its use in the same region; no value is defined twice; results have the
    types that the op's rule infers; attributes are those of the record; regions are as many as the record names; ops
    are legal in the stage.
    """
    if function.stage not in STAGES:
        raise VerifyError(f"{function.name}: unknown stage {function.stage!r}; one of {', '.join(STAGES)}")
    seen: set[Value] = set()
    pending: list[tuple[Region, bool]] = [(function.body, False)]
    while pending:
        region, in_kernel = pending.pop()
        _verify_region(function, region, in_kernel, seen)
        pending.extend((inner, op.name == "kernel") for op in region.ops for inner in op.regions)


def _verify_region(function: Function, region: Region, in_kernel: bool, seen: set[Value]) -> None:
    visible: set[Value] = set()
    for number, param in enumerate(region.params):
        if param.op is not None or param.index != number:
            raise VerifyError(f"{function.name}: parameter {number} of a region is {param!r}")
        _define(function, param, visible, seen)
    for op in region.ops:
        _verify_op(function, op, visible, in_kernel)
        for number, result in enumerate(op.results):
            if result.op is not op or result.index != number:
                raise _broken(function, op, f"result {number} does not point back to its op")
            _define(function, result, visible, seen)
    for value in region.results:
        if value not in visible:
            raise VerifyError(f"{function.name}: a region gives {value!r}, which is not defined in it")


def _define(function: Function, value: Value, visible: set[Value], seen: set[Value]) -> None:
    if value in seen:
        raise VerifyError(f"{function.name}: {value!r} is defined twice")
    seen.add(value)
    visible.add(value)


def _broken(function: Function, op: Op, what: str) -> VerifyError:
    return VerifyError(f"{function.name}: {op.name} at {op.loc or 'no source line'}: {what}")


def _verify_op(function: Function, op: Op, visible: set[Value], in_kernel: bool) -> None:
    for operand in op.operands:
        if operand not in visible:
            raise _broken(function, op, f"operand {operand!r} is not defined before it in this region")
    record = op.opdef
    if set(op.attrs) != set(record.attrs):
        raise _broken(function, op, f"attributes {sorted(op.attrs)}, the record has {sorted(record.attrs)}")
    if len(op.regions) != len(record.regions):
        raise _broken(function, op, f"{len(op.regions)} regions, the record has {len(record.regions)}")
    try:
        types = record.infer([v.type for v in op.operands], op.attrs, op.regions)
    except PullbackError as error:
        raise _broken(function, op, str(error)) from error
    if types != tuple(r.type for r in op.results):
        raise _broken(function, op, f"results {[str(r.type) for r in op.results]}, inferred {[str(t) for t in types]}")
    if not _is_legal(function.stage, op, in_kernel):
        where = "a kernel body" if in_kernel else f"stage {function.stage}"
        raise _broken(function, op, f"not legal in {where}")


def _is_legal(stage: str, op: Op, in_kernel: bool) -> bool:
    if in_kernel:
        return op.name in BODY_ONLY or op.name == "constant" or isinstance(op.opdef.lower, Scalar)
    if op.name in BODY_ONLY:
        return False
    if stage != "planned":
        return op.name not in PLANNED_ONLY
    match op.opdef.lower:
        case Library() | Control():
            return True
        case View():
            return op.name in ("reshape", "pad", "concatenate", "transpose")
        case Scalar() | Reduce():
            return False
