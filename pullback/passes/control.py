"""The table of rules for the ops with regions."""

from types import MappingProxyType

from pullback.passes.conditional import Conditional
from pullback.passes.loops import Loop
from pullback.passes.recomputing import Checkpoint
from pullback.passes.structured import Rules

RULES: Rules = MappingProxyType(
    {"if": Conditional(), "checkpoint": Checkpoint(), "scan": Loop(), "while": Loop()}
)
