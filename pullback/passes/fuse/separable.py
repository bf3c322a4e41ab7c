"""Whether a kernel can be run for one part of its leading axis after the other, and its form for such a part."""

from typing import NamedTuple

import numpy as np

from pullback.ir.graph import Attrs, Op, Value
from pullback.ir.index import Affine
from pullback.ir.kernel import Load, Store
from pullback.ir.types import Shape, TensorType
from pullback.record import record

F16 = np.dtype(np.float16)


class Access(NamedTuple):
    """How a kernel in `count` parts reads an operand: whole, cut into parts of the same count, or both."""

    whole: bool
    cut: bool


@record(frozen=True, eq=False)
class Separated:
    """A kernel over `count` parts.

    reads : for each operand
    cut : for each result whether it is made part by part; the others are reductions over the parts
    """

    op: Op
    count: int
    reads: tuple[Access, ...]
    cut: tuple[bool, ...]


def separate(op: Op, count: int) -> Separated | None:
    """The kernel over `count` parts of its leading axis; None if parts would need one another or know their number."""
    space: Shape = op.attrs["space"]
    if not space or count < 2 or space[0] % count or _knows_its_place(op):
        return None
    part = (space[0] // count, *space[1:])
    whole, cut = set(), set()
    for load in op.attrs["loads"]:
        if load.at.coefficient(0) == 0:
            whole.add(load.operand)
        elif _is_own_part(load.at, part, count, op.operands[load.operand].type.size):
            cut.add(load.operand)
        else:
            return None
    whole.update(inner.attrs["operand"] for inner in op.regions[0].ops if inner.name == "load_at")
    results = []
    for store in op.attrs["stores"]:
        results.append(store.at.coefficient(0) != 0)
        if results[-1] and not _is_own_part(store.at, part, count, store.type.size):
            return None
        if not results[-1] and store.kind in ("sum", "prod") and store.type.dtype == F16:
            return None  # it rounds once, not once for each part
    reads = tuple([Access(k in whole, k in cut) for k in range(len(op.operands))])
    return Separated(op, count, reads, tuple(results))


def _knows_its_place(op: Op) -> bool:
    """Whether the body looks at the index of the leading axis."""
    bounds = [b for load in op.attrs["loads"] for b in load.bounds]
    for inner in op.regions[0].ops:
        if inner.name == "index" and inner.attrs["axis"] == 0:
            return True
        if inner.name == "within":
            bounds += inner.attrs["bounds"]
    return any(b.index.coefficient(0) for b in bounds)


def _is_own_part(at: Affine, part: Shape, count: int, size: int) -> bool:
    """Whether part k of the space touches part k of a buffer, and nothing else of it."""
    length, rest = divmod(size, count)
    if rest or at.coefficient(0) * part[0] != length:
        return False
    low, high = at.span(part)
    return low >= 0 and high < length


def part_type(type: TensorType, count: int) -> TensorType:
    return type.with_shape((type.size // count,))


def kernel_of_part(kernel: Separated, values: dict[tuple[Value, bool], Value]) -> Op:
    """The kernel for one part. `values` gives what stands for an operand, whole or (True) cut."""
    op, count = kernel.op, kernel.count
    operands = [values[v, access.cut and not access.whole] for v, access in zip(op.operands, kernel.reads, strict=True)]
    loads = []
    for load in op.attrs["loads"]:
        number, access = load.operand, kernel.reads[load.operand]
        if access.whole and load.at.coefficient(0):  # read both ways: the part is an operand more
            operands.append(values[op.operands[number], True])
            number = len(operands) - 1
        loads.append(Load(number, load.at, load.bounds))
    stores = [
        Store(s.kind, part_type(s.type, count) if cut else s.type, s.at)
        for s, cut in zip(op.attrs["stores"], kernel.cut, strict=True)
    ]
    space = (op.attrs["space"][0] // count, *op.attrs["space"][1:])
    attrs = Attrs(space=space, loads=tuple(loads), stores=tuple(stores))
    made = Op(op.opdef, tuple(operands), attrs, tuple([s.type for s in stores]), op.regions, op.loc)
    for old, new in zip(op.results, made.results, strict=True):
        new.hint = old.hint
    return made
