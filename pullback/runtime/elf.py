"""A linker for object code of one kind: x86-64 ELF files as LLVM writes them, position independent.

LLVM has one too, but loading LLVM takes several times as long as everything else that a process with a warm disk cache
does before its first call. So code from the disk is linked here, and so is fresh code, in order that there be one way.
What is not understood is refused by name, and the caller turns to LLVM's linker.

An object gets one mapping: code and call stubs, then constants and the table of far addresses, then variables; only the
last part can be written once the addresses are in.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from pullback.errors import CodegenError
from pullback.record import record
from pullback.runtime.capi import hold_forever, process_address

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_IDENT = b"\x7fELF\x02\x01\x01"
_RELOCATABLE, _X86_64 = 1, 62
_SYMBOLS, _RELOCATIONS, _NO_BITS, _UNWIND = 2, 4, 8, 0x70000001
_WRITE, _ALLOCATED, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400
_UNDEFINED, _ABSOLUTE, _RESERVED = 0, 0xFFF1, 0xFF00
_ABS64, _PC32, _PLT32, _PC64 = 1, 2, 4, 24
_GOT_RELATIVE = frozenset({9, 41, 42})
_STUB = b"\xff\x25"  # jmp [rip + displacement]
_STUB_BYTES = 8
_PAGE = mmap.PAGESIZE
_READ_EXECUTE, _READ = 5, 1


class UnlinkableError(CodegenError):
    """The object has something that this linker does not know."""


@record(slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    place: int = 0


@record(slots=True)
class _Symbol:
    name: str
    section: int
    value: int


@record(slots=True)
class _Image:
    """The mapping while it is filled, and the tables that grow meanwhile."""

    memory: mmap.mmap
    base: int
    stubs: int
    table: int
    far: dict[int, int] = field(default_factory=dict)

    def slot(self, address: int) -> int:
        """Place of the table's entry for a far address."""
        if address not in self.far:
            self.far[address] = number = len(self.far)
            table = self.table + 8 * number
            stub = self.stubs + _STUB_BYTES * number
            struct.pack_into("<Q", self.memory, table, address)
            struct.pack_into("<2si", self.memory, stub, _STUB, table - (stub + 6))
        return self.table + 8 * self.far[address]

    def stub(self, address: int) -> int:
        """Place of a jump to a far address."""
        self.slot(address)
        return self.stubs + _STUB_BYTES * self.far[address]


class LinkedObject:
    """Object code in memory. Its addresses hold as long as this object lives; dropping it frees the code."""

    __slots__ = ("_addresses", "_memory")

    def __init__(self, memory: mmap.mmap, addresses: dict[str, int]) -> None:
        self._memory = memory
        self._addresses = addresses

    def address(self, name: str) -> int:
        """Where an exported symbol is.

        Raises
        ------
        CodegenError : the object exports no such name
        """
        if name not in self._addresses:
            raise CodegenError(f"the loaded object exports no symbol {name!r}")
        return self._addresses[name]

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if finalizing():  # a thread that ends with the process may still be running this code
            hold_forever(self._memory)


