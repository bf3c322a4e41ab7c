"""The planned region: kernels and the other ops in an order that follows the user's, so that buffers live briefly."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping

from pullback.ir.graph import Attrs, Literal, Op, Region, Value
from pullback.ir.ops import OPS
from pullback.passes.base import has_effect, with_operands
from pullback.passes.fuse.bodies import Part, kernel_op, parts_of
from pullback.passes.fuse.kernels import Form, Kernel
from pullback.passes.fuse.table import Info, Kind, Table

MapRegion = Callable[[Region], Region]

WRITERS = frozenset({"update", "scatter", "scatter_add"})
"""Ops that write a part of their first operand: over it, if nobody reads it later."""

SMALL_PART = 4
"""A part of an array is stored for its own if that saves a copy of so many times as much."""

LOOK_AHEAD = 256
"""So many tasks are looked at to see whether one needs another, lest the search be a square of the tasks."""


class Task:
    """One op to come: what it reads, what it makes, where the user had it."""

    __slots__ = ("followers", "makes", "op", "part", "position", "reads", "waits")

    def __init__(
        self, position: int, reads: Iterable[Info], makes: list[Info], op: Op | None, part: Part | None
    ) -> None:
        self.position = position
        self.reads = list(reads)
        self.makes = makes
        self.op = op
        self.part = part
        self.followers: list[Task] = []
        self.waits = 0

    def wait_for(self, other: "Task") -> None:
        other.followers.append(self)
        self.waits += 1


def tasks_of(region: Region, table: Table, kernels: list[Kernel]) -> list[Task]:
    """What is to be written out: all kernels, and the ops that stay; each knows what it waits for."""
    tasks = [*_kernel_tasks(kernels), *_op_tasks(region, table)]
    _link(tasks)
    return tasks


def planned_region(region: Region, table: Table, tasks: list[Task], inner: MapRegion) -> Region:
    """Write out the tasks in order; `inner` plans the regions of ops."""
    values: dict[Info, Value] = {table.infos[p]: p for p in region.params}
    ops = []
    for task in _in_order(tasks):
        op = _write(task, values, inner)
        values.update(zip(task.makes, op.results, strict=True))
        ops.append(op)
    return Region(region.params, tuple(ops), tuple([values[table.infos[r]] for r in region.results]))


def _kernel_tasks(kernels: list[Kernel]) -> list[Task]:
    for kernel in kernels:
        kernel.sinks.sort(key=lambda s: s.info.position)
    parts = [part for kernel in kernels for part in parts_of(kernel)]
    return [Task(p.position(), p.reads(), [s.info for s in p.sinks], None, p) for p in parts]


def _op_tasks(region: Region, table: Table) -> list[Task]:
    tasks = []
    for position, op in enumerate(region.ops):
        results = [table.infos[v] for v in op.results]
        if has_effect(op) or any(_is_op(r) for r in results):
            tasks.append(Task(position, [table.infos[v] for v in op.operands], results, op, None))
    return tasks


def _is_op(info: Info) -> bool:
    """Whether the value is wanted as the result of an op that is no kernel."""
    if info.kind == Kind.GIVEN:
        return info.hard or bool(info.demands)
    return info.hard and (info.aliased or info.kind == Kind.NUMBER)


def _link(tasks: list[Task]) -> None:
    """Let each task wait for those it reads from, and effects for one another."""
    made_by = {info: task for task in tasks for info in task.makes}
    last_effect: Task | None = None
    for task in tasks:
        before = {made_by[i] for i in task.reads if i in made_by}
        if task.op is not None and has_effect(task.op):
            if last_effect is not None:
                before.add(last_effect)
            last_effect = task
        for other in before:
            task.wait_for(other)
    _readers_first(tasks)


def _in_order(tasks: list[Task]) -> Iterable[Task]:
    """Tasks after those they wait for, otherwise by position."""
    heap = [(task.position, k, task) for k, task in enumerate(tasks) if not task.waits]
    heapq.heapify(heap)
    count = len(tasks)
    while heap:
        _, _, task = heapq.heappop(heap)
        yield task
        for follower in task.followers:
            follower.waits -= 1
            if not follower.waits:
                count += 1
                heapq.heappush(heap, (follower.position, count, follower))


# ------------------------------------------------------------------ what is changed in place


def _readers_first(tasks: list[Task]) -> None:
    """Let tasks that change an array in place wait for what else reads the array, unless that needs the change."""
    readers = _readers(tasks)
    for task in tasks:
        for other in _other_readers(task, readers):
            after = _behind(task)
            if after is not None and other not in after:
                task.wait_for(other)


def late_reads(tasks: list[Task]) -> list[Value]:
    """Small parts of arrays that kernels read which cannot come before the array is changed: better stored before."""
    readers = _readers(tasks)
    found: dict[Value, None] = {}
    for task in tasks:
        others = _other_readers(task, readers)
        after = _behind(task) if others else None
        for other in others:
            if other.part is not None and after is not None and other in after:
                found.update(dict.fromkeys(_parts_read(other.part, _written_over(task))))
    return list(found)


def _parts_read(part: Part, arrays: list[Info]) -> Iterator[Value]:
    for node in part.nodes:
        if node.form == Form.GATHER:
            source = node.info.inputs[0]
        elif node.form in (Form.SAME, Form.WITHIN) and node.args[0].form == Form.LOAD:
            source = node.args[0].info
        else:
            continue
        if source in arrays and node.info is not source and SMALL_PART * node.info.size <= source.size:
            yield node.info.value


def _readers(tasks: list[Task]) -> dict[Info, list[Task]]:
    readers: dict[Info, list[Task]] = {}
    for task in tasks:
        for info in dict.fromkeys(task.reads):
            readers.setdefault(info, []).append(task)
    return readers


def _other_readers(task: Task, readers: Mapping[Info, list[Task]]) -> list[Task]:
    """Who else reads what the task writes over."""
    return list(dict.fromkeys(t for info in _written_over(task) for t in readers[info] if t is not task))


def _written_over(task: Task) -> list[Info]:
    """What the task changes in place, if nobody needs it as it was."""
    op = task.op
    if op is None:
        return []
    if op.name in WRITERS:
        return [task.reads[0]]
    if op.name in ("scan", "while"):
        first = 1 if op.attrs.get("length", 0) < 0 else 0
        return list(task.reads[first : first + op.attrs["carries"]])
    return []


def _behind(task: Task) -> set[Task] | None:
    """The tasks that need `task`; None if they are too many to look at."""
    found, stack = {task}, [task]
    while stack:
        for follower in stack.pop().followers:
            if follower not in found:
                found.add(follower)
                stack.append(follower)
        if len(found) > LOOK_AHEAD:
            return None
    return found


def _write(task: Task, values: dict[Info, Value], inner: MapRegion) -> Op:
    if task.part is not None:
        return kernel_op(task.part, values.__getitem__)
    op = task.op
    assert op is not None
    if task.makes and task.makes[0].aliased:
        return _alias(task.makes[0], values[task.makes[0].inputs[0]])
    operands = tuple([values[i] for i in task.reads])
    regions = tuple([inner(r) for r in op.regions])
    unchanged = operands == op.operands and not regions
    return op if unchanged else with_operands(op, operands, regions)


def _alias(info: Info, source: Value) -> Op:
    assert info.op is not None
    if source.op is not None and source.op.name == "constant":
        literal = Literal(source.op.attrs["value"].array.reshape(info.shape))
        return Op(source.op.opdef, (), Attrs(value=literal), (info.value.type,), (), info.op.loc)
    if info.op.name == "reshape":
        return with_operands(info.op, (source,), ())
    made = Op(OPS["reshape"], (source,), Attrs(shape=info.shape), (info.value.type,), (), info.op.loc)
    made.results[0].hint = info.value.hint
    return made
