"""Objects of the numpy module that are no functions: `r_`, `mgrid`, `vectorize` and others."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import UnsupportedError
from pullback.tracer.array import TracedValue
from pullback.tracer.functions import views
from pullback.tracer.functions.classes import REFUSED
from pullback.tracer.functions.common import array, constant_array
from pullback.tracer.functions.joining import C_, R_
from pullback.tracer.operands import holds_traced
from pullback.tracer.patching import Row, Switch, wrapper
from pullback.tracer.trace import active, current


class _Grid:
    """`np.mgrid` and `np.ogrid`: constants."""

    __slots__ = ("_original",)

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getitem__(self, key: Any) -> Any:
        made = self._original[key]
        if isinstance(made, tuple | list):
            return type(made)([constant_array(np.array(m)) for m in made])
        return constant_array(np.array(made))


def ndenumerate(arr: Any) -> Any:
    """(index, element) pairs."""
    x = array(arr)
    return ((index, x[index]) for index in np.ndindex(x.shape))


class _Broadcast:
    """What `np.broadcast` tells about shapes, and its elements."""

    __slots__ = ("_arrays", "shape")

    def __init__(self, arrays: tuple[Any, ...]) -> None:
        self._arrays = views.broadcast_arrays(*arrays)
        self.shape: tuple[int, ...] = self._arrays[0].shape if arrays else ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    nd = ndim

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def numiter(self) -> int:
        return len(self._arrays)

    def __iter__(self) -> Any:
        return (tuple([a[index] for a in self._arrays]) for index in np.ndindex(self.shape))


def broadcast(*args: Any) -> Any:
    return _Broadcast(args)


def _vectorized(original: Callable[..., Any]) -> Callable[..., Any]:
    """`np.vectorize(f)(...)` on traced values: `f` element by element, the results put together."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values())
        if current() is None or not any(isinstance(v, TracedValue) or holds_traced(v) for v in values):
            return original(self, *args, **kwargs)
        if self.signature is not None:
            raise active().error(
                UnsupportedError,
                "np.vectorize with a signature is not followed; write the loop, or use matmul and axes",
            )
        return _elementwise(self, args, kwargs)

    return call


def _elementwise(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    keys = list(kwargs)
    listed = [*args, *[kwargs[k] for k in keys]]
    excluded = [k in self.excluded for k in [*range(len(args)), *keys]]
    varied = [k for k, out in enumerate(excluded) if not out]
    arrays = views.broadcast_arrays(*[listed[k] for k in varied])
    shape = arrays[0].shape
    results = []
    for index in np.ndindex(shape):
        row = list(listed)
        for k, a in zip(varied, arrays, strict=True):
            row[k] = a[index]
        results.append(self.pyfunc(*row[: len(args)], **dict(zip(keys, row[len(args) :], strict=True))))
    if not results:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    if isinstance(results[0], tuple):
        return tuple([_gathered([r[k] for r in results], shape, self.otypes, k) for k in range(len(results[0]))])
    return _gathered(results, shape, self.otypes, 0)


def _gathered(results: list[Any], shape: tuple[int, ...], otypes: Any, number: int) -> Any:
    made = np.reshape(np.stack([array(r) for r in results]), shape)
    if otypes:
        made = made.astype(otypes[number])
    return made if shape else made[()]


# ------------------------------------------------------------------ what NumPy's protocols do not reach


def _refusing(name: str, reason: str) -> Row:
    """A function or class that would take a traced value apart, with an error of ours where it is given one."""
    original = getattr(np, name)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if holds_traced([*args, *kwargs.values()]):
            raise active().error(UnsupportedError, f"np.{name} cannot be traced: {reason}")
        return original(*args, **kwargs)

    return np, name, wrapper(original, refuse)


def _unreached() -> list[Row]:
    """The refused names of numpy itself that no protocol hands to the tracer."""
    names = [name.split(".")[1] for name in REFUSED if name.count(".") == 1 and hasattr(np, name.split(".")[1])]
    known = [(name, getattr(np, name)) for name in names]
    return [
        _refusing(name, REFUSED[f"np.{name}"])
        for name, found in known
        if not hasattr(found, "_implementation") and not isinstance(found, np.ufunc)
    ]


REPLACEMENTS: list[tuple[Any, str, Any]] = [
    (np, "r_", Switch(np.r_, R_)),
    (np, "c_", Switch(np.c_, C_)),
    (np, "mgrid", Switch(np.mgrid, _Grid(np.mgrid))),
    (np, "ogrid", Switch(np.ogrid, _Grid(np.ogrid))),
    (np, "ndenumerate", wrapper(np.ndenumerate, ndenumerate)),
    (np, "broadcast", wrapper(np.broadcast, broadcast)),
    (np.lib.stride_tricks, "as_strided", wrapper(np.lib.stride_tricks.as_strided, views.as_strided)),
    (np.vectorize, "__call__", _vectorized(np.vectorize.__call__)),
    *_unreached(),
]
