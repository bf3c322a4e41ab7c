"""The table of all ops. An op is one record in one of these modules; nothing registers itself by being imported."""

from collections.abc import Mapping
from types import MappingProxyType

from pullback.ir.opdef import OpDef
from pullback.ir.ops.arithmetic import ARITHMETIC
from pullback.ir.ops.control import CONTROL
from pullback.ir.ops.extrema import EXTREMA
from pullback.ir.ops.fourier import FOURIER
from pullback.ir.ops.indexing import INDEXING
from pullback.ir.ops.kernel import PLANNED_OPS
from pullback.ir.ops.linalg import LINALG
from pullback.ir.ops.logic import LOGIC
from pullback.ir.ops.loops import LOOPS
from pullback.ir.ops.products import PRODUCTS
from pullback.ir.ops.reductions import REDUCTIONS
from pullback.ir.ops.sorting import SORTING
from pullback.ir.ops.sources import SOURCES
from pullback.ir.ops.special import SPECIAL
from pullback.ir.ops.transcendental import TRANSCENDENTAL
from pullback.ir.ops.views import VIEWS

ALL_OPS: tuple[OpDef, ...] = (
    *ARITHMETIC,
    *EXTREMA,
    *TRANSCENDENTAL,
    *SPECIAL,
    *LOGIC,
    *SOURCES,
    *VIEWS,
    *REDUCTIONS,
    *INDEXING,
    *PRODUCTS,
    *SORTING,
    *LINALG,
    *FOURIER,
    *CONTROL,
    *LOOPS,
    *PLANNED_OPS,
)
OPS: Mapping[str, OpDef] = MappingProxyType({op.name: op for op in ALL_OPS})
