"""The methods of `ndarray` that are NumPy functions under another name."""

from typing import Any

import numpy as np


class Methods:
    """Methods of a class whose `_call` hands a NumPy function on with the array as first argument."""

    __slots__ = ()

    def _call(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("every class with NumPy's methods says where they go")

    def all(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.all, *args, **kwargs)

    def any(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.any, *args, **kwargs)

    def argmax(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.argmax, *args, **kwargs)

    def argmin(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.argmin, *args, **kwargs)

    def argpartition(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.argpartition, *args, **kwargs)

    def argsort(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.argsort, *args, **kwargs)

    def choose(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.choose, *args, **kwargs)

    def clip(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.clip, *args, **kwargs)

    def copy(self, order: str = "C") -> Any:
        return self._call(np.copy, order=order)

    def cumprod(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.cumprod, *args, **kwargs)

    def cumsum(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.cumsum, *args, **kwargs)

    def diagonal(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.diagonal, *args, **kwargs)

    def dot(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.dot, *args, **kwargs)

    def max(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.max, *args, **kwargs)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.mean, *args, **kwargs)

    def min(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.min, *args, **kwargs)

    def nonzero(self) -> Any:
        return self._call(np.nonzero)

    def prod(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.prod, *args, **kwargs)

    def ravel(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.ravel, *args, **kwargs)

    def repeat(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.repeat, *args, **kwargs)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        target = shape[0] if len(shape) == 1 else shape
        return self._call(np.reshape, target, order=order, copy=copy)

    def round(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.round, *args, **kwargs)

    def searchsorted(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.searchsorted, *args, **kwargs)

    def squeeze(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.squeeze, *args, **kwargs)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.std, *args, **kwargs)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.sum, *args, **kwargs)

    def swapaxes(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.swapaxes, *args, **kwargs)

    def take(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.take, *args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.trace, *args, **kwargs)

    def transpose(self, *axes: Any) -> Any:
        return self._call(np.transpose, axes[0] if len(axes) == 1 else axes or None)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(np.var, *args, **kwargs)
