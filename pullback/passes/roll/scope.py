"""Where the ops of a rolled region go: what has been emitted, and what values have become there."""

from typing import Any

import numpy as np

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op, Value
from pullback.ir.opdef import Array
from pullback.ir.ops import OPS
from pullback.ir.types import I64, tensor_type
from pullback.passes.roll.track import Track


class Scope:
    """A region under construction. A view of a value is made once."""

    __slots__ = ("_views", "b", "env", "f", "track")

    def __init__(self, track: Track) -> None:
        self.track = track
        self.b = Builder()
        self.f = Emitter(self.b, OPS)
        self.env: dict[Value, Value] = {}
        self._views: dict[Any, Value] = {}

    def view(self, x: Value, op: Op) -> Value:
        """The view `op` of `x`."""
        key = (x, op.opdef.name, op.attrs.key())
        made = self._views.get(key)
        if made is None:
            made = self._views[key] = self.b.copy(op, [x]).results[0]
        return made

    def views(self, x: Value, ops: tuple[Op, ...]) -> Value:
        for op in ops:
            x = self.view(x, op)
        return x

    def fixed(self, value: Value) -> Value:
        """A value that depends on nothing, emitted here with what it is made of."""
        stack = [value]
        while stack:
            top = stack[-1]
            op = top.op
            assert op is not None
            missing = [v for v in op.operands if v not in self.env]
            if top in self.env or not missing:
                stack.pop()
            if top not in self.env and not missing:
                new = self.b.copy(op, [self.env[v] for v in op.operands])
                self.env.update(zip(op.results, new.results, strict=True))
            stack.extend(missing)
        return self.env[value]


def table(f: Emitter, array: Array) -> Expr:
    """A constant array: by arithmetic where it is evenly spaced integers, which cost no memory then."""
    if array.dtype != I64 or array.size < 64:
        return f.constant(array)
    origin = int(array.reshape(-1)[0])
    steps = [int(np.take(array, 1, k).reshape(-1)[0]) - origin if n > 1 else 0 for k, n in enumerate(array.shape)]
    spaced = np.full(array.shape, origin)
    for axis, (n, step) in enumerate(zip(array.shape, steps, strict=True)):
        spaced += (step * np.arange(n)).reshape([-1 if k == axis else 1 for k in range(array.ndim)])
    if not (array == spaced).all():
        return f.constant(array)
    made = f.full(tensor_type(I64, array.shape), origin)
    for axis, step in enumerate(steps):
        if step:
            line = f.arange_like(array.shape, axis)
            made = made + (line if step == 1 else line * step)
    return made
