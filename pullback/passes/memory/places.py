"""The walk that gives each value a buffer: a new one, its operand's, or the one in which a result is wanted."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from pullback.ir.graph import Function, Op, Region, Value
from pullback.ir.plan import Copy, Slot
from pullback.passes.memory.buffers import FOREVER, Buffer, Moments, inner_regions, roots
from pullback.passes.memory.handover import Loop, Move, moves_of, stacked_next
from pullback.passes.memory.inplace import WRITES_A_PART, Operands, overwritable

Pairs = Sequence[tuple[Value, Buffer]]


class Places:
    """Buffers of all values of a function.

    A value may be wanted in a certain buffer, its target: a result in the caller's memory, what a region gives in the
    buffer of the op's result. It gets that if what the buffer held before is read no more when the value is made.

    created : buffers that need a place; `turns` : those of each `rows` op, which its turns have for themselves
    moves : of loops, the carried values that go on where they were made; only those of more than `small` bytes
    """

    def __init__(self, function: Function, small: int) -> None:
        self.buffers: dict[Value, Buffer] = {}
        self.created: list[Buffer] = []
        self.turns: list[list[Buffer]] = []
        self.copies: list[Copy] = []
        self.moves: dict[Op, tuple[Move, ...]] = {}
        self._small = small
        self._constants = 0
        self._moments = Moments(function.body)
        self._targets: dict[Value, Buffer] = {}
        for number, param in enumerate(function.params):
            self._join(param, Buffer(param.type.nbytes, 0, frozen=True, slot=Slot("arg", number)))
        slots = [Slot("result", number) for number in range(len(function.results))]
        wanted = [(v, Buffer(v.type.nbytes, 0, slot=s)) for v, s in zip(function.results, slots, strict=True)]
        for _, target in wanted:
            target.owned = True
        self._walk(function.body, wanted)

    # ------------------------------------------------------------------ regions

    def _walk(self, region: Region, wanted: Pairs) -> None:
        self._aim(region, wanted)
        for op in region.ops:
            if op.name == "reshape":
                self._reshape(op)
            elif op.name == "constant":
                slot = Slot("constant", self._constants)
                self._constants += 1
                self._join(op.results[0], Buffer(op.results[0].type.nbytes, 0, frozen=True, slot=slot))
            elif op.name in ("if", "checkpoint"):
                self._conditional(op)
            elif op.name == "rows":
                self._blocks(op)
            elif inner_regions(op):
                self._loop(op)
            else:
                self._plain(op)

    def _aim(self, region: Region, wanted: Pairs) -> None:
        """Note targets, and pass them on to operands that are overwritten on the way there."""
        same = roots(region)
        for value, target in wanted:
            self._targets.setdefault(same.get(value, value), target)
        for op in reversed(region.ops):
            aimed: set[int] = set()
            for k, numbers in overwritable(op).items():
                aim = self._targets.get(op.results[k])
                if aim is None or aim.is_row or id(numbers) in aimed:
                    continue
                aimed.add(id(numbers))
                for operand in [op.operands[number] for number in numbers]:
                    if self._moments.last(operand) <= self._moments.end[op]:
                        self._targets.setdefault(same.get(operand, operand), aim)

    @contextmanager
    def _inside(self, params: Pairs, own: Sequence[Buffer], others: Sequence[Buffer], dying: int) -> Iterator[None]:
        """How long buffers are needed, as seen from within a region.

        own : results' buffers, which the region may overwrite once it does not read what they hold
        others : more that exists, and outlasts the region
        dying : buffers not read behind this moment may be overwritten too
        """
        places = dict.fromkeys([*(b for _, b in params), *own, *others])
        before = [(b, b.last, b.owned) for b in places]
        for b in places:
            b.owned = b in own
            b.last = -1 if b.owned or b.last <= dying else FOREVER
        for param, b in params:
            self._join(param, b)
        yield
        for b, last, owned in before:
            b.last, b.owned = last, owned

    # ------------------------------------------------------------------ one value

    def _new(self, value: Value, at: int) -> Buffer:
        buffer = Buffer(value.type.nbytes, at)
        self.created.append(buffer)
        return buffer

    def _join(self, value: Value, buffer: Buffer) -> None:
        self.buffers[value] = buffer
        buffer.hold(self._moments.last(value))

    def _wanted(self, value: Value, at: int) -> Buffer | None:
        """The value's target, if what is in there is read no more."""
        target = self._targets.get(value)
        if target is None or target.last >= at or target.nbytes != value.type.nbytes:
            return None
        return target

    def _reshape(self, op: Op) -> None:
        source, result = self.buffers[op.operands[0]], op.results[0]
        # A row moves with the turn, which is known of the parameter only, and a constant is known by its op: in another
        # shape they are copies.
        copied = source.is_row or (source.slot is not None and source.slot.space == "constant")
        self._join(result, self._new(result, self._moments.start[op]) if copied else source)

    # ------------------------------------------------------------------ ops without regions

    def _plain(self, op: Op) -> None:
        at, pairs = self._moments.start[op], overwritable(op)
        operands = self._operands(op, at)
        for k in sorted(range(len(op.results)), key=lambda k: op.results[k] not in self._targets):
            result = op.results[k]
            place = self._over(operands, pairs.get(k), result, at) or self._wanted(result, at) or self._new(result, at)
            self._join(result, place)
            operands.taken.add(place)
        if op.name in WRITES_A_PART and self.buffers[op.results[0]] is not self.buffers[op.operands[0]]:
            operands.taken.clear()
            reason = self._obstacle(operands, 0, op.results[0]) or "its result is wanted in other memory"
            self.copies.append(Copy(_title(op), reason))

    def _operands(self, op: Op, at: int) -> Operands:
        return Operands([self.buffers[v] for v in op.operands], at)

    def _over(self, operands: Operands, numbers: list[int] | None, result: Value, at: int) -> Buffer | None:
        """The buffer of an operand that a result is written over: its target before others; none if that is free."""
        if not numbers:
            return None
        target = self._targets.get(result)
        if target is not None and target in operands.buffers:
            number = operands.buffers.index(target)
            if number in numbers and not self._obstacle(operands, number, result):
                return target
        wanted = self._wanted(result, at)
        if wanted is not None and not (wanted.carried and result.op is not None and result.op.name in WRITES_A_PART):
            return None
        return operands.first_free(numbers, result.type.nbytes, target)

    def _obstacle(self, operands: Operands, number: int, result: Value) -> str:
        """Why the op may not write `result` over an operand; empty if it may."""
        return operands.obstacle(number, result.type.nbytes, self._targets.get(result))

    # ------------------------------------------------------------------ if, checkpoint

    def _conditional(self, op: Op) -> None:
        start, end = self._moments.start[op], self._moments.end[op]
        operands = self._operands(op, end)
        for k, result in enumerate(op.results):
            kept = self._passed_through(op, operands, k)
            buffer = kept or self._wanted(result, start) or self._new(result, start)
            self._join(result, buffer)
            operands.taken.add(buffer)
            buffer.hold(end)
        results = [self.buffers[r] for r in op.results]
        places = [self.buffers[v] for v in op.operands[_first(op) :]]
        for region in op.regions:
            with self._inside(list(zip(region.params, places, strict=True)), results, [], end):
                self._walk(region, list(zip(region.results, results, strict=True)))

    def _passed_through(self, op: Op, operands: Operands, k: int) -> Buffer | None:
        """The buffer of an operand that dies here and that a branch gives, or what it makes of it in place."""
        for region in op.regions:
            origin = _origin(region.results[k])
            number = origin.index + _first(op)
            if origin.op is not None or not self._may_keep(op, operands, number, k):
                continue
            if not any(_gives(r, origin.index, j) for r in op.regions for j in range(len(op.results)) if j != k):
                return self.buffers[op.operands[number]]
        return None

    def _may_keep(self, op: Op, operands: Operands, number: int, k: int) -> bool:
        result = op.results[k]
        return op.operands[number].type == result.type and not self._obstacle(operands, number, result)

    # ------------------------------------------------------------------ scan, while

    def _loop(self, op: Op) -> None:
        start, end = self._moments.start[op], self._moments.end[op]
        first = 1 if op.name == "scan" and op.attrs["length"] < 0 else 0
        carries = op.attrs["carries"]
        operands = self._operands(op, end)
        for k, result in enumerate(op.results):
            kept = k < carries and self._may_keep(op, operands, first + k, k)
            place = self.buffers[op.operands[first + k]] if kept else self._wanted(result, start)
            self._join(result, place or self._new(result, start))
            self.buffers[result].hold(end)
            operands.taken.add(self.buffers[result])
        results = [self.buffers[r] for r in op.results]
        carried, stacked = results[:carries], results[carries:]
        places = [*carried, *self._rest(op, first + carries)]
        *tests, body = op.regions
        for region in tests:
            with self._inside(list(zip(region.params, places, strict=True)), [], results, -1):
                self._walk(region, [])
        large = [k for k, b in enumerate(carried) if b.nbytes > self._small]
        loop = Loop(op, carried, stacked, large, stacked_next(op, large, _may_be_row(body)))
        own = [b for k, b in enumerate(carried) if k not in loop.rows]
        before = len(self.created)
        with self._inside(list(zip(body.params, places, strict=True)), own, results, -1):
            outer = [carried[k].carried for k in large]
            for k in large:
                carried[k].owned, carried[k].carried = False, True
            self._walk(body, self._wishes(loop))
            for k, flag in zip(large, outer, strict=True):
                carried[k].carried = flag
        self._hand_over(loop, before)

    def _wishes(self, loop: Loop) -> list[tuple[Value, Buffer]]:
        """Where the results of a body are wanted: in a row, if the next turn can read it there, else as carried."""
        op, body, carries = loop.op, loop.body, len(loop.carried)
        rows: list[tuple[Value, Buffer]] = []
        if op.name == "scan" and op.attrs["length"] >= 0:
            rows = self._rows(body, zip(body.results[carries:], op.results[carries:], strict=True))
        before = {body.results[k] for k in loop.rows}
        carried = [(v, b) for v, b in zip(body.results, loop.carried, strict=False) if v not in before]
        return [*carried, *rows]

    def _hand_over(self, loop: Loop, before: int) -> None:
        moves = moves_of(loop, self.buffers, set(self.created[before:]))
        for move in moves.values():
            if move.kind == "next":
                move.given.owner = loop.stacked[move.stacked]
                self.created.remove(move.given)
            elif move.kind == "place":
                move.given.birth = min(move.given.birth, self._moments.start[loop.op])
                move.given.hold(self._moments.end[loop.op])
        if moves:
            self.moves[loop.op] = tuple(moves.values())
        for k, (value, place) in enumerate(zip(loop.body.results, loop.carried, strict=False)):
            if k not in moves and self.buffers[value] is not place:
                reason = f"carried value {k} is made where its old value is still read"
                self.copies.append(Copy(_title(loop.op), reason))

    def _rest(self, op: Op, first: int) -> list[Buffer]:
        """The places of parameters that are not carried: rows of what is scanned, then constants."""
        scanned = first + (op.attrs["scanned"] if op.name == "scan" else 0)
        rows = [self.buffers[v].row(0) for v in op.operands[first:scanned]]
        return [*rows, *(self.buffers[v] for v in op.operands[scanned:])]

    def _rows(self, body: Region, stacked: Iterable[tuple[Value, Value]]) -> list[tuple[Value, Buffer]]:
        """Stacked values and the rows they are wanted in; without those that have another name or place."""
        may_be_row = _may_be_row(body)
        return [(v, self.buffers[r].row(v.type.nbytes)) for v, r in stacked if may_be_row(v)]

    def _blocks(self, op: Op) -> None:
        """The turns of `rows` may run at once, so that all they do not read or give is made by each for itself."""
        start, (body,) = self._moments.start[op], op.regions
        for result in op.results:
            self._join(result, self._wanted(result, start) or self._new(result, start))
            self.buffers[result].hold(self._moments.end[op])
        mapped = op.attrs["mapped"]
        places = [self.buffers[v].row(0) if k < mapped else self.buffers[v] for k, v in enumerate(op.operands)]
        stacked = [self.buffers[r] for r in op.results]
        outside, self.created = self.created, []
        with self._inside(list(zip(body.params, places, strict=True)), [], stacked, -1):
            self._walk(body, self._rows(body, zip(body.results, op.results, strict=True)))
        self.turns.append(self.created)
        self.created = outside


def _first(op: Op) -> int:
    """The operand that the first parameter of the regions of an `if` or `checkpoint` stands for."""
    return 1 if op.name == "if" else 0


def _origin(value: Value) -> Value:
    """What a value was made of in place, as far as ops that write a part and reshapes go."""
    while value.op is not None and (value.op.name in WRITES_A_PART or value.op.name == "reshape"):
        value = value.op.operands[0]
    return value


def _may_be_row(body: Region) -> Callable[[Value], bool]:
    """Whether a value may be made in the row of a turn: it has no other name, and no region sees it."""
    elsewhere = {v for op in body.ops if op.name == "reshape" or inner_regions(op) for v in op.operands}

    def test(value: Value) -> bool:
        op = value.op
        return op is not None and op.name != "reshape" and not inner_regions(op) and value not in elsewhere

    return test


def _gives(region: Region, number: int, k: int) -> bool:
    """Whether the region's k-th result is a parameter, as it is or in another shape."""
    value = region.results[k]
    while value.op is not None and value.op.name == "reshape":
        value = value.op.operands[0]
    return value is region.params[number]


def _title(op: Op) -> str:
    return f"{op.name} at {op.loc}" if op.loc is not None else op.name
