"""What the rules for scipy.special share."""

from collections.abc import Callable
from typing import Any

from pullback.errors import UnsupportedError
from pullback.tracer.trace import Content
from pullback.tracer.ufuncs import Call, Rule


def check_real(call: Call) -> None:
    """
    Raises
    ------
    UnsupportedError : an operand is complex
    """
    if any(t.kind == "c" for t in call.types):
        raise call.trace.error(
            UnsupportedError,
            f"scipy.special.{call.ufunc.__name__} of complex numbers is not followed; take it of real ones",
        )


def of_real(op: str, **attrs: Any) -> Rule:
    """The rule of a ufunc that is an op on real numbers."""

    def rule(call: Call) -> Content:
        check_real(call)
        return call.op(op, *call.wides(), **attrs)

    return rule


def with_order(op: str, n: int) -> Rule:
    """The rule of a ufunc that is an op with its order known."""
    return of_real(op, n=n)


def real(rule: Callable[[Call], Content]) -> Rule:
    """A rule that takes real operands."""

    def checked(call: Call) -> Content:
        check_real(call)
        return rule(call)

    return checked


class Maths:
    """Arithmetic on contents of one call, with Python numbers beside them: rules read like formulas."""

    __slots__ = ("call",)

    def __init__(self, call: Call) -> None:
        self.call = call

    def __getattr__(self, name: str) -> Callable[..., Content]:
        def emit(*operands: Content | float, **attrs: Any) -> Content:
            return self.call.op(name, *[self.content(o) for o in operands], **attrs)

        return emit

    def content(self, x: Content | float) -> Content:
        return self.call.number(float(x), self.call.result_dtype) if isinstance(x, int | float) else x

    def poly(self, coefficients: list[float], x: Content) -> Content:
        """Coefficients lowest first, by Horner's scheme."""
        total: Content = self.content(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self.add(self.mul(total, x), c)
        return total

    def total(self, *terms: Content | float) -> Content:
        first, *rest = terms
        result = self.content(first)
        for term in rest:
            result = self.add(result, term)
        return result

    def product(self, *factors: Content | float) -> Content:
        first, *rest = factors
        result = self.content(first)
        for factor in rest:
            result = self.mul(result, factor)
        return result

    def both(self, *conditions: Content) -> Content:
        first, *rest = conditions
        result = first
        for condition in rest:
            result = self.bitwise_and(result, condition)
        return result

    def inside(self, x: Content, low: float, high: float) -> Content:
        """low <= x <= high."""
        return self.both(self.greater_equal(x, low), self.less_equal(x, high))
