"""Which compiled entry of a function is tried when: the table that native code goes by.

A *family* is what was compiled for arguments of one kind: one branch for each path that Python took, told apart by its
decisions, the integers its guards expect. The branches of a family are the leaves of a tree of decisions. Where guard
`k` of a branch is not as expected, the next one to try agrees with it on the guards before `k` and differs there; a
call thus costs one attempt for each decision in which it differs from the call before, however many paths there are.

The table is words of 64 bits: the entry to try first (native code writes there which one took a call), the number of
families; for each entry its address, the entry to try if the arguments do not fit, where its jumps are, and how many;
then the jumps. Jump `k` is for guard `k`: the entry to try next in the low half, in the high half how many different
outcomes are left to try there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from pullback.record import record
from pullback.runtime.compiled import Compiled

HEAD_WORDS, ENTRY_WORDS = 2, 4
NO_ROUTES = bytes(8 * HEAD_WORDS)


@record(frozen=True, slots=True, eq=False)
class Branch:
    """A compiled path, and what its guards expect, in their order."""

    compiled: Compiled
    decisions: tuple[int, ...] = ()


@record(frozen=True, slots=True, eq=False)
class Family:
    """The branches for arguments of one kind. Families of equal keys replace one another."""

    key: object
    branches: tuple[Branch, ...]

    def has(self, compiled: Compiled) -> bool:
        """Is it one of the branches."""
        return any(branch.compiled is compiled for branch in self.branches)


def compiled_of(families: Sequence[Family]) -> tuple[Compiled, ...]:
    """All entries, in the order of the table."""
    return tuple([branch.compiled for family in families for branch in family.branches])


def route_table(families: Sequence[Family], first: Compiled) -> bytes:
    """The table for these families, with `first` to be tried first."""
    entries = compiled_of(families)
    rows: list[int] = []
    jumps: list[int] = []
    origin = HEAD_WORDS + ENTRY_WORDS * len(entries)
    start = 0
    for family in families:
        following = (start + len(family.branches)) % len(entries)  # the next family begins there
        for branch, own in zip(family.branches, _jumps(family.branches, start), strict=True):
            rows += [branch.compiled.entry, following, origin + len(jumps), len(own)]
            jumps += own
        start += len(family.branches)
    words = [entries.index(first), len(families), *rows, *jumps]
    return struct.pack(f"={len(words)}Q", *words)


def starting_at(table: bytes, number: int) -> bytes:
    """The table with another entry to be tried first."""
    return struct.pack("=Q", number) + table[8:]


def _jumps(branches: Sequence[Branch], start: int) -> list[list[int]]:
    """For each branch its jumps, as far as it has company; `start` is the number of the first one."""
    jumps: list[list[int]] = [[] for _ in branches]
    for members, guard in _crossings(branches):
        groups: dict[int, list[int]] = {}
        for member in members:
            groups.setdefault(branches[member].decisions[guard], []).append(member)
        alike = list(groups.values())
        for number, group in enumerate(alike):
            other = start + alike[(number + 1) % len(alike)][0]
            for member in group:
                jumps[member].append(other | (len(alike) - 1) << 32)
    return jumps


def _crossings(branches: Sequence[Branch]) -> Iterator[tuple[list[int], int]]:
    """Branches that agree on the guards before `guard`, and `guard`, where more than one has such a guard."""
    pending = [(list(range(len(branches))), 0)]
    while pending:
        together, guard = pending.pop()
        members = [member for member in together if len(branches[member].decisions) > guard]
        if len(members) < 2:
            continue
        yield members, guard
        groups: dict[int, list[int]] = {}
        for member in members:
            groups.setdefault(branches[member].decisions[guard], []).append(member)
        pending += [(group, guard + 1) for group in groups.values()]
