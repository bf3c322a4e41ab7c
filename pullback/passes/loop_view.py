"""`scan` and `while` seen alike, and the flow of activity, marks and wildness round a loop."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pullback.ir.graph import Op, Region, Value
from pullback.passes.activity import active_values, needed_values, reached_values
from pullback.passes.facts import TAME, WILD, Facts
from pullback.passes.marks import predict_marks
from pullback.passes.strong_zeros import KINK, NONE
from pullback.passes.structured import Flags, Rules
from pullback.record import record

T = TypeVar("T")


@record(frozen=True)
class LoopView:
    """The parts of a loop.

    The operands of the op, without the run-time count, are in the order of the body's parameters: carries, scanned,
    constants. Results of the body are carries, then stacked.
    """

    op: Op

    @property
    def is_while(self) -> bool:
        return self.op.name == "while"

    @property
    def is_dynamic(self) -> bool:
        """Whether stacked values are tapes."""
        return self.is_while or self.op.attrs["length"] < 0

    @property
    def offset(self) -> int:
        """1 if the first operand is the number of turns."""
        return 1 if not self.is_while and self.is_dynamic else 0

    @property
    def carries(self) -> int:
        return int(self.op.attrs["carries"])

    @property
    def scanned(self) -> int:
        return 0 if self.is_while else int(self.op.attrs["scanned"])

    @property
    def body(self) -> Region:
        return self.op.regions[-1]

    @property
    def stacked(self) -> int:
        return len(self.body.results) - self.carries

    @property
    def first_stacked(self) -> int:
        """The number of the first stacked result of the op; a `while` gives the number of turns before it."""
        return self.carries + (1 if self.is_while and self.stacked else 0)

    def of_body(self, values: Sequence[T]) -> list[T]:
        """What belongs to the results of the op, for those of the body."""
        return [*values[: self.carries], *values[self.first_stacked :]]

    def of_op(self, values: Sequence[T], turns: T) -> list[T]:
        """What belongs to the results of the body, for those of the op; `turns` is for the number of turns."""
        middle = [turns] if self.first_stacked > self.carries else []
        return [*values[: self.carries], *middle, *values[self.carries :]]

    def split(self, values: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """What belongs to the body's parameters, apart: carries, scanned, constants."""
        first, second = self.carries, self.carries + self.scanned
        return list(values[:first]), list(values[first:second]), list(values[second:])


def until_stable(carries: int, first: Sequence[T], step: Callable[[list[T]], Sequence[T]]) -> list[T]:
    """Values for the parameters of a body such that those of the carries do not change when the body is gone through.

    `step` takes them and gives what the carries are after a turn; what changed is taken over. The order of the values
    must be one in which they only rise.
    """
    current = list(first)
    while True:
        after = list(step(current))[:carries]
        if after == current[:carries]:
            return current
        current[:carries] = after


# ------------------------------------------------------------------ activity


def reached_params(view: LoopView, operands: Flags, rules: Rules) -> tuple[list[bool], list[bool]]:
    """Which parameters and results of the body depend on the flagged operands, in any turn."""
    body = view.body

    def results(params: Flags) -> list[bool]:
        reached = reached_values(body, params, rules)
        return [r in reached for r in body.results]

    params = until_stable(view.carries, operands, lambda flags: _either(flags, results(flags)))
    return params, results(params)


def needed_params(view: LoopView, results: Flags, rules: Rules) -> tuple[list[bool], list[bool]]:
    """Which parameters and results of the body the flagged results depend on, in any turn."""
    body = view.body
    within = reached_values(body, [True] * len(body.params), rules)

    def params(flags: Flags) -> list[bool]:
        needed = needed_values(body, flags, rules, within)
        return [p in needed for p in body.params]

    wanted = until_stable(view.carries, results, lambda flags: _either(flags, params(flags)))
    return params(wanted), wanted


def _either(a: Flags, b: Flags) -> list[bool]:
    return [x or y for x, y in zip(a, b, strict=False)]


@record(frozen=True)
class LoopActivity:
    """Which parameters of the body get a cotangent (or carry a tangent), and which of its results."""

    params: tuple[bool, ...]
    results: tuple[bool, ...]


def loop_activity(view: LoopView, operands: Flags, results: Flags, rules: Rules) -> LoopActivity:
    """Given the operands that are active and the results (of the body) that are wanted at the end."""
    reached, reached_results = reached_params(view, operands, rules)
    needed, wanted = needed_params(view, results, rules)
    active = [
        r and (n or (k < view.carries and wanted[k])) for k, (r, n) in enumerate(zip(reached, needed, strict=True))
    ]
    given = [
        active[k] if k < view.carries else w and r for k, (w, r) in enumerate(zip(wanted, reached_results, strict=True))
    ]
    return LoopActivity(tuple(active), tuple(given))


# ------------------------------------------------------------------ marks and wildness


def loop_marks(view: LoopView, results: Sequence[int | None], facts: Facts, rules: Rules) -> list[int]:
    """Upper bounds of the marks of the cotangents of the operands, given those of the body's results.

    A carry without a cotangent from behind the loop starts with zeros.
    """
    body = view.body
    wanted = [mark is not None for mark in results]
    activity = loop_activity(view, [True] * len(body.params), wanted, rules)
    active = active_values(body, activity.params, activity.results, rules)
    stacked = results[view.carries :]
    wildness = body_wildness(view, facts, view.op.operands[view.offset :])
    inside = Facts(body.ops, dict(zip(body.params, wildness, strict=True)))

    def params(carries: Sequence[int]) -> list[int]:
        found = predict_marks(body, active, [*carries, *stacked], inside, rules)
        return [found.get(p, KINK) for p in body.params]

    carries = until_stable(
        view.carries,
        [KINK if mark is None else mark for mark in results[: view.carries]],
        lambda marks: [max(a, b) for a, b in zip(marks, params(marks), strict=False)],
    )
    after = params(carries)
    least = KINK if view.is_dynamic else NONE  # without a turn there are only zeros
    worst = [*(max(a, b) for a, b in zip(after, carries, strict=False)), *after[view.carries :]]
    return [max(mark, least) for mark in worst]


def body_wildness(view: LoopView, facts: Facts, operands: Sequence[Value]) -> list[int]:
    """How wild the body's parameters may be, in any turn; the records of tapes may be anything."""
    carries, scanned, constants = view.split([facts.wildness(v) for v in operands])
    if view.is_dynamic:
        scanned = [WILD] * len(scanned)
    body = view.body

    def after(params: list[int]) -> list[int]:
        inner = Facts(body.ops, dict(zip(body.params, params, strict=True)))
        return [max(params[k], inner.wildness(body.results[k]), TAME) for k in range(view.carries)]

    return until_stable(view.carries, [*carries, *scanned, *constants], after)
