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
        return _one_by_one(self, args, kwargs)

    return call


def _one_by_one(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    keys = list(kwargs)
    listed = [*args, *[kwargs[k] for k in keys]]
    excluded = [k in self.excluded for k in [*range(len(args)), *keys]]
    varied = [k for k, out in enumerate(excluded) if not out]
    given: list[tuple[str, ...]] = [()] * len(varied)
    makes = None
    if self.signature is not None:
        given, makes = self._in_and_out_core_dims
    arrays, shape = _aligned([array(listed[k]) for k in varied], given)
    results = []
    for index in np.ndindex(shape):
        row = list(listed)
        for k, a in zip(varied, arrays, strict=True):
            row[k] = a[index]
        results.append(self.pyfunc(*row[: len(args)], **dict(zip(keys, row[len(args) :], strict=True))))
    if not results:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    count = len(results[0]) if isinstance(results[0], tuple) else 1
    if makes is not None and count != len(makes):
        raise ValueError(f"wrong number of outputs from pyfunc: expected {len(makes)!r}, got {count!r}")
    if isinstance(results[0], tuple):
        return tuple([_gathered(self, [r[k] for r in results], shape, k) for k in range(count)])
    return _gathered(self, results, shape, 0)


def _aligned(arrays: list[Any], given: list[tuple[str, ...]]) -> tuple[list[Any], tuple[int, ...]]:
    """The arrays broadcast against one another in all but their own axes (of a signature), and that shape."""
    if len(arrays) != len(given):
        raise TypeError(f"wrong number of positional arguments: expected {len(given)!r}, got {len(arrays)!r}")
    sizes: dict[str, int] = {}
    for a, names in zip(arrays, given, strict=True):
        if a.ndim < len(names):
            raise ValueError(f"{a.ndim}-dimensional argument does not have enough dimensions for {names!r}")
        for name, n in zip(names, a.shape[a.ndim - len(names) :], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(f"inconsistent size for core dimension {name!r}: {n!r} vs {sizes[name]!r}")
    own = [a.shape[a.ndim - len(names) :] for a, names in zip(arrays, given, strict=True)]
    shape = np.broadcast_shapes(*[a.shape[: a.ndim - len(o)] for a, o in zip(arrays, own, strict=True)])
    return [np.broadcast_to(a, (*shape, *o)) for a, o in zip(arrays, own, strict=True)], shape


def _gathered(self: Any, results: list[Any], shape: tuple[int, ...], number: int) -> Any:
    rows = [array(r) for r in results]
    names = self._in_and_out_core_dims[1][number] if self.signature is not None else ()
    if rows[0].ndim < len(names):
        raise ValueError(f"{rows[0].ndim}-dimensional result does not have enough dimensions for {names!r}")
    made = np.reshape(np.stack(rows), (*shape, *(rows[0].shape if self.signature is not None else ())))
    if self.otypes:
        made = made.astype(self.otypes[number])
    return made if made.ndim else made[()]


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
