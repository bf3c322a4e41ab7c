"""A region as a row of ops whose operands carry their own views and constants.

A loop body reads `x[i]` through a slice and a reshape, which the tracer makes once however often it is read, and writes
down constants where they first occur. Seen that way two turns of a loop rarely look alike. So views belong to whoever
reads them and constants to nobody, and what remains in the row repeats as the loop does.
"""

from typing import Any, NamedTuple

from pullback.ir.graph import Attrs, Op, Region, Value, walk
from pullback.ir.interpret import evaluate_values
from pullback.ir.opdef import Array, Scalar, View
from pullback.ir.ops import OPS
from pullback.ir.types import Shape

VIEWS = frozenset({"reshape", "slice", "transpose", "reverse", "broadcast"})
MOST_VIEWS = 8
"""Views of one operand; in a longer chain a view counts as an op."""
LOOK_BACK = 4
"""Updates that a read is followed through to the one that wrote what it reads."""

Start = tuple[int, ...]


class Operand(NamedTuple):
    """A value behind views, the innermost first."""

    base: Value
    views: tuple[Op, ...] = ()

    @property
    def value(self) -> Value:
        """What is read, for its type."""
        return self.views[-1].results[0] if self.views else self.base


class Place(NamedTuple):
    """Where in the row a value is computed: the position of its op, and the number of the result."""

    position: int
    number: int


class Track:
    """The ops of a region that are neither views nor constants, in order.

    ops, operands : the row, and for each op how it reads each of its operands
    places : where each value of the row is computed
    fixed : values that depend on nothing

    Parameters
    ----------
    look_back : updates that a read is followed through
    """

    __slots__ = ("_known", "_look_back", "_seen", "fixed", "operands", "ops", "places", "region")

    def __init__(self, region: Region, look_back: int = LOOK_BACK) -> None:
        self.region = region
        self._look_back = look_back
        self.ops: list[Op] = []
        self.operands: list[tuple[Operand, ...]] = []
        self.places: dict[Value, Place] = {}
        self.fixed: set[Value] = set()
        self._seen: dict[Value, Operand] = {}
        self._known: dict[Value, Array] = {}
        for op in region.ops:
            self._add(op)

    def _add(self, op: Op) -> None:
        if self._is_fixed(op):
            self.fixed.update(op.results)
        elif op.opdef.name not in VIEWS or not self._add_view(op):
            position = len(self.ops)
            self.places.update((r, Place(position, k)) for k, r in enumerate(op.results))
            self.ops.append(op)
            self.operands.append(tuple([self.operand(v) for v in op.operands]))

    def _is_fixed(self, op: Op) -> bool:
        if not op.operands:
            return op.opdef.name in ("constant", "iota")
        return self.fixed.issuperset(op.operands) and isinstance(op.opdef.lower, Scalar | View) and not op.regions

    def _add_view(self, op: Op) -> bool:
        base, views = self.operand(op.operands[0])
        if len(views) >= MOST_VIEWS:
            return False
        found = self._written(base, op) if op.opdef.name == "slice" and not views else None
        self._seen[op.results[0]] = found or Operand(base, (*views, op))
        return True

    def operand(self, value: Value) -> Operand:
        return self._seen.get(value) or Operand(value)

    def array(self, value: Value) -> Array:
        """The content of a fixed value."""
        return evaluate_values([value], self._known)[0]

    # -------------------------------------------------------------- reading what was just written

    def _written(self, array: Value, read: Op) -> Operand | None:
        """What a slice of `array` reads, where one of the last updates of the array wrote all of it."""
        for _ in range(self._look_back):
            place = self.places.get(array)
            if place is None or self.ops[place.position].opdef.name != "update":
                return None
            update = self.ops[place.position]
            into, new = self.operands[place.position]
            if update.attrs == read.attrs:
                return new
            if not _disjoint(update.attrs, read.attrs):
                part = part_of_written(update, read)
                return None if part is None or len(new.views) >= MOST_VIEWS else Operand(new.base, (*new.views, part))
            if into.views:
                return None
            array = into.base
        return None


def _disjoint(x: Attrs, y: Attrs) -> bool:
    return any(b <= c or d <= a for a, b, c, d in zip(x["start"], x["stop"], y["start"], y["stop"], strict=True))


