"""What slices and updates take along each axis."""

from pullback.ir.graph import Op
from pullback.record import record


@record(frozen=True, slots=True)
class Line:
    """What a slice takes along one axis: `count` elements from `first` on, `step` apart."""

    first: int
    count: int
    step: int

    @property
    def last(self) -> int:
        return self.first + (self.count - 1) * self.step


Lines = tuple[Line, ...]


def lines_of(op: Op) -> Lines:
    """The lines of a slice or an update."""
    a = op.attrs
    return tuple([Line(p, -(-(q - p) // s), s) for p, q, s in zip(a["start"], a["stop"], a["step"], strict=True)])
