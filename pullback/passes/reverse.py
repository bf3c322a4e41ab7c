"""Reverse mode, IR to IR: a function that also gives its gradients."""

from collections.abc import Sequence

from pullback.errors import ArgumentError, NonScalarOutputError
from pullback.ir.builder import Builder
from pullback.ir.emit import Expr
from pullback.ir.graph import Function, Value
from pullback.passes.activity import active_values
from pullback.passes.control import RULES
from pullback.passes.emitter import RuleEmitter
from pullback.passes.facts import Facts
from pullback.passes.strong_zeros import KINK, NONE, Marked
from pullback.passes.sweep import ReverseSweep


def reverse(fn: Function, wrt: Sequence[int], *, seed: bool = False, with_outputs: bool = True) -> Function:
    """The vector-Jacobian product of `fn`, or its gradient.

    Parameters
    ----------
    wrt : numbers of the parameters to differentiate in, floating or complex
    seed : True takes 1 as the cotangent of the first output, which must be a scalar, and nothing for the others (they
        are
        auxiliary)
    with_outputs : whether the new function gives the outputs of `fn` too

    Returns
    -------
    A function of the parameters of `fn` and, without `seed`, one cotangent for each floating or complex output. Its
    results are the outputs (with `with_outputs`), then one gradient for each of `wrt`, zeros where the outputs do not
    depend on it.

    For complex values the cotangent of z = x + iy is dL/dx - i dL/dy: rules multiply without conjugation.
    """
    check_differentiable(fn, wrt)
    if seed:
        _check_scalar(fn)
    f = RuleEmitter(Builder())
    arguments = [f.b.param(p.type, p.hint) for p in fn.params]
    seeded = [(seed and k == 0) or (not seed and r.type.is_inexact) for k, r in enumerate(fn.results)]
    wanted = [k in set(wrt) for k in range(len(fn.params))]
    marks = [NONE if seed or not r.type.ndim else KINK for r in fn.results]
    active = active_values(fn.body, wanted, seeded, RULES)
    sweep = ReverseSweep(f, Facts(f.b.ops), fn.body, active, marks, RULES)
    given = _cotangent_params(f, fn, seeded) if not seed else []
    outputs = sweep.forward(arguments)
    cts: list[Marked | None] = [None] * len(fn.results)
    if seed:
        cts[0] = Marked(f.full(fn.results[0].type, 1), NONE)
    for k, ct in given:
        cts[k] = Marked(f.wrap(ct), marks[k])
    totals = sweep.backward(cts)
    gradients = [_dense(f, totals[k], fn.params[k]) for k in wrt]
    results = [*(outputs if with_outputs else []), *(g.value for g in gradients)]
    return f.b.function(f"{fn.name}.{'grad' if seed else 'vjp'}", results, fn.stage, fn.source)


def check_differentiable(fn: Function, wrt: Sequence[int]) -> None:
    """Raise ArgumentError where a parameter in `wrt` does not exist or carries no gradient."""
    for k in wrt:
        if not 0 <= k < len(fn.params):
            raise ArgumentError(f"{fn.name} has {len(fn.params)} parameters, there is none of number {k}")
        if not fn.params[k].type.is_inexact:
            name = fn.params[k].hint or str(k)
            raise ArgumentError(
                f"parameter {name} of {fn.name} is {fn.params[k].type}: only floating and complex values have a "
                "gradient; convert it with astype(float)"
            )


def _check_scalar(fn: Function) -> None:
    found = fn.results[0].type if fn.results else None
    if found is None or found.shape != () or not found.is_inexact:
        raise NonScalarOutputError(
            f"the gradient of {fn.name} needs a floating scalar output, got {found or 'none'}; "
            "use jacobian or vjp, or sum it"
        )


def _cotangent_params(f: RuleEmitter, fn: Function, seeded: Sequence[bool]) -> list[tuple[int, Value]]:
    return [(k, f.b.param(r.type, f"ct{k}")) for k, (r, on) in enumerate(zip(fn.results, seeded, strict=True)) if on]


def _dense(f: RuleEmitter, ct: Marked | None, param: Value) -> Expr:
    return f.full(param.type, 0) if ct is None else ct.expr
