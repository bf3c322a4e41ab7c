"""Runs a memory plan: values live in real buffers where the plan puts them, and memory that holds nothing is poisoned.

Independent of the planner: what is alive is worked out here, from uses. A plan that lets two living values meet,
overwrites an argument or leaves a result unwritten gives other numbers than the interpreter, or fails an assertion.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.ir.graph import Op, Region, Value, walk
from pullback.ir.interpret import evaluate_op
from pullback.ir.plan import Handover, Plan, Slot
from pullback.ir.tape import read_tape, tape_store, write_tape

Array = np.ndarray[Any, Any]
Span = tuple[str, int, int, int]  # space, number, first byte, byte behind the last
POISON = 0xA5
WRITES_A_PART = ("update", "scatter", "scatter_add")


def run_plan(plan: Plan, arguments: Sequence[Array]) -> tuple[Array, ...]:
    """The results of the planned function."""
    with tape_store(), np.errstate(all="ignore"):
        return _Machine(plan, arguments).run()


class _Machine:
    def __init__(self, plan: Plan, arguments: Sequence[Array]) -> None:
        self.plan = plan
        self.arguments = [np.array(a, order="C") for a in arguments]
        self.kept = [a.tobytes() for a in self.arguments]
        self.blocks: dict[tuple[str, int], Array] = {("arena", 0): _poisoned(plan.arena_bytes)}
        for k, nbytes in enumerate(plan.stack_bytes):
            self.blocks["stack", k] = _poisoned(nbytes)
        for k, result in enumerate(plan.function.results):
            self.blocks["result", k] = _poisoned(result.type.nbytes)
        for k, argument in enumerate(self.arguments):
            self.blocks["arg", k] = argument.reshape(-1).view(np.uint8)
        for op in walk(plan.function.body):
            if op.name == "constant" and op.results[0] in plan.slots:
                number = plan.slots[op.results[0]].number
                assert ("constant", number) not in self.blocks
                self.blocks["constant", number] = op.attrs["value"].array.reshape(-1).view(np.uint8)
        self.moved: dict[Value, int] = {}  # rows of scans: bytes from the slot
        self.given: dict[Value, Array] = {}  # rows of tapes
        self.names: dict[Slot, tuple[str, int, int]] = {}  # where slots are that change places

    def run(self) -> tuple[Array, ...]:
        function = self.plan.function
        self.region(function.body, [])
        for k, value in self.plan.result_copies:
            self.blocks["result", k][...] = self.read(value).reshape(-1).view(np.uint8)
        assert [a.tobytes() for a in self.arguments] == self.kept, "an argument was written to"
        blocks = [self.blocks["result", k] for k in range(len(function.results))]
        return tuple(b.view(v.type.dtype).reshape(v.type.shape) for b, v in zip(blocks, function.results, strict=True))

    # ------------------------------------------------------------------ memory

    def span(self, value: Value) -> Span:
        slot: Slot = self.plan.slots[value]
        assert slot.offset % 64 == 0
        space, number, offset = self.where(slot)
        first = offset + self.moved.get(value, 0)
        return space, number, first, first + value.type.nbytes

    def where(self, slot: Slot) -> tuple[str, int, int]:
        return self.names.get(slot, (slot.space, slot.number, slot.offset))

    def read(self, value: Value) -> Array:
        if value in self.given:
            return self.given[value]
        space, number, first, stop = self.span(value)
        block = self.blocks[space, number]
        assert stop <= block.size, f"{value!r} lies outside of {space} {number}"
        return block[first:stop].copy().view(value.type.dtype).reshape(value.type.shape)

    def write(self, value: Value, array: Array) -> None:
        space, number, first, stop = self.span(value)
        assert space in ("arena", "stack", "result"), f"{value!r} is written to {space}"
        data = np.ascontiguousarray(array, value.type.dtype).reshape(-1).view(np.uint8)
        self.blocks[space, number][first:stop] = data

    def poison(self, alive: Sequence[Span]) -> None:
        """Overwrite all scratch memory that none of `alive` covers."""
        for (space, number), block in self.blocks.items():
            if space in ("arg", "constant"):
                continue
            free = np.ones(block.size, np.bool_)
            for where, index, first, stop in alive:
                if (where, index) == (space, number):
                    free[first:stop] = False
            block[free] = POISON

    # ------------------------------------------------------------------ regions

    def region(self, region: Region, outer: Sequence[Span]) -> None:
        """Run the ops of a region; `outer` is memory that must outlive it."""
        last = {v: k for k, op in enumerate(region.ops) for v in op.operands}
        last.update(dict.fromkeys(region.results, len(region.ops)))
        known = [p for p in region.params if p not in self.given]
        for k, op in enumerate(region.ops):
            behind = [*outer, *(self.span(v) for v in known if last.get(v, -1) > k)]
            self.check_overlap(op)
            self.step(op, behind)
            known += op.results
            self.poison([*outer, *(self.span(v) for v in known if last.get(v, -1) > k)])

    def step(self, op: Op, behind: Sequence[Span]) -> None:
        if op.name == "constant":
            return
        if op.name == "reshape":
            self.copy(op.results[0], op.operands[0])
        elif op.name in ("if", "checkpoint"):
            self.conditional(op, behind)
        elif op.name == "scan":
            self.scan(op, behind)
        elif op.name == "while":
            self.loop(op, behind)
        elif op.name == "rows":
            self.rows(op, behind)
        else:
            results = evaluate_op(op, [self.read(v) for v in op.operands])
            for value, array in zip(op.results, results, strict=True):
                self.write(value, array)

    def enter(self, region: Region, operands: Sequence[Value]) -> None:
        for param, operand in zip(region.params, operands, strict=True):
            if operand in self.given:
                self.given[param] = self.given[operand]
                continue
            self.moved[param] = self.moved.get(operand, 0)
            assert self.span(param) == self.span(operand), "a parameter lives elsewhere than its operand"

    def copy(self, target: Value, source: Value) -> None:
        if source in self.given or self.span(target) != self.span(source):
            self.write(target, self.read(source).reshape(target.type.shape))

    def conditional(self, op: Op, behind: Sequence[Span]) -> None:
        first = 1 if op.name == "if" else 0
        region = op.regions[0 if not first or bool(self.read(op.operands[0])) else 1]
        self.enter(region, op.operands[first:])
        self.region(region, behind)
        for target, source in zip(op.results, region.results, strict=True):
            self.copy(target, source)

    # ------------------------------------------------------------------ loops

    def scan(self, op: Op, behind: Sequence[Span]) -> None:
        (body,), length, carries = op.regions, op.attrs["length"], op.attrs["carries"]
        dynamic = length < 0
        turns = int(self.read(op.operands[0])) if dynamic else length
        operands = op.operands[1:] if dynamic else op.operands
        initial, scanned = operands[:carries], operands[carries : carries + op.attrs["scanned"]]
        constants = operands[carries + len(scanned) :]
        stacked: list[list[Array]] = [[] for _ in body.results[carries:]]
        tapes = {v: read_tape(self.read(v)) for v in scanned} if dynamic else {}
        kept = [*behind, *(self.span(v) for v in (*scanned, *constants) if v not in self.given)]
        kept += [self.span(v) for v in op.results[carries:]]
        handed = _Handed(self, op)
        handed.begin(initial, turns - 1 if op.attrs["reverse"] else 0)
        for turn in range(turns - 1, -1, -1) if op.attrs["reverse"] else range(turns):
            params = iter(body.params)
            self.enter_carried(params, op.results[:carries], body)
            for param, operand in zip(params, scanned, strict=False):
                self.enter_row(param, operand, turn, tapes)
                if param is body.params[carries + len(scanned) - 1]:
                    break
            for param, operand in zip(body.params[carries + len(scanned) :], constants, strict=True):
                self.pass_on(param, operand)
            if not dynamic:
                self.place_stacked(op, body, turn)
            handed.enter_turn(turn)
            self.region(body, kept)
            self.stack(op, body, turn, stacked, handed)
            handed.leave_turn(turn)
        handed.end()
        if dynamic:
            for result, column in zip(op.results[carries:], stacked, strict=True):
                self.write(result, write_tape(column[::-1] if op.attrs["reverse"] else column))

    def rows(self, op: Op, behind: Sequence[Span]) -> None:
        (body,), mapped = op.regions, op.attrs["mapped"]
        kept = [*behind, *(self.span(v) for v in (*op.operands, *op.results) if v not in self.given)]
        made = [v for inner in body.ops for v in inner.results if v not in body.results]
        stacks = {self.plan.slots[v].number for v in made if self.plan.slots[v].space == "stack"}
        others = {s.number for v, s in self.plan.slots.items() if s.space == "stack" and v.op not in body.ops}
        assert not stacks & others, "what the turns have for themselves is used elsewhere"
        assert all(self.plan.slots[v].space == "stack" for v in made)
        for turn in np.random.default_rng(0).permutation(op.attrs["count"]):
            for k, (param, operand) in enumerate(zip(body.params, op.operands, strict=True)):
                if k < mapped:
                    self.enter_row(param, operand, int(turn), {})
                else:
                    self.pass_on(param, operand)
            for result, value in zip(op.results, body.results, strict=True):
                if self.plan.slots[value] == self.plan.slots[result]:
                    self.moved[value] = self.moved.get(result, 0) + int(turn) * value.type.nbytes
            self.region(body, kept)
            for result, value in zip(op.results, body.results, strict=True):
                self.write_row(result, int(turn), value)

    def enter_carried(self, params: Any, results: Sequence[Value], body: Region) -> None:
        for result in results:
            param = next(params)
            assert self.plan.slots[param] == self.plan.slots[result], "a carried value has no place of its own"

    def enter_row(self, param: Value, operand: Value, turn: int, tapes: Any) -> None:
        if tapes:
            self.given[param] = np.asarray(tapes[operand][turn])
        elif operand in self.given:
            self.given[param] = self.given[operand][turn]
        else:
            assert self.plan.slots[param] == self.plan.slots[operand]
            self.moved[param] = self.moved.get(operand, 0) + turn * param.type.nbytes

    def pass_on(self, param: Value, operand: Value) -> None:
        if operand in self.given:
            self.given[param] = self.given[operand]
        else:
            self.moved[param] = self.moved.get(operand, 0)
            assert self.span(param) == self.span(operand)

    def place_stacked(self, op: Op, body: Region, turn: int) -> None:
        carries = op.attrs["carries"]
        for result, value in zip(op.results[carries:], body.results[carries:], strict=True):
            if self.plan.slots[value] == self.plan.slots[result]:
                assert value.op is not None
                self.moved[value] = self.moved.get(result, 0) + turn * value.type.nbytes

    def stack(self, op: Op, body: Region, turn: int, columns: list[list[Array]], handed: "_Handed") -> None:
        carries = op.attrs["carries"]
        rows = zip(op.results[carries:], body.results[carries:], columns, strict=True)
        for number, (result, value, column) in enumerate(rows):
            if any(move.kind == "next" and move.stacked == number for move in handed.moves):
                continue
            if op.attrs["length"] < 0:
                assert value in self.given or self.plan.slots[value] != self.plan.slots[result]
                column.append(self.read(value))
                continue
            self.write_row(result, turn, value)

    def write_row(self, result: Value, turn: int, value: Value) -> None:
        space, number, first, _ = self.span(result)
        first += turn * value.type.nbytes
        data = np.ascontiguousarray(self.read(value)).reshape(-1).view(np.uint8)
        self.blocks[space, number][first : first + value.type.nbytes] = data

    def loop(self, op: Op, behind: Sequence[Span]) -> None:
        condition, body = op.regions
        carries = op.attrs["carries"]
        carried, constants = op.results[:carries], op.operands[carries:]
        handed = _Handed(self, op)
        handed.begin(op.operands[:carries], 0)
        columns: list[list[Array]] = [[] for _ in body.results[carries:]]
        kept = [*behind, *(self.span(v) for v in constants if v not in self.given)]
        turns = 0
        while True:
            for region in (condition, body):
                self.enter_carried(iter(region.params), carried, region)
                for param, operand in zip(region.params[carries:], constants, strict=True):
                    self.pass_on(param, operand)
            self.region(condition, [*kept, *(self.span(v) for v in carried)])
            if not bool(self.read(condition.results[0])):
                break
            self.region(body, kept)
            for value, column in zip(body.results[carries:], columns, strict=True):
                column.append(self.read(value))
            handed.leave_turn(turns)
            turns += 1
        handed.end()
        if columns:
            self.write(op.results[carries], np.asarray(turns))
            for result, column in zip(op.results[carries + 1 :], columns, strict=True):
                self.write(result, write_tape(column))

    # ------------------------------------------------------------------ in place

    def check_overlap(self, op: Op) -> None:
        """Results share memory with operands only where the op reads no element after it has written it."""
        if op.name == "constant" or (op.regions and op.name != "kernel"):
            return
        for k, result in enumerate(op.results):
            for number, operand in enumerate(op.operands):
                if operand in self.given or not _meet(self.span(result), self.span(operand)):
                    continue
                assert self.span(result) == self.span(operand), f"{op.name} reads what it overwrites in part"
                assert op.name == "reshape" or _is_in_place(op, number, k), f"{op.name} reads what it has overwritten"
            for other in op.results[:k]:
                assert not _meet(self.span(result), self.span(other)), "two results share memory"


class _Handed:
    """The carried values of a loop: most are copied to their one place, others go on where they were made."""

    def __init__(self, machine: _Machine, op: Op) -> None:
        self.machine, self.op = machine, op
        self.body, self.carries = op.regions[-1], op.attrs["carries"]
        self.moves = machine.plan.handovers.get(op, ())
        self.slot = {move.carry: machine.plan.slots[op.results[move.carry]] for move in self.moves}
        self.home = {k: machine.where(slot) for k, slot in self.slot.items()}
        self.whole = {move: machine.span(op.results[self.carries + move.stacked]) for move in self.moves}
        assert not {move.carry for move in self.moves} - set(range(self.carries))
        slots = [*self.slot.values(), *(move.given for move in self.moves if move.kind == "place")]
        self.before = {slot: machine.names.get(slot) for slot in [*slots, *(move.given for move in self.moves)]}
        for slot in slots:
            machine.names[slot] = machine.where(slot)

    def row(self, move: Handover, turn: int) -> tuple[str, int, int]:
        space, number, first, _ = self.whole[move]
        return space, number, first + turn * self.op.results[move.carry].type.nbytes

    def begin(self, starts: Sequence[Value], first_turn: int) -> None:
        for target, source in zip(self.op.results[: self.carries], starts, strict=True):
            array = self.machine.read(source)
            for move in self.moves:
                if move.kind == "next" and target is self.op.results[move.carry]:
                    self.machine.names[self.slot[move.carry]] = self.row(move, first_turn)
            self.machine.write(target, array)

    def enter_turn(self, turn: int) -> None:
        step = -1 if self.op.attrs["reverse"] else 1
        for move in self.moves:
            if move.kind == "next":
                last = turn == (0 if step < 0 else self.op.attrs["length"] - 1)
                self.machine.names[self.slot[move.carry]] = self.row(move, turn)
                self.machine.names[move.given] = self.home[move.carry] if last else self.row(move, turn + step)

    def leave_turn(self, turn: int) -> None:
        machine, given = self.machine, self.body.results[: self.carries]
        kept = [k for k in range(self.carries) if k not in self.slot]
        arrays = {k: machine.read(given[k]) for k in kept}
        for k, array in arrays.items():
            machine.write(self.op.results[k], array)
        now = dict(machine.names)
        places = [move for move in self.moves if move.kind == "place"]
        own, made = [self.slot[m.carry] for m in places], [m.given for m in places]
        assert len(set(own)) == len(own) == len(set(made))
        free, left = [s for s in made if s not in own], [s for s in own if s not in made]
        for target, source in zip([*own, *free], [*made, *left], strict=True):
            machine.names[target] = now[source]
        for move in self.moves:
            if move.kind == "row":
                assert machine.plan.slots[given[move.carry]] == move.given
                machine.names[self.slot[move.carry]] = self.row(move, turn)

    def end(self) -> None:
        arrays = {m.carry: self.machine.read(self.op.results[m.carry]) for m in self.moves if m.kind != "next"}
        for slot, place in self.before.items():
            self.machine.names.pop(slot, None)
            if place is not None:
                self.machine.names[slot] = place
        for k, array in arrays.items():
            self.machine.write(self.op.results[k], array)


def _is_in_place(op: Op, number: int, k: int) -> bool:
    if op.name in WRITES_A_PART:
        return number == 0 and op.operands.count(op.operands[0]) == 1
    if op.name != "kernel":
        return False
    store = op.attrs["stores"][k]
    loads = [load for load in op.attrs["loads"] if load.operand == number]
    computed = any(inner.attrs["operand"] == number for inner in op.regions[0].ops if inner.name == "load_at")
    return store.kind == "store" and not computed and all(ld.at == store.at and not ld.bounds for ld in loads)


def _meet(one: Span, other: Span) -> bool:
    return one[:2] == other[:2] and one[2] < other[3] and other[2] < one[3]


def _poisoned(nbytes: int) -> Array:
    return np.full(nbytes, POISON, np.uint8)
