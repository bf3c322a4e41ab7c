"""pullback: a compiler for gradients of NumPy code.

>>> import numpy as np
>>> import pullback
>>> def loss(w, x, y):
...     return np.mean((np.tanh(x @ w) - y) ** 2)
>>> g = pullback.grad(loss)
"""

from pullback.lazy import importing

with importing():
    from pullback.api.batching import vmap
    from pullback.api.checkpointing import checkpoint
    from pullback.api.compiling import jit, lower, ops_before_and_after
    from pullback.api.control import cond, switch
    from pullback.api.gradients import grad, value_and_grad
    from pullback.api.jacobians import hessian, jacfwd, jacobian, jacrev
    from pullback.api.loops import fori_loop, map, scan, while_loop
    from pullback.api.prefixes import associative_scan
    from pullback.api.products import jvp
    from pullback.api.pullbacks import vjp
    from pullback.api.settings import options
    from pullback.api.stopping import stop_gradient
    from pullback.version import VERSION as __version__  # noqa: N811  # the usual name of a version

__all__ = [
    "__version__",
    "associative_scan",
    "checkpoint",
    "cond",
    "fori_loop",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lower",
    "map",
    "ops_before_and_after",
    "options",
    "scan",
    "stop_gradient",
    "switch",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
