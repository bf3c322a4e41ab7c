"""Rules of slice, update and pad: who made the elements that are read.

In-place code (`out[i] = ...; ... out[i]`) and its adjoint are chains of update and slice; reading through them is what
lets unrolled loops work on single values.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pullback.ir.graph import Op, Value
from pullback.ir.ops.views import inverse_permutation
from pullback.ir.types import Shape
from pullback.passes.rules.lines import Line, Lines, lines_of
from pullback.passes.rules.record import Rewriter, Rule, case, made_by


def bounds_of(lines: Sequence[Line]) -> dict[str, Shape]:
    """The attributes of a slice; the stop is as low as it can be, and an empty line begins at 0."""
    return {
        "start": tuple([line.first if line.count else 0 for line in lines]),
        "stop": tuple([line.last + 1 if line.count else 0 for line in lines]),
        "step": tuple([line.step for line in lines]),
    }


def slice_of(r: Rewriter, x: Value, lines: Sequence[Line]) -> Value:
    return r.emit("slice", x, **bounds_of(lines))


def _is_all(lines: Lines, shape: Shape) -> bool:
    return all(line.count == n and line.step == 1 for line, n in zip(lines, shape, strict=True))


def _is_empty(lines: Lines) -> bool:
    return any(line.count == 0 for line in lines)


def _apart(x: Lines, y: Lines) -> bool:
    """Whether two slices surely share no element (one axis is enough)."""
    for a, b in zip(x, y, strict=True):
        if not a.count or not b.count or a.last < b.first or b.last < a.first:
            return True
        step = math.gcd(a.step, b.step)
        if (a.first - b.first) % step:
            return True
    return False


def _within(inner: Line, outer: Line) -> bool:
    """Whether each element of `inner` is one of `outer`."""
    if inner.count == 0:
        return True
    aligned = (inner.first - outer.first) % outer.step == 0
    along = inner.count == 1 or inner.step % outer.step == 0
    return aligned and along and outer.count > 0 and inner.first >= outer.first and inner.last <= outer.last


def _covers(outer: Lines, inner: Lines) -> bool:
    return all(_within(i, o) for i, o in zip(inner, outer, strict=True))


def _relative(inner: Line, outer: Line) -> Line:
    """`inner`, which is within `outer`, counted in elements of `outer`."""
    if inner.count == 0:
        return Line(0, 0, 1)
    step = inner.step // outer.step if inner.count > 1 else 1
    return Line((inner.first - outer.first) // outer.step, inner.count, step)


# ------------------------------------------------------------------ slice


def _slice_all(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return x if x.type.shape == op.results[0].type.shape else None


def _slice_of_slice(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "slice")
    if inner is None:
        return None
    pairs = zip(lines_of(op), lines_of(inner), strict=True)
    lines = [Line(i.first + o.first * i.step, o.count, o.step * i.step) for o, i in pairs]
    return slice_of(r, inner.operands[0], lines)


def _slice_of_reverse(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "reverse")
    if inner is None:
        return None
    (x,), axes = inner.operands, inner.attrs["axes"]
    if _is_empty(lines_of(op)):
        return slice_of(r, x, lines_of(op))
    lines = list(lines_of(op))
    for a in axes:
        lines[a] = replace(lines[a], first=x.type.shape[a] - 1 - lines[a].last)
    return r.emit("reverse", slice_of(r, x, lines), axes=axes)


def _slice_of_transpose(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "transpose")
    if inner is None:
        return None
    lines, perm = lines_of(op), inner.attrs["perm"]
    moved = [lines[k] for k in inverse_permutation(perm)]
    return r.emit("transpose", slice_of(r, inner.operands[0], moved), perm=perm)


MOST_PIECES = 4096  # of a concatenation that is searched; beyond, slices of it would cost quadratic time


def _slice_of_concatenate(r: Rewriter, op: Op) -> Value | None:
    """A slice that lies within one piece."""
    inner = made_by(op.operands[0], "concatenate")
    lines = lines_of(op)
    if inner is None or _is_empty(lines) or len(inner.operands) > MOST_PIECES:
        return None
    axis, at = inner.attrs["axis"], 0
    wanted = lines[axis]
    for piece in inner.operands:
        n = piece.type.shape[axis]
        if wanted.first < at + n:
            if wanted.last >= at + n:
                return None
            return slice_of(r, piece, [*lines[:axis], replace(wanted, first=wanted.first - at), *lines[axis + 1 :]])
        at += n
    return None


MOST_UPDATES = 256  # looked at by one slice, of those that may have written what it reads


def _slice_of_update(r: Rewriter, op: Op) -> Value | None:
    """What was written there last, if one update wrote all of it; passing updates that wrote elsewhere."""
    (start,), lines = op.operands, lines_of(op)
    if made_by(start, "update") is None or _is_empty(lines):
        return None
    x, left = start, MOST_UPDATES
    while (place := r.chains.place(x)) is not None:
        chain, count = place
        for number in chain.met(lines, count):
            written, left = chain.lines[number], left - 1
            if _covers(written, lines):
                relative = [_relative(i, o) for i, o in zip(lines, written, strict=True)]
                return slice_of(r, chain.updates[number].operands[1], relative)
            if left < 0 or not _apart(written, lines):
                x = chain.updates[number].results[0]
                return slice_of(r, x, lines) if x is not start else None
        x = chain.base
    return slice_of(r, x, lines)


def _slice_of_pad(r: Rewriter, op: Op) -> Value | None:
    """A slice that takes padding only, or elements only (with the padding between them skipped)."""
    inner = made_by(op.operands[0], "pad")
    lines = lines_of(op)
    if inner is None or _is_empty(lines):
        return None
    (x,), a = inner.operands, inner.attrs
    held = [Line(low, n, gap + 1) for low, gap, n in zip(a["low"], a["interior"], x.type.shape, strict=True)]
    if _apart(tuple(held), lines):
        return r.full(op.results[0].type, 0)
    if not _covers(tuple(held), lines):
        return None
    return slice_of(r, x, [_relative(i, o) for i, o in zip(lines, held, strict=True)])


# ------------------------------------------------------------------ update


def _update_all(r: Rewriter, op: Op) -> Value | None:
    x, v = op.operands
    return v if _is_all(lines_of(op), x.type.shape) else None


def _update_nothing(r: Rewriter, op: Op) -> Value | None:
    x, v = op.operands
    return x if v.type.size == 0 else None


def _update_with_own(r: Rewriter, op: Op) -> Value | None:
    x, v = op.operands
    inner = made_by(v, "slice")
    return x if inner is not None and inner.operands[0] is x and lines_of(inner) == lines_of(op) else None


def _update_over_update(r: Rewriter, op: Op) -> Value | None:
    x, v = op.operands
    inner = made_by(x, "update")
    if inner is None or not _covers(lines_of(op), lines_of(inner)):
        return None
    return r.emit("update", inner.operands[0], v, **op.attrs)


# ------------------------------------------------------------------ pad


def _pad_nothing(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return x if x.type.shape == op.results[0].type.shape else None


def _pad_of_pad(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "pad")
    if inner is None or any(op.attrs["interior"]):
        return None
    a, b = inner.attrs, op.attrs
    low = tuple([p + q for p, q in zip(a["low"], b["low"], strict=True)])
    high = tuple([p + q for p, q in zip(a["high"], b["high"], strict=True)])
    return r.emit("pad", inner.operands[0], low=low, high=high, interior=a["interior"])


V, M, T = "f64[6]", "f64[4,6]", "f64[2,4,6]"


def cut(f: Any, x: Any, *lines: tuple[int, int, int]) -> Any:
    starts, stops, steps = zip(*lines, strict=True)
    return f.slice(x, start=starts, stop=stops, step=steps)


def _put(f: Any, x: Any, v: Any, *lines: tuple[int, int, int]) -> Any:
    starts, stops, steps = zip(*lines, strict=True)
    return f.update(x, v, start=starts, stop=stops, step=steps)


def _pad(f: Any, x: Any, *widths: tuple[int, int, int]) -> Any:
    low, high, interior = zip(*widths, strict=True)
    return f.pad(x, low=low, high=high, interior=interior)


SLICES: tuple[Rule, ...] = (
    Rule(
        "slice-all",
        "slice(x) of everything -> x",
        ("slice",),
        _slice_all,
        "Nothing is left out.",
        (case(lambda f, x: cut(f, x, (0, 4, 1), (0, 6, 1)), M),),
    ),
    Rule(
        "slice-of-slice",
        "slice(slice(x)) -> slice(x)",
        ("slice",),
        _slice_of_slice,
        "Starts and steps compose.",
        (
            case(lambda f, x: cut(f, cut(f, x, (1, 6, 2)), (1, 3, 1)), V),
            case(lambda f, x: cut(f, cut(f, x, (1, 6, 2)), (2, 2, 1)), V),
            case(lambda f, x: cut(f, cut(f, x, (0, 6, 5)), (2, 2, 1)), V),
        ),
    ),
    Rule(
        "slice-of-reverse",
        "slice(reverse(x)) -> reverse(slice(x))",
        ("slice",),
        _slice_of_reverse,
        "Counted from the other end.",
        (
            case(lambda f, x: cut(f, f.reverse(x, axes=(1,)), (1, 3, 1), (0, 6, 4)), M),
            case(lambda f, x: cut(f, f.reverse(x, axes=(1,)), (1, 3, 1), (2, 2, 1)), M),
        ),
    ),
    Rule(
        "slice-of-transpose",
        "slice(transpose(x)) -> transpose(slice(x))",
        ("slice",),
        _slice_of_transpose,
        "Less is moved.",
        (case(lambda f, x: cut(f, f.transpose(x, perm=(2, 0, 1)), (1, 6, 2), (0, 1, 1), (1, 4, 1)), T),),
    ),
    Rule(
        "slice-of-concatenate",
        "slice(concatenate(..x..)) within x -> slice(x)",
        ("slice",),
        _slice_of_concatenate,
        "No other piece is read.",
        (
            case(lambda f, x, y: cut(f, f.concatenate(x, y, axis=0), (7, 11, 2)), V, V),
            case(lambda f, x, y: cut(f, f.concatenate(x, y, axis=1), (1, 2, 1), (0, 6, 1)), M, M),
        ),
        (case(lambda f, x, y: cut(f, f.concatenate(x, y, axis=0), (5, 7, 1)), V, V),),
    ),
    Rule(
        "slice-of-update",
        "slice(update(x, v)) -> slice(v) if v covers it, slice(x) if v is elsewhere",
        ("slice",),
        _slice_of_update,
        "Reads what was written there last.",
        (
            case(lambda f, x, v: cut(f, _put(f, x, v, (1, 6, 2)), (3, 6, 2)), V, "f64[3]"),
            case(lambda f, x, v: cut(f, _put(f, x, v, (1, 6, 2)), (0, 6, 2)), V, "f64[3]"),
            case(lambda f, x, v: cut(f, _put(f, x, v, (1, 6, 2)), (5, 6, 1)), V, "f64[3]"),
            case(lambda f, x, v: cut(f, _put(f, x, v, (0, 2, 1), (0, 6, 1)), (2, 4, 1), (1, 4, 1)), M, "f64[2,6]"),
        ),
        (case(lambda f, x, v: cut(f, _put(f, x, v, (1, 4, 1)), (0, 3, 1)), V, "f64[3]"),),
    ),
    Rule(
        "slice-of-pad",
        "slice(pad(x)) -> slice(x) if it takes elements only, 0 if none",
        ("slice",),
        _slice_of_pad,
        "Padding is 0.0.",
        (
            case(lambda f, x: cut(f, _pad(f, x, (2, 3, 1)), (2, 13, 2)), V),
            case(lambda f, x: cut(f, _pad(f, x, (2, 3, 1)), (3, 12, 2)), V),
            case(lambda f, x: cut(f, _pad(f, x, (2, 3, 0)), (9, 11, 1)), V),
            case(lambda f, x: cut(f, _pad(f, x, (2, 3, 0)), (3, 5, 1)), V),
        ),
        (
            case(lambda f, x: cut(f, _pad(f, x, (2, 3, 0)), (1, 5, 1)), V),
            case(lambda f, x: cut(f, _pad(f, x, (2, 3, 1)), (2, 6, 1)), V),
        ),
    ),
    Rule(
        "update-all",
        "update(x, v) of everything -> v",
        ("update",),
        _update_all,
        "Nothing of x is left.",
        (case(lambda f, x, v: _put(f, x, v, (0, 6, 1)), V, V),),
        (case(lambda f, x, v: _put(f, x, v, (0, 6, 2)), V, "f64[3]"),),
    ),
    Rule(
        "update-nothing",
        "update(x, v) of no element -> x",
        ("update",),
        _update_nothing,
        "Nothing of x is replaced.",
        (case(lambda f, x, v: _put(f, x, v, (2, 2, 1)), V, "f64[0]"),),
    ),
    Rule(
        "update-with-own",
        "update(x, slice(x)) at the same place -> x",
        ("update",),
        _update_with_own,
        "Written over itself.",
        (case(lambda f, x: _put(f, x, cut(f, x, (1, 4, 2)), (1, 4, 2)), V),),
        (case(lambda f, x: _put(f, x, cut(f, x, (0, 3, 2)), (1, 4, 2)), V),),
    ),
    Rule(
        "update-over-update",
        "update(update(x, u), v) -> update(x, v) if v covers u",
        ("update",),
        _update_over_update,
        "Nothing of u is left.",
        (case(lambda f, x, u, v: _put(f, _put(f, x, u, (1, 4, 2)), v, (1, 4, 1)), V, "f64[2]", "f64[3]"),),
        (case(lambda f, x, u, v: _put(f, _put(f, x, u, (1, 4, 1)), v, (1, 4, 2)), V, "f64[3]", "f64[2]"),),
    ),
    Rule(
        "pad-nothing",
        "pad(x) by nothing -> x",
        ("pad",),
        _pad_nothing,
        "Nothing is added.",
        (case(lambda f, x: _pad(f, x, (0, 0, 0)), V), case(lambda f, x: _pad(f, x, (0, 0, 3)), "f64[1]")),
    ),
    Rule(
        "pad-of-pad",
        "pad(pad(x)) -> pad(x)",
        ("pad",),
        _pad_of_pad,
        "Widths add up, unless the outer one parts the elements.",
        (case(lambda f, x: _pad(f, _pad(f, x, (1, 2, 1)), (3, 0, 0)), V),),
        (case(lambda f, x: _pad(f, _pad(f, x, (1, 2, 0)), (3, 0, 1)), V),),
    ),
)
