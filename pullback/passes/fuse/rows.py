"""Kernels that hand rows to one another, and nothing else, become one walk over blocks of rows.

Softmax over the rows of a matrix is a maximum, a sum of exponentials and a division: three kernels, each of which reads
or writes the whole matrix. A `rows` op runs all of them for a few rows at a time, which stay in the cache, and values
that nobody else reads are never written to memory at all. A reduction over all rows is made for each block, and added
up behind.
"""

from collections.abc import Iterable, Sequence
from math import gcd

from pullback.ir.graph import Attrs, Op, Region, Value
from pullback.ir.index import Affine, axis_index
from pullback.ir.kernel import Load, Store
from pullback.ir.ops import OPS
from pullback.ir.types import tensor_type
from pullback.passes.base import Rebuild, has_effect
from pullback.passes.fuse.separable import Separated, kernel_of_part, part_type, separate

LOOK_AHEAD = 128
"""Ops behind the first kernel among which others are looked for."""

WORTH_BYTES = 4 << 20
"""Memory traffic that must be saved, and memory that must be touched: smaller arrays stay in the cache anyway."""

BLOCK_BYTES = 512 << 10
"""What one block touches at most: it is to stay in the second-level cache."""

BLOCK_POINTS = 512
"""Points of a kernel in a block: with fewer it spends its time on starting kernels, and more gain nothing."""

LONG_BODY = 8
"""Ops of a body that take the time of one point more."""


def form_rows(region: Region) -> Region:
    """The planned region with its rows formed; the same object if there are none."""
    if sum(op.name == "kernel" for op in region.ops) < 2:
        return region
    uses = _uses(region)
    traffic = {op: _traffic(op) for op in region.ops}
    rebuild = Rebuild()
    waiting = list(reversed(region.ops))
    while waiting:
        op = waiting.pop()
        ahead = waiting[: -LOOK_AHEAD - 1 : -1]
        is_large = op.name == "kernel" and traffic[op] + sum([traffic[other] for other in ahead]) >= WORTH_BYTES
        group = _Group(op, ahead) if is_large else None
        size = group.block_rows(uses) if group is not None else 0
        if group is None or not size:
            rebuild.keep(op, rebuild.current(op))
            continue
        del waiting[len(waiting) - group.span :]
        waiting.extend(reversed(group.behind))
        for other in group.before:
            rebuild.keep(other, rebuild.current(other))
        _write(group, size, uses, rebuild)
    return rebuild.region(region)


def _traffic(op: Op) -> int:
    """Bytes that the op reads and writes, at most."""
    return sum([v.type.nbytes for v in (*op.operands, *op.results)])


def _uses(region: Region) -> dict[Value, list[Op | None]]:
    """Who reads each value; None is the region itself."""
    uses: dict[Value, list[Op | None]] = {v: [None] for v in region.results}
    for op in region.ops:
        for v in op.operands:
            uses.setdefault(v, []).append(op)
    return uses


# ------------------------------------------------------------------ which kernels


