"""A box that moves over an array from turn to turn: read or written one place a turn, or all places at once."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs
from pullback.ir.types import I64, Shape
from pullback.passes.roll.track import box_shape
from pullback.record import record

Integers = np.ndarray[Any, np.dtype[np.int64]]


@record(frozen=True, eq=False)
class Moving:
    """A slice of the array `shape` whose start depends on the turn, along one axis.

    first, last : axes of the array that count as one, the axis `first` of `merged`; they move, the others do not
    at : where the box begins on that axis, in each turn
    size, step : extent of the box on that axis
    box : shape of the box
    attrs : start, stop and step of a turn; those of the other axes hold for every turn
    """

    shape: Shape
    first: int
    last: int
    at: Integers
    size: int
    step: int
    box: Shape
    attrs: Attrs

    @property
    def turns(self) -> int:
        return len(self.at)

    @property
    def merged(self) -> Shape:
        """The array with the moving axes as one."""
        inner = math.prod(self.shape[self.first : self.last + 1])
        return (*self.shape[: self.first], inner, *self.shape[self.last + 1 :])

    @property
    def merged_box(self) -> Shape:
        return (*self.box[: self.first], self.size, *self.box[self.last + 1 :])

    @property
    def is_whole(self) -> bool:
        """Whether the box spans all other axes."""
        axis = self.first
        return all(k == axis or n == m for k, (n, m) in enumerate(zip(self.merged, self.merged_box, strict=True)))

    @property
    def stride(self) -> int | None:
        """How far the box moves each turn, if always as far."""
        steps = np.diff(self.at)
        return int(steps[0]) if len(steps) and bool((steps == steps[0]).all()) else None

    @property
    def is_run(self) -> bool:
        """Whether all boxes together are one slice of the array, of which each is one piece."""
        stride = self.stride
        if self.size == 1:
            return stride is not None and stride != 0
        return self.step == 1 and stride == self.size

    def places(self) -> Integers:
        """The index of each element of the box on the moving axis: a row for each turn."""
        places: Integers = self.at[:, None] + self.step * np.arange(self.size)
        return places

    def _across(self, start: int, stop: int, step: int = 1) -> dict[str, Any]:
        """Attributes of a slice of the merged array: this on the moving axis, the box on the others."""
        given = {"start": start, "stop": stop, "step": step}
        old = self.attrs
        return {name: (*old[name][: self.first], k, *old[name][self.last + 1 :]) for name, k in given.items()}

    # -------------------------------------------------------------- all turns at once, outside of the loop

    def _run(self) -> dict[str, Any]:
        """The slice that holds all boxes, where `is_run`."""
        low, high = int(self.at.min()), int(self.at.max())
        step = abs(self.stride or 1) if self.size == 1 else 1
        return self._across(low, high + self.size, step)

    def read_all(self, f: Emitter, x: Expr) -> Expr:
        """The boxes of all turns, stacked."""
        x = f.reshape_to(x, self.merged)
        axis, n = self.first, self.turns
        if self.is_run:
            x = f.op("slice", x, **self._run())
            if (self.stride or 0) < 0:
                x = f.op("reverse", x, axes=(axis,))
        else:
            if not self.is_whole:
                x = f.op("slice", x, **self._across(0, self.merged[axis]))
            x = f.op("gather", x, f.constant(self.places().reshape(-1)), axis=axis)
        shape = x.shape
        x = f.reshape_to(x, (*shape[:axis], n, self.size, *shape[axis + 1 :]))
        x = f.permute(x, (axis, *(k for k in range(x.ndim) if k != axis)))
        return f.reshape_to(x, (n, *self.box))

    @property
    def may_write_all(self) -> bool:
        return self.is_run or self.is_whole

    def write_all(self, f: Emitter, x: Expr, rows: Expr) -> Expr:
        """`x` with the stacked boxes written one after the other."""
        axis, n = self.first, self.turns
        box = self.merged_box
        rows = f.reshape_to(rows, (n, *box))
        rows = f.permute(rows, (*range(1, axis + 1), 0, *range(axis + 1, rows.ndim)))
        rows = f.reshape_to(rows, (*box[:axis], n * self.size, *box[axis + 1 :]))
        x = f.reshape_to(x, self.merged)
        if self.is_run:
            if (self.stride or 0) < 0:
                rows = f.op("reverse", rows, axes=(axis,))
            x = f.op("update", x, rows, **self._run())
        else:
            x = f.op("scatter", x, f.constant(self.places().reshape(-1)), rows, axis=axis)
        return f.reshape_to(x, self.shape)

    def elements(self) -> Integers:
        """The numbers of the elements of the box, in C order of the array: a row for each turn."""
        numbers = np.arange(math.prod(self.shape)).reshape(self.merged)
        numbers = numbers[box_slices(self._across(0, self.merged[self.first]))]
        rows: Integers = np.moveaxis(numbers, self.first, 0)[self.places()].reshape(self.turns, -1)
        return rows

    # -------------------------------------------------------------- one turn, inside

    def widened(self) -> "Moving":
        """The same, where neighbouring axes on which the box has one element count as moving: a loop around this one
        may move along them, and will find the body as it was."""
        first, last, box = self.first, self.last, self.box
        if self.size != 1:
            return self
        while first > 0 and box[first - 1] == 1:
            first -= 1
        while last + 1 < len(box) and box[last + 1] == 1:
            last += 1
        start, at = self.attrs["start"], np.zeros(self.turns, I64)
        for axis in range(first, self.first):
            at = at * self.shape[axis] + start[axis]
        at = at * math.prod(self.shape[self.first : self.last + 1]) + self.at
        for axis in range(self.last + 1, last + 1):
            at = at * self.shape[axis] + start[axis]
        return Moving(self.shape, first, last, at, 1, 1, box, self.attrs)

    def table(self) -> Integers:
        """What the body takes a row of to know its place; see `index`."""
        return self.at[:, None] if self.size == 1 else self.at

    def index(self, f: Emitter, row: Expr) -> Expr:
        """The places on the moving axis, from a row of `table`."""
        if self.size == 1:
            return row
        offsets = f.arange_like((self.size,), 0)
        if self.step != 1:
            offsets = offsets * self.step
        return f.broadcast_to(row, (self.size,)) + offsets

    def read(self, f: Emitter, x: Expr, index: Expr) -> Expr:
        x = f.op("gather", f.reshape_to(x, self.merged), index, axis=self.first)
        if not self.is_whole:
            x = f.op("slice", x, **self._across(0, self.size))
        return f.reshape_to(x, self.box)

    def write(self, f: Emitter, x: Expr, new: Expr, index: Expr) -> Expr:
        x = f.reshape_to(x, self.merged)
        new = f.reshape_to(new, self.merged_box)
        if not self.is_whole:
            row = f.op("gather", x, index, axis=self.first)
            new = f.op("update", row, new, **self._across(0, self.size))
        return f.reshape_to(f.op("scatter", x, index, new, axis=self.first), self.shape)


def box_slices(attrs: Mapping[str, Any]) -> tuple[slice, ...]:
    """NumPy's index for a slice."""
    return tuple([slice(*box) for box in zip(attrs["start"], attrs["stop"], attrs["step"], strict=True)])


def moving(starts: Integers, attrs: Attrs, shape: Shape) -> Moving | None:
    """The movement of a slice whose starts in each turn are the rows of `starts`.

    Parameters
    ----------
    attrs : the slice in one of the turns

    Returns
    -------
    None where the box moves along several axes and is more than one element wide on or between them.
    """
    box = box_shape(attrs)
    moves = np.flatnonzero((starts != starts[0]).any(axis=0)).tolist()
    first, last = moves[0], moves[-1]
    if 0 in box or (first != last and any(n != 1 for n in box[first : last + 1])):
        return None
    at = np.zeros(len(starts), I64)
    for axis in range(first, last + 1):
        at = at * shape[axis] + starts[:, axis]
    step = attrs["step"][first] if first == last else 1
    return Moving(shape, first, last, at, box[first], step, box, attrs)
