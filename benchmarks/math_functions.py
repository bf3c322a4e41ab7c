"""Nanoseconds for each element of every math function, beside NumPy and SciPy.

    python -m benchmarks.math_functions [NAME ...]

One core, arrays of 100,000 elements in cache; both sides alternate, and the best of the rounds is shown.
"""

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from pullback.codegen.math import MATH, MathFunction
from pullback.codegen.math.standalone import elementwise_module
from pullback.codegen.target import compile_module, host_target, load_object

COUNT = 100_000
ROUNDS = 15
DTYPES = {"double": np.float64, "float": np.float32}
# Where each function is looked at; the others between 0.1 and 5.
RANGES = {
    **dict.fromkeys(["exp", "exp2", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh", "cbrt", "arctan"], (-5, 5)),
    **dict.fromkeys(["erf", "erfc", "arcsinh", "arctan2", "hypot", "logaddexp", "logaddexp2"], (-3, 3)),
    **dict.fromkeys(["arcsin", "arccos", "arctanh"], (-0.99, 0.99)),
    "arccosh": (1, 5),
    "log1p": (-0.9, 5),
}
STATIC = {"polygamma": {"n": 1}}


def native(function: MathFunction, element: str) -> Callable[..., None]:
    """`call(out, *arrays)` of the compiled function."""
    target = host_target()
    lanes = target.lanes(np.dtype(DTYPES[element]).itemsize)
    module = elementwise_module(function, element, lanes, target, **STATIC.get(function.name, {}))
    loaded = load_object(compile_module(str(module), target), ["apply"])
    apply = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int64], *[ctypes.c_void_p] * function.arity)(
        loaded.address("apply")
    )

    def call(out: np.ndarray, *arrays: np.ndarray, keep: object = loaded) -> None:
        apply(out.ctypes.data, out.size, *(x.ctypes.data for x in arrays))

    return call


def library(function: MathFunction) -> Callable[..., object] | None:
    """`call(out, *arrays)` of the NumPy or SciPy function; None without SciPy."""
    module, _, name = function.numpy.rpartition(".")
    if find_spec(module.partition(".")[0]) is None:
        return None
    ufunc = getattr(import_module(module), name)
    order = STATIC.get(function.name, {}).values()
    if not isinstance(ufunc, np.ufunc):
        return lambda out, *arrays: np.copyto(out, ufunc(*order, *arrays))
    return lambda out, *arrays: ufunc(*arrays, out=out)


def seconds(call: Callable[..., object], out: np.ndarray, arrays: Sequence[np.ndarray]) -> float:
    start = time.perf_counter()
    call(out, *arrays)
    return time.perf_counter() - start


def compare(function: MathFunction, element: str) -> tuple[float, float]:
    """Nanoseconds an element, ours and the library's."""
    rng = np.random.default_rng(0)
    lo, hi = RANGES.get(function.name, (0.1, 5))
    arrays = [rng.uniform(lo, hi, COUNT).astype(DTYPES[element]) for _ in range(function.arity)]
    out = np.empty_like(arrays[0])
    ours, theirs = native(function, element), library(function)
    with np.errstate(all="ignore"):
        times = [
            (seconds(ours, out, arrays), seconds(theirs, out, arrays) if theirs else np.nan) for _ in range(ROUNDS)
        ]
    best = np.min(times, axis=0) / COUNT * 1e9
    return float(best[0]), float(best[1])


def main(names: Sequence[str]) -> None:
    print(f"{'ns an element':14}{'float64':>9}{'library':>9}{'ratio':>7}{'float32':>10}{'library':>9}{'ratio':>7}")
    for name in names or MATH:
        cells = ""
        for element, width in (("double", 9), ("float", 10)):
            ours, theirs = compare(MATH[name], element)
            cells += f"{ours:{width}.2f}{theirs:9.2f}{theirs / ours:7.1f}"
        print(f"{name:14}{cells}")


if __name__ == "__main__":
    main(sys.argv[1:])
