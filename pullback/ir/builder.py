"""Emitting ops into a region. Passes rebuild: they walk the old ops in order and emit new ones here."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pullback.ir.graph import NO_ATTRS, Attrs, Function, Location, Op, Region, Value
from pullback.ir.types import TensorType

if TYPE_CHECKING:
    from pullback.ir.opdef import OpDef


class Builder:
    """Collects ops for one region. `loc` is given to each op emitted without one."""

    __slots__ = ("loc", "ops", "params")

    params: list[Value]
    ops: list[Op]
    loc: Location | None

    def __init__(self, loc: Location | None = None) -> None:
        self.params = []
        self.ops = []
        self.loc = loc

    def param(self, type: TensorType, hint: str = "") -> Value:
        value = Value(type, None, len(self.params), hint)
        self.params.append(value)
        return value

    def add(
        self,
        opdef: "OpDef",
        operands: Sequence[Value],
        attrs: Attrs = NO_ATTRS,
        regions: tuple[Region, ...] = (),
        loc: Location | None = None,
    ) -> Op:
        """Type-check and append one op."""
        types = opdef.infer([v.type for v in operands], attrs, regions)
        op = Op(opdef, tuple(operands), attrs, types, regions, loc or self.loc)
        self.ops.append(op)
        return op

    def emit(self, opdef: "OpDef", *operands: Value, regions: tuple[Region, ...] = (), **attrs: Any) -> Value:
        """Append an op with one result and give that result."""
        return self.add(opdef, operands, Attrs(attrs) if attrs else NO_ATTRS, regions).results[0]

    def copy(self, op: Op, operands: Iterable[Value], regions: tuple[Region, ...] | None = None) -> Op:
        """Append `op` again with other operands (of the same types) at its own source line; types are not inferred
        anew."""
        new = Op(
            op.opdef,
            tuple(operands),
            op.attrs,
            tuple([r.type for r in op.results]),
            op.regions if regions is None else regions,
            op.loc or self.loc,
        )
        for old, fresh in zip(op.results, new.results, strict=True):
            fresh.hint = old.hint
        self.ops.append(new)
        return new

    def inline(self, region: Region, arguments: Sequence[Value]) -> list[Value]:
        """Append the ops of `region` with `arguments` for its parameters; give what its results have become."""
        env: dict[Value, Value] = dict(zip(region.params, arguments, strict=True))
        for op in region.ops:
            new = self.copy(op, [env[v] for v in op.operands])
            env.update(zip(op.results, new.results, strict=True))
        return [env[v] for v in region.results]

    def region(self, results: Sequence[Value]) -> Region:
        return Region(tuple(self.params), tuple(self.ops), tuple(results))

    def function(
        self, name: str, results: Sequence[Value], stage: str = "traced", source: Location | None = None
    ) -> Function:
        return Function(name, self.region(results), stage, source)
