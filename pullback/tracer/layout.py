"""Strides and memory order, counted in elements: what decides in NumPy whether a reshape is a view or a copy."""

import itertools
import math
from collections.abc import Sequence

from pullback.ir.index import is_c_order as is_c_order
from pullback.ir.index import strides_of
from pullback.ir.types import Shape

Strides = tuple[int, ...]
Order = tuple[int, ...]


def strides_in_order(shape: Shape, order: Order | None) -> Strides:
    """Strides of a fresh array whose axes are laid out from slowest to fastest as `order` says (None: C order)."""
    if order is None:
        return strides_of(shape)
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def is_contiguous(shape: Shape, strides: Strides, order: str = "C") -> bool:
    """NumPy's contiguity: axes of length 1 do not count, an empty array always is."""
    if 0 in shape:
        return True
    step = 1
    pairs = list(zip(shape, strides, strict=True))
    for n, s in reversed(pairs) if order == "C" else pairs:
        if n != 1:
            if s != step:
                return False
            step *= n
    return True


def common_order(shape: Shape, operands: Sequence[Strides]) -> Order | None:
    """The axis order NumPy gives the result of an elementwise call, from the strides of its operands.

    NumPy's iterator sorts the axes by insertion: an axis moves inwards past another while every operand in which both
    have a stride agrees that its stride is the smaller one; ties and disagreements leave C order. None is C order.
    """
    ndim = len(shape)
    order = list(range(ndim - 1, -1, -1))  # fastest first
    for i in range(1, ndim):
        axis, spot = order[i], i
        for j in range(i - 1, -1, -1):
            verdict = _should_swap(operands, axis, order[j])
            if verdict is None:
                continue
            if not verdict:
                break
            spot = j
        order.insert(spot, order.pop(i))
    order.reverse()
    return None if order == list(range(ndim)) else tuple(order)


def _should_swap(operands: Sequence[Strides], axis: int, inner: int) -> bool | None:
    """Whether `axis` belongs inside `inner`; None when no operand tells."""
    verdict: bool | None = None
    for strides in operands:
        a, b = abs(strides[axis]), abs(strides[inner])
        if a and b:
            if b <= a:
                return False
            verdict = True
    return verdict


def reshaped_strides(shape: Shape, strides: Strides, target: Shape, order: str) -> Strides | None:
    """Strides of a view of `target` shape onto the same memory, or None where NumPy has to copy."""
    if math.prod(target) == 0:
        return strides_of(target)
    live = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result = [0] * len(target)
    i = j = 0
    while i < len(live) and j < len(target):
        group, wanted = [live[i]], [j]
        n, m = live[i][0], target[j]
        i, j = i + 1, j + 1
        while n != m:
            if m < n:
                m *= target[j]
                wanted.append(j)
                j += 1
            else:
                n *= live[i][0]
                group.append(live[i])
                i += 1
        if not _one_run(group, order):
            return None
        _spread(result, wanted, target, group, order)
    step = result[j - 1] if j else 1
    for k in range(j, len(target)):
        result[k] = step if order == "C" else step * target[k - 1] if k else step
    return tuple(result)


def _one_run(group: Sequence[tuple[int, int]], order: str) -> bool:
    """Whether the axes of `group` are one evenly spaced run of memory."""
    return all(not (s != m * t if order == "C" else t != n * s) for (n, s), (m, t) in itertools.pairwise(group))


def _spread(result: list[int], wanted: list[int], target: Shape, group: list[tuple[int, int]], order: str) -> None:
    if order == "C":
        step = group[-1][1]
        for k in reversed(wanted):
            result[k] = step
            step *= target[k]
    else:
        step = group[0][1]
        for k in wanted:
            result[k] = step
            step *= target[k]
