"""Ufuncs of scipy.special, matched by name: scipy is never imported. And its functions that are no ufuncs."""

import math
from typing import Any

import numpy as np

from pullback.errors import UnsupportedError
from pullback.tracer.functions import (
    special_classes,
    special_distributions,
    special_gamma,
    special_orders,
    special_pointwise,
    special_sums,
)
from pullback.tracer.functions.common import array, contents, finish, static_array
from pullback.tracer.functions.special_call import of_real, with_order
from pullback.tracer.patching import Finder
from pullback.tracer.trace import active
from pullback.tracer.ufuncs import Refusal, Rule

# ufuncs that are an op of the same name
SAME = (
    "cbrt",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "expit",
    "gamma",
    "kl_div",
    "log_expit",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "rel_entr",
    "xlog1py",
    "xlogy",
)
RENAMED = {"gammaln": "lgamma", "psi": "digamma", "round": "rint"}
# ufunc -> op and the order that it has
OF_ORDER = {
    "erfcx": ("erfcx", 0),
    "exprel": ("exprel", 0),
    "gammainc": ("gammainc", 0),
    "gammaincc": ("gammaincc", 0),
    **{f"{name}{n}": (f"{name}v", n) for name in "jyik" for n in (0, 1)},
    **{f"{name}{n}e": (f"{name}ve", n) for name in "ik" for n in (0, 1)},
}


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma, n constant."""
    order = static_array(active(), n, "scipy.special.polygamma: the order")
    a = array(x)
    a = a if a.dtype.kind == "f" else a.astype(np.float64)
    if order.ndim:
        orders = np.broadcast_to(order, np.broadcast_shapes(order.shape, a.shape))
        wide = np.broadcast_to(a, orders.shape)
        flat = [polygamma(int(k), v) for k, v in zip(orders.reshape(-1), np.ravel(wide), strict=True)]
        return np.reshape(np.stack(flat), orders.shape)
    trace, (content,) = contents(a)
    number = int(order)
    if number < 0 or number != order:
        raise trace.error(
            UnsupportedError, f"scipy.special.polygamma: the order must be a whole number from 0 on, not {order}"
        )
    if number == 0:
        return finish(trace.apply("digamma", content))
    return finish(trace.apply("polygamma", content, n=number))


def multigammaln(a: Any, d: Any) -> Any:
    """log of the multivariate gamma function: a sum of d shifted log gammas."""
    count = int(static_array(active(), d, "scipy.special.multigammaln: the dimension"))
    if count != d or count < 1:
        raise active().error(ValueError, "d should be a positive integer (dimension)")
    x = array(a) * 1.0
    total = count * (count - 1) * 0.25 * math.log(math.pi)
    for k in range(count):
        trace, (shifted,) = contents(x - k / 2)
        total = total + finish(trace.apply("lgamma", shifted))
    return total


PYTHON = {
    "log_softmax": special_sums.log_softmax,
    "logsumexp": special_sums.logsumexp,
    "multigammaln": multigammaln,
    "polygamma": polygamma,
    "softmax": special_sums.softmax,
}
FINDERS: tuple[Finder, ...] = (
    ("scipy.special", lambda m: [(m, name, traced) for name, traced in PYTHON.items() if hasattr(m, name)]),
)

RULES: dict[Any, Rule | Refusal] = {
    **{name: of_real(name) for name in SAME},
    **{name: of_real(op) for name, op in RENAMED.items()},
    **{name: with_order(op, n) for name, (op, n) in OF_ORDER.items()},
    **special_pointwise.RULES,
    **special_gamma.RULES,
    **special_distributions.RULES,
    **special_orders.RULES,
    **{name: Refusal(reason) for name, reason in special_classes.REFUSED.items()},
}
