"""All rewrite rules, in tables by theme. Importing a module registers nothing: a rule is found here."""

from pullback.passes.rules.arithmetic import ARITHMETIC
from pullback.passes.rules.broadcasts import BROADCASTS
from pullback.passes.rules.logic import LOGIC
from pullback.passes.rules.pieces import PIECES
from pullback.passes.rules.record import Rule
from pullback.passes.rules.reductions import REDUCTIONS
from pullback.passes.rules.reshapes import RESHAPES
from pullback.passes.rules.signs import SIGNS
from pullback.passes.rules.slices import SLICES

# Tried in this order: what removes an op, or moves it to a smaller operand, before what turns it round.
ALL_RULES: tuple[Rule, ...] = (
    *ARITHMETIC,
    *SIGNS,
    *LOGIC,
    *RESHAPES,
    *BROADCASTS,
    *SLICES,
    *PIECES,
    *REDUCTIONS,
)
