"""What fusion believes things cost, in nanoseconds on one core. Only ratios matter: compute again, or store and read?

Measured for float64 in vector code on the reference machine; float32 is half, complex four times.
"""

from pullback.ir.graph import Op
from pullback.ir.opdef import Scalar
from pullback.ir.types import DType

SIMPLE = 0.04
# name -> (nanoseconds an element, instructions of the body)
_COSTLY: dict[str, tuple[float, int]] = {
    "div": (0.4, 1),
    "floor_divide": (0.6, 6),
    "mod": (0.8, 8),
    "fmod": (1.5, 10),
    "sqrt": (0.5, 1),
    "cbrt": (2.0, 25),
    "hypot": (1.0, 12),
    "exp": (0.7, 20),
    "exp2": (0.7, 20),
    "expm1": (0.9, 30),
    "log": (0.9, 25),
    "log2": (0.9, 25),
    "log10": (0.9, 25),
    "log1p": (1.0, 30),
    "sin": (0.7, 35),
    "cos": (0.7, 35),
    "tan": (1.2, 45),
    "sinh": (1.2, 35),
    "cosh": (1.0, 35),
    "tanh": (1.2, 35),
    "arcsin": (1.5, 40),
    "arccos": (1.5, 40),
    "arctan": (1.5, 40),
    "arctan2": (2.0, 50),
    "arcsinh": (2.0, 45),
    "arccosh": (2.0, 45),
    "arctanh": (2.0, 45),
    "erf": (1.3, 50),
    "erfc": (2.0, 60),
    "pow": (3.5, 70),
    "logaddexp": (1.8, 50),
    "logaddexp2": (1.8, 50),
    "lgamma": (5.0, 100),
    "digamma": (5.0, 100),
    "polygamma": (8.0, 150),
    "expit": (1.5, 40),
    "log_expit": (2.8, 60),
    "xlogy": (1.1, 30),
    "xlog1py": (1.5, 35),
    "entr": (1.5, 30),
    "rel_entr": (2.0, 45),
    "kl_div": (2.3, 50),
    "erfcx": (3.1, 80),
    "ndtr": (3.6, 80),
    "log_ndtr": (5.9, 120),
    "erfinv": (7.1, 120),
    "erfcinv": (7.1, 120),
    "ndtri": (7.5, 130),
    "gamma": (7.8, 200),
    "gammainc": (75.0, 600),
    "gammaincc": (80.0, 600),
    "exprel": (3.5, 70),
    "jv": (4.2, 120),
    "yv": (5.9, 160),
    "iv": (3.7, 120),
    "ive": (2.6, 100),
    "kv": (5.7, 200),
    "kve": (5.5, 190),
}
_GATHER = (1.0, 4)
BODY_LIMIT = 1500
"""Instructions of one kernel body; LLVM's time grows faster than linearly beyond."""

KERNEL = 5.0
"""Nanoseconds that one more kernel costs, however small."""


def compute_cost(op: Op) -> tuple[float, int]:
    """Nanoseconds an element, and instructions."""
    if op.name == "gather":
        return _GATHER
    if not isinstance(op.opdef.lower, Scalar):
        return 0.0, 0
    time, weight = _COSTLY.get(op.name, (SIMPLE, 1))
    dtype = op.operands[0].type.dtype if op.operands else op.results[0].type.dtype
    if dtype.kind == "c":
        return 4 * time, 4 * weight
    return time * max(dtype.itemsize, 2) / 8, weight


def memory_rate(nbytes: int) -> float:
    """Nanoseconds a byte of storing a buffer of this size and having it for reading again."""
    if nbytes <= 512 << 10:
        return 0.015
    return 0.03 if nbytes <= 8 << 20 else 0.085


def trip_cost(dtype: DType, size: int) -> float:
    """Nanoseconds an element of writing it and reading it once."""
    return memory_rate(dtype.itemsize * size) * dtype.itemsize


def load_cost(dtype: DType, size: int) -> float:
    """Nanoseconds an element of one more read."""
    return trip_cost(dtype, size) / 3