def part_of_written(update: Op, read: Op) -> Op | None:
    """The slice of what `update` wrote that `read` reads, if it reads nothing else."""
    x, y = update.attrs, read.attrs
    if any(s != 1 for s in x["step"]):
        return None
    inside = zip(x["start"], x["stop"], y["start"], y["stop"], strict=True)
    if not all(a <= c and d <= b for a, b, c, d in inside):
        return None
    start = tuple([c - a for a, c in zip(x["start"], y["start"], strict=True)])
    stop = tuple([d - a for a, d in zip(x["start"], y["stop"], strict=True)])
    attrs = Attrs(start=start, stop=stop, step=y["step"])
    return Op(OPS["slice"], (update.operands[1],), attrs, (read.results[0].type,), (), read.loc)


# ------------------------------------------------------------------ what ops and views are, but for where they look


def starts_of(operand: Operand) -> tuple[Start, ...]:
    """Where each slice among the views begins."""
    return tuple([view.attrs["start"] for view in operand.views if view.opdef.name == "slice"])


def box_shape(attrs: Attrs) -> Shape:
    """The shape of what a slice reads or an update writes."""
    box = zip(attrs["start"], attrs["stop"], attrs["step"], strict=True)
    return tuple([-(-(stop - start) // step) for start, stop, step in box])


class Numbers:
    """Small numbers for equal things."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __call__(self, thing: Any) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))


class Signatures:
    """Numbers for ops and views that are equal up to where they begin to read and write."""

    __slots__ = ("_number", "_regions", "_views")

    def __init__(self) -> None:
        self._number = Numbers()
        self._views: dict[Op, int] = {}
        self._regions: dict[Region, int] = {}

    def op(self, op: Op, position: int) -> int:
        """Equal for ops that do the same at the same source line. A decision is like no other."""
        name = op.opdef.name
        if has_guard(op):
            return self._number((name, position))
        attrs = op.attrs["step"] if name == "update" else _attrs(op)
        kind = (name, attrs, tuple([self.region(r) for r in op.regions]), op.loc)
        return self._number((kind, tuple([v.type for v in op.operands])))

    def views(self, operand: Operand) -> int:
        """Equal for chains of views that do the same on bases of the same type."""
        return self._number((operand.base.type, tuple([self._view(view) for view in operand.views])))

    def _view(self, op: Op) -> int:
        number = self._views.get(op)
        if number is None:
            attrs = op.attrs["step"] if op.opdef.name == "slice" else _attrs(op)
            number = self._views[op] = self._number((op.opdef.name, attrs, op.results[0].type))
        return number

    def region(self, region: Region) -> int:
        """Equal for regions with the same text."""
        number = self._regions.get(region)
        if number is None:
            number = self._regions[region] = self._number(self._text(region))
        return number

    def _text(self, region: Region) -> Any:
        numbers: dict[Value, int] = {p: k for k, p in enumerate(region.params)}
        ops = []
        for op in region.ops:
            inner = tuple([self.region(r) for r in op.regions])
            ops.append((op.opdef.name, _attrs(op), tuple([numbers[v] for v in op.operands]), inner))
            for result in op.results:
                numbers[result] = len(numbers)
        return tuple([p.type for p in region.params]), tuple(ops), tuple([numbers[v] for v in region.results])


def _attrs(op: Op) -> Any:
    """The attributes; checks are numbered anew in each turn, and the first number will do for all."""
    if op.opdef.name == "check":
        return op.attrs["message"]
    return op.attrs.key() if op.attrs else ()


def weight(op: Op) -> int:
    """How many ops there are, those inside of `op` included."""
    return 1 + sum(1 for region in op.regions for _ in walk(region)) if op.regions else 1


def has_guard(op: Op) -> bool:
    """Whether a Python decision rests on `op`, or on an op inside it."""
    if op.regions:
        return any(inner.opdef.name == "guard" for region in op.regions for inner in walk(region))
    return op.opdef.name == "guard"


def is_tape(op: Op, number: int) -> bool:
    """Whether a result is the handle of a tape, which lives no longer than the turn that made it."""
    if op.opdef.name == "while":
        return number >= int(op.attrs["carries"])
    return op.opdef.name == "scan" and op.attrs["length"] < 0 and number >= int(op.attrs["carries"])
