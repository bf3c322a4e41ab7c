"""Words of memory that are as they were while what a function found outside itself has not changed.

A compiled function may rest on the value of a global name, a closure variable, an attribute, the items of a list. Each
is a pointer that the interpreter keeps at some address: comparing it costs a nanosecond, where asking Python costs a
hundred. A `Watch` is the table of such addresses that native code compares (`pb_unchanged`).

Addresses inside dictionaries and lists move when those grow. So the words that say where the items are come first in
the table, and an item is looked at only while they are right. While a table is made other threads may change what it is
about: memory that a container could give up is read in one native step (`pb_copy_dict`) or not at all; the words to
expect follow from the objects. Objects that are pointed to are held, so that no other object can appear at their
address. Where the interpreter's dictionaries are not laid out as expected nothing is watched and Python compares.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CellType, FunctionType, MappingProxyType, MemberDescriptorType
from typing import Any, TypeAlias

import numpy as np

from pullback.codegen.object import Layout
from pullback.runtime.capi import peek

ROW_LIMIT = 600
"""A table of more rows is not made: Python compares then."""

_SPARE_ROWS = 8
_VERSIONS = ((3, 11), (3, 14))
_ALL = (1 << 64) - 1
_CELL_CONTENT = 16
_PROXIED = 16
_FUNCTION_PARTS = (48, 56, 64)  # code, defaults, defaults of keywords
_DESCRIPTOR_MEMBER, _MEMBER_OFFSET = 40, 16
_DICT_KEYS, _DICT_VALUES = 32, 40
_KEYS_SHAPE, _KEYS_SHAPE_MASK = 8, 0xFFFFFF  # log2 of the size, log2 of the bytes of the index, kind
_KEYS_COUNT, _KEYS_INDEX = 24, 32
_GENERAL, _UNICODE, _SPLIT = 0, 1, 2
_ENTRY_WORDS = {_GENERAL: (3, 1, 2), _UNICODE: (2, 0, 1)}  # words of an entry; which of them are key and value
_SPLIT_VALUES = 8 if sys.version_info >= (3, 13) else 0
_OBJECT_HEAD = -32  # what the interpreter keeps in front of an object begins here

Places: TypeAlias = Mapping[int, Sequence[int]]
CopyDict: TypeAlias = Callable[[object, int, object, int], int]


class Words:
    """Rows of a table under construction. Each method says whether it could add what it was asked to.

    Attributes
    ----------
    rows : for each address the mask, and the word that is there under it
    blocks : for each address a copy of the elements that are there
    held : objects that the words point to, or lie in
    """

    def __init__(self, layout: Layout, copy_dict: CopyDict) -> None:
        self._copy_dict = copy_dict
        self.rows: dict[int, tuple[int, int]] = {}
        self.blocks: dict[int, np.ndarray[Any, Any]] = {}
        self.held: list[object] = []
        self._layout = layout
        self._places: dict[int, Places | None] = {}

    def cell(self, cell: CellType) -> bool:
        """What a closure cell holds."""
        self.held.append(cell)
        self._pointer(id(cell) + _CELL_CONTENT, cell.cell_contents)
        return True

    def item(self, holder: dict[Any, Any], key: Any) -> bool:
        """What a dictionary holds under one key that is there."""
        places = self._places_of(holder)
        if places is not None and id(key) not in places:
            key = next((known for known in list(holder) if known == key), None)
        if places is None or id(key) not in places:
            return False
        at_key, at_value = places[id(key)]
        self.held.append(holder)
        self._pointer(at_key, key)
        self._pointer(at_value, holder.get(key))
        return True

    def items(self, holder: dict[Any, Any]) -> bool:
        """All that a dictionary holds, and that it holds no more."""
        return self.size(holder) and all(self.item(holder, key) for key in list(holder))

    def size(self, holder: dict[Any, Any]) -> bool:
        """How many items a dictionary has."""
        self.held.append(holder)
        self._word(id(holder) + self._layout.container_size, len(holder))
        return True

    def sequence(self, items: list[Any]) -> bool:
        """The items of a list, and that there are no more."""
        layout, now = self._layout, tuple(items)
        self.held.append(items)
        base = peek(id(items) + layout.list_items) or 0
        self._word(id(items) + layout.container_size, len(now))
        self._word(id(items) + layout.list_items, base)
        for number, item in enumerate(now):
            self._pointer(base + 8 * number, item)
        return True

    def space(self, thing: Any) -> dict[str, Any] | None:
        """The dictionary of the attributes of an object, class or module, which is to stay that one."""
        found = vars(thing)
        self.held.append(thing)
        if isinstance(thing, type):
            proxied = ctypes.cast(peek(id(found) + _PROXIED), ctypes.py_object).value
            return proxied if type(found) is MappingProxyType and type(proxied) is dict else None
        places = range(id(thing) + _OBJECT_HEAD, id(thing) + type(thing).__basicsize__, 8)
        at = next((at for at in places if peek(at, ctypes.c_uint64) == id(found)), None)
        if type(found) is not dict or at is None:
            return None
        self._pointer(at, found)
        return found

    def kind(self, thing: object) -> bool:
        """The class of an object."""
        self.held.append(thing)
        self._pointer(id(thing) + self._layout.object_type, type(thing))
        return True

    def slot(self, thing: Any, slot: MemberDescriptorType) -> bool:
        """What is in a slot (`__slots__`) of an object."""
        member = peek(id(slot) + _DESCRIPTOR_MEMBER)
        self.held.append(thing)
        self._pointer(id(thing) + peek(member + _MEMBER_OFFSET, ctypes.c_ssize_t), slot.__get__(thing))
        return True

    def function(self, function: FunctionType) -> bool:
        """The code of a Python function, and its defaults if it has some."""
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__)
        self.held.append(function)
        for at, part in zip(_FUNCTION_PARTS, parts, strict=True):
            if part is not None:
                self._pointer(id(function) + at, part)
        return True

    def elements(self, array: np.ndarray[Any, Any]) -> bool:
        """Shape, dtype and elements of an array."""
        layout, place = self._layout, id(array)
        if not array.flags.c_contiguous:
            return False
        self.held.append(array)
        copy = array.copy()
        self._word(place + layout.array_ndim, array.ndim, 0xFFFFFFFF)
        self._word(place + layout.array_flags, array.flags.num, 0xFFFFFFFF)
        dims = peek(place + layout.array_dims) or 0
        self._word(place + layout.array_dims, dims)
        for axis, extent in enumerate((*array.shape, *array.strides)):  # the strides lie behind the extents
            self._word(dims + 8 * axis, extent)
        data = array.ctypes.data
        self._word(place + layout.array_data, data)
        self._pointer(place + layout.array_descr, array.dtype)
        self.blocks[data] = copy
        return True

    def table(self) -> list[int]:
        """Everything as `pb_unchanged` reads it."""
        rows = [word for at, (mask, value) in self.rows.items() for word in (at, mask, value)]
        blocks = [word for at, copy in self.blocks.items() for word in (at, copy.nbytes, copy.ctypes.data)]
        return [len(self.rows), len(self.blocks), *rows, *blocks]

    def _word(self, address: int, expected: int, mask: int = _ALL) -> None:
        self.rows.setdefault(address, (mask, expected & mask))

    def _pointer(self, address: int, thing: object) -> None:
        self.held.append(thing)
        self._word(address, id(thing))

    def _places_of(self, holder: dict[Any, Any]) -> Places | None:
        """For each key, by identity, the addresses of the key and of its value; None where that cannot be told."""
        if id(holder) not in self._places:
            self._places[id(holder)] = self._find_places(holder)
        return self._places[id(holder)]

    def _find_places(self, holder: dict[Any, Any]) -> Places | None:
        words = self._snapshot(holder)
        keys, values, shape, count = words[:4]
        kind = shape >> 16 & 0xFF
        if kind not in (_GENERAL, _UNICODE, _SPLIT) or (kind == _SPLIT) != bool(values):
            return None
        self._word(id(holder) + _DICT_KEYS, keys)
        self._word(id(holder) + _DICT_VALUES, values)
        self._word(keys + _KEYS_SHAPE, shape, _KEYS_SHAPE_MASK)
        first = keys + _KEYS_INDEX + (1 << (shape >> 8 & 0xFF))
        size, at_key, at_value = _ENTRY_WORDS[_UNICODE if kind == _SPLIT else kind]
        names = words[4 + at_key : 4 + size * count : size]
        entries = range(first, first + 8 * size * count, 8 * size)
        if kind == _SPLIT:
            own = range(values + _SPLIT_VALUES, values + _SPLIT_VALUES + 8 * count, 8)
        else:
            own = range(first + 8 * at_value, first + 8 * (at_value + size * count), 8 * size)
        return {name: (entry + 8 * at_key, value) for name, entry, value in zip(names, entries, own, strict=True)}

    def _snapshot(self, holder: dict[Any, Any]) -> list[int]:
        """The table of a dictionary in one moment, as `pb_copy_dict` gives it."""
        capacity = 4 * len(holder) + 64
        while True:
            buffer = (ctypes.c_uint64 * capacity)()
            needed = self._copy_dict(holder, _SPLIT_VALUES, buffer, capacity)
            if needed <= capacity:
                return list(buffer[:needed])
            capacity = needed + 64


class Watch:
    """A table of words, at a fixed address.

    Parameters
    ----------
    fill : adds what is to be compared; False: not all of it could be added
    unchanged, copy_dict : `pb_unchanged` and `pb_copy_dict`
    layout : of the interpreter

    Attributes
    ----------
    address : of the table
    """

    def __init__(
        self, fill: Callable[[Words], bool], unchanged: Callable[[int], int], copy_dict: CopyDict, layout: Layout
    ) -> None:
        self._fill = fill
        self._copy_dict = copy_dict
        self._unchanged = unchanged
        self._layout = layout
        self._held: list[object] = []
        words = self._read()
        rows = 0 if words is None else len(words.rows) + len(words.blocks)
        self._table = (ctypes.c_uint64 * (2 + 3 * (rows + _SPARE_ROWS)))()
        self.address = ctypes.addressof(self._table)
        self.is_complete = self._write(words)

    def holds(self) -> bool:
        """Is every word as it was."""
        return bool(self._unchanged(self.address))

    def refresh(self) -> None:
        """From now on compare with what there is now."""
        self._write(self._read())

    def clear(self) -> None:
        """Hold no more, until the next `refresh`."""
        self._table[0:5] = [1, 0, self.address, 0, 1]  # nothing but 0 is there under the mask 0

    def _read(self) -> Words | None:
        words = Words(self._layout, self._copy_dict)
        return words if self._fill(words) and len(words.rows) <= ROW_LIMIT else None

    def _write(self, words: Words | None) -> bool:
        flat = [] if words is None else words.table()
        if words is None or len(flat) > len(self._table):
            self.clear()
            return False
        self._table[: len(flat)] = flat  # type: ignore[assignment]  # in one step: another thread may compare
        self._held = [*words.held, *words.blocks.values()]
        return True


# ------------------------------------------------------------------ is the interpreter laid out like that


def can_watch(unchanged: Callable[[int], int], copy_dict: CopyDict, layout: Layout) -> bool:
    """Are dictionaries, cells and objects of this interpreter laid out as expected: are samples found unchanged."""
    if not _VERSIONS[0] <= sys.version_info[:2] <= _VERSIONS[1]:
        return False
    watch = Watch(_add_samples, unchanged, copy_dict, layout)
    return watch.is_complete and watch.holds()


def _with_defaults(x: object = (1, 2), *, y: object = (3, 4)) -> object:
    return x, y


class _Sample:
    attribute = 2.5

    def __init__(self) -> None:
        self.first, self.second = 1.5, [3]


class _Slotted:
    __slots__ = ("first", "second")

    def __init__(self) -> None:
        self.first, self.second = 1.5, "x"


def _add_samples(words: Words) -> bool:
    """One of each kind of thing."""
    thing, slotted = _Sample(), _Slotted()
    holed: dict[Any, Any] = {"a": 1.5, "b": [2], "c": 3}
    del holed["a"]
    wide: dict[Any, Any] = dict.fromkeys(range(300), 0.5)
    cell = (lambda: thing).__closure__[0]  # type: ignore[index]
    functions: tuple[Any, ...] = (_with_defaults, _add_samples)
    slots: tuple[Any, ...] = (vars(_Slotted)["first"], vars(_Slotted)["second"])
    added = [words.cell(cell), words.sequence([1.5, "x", [2]]), words.elements(np.ones((2, 3)))]
    added += [words.function(function) for function in functions]
    added += [words.items(space) for space in (holed, {1: 2.5, "x": [3]})]
    added += [words.item(wide, 0), words.item(wide, 299)]
    added += [words.slot(slotted, slot) for slot in slots]
    for owner, name in ((thing, "second"), (_Sample, "attribute"), (sys.modules[__name__], "_Sample")):
        own = words.space(owner)
        added.append(own is not None and words.item(own, name))
    return all(added)
