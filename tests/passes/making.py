"""Functions for the tests of passes, written as Python over expressions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Function, Location, Region
from pullback.ir.interpret import interpret
from pullback.ir.ops import OPS
from pullback.ir.types import parse_type
from pullback.ir.verify import verify
from pullback.passes.forward import forward
from pullback.passes.reverse import reverse

Build = Callable[..., Any]


def make(types: str, build: Build, name: str = "fn") -> Function:
    """A function of parameters of `types` (separated by spaces); `build(f, *params)` gives an Expr or several."""
    b = Builder()
    f = Emitter(b, OPS)
    params = [f.wrap(b.param(parse_type(t), f"x{k}")) for k, t in enumerate(types.split())]
    b.loc = Location("model.py", 1, name)
    made = build(f, *params)
    results = [made] if isinstance(made, Expr) else list(made)
    fn = b.function(name, [r.value for r in results])
    verify(fn)
    return fn


def region(types: Sequence[Any], build: Build) -> Region:
    b = Builder()
    f = Emitter(b, OPS)
    made = build(f, *[f.wrap(b.param(t)) for t in types])
    return b.region([r.value for r in ([made] if isinstance(made, Expr) else made)])


def cond(f: Emitter, pred: Expr, then: Build, other: Build, *args: Expr) -> list[Expr]:
    """Emit an `if`."""
    types = [a.type for a in args]
    regions = (region(types, then), region(types, other))
    op = f.b.add(OPS["if"], [pred.value, *(a.value for a in args)], Attrs(), regions)
    return [f.wrap(r) for r in op.results]


def arrays(*values: Any) -> list[Any]:
    return [np.asarray(v) for v in values]


def grad(fn: Function, *args: Any, wrt: Sequence[int] | None = None) -> list[Any]:
    """The gradients of a scalar function in all its inexact parameters."""
    numbers = [k for k, t in enumerate(fn.param_types) if t.is_inexact] if wrt is None else list(wrt)
    made = reverse(fn, numbers, seed=True, with_outputs=False)
    verify(made)
    return list(interpret(made, arrays(*args)))


def jvp(fn: Function, args: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    numbers = [k for k, t in enumerate(fn.param_types) if t.is_inexact]
    made = forward(fn, numbers, with_outputs=False)
    verify(made)
    return list(interpret(made, arrays(*args, *tangents)))


def names(fn: Function) -> list[str]:
    return [op.name for op in fn.ops]


def total(x: Expr) -> Expr:
    """The sum of all elements."""
    return x.f.sum(x, axes=tuple(range(x.ndim)))


# ------------------------------------------------------------------ loops


def scan(
    f: Emitter, body: Build, carries: Sequence[Expr], scanned: Sequence[Expr], constants: Sequence[Expr] = (),
    *, length: int, reverse: bool = False,
) -> list[Expr]:  # fmt: skip
    """Emit a scan of static length; `body(f, *carries, *rows, *constants)` gives next carries and what is stacked."""
    rows = [x.type.with_shape(x.shape[1:]) for x in scanned]
    types = [*(x.type for x in carries), *rows, *(x.type for x in constants)]
    attrs = Attrs(carries=len(carries), scanned=len(scanned), length=length, reverse=reverse)
    operands = [x.value for x in (*carries, *scanned, *constants)]
    return [f.wrap(r) for r in f.b.add(OPS["scan"], operands, attrs, (region(types, body),)).results]


def loop(
    f: Emitter, condition: Build, body: Build, carries: Sequence[Expr], constants: Sequence[Expr] = ()
) -> list[Expr]:
    """Emit a while; condition and body take carries and constants."""
    types = [x.type for x in (*carries, *constants)]
    regions = (region(types, condition), region(types, body))
    op = f.b.add(OPS["while"], [x.value for x in (*carries, *constants)], Attrs(carries=len(carries), most=0), regions)
    return [f.wrap(r) for r in op.results]


def number(f: Emitter, x: Any, dtype: Any = "f8") -> Expr:
    return f.constant(np.asarray(x, dtype))
