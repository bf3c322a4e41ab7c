"""A differentiable call of every ufunc of scipy.special that is followed: where its arguments lie.

A ufunc of one argument that is not named has the domain (-2, 2). Orders are constant first arguments.
"""

from typing import Any

import numpy as np

Domain = tuple[float, float]

DOMAINS: dict[str, tuple[Domain, ...]] = {
    "beta": ((0.3, 5), (0.3, 5)),
    "betaln": ((0.3, 30), (0.3, 30)),
    "binom": ((2.2, 9), (0.3, 2)),
    "boxcox": ((0.2, 4), (-1, 2)),
    "boxcox1p": ((-0.5, 4), (-1, 2)),
    "cbrt": ((0.2, 4),),
    "chdtr": ((0.5, 8), (0.3, 9)),
    "chdtrc": ((0.5, 8), (0.3, 9)),
    "cosdg": ((-300, 300),),
    "cotdg": ((10, 170),),
    "digamma": ((0.2, 5),),
    "entr": ((0.1, 3),),
    "erfcinv": ((0.05, 1.95),),
    "erfcx": ((-3, 20),),
    "erfinv": ((-0.95, 0.95),),
    "exprel": ((-8, 8),),
    "gamma": ((0.2, 5),),
    "gammainc": ((0.3, 8), (0.3, 8)),
    "gammaincc": ((0.3, 8), (0.3, 8)),
    "gammaln": ((0.2, 5),),
    "gdtr": ((0.3, 2), (0.5, 6), (0.2, 5)),
    "gdtrc": ((0.3, 2), (0.5, 6), (0.2, 5)),
    "huber": ((0.5, 1), (-3, 3)),
    "i0e": ((0.1, 20),),
    "i1e": ((0.1, 20),),
    "inv_boxcox": ((-0.4, 0.4), (-1, 2)),
    "inv_boxcox1p": ((-0.4, 0.4), (-1, 2)),
    "j0": ((-20, 20),),
    "j1": ((-20, 20),),
    "k0": ((0.3, 20),),
    "k0e": ((0.3, 20),),
    "k1": ((0.3, 20),),
    "k1e": ((0.3, 20),),
    "kl_div": ((0.2, 3), (0.2, 3)),
    "log1p": ((-0.7, 3),),
    "log_ndtr": ((-20, 4),),
    "loggamma": ((0.2, 5),),
    "logit": ((0.02, 0.98),),
    "ndtri": ((0.02, 0.98),),
    "poch": ((0.3, 5), (0.3, 4)),
    "powm1": ((0.2, 4), (-1, 2)),
    "pseudo_huber": ((0.5, 1), (-3, 3)),
    "psi": ((0.2, 5),),
    "radian": ((0, 90), (0, 60), (0, 60)),
    "rel_entr": ((0.2, 3), (0.2, 3)),
    "rgamma": ((-4.3, 5),),
    "sindg": ((-300, 300),),
    "tandg": ((-80, 80),),
    "xlog1py": ((-2, 2), (-0.6, 3)),
    "xlogy": ((-2, 2), (0.2, 3)),
    "y0": ((0.3, 20),),
    "y1": ((0.3, 20),),
}

ORDERS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("jv", "jn", "jve", "yv", "yn", "yve", "iv", "ive", "kv", "kve", "kn"), (0, 1, 3)),
    "pdtr": (3,),
    "pdtrc": (3,),
}
POLYNOMIAL_DEGREES = (0, 1, 4)


def calls(name: str, count: int = 7) -> list[tuple[Any, list[Any]]]:
    """Constant leading arguments, and differentiable ones, of each call to test."""
    rng = np.random.default_rng(len(name))
    if name in ORDERS:
        return [((n,), [rng.uniform(0.3, 6, count)]) for n in ORDERS[name]]
    if name.startswith("eval_"):
        return [((n,), [rng.uniform(-0.9, 0.9, count)]) for n in POLYNOMIAL_DEGREES]
    return [((), [rng.uniform(*domain, count) for domain in DOMAINS.get(name, ((-2, 2),))])]