class _Group:
    """A kernel and those behind it that can go along with it, over `count` rows.

    before, behind : the ops in between that stay outside, by whether they need something of the group
    span : how many of the ops behind the first kernel all this is
    """

    def __init__(self, first: Op, ops: Sequence[Op]) -> None:
        self.members: list[Separated] = []
        self.before: list[Op] = []
        self.behind: list[Op] = []
        self.span = 0
        self._ops: set[Op] = set()  # those of the members
        self._shared: set[Value] = set()  # arrays that they read or make part by part
        self._inside: set[Value] = set()  # made part by part
        self._later: set[Value] = set()  # known only behind the group
        space = first.attrs["space"]
        alone = separate(first, space[0]) if space and space[0] > 1 else None
        if alone is not None:
            self._add(alone)
            self._grow(ops)

    def _grow(self, ops: Sequence[Op]) -> None:
        before: list[Op] = []
        behind: list[Op] = []
        for number, op in enumerate(ops):
            ordered = has_effect(op) and any(has_effect(b) for b in behind)
            if ordered or any(v in self._later for v in op.operands):
                self._leave(op, behind)
            elif op.name == "kernel" and self._take(op):
                self.span, self.before, self.behind = number + 1, list(before), list(behind)
            elif any(v in self._inside for v in op.operands):
                self._leave(op, behind)
            else:
                before.append(op)

    def _leave(self, op: Op, behind: list[Op]) -> None:
        behind.append(op)
        self._later.update(op.results)

    def _take(self, op: Op) -> bool:
        """Let a kernel go along if it shares an array with the group, perhaps in fewer and larger parts."""
        if not any(v in self._shared for v in op.operands) or not op.attrs["space"]:
            return False
        count = gcd(self.members[0].count, op.attrs["space"][0])
        members = self.members
        if count != members[0].count:
            fewer = [separate(m.op, count) for m in members]
            members = [m for m in fewer if m is not None]
        taken = separate(op, count)
        if taken is None or len(members) < len(self.members):
            return False
        if any(access.whole and v in self._inside for v, access in zip(op.operands, taken.reads, strict=True)):
            return False
        self.members = members
        self._add(taken)
        return True

    def _add(self, member: Separated) -> None:
        self.members.append(member)
        self._ops.add(member.op)
        self._shared.update(v for v in member.op.operands if v.type.size > 1)
        for value, cut in zip(member.op.results, member.cut, strict=True):
            (self._inside if cut else self._later).add(value)
        self._shared.update(v for v, cut in zip(member.op.results, member.cut, strict=True) if cut)

    # ------------------------------------------------------------------ is it worth it

    def is_inside(self, value: Value) -> bool:
        return value in self._inside

    def stays_inside(self, value: Value, uses: dict[Value, list[Op | None]]) -> bool:
        """Whether no op but the group's reads the value."""
        return all(user in self._ops for user in uses.get(value, ()))

    def block_rows(self, uses: dict[Value, list[Op | None]]) -> int:
        """How many rows a block has; 0 if the group is not worth it."""
        if len(self.members) < 2:
            return 0
        count = self.members[0].count
        touched = self._touched()
        nbytes = sum([v.type.nbytes for v in touched])
        work = sum([_work(m.op) for m in self.members]) / count / len(self.members)
        rows = [b for b in _divisors(count) if b * work >= BLOCK_POINTS and b < count]
        fitting = [b for b in rows if b * nbytes <= BLOCK_BYTES * count]
        saved, partial = self._saved(uses), self._partial()
        worth = [b for b in fitting if 8 * partial * (count // b) <= saved]
        return worth[0] if worth and min(saved, nbytes) >= WORTH_BYTES else 0

    def _touched(self) -> dict[Value, int]:
        """The arrays that are cut, and how many kernels read or write each."""
        found: dict[Value, int] = {}
        for m in self.members:
            cut = [v for v, access in zip(m.op.operands, m.reads, strict=True) if access.cut]
            cut += [v for v, is_cut in zip(m.op.results, m.cut, strict=True) if is_cut]
            for v in cut:
                found[v] = found.get(v, 0) + 1
        return found

    def _partial(self) -> int:
        """Bytes that each block writes, to be read and added up behind, for reductions over the rows."""
        cut = [pair for m in self.members for pair in zip(m.op.results, m.cut, strict=True)]
        return sum([2 * v.type.nbytes for v, is_cut in cut if not is_cut])

    def _saved(self, uses: dict[Value, list[Op | None]]) -> int:
        """Bytes that need not go through memory."""
        saved = 0
        for v, times in self._touched().items():
            saved += v.type.nbytes * (times - 1)
            if v in self._inside and self.stays_inside(v, uses):
                saved += v.type.nbytes
        return saved


def _work(op: Op) -> float:
    """Points of a kernel, those of a long body counted more than once."""
    points = 1.0 + len(op.regions[0].ops) / LONG_BODY
    for n in op.attrs["space"]:
        points *= n
    return points


def _divisors(count: int) -> list[int]:
    """From small to large."""
    small = [d for d in range(1, int(count**0.5) + 1) if count % d == 0]
    return sorted({*small, *(count // d for d in small)})


# ------------------------------------------------------------------ writing it


def _write(group: _Group, rows: int, uses: dict[Value, list[Op | None]], rebuild: Rebuild) -> None:
    blocks = group.members[0].count // rows
    members = [m for m in (separate(m.op, blocks) for m in group.members) if m is not None]
    mapped, whole = _operands(group, members)
    params: list[Value] = []
    values: dict[tuple[Value, bool], Value] = {}
    for cut, operands in ((True, mapped), (False, whole)):
        for v in operands:
            type = part_type(v.type, blocks) if cut else v.type
            values[v, cut] = Value(type, None, len(params), v.hint)
            params.append(values[v, cut])
    ops: list[Op] = []
    given: dict[Value, Value] = {}
    for m in members:
        made = kernel_of_part(m, values)
        ops.append(made)
        for old, new, cut in zip(m.op.results, made.results, m.cut, strict=True):
            if cut:
                values[old, True] = new
            if not cut or not group.stays_inside(old, uses):
                given[old] = new
    body = Region(tuple(params), tuple(ops), tuple(given.values()))
    outside = tuple([rebuild.value(v) for v in (*mapped, *whole)])
    types = tuple([v.type.with_shape((blocks, *v.type.shape)) for v in given.values()])
    attrs = Attrs(count=blocks, mapped=len(mapped))
    op = Op(OPS["rows"], outside, attrs, types, (body,), members[-1].op.loc)
    rebuild.ops.append(op)
    rebuild.changed = True
    for old, new in zip(given, op.results, strict=True):
        new.hint = old.hint
        behind = _reshaped(old, new) if group.is_inside(old) else _added_up(old, new, members)
        rebuild.ops.append(behind)
        rebuild.env[old] = behind.results[0]


def _operands(group: _Group, members: Iterable[Separated]) -> tuple[list[Value], list[Value]]:
    """What comes from outside: cut, and whole."""
    mapped: dict[Value, None] = {}
    whole: dict[Value, None] = {}
    for m in members:
        for v, access in zip(m.op.operands, m.reads, strict=True):
            if access.cut and not group.is_inside(v):
                mapped[v] = None
            if access.whole:
                whole[v] = None
    return list(mapped), list(whole)


def _reshaped(old: Value, new: Value) -> Op:
    loc = old.op.loc if old.op is not None else None
    return Op(OPS["reshape"], (new,), Attrs(shape=old.type.shape), (old.type,), (), loc)


def _added_up(old: Value, new: Value, members: Iterable[Separated]) -> Op:
    """A reduction over the blocks of what each block has reduced."""
    store: Store = next(s for m in members for s, v in zip(m.op.attrs["stores"], m.op.results, strict=True) if v is old)
    blocks, size = new.type.shape[0], old.type.size
    space = (blocks, size) if size > 1 else (blocks,)
    at = axis_index(1) if size > 1 else Affine()
    loads = (Load(0, axis_index(0).scale(size).plus(at)),)
    param = Value(tensor_type(old.type.dtype))
    body = Region((param,), (), (param,))
    attrs = Attrs(space=space, loads=loads, stores=(Store(store.kind, old.type, at),))
    made = Op(OPS["kernel"], (new,), attrs, (old.type,), (body,), old.op.loc if old.op is not None else None)
    made.results[0].hint = old.hint
    return made
