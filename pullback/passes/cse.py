"""Common subexpressions: what is computed twice is computed once."""

from collections.abc import Hashable

from pullback.ir.graph import Function, Literal, Op, Region, Value
from pullback.ir.ops import ALL_OPS
from pullback.passes.base import Context, Rebuild, map_regions, with_body
from pullback.record import record

_ORDER_SHOWS = frozenset({"maximum", "minimum", "fmax", "fmin"})  # of 0.0 and -0.0 NumPy gives one by position
_COMMUTES = frozenset(op.name for op in ALL_OPS if op.algebra.commutative)
_MIRRORED = {"greater": "less", "greater_equal": "less_equal"}
LARGEST_COMPARED = 1 << 16
"""Bytes of a constant up to which its content is compared; larger ones are the same only if they are one array."""


@record(frozen=True)
class EliminateCommon:
    """Replaces an op by an earlier one of the same name, operands and attributes.

    `x + y` and `y + x` are the same where the order cannot show, and `x > y` is `y < x`. Ops with effects or regions
    are never merged, but the inside of a region is treated like a function of its own: it sees nothing of the region
    around it. One walk.
    """

    name: str = "cse"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, _merge(function.body, ctx))


def _merge(region: Region, ctx: Context) -> Region:
    new = Rebuild()
    seen: dict[Hashable, Op] = {}
    numbers: dict[Value, int] = {param: k for k, param in enumerate(region.params)}
    for op in region.ops:
        current = new.current(op, map_regions(op, lambda inner: _merge(inner, ctx)))
        if not op.regions and not op.opdef.effect:
            earlier = seen.setdefault(_key(current, numbers), current)
            if earlier is not current and ctx.tally.may("cse"):
                new.replace(op, earlier.results)
                continue
        new.keep(op, current)
        for result in current.results:
            numbers[result] = len(numbers)
    return new.region(region)


def _key(op: Op, numbers: dict[Value, int]) -> Hashable:
    """Equal for ops that compute the same: name, operands by number, attributes."""
    name = op.opdef.name
    operands = tuple([numbers[v] for v in op.operands])
    if len(operands) == 2:
        first, second = operands
        if name in _MIRRORED:
            name, operands = _MIRRORED[name], (second, first)
        elif first > second and name in _COMMUTES and _order_is_hidden(op):
            operands = (second, first)
    if not op.attrs:
        return name, operands
    if name == "constant":
        return name, _literal_key(op.attrs["value"])
    return name, operands, op.attrs.key()


def _order_is_hidden(op: Op) -> bool:
    return op.opdef.name not in _ORDER_SHOWS or op.results[0].type.dtype.kind != "f"


def _literal_key(value: Literal) -> Hashable:
    return value if value.array.nbytes <= LARGEST_COMPARED else id(value.array)
