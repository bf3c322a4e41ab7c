"""All rewrite rules, in tables by theme. A rule is found here and nowhere else; importing a module registers nothing."""

from pullback.passes.rules.arithmetic import ARITHMETIC
from pullback.passes.rules.broadcasts import BROADCASTS
from pullback.passes.rules.logic import LOGIC
from pullback.passes.rules.record import Rule
from pullback.passes.rules.reductions import REDUCTIONS
from pullback.passes.rules.reshapes import RESHAPES
from pullback.passes.rules.slices import SLICES

# Tried in this order: what removes an op, or moves it to a smaller operand, before what turns it round.
ALL_RULES: tuple[Rule, ...] = (*ARITHMETIC, *LOGIC, *RESHAPES, *BROADCASTS, *SLICES, *REDUCTIONS)
