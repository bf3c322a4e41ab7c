"""Functions of scipy.special with an order that must be a constant whole number: Bessel functions, polynomials."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.errors import UnsupportedError
from pullback.ir.graph import Value
from pullback.tracer.convert import decide_array
from pullback.tracer.functions.special_call import Maths, check_real
from pullback.tracer.trace import Content, dtype_of
from pullback.tracer.ufuncs import Call, Rule

HIGHEST = {"jv": 100, "yv": 100, "kv": 100, "kve": 100, "iv": 30, "ive": 30}
HIGHEST_DEGREE = 200


def _orders(call: Call) -> Any:
    """The orders, as plain whole numbers of the operand's own shape; traced integers are guarded."""
    content = call.operands[0].content
    name = f"scipy.special.{call.ufunc.__name__}"
    if isinstance(content, Value) and dtype_of(content).kind not in "biu":
        raise call.trace.error(
            UnsupportedError, f"{name}: the order must be a constant or an integer, not traced numbers"
        )
    numbers = decide_array(call.trace, content) if isinstance(content, Value) else np.asarray(content)
    whole = np.rint(numbers).astype(np.int64)
    if not bool(np.all(whole == numbers)):
        raise call.trace.error(
            UnsupportedError, f"{name} is followed for whole orders alone, found {numbers[whole != numbers].flat[0]}"
        )
    return whole


def _by_order(call: Call, one: Callable[[int], Content]) -> Content:
    """`one` of each order that occurs, put where it does."""
    orders = _orders(call)
    found, *others = sorted(set(orders.reshape(-1).tolist())) or [0]
    result = one(found)
    wide = np.broadcast_to(orders, call.shape)
    for n in others:
        result = call.op("select", wide == n, one(n), result)
    return result


def _bessel(op: str, alternates: bool) -> Rule:
    """A Bessel function; of order -n it is that of order n, with the sign (-1)**n if it alternates."""

    def rule(call: Call) -> Content:
        check_real(call)
        x = call.wide(1)

        def one(n: int) -> Content:
            if abs(n) > HIGHEST[op]:
                raise call.trace.error(
                    UnsupportedError,
                    f"scipy.special.{call.ufunc.__name__} is followed up to order {HIGHEST[op]}, found {n}",
                )
            value = call.op(op, x, n=abs(n))
            return call.op("neg", value) if alternates and n < 0 and n % 2 else value

        return _by_order(call, one)

    return rule


# ------------------------------------------------------------------ orthogonal polynomials

# step(m, k, x, before, last) -> degree k + 1 from degrees k - 1 and k
Step = Callable[[Maths, int, Content, Content, Content], Content]


def _recurrence(m: Maths, a: float, b: float, c: float, x: Content, before: Content, last: Content) -> Content:
    """(a x + b) last - c before."""
    factor = m.mul(x, a) if not b else m.add(m.mul(x, a), b)
    return m.sub(m.mul(factor, last), m.mul(before, c))


def _three_terms(coefficients: Callable[[int], Sequence[float]]) -> Step:
    def step(m: Maths, k: int, x: Content, before: Content, last: Content) -> Content:
        a, b, c = coefficients(k)
        return _recurrence(m, a, b, c, x, before, last)

    return step


def _polynomial(first: tuple[float, float], step: Step, shift: bool = False) -> Rule:
    """A polynomial by recurrence from degree 0, which is 1, and degree 1, `first[0] + first[1] x`.

    shift : of 2 x - 1 in place of x
    """

    def rule(call: Call) -> Content:
        check_real(call)
        m, x = Maths(call), call.wide(1)
        x = m.sub(m.mul(x, 2.0), 1.0) if shift else x

        def one(n: int) -> Content:
            if not 0 <= n <= HIGHEST_DEGREE:
                raise call.trace.error(
                    UnsupportedError,
                    f"scipy.special.{call.ufunc.__name__} is followed for degrees 0 to {HIGHEST_DEGREE}, found {n}",
                )
            before, last = m.content(1.0), m.add(m.mul(x, first[1]), first[0])
            for k in range(1, n):
                before, last = last, step(m, k, x, before, last)
            return last if n else m.add(m.mul(x, 0.0), 1.0)

        return _by_order(call, one)

    return rule


_CHEBYSHEV = _three_terms(lambda k: (2.0, 0.0, 1.0))
_LEGENDRE = _three_terms(lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1)))
_LAGUERRE = _three_terms(lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)))


def _zeta(call: Call) -> Content:
    """Hurwitz' zeta function sum of (k + q)**-s, for whole s > 1: polygamma(s - 1, q) but for a factor."""
    check_real(call)

    def one(s: int) -> Content:
        if not 2 <= s <= HIGHEST["kv"]:
            raise call.trace.error(
                UnsupportedError, f"scipy.special.zeta is followed for 2 <= x <= {HIGHEST['kv']}, found {s}"
            )
        value = call.op("polygamma", call.wide(1), n=s - 1)
        return call.op("mul", value, call.number((-1) ** s / math.factorial(s - 1), call.result_dtype))

    return _by_order(call, one)


RULES: dict[Any, Rule] = {
    "_zeta": _zeta,  # behind the function zeta
    "jv": _bessel("jv", True),
    "jve": _bessel("jv", True),  # what jve takes out of jv is exp(|imaginary part|)
    "yv": _bessel("yv", True),
    "yve": _bessel("yv", True),
    "yn": _bessel("yv", True),
    "iv": _bessel("iv", False),
    "ive": _bessel("ive", False),
    "kv": _bessel("kv", False),
    "kve": _bessel("kve", False),
    "kn": _bessel("kv", False),
    "eval_chebyt": _polynomial((0.0, 1.0), _CHEBYSHEV),
    "eval_chebyu": _polynomial((0.0, 2.0), _CHEBYSHEV),
    "eval_sh_chebyt": _polynomial((0.0, 1.0), _CHEBYSHEV, shift=True),
    "eval_sh_chebyu": _polynomial((0.0, 2.0), _CHEBYSHEV, shift=True),
    "eval_legendre": _polynomial((0.0, 1.0), _LEGENDRE),
    "eval_sh_legendre": _polynomial((0.0, 1.0), _LEGENDRE, shift=True),
    "eval_laguerre": _polynomial((1.0, -1.0), _LAGUERRE),
    "eval_hermite": _polynomial((0.0, 2.0), _three_terms(lambda k: (2.0, 0.0, 2.0 * k))),
    "eval_hermitenorm": _polynomial((0.0, 1.0), _three_terms(lambda k: (1.0, 0.0, float(k)))),
}
