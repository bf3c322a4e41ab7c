"""What a `kernel` reads and writes: index maps over the axes of its loop nest.

A kernel is a loop nest over an index space with a scalar body. Element `at` of a buffer is a flat position in C order,
affine in the loop indices; broadcasts, slices, transposes, reversals and reshapes have become such maps.
"""

from typing import Literal as OneOf
from typing import NamedTuple

from pullback.ir.index import Affine, Bound
from pullback.ir.types import TensorType

StoreKind = OneOf["store", "sum", "prod", "max", "min", "nanmax", "nanmin", "any", "all"]
STORE_KINDS: tuple[StoreKind, ...] = ("store", "sum", "prod", "max", "min", "nanmax", "nanmin", "any", "all")


class Load(NamedTuple):
    """A body parameter: element `at` of operand number `operand`.

    bounds : where they do not all hold the value is zero and memory is not touched.
    """

    operand: int
    at: Affine
    bounds: tuple[Bound, ...] = ()

    def __str__(self) -> str:
        where = f" if {', '.join(map(str, self.bounds))}" if self.bounds else ""
        return f"%{self.operand} @ {self.at}{where}"


class Store(NamedTuple):
    """A result: where the body's value goes.

    kind : `store` writes element `at`, each once, the whole result; the others accumulate into element `at` over the
        loop axes that `at` does not use (sum and prod in the type's arithmetic, max and min with NaN winning, nanmax
        and nanmin with NaN losing, any and all of bools), and each element of the result belongs to exactly one index
        of the axes that it does use.
    """

    kind: StoreKind
    type: TensorType
    at: Affine

    def __str__(self) -> str:
        return f"{self.kind} {self.type} @ {self.at}"
