"""A program run once more, op by op in NumPy, to find the op that failed or the one that made a NaN."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import NumericalError
from pullback.ir.graph import Function, Op, Region, Value
from pullback.ir.interpret import interpret
from pullback.ir.opdef import Array


def failing_op(function: Function, arguments: Sequence[Array]) -> Op | None:
    """The first op that cannot be evaluated for these arguments; None if all can."""
    replay = _Replay()
    try:
        interpret(function, arguments, replay.region)
    except (NumericalError, np.linalg.LinAlgError):
        return replay.at
    return None


def nan_op(function: Function, arguments: Sequence[Array]) -> Op | None:
    """The op that made the NaN of a result, out of operands without one; None if a parameter brought it, or if no
    result is NaN."""
    found: list[Op | None] = []

    def run(region: Region, given: Sequence[Array]) -> tuple[Array, ...]:
        replay = _Replay()
        results = replay.region(region, given)
        found.append(_culprit(replay.env, region.results))
        return results

    interpret(function, arguments, run)
    return found[-1]


def _culprit(env: dict[Value, Array], results: Sequence[Value]) -> Op | None:
    value = next((v for v in results if has_nan(env[v])), None)
    while value is not None and value.op is not None:
        op = value.op
        value = next((v for v in op.operands if has_nan(env[v])), None)
        if value is None:
            return _inner_nan_op(op, [env[v] for v in op.operands])
    return None


def _inner_nan_op(op: Op, operands: Sequence[Array]) -> Op:
    """Of control flow, the first op inside that makes a NaN; else the op itself."""
    replay = _Replay(stops_at_nan=True)
    try:
        op.opdef.evaluate(op, operands, replay.region)
    except _NanError:
        return replay.at or op
    return op


def has_nan(array: Any) -> bool:
    """Whether a number or array is or has a NaN."""
    kind = getattr(array, "dtype", None)
    if kind is None:
        return isinstance(array, float | complex) and array != array
    return kind.kind in "fc" and bool(np.isnan(array).any())


class _NanError(Exception):
    """An op made a NaN."""


class _Replay:
    """An evaluation that knows at which op it is, and keeps the values of the outermost region."""

    def __init__(self, stops_at_nan: bool = False) -> None:
        self.at: Op | None = None
        self.env: dict[Value, Array] = {}
        self._stops_at_nan = stops_at_nan

    def region(self, region: Region, arguments: Sequence[Array]) -> tuple[Array, ...]:
        env: dict[Value, Array] = dict(zip(region.params, arguments, strict=True))
        self.env = self.env or env
        for op in region.ops:
            operands = [env[v] for v in op.operands]
            self.at = op
            results = op.opdef.evaluate(op, operands, self.region)
            if self._stops_at_nan and any(map(has_nan, results)) and not any(map(has_nan, operands)):
                self.at = op
                raise _NanError
            env.update(zip(op.results, results, strict=True))
        return tuple([np.asarray(env[v]) for v in region.results])
