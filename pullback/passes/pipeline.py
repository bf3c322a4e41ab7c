"""The passes in order, each with its reason, and which must come before which: the table of contents of this folder.

`OPTIMISE` makes a traced (and differentiated) function smaller; a test holds its order against `ORDER`. A pass may
stand in it more than once: it is run again only if something changed the function since its last run.
"""

from collections.abc import Iterator, Sequence

from pullback.ir.graph import Function
from pullback.passes.base import Context, Pass
from pullback.passes.branches import PruneBranches
from pullback.passes.carries import PruneLoops
from pullback.passes.cse import EliminateCommon
from pullback.passes.dce import EliminateDead
from pullback.passes.detach import Detach
from pullback.passes.dissolve import DissolveCheckpoints
from pullback.passes.fold import Fold
from pullback.passes.layout import Layout
from pullback.passes.licm import HoistInvariants
from pullback.passes.loop_rows import BatchProducts
from pullback.passes.manager import Ran, Watch, run_passes
from pullback.passes.simplify import Simplify
from pullback.record import record


@record(frozen=True)
class Step:
    """A pass at its place in the pipeline, and why it is there."""

    run: Pass
    why: str

    @property
    def name(self) -> str:
        return self.run.name


@record(frozen=True)
class Order:
    """Each `before` must have an `after` behind it; what a pass leaves for another, or would spoil for it."""

    before: str
    after: str
    why: str


OPTIMISE: tuple[Step, ...] = (
    Step(Detach(), "the last derivative has been taken, so stop_gradient has done its work and only hides patterns"),
    Step(DissolveCheckpoints(), "likewise: what checkpoints hold apart only hides patterns"),
    Step(EliminateDead(), "reverse mode leaves forward values that no cotangent needed; nobody should look at them"),
    Step(Fold(), "known numbers first: rules and branches ask for them"),
    Step(EliminateCommon(), "a forward pass and its adjoint repeat one another; rules compare operands by identity"),
    Step(Simplify(), "the rule tables; makes shapes small and moves constants right"),
    Step(PruneBranches(), "predicates are folded now; branches are inlined or lose what nobody reads"),
    Step(PruneLoops(), "carries, rows and operands of loops that nobody reads are dropped, constants go inside"),
    Step(HoistInvariants(), "what a loop repeats leaves it, when it is small and its constants are known"),
    Step(BatchProducts(), "products of scanned rows need no turn once what is the same has left the loop"),
    Step(PruneLoops(), "an operand that only hoisted ops read is not passed any more"),
    Step(Layout(), "transposes next to matrix products are all there are now"),
    Step(Fold(), "constants that moved into branches and loops, or were met on the way"),
    Step(EliminateCommon(), "rules and hoisting repeat constants and shapes"),
    Step(Simplify(), "inlined branches, merged values and products turned elementwise are new to the rules"),
    Step(EliminateCommon(), "what the second round made"),
    Step(EliminateDead(), "rules leave behind what they replaced"),
)

ORDER: tuple[Order, ...] = (
    Order("detach", "cse", "x and stop_gradient(x) are merged only when the latter is gone"),
    Order("detach", "simplify", "rules do not look through stop_gradient"),
    Order("dissolve", "cse", "what a checkpoint computes and what is around it may be the same"),
    Order("dce", "branches", "a result that only a dead op reads counts as read"),
    Order("fold", "simplify", "a rule that asks for a number does not evaluate one"),
    Order("fold", "branches", "a predicate must be a constant to be known"),
    Order("cse", "simplify", "rules such as x - x compare operands by identity"),
    Order("simplify", "branches", "a predicate may become constant only by a rule"),
    Order("simplify", "licm", "broadcasts are moved behind the ops first, so that what is hoisted is small"),
    Order("licm", "batch", "a matrix that is computed in each turn is known outside only when it has left the loop"),
    Order("batch", "loops", "rows that only the products read are not scanned any more"),
    Order("branches", "loops", "a loop inside a branch that is inlined is pruned with its new surroundings"),
    Order("loops", "licm", "a carry that never changes becomes a constant operand, and so invariant"),
    Order("layout", "simplify", "an outer product becomes mul of broadcasts, which rules may move on"),
    Order("licm", "cse", "two loops may hoist the same value"),
    Order("simplify", "cse", "each use of a constant by a rule makes a new one"),
    Order("simplify", "dce", "rules leave behind what they replaced"),
    Order("cse", "dce", "merged ops may have been the last readers of others"),
)


def broken_orders(steps: Sequence[Step], order: Sequence[Order] = ORDER) -> Iterator[str]:
    """What is wrong between the two tables: unknown names, or an order that does not hold."""
    names = [step.name for step in steps]
    for pair in order:
        missing = [name for name in (pair.before, pair.after) if name not in names]
        if missing:
            yield f"{pair.before} before {pair.after}: no step is called {' or '.join(missing)}"
            continue
        first = names.index(pair.before)
        if pair.after not in names[first + 1 :]:
            yield f"{pair.before} before {pair.after} does not hold: {pair.why}"


def passes_by_name(steps: Sequence[Step] = OPTIMISE) -> dict[str, Pass]:
    """The different passes of a pipeline, in order of first appearance."""
    found: dict[str, Pass] = {}
    for step in steps:
        found.setdefault(step.name, step.run)
    return found


def optimise(function: Function, ctx: Context, watch: Watch | None = None) -> tuple[Function, tuple[Ran, ...]]:
    """A traced function through `OPTIMISE`; the result is in stage `optimised`."""
    function, ran = run_passes(function, [step.run for step in OPTIMISE], ctx, watch)
    return function.with_stage("optimised"), ran
