"""Constants that regions are given become constants in the regions: numbers in kernel bodies instead of memory."""

from pullback.ir.graph import Op, Region, Value
from pullback.passes.base import Rebuild, with_operands


def sink_constants(region: Region) -> Region:
    """The region, with each constant that an op hands to its regions made inside of them; mostly the same object."""
    if not any(op.regions for op in region.ops):
        return region
    rebuild = Rebuild()
    for op in region.ops:
        current = rebuild.current(op)
        rebuild.keep(op, _sunk(current) if op.regions else current)
    return rebuild.region(region)


def _sunk(op: Op) -> Op:
    first, fixed = _handed_on(op)
    sources = {
        k: op.operands[k + first].op
        for k in range(fixed, len(op.operands) - first)
        if (made := op.operands[k + first].op) is not None and made.name == "constant"
    }
    regions = tuple([sink_constants(_with_constants(r, sources) if sources else r) for r in op.regions])
    if regions == op.regions:
        return op
    operands = tuple([v for k, v in enumerate(op.operands) if k - first not in sources])
    return with_operands(op, operands, regions)


def _handed_on(op: Op) -> tuple[int, int]:
    """The operand that parameter 0 stands for, and the first parameter that is the same whenever a region runs."""
    match op.name:
        case "if":
            return 1, 0
        case "checkpoint":
            return 0, 0
        case "while":
            return 0, op.attrs["carries"]
        case "scan":
            return int(op.attrs["length"] < 0), op.attrs["carries"] + op.attrs["scanned"]
    return 0, len(op.operands)


def _with_constants(region: Region, sources: dict[int, Op | None]) -> Region:
    rebuild = Rebuild()
    params: list[Value] = []
    for k, param in enumerate(region.params):
        source = sources.get(k)
        if source is not None:
            made = Op(source.opdef, (), source.attrs, (param.type,), (), source.loc)
            rebuild.ops.append(made)
            rebuild.env[param] = made.results[0]
        elif k == len(params):
            params.append(param)
        else:
            params.append(Value(param.type, None, len(params), param.hint))
            rebuild.env[param] = params[-1]
    for op in region.ops:
        rebuild.keep(op, rebuild.current(op))
    return Region(tuple(params), tuple(rebuild.ops), tuple([rebuild.value(v) for v in region.results]))
