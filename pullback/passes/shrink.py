"""A smaller function that still fails: ops are cut out of it as long as the failure stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from pullback.errors import PullbackError
from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs, Function, Literal, Op, Region, Value, walk
from pullback.ir.ops import OPS
from pullback.ir.verify import verify
from pullback.passes.base import Context
from pullback.passes.dce import sweep

Fails = Callable[[Function], bool]


def shrink(function: Function, fails: Fails) -> Function:
    """The smallest function that greedy cutting finds for which `fails` is true.

    What is cut out becomes a parameter, an operand of its type, or (in the regions of an op) zero; results that the
    failure does not need go, and so do parameters that nothing reads. Parts are tried from large to small, until no
    single one can be left out.

    Parameters
    ----------
    fails : true for `function`; it is asked about valid functions only
    """
    while True:
        smaller = _without_parts(function, fails, _fewer_results, len(function.results))
        for cut in (_cutter(None), _cutter(0), _cutter(-1), _without_last):
            smaller = _without_parts(smaller, fails, cut, sum(1 for _ in walk(smaller.body)))
        if _size(smaller) >= _size(function):
            return function
        function = smaller


Cut = Callable[[Function, range], Function | None]


def _without_parts(function: Function, fails: Fails, cut: Cut, count: int) -> Function:
    """`function` less all the parts that it fails without; parts are numbered, and cut out from the last to the first,
    so that what is left keeps its numbers."""
    width = max(1, count)
    while width:
        stop = count
        while stop > 0:
            part = range(max(0, stop - width), stop)
            candidate = cut(function, part)
            if candidate is not None and _size(candidate) < _size(function) and _still(candidate, fails):
                function = candidate
            stop = part.start
        width //= 2
    return function


def _still(candidate: Function, fails: Fails) -> bool:
    try:
        verify(candidate)
    except PullbackError:
        return False
    return fails(candidate)


def _size(function: Function) -> tuple[int, int, int]:
    """Ops, then results, then parameters."""
    return sum(1 for _ in walk(function.body)), len(function.results), len(function.params)


# ------------------------------------------------------------------ cuts


def _fewer_results(function: Function, part: range) -> Function | None:
    kept = [value for number, value in enumerate(function.results) if number not in part]
    if not kept or len(kept) == len(function.results):
        return None
    return _tidy(replace(function, body=replace(function.body, results=tuple(kept))))


def _without_last(function: Function, part: range) -> Function | None:
    """Of ops whose results are given, what they read is given instead."""
    gone = {op for number, op in enumerate(walk(function.body)) if number in part}
    results: dict[Value, None] = {}
    for value in function.results:
        results.update(dict.fromkeys(value.op.operands if value.op in gone and value.op is not None else (value,)))
    return _tidy(replace(function, body=replace(function.body, results=tuple(results)))) if results else None


def _cutter(operand: int | None) -> Cut:
    """Cuts ops out, numbered as `walk` meets them; their first or last operand of the right type (0, -1) takes their
    place."""

    def cut(function: Function, part: range) -> Function | None:
        gone = {op for number, op in enumerate(walk(function.body)) if number in part}
        try:
            body = _Copy(gone, operand).region(function.body, outermost=True)
        except PullbackError:
            return None
        return _tidy(replace(function, body=body)) if gone else None

    return cut


def _tidy(function: Function) -> Function:
    """Without what nothing reads, parameters included."""
    body = sweep(function.body, Context())
    read = {operand for op in body.ops for operand in op.operands} | set(body.results)
    b = Builder()
    env = {p: b.param(p.type, p.hint) for p in body.params if p in read}
    return replace(function, body=_Copy(set()).into(b, body, env))


class _Copy:
    """Copies regions without some of their ops."""

    def __init__(self, gone: set[Op], operand: int | None = None) -> None:
        self._gone = gone
        self._operand = operand

    def region(self, region: Region, outermost: bool = False) -> Region:
        b = Builder()
        env = {p: b.param(p.type, p.hint) for p in region.params}
        if outermost:
            for value in self._cut_values(region):
                env[value] = b.param(value.type, value.hint)
        return self.into(b, region, env)

    def into(self, b: Builder, region: Region, env: dict[Value, Value]) -> Region:
        for op in region.ops:
            if op in self._gone:
                for result in op.results:
                    if result not in env:
                        stand_in = self._stand_in(op, result)
                        env[result] = _zero(b, result) if stand_in is None else env[stand_in]
            else:
                regions = tuple([self.region(inner) for inner in op.regions])
                new = b.copy(op, [env[v] for v in op.operands], regions)
                env.update(zip(op.results, new.results, strict=True))
        return b.region([env[v] for v in region.results])

    def _cut_values(self, region: Region) -> Iterator[Value]:
        """The results of what goes for which no operand stands in."""
        for op in region.ops:
            if op in self._gone:
                yield from [r for r in op.results if self._stand_in(op, r) is None]

    def _stand_in(self, op: Op, result: Value) -> Value | None:
        """The operand that takes the place of a result."""
        alike = [v for v in op.operands if v.type == result.type]
        return alike[self._operand] if alike and self._operand is not None else None


def _zero(b: Builder, like: Value) -> Value:
    literal = Literal(np.zeros((), like.type.dtype))
    number = b.emit(OPS["constant"], value=literal)
    if like.type.shape == ():
        return number
    return b.add(OPS["broadcast"], (number,), Attrs(dims=(), shape=like.type.shape)).results[0]
