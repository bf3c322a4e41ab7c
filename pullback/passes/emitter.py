"""An emitter for the passes that differentiate: it makes each constant once in a region instead of once per rule."""

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr, Number
from pullback.ir.ops import OPS
from pullback.ir.types import TensorType


class RuleEmitter(Emitter):
    """`Emitter` with a memory of the tensors of one number it has made."""

    __slots__ = ("_made",)

    _made: dict[tuple[TensorType, str], Expr]

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder, OPS)
        self._made = {}

    def full(self, type: TensorType, number: Number) -> Expr:
        if type.is_float:
            number = float(number.real)
        key = (type, repr(number))  # by text: 0.0 and -0.0 are equal, NaN is not equal to itself
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = super().full(type, number)
        return made
