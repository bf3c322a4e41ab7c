"""The body of a rolled loop, and the scan (or, where no turn needs another, the batch) that runs it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pullback.ir.emit import Expr
from pullback.ir.graph import Attrs, Location, Op, Region, Value
from pullback.ir.opdef import Array
from pullback.ir.ops import OPS
from pullback.passes.batching import batch_region, with_rows
from pullback.passes.control import RULES
from pullback.passes.emitter import RuleEmitter
from pullback.passes.roll.arrays import Written
from pullback.passes.roll.loop import Match, Slot
from pullback.passes.roll.moving import Moving
from pullback.passes.roll.scope import Scope, table
from pullback.passes.roll.track import Operand

LARGEST_BATCH = 1 << 20
"""Elements of a value, over all turns, up to which turns that do not need one another are computed at once."""
WIDEST = 16
"""How many times an array may be copied into overlapping rows, one for each turn."""

Outside = Callable[[Value], Value]
Result = tuple[int, int]
Moves = tuple[Moving | None, ...]


class Carry(NamedTuple):
    """What is handed on: a result of the body behind views, as it was `len(begins)` turns before.

    begins : what the first turns take, values of outside
    """

    offset: int
    number: int
    begins: tuple[Value, ...]
    views: tuple[Any, ...]


class LoopBody:
    """Builds one loop.

    Parameters
    ----------
    outer, outside : where the loop stands, and what values from before it have become there
    written : arrays written behind the loop

    news : for each update left out of the loop, what a turn writes
    """

    def __init__(self, match: Match, outer: Scope, outside: Outside, written: list[Written]) -> None:
        self.match, self.outer, self.outside, self.written = match, outer, outside, written
        self.inner = Scope(match.track)
        self.values: dict[Result, Value] = {}
        self.carries: dict[Carry, Value] = {}
        self.nexts: list[Callable[[], Value]] = []
        self.rows: dict[Any, tuple[Value, Value]] = {}
        self.constants: dict[Value, Value] = {}
        self.stacked: dict[Value, int] = {}
        self.news: dict[int, Value] = {}
        self.instead = {reader: w.first for w in written for reader in w.readers}
        self._emit()

    # -------------------------------------------------------------- ops

    def _emit(self) -> None:
        left_out = {u for w in self.written for u in w.updates}
        for offset in range(self.match.period):
            op = self.match.op(offset)
            self.inner.b.loc = op.loc
            self.outer.b.loc = op.loc and op.loc.with_note("")
            if offset in left_out:
                self.news[offset] = self._operand(offset, 1)
            elif offset in self.match.writes:
                self.values[offset, 0] = self._write(offset)
            else:
                new = self.inner.b.copy(op, [self._operand(offset, k) for k in range(len(op.operands))])
                self.values.update(((offset, k), r) for k, r in enumerate(new.results))

    def _write(self, offset: int) -> Value:
        f, move = self.inner.f, self.match.writes[offset].widened()
        x, new = [f.wrap(self._operand(offset, k)) for k in range(2)]
        return move.write(f, x, new, self._index(move)).value

    def _index(self, move: Moving) -> Expr:
        return move.index(self.inner.f, self.inner.f.wrap(self._table_row(move.table())))

    # -------------------------------------------------------------- operands

    def _operand(self, offset: int, k: int) -> Value:
        slot, operand = self.match.slots[offset][k], self.match.last(offset, k)
        moves = self.match.reads[offset][k]
        if (offset, k) in self.instead:
            return self._from_outside(Operand(self.instead[offset, k], operand.views), moves)
        match slot.kind:
            case "same":
                return self._from_outside(operand, moves)
            case "table":
                return self._views(self._constant_row(offset, k), operand.views, moves)
            case "each":
                return self._views(self._argument_row(offset, k), operand.views, moves)
            case "inner":
                return self._views(self.values[slot.offset, slot.number], operand.views, moves)
            case "carry":
                begins = [self.match.operand(t, offset, k) for t in range(slot.delay)]
                if slot.viewed:
                    given = [self.outer.views(self.outside(b.base), b.views) for b in begins]
                    return self._carry(slot, tuple(given), operand.views)
                x = self._carry(slot, tuple([self.outside(b.base) for b in begins]), ())
                return self._views(x, operand.views, moves)

    def _views(self, x: Value, views: tuple[Op, ...], moves: Moves) -> Value:
        for view, move in zip(views, moves, strict=True):
            if move is None:
                x = self.inner.view(x, view)
            else:
                move = move.widened()
                x = move.read(self.inner.f, self.inner.f.wrap(x), self._index(move)).value
        return x

    def _from_outside(self, operand: Operand, moves: Moves) -> Value:
        base, views = operand
        which = [k for k, move in enumerate(moves) if move is not None]
        if base in self.match.track.fixed and not which and _is_light(base):
            return self.inner.views(self.inner.fixed(base), views)
        if len(which) == 1 and _is_narrow(move := moves[which[0]]):
            at = which[0]
            x = self.outer.views(self.outside(base), views[:at])
            assert move is not None
            row = self._row((x, move.at.tobytes(), move.box, move.attrs.key()), lambda: self._read_all(x, move))
            return self.inner.views(row, views[at + 1 :])
        if which:
            return self._views(self._constant(self.outside(base)), views, moves)
        # Slices stay outside, so that loops around this one find its body alike in every turn.
        at = next((k for k, view in enumerate(views) if view.opdef.name == "broadcast"), len(views))
        return self.inner.views(self._constant(self.outer.views(self.outside(base), views[:at])), views[at:])

    def _read_all(self, x: Value, move: Moving) -> Value:
        return move.read_all(self.outer.f, self.outer.f.wrap(x)).value

    def _constant(self, value: Value) -> Value:
        if value not in self.constants:
            self.constants[value] = Value(value.type, hint=value.hint)
        return self.constants[value]

    def _row(self, key: Any, make: Callable[[], Value]) -> Value:
        """One row a turn of what `make` emits outside."""
        if key not in self.rows:
            outer = make()
            self.rows[key] = (Value(outer.type.with_shape(outer.type.shape[1:])), outer)
        return self.rows[key][0]

    def _table_row(self, array: Array) -> Value:
        key = (array.dtype, array.shape, array.tobytes())
        return self._row(key, lambda: table(self.outer.f, array).value)

    def _constant_row(self, offset: int, k: int) -> Value:
        """A constant that is another in each turn."""
        track = self.match.track
        values = [self.match.operand(t, offset, k).base for t in range(self.match.turns)]
        ops = [v.op for v in values]
        broadcasts = [op for op in ops if op is not None and op.opdef.name == "broadcast"]
        if len(broadcasts) == len(ops) and all(op.attrs == broadcasts[0].attrs for op in broadcasts):
            inputs = [op.operands[0] for op in broadcasts]
            if all(v.type == inputs[0].type for v in inputs):
                row = self._table_row(np.stack([track.array(v) for v in inputs]))
                return self.inner.view(row, broadcasts[0])
        return self._table_row(np.stack([track.array(v) for v in values]))

    def _argument_row(self, offset: int, k: int) -> Value:
        """An argument of the function that is another in each turn."""
        values = tuple([self.outside(self.match.operand(t, offset, k).base) for t in range(self.match.turns)])

        def stacked() -> Value:
            f = self.outer.f
            rows = [f.reshape_to(f.wrap(v), (1, *v.type.shape)) for v in values]
            return f.op("concatenate", *rows, axis=0).value

        return self._row(values, stacked)

    def _carry(self, slot: Slot, begins: tuple[Value, ...], views: tuple[Op, ...]) -> Value:
        """What was computed `len(begins)` turns before; the first turns take `begins`, values of outside."""
        key = Carry(slot.offset, slot.number, begins, tuple([(v.opdef.name, v.attrs.key()) for v in views]))
        if key in self.carries:
            return self.carries[key]
        if len(begins) == 1:
            self._add_carry(key, lambda: self.inner.views(self.values[key.offset, key.number], views))
        else:
            later = self._carry(slot, begins[1:], views)
            self._add_carry(key, lambda: later)
        return self.carries[key]

    def _add_carry(self, key: Carry, give: Callable[[], Value]) -> None:
        self.carries[key] = Value(key.begins[0].type)
        self.nexts.append(give)

    # -------------------------------------------------------------- results

    def stack(self, value: Value) -> int:
        """The number among the stacked results that gets `value` of each turn."""
        return self.stacked.setdefault(value, len(self.stacked))

    def last(self, result: Result, turns_back: int) -> int | None:
        """The number of the carry that ends as what the last turn, or one `turns_back` before it, gave as a result."""
        for number, key in enumerate(self.carries):
            if (key.offset, key.number) == result and len(key.begins) == turns_back + 1 and not key.views:
                return number
        return None

    def add_last(self, value: Value) -> int:
        """The number of a carry that no turn reads, for `value` of the last one."""
        start = self.outer.f.full(value.type, 0).value
        self._add_carry(Carry(-1, len(self.carries), (start,), ()), lambda: value)
        return len(self.carries) - 1

    def finish(self, loc: Location | None) -> tuple[list[Value], list[Value]]:
        """Emit the loop: the last carries, and what was stacked."""
        nexts = [give() for give in self.nexts]
        rows = list(self.rows.values())
        params = [*self.carries.values(), *(p for p, _ in rows), *self.constants.values()]
        for number, param in enumerate(params):
            param.index = number
        region = Region(tuple(params), tuple(self.inner.b.ops), (*nexts, *self.stacked))
        operands = [*(key.begins[0] for key in self.carries), *(outer for _, outer in rows), *self.constants]
        self.outer.b.loc = loc
        if not nexts and self._is_small(region):
            return [], self._batch(region, operands, len(rows))
        attrs = Attrs(carries=len(nexts), scanned=len(rows), length=self.match.turns, reverse=False)
        results = list(self.outer.b.add(OPS["scan"], operands, attrs, (region,)).results)
        return results[: len(nexts)], results[len(nexts) :]

    def _is_small(self, region: Region) -> bool:
        return all(r.type.size * self.match.turns <= LARGEST_BATCH for op in region.ops for r in op.results)

    def _batch(self, region: Region, operands: list[Value], rows: int) -> list[Value]:
        f, turns = RuleEmitter(self.outer.b), self.match.turns
        if region.ops and (loc := region.ops[0].loc) is not None:
            region.ops[0].loc = loc.with_note(f"rolled: {turns} turns at once")
        flags = [k < rows for k in range(len(operands))]
        results, have = batch_region(f, region, [f.wrap(v) for v in operands], flags, turns, RULES)
        return [with_rows(f, r, has, turns).value for r, has in zip(results, have, strict=True)]


def _is_light(value: Value) -> bool:
    """Whether a constant is better written down twice than handed into a loop."""
    op = value.op
    while op is not None and op.operands:
        if len(op.operands) > 1:
            return False
        op = op.operands[0].op
    return op is not None and (op.opdef.name == "iota" or op.results[0].type.size <= 64)


def _is_narrow(move: Moving | None) -> bool:
    """Whether rows, one for each turn, take not much more memory than the array they are read from."""
    if move is None:
        return False
    elements = move.turns * int(np.prod(move.box, dtype=np.int64))
    return move.is_run or elements <= max(WIDEST * int(np.prod(move.shape, dtype=np.int64)), LARGEST_BATCH >> 4)
