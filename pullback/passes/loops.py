"""The rule of `scan` and `while`."""

from collections.abc import Sequence

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op, Value
from pullback.passes.facts import Facts
from pullback.passes.loop_batch import batch_loop
from pullback.passes.loop_forward import push_loop
from pullback.passes.loop_reverse import LoopSaved, augment_loop, pull_loop
from pullback.passes.loop_view import LoopView, loop_marks, needed_params, reached_params
from pullback.passes.strong_zeros import NONE, Marked
from pullback.passes.structured import Flags, Rules, Site
from pullback.record import record


@record(frozen=True)
class Loop:
    """The rule of `scan` and `while`. What flows round a loop is found by going round until nothing changes."""

    def reaches(self, op: Op, operands: Flags, rules: Rules) -> tuple[bool, ...]:
        view = LoopView(op)
        carries, results = reached_params(view, operands[view.offset :], rules)
        return tuple(view.of_op([*carries[: view.carries], *results[view.carries :]], False))

    def needs(self, op: Op, results: Flags, rules: Rules) -> tuple[bool, ...]:
        view = LoopView(op)
        params, wanted = needed_params(view, view.of_body(results), rules)
        carries = [a or b for a, b in zip(params[: view.carries], wanted, strict=False)]
        return (*(False,) * view.offset, *carries, *params[view.carries :])

    def marks(self, op: Op, results: Sequence[int | None], facts: Facts, rules: Rules) -> Sequence[int]:
        view = LoopView(op)
        return [*[NONE] * view.offset, *loop_marks(view, view.of_body(results), facts, rules)]

    def augment(
        self, site: Site, operands: Sequence[Value], active: Flags, marks: Sequence[int | None]
    ) -> tuple[tuple[Value, ...], LoopSaved]:
        return augment_loop(site, operands, active, marks)

    def pull(
        self, site: Site, operands: Sequence[Value], saved: LoopSaved, cts: Sequence[Marked | None]
    ) -> list[Marked | None]:
        return pull_loop(site, operands, saved, cts)

    def push(
        self, site: Site, operands: Sequence[Value], tans: Sequence[Marked | None], wanted: Flags
    ) -> tuple[tuple[Value, ...], list[Marked | None]]:
        return push_loop(site, operands, tans, wanted)

    def batch(
        self, f: Emitter, op: Op, args: Sequence[Expr], batched: Flags, size: int, rules: Rules, where: Expr | None
    ) -> tuple[list[Expr], list[bool]]:
        return batch_loop(f, op, args, batched, size, rules, where)
