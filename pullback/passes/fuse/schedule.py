"""The planned region: kernels and the other ops in an order that follows the user's, so that buffers live briefly."""

import heapq
from collections.abc import Callable, Iterable

from pullback.ir.graph import Attrs, Literal, Op, Region, Value
from pullback.ir.ops import OPS
from pullback.passes.base import has_effect, with_operands
from pullback.passes.fuse.bodies import Part, kernel_op, parts_of
from pullback.passes.fuse.kernels import Kernel
from pullback.passes.fuse.table import Info, Kind, Table

MapRegion = Callable[[Region], Region]


class Task:
    """One op to come: what it reads, what it makes, where the user had it."""

    __slots__ = ("followers", "makes", "op", "part", "position", "reads", "waits")

    def __init__(
        self, position: int, reads: Iterable[Info], makes: list[Info], op: Op | None, part: Part | None
    ) -> None:
        self.position = position
        self.reads = reads
        self.makes = makes
        self.op = op
        self.part = part
        self.followers: list[Task] = []
        self.waits = 0


def planned_region(region: Region, table: Table, kernels: list[Kernel], inner: MapRegion) -> Region:
    """Write out all kernels and the ops that stay; `inner` plans the regions of the latter."""
    tasks = [*_kernel_tasks(kernels), *_op_tasks(region, table)]
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


def _in_order(tasks: list[Task]) -> Iterable[Task]:
    """Tasks after those they read from, effects in their order, otherwise by position."""
    made_by = {info: task for task in tasks for info in task.makes}
    last_effect: Task | None = None
    for task in tasks:
        before = {made_by[i] for i in task.reads if i in made_by}
        if task.op is not None and has_effect(task.op):
            if last_effect is not None:
                before.add(last_effect)
            last_effect = task
        task.waits = len(before)
        for other in before:
            other.followers.append(task)
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
