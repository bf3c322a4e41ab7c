"""`load_at` in a kernel: elements at computed positions, whole vectors where the position moves with the lanes."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.codegen import memory
from pullback.codegen.lane import Lane, lane_constant, memory_type
from pullback.codegen.llvm import V
from pullback.codegen.nest import Nest
from pullback.codegen.scalars import Scalars
from pullback.codegen.spec import KernelSpec
from pullback.ir.graph import Op, Value


def load_clamped(
    s: Scalars, op: Op, flat: Lane, operands: Sequence[V], spec: KernelSpec, step: int | None = None
) -> Lane:
    """Elements at the positions `flat`, clamped into the operand.

    step : by how much the position grows from lane to lane, where that is known; all lanes must take part
    """
    operand, dtype, b = op.attrs["operand"], op.results[0].type.dtype, s.b
    size, lanes = spec.operands[operand].size, flat.lanes
    if size == 0:
        return lane_constant(dtype, 0, lanes)
    element = memory_type(dtype) if dtype.kind != "c" else f"[{dtype.itemsize} x i8]"
    if step == 1 and lanes > 1 and size >= lanes:
        first = b.intrinsic("smin", b.intrinsic("smax", b.extract(flat.re, 0), 0), size - lanes)
        return memory.load(b, dtype, b.gep(element, operands[operand], first, flags=""), 1, lanes)
    at = b.intrinsic("smin", b.intrinsic("smax", flat.re, 0), size - 1)
    items = [at] if lanes == 1 else [b.extract(at, lane) for lane in range(lanes)]
    return memory.load_each(b, dtype, [b.gep(element, operands[operand], item, flags="") for item in items])


def vector_steps(nest: Nest) -> dict[Value, int]:
    """For each `load_at`, how far its position moves from lane to lane, where that is a constant."""
    steps: dict[Value, int | None] = {}
    found: dict[Value, int] = {}
    for op in nest.spec.body.ops:
        value = op.results[0]
        steps[value] = _step(nest, op, steps) if nest.on_vector(value) else 0
        if op.name == "load_at":
            step = _of(nest, op.operands[0], steps)
            if step is not None:
                found[value] = step
    return found


def _of(nest: Nest, value: Value, steps: dict[Value, int | None]) -> int | None:
    if not nest.on_vector(value):
        return 0
    return steps.get(value)


def _step(nest: Nest, op: Op, steps: dict[Value, int | None]) -> int | None:
    if op.name == "index":
        return 1 if nest.level_of[op.attrs["axis"]] == nest.vector else 0
    if op.name not in ("add", "sub", "mul"):
        return None
    one, other = (_of(nest, v, steps) for v in op.operands)
    if one is None or other is None:
        return None
    if op.name == "mul":
        factors = [v.op.attrs["value"].array for v in op.operands if v.op is not None and v.op.name == "constant"]
        return (one + other) * int(factors[0]) if factors else (0 if one == other == 0 else None)
    return one + other if op.name == "add" else one - other
