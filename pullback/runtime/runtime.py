"""Everything that runs compiled code in this process: one object, made by the driver.

It is given two functions of the code generator (the layers do not know one another): one that loads object code, one
that gives the object code of support parts.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Protocol, TypeVar

from pullback.codegen.object import CompiledObject, Layout, Signature, SupportObject
from pullback.errors import CodegenError
from pullback.runtime import elf
from pullback.runtime.blas import Blas
from pullback.runtime.capi import hold_forever, process_address, symbol_address, symbol_addresses
from pullback.runtime.compiled import Compiled, Loaded, Miss
from pullback.runtime.function import SPECIALISATION_LIMIT, Dispatch, NativeFunction
from pullback.runtime.layout import LayoutReport, find_layout
from pullback.runtime.native import is_native, native_type
from pullback.runtime.once import Once
from pullback.runtime.watch import CopyDict, Watch, Words, can_watch

F = TypeVar("F", bound=NativeFunction)

KEPT_BYTES = 256 << 20
"""Default bound on the memory of dropped large results and arenas that is kept for the next ones."""

_PART_OF = {
    **dict.fromkeys(("pb_call", "pb_bind", "pb_drop", "pb_serial_for", "pb_unchanged", "pb_copy_dict"), "dispatch"),
    **dict.fromkeys(("pb_strided_fits", "pb_gather", "pb_scatter", "pb_strided_configure"), "dispatch"),
    **dict.fromkeys(("pb_take", "pb_give", "pb_new_large_array", "pb_blocks_configure", "pb_blocks_held"), "blocks"),
    **dict.fromkeys(("pb_parallel_for", "pb_thread_count", "pb_pool_workers"), "threads"),
    **dict.fromkeys(("pb_blas_enter", "pb_blas_leave"), "threads"),
}
"""Which support part has a symbol. The parts are loaded when first asked for."""


class LoadCode(Protocol):
    """Links object code into the process."""

    def __call__(self, code: bytes, exports: Iterable[str], symbols: Mapping[str, int]) -> Loaded: ...


class SupportCode(Protocol):
    """Gives the object code of a support part for an interpreter of that layout."""

    def __call__(self, name: str, layout: Layout) -> SupportObject: ...


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Runtime:
    """Makes native functions, loads compiled objects, owns the thread pool and the kept memory.

    Parameters
    ----------
    load_code, support_code : from the code generator
    threads : of large kernels; 0 means one for each usable core
    kept_bytes : bound on the memory kept between calls; 0 keeps none
    native : may native code read Python objects; False serves every call through ctypes
    own_linker : link without LLVM where this platform's objects are understood; `load_code` then serves what is not

    Attributes
    ----------
    reason : why calls go through ctypes; empty if they are native
    """

    def __init__(
        self,
        load_code: LoadCode,
        support_code: SupportCode,
        threads: int = 0,
        kept_bytes: int = KEPT_BYTES,
        native: bool = True,
        own_linker: bool = True,
    ) -> None:
        self._llvm_link = load_code
        self._own_linker = own_linker and elf.can_link()
        self._support_code = support_code
        self.threads = threads or usable_cores()
        self._kept_bytes = kept_bytes
        self._wants_native = native
        self._parts: dict[str, Mapping[str, int]] = {}
        self._types: dict[type, Any] = {}
        self._once = Once()

    # --- what the interpreter allows ----------------------------------------------------------------------------

    @cached_property
    def _report(self) -> LayoutReport:
        if not self._wants_native:
            return LayoutReport(None, "native calls are switched off")
        return find_layout(NativeFunction.__basicsize__)

    @property
    def layout(self) -> Layout | None:
        """For `emit_entry`; None: make no native entries."""
        return self._report.layout

    @property
    def reason(self) -> str:
        return self._report.reason

    # --- functions ----------------------------------------------------------------------------------------------

    def function(
        self,
        dispatch: Dispatch,
        wrapped: Callable[..., Any] | None = None,
        cls: type[F] | None = None,
        limit: int = SPECIALISATION_LIMIT,
    ) -> Any:
        """A function object; an instance of `cls`, which is `NativeFunction` or derived from it."""
        return self.function_type(cls or NativeFunction)(dispatch, wrapped, limit)

    def function_type(self, base: type[F]) -> type[F]:
        """The native type derived from `base`, or `base` itself where calls are not native."""
        if self.layout is None:
            return base
        found: type[F] = self._once.get(base, lambda: self._types.get(base), lambda: self._make_type(base))
        return found

    def _make_type(self, base: type[F]) -> type[F]:
        if base.__basicsize__ != NativeFunction.__basicsize__:
            raise CodegenError(f"{base.__qualname__} adds slots to NativeFunction; native fields follow it directly")
        made = native_type(base, self.symbol("pb_call"), self.symbol("pb_bind"))
        if not is_native(made):
            raise CodegenError(f"the interpreter refuses native calls for {made!r}")
        self._types[base] = made
        return made

    # --- compiled objects ---------------------------------------------------------------------------------------

    def load(
        self, compiled: CompiledObject, objects: Sequence[object] = (), watch: Watch | None = None, serial: bool = False
    ) -> Compiled:
        """Link a compiled object.

        Parameters
        ----------
        objects : what stands in the signature's static slots
        watch : the words that a watched signature compares
        serial : its large kernels run on the caller's thread alone

        Raises
        ------
        CodegenError : it needs something that this process does not have
        """
        slots = slot_objects(compiled.signature, objects)
        native = bool(compiled.entry) and self.layout is not None
        known = {f"pb_object_{number}": id(thing) for number, thing in enumerate(slots)}
        if compiled.signature.watched:
            if watch is None:
                raise CodegenError("the signature is watched, but there is nothing to compare")
            known["pb_watch"] = watch.address
        if serial:
            known["pb_parallel_for"] = self.symbol("pb_serial_for")
        symbols = symbol_addresses(compiled.symbols, lambda name: known.get(name) or self.symbol(name))
        exports = (compiled.kernel, compiled.entry) if compiled.entry else (compiled.kernel,)
        loaded = self._link(compiled.code, exports, symbols)
        entry = loaded.address(compiled.entry) if native else 0
        return Compiled(compiled, loaded, slots, entry, watch, self._make_invoker if native else None)

    def _link(self, code: bytes, exports: Iterable[str], symbols: Mapping[str, int]) -> Loaded:
        if self._own_linker:
            with suppress(elf.UnlinkableError):
                return elf.link(code, exports, symbols)
        return self._llvm_link(code, exports, symbols)

    def watch(self, fill: Callable[[Words], bool]) -> Watch | None:
        """A table of the words that `fill` names; None where native code cannot tell, or `fill` says that they are not
        everything."""
        watching = self._watching
        if self.layout is None or watching is None:
            return None
        watch = Watch(fill, *watching, self.layout)
        return watch if watch.is_complete else None

    @cached_property
    def _watching(self) -> tuple[Callable[[int], int], CopyDict] | None:
        """The native functions of a `Watch`; None where the interpreter is not laid out as it expects."""
        if self.layout is None:
            return None
        unchanged = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(self.symbol("pb_unchanged"))
        types = (ctypes.c_int64, ctypes.py_object, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        copy_dict = ctypes.PYFUNCTYPE(*types)(self.symbol("pb_copy_dict"))
        return (unchanged, copy_dict) if can_watch(unchanged, copy_dict, self.layout) else None

    def _make_invoker(self, compiled: Compiled) -> Callable[..., Any]:
        def missed(_function: NativeFunction, args: Any, _kwargs: Any, miss: Miss | None, /) -> Miss:
            return miss or Miss(compiled, 0)

        invoker: NativeFunction = self.function(missed)
        invoker.install(compiled)
        return invoker

    def symbol(self, name: str) -> int:
        """The address of an external that compiled code may use.

        Raises
        ------
        CodegenError : nothing in this process has that name
        """
        if name == "pb_parallel_for" and not self.has_threads:
            name = "pb_serial_for"
        address = self._part_symbol(name) or symbol_address(name) or self.blas.address(name)
        if not address:
            raise CodegenError(f"compiled code needs {name}, which this process does not have")
        return address

    @cached_property
    def blas(self) -> Blas:
        """The BLAS and LAPACK that NumPy uses."""
        return Blas.find()

    # --- support code -------------------------------------------------------------------------------------------

    def _part_symbol(self, name: str) -> int | None:
        part = _PART_OF.get(name)
        return self._part(part)[name] if part else None

    def _part(self, name: str) -> Mapping[str, int]:
        return self._once.get(name, lambda: self._parts.get(name), lambda: self._load_part(name))

    def _load_part(self, name: str) -> Mapping[str, int]:
        layout = self.layout or Layout("", 0, 0, 0)
        part = self._support_code(name, layout)
        symbols = symbol_addresses(part.symbols, lambda name: self._part_symbol(name) or symbol_address(name))
        loaded = self._link(part.code, part.exports, symbols)
        hold_forever(loaded)
        addresses = {export: loaded.address(export) for export in part.exports}
        if name == "threads":
            self._start_pool(addresses)
        elif name == "blocks":
            self._start_blocks(addresses)
        elif name == "strided":
            configure = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)(self.symbol("pb_strided_configure"))
            configure(*addresses.values())
        self._parts[name] = addresses
        return addresses

    def take_strided(self) -> None:
        """From now on native code takes arrays that are laid out otherwise than kernels read them."""
        if self.layout is not None:
            self._part("strided")

    @property
    def has_threads(self) -> bool:
        """Can there be a pool; where the system has no POSIX threads kernels run on the caller's."""
        return process_address("pthread_create") is not None

    def _start_pool(self, addresses: Mapping[str, int]) -> None:
        ctypes.PYFUNCTYPE(None, ctypes.c_int64)(addresses["pb_pool_configure"])(self.threads)
        reset = ctypes.PYFUNCTYPE(None)(addresses["pb_pool_reset"])
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=reset)

    def _start_blocks(self, addresses: Mapping[str, int]) -> None:
        name = ctypes.create_string_buffer(b"mem_handler")
        prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        make = prototype(("PyCapsule_New", ctypes.pythonapi))
        capsule = make(addresses["pb_handler"], ctypes.cast(name, ctypes.c_char_p), None)
        hold_forever((name, capsule))
        configure = ctypes.PYFUNCTYPE(None, ctypes.c_int64, ctypes.py_object)(addresses["pb_blocks_configure"])
        configure(self._kept_bytes, capsule)

    def kept_now(self) -> int:
        """Bytes that are kept at present for later arenas and results."""
        if "blocks" not in self._parts:
            return 0
        held = ctypes.PYFUNCTYPE(ctypes.c_int64)(self._parts["blocks"]["pb_blocks_held"])
        return int(held())


def slot_objects(signature: Signature, statics: Sequence[object]) -> tuple[object, ...]:
    """The driver's objects, then the keys of dictionaries.

    Raises
    ------
    CodegenError : not as many objects as the signature has static slots
    """
    if len(statics) != signature.statics:
        raise CodegenError(f"the signature has {signature.statics} static slots, found {len(statics)} objects")
    return (*statics, *map(sys.intern, signature.key_slots()))
