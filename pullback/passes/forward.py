"""Forward mode, IR to IR: a function that also gives its directional derivatives."""

from collections.abc import Sequence

from pullback.ir.builder import Builder
from pullback.ir.graph import Function
from pullback.passes.activity import active_values
from pullback.passes.control import RULES
from pullback.passes.emitter import RuleEmitter
from pullback.passes.facts import Facts
from pullback.passes.reverse import check_differentiable
from pullback.passes.strong_zeros import KINK, NONE, Marked
from pullback.passes.tangents import push_region


def forward(fn: Function, wrt: Sequence[int], *, with_outputs: bool = True) -> Function:
    """The Jacobian-vector product of `fn`.

    Returns
    -------
    A function of the parameters of `fn` and one tangent for each of `wrt`. Its results are the outputs (with
    `with_outputs`), then one tangent for each floating or complex output, zeros where it does not depend on `wrt`.
    """
    check_differentiable(fn, wrt)
    f = RuleEmitter(Builder())
    arguments = [f.b.param(p.type, p.hint) for p in fn.params]
    tangents: list[Marked | None] = [None] * len(arguments)
    for k in wrt:
        param = f.b.param(fn.params[k].type, f"d{fn.params[k].hint or k}")
        tangents[k] = Marked(f.wrap(param), KINK if param.type.ndim else NONE)
    wanted = [tangent is not None for tangent in tangents]
    inexact = [r.type.is_inexact for r in fn.results]
    active = active_values(fn.body, wanted, inexact, RULES)
    outputs, pushed = push_region(f, Facts(f.b.ops), fn.body, arguments, tangents, active, RULES)
    derivatives = [
        f.full(r.type, 0) if tan is None else tan.expr
        for r, tan, on in zip(fn.results, pushed, inexact, strict=True)
        if on
    ]
    results = [*(outputs if with_outputs else []), *(d.value for d in derivatives)]
    return f.b.function(f"{fn.name}.jvp", results, fn.stage, fn.source)
