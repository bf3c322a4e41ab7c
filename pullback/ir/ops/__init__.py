"""The table of all ops. An op is one record in one of these modules; nothing registers itself by being imported."""

from collections.abc import Mapping
from types import MappingProxyType

from pullback.ir.opdef import OpDef
from pullback.ir.ops.arithmetic import ARITHMETIC
from pullback.ir.ops.logic import LOGIC
from pullback.ir.ops.sources import SOURCES
from pullback.ir.ops.transcendental import TRANSCENDENTAL

ALL_OPS: tuple[OpDef, ...] = (*ARITHMETIC, *TRANSCENDENTAL, *LOGIC, *SOURCES)
OPS: Mapping[str, OpDef] = MappingProxyType({op.name: op for op in ALL_OPS})
