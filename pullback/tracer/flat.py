"""`x.flat`: the elements in C order, readable and writable whatever the memory order of `x` is."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pullback.ir.graph import Value
from pullback.tracer.array import TracedArray, TracedValue, new_array
from pullback.tracer.cell import content, read, write
from pullback.tracer.operands import cast, content_of
from pullback.tracer.steps import reshape_content
from pullback.tracer.trace import active, current, shape_of


class FlatIterator:
    """NumPy's `flatiter` for a traced array: a subscript gives a copy, an assignment writes through."""

    __slots__ = ("_array", "_next")

    def __init__(self, array: TracedValue) -> None:
        self._array = array
        self._next = 0

    @property
    def base(self) -> TracedValue:
        return self._array

    def _flat(self) -> TracedArray:
        """A fresh array of all elements."""
        x = self._array
        trace = current() or x._cell.trace
        return new_array(trace, reshape_content(trace, content_of(trace, x), (x.size,)), lent=True)

    def copy(self) -> TracedArray:
        return self._flat()

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self._flat())

    def __next__(self) -> Any:
        if self._next >= len(self):
            raise StopIteration
        self._next += 1
        return self._flat()[self._next - 1]

    def __getitem__(self, key: Any) -> Any:
        chosen = self._flat()[key]
        return chosen.copy() if isinstance(chosen, TracedArray) else chosen

    def __setitem__(self, key: Any, value: Any) -> None:
        """Values are used in turn, again from the start where they are too few, as NumPy does."""
        trace = active()
        flat = self._flat()
        places = np.arange(flat.size)[key] if _is_plain(key) else None
        if places is None:
            flat[key] = value
        else:
            new = cast(trace, content_of(trace, value), flat.dtype)
            size = int(np.prod(shape_of(new), dtype=np.int64))
            values = new_array(trace, reshape_content(trace, new, (size,)), lent=True)
            wanted = places.size
            if size == 0 and wanted:
                raise ValueError("Cannot copy empty sequence to a flat iterator")
            used = values if size == wanted else values[new_array(trace, np.arange(wanted) % max(size, 1))]
            flat[new_array(trace, places.reshape(-1))] = used
        content_now = reshape_content(trace, content(flat), self._array._shape)
        write(self._array, content_now if isinstance(content_now, Value) else np.array(content_now))

    def __traced_array__(self) -> TracedArray:
        return self._flat()

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return func(*_arrays(args), **dict(zip(kwargs, _arrays(kwargs.values()), strict=True)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*_arrays(inputs), **dict(zip(kwargs, _arrays(kwargs.values()), strict=True)))

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> Any:
        return np.asarray(self._flat(), dtype)


def _arrays(xs: Iterable[Any]) -> list[Any]:
    """Arguments with every iterator's elements in its place, in sequences too."""
    found: list[Any] = []
    for x in xs:
        if isinstance(x, FlatIterator):
            found.append(x._flat())
        else:
            found.append(type(x)(_arrays(x)) if type(x) in (list, tuple) else x)
    return found


def _is_plain(key: Any) -> bool:
    """Whether the subscript is known: no traced value that depends on an argument."""
    if isinstance(key, tuple):
        return all(_is_plain(k) for k in key)
    return not (isinstance(key, TracedValue) and isinstance(read(key), Value))
