"""Fusion: an optimised function becomes a planned one, in which elementwise work, views and reductions are kernels.

`components` writes out short axes. `table` says of each value when it can be had; `sweep` walks backward and decides
what each kernel computes, stores and loads (`homes` finds the kernel, `maps` the index arithmetic, `cost` the prices);
`bodies` and `schedule` write it out. `rows` then brings kernels together that hand each other rows.
"""

from dataclasses import replace

from pullback.config import Options
from pullback.ir.graph import Function, Region
from pullback.ir.types import Shape
from pullback.passes.fuse.components import write_out
from pullback.passes.fuse.constants import sink_constants
from pullback.passes.fuse.homes import Homes
from pullback.passes.fuse.rows import form_rows
from pullback.passes.fuse.schedule import late_reads, planned_region, tasks_of
from pullback.passes.fuse.sweep import Sweep
from pullback.passes.fuse.table import Cut, Table

ROUNDS = 8

PATIENT = 1
"""Rounds in which a value is at first only kept from readers through views; later it is stored for all at once."""


def fuse(function: Function, options: Options | None = None) -> Function:
    """Plan the kernels of an optimised function. Near-linear in the number of ops.

    Values are what the ops say, bit for bit, but for the order in which reductions add up.
    """
    return replace(function, body=_fuse_region(sink_constants(function.body)), stage="planned")


def _fuse_region(region: Region) -> Region:
    """Rounds until one finds no value that it would rather have had stored before."""
    region, stored = write_out(region)
    cuts = dict.fromkeys(stored, Cut.ALL)
    splits: dict[Shape, tuple[int, int]] = {}
    for left in range(ROUNDS, -1, -1):
        if not left:  # give up looking: every value is stored
            cuts = {v: Cut.ALL for op in region.ops for v in op.results}
        table, homes = Table(region, cuts), Homes(splits)
        sweep = Sweep(region, table, homes)
        sweep.run()
        cuts.update(sweep.cuts if left > ROUNDS - PATIENT else dict.fromkeys(sweep.cuts, Cut.ALL))
        splits.update(sweep.splits)
        if left and (sweep.cuts or sweep.splits):
            continue
        tasks = tasks_of(region, table, homes.kernels)
        late = [v for v in late_reads(tasks) if v not in cuts]
        if not late or left <= 1:
            break
        cuts.update(dict.fromkeys(late, Cut.ALL))
    return form_rows(planned_region(region, table, tasks, _fuse_region))
