"""Rules of concatenate and gather: pieces put together, and elements picked by constant indices."""

from typing import Any

import numpy as np

from pullback.ir.graph import Op, Value
from pullback.passes.rules.lines import Line, lines_of
from pullback.passes.rules.record import Rewriter, Rule, case, literal, made_by, number
from pullback.passes.rules.slices import cut, slice_of

# ------------------------------------------------------------------ concatenate

MOST_JOINED = 256  # pieces of a concatenation made of concatenations; unbounded, growing one by one would be quadratic


def _concatenate_one(r: Rewriter, op: Op) -> Value | None:
    pieces = [v for v in op.operands if v.type.size]
    if len(op.operands) == 1 or not pieces:
        return op.operands[0] if op.operands[0].type.shape == op.results[0].type.shape else None
    if len(pieces) == len(op.operands):
        return None
    return r.emit("concatenate", *pieces, axis=op.attrs["axis"])


def _concatenate_of_concatenate(r: Rewriter, op: Op) -> Value | None:
    axis, pieces = op.attrs["axis"], list[Value]()
    for v in op.operands:
        inner = made_by(v, "concatenate")
        joins = inner is not None and inner.attrs["axis"] == axis and r.used_once(v)
        pieces.extend(inner.operands if inner is not None and joins else (v,))
    if len(pieces) == len(op.operands) or len(pieces) > MOST_JOINED:
        return None
    return r.emit("concatenate", *pieces, axis=axis)


def _joined(r: Rewriter, x: Value, y: Value, axis: int) -> Value | None:
    """One slice for two that follow one another along `axis` of the same array."""
    lhs, rhs = made_by(x, "slice"), made_by(y, "slice")
    if lhs is None or rhs is None or lhs.operands[0] is not rhs.operands[0]:
        return None
    first, second = lines_of(lhs), lines_of(rhs)
    if any(p != q for k, (p, q) in enumerate(zip(first, second, strict=True)) if k != axis):
        return None
    a, b = first[axis], second[axis]
    step = b.first - a.last
    if (a.count > 1 and a.step != step) or (b.count > 1 and b.step != step) or step < 1 or not a.count or not b.count:
        return None
    return slice_of(r, lhs.operands[0], [*first[:axis], Line(a.first, a.count + b.count, step), *first[axis + 1 :]])


def _concatenate_of_slices(r: Rewriter, op: Op) -> Value | None:
    axis, pieces = op.attrs["axis"], list[Value]()
    for v in op.operands:
        merged = _joined(r, pieces[-1], v, axis) if pieces else None
        if merged is None:
            pieces.append(v)
        else:
            pieces[-1] = merged
    return r.emit("concatenate", *pieces, axis=axis) if len(pieces) < len(op.operands) else None


# ------------------------------------------------------------------ gather


def _gather_at_constants(r: Rewriter, op: Op) -> Value | None:
    """Constant indices in steps of one size: a slice, reversed if they fall."""
    (x, idx), axis = op.operands, op.attrs["axis"]
    n = x.type.shape[axis]
    at = _progression(idx, n)
    if at is None:
        return None
    first, step, count = at
    line = Line(first, count, step) if step > 0 else Line(first + (count - 1) * step, count, -step)
    whole = [Line(0, m, 1) for m in x.type.shape]
    taken = slice_of(r, x, [*whole[:axis], line, *whole[axis + 1 :]])
    if step < 0:
        taken = r.emit("reverse", taken, axes=(axis,))
    return r.emit("reshape", taken, shape=op.results[0].type.shape)


def _progression(idx: Value, n: int) -> tuple[int, int, int] | None:
    """(first, step, count) of constant indices within 0..n-1 that grow or fall evenly."""
    found = number(idx)
    if found is not None and idx.type.size == 1:
        return (int(found.real), 1, 1) if 0 <= found.real < n else None
    array: np.ndarray[Any, Any] | None = literal(idx)
    if array is None or array.ndim != 1 or array.size < 2 or array.min() < 0 or array.max() >= n:
        return None
    steps = np.diff(array)
    step = int(steps[0])
    return (int(array[0]), step, array.size) if step != 0 and bool((steps == step).all()) else None


V, M = "f64[6]", "f64[4,6]"

PIECES: tuple[Rule, ...] = (
    Rule(
        "concatenate-one",
        "concatenate(x) -> x; pieces without elements are dropped",
        ("concatenate",),
        _concatenate_one,
        "Nothing is added.",
        (
            case(lambda f, x: f.concatenate(x, axis=0), V),
            case(lambda f, x, y: f.concatenate(y, x, axis=0), V, "f64[0]"),
        ),
    ),
    Rule(
        "concatenate-of-concatenate",
        "concatenate(concatenate(x, y), z) -> concatenate(x, y, z), where read once",
        ("concatenate",),
        _concatenate_of_concatenate,
        "One after the other.",
        (case(lambda f, x, y: f.concatenate(f.concatenate(x, y, axis=0), x, axis=0), V, V),),
        (case(lambda f, x, y: f.concatenate(f.concatenate(x, y, axis=0), f.concatenate(x, y, axis=0), axis=1), M, M),),
    ),
    Rule(
        "concatenate-of-slices",
        "concatenate(x[:k], x[k:]) -> x",
        ("concatenate",),
        _concatenate_of_slices,
        "Put together again.",
        (
            case(lambda f, x: f.concatenate(cut(f, x, (0, 2, 1)), cut(f, x, (2, 6, 1)), axis=0), V),
            case(
                lambda f, x: f.concatenate(cut(f, x, (0, 1, 1)), cut(f, x, (2, 3, 1)), cut(f, x, (4, 5, 1)), axis=0), V
            ),
        ),
        (case(lambda f, x: f.concatenate(cut(f, x, (2, 6, 1)), cut(f, x, (0, 2, 1)), axis=0), V),),
    ),
    Rule(
        "gather-at-constants",
        "gather(x, [a, a+s, ...]) -> slice(x), reversed if s < 0",
        ("gather",),
        _gather_at_constants,
        "The same elements; the indices are within the axis.",
        (
            case(lambda f, x: f.gather(x, f.constant(np.array(2)), axis=1), M),
            case(lambda f, x: f.gather(x, f.constant(np.array([1, 3, 5])), axis=0), V),
            case(lambda f, x: f.gather(x, f.constant(np.array([5, 4, 3])), axis=1), M),
        ),
        (
            case(lambda f, x: f.gather(x, f.constant(np.array([1, 3, 4])), axis=0), V),
            case(lambda f, x: f.gather(x, f.constant(np.array([6, 7])), axis=0), V),
        ),
    ),
)
