"""What differentiation and batching ask of an op with regions. One rule object for each such op, listed in
`passes.control`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op, Value
from pullback.passes.facts import Facts
from pullback.passes.strong_zeros import Marked

Flags = Sequence[bool]


class Site(NamedTuple):
    """Where an op with regions is differentiated: what emits, what is known there, the op, the table of rules."""

    f: Emitter
    facts: Facts
    op: Op
    rules: "Rules"


class StructuredRule(Protocol):
    """All transforms of one op with regions. `rules` is the whole table, for the ops inside the regions."""

    def reaches(self, op: Op, operands: Flags, rules: "Rules") -> tuple[bool, ...]:
        """Which results depend on the flagged operands through a differentiable path."""

    def needs(self, op: Op, results: Flags, rules: "Rules") -> tuple[bool, ...]:
        """Which operands the flagged results depend on through a differentiable path."""

    def marks(self, op: Op, results: Sequence[int | None], facts: Facts, rules: "Rules") -> Sequence[int]:
        """How structural zeros may come into the cotangents of the operands, at most.

        `results` has the same for the results, None for those without a cotangent; `facts` are those of the region
        that `op` is in.
        """

    def augment(
        self, site: "Site", operands: Sequence[Value], active: Flags, marks: Sequence[int | None]
    ) -> tuple[tuple[Value, ...], Any]:
        """Emit the op so that its backward part can follow: its results, and what `pull` wants to be told.

        Parameters
        ----------
        active : which operands get a cotangent
        marks : for each result, the mark that its cotangent has at most, or None if it gets none
        """

    def pull(
        self, site: "Site", operands: Sequence[Value], saved: Any, cts: Sequence[Marked | None]
    ) -> list[Marked | None]:
        """Emit the backward part: the cotangents of the operands."""

    def push(
        self, site: "Site", operands: Sequence[Value], tans: Sequence[Marked | None], wanted: Flags
    ) -> tuple[tuple[Value, ...], list[Marked | None]]:
        """Emit the op together with its tangents: results and tangents of results."""

    def batch(
        self,
        f: Emitter,
        op: Op,
        args: Sequence[Expr],
        batched: Flags,
        size: int,
        rules: "Rules",
        where: Expr | None,
    ) -> tuple[list[Expr], list[bool]]:
        """Emit the op over a leading axis: results, and which of them have it. Checks outside `where` do not count."""


Rules = Mapping[str, StructuredRule]