def can_link() -> bool:
    """Is this a platform whose objects are understood here."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def link(code: bytes, exports: Iterable[str], symbols: Mapping[str, int]) -> LinkedObject:
    """Put object code into memory.

    Parameters
    ----------
    code : a relocatable ELF object
    exports : names whose addresses are wanted
    symbols : addresses of externals; others are looked for in the C library

    Raises
    ------
    UnlinkableError : it has something that LLVM's linker must be asked for
    CodegenError : an external has no address
    """
    try:
        return _link(code, exports, symbols)
    except (struct.error, IndexError, ValueError) as error:
        raise UnlinkableError(f"the object code is damaged: {error}") from error


def _link(code: bytes, exports: Iterable[str], symbols: Mapping[str, int]) -> LinkedObject:
    sections = _read_sections(code)
    tables = [section for section in sections if section.kind == _SYMBOLS]
    names = [symbol for table in tables for symbol in _read_symbols(code, sections, table)]
    image, ends = _map(code, sections, len(names))
    addresses = [_address(symbol, sections, image.base, symbols) for symbol in names]
    for section in sections:
        if section.kind == _RELOCATIONS and _is_kept(sections[section.info]):
            _relocate(image, code, section, sections[section.info].place, addresses)
    _protect(image.base, ends)
    known = {symbol.name: address for symbol, address in zip(names, addresses, strict=True) if symbol.section}
    return LinkedObject(image.memory, {name: known[name] for name in exports if name in known})


def _text(code: bytes, start: int) -> str:
    return code[start : code.index(b"\0", start)].decode()


def _read_sections(code: bytes) -> list[_Section]:
    ident, kind, machine, *_, table, _, _, _, _, size, count, names = _HEADER.unpack_from(code)
    if not ident.startswith(_IDENT) or (kind, machine, size) != (_RELOCATABLE, _X86_64, _SECTION.size):
        raise UnlinkableError("not an x86-64 ELF object")
    rows = [_SECTION.unpack_from(code, table + number * size) for number in range(count)]
    base = rows[names][4]
    return [
        _Section(_text(code, base + name), kind, flags, offset, size, link, info, max(1, align))
        for name, kind, flags, _, offset, size, link, info, align, _ in rows
    ]


def _read_symbols(code: bytes, sections: list[_Section], table: _Section) -> Iterator[_Symbol]:
    strings = sections[table.link].offset
    for name, _, _, section, value, _ in _SYMBOL.iter_unpack(code[table.offset : table.offset + table.size]):
        yield _Symbol(_text(code, strings + name), section, value)


def _is_kept(section: _Section) -> bool:
    if section.flags & _THREAD_LOCAL or section.align > _PAGE:
        raise UnlinkableError(f"section {section.name} is thread-local or aligned to {section.align}")
    return bool(section.flags & _ALLOCATED) and section.kind != _UNWIND and section.name != ".eh_frame"


def _map(code: bytes, sections: list[_Section], most_far: int) -> tuple[_Image, tuple[int, int]]:
    """Lay out and copy the sections; also where code and constants end."""
    kept = [section for section in sections if _is_kept(section)]
    executable = [section for section in kept if section.flags & _EXECUTE]
    writable = [section for section in kept if section.flags & _WRITE]
    constant = [section for section in kept if not section.flags & (_EXECUTE | _WRITE)]
    stubs = _round_up(_lay_out(executable, 0), _STUB_BYTES)
    code_end = _round_up(stubs + _STUB_BYTES * most_far, _PAGE)
    table = _round_up(_lay_out(constant, code_end), 8)
    constants_end = _round_up(table + 8 * most_far, _PAGE)
    end = _round_up(_lay_out(writable, constants_end), _PAGE)
    memory = mmap.mmap(-1, max(end, _PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for section in kept:
        if section.kind != _NO_BITS:
            memory[section.place : section.place + section.size] = code[section.offset : section.offset + section.size]
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return _Image(memory, base, stubs, table), (code_end, constants_end)


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _lay_out(sections: list[_Section], start: int) -> int:
    for section in sections:
        section.place = _round_up(start, section.align)
        start = section.place + section.size
    return start


def _address(symbol: _Symbol, sections: list[_Section], base: int, known: Mapping[str, int]) -> int:
    if symbol.section == _UNDEFINED:
        found = (known.get(symbol.name) or process_address(symbol.name)) if symbol.name else 0
        if found is None:
            raise CodegenError(f"compiled code needs {symbol.name}, which this process does not have")
        return found
    if symbol.section == _ABSOLUTE:
        return symbol.value
    if symbol.section >= _RESERVED:
        raise UnlinkableError(f"symbol {symbol.name} is in the special section {symbol.section:#x}")
    return base + sections[symbol.section].place + symbol.value


def _relocate(image: _Image, code: bytes, table: _Section, place: int, addresses: list[int]) -> None:
    memory, base = image.memory, image.base
    for offset, info, addend in _RELOCATION.iter_unpack(code[table.offset : table.offset + table.size]):
        at = place + offset
        target = addresses[info >> 32]
        kind = info & 0xFFFFFFFF
        if kind == _ABS64:
            struct.pack_into("<Q", memory, at, (target + addend) % (1 << 64))
        elif kind == _PC64:
            struct.pack_into("<q", memory, at, target + addend - (base + at))
        elif kind in _GOT_RELATIVE:
            struct.pack_into("<i", memory, at, image.slot(target) + addend - at)
        elif kind == _PLT32 and not 0 <= target - base < len(memory):
            struct.pack_into("<i", memory, at, image.stub(target) + addend - at)
        elif kind in (_PC32, _PLT32):
            struct.pack_into("<i", memory, at, target + addend - (base + at))
        else:
            raise UnlinkableError(f"the object code has a relocation of kind {kind}")


def _protect(base: int, ends: tuple[int, int]) -> None:
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    code_end, constants_end = ends
    for start, end, rights in ((0, code_end, _READ_EXECUTE), (code_end, constants_end, _READ)):
        if end > start and mprotect(base + start, end - start, rights):
            raise UnlinkableError(f"the system refuses executable memory (errno {ctypes.get_errno()})")
