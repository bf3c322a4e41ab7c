"""`np.einsum`: every subscript NumPy takes, as pairwise contractions."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ir.types import DType
from pullback.tracer.dispatch import Entry
from pullback.tracer.functions.common import array, begun, contents, finish, reduce
from pullback.tracer.functions.contract import contract
from pullback.tracer.functions.shapes import permuted
from pullback.tracer.functions.views import open_diagonal
from pullback.tracer.operands import broadcast, cast
from pullback.tracer.steps import reshape_content, transpose_content
from pullback.tracer.trace import Content, Trace, active, shape_of

Label = Any


def einsum(*operands: Any, out: Any = None, dtype: Any = None, optimize: Any = False, **options: Any) -> Any:
    arrays, inputs, output = _parsed(operands)
    trace = active()
    parts = [_diagonals(trace, x, labels) for x, labels in zip(arrays, inputs, strict=True)]
    if len(parts) == 1 and out is None and dtype is None and output and set(output) == set(parts[0][1]):
        return permuted(parts[0][0], [parts[0][1].index(k) for k in output])  # a view, as in NumPy
    sizes = _sizes(trace, parts)
    wanted: DType = np.result_type(*[x.dtype for x, _ in parts]) if dtype is None else np.dtype(dtype)
    terms = [(cast(trace, contents(x)[1][0], wanted), labels) for x, labels in parts]
    while len(terms) > 1:
        i, j = _next_pair(terms, sizes)
        (x, xs), (y, ys) = terms[i], terms[j]
        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
        needed = set(output).union(*[labels for _, labels in rest])
        kept = [k for k in dict.fromkeys([*xs, *ys]) if k in needed]
        if not rest:
            kept = [k for k in output if k in kept]
        # in one loop that begins with 0.0; asked to optimise, NumPy multiplies two operands that have nothing to sum
        begins = not rest and not (optimize and len(parts) == 2 and set(kept) == {*xs, *ys})
        terms = [*rest, (contract(trace, x, y, xs, ys, kept, wanted, from_zero=begins), kept)]
    return finish(_arranged(trace, *terms[0], output, sizes), out, "np.einsum", options.get("casting", "safe"))


def _arranged(trace: Trace, x: Content, labels: list[Label], output: list[Label], sizes: dict[Label, int]) -> Content:
    """The last term with its spare axes summed and the rest in the order of the output."""
    shape = shape_of(x)
    x = broadcast(trace, x, tuple([sizes[k] if k not in output else n for k, n in zip(labels, shape, strict=True)]))
    gone = [i for i, k in enumerate(labels) if k not in output]
    x = reduce(trace, "sum", begun(trace, "sum", x, gone), gone) if gone else x
    labels = [k for k in labels if k in output]
    ordered = transpose_content(trace, x, [labels.index(k) for k in output if k in labels])
    present = iter(shape_of(ordered))
    narrow = tuple([next(present) if k in labels else 1 for k in output])
    return broadcast(trace, reshape_content(trace, ordered, narrow), tuple([sizes[k] for k in output]))


def _next_pair(terms: Sequence[tuple[Content, list[Label]]], sizes: dict[Label, int]) -> tuple[int, int]:
    """The two terms whose product grows least."""
    if len(terms) == 2:
        return 0, 1
    best: tuple[float, int, int] | None = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            needed = set().union(*[set(labels) for k, (_, labels) in enumerate(terms) if k not in (i, j)])
            joint = set(terms[i][1]) | set(terms[j][1])
            work = math.prod(sizes[k] for k in joint) + math.prod(sizes[k] for k in joint & needed)
            if best is None or work < best[0]:
                best = (work, i, j)
    assert best is not None
    return best[1], best[2]


# ------------------------------------------------------------------ subscripts


def _parsed(operands: Sequence[Any]) -> tuple[list[Any], list[list[Label]], list[Label]]:
    """Arrays, the labels of each, the labels of the output; subscripts that were met before are remembered."""
    if not isinstance(operands[0], str):
        return _taken_apart(operands)
    trace = active()
    arrays = [array(x) for x in operands[1:]]
    key = ("einsum", operands[0], *[x.ndim for x in arrays])
    known = trace.memo.get(key)
    if known is None:
        known = trace.memo[key] = _taken_apart((operands[0], *arrays))[1:]
    return arrays, *known


def _taken_apart(operands: Sequence[Any]) -> tuple[list[Any], list[list[Label]], list[Label]]:
    """An ellipsis becomes labels of its own."""
    trace = active()
    if isinstance(operands[0], str):
        text = operands[0].replace(" ", "")
        arrays = [array(x) for x in operands[1:]]
        left, arrow, right = text.partition("->")
        terms: list[Any] = [_letters(t) for t in left.split(",")]
        result = _letters(right) if arrow else None
    else:
        arrays = [array(x) for x in operands[0 : len(operands) - 1 : 2]]
        terms = [list(t) for t in operands[1::2]]
        result = list(operands[-1]) if len(operands) % 2 else None
    if len(terms) != len(arrays):
        raise trace.error(ValueError, f"np.einsum: {len(terms)} subscripts for {len(arrays)} operands")
    longest = 0
    inputs: list[list[Label]] = []
    for term, x in zip(terms, arrays, strict=True):
        labels = _with_ellipsis(trace, term, np.ndim(x))
        longest = max(longest, sum(isinstance(k, tuple) for k in labels))
        inputs.append(labels)
    dots: list[Label] = [("...", longest - k) for k in range(longest)]
    if result is None:
        counts: dict[Label, int] = {}
        for labels in inputs:
            for k in labels:
                counts[k] = counts.get(k, 0) + 1
        output = dots + sorted(k for k, n in counts.items() if n == 1 and not isinstance(k, tuple))
    else:
        output = [k for part in result for k in (dots if part is Ellipsis else [part])]
    known = {k for labels in inputs for k in labels}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise trace.error(
            ValueError, f"np.einsum: the output subscripts {_spelled(output)} must be distinct and appear in an input"
        )
    return arrays, inputs, output


def _spelled(labels: Sequence[Label]) -> str:
    return "".join("." if isinstance(k, tuple) else str(k) for k in labels)


def _letters(term: str) -> list[Label]:
    head, dots, tail = term.partition("...")
    return [*head, Ellipsis, *tail] if dots else list(head)


def _with_ellipsis(trace: Trace, term: list[Label], ndim: int) -> list[Label]:
    """The ellipsis replaced by labels counted from the right, so that operands align on their last axes."""
    named = sum(k is not Ellipsis for k in term)
    if Ellipsis not in term:
        if named != ndim:
            raise trace.error(
                ShapeError, f"np.einsum: subscripts {_spelled(term)!r} name {named} axes, the operand has {ndim}"
            )
        return list(term)
    extra = ndim - named
    if extra < 0:
        raise trace.error(ShapeError, f"np.einsum: subscripts name {named} axes, the operand has {ndim}")
    return [k for part in term for k in ([("...", extra - i) for i in range(extra)] if part is Ellipsis else [part])]


def _diagonals(trace: Trace, x: Any, labels: list[Label]) -> tuple[Any, list[Label]]:
    """A label that an operand has twice means its diagonal."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            if x.shape[i] != x.shape[j]:
                raise trace.error(
                    ShapeError,
                    f"np.einsum: dimensions in operand for collapsing index {label!r} don't match "
                    f"({x.shape[i]} != {x.shape[j]})",
                )
            x = open_diagonal(x, 0, i, j)
            labels = [k for n, k in enumerate(labels) if n not in (i, j)] + [label]
    return x, labels


def _sizes(trace: Trace, parts: Sequence[tuple[Any, list[Label]]]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for x, labels in parts:
        for k, n in zip(labels, x.shape, strict=True):
            if sizes.get(k, 1) == 1:
                sizes[k] = n
            elif n not in (1, sizes[k]):
                shapes = ", ".join(str(p.shape) for p, _ in parts)
                raise trace.error(
                    ShapeError, f"np.einsum: axis {k!r} has length {sizes[k]} and {n} (operands of shapes {shapes})"
                )
    return sizes


def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """A plan in terms of shapes alone: NumPy's own, for arrays of zeros of the same shapes."""
    return np.einsum_path(*[_stand_in(x) for x in operands], optimize=optimize)


def _stand_in(x: Any) -> Any:
    return x if isinstance(x, str | list) else np.broadcast_to(np.zeros(()), np.shape(x))


FUNCTIONS: dict[Any, Entry] = {np.einsum: Entry(einsum, False), np.einsum_path: Entry(einsum_path)}
