"""Splits a function into the part that depends on some parameters only and the part that needs the others.

`vjp` is `reverse` split at its cotangents: the forward part gives the outputs and the residuals, the backward part
takes the residuals and the cotangents. Structured control flow splits its regions the same way.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pullback.ir.builder import Builder
from pullback.ir.graph import Function, Op, Value
from pullback.ir.types import TensorType
from pullback.passes.remat import choose_residuals


class Partition(NamedTuple):
    """The two parts of a function.

    known : known parameters -> known results, then the residuals
    residuals : their types
    unknown : residuals, then the other parameters -> the other results
    result_known : for each result of the function, whether `known` gives it
    from_param : for each residual, the number of the parameter of `known` that it is, or None
    """

    known: Function
    residuals: tuple[TensorType, ...]
    unknown: Function
    result_known: tuple[bool, ...]
    from_param: tuple[int | None, ...]


def bytes_of(value: Value) -> int:
    return value.type.nbytes


def partition(
    fn: Function,
    known: Sequence[bool],
    *,
    known_results: Sequence[bool] | None = None,
    cost: Callable[[Value], int] = bytes_of,
    may_go_first: Callable[[Op], bool] = lambda op: True,
) -> Partition:
    """Split `fn` by which of its parameters are known first.

    Parameters
    ----------
    known_results : which results the known part gives (they must not need an unknown parameter); default: all it can
    cost : what storing a value as a residual costs; the residuals are the cheapest set (`remat`)
    may_go_first : which ops may be in the known part at all
    """
    early = _known_ops(fn, known, may_go_first)
    available = {p for p, on in zip(fn.params, known, strict=True) if on}
    available.update(r for op in early for r in op.results)
    gives = [r in available for r in fn.results] if known_results is None else list(known_results)
    first = set(early)
    others = [r for r, on in zip(fn.results, gives, strict=True) if not on]
    late = _needed_ops([op for op in fn.ops if op not in first], others)
    reads = [v for op in late for v in op.operands if v in available] + [r for r in others if r in available]
    residuals = choose_residuals(early, reads, cost)
    return _build(fn, known, gives, early, late, reads, residuals)


def _known_ops(fn: Function, known: Sequence[bool], may_go_first: Callable[[Op], bool]) -> list[Op]:
    available = {p for p, on in zip(fn.params, known, strict=True) if on}
    early = []
    for op in fn.ops:
        if all(v in available for v in op.operands) and may_go_first(op):
            available.update(op.results)
            early.append(op)
    return early


def _needed_ops(ops: Sequence[Op], wanted: Iterable[Value]) -> list[Op]:
    """The ops that compute `wanted`, and those with an effect, in order."""
    needed, kept = set(wanted), []
    for op in reversed(ops):
        if op.opdef.effect or not needed.isdisjoint(op.results):
            needed.update(op.operands)
            kept.append(op)
    return kept[::-1]


def _build(
    fn: Function,
    known: Sequence[bool],
    gives: Sequence[bool],
    early: Sequence[Op],
    late: Sequence[Op],
    reads: Sequence[Value],
    residuals: Sequence[Value],
) -> Partition:
    first = [p for p, on in zip(fn.params, known, strict=True) if on]
    second = [p for p, on in zip(fn.params, known, strict=True) if not on]
    outputs = [r for r, on in zip(fn.results, gives, strict=True) if on]
    others = [r for r, on in zip(fn.results, gives, strict=True) if not on]
    saved = set(residuals)
    again = _needed_ops([op for op in early if not op.opdef.effect and saved.isdisjoint(op.results)], reads)
    number = {p: k for k, p in enumerate(first)}
    return Partition(
        known=_rebuild(
            f"{fn.name}.forward", fn, first, _needed_ops(early, [*outputs, *residuals]), [*outputs, *residuals]
        ),
        residuals=tuple(v.type for v in residuals),
        unknown=_rebuild(f"{fn.name}.backward", fn, [*residuals, *second], [*again, *late], others),
        result_known=tuple(gives),
        from_param=tuple(number.get(v) for v in residuals),
    )


def extract(fn: Function, params: Sequence[Value], results: Sequence[Value]) -> Function:
    """The part of `fn` that computes `results` (any of its values), as a function of `params`."""
    return _rebuild(fn.name, fn, params, _needed_ops(fn.ops, results), results)


def _rebuild(name: str, fn: Function, params: Sequence[Value], ops: Sequence[Op], results: Sequence[Value]) -> Function:
    b = Builder()
    env = {p: b.param(p.type, p.hint) for p in params}
    for op in ops:
        new = b.copy(op, [env[v] for v in op.operands])
        env.update(zip(op.results, new.results, strict=True))
    return b.function(name, [env[r] for r in results], fn.stage, fn.source)
