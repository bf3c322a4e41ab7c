"""`record` makes dataclasses: the same behaviour, made faster."""

from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from pullback.record import record


@pytest.mark.parametrize("make", [record, dataclass], ids=["record", "dataclass"])
@pytest.mark.parametrize("slots", [False, True])
def test_a_frozen_record_behaves_as_a_dataclass(make: Any, slots: bool) -> None:
    @make(frozen=True, slots=slots)
    class Point:
        """A point."""

        x: int
        y: list[int] = field(default_factory=list, compare=False)
        name: str = field(default="p", repr=False)

    one, two = Point(1), Point(1, [2])
    assert one == two
    assert hash(one) == hash(two)
    assert one != Point(1, name="q")
    assert one != (1, [], "p")
    assert one.y is not Point(1).y
    assert repr(two).endswith("Point(x=1, y=[2])")
    assert replace(one, x=3).x == 3
    assert [f.name for f in fields(Point)] == ["x", "y", "name"]
    assert is_dataclass(Point)
    assert hasattr(one, "__dict__") is not slots
    with pytest.raises(FrozenInstanceError):
        one.x = 2
    with pytest.raises(TypeError):
        Point()
    match one:
        case Point(x, y, name):
            assert (x, y, name) == (1, [], "p")


@pytest.mark.parametrize("make", [record, dataclass], ids=["record", "dataclass"])
def test_other_records_behave_as_dataclasses(make: Any) -> None:
    @make
    class Counter:
        """Counts."""

        start: int = 2
        now: int = field(init=False)

        def __post_init__(self) -> None:
            self.now = self.start

    @make(eq=False)
    class Plain:
        """Equal to itself alone."""

        x: int

        def __repr__(self) -> str:
            return "mine"

    counter = Counter(5)
    counter.now += 1
    assert (counter.now, counter == Counter(5), Counter.__hash__) == (6, False, None)
    assert Plain(1) != Plain(1)
    assert repr(Plain(1)) == "mine"
    assert len({Plain(1), Plain(1)}) == 2


def test_a_record_without_fields() -> None:
    @record(frozen=True)
    class Empty:
        """Nothing."""

    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert repr(Empty()).endswith("Empty()")
