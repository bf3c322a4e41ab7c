"""pullback: a compiler for gradients of NumPy code.

>>> import numpy as np
>>> import pullback
>>> def loss(w, x, y):
...     return np.mean((np.tanh(x @ w) - y) ** 2)
>>> g = pullback.grad(loss)
"""

from pullback.api.compiling import jit, lower, ops_before_and_after
from pullback.api.gradients import grad, value_and_grad
from pullback.api.settings import options
from pullback.version import VERSION as __version__

__all__ = [
    "__version__",
    "grad",
    "jit",
    "lower",
    "ops_before_and_after",
    "options",
    "value_and_grad",
]
