"""Python's operators, each in terms of the ufunc NumPy gives it."""

from typing import Any

import numpy as np


class Operators:
    """Operators of a class that says how a ufunc applies to it."""

    __slots__ = ()

    def _binary(self, ufunc: Any, other: Any) -> Any:
        raise AssertionError("every class with operators says what they do")

    def _reflected(self, ufunc: Any, other: Any) -> Any:
        raise AssertionError("every class with operators says what they do")

    def _unary(self, ufunc: Any) -> Any:
        raise AssertionError("every class with operators says what they do")

    def __add__(self, other: Any) -> Any:
        return self._binary(np.add, other)

    def __radd__(self, other: Any) -> Any:
        return self._reflected(np.add, other)

    def __sub__(self, other: Any) -> Any:
        return self._binary(np.subtract, other)

    def __rsub__(self, other: Any) -> Any:
        return self._reflected(np.subtract, other)

    def __mul__(self, other: Any) -> Any:
        return self._binary(np.multiply, other)

    def __rmul__(self, other: Any) -> Any:
        return self._reflected(np.multiply, other)

    def __truediv__(self, other: Any) -> Any:
        return self._binary(np.true_divide, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._reflected(np.true_divide, other)

    def __floordiv__(self, other: Any) -> Any:
        return self._binary(np.floor_divide, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._reflected(np.floor_divide, other)

    def __mod__(self, other: Any) -> Any:
        return self._binary(np.remainder, other)

    def __rmod__(self, other: Any) -> Any:
        return self._reflected(np.remainder, other)

    def __divmod__(self, other: Any) -> Any:
        return self._binary(np.divmod, other)

    def __rdivmod__(self, other: Any) -> Any:
        return self._reflected(np.divmod, other)

    def __pow__(self, other: Any, modulo: None = None) -> Any:
        return self._binary(np.power, other)

    def __rpow__(self, other: Any) -> Any:
        return self._reflected(np.power, other)

    def __matmul__(self, other: Any) -> Any:
        return self._binary(np.matmul, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._reflected(np.matmul, other)

    def __lshift__(self, other: Any) -> Any:
        return self._binary(np.left_shift, other)

    def __rlshift__(self, other: Any) -> Any:
        return self._reflected(np.left_shift, other)

    def __rshift__(self, other: Any) -> Any:
        return self._binary(np.right_shift, other)

    def __rrshift__(self, other: Any) -> Any:
        return self._reflected(np.right_shift, other)

    def __and__(self, other: Any) -> Any:
        return self._binary(np.bitwise_and, other)

    def __rand__(self, other: Any) -> Any:
        return self._reflected(np.bitwise_and, other)

    def __or__(self, other: Any) -> Any:
        return self._binary(np.bitwise_or, other)

    def __ror__(self, other: Any) -> Any:
        return self._reflected(np.bitwise_or, other)

    def __xor__(self, other: Any) -> Any:
        return self._binary(np.bitwise_xor, other)

    def __rxor__(self, other: Any) -> Any:
        return self._reflected(np.bitwise_xor, other)

    def __lt__(self, other: Any) -> Any:
        return self._binary(np.less, other)

    def __le__(self, other: Any) -> Any:
        return self._binary(np.less_equal, other)

    def __gt__(self, other: Any) -> Any:
        return self._binary(np.greater, other)

    def __ge__(self, other: Any) -> Any:
        return self._binary(np.greater_equal, other)

    def __eq__(self, other: object) -> Any:
        return self._binary(np.equal, other)

    def __ne__(self, other: object) -> Any:
        return self._binary(np.not_equal, other)

    def __neg__(self) -> Any:
        return self._unary(np.negative)

    def __pos__(self) -> Any:
        return self._unary(np.positive)

    def __abs__(self) -> Any:
        return self._unary(np.absolute)

    def __invert__(self) -> Any:
        return self._unary(np.invert)


class InplaceOperators:
    """Augmented assignment of a class that says how it changes."""

    __slots__ = ()

    def _inplace(self, ufunc: Any, other: Any) -> Any:
        raise AssertionError("every class with augmented assignment says what it does")

    def __iadd__(self, other: Any) -> Any:
        return self._inplace(np.add, other)

    def __isub__(self, other: Any) -> Any:
        return self._inplace(np.subtract, other)

    def __imul__(self, other: Any) -> Any:
        return self._inplace(np.multiply, other)

    def __itruediv__(self, other: Any) -> Any:
        return self._inplace(np.true_divide, other)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._inplace(np.floor_divide, other)

    def __imod__(self, other: Any) -> Any:
        return self._inplace(np.remainder, other)

    def __ipow__(self, other: Any) -> Any:
        return self._inplace(np.power, other)

    def __imatmul__(self, other: Any) -> Any:
        return self._inplace(np.matmul, other)

    def __ilshift__(self, other: Any) -> Any:
        return self._inplace(np.left_shift, other)

    def __irshift__(self, other: Any) -> Any:
        return self._inplace(np.right_shift, other)

    def __iand__(self, other: Any) -> Any:
        return self._inplace(np.bitwise_and, other)

    def __ior__(self, other: Any) -> Any:
        return self._inplace(np.bitwise_or, other)

    def __ixor__(self, other: Any) -> Any:
        return self._inplace(np.bitwise_xor, other)
