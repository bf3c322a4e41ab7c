"""Batching (`vmap`), IR to IR: a function over a leading axis of some of its arguments."""

from collections.abc import Sequence

from pullback.errors import ArgumentError
from pullback.ir.builder import Builder
from pullback.ir.graph import Function, Value
from pullback.passes.batching import batch_region, with_rows
from pullback.passes.control import RULES
from pullback.passes.emitter import RuleEmitter


def batch(
    fn: Function, batched: Sequence[bool], size: int, *, all_results: bool = True
) -> tuple[Function, tuple[bool, ...]]:
    """Run `fn` over `size` rows.

    Parameters
    ----------
    batched : which parameters get a leading axis of `size`; the others are shared by all rows
    all_results : copy results that do not depend on a batched argument along the axis too

    Returns
    -------
    The function, and for each result whether it has the leading axis.
    """
    if len(batched) != len(fn.params):
        raise ArgumentError(f"{fn.name} has {len(fn.params)} parameters, got {len(batched)} flags for batching")
    f = RuleEmitter(Builder())
    arguments = [f.wrap(_param(f, p, has, size)) for p, has in zip(fn.params, batched, strict=True)]
    results, have = batch_region(f, fn.body, arguments, batched, size, RULES)
    if all_results:
        results = [with_rows(f, r, has, size) for r, has in zip(results, have, strict=True)]
        have = [True] * len(results)
    return f.b.function(f"{fn.name}.batch", [r.value for r in results], fn.stage, fn.source), tuple(have)


def _param(f: RuleEmitter, param: Value, has: bool, size: int) -> Value:
    type = param.type.with_shape((size, *param.type.shape)) if has else param.type
    return f.b.param(type, param.hint)
